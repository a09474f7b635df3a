"""What a simulated node says of its GPUs, in the words of nvidia-smi and dcgmi.

slurmtop asks by a script of its own; it is known by its name, and its words say what is wanted.
"""

from collections.abc import Callable, Sequence

from slurmtop.demo.gpus import (
    DRIVER,
    LOST,
    MEMORY_MIB,
    MODEL,
    POWER_LIMIT_W,
    Numbers,
    bus_of,
    holder,
    numbers,
    uuid_of,
)
from slurmtop.demo.nodes import GPUS, DemoNode
from slurmtop.demo.values import View

_Value = Callable[[DemoNode, int, Numbers], str]

_FIELDS: dict[str, _Value] = {
    "index": lambda node, gpu, now: str(gpu),
    "uuid": lambda node, gpu, now: uuid_of(node.name, gpu),
    "gpu_uuid": lambda node, gpu, now: uuid_of(node.name, gpu),
    "pci.bus_id": lambda node, gpu, now: bus_of(gpu),
    "name": lambda node, gpu, now: MODEL,
    "driver_version": lambda node, gpu, now: DRIVER,
    "memory.total": lambda node, gpu, now: str(MEMORY_MIB),
    "memory.used": lambda node, gpu, now: str(now.mem_mib),
    "memory.reserved": lambda node, gpu, now: "551",
    "utilization.gpu": lambda node, gpu, now: str(now.util_percent),
    "utilization.memory": lambda node, gpu, now: str(round(100 * now.dram)),
    "temperature.gpu": lambda node, gpu, now: str(now.temp_c),
    "temperature.memory": lambda node, gpu, now: str(now.temp_c + 8),
    "power.draw": lambda node, gpu, now: f"{now.power_w:.2f}",
    "power.limit": lambda node, gpu, now: f"{POWER_LIMIT_W:.2f}",
    "clocks.sm": lambda node, gpu, now: str(now.clock_mhz),
    "pstate": lambda node, gpu, now: "P0",
    "persistence_mode": lambda node, gpu, now: "Enabled",
    "ecc.errors.uncorrected.volatile.total": lambda node, gpu, now: "0",
    "mig.mode.current": lambda node, gpu, now: "Disabled",
    "clocks_throttle_reasons.active": lambda node, gpu, now: f"0x{now.events:016x}",
    "clocks_event_reasons.active": lambda node, gpu, now: f"0x{now.events:016x}",
    "remapped_rows.uncorrectable": lambda node, gpu, now: "0",
    "remapped_rows.pending": lambda node, gpu, now: "No",
    "remapped_rows.failure": lambda node, gpu, now: "No",
    "fabric.state": lambda node, gpu, now: "Completed",
    "fabric.status": lambda node, gpu, now: "Success",
}
_DMON: dict[int, tuple[str, str, Callable[[Numbers], str]]] = {
    100: ("SMCLK", "", lambda now: str(now.clock_mhz)),
    112: ("DVCCTR", "", lambda now: str(now.events)),
    150: ("TMPTR", "C", lambda now: str(now.temp_c)),
    155: ("POWER", "W", lambda now: f"{now.power_w:.3f}"),
    203: ("GPUTL", "", lambda now: str(now.util_percent)),
    230: ("XIDER", "", lambda now: "0"),
    252: ("FBUSD", "", lambda now: str(now.mem_mib)),
    1001: ("GRACT", "", lambda now: f"{now.util_percent / 100:.3f}"),
    1002: ("SMACT", "", lambda now: f"{now.sm:.3f}"),
    1003: ("SMOCC", "", lambda now: f"{now.occupancy:.3f}"),
    1004: ("TENSO", "", lambda now: f"{now.tensor:.3f}"),
    1005: ("DRAMA", "", lambda now: f"{now.dram:.3f}"),
    1009: ("PCITX", "", lambda now: str(now.pcie // 2)),
    1010: ("PCIRX", "", lambda now: str(now.pcie)),
    1011: ("NVLTX", "", lambda now: str(now.nvlink)),
    1012: ("NVLRX", "", lambda now: str(now.nvlink)),
}
_ENTITY_WIDTH = 16
_COLUMN_WIDTH = 20
_TOOL = "31337:889123"


def first_words(view: View, node: DemoNode, words: Sequence[str]) -> str:
    """Everything up to the first round of a stream, or a whole answer where it is none."""
    want = words[0] if words else ""
    out = ["#slurmtop seen hostengine exporter"]
    if want in ("probe", "once"):
        out += ["#slurmtop part cgroup", f"0::/system.slice/sshd.service/{node.name}"]
        out += ["#slurmtop part nics", *nics(view)]
    if want == "stream":
        return _lines([*out, "#slurmtop part query", f"#slurmtop pid {_TOOL}"])
    if want == "dcgm":
        out += ["#slurmtop part discovery", f"#slurmtop pid {_TOOL}", *_discovery(node)]
        out += ["#slurmtop end 0", "#slurmtop part dmon", f"#slurmtop pid {_TOOL}"]
        return _lines(out)
    if want == "once":
        rows, rc = query(view, node, words[2].split(","))
        out += ["#slurmtop part query", f"#slurmtop pid {_TOOL}", *rows, f"#slurmtop end {rc}"]
    asked = {"once": words[3:4], "probe": words[2:3]}.get(want, ())
    if asked and asked[0]:
        out += ["#slurmtop part apps", f"#slurmtop pid {_TOOL}", *apps(view, node)]
        out += ["#slurmtop end 0"]
    if want == "amd":
        out += ["#slurmtop part amd", "#slurmtop end 127"]
    return _lines([*out, "#slurmtop done"])


def one_round(view: View, node: DemoNode, words: Sequence[str]) -> tuple[str, bool]:
    """The next lines of a stream, and whether the tool goes on after them."""
    if words[0] == "dcgm":
        ids = [int(one) for one in words[2].split(",") if one.isdigit()]
        return _lines(_dmon(view, node, [one for one in ids if one in _DMON])), True
    rows, rc = query(view, node, words[2].split(","))
    if rc:
        return _lines([*rows, f"#slurmtop end {rc}", "#slurmtop done"]), False
    return _lines(rows), True


def streams(words: Sequence[str]) -> bool:
    """Does it go on until nobody reads any more?"""
    return bool(words) and (words[0] == "stream" or (words[0] == "dcgm" and len(words) < 5))


def query(view: View, node: DemoNode, fields: Sequence[str]) -> tuple[list[str], int]:
    """The rows of ``--query-gpu``, or the words of a refusal, and the exit status."""
    for field in fields:
        if field not in _FIELDS:
            return [f'Field "{field}" is not a valid field to query.'], 2
    if node.name == LOST[0]:
        bus = bus_of(LOST[1])[4:]
        return [f"Unable to determine the device handle for GPU{bus}: Unknown Error"], 6
    rows = []
    for gpu in range(GPUS):
        now = numbers(view, node, gpu)
        rows.append(", ".join(_FIELDS[field](node, gpu, now) for field in fields))
    return rows, 0


def apps(view: View, node: DemoNode) -> list[str]:
    """The rows of ``--query-compute-apps``."""
    rows = []
    for gpu in range(GPUS):
        who = holder(view, node, gpu)
        if who is not None:
            held = numbers(view, node, gpu).mem_mib
            name = "python" if view.mine(who.job) else "[Not Found]"
            rows.append(f"{uuid_of(node.name, gpu)}, {who.pid}, {name}, {held}")
    return rows


def _discovery(node: DemoNode) -> list[str]:
    rule = "+--------+----------------------------------------------------------------------+"
    out = [f"{GPUS} GPUs found.", rule, f"| {'GPU ID':<6} | {'Device Information':<68} |", rule]
    for gpu in range(GPUS):
        out += [
            f"| {gpu:<6} | {'Name: ' + MODEL:<68} |",
            f"| {'':<6} | {'PCI Bus ID: ' + bus_of(gpu):<68} |",
            f"| {'':<6} | {'Device UUID: ' + uuid_of(node.name, gpu):<68} |",
            rule,
        ]
    return out


def _dmon(view: View, node: DemoNode, ids: Sequence[int]) -> list[str]:
    cells = [_DMON[one] for one in ids]
    out = [
        f"{'#Entity':<{_ENTITY_WIDTH}}"
        + "".join(f"{name:<{_COLUMN_WIDTH}}" for name, _, _ in cells),
        f"{'ID':<{_ENTITY_WIDTH}}" + "".join(f"{unit:<{_COLUMN_WIDTH}}" for _, unit, _ in cells),
    ]
    for gpu in range(GPUS):
        now = numbers(view, node, gpu)
        row = "".join(f"{text(now):<{_COLUMN_WIDTH}}" for _, _, text in cells)
        out.append(f"{f'GPU {gpu}':<{_ENTITY_WIDTH}}{row}")
    return out


def nics(view: View) -> list[str]:
    """Eight ports of InfiniBand; what they have carried grows with time."""
    t = max(0, view.t) + 5_000_000
    out = [f"/proc/uptime:{t}.00 {t * 90}.00"]
    for port in range(GPUS):
        place = f"/sys/class/infiniband/mlx5_{port}/ports/1"
        words = t * 1_150_000_000 // 4
        out += [
            f"{place}/state:4: ACTIVE",
            f"{place}/rate:400 Gb/sec (4X NDR)",
            f"{place}/link_layer:InfiniBand",
            f"{place}/counters/port_rcv_data:{words}",
            f"{place}/counters/port_xmit_data:{words}",
            f"{place}/counters/symbol_error:0",
            f"{place}/counters/link_downed:0",
        ]
    return out


def _lines(lines: Sequence[str]) -> str:
    return "".join(line + "\n" for line in lines)
