"""What the kernel of a node says in a log about its GPUs, memory, network cards and bus.

Source: ``dmesg`` and ``journalctl -k`` (drivers of NVIDIA and NVIDIA networking, the OOM killer,
AER, machine checks), for example::

    [74889.644138] NVRM: Xid (PCI:0000:02:00): 79, GPU has fallen off the bus.
    Memory cgroup out of memory: Killed process 71 (python) total-vm:123kB, anon-rss:99kB

A card that the driver calls gone without a code is told as Xid 79, the code of that event.
"""

import re
from collections.abc import Iterable, Iterator

from slurmtop.model.events.system import (
    HostHardware,
    KernelLink,
    KernelOom,
    LinkTrouble,
    PcieFatal,
    Xid,
)
from slurmtop.model.gpu import KernelKind
from slurmtop.model.trace import Event, Where
from slurmtop.parse.logs.kernel import FELL, MESSAGE_LINES, driver_event, find_card
from slurmtop.parse.logs.line import Message
from slurmtop.parse.logs.plain import texts

_OFF_THE_BUS = 79
_CAUSED = re.compile(r"caused by previous Xid (\d{1,9})")
#: People hide the bus of the card: ``Xid (PCI:xxxx:xx:00): 145``.
_NO_BUS = re.compile(r"NVRM: Xid \([^)\n]{0,40}\): (?P<code>\d{1,9})(?:, ?(?P<text>.{0,400}))?")

_PCI = r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]"
_OOM_KILL = re.compile(
    r"(?P<cgroup>[Mm]emory cgroup o|O)ut of memory: Kill(?:ed)? process (?P<pid>\d{1,10})"
    r" \((?P<name>[^)\n]{1,64})\)"
    r"|Killed process (?P<pid2>\d{1,10}) \((?P<name2>[^)\n]{1,64})\),? (?:UID|total-vm)"
)
_OOM_LINE = re.compile(
    r"oom-kill:constraint=(?P<constraint>\w{1,40}),(?:.{0,600}?,)?task=(?P<name>[^,\n]{1,64}),"
    r"pid=(?P<pid>\d{1,10})"
)
_OOM_INVOKED = re.compile(r"invoked oom-killer: gfp_mask=|systemd-oomd\S{0,20} Killed ")

_DRIVER = (
    r"(?:mlx[45]_\w{2,8}|bnxt_\w{2,4}|ixgbe\w{0,2}|i40e|ice|igb|be2net|efa|ena|hfi1|ionic|irdma|qede"
    r"|cxgb4|ib_\w{2,12}|rdma\w{0,8})"
)
_INTERFACE = r"(?:bond|team|ib|eth|en|mlx5_|roce|rdma|hsn|p\d)[\w.-]{0,30}"
_LINK = re.compile(
    rf"{_DRIVER} (?P<pci>{_PCI})(?:[: ]+(?P<name>{_INTERFACE}))?(?: \([^)]{{1,60}}\))?:? "
    r"(?:NIC )?[Ll]ink (?:is )?(?P<state>[Dd]own|[Uu]p)\b"
    rf"|(?:^|[\s\]])(?P<name2>{_INTERFACE}): (?:NIC |[Pp]ort )?[Ll]ink (?:is |status )?"
    r"(?:definitely )?(?P<state2>[Dd]own|[Uu]p)\b"
    r"(?: for (?:active )?interface (?P<slave>[\w.-]{1,30}))?"
    rf"|ADDRCONF\(NETDEV_\w{{2,6}}\): (?P<name3>{_INTERFACE}): link "
    r"(?P<state3>becomes ready|is not ready)"
    rf"|(?P<pci4>{_PCI})(?:[: ]+{_INTERFACE})?: Port module event: module \d{{1,3}}, "
    r"Cable (?P<state4>unplugged)"
)
_UP = frozenset({"up", "becomes ready"})
_CARD_FATAL = re.compile(
    rf"(?:mlx[45]_\w{{2,8}}|bnxt_\w{{2,4}}|ice|efa|hfi1) (?P<pci>{_PCI}).{{0,80}}?"
    r"(?:[Ff]atal error|health compromised|[Ff]irmware fatal|FW fatal|fatal device error"
    r"|assert_var|pci_err_detected|Health issue observed|device is in error state"
    r"|PCI channel (?:disabled|offline))"
)
_CARD_ERRORS = re.compile(
    rf"(?:mlx[45]_\w{{2,8}}|bnxt_\w{{2,4}}) (?P<pci>{_PCI}).{{0,80}}?(?:Port module event\[error\]"
    r"|tx timeout|TX timeout|Cable error)"
)
_AER = re.compile(
    rf"(?P<device>{_PCI}): (?:AER: |PCIe Bus Error: ){{0,2}}.{{0,60}}?"
    r"(?:Uncorrect(?:ed|able) \(Fatal\)|Surprise Down Error|has no AER-aware driver)"
    rf"|AER: Uncorrected \(Fatal\) error received: (?:id=\S{{1,12}}|(?P<device2>{_PCI}))"
)
_HARDWARE = re.compile(
    r"\[Hardware Error\]:.{0,60}(?:severity: fatal|[Uu]ncorrected|Uncorrectable|UE\b)"
    r"|EDAC \S{1,20}: \d{1,6} UE\b|mce: .{0,60}(?:Machine [Cc]heck [Ee]xception|Uncorrected)"
    r"|Kernel panic - not syncing|Machine check: Processor context corrupt"
    r"|Memory failure: 0x[0-9a-f]{1,16}:"
)
_MOST_EVENTS = 4096


class KernelReader:
    """The lines of one kernel log, or of one that stands inside another."""

    words: tuple[bytes, ...] = (
        b"Xid",
        b"NVRM:",
        b"ut of memory: Kill",
        b"Killed process",
        b"oom-kill",
        b"systemd-oomd",
        b"ink ",
        b"link:",
        b"AER",
        b"PCIe Bus",
        b"Surprise Down",
        b"mlx",
        b"bnxt_",
        b"Hardware Error",
        b"EDAC",
        b"mce:",
        b"Kernel panic",
        b"achine check",
        b"Memory failure",
        b"Port module",
        b"atal error",
    )

    def __init__(self) -> None:
        self._card: tuple[str, Where, list[str]] | None = None
        self._oom_pids: set[int] = set()
        self._told = 0

    @property
    def open(self) -> bool:
        return self._card is not None

    _texts = texts(words)

    def see(self, message: Message) -> Iterable[Event]:
        text = message.text
        if self._card is None and not any(word in text for word in self._texts):
            return
        for event in self._see(text, message.at):
            if self._told >= _MOST_EVENTS:
                return
            self._told += 1
            yield event

    def _see(self, text: str, at: Where) -> Iterator[Event]:
        xid = _xid(text, at)
        if xid is not None:
            self._card = None
            yield xid
            return
        if self._card is not None:
            yield from self._lost_card(text)
        if (card := find_card(text)) is not None:
            self._card = (card["bus"].lower(), at, [])
            yield from self._lost_card(text)
        yield from self._oom(text, at)
        for read in (_link, _pcie, _hardware):
            event = read(text, at)
            if event is not None:
                yield event
                return

    def _lost_card(self, text: str) -> Iterator[Event]:
        if self._card is None:
            return
        bus_id, at, parts = self._card
        parts.append(text.partition("NVRM:")[2] or text)
        told = " ".join(" ".join(parts).split())
        if FELL in told:
            self._card = None
            yield Xid(at=at, code=_OFF_THE_BUS, bus_id=bus_id, text=told[:400])
        elif len(parts) >= MESSAGE_LINES:
            self._card = None

    def _oom(self, text: str, at: Where) -> Iterator[Event]:
        if (found := _OOM_KILL.search(text)) is not None:
            pid, name = found["pid"] or found["pid2"], found["name"] or found["name2"]
            cgroup = (found["cgroup"] or "").lower().startswith("memory")
        elif (found := _OOM_LINE.search(text)) is not None:
            pid, name = found["pid"], found["name"]
            cgroup = "MEMCG" in found["constraint"]
        else:
            if _OOM_INVOKED.search(text):
                yield KernelOom(at=at)
            return
        # The kernel names its victim up to three times in a row.
        if int(pid) not in self._oom_pids:
            self._oom_pids.add(int(pid))
            yield KernelOom(at=at, pid=int(pid), name=name, cgroup=cgroup)

    def finish(self) -> Iterable[Event]:
        return ()


def _xid(text: str, at: Where) -> Xid | None:
    found = driver_event(text)
    if found is None and (hidden := _NO_BUS.search(text)) is not None:
        said = hidden["text"] or ""
        caused = _CAUSED.search(said)
        cause = int(caused[1]) if caused else None
        return Xid(at=at, code=int(hidden["code"]), text=said, caused_by=cause)
    if found is None or found.code is None:
        return None
    caused = _CAUSED.search(found.text)
    severity = found.severity
    return Xid(
        at=at,
        code=found.code,
        bus_id=found.bus_id,
        pid=found.pid,
        text=found.text,
        switch=found.kind is KernelKind.SXID,
        fatal=None if severity is None else "Non" not in severity,
        caused_by=int(caused[1]) if caused else None,
    )


def _link(text: str, at: Where) -> KernelLink | None:
    if (fatal := _CARD_FATAL.search(text)) is not None:
        return KernelLink(at=at, kind=LinkTrouble.FATAL, device=fatal["pci"])
    if (errors := _CARD_ERRORS.search(text)) is not None:
        return KernelLink(at=at, kind=LinkTrouble.ERRORS, device=errors["pci"])
    found = _LINK.search(text)
    if found is None or found["state3"] == "is not ready":
        return None
    state = found["state"] or found["state2"] or found["state3"] or found["state4"]
    device = found["name"] or found["slave"] or found["name2"] or found["name3"]
    kind = LinkTrouble.UP if state.lower() in _UP else LinkTrouble.DOWN
    return KernelLink(at=at, kind=kind, device=device or found["pci"] or found["pci4"])


def _pcie(text: str, at: Where) -> PcieFatal | None:
    found = _AER.search(text)
    if found is None:
        return None
    return PcieFatal(at=at, device=found["device"] or found["device2"])


def _hardware(text: str, at: Where) -> HostHardware | None:
    found = _HARDWARE.search(text)
    return HostHardware(at=at, text=text.strip()[:400]) if found else None
