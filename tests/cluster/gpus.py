"""The stand-ins for GPU tools on the nodes: where they are put, and what a fault does to them.

Only the nodes have them: they are bound over a node's own ``/usr/local/bin``.
"""

from __future__ import annotations

import json
import os
import platform
import struct
from pathlib import Path

from tests.cluster.confs import folder, put
from tests.cluster.layout import GPUS_PER_NODE, ClusterError, Layout
from tests.cluster.procs import wait_until
from tests.cluster.spaces import command, node_record
from tests.cluster.standins.cards import FOLDER, MODES, OF_ONE_GPU, STATE
from tests.cluster.standins.smi import STUCK

PROGRAMS = {"nvidia-smi": "smi", "dcgmi": "dcgm", "dcgm-exporter": "exporter"}
#: It is there and does nothing: ``dcgmi`` answers by itself.
ENGINE = "nv-hostengine"
_PLACE = "/usr/local/bin"
# It takes root as its real and its saved user, and keeps the asker as the effective one: /proc
# says it is the asker's, and the asker cannot end it, SIGKILL or not. Its first half waits in
# state D for the second to end, which pauses for ever.
_STUCK_CODE = bytes.fromhex(
    "b866000000 0f05 89c6"  # getuid()
    "31ff 31d2 b875000000 0f05"  # setresuid(0, uid, 0)
    "bf04000000 be01000000 b89d000000 0f05"  # prctl(PR_SET_DUMPABLE, 1)
    "b83a000000 0f05"  # vfork()
    "b822000000 0f05 ebf7"  # pause(), again and again
)


def write_programs(layout: Layout) -> None:
    """The programs themselves: a few lines each, for their code lies in the checkout."""
    folder(layout.standins)
    for name, module in PROGRAMS.items():
        text = (
            # Nothing of a job's environment may change how they run.
            "#!/usr/bin/python3 -IS\n"
            "import sys\n"
            "sys.dont_write_bytecode = True\n"
            f"sys.path.insert(0, {str(layout.source)!r})\n"
            f"from tests.cluster.standins.{module} import main\n"
            "main()\n"
        )
        path = layout.standins / name
        if not path.exists() or path.read_text() != text:
            put(path, text, 0o755)
    engine = layout.standins / ENGINE
    if not engine.is_symlink():
        # The kernel calls a process by the name that it was started by.
        engine.symlink_to("/usr/bin/sleep")


def _seen_by(pid: int, path: Path | str) -> Path:
    return Path(f"/proc/{pid}/root{path}")


def shown(layout: Layout, pid: int) -> bool:
    """Whether the node with the first process ``pid`` has the stand-ins in its PATH."""
    try:
        inner, outer = _seen_by(pid, _PLACE).stat(), layout.standins.stat()
    except FileNotFoundError:
        return False
    return (inner.st_dev, inner.st_ino) == (outer.st_dev, outer.st_ino)


def show(layout: Layout, pid: int) -> None:
    """Put the stand-ins into a node's PATH, once."""
    if not shown(layout, pid):
        command("mount", "--bind", str(layout.standins), _PLACE, inside=pid)


def set_state(layout: Layout, node: str, mode: str, gpu: int | None) -> None:
    """From now on the node's tools answer so; what hung because of an earlier state is ended."""
    if mode not in MODES:
        raise ClusterError(f"mode must be one of {', '.join(MODES)}")
    if (gpu is not None) is not (mode in OF_ONE_GPU):
        raise ClusterError(f"{mode} is {'about one GPU' if gpu is None else 'about no one GPU'}")
    if gpu is not None and not 0 <= gpu < GPUS_PER_NODE:
        raise ClusterError(f"gpu must be 0 to {GPUS_PER_NODE - 1}")
    pid = _first_pid(layout, node)
    folder(_seen_by(pid, FOLDER))
    if mode == "hung":
        put(_seen_by(pid, STUCK), _stuck_program(), 0o4755)
    put(_seen_by(pid, STATE), json.dumps({"mode": mode, "gpu": gpu}))
    if mode != "hung":
        _end_stuck(pid)


def mend(layout: Layout, node: str) -> None:
    """All GPUs in order again."""
    pid = node_record(layout, node).pid
    if pid is not None and _seen_by(pid, STATE).exists():
        set_state(layout, node, "normal", None)


def _first_pid(layout: Layout, node: str) -> int:
    pid = node_record(layout, node).pid
    if pid is None:
        raise ClusterError(f"{node} is not up")
    return pid


def _stuck_program() -> bytes:
    """A whole program for Linux on x86-64: one segment, no library."""
    if platform.machine() != "x86_64":
        raise ClusterError("a tool that hangs is made for x86-64 only")
    base, head = 0x400000, 64 + 56
    size = head + len(_STUCK_CODE)
    elf = b"\x7fELF\x02\x01\x01" + bytes(9)
    elf += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, base + head, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 0x1000)
    return elf + segment + _STUCK_CODE


def _end_stuck(pid: int) -> None:
    """End what hangs on one node: the driver has come back."""

    def left() -> list[int]:
        space = Path(f"/proc/{pid}/ns/pid").readlink()
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if (
                    entry.name.isdigit()
                    and (entry / "comm").read_text().strip() == STUCK.name
                    and "\nUid:\t0\t" in (entry / "status").read_text()
                    and (entry / "ns/pid").readlink() == space
                ):
                    found.append(int(entry.name))
            except OSError:
                continue
        for one in found:
            os.kill(one, 9)
        return found

    wait_until("the end of what hangs", lambda: not left(), 10)
