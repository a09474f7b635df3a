"""GPUs: out of memory, hardware faults, NVLink, fabric manager, the driver, wrong results."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from slurmtop.model.events.nccl import Channel, NcclWarn, Warn
from slurmtop.model.events.program import Step
from slurmtop.model.events.reports import BenchRow
from slurmtop.model.events.system import PcieFatal, Xid
from slurmtop.model.events.torch import CudaError, CudaTrouble, NcclError, WatchdogTimeout
from slurmtop.model.trace import Event, Where
from slurmtop.model.verdict import Culprit, NextStep, State
from slurmtop.triage.failures import failures
from slurmtop.triage.finding import Finding, Shown, Weight
from slurmtop.triage.moving import moved_on
from slurmtop.triage.picture import Picture
from slurmtop.triage.rules import lines
from slurmtop.triage.waiting import ranks_words
from slurmtop.triage.xid import XidClass, xid_meaning

_LINK_CODES = frozenset({74, 137, *range(144, 151), 155, 166, 170})
#: A row of memory was put out of use: other codes beside it tell whether a job lost by it.
_REMAPPED = 63
#: Hardware codes that a job outlives.
_MILD = frozenset({92, 93, 121, 160, 161, 168})
#: Codes of the driver whose GPU is lost to the job.
_LOST = frozenset({109, 119, 120, 143})
#: Codes that only say that a channel was closed or what to do next.
_FOLLOWS = frozenset({43, 45, 154})
_FABRIC = re.compile(r"nvls|multicast|fabric|system not yet initialized|\b802\b", re.IGNORECASE)
_NVLINK = re.compile(r"nvlink", re.IGNORECASE)
_ECC = re.compile(r"\becc\b", re.IGNORECASE)
_HARDWARE = re.compile(r"hardware stack error|fallen off|gpu is lost", re.IGNORECASE)
#: What CUDA says of a kernel of the program; NCCL is only the next who asks.
_OF_A_KERNEL = re.compile(
    r"illegal (memory access|instruction)|device-side assert|misaligned|unspecified launch|"
    r"launch failure|stack error|invalid program counter",
    re.IGNORECASE,
)


def find(picture: Picture) -> Iterable[Finding]:
    yield from _cuda(picture)
    yield from _xids(picture)
    yield from _off_the_bus(picture)
    yield from _wrong_results(picture)
    yield from _peer_to_peer(picture)


def _cuda(picture: Picture) -> Iterator[Finding]:
    """Errors that CUDA returned, to the program or to NCCL, by what they mean."""
    by_class: dict[str, list[Event]] = {}
    for error in picture.of(CudaError):
        if (cls := _class_of_cuda(error)) is not None:
            by_class.setdefault(cls, []).append(error)
    for warn in picture.of(NcclWarn):
        if (cls := _class_of_warn(warn)) is not None:
            by_class.setdefault(cls, []).append(warn)
    for cls, events in by_class.items():
        yield _cuda_finding(picture, cls, lines.in_time(picture, events))
    if "gpu-oom" not in by_class:
        yield from _caught_memory(picture)
    if not by_class:
        yield from _unnamed_cuda(picture)


def _class_of_cuda(error: CudaError) -> str | None:
    if error.caught:
        return None
    if error.kind is CudaTrouble.DRIVER:
        return "fabric-manager" if _FABRIC.search(error.text) else "cuda-driver-error"
    if error.kind is CudaTrouble.OTHER and _FABRIC.search(error.text):
        return "fabric-manager"
    return {
        CudaTrouble.OUT_OF_MEMORY: "gpu-oom",
        CudaTrouble.ECC: "gpu-hw-fault",
        CudaTrouble.HARDWARE: "gpu-hw-fault",
        CudaTrouble.NVLINK: "nvlink-fault",
    }.get(error.kind)


def _class_of_warn(warn: NcclWarn) -> str | None:
    if warn.kind is Warn.OUT_OF_MEMORY:
        return "gpu-oom"
    if warn.kind is Warn.NVLS:
        return "fabric-manager"
    if warn.kind is Warn.P2P:
        # NCCL's own words: GPUs joined by NVLink have to reach each other; likely hardware.
        return "nvlink-fault"
    if warn.kind is not Warn.CUDA:
        return None
    text = f"{warn.error or ''} {warn.text}"
    for pattern, cls in (
        (_FABRIC, "fabric-manager"),
        (_NVLINK, "nvlink-fault"),
        (_ECC, "gpu-hw-fault"),
        (_HARDWARE, "gpu-hw-fault"),
    ):
        if pattern.search(text):
            return cls
    # The file of the warning stands in its raw line only: transport/nvls.cc.
    if "nvls.cc" in warn.at.text:
        return "fabric-manager"
    return None if _OF_A_KERNEL.search(text) else "cuda-driver-error"


_CUDA_WORDS = {
    "gpu-oom": ("ran out of GPU memory", "a GPU had no memory left"),
    "gpu-hw-fault": ("its GPU failed in hardware", "a GPU reported a hardware fault"),
    "nvlink-fault": ("its NVLink failed", "an NVLink reported an uncorrectable error"),
    "fabric-manager": (
        "NVLink multicast or the fabric is not ready",
        "the fabric of NVSwitches was not in a state to be used",
    ),
    "cuda-driver-error": (
        "a CUDA call was refused",
        "CUDA refused a call that says nothing of the program",
    ),
}


def _cuda_finding(picture: Picture, cls: str, events: Sequence[Event]) -> Finding:
    reason, says = _CUDA_WORDS[cls]
    own = [one for one in events if not (isinstance(one, CudaError) and one.passed_on)]
    culprits = lines.failing(picture, own, reason) if own else ()
    first = events[0]
    where = _place(culprits) or _on_ranks(picture, own)
    weight = Weight.CAUSE
    if cls != "cuda-driver-error" and culprits:
        weight = Weight.OUTRIGHT
    gpu = first.gpu if isinstance(first, CudaError) else None
    if gpu is not None and len(culprits) == 1:
        culprits = (replace(culprits[0], gpu=str(gpu)),)
    note = ""
    if any(isinstance(one, CudaError) and one.other_process for one in events):
        note = "; another process holds part of that GPU"
    summary = {
        "gpu-oom": f"a GPU ran out of memory{where}{note}",
        "gpu-hw-fault": f"a GPU failed in hardware{where}",
        "nvlink-fault": f"an NVLink failed{where}",
        "fabric-manager": f"NVLink multicast or the NVSwitch fabric is not ready{where}",
        "cuda-driver-error": f"a CUDA call inside NCCL or at start failed in the driver{where}",
    }[cls]
    explains = lines.AFTER_A_DEATH | {"cuda-driver-error"} - {cls}
    return Finding(
        cls=cls,
        weight=weight,
        summary=summary,
        state=State.FAILED,
        at=first.at,
        culprits=culprits,
        shown=lines.lines(picture, events, says),
        next=_next(cls, culprits),
        explains=explains,
    )


def _caught_memory(picture: Picture) -> Iterator[Finding]:
    """Memory ran out, the program says that it skips or tries again, and then nothing moved."""
    caught = [
        one for one in picture.of(CudaError) if one.kind is CudaTrouble.OUT_OF_MEMORY and one.caught
    ]
    if caught and failures(picture) and not moved_on(picture, caught[-1].at):
        yield Finding(
            cls="gpu-oom",
            weight=Weight.SYMPTOM,
            summary="a GPU ran out of memory; the program caught that, and is not seen to go on",
            at=caught[0].at,
            shown=lines.lines(picture, caught, "out of GPU memory, caught by the program")
            + tuple(Shown(one.at, "out of GPU memory, caught again") for one in caught[1:3]),
        )


def _unnamed_cuda(picture: Picture) -> Iterator[Finding]:
    """NCCL says that CUDA failed, and the line that would say how is not there."""
    errors = [one for one in picture.of(NcclError) if one.result == "ncclUnhandledCudaError"]
    if errors:
        yield Finding(
            cls="cuda-driver-error",
            weight=Weight.SYMPTOM,
            summary="a CUDA call inside NCCL failed; the warning that says which one is not here",
            state=State.FAILED,
            at=errors[0].at,
            shown=lines.lines(picture, errors, "NCCL reports a failed CUDA call"),
        )


def _place(culprits: Sequence[Culprit]) -> str:
    if not culprits:
        return ""
    first = culprits[0]
    if first.rank is not None and first.host is not None:
        return f" on rank {first.rank} ({first.host})"
    return f" on rank {first.rank}" if first.host is None else f" on {first.host}"


def _on_ranks(picture: Picture, own: Sequence[Event]) -> str:
    """Whose lines they are, where several ranks say the same and none is named for it."""
    ranks = {rank for one in own if (rank := picture.rank_of(one.at)) is not None}
    return f" on {ranks_words(ranks)}" if ranks else ""


def _next(cls: str, culprits: Sequence[Culprit]) -> tuple[NextStep, ...]:
    host = next((one.host for one in culprits if one.host), None)
    if host is None:
        return ()
    commands = {
        "gpu-oom": ("processes on its GPUs", "nvidia-smi", "did another process hold memory?"),
        "gpu-hw-fault": ("memory errors", "nvidia-smi -q -d ECC", "which GPU counts errors"),
        "nvlink-fault": ("link errors", "nvidia-smi nvlink -e", "which link counts errors"),
        "fabric-manager": (
            "fabric manager",
            "systemctl status nvidia-fabricmanager",
            "it has to run, in the driver's version",
        ),
        "cuda-driver-error": ("driver", "nvidia-smi", "driver and CUDA version of that node"),
    }
    return lines.on_host(host, *commands[cls])


def _xids(picture: Picture) -> Iterator[Finding]:
    """The driver's own messages: hardware, links, and what merely follows."""
    links: list[Event] = []
    faults: list[Event] = []
    mild: list[Event] = []
    other: list[Event] = []
    for xid in picture.of(Xid):
        cause = xid.code if xid.caused_by is None else xid.caused_by
        if xid.switch:
            (mild if xid.fatal is False else links).append(xid)
        elif cause in _LINK_CODES:
            links.append(xid)
        elif cause in _MILD or cause == _REMAPPED:
            mild.append(xid)
        elif cause in _LOST or xid_meaning(cause).cls is XidClass.HARDWARE:
            faults.append(xid)
        elif cause not in _FOLLOWS:
            other.append(xid)
    if links:
        yield _xid_finding(picture, "nvlink-fault", links)
    if faults:
        yield _xid_finding(picture, "gpu-hw-fault", faults)
    if mild and not faults and not links:
        found = _xid_finding(picture, "gpu-hw-fault", mild)
        remapped = any(isinstance(one, Xid) and one.code == _REMAPPED for one in mild)
        weight = Weight.PATTERN if remapped else Weight.NOTE
        yield replace(found, weight=weight, state=None, explains=frozenset())
    if other and not faults and not links:
        yield _program_fault(picture, other)


def _xid_finding(picture: Picture, cls: str, events: Sequence[Event]) -> Finding:
    told = lines.in_time(picture, events)
    first = told[0]
    assert isinstance(first, Xid)
    code = first.code if first.caused_by is None else first.caused_by
    says = f"NVSwitch error {code}" if first.switch else f"Xid {code}: {xid_meaning(code).says}"
    by_gpu = _by_gpu(picture, told, says)
    where = _place([one for one in by_gpu if one.host])
    # A fault that names an unlucky GPU first: a link has two ends, and a switch all of them.
    several = len({one.gpu for one in by_gpu}) > 1
    shown = _telling(picture, told, says)
    if cls == "gpu-hw-fault":
        shown += lines.lines(picture, picture.of(PcieFatal), "the PCI bus lost it", "kernel", 2)
    summary = f"{says}{where}" + (", on several GPUs" if several else "")
    return Finding(
        cls=cls,
        weight=Weight.OUTRIGHT,
        summary=summary,
        state=State.FAILED,
        at=first.at,
        culprits=by_gpu,
        shown=shown,
        next=_next(cls, by_gpu),
        explains=lines.AFTER_A_DEATH | {"cuda-driver-error"},
    )


def _off_the_bus(picture: Picture) -> Iterator[Finding]:
    """The bus lost a GPU, by the kernel alone: the driver's own message is not there."""
    lost = [one for one in picture.of(PcieFatal) if "nvidia" in one.at.text.lower()]
    if lost and not picture.of(Xid):
        culprits = lines.failing(picture, lost, "the PCI bus lost its GPU")
        yield Finding(
            cls="gpu-hw-fault",
            weight=Weight.CAUSE,
            summary=f"the PCI bus lost a GPU{_place(culprits)}",
            state=State.FAILED,
            at=lost[0].at,
            culprits=culprits,
            shown=lines.lines(picture, lost, "a fatal error of the bus", "kernel"),
            next=_next("gpu-hw-fault", culprits),
            explains=lines.AFTER_A_DEATH | {"cuda-driver-error"},
        )


def _telling(picture: Picture, told: Sequence[Event], says: str) -> tuple[Shown, ...]:
    """One line a code and cause, then one a GPU."""
    kept: dict[object, Event] = {}
    for one in told:
        if isinstance(one, Xid):
            kept.setdefault((one.code, one.caused_by), one)
    for one in told:
        if isinstance(one, Xid):
            kept.setdefault((one.bus_id, lines.host_of(picture, one.at)), one)
    chosen = list({(e.at.source, e.at.order): e for e in kept.values()}.values())
    return tuple(Shown(event.at, says, "kernel") for event in chosen[:5])


def _by_gpu(picture: Picture, told: Sequence[Event], reason: str) -> tuple[Culprit, ...]:
    """The GPUs by host and bus id; nobody's host where several hosts show the same."""
    hosts = {lines.host_of(picture, one.at) for one in told}
    if len(hosts - {None}) > 3:
        return ()
    places = dict.fromkeys(
        (lines.host_of(picture, one.at), one.bus_id) for one in told if isinstance(one, Xid)
    )
    return tuple(Culprit(host=host, gpu=bus, reason=reason) for host, bus in places if host or bus)[
        :8
    ]


def _program_fault(picture: Picture, events: Sequence[Event]) -> Finding:
    first = lines.in_time(picture, events)[0]
    assert isinstance(first, Xid)
    says = f"Xid {first.code}: {xid_meaning(first.code).says}"
    return Finding(
        cls=None,
        weight=Weight.SYMPTOM,
        summary=f"{says}; the program is looked at first",
        at=first.at,
        shown=_telling(picture, events, says),
    )


def _wrong_results(picture: Picture) -> Iterator[Finding]:
    bad = [
        one for one in picture.of(BenchRow) if one.wrong_rows > 0 or (one.out_of_bounds or 0) > 0
    ]
    if bad:
        wrong = sum(one.wrong_rows for one in bad)
        yield Finding(
            cls="data-corruption",
            weight=Weight.OUTRIGHT,
            summary=f"nothing hung, but results were wrong ({wrong or 'some'} rows of the test)",
            state=State.FAILED,
            at=bad[0].at,
            shown=lines.lines(picture, bad, "the check counted wrong values"),
        )


def _peer_to_peer(picture: Picture) -> Iterator[Finding]:
    """The first collective stuck on every rank of one host whose GPUs talk directly."""
    channels = picture.of(Channel)
    if not channels or any(not one.via.upper().startswith("P2P") for one in channels):
        return
    if len(lines.hosts_seen(picture)) > 1 or picture.of(Step):
        return
    stuck = picture.of(WatchdogTimeout)
    # Somebody who waits at a later operation, or is at work elsewhere, is another story.
    if not stuck or any(one.seq is None or one.seq > 1 for one in stuck):
        return
    waiting = {rank for one in stuck if (rank := picture.rank_of(one.at)) is not None}
    size = lines.largest_group(picture)
    if size is None or len(waiting) < size:
        return
    first: Where = stuck[0].at
    yield Finding(
        cls="p2p-hang",
        weight=Weight.PATTERN,
        summary="every rank is stuck in the very first collective between GPUs of one host",
        at=first,
        shown=(
            *lines.lines(picture, channels, "the GPUs talk directly to each other", limit=2),
            *lines.lines(picture, stuck, "the first collective never ended", limit=2),
        ),
        explains=frozenset({"first-collective-stuck", "watchdog-timeout-unattributed"}),
    )
