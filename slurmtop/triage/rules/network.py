"""InfiniBand and RoCE: adapters, ports, transport errors, memory, sizes that differ."""

import re
from collections.abc import Iterable, Iterator, Sequence

from slurmtop.model.events.nccl import NcclSetting, NcclWarn, Warn
from slurmtop.model.events.slurm import Ending
from slurmtop.model.events.system import KernelLink, LinkTrouble, PcieFatal
from slurmtop.model.events.torch import NcclError, WatchdogTimeout
from slurmtop.model.trace import Clock, Event, Where
from slurmtop.model.verdict import NextStep, State
from slurmtop.triage.finding import Finding, Shown, Weight
from slurmtop.triage.moving import moved_on
from slurmtop.triage.picture import Picture
from slurmtop.triage.rules import lines
from slurmtop.triage.rules.pairs import at_common_end, between, link_of

#: ibv_wc_status: what a failed work request says.
_FLUSHED = 5
_STATUS = {
    1: "env-mismatch",
    2: "net-local-qp-error",
    4: "net-gdr-config",
    8: "net-local-qp-error",
    9: "env-mismatch",
    10: "net-gdr-config",
    12: "net-timeout",
    13: "net-timeout",
}
#: What the adapter told of itself or of its port, the more special words first.
_EVENTS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(words, re.IGNORECASE), cls)
    for words, cls in (
        (r"gid[ _](table|change)", "net-gid-change"),
        (r"work.queue|access.violation|\bQP\b|\bWQ\b|path.migration.failed", "net-local-qp-error"),
        (r"port.err|port.down|link.down|lid.change", "net-link-fault"),
        (r"catastrophic|fatal|\bCQ\b|\bSRQ\b|device", "net-hca-fault"),
    )
)
_EVENT_WORDS = {
    "net-gid-change": ("its GID table changed", "the adapter's address table changed"),
    "net-local-qp-error": ("its queue pair failed", "the adapter refused its own memory"),
    "net-link-fault": ("its port went down", "a port of this host's adapter failed"),
    "net-hca-fault": ("its adapter failed", "the adapter itself reported a fatal fault"),
}
_SUMMARIES = {
    "net-gid-change": "the address table of a RoCE adapter changed while the job ran{}",
    "net-local-qp-error": "an adapter reported a fault of its own queue pair{}",
    "net-link-fault": "a network port went down{}",
    "net-hca-fault": "a network adapter failed{}",
}
_NET = frozenset({"net-timeout", "net-gdr-config", "net-hca-fault", "net-link-fault"})
_NO_MEMORY = re.compile(r"cannot allocate memory|\bENOMEM\b|RC: -12\b|errno 12\b", re.IGNORECASE)
_REG = re.compile(r"reg_?(dmabuf_)?mr|memory reg|register", re.IGNORECASE)
_QUEUES = re.compile(r"ibv_create_|ibv_alloc_pd|ibv_reg_", re.IGNORECASE)
_HUGE = 2**31
#: Until then a host is booting, and its links come up one after the other.
_BOOTING_S = 600.0
#: A link that failed so long before or after the transport has nothing to do with it; the
#: watchdog may report it half an hour late.
_APART_S = 3600.0


def find(picture: Picture) -> Iterable[Finding]:
    events = [one for one in picture.of(NcclWarn) if one.kind is Warn.IB_EVENT]
    completions = [one for one in picture.of(NcclWarn) if one.kind is Warn.IB_COMPLETION]
    yield from _adapters(picture, events, completions)
    yield from _completions(picture, completions)
    yield from _calls(picture)
    yield from _sizes(picture)


def event_class(text: str) -> str | None:
    """The class of an async event of the verbs library; None for one that harms nobody."""
    return next((cls for words, cls in _EVENTS if words.search(text)), None)


def _adapters(
    picture: Picture, events: Sequence[NcclWarn], completions: Sequence[NcclWarn]
) -> Iterator[Finding]:
    """A host's own word on its adapter or port, by NCCL or by the kernel."""
    by_class: dict[str, list[Event]] = {}
    for one in events:
        cls = event_class(one.error or one.text)
        if cls is not None:
            by_class.setdefault(cls, []).append(one)
    for link in picture.of(KernelLink):
        if link.kind is LinkTrouble.FATAL:
            by_class.setdefault("net-hca-fault", []).append(link)
        elif link.kind is LinkTrouble.DOWN and _of_this_run(picture, link):
            by_class.setdefault("net-link-fault", []).append(link)
    for fatal in picture.of(PcieFatal):
        if "mlx" in fatal.at.text.lower():
            by_class.setdefault("net-hca-fault", []).append(fatal)
    for cls, told in by_class.items():
        yield _adapter_finding(picture, cls, lines.in_time(picture, told), completions)


def _of_this_run(picture: Picture, link: KernelLink) -> bool:
    """Not a link that came up late while its host booted, or that failed at another time."""
    stamp = link.at.stamp
    if stamp is not None and stamp.clock is Clock.BOOT and stamp.seconds < _BOOTING_S:
        return False
    moment = picture.moment(link.at)
    broke = [one for one in map(picture.moment, _broken(picture)) if one is not None]
    if moment is not None and broke and abs(min(broke) - moment) > _APART_S:
        return False
    return not moved_on(picture, link.at)


def _adapter_finding(
    picture: Picture, cls: str, told: Sequence[Event], completions: Sequence[NcclWarn]
) -> Finding:
    reason, says = _EVENT_WORDS[cls]
    hosts = {host for one in told if (host := lines.host_of(picture, one.at)) is not None}
    # A log of one host holds only its own events; of many hosts at once a switch is likelier.
    culprits = lines.failing(picture, told, reason) if len(hosts) <= 3 else ()
    place = f" on {next(iter(hosts))}" if len(hosts) == 1 else ""
    kernel_only = all(isinstance(one, KernelLink | PcieFatal) for one in told)
    survived = not completions and moved_on(picture, told[-1].at)
    weight = Weight.OUTRIGHT if culprits else Weight.CAUSE
    if survived or cls == "net-gid-change":
        weight = Weight.NOTE if survived else Weight.CAUSE
    elif kernel_only and cls == "net-link-fault" and not _broken(picture):
        # The kernel tells of every port, also of those that the job does not use.
        weight = Weight.NOTE if lines.Began(picture) else Weight.PATTERN
    elif kernel_only and cls == "net-link-fault" and _came_back(picture, told):
        weight = Weight.CAUSE
    host = next((one.host for one in culprits if one.host), None)
    return Finding(
        cls=cls,
        weight=weight,
        summary=_SUMMARIES[cls].format(place),
        state=None if weight is Weight.NOTE else State.FAILED,
        at=told[0].at,
        culprits=culprits,
        shown=(
            *lines.lines(picture, told, says, "kernel" if kernel_only else "log"),
            *lines.lines(picture, completions, "a peer or this host lost its transport", limit=2),
        ),
        next=_next(cls, host),
        explains=lines.AFTER_A_STALL | (_NET - {cls}),
    )


def _came_back(picture: Picture, told: Sequence[Event]) -> bool:
    ups = [one for one in picture.of(KernelLink) if one.kind is LinkTrouble.UP]
    return any(picture.before(down.at, up.at) is True for down in told for up in ups)


def _broken(picture: Picture) -> list[Where]:
    """The lines that tell that a transport or a collective failed."""
    kinds = (Warn.IB_COMPLETION, Warn.IB_CALL, Warn.CLOSED, Warn.RESET)
    warns = [one.at for one in picture.of(NcclWarn) if one.kind in kinds]
    return [*warns, *(one.at for one in picture.of(NcclError, WatchdogTimeout))]


def _completions(picture: Picture, completions: Sequence[NcclWarn]) -> Iterator[Finding]:
    """Failed work requests by their status; a flush only follows from another one."""
    by_class: dict[str | None, list[NcclWarn]] = {}
    for one in completions:
        if one.status is None and one.call is not None:
            # libfabric tells the provider's words only: the other end did not answer.
            by_class.setdefault("net-timeout", []).append(one)
        elif one.status != _FLUSHED and one.status is not None:
            by_class.setdefault(_STATUS.get(one.status), []).append(one)
    flushed = [one for one in completions if one.status == _FLUSHED]
    for cls, warns in by_class.items():
        yield _completion_finding(picture, cls, warns, flushed)
    if not by_class and completions:
        yield Finding(
            cls=None,
            weight=Weight.SYMPTOM,
            summary="the transport had already failed when these lines were written; "
            "the first error is not among them",
            state=State.FAILED,
            at=completions[0].at,
            culprits=link_of(picture, completions),
            shown=lines.lines(picture, completions, "only a flush: the connection was lost before"),
        )


_COMPLETION_SUMMARY = {
    "net-timeout": "the network gave up retrying{}; where the packets were lost is not known",
    "net-gdr-config": "the adapter was denied access to GPU memory (GPU Direct RDMA){}",
    "net-local-qp-error": "an adapter reported a fault of its own queue pair{}",
    "env-mismatch": "the two ends of a transfer did not agree about its size{}",
    None: "a network transfer failed{}",
}


def _some_hosts_only(picture: Picture, warns: Sequence[NcclWarn]) -> bool:
    """Is a host seen that does not report it? A setting is mostly the same on all, and one host
    alone does not show whether it is. What a line that is cut off would have said is open."""
    cut = {s.name: s.last.order for s in picture.traces.sources if s.cut and s.last is not None}
    whole = (e.at for e in picture.traces.events if e.at.order < cut.get(e.at.source, 1 << 62))
    seen = {lines.host_of(picture, at) for at in whole} - {None}
    return bool(seen - {lines.host_of(picture, warn.at) for warn in warns})


def _completion_finding(
    picture: Picture, cls: str | None, warns: Sequence[NcclWarn], flushed: Sequence[NcclWarn]
) -> Finding:
    first = warns[0]
    if cls == "net-timeout":
        named = at_common_end(picture, warns, "every host that lost its transport talked to it")
        culprits = named or link_of(picture, warns)
        weight = Weight.CAUSE if named else Weight.PATTERN
        if lines.by_slurm(picture, first.at, Ending.NODE_FAILURE):
            weight = Weight.NOTE
    elif cls in ("net-gdr-config", "net-local-qp-error"):
        # A local error is one of the host that reports it; the peer only stands in the line.
        local = first.status in (2, 4, 8)
        local = local and (cls == "net-local-qp-error" or _some_hosts_only(picture, warns))
        culprits = lines.failing(picture, warns, "its adapter failed locally") if local else ()
        weight = Weight.CAUSE if local else Weight.PATTERN
    else:
        culprits, weight = link_of(picture, warns), Weight.PATTERN if cls else Weight.SYMPTOM
    says = "the transport failed" + ("" if first.status is None else f", status {first.status}")
    host = next((one.host for one in culprits if one.host), None)
    return Finding(
        cls=cls,
        weight=weight,
        summary=_COMPLETION_SUMMARY[cls].format(between(picture, warns)),
        state=State.FAILED,
        at=first.at,
        culprits=culprits,
        shown=(
            *_distinct(picture, warns, says),
            *lines.lines(picture, flushed, "a flush that follows from it", limit=1),
        ),
        next=_next(cls, host),
        explains=lines.AFTER_A_STALL | ({"net-timeout"} if cls == "net-gdr-config" else set()),
    )


def _distinct(picture: Picture, warns: Sequence[NcclWarn], says: str) -> tuple[Shown, ...]:
    """A line for each pair of hosts first, then others, at most five."""
    kept: dict[object, Shown] = {}
    for one in warns:
        kept.setdefault((lines.host_of(picture, one.at), one.peer), Shown(one.at, says))
    for one in warns:
        kept.setdefault((one.at.source, one.at.order), Shown(one.at, says))
    unique = {(s.at.source, s.at.order): s for s in kept.values()}
    return tuple(unique.values())[:5]


def _calls(picture: Picture) -> Iterator[Finding]:
    """Calls to the verbs library that failed, by which call and how."""
    by_class: dict[str, list[NcclWarn]] = {}
    for one in picture.of(NcclWarn):
        if one.kind in (Warn.IB_CALL, Warn.IB_MEMORY):
            by_class.setdefault(_call_class(one), []).append(one)
    for cls, warns in by_class.items():
        # Which side is wrong a refused route does not tell; the other refusals are local.
        local = cls in ("net-memory-registration", "net-gdr-config")
        weight = Weight.PATTERN if cls == "net-hca-fault" else Weight.CAUSE
        yield Finding(
            cls=cls,
            weight=weight,
            summary=_CALL_SUMMARY[cls],
            state=State.FAILED,
            at=warns[0].at,
            culprits=lines.failing(picture, warns, "its adapter was refused") if local else (),
            shown=lines.lines(picture, warns, "the adapter refused this call"),
            explains=lines.AFTER_A_DEATH,
        )


_CALL_SUMMARY = {
    "net-path-unreachable": "two adapters that were chosen for each other have no route",
    "net-memory-registration": "the adapter was refused the memory that it wanted to pin",
    "net-gdr-config": "the adapter could not register GPU memory (GPU Direct RDMA)",
    "net-hca-fault": "a call to the network adapter failed",
}


def _call_class(warn: NcclWarn) -> str:
    text = f"{warn.call or ''} {warn.text} {warn.error or ''}"
    if warn.call == "libfabric":
        return "net-memory-registration"
    if "modify_qp" in text or "create_ah" in text:
        return "net-path-unreachable"
    if "dmabuf" in text:
        return "net-gdr-config"
    if _REG.search(text):
        gpu = re.search(r"bad address|\bEFAULT\b|errno 14\b|invalid argument", text, re.IGNORECASE)
        return "net-gdr-config" if gpu else "net-memory-registration"
    if warn.kind is Warn.IB_MEMORY or (_QUEUES.search(text) and _NO_MEMORY.search(text)):
        return "net-memory-registration"
    return "net-hca-fault"


def _sizes(picture: Picture) -> Iterator[Finding]:
    """The two ends of one transfer differ in bytes: settings, calls or an adapter out of order."""
    warns = [
        one
        for one in picture.of(NcclWarn)
        if one.kind is Warn.SIZE_MISMATCH and one.call != "bootstrap"
    ]
    if not warns:
        return
    ordering = [
        one
        for one in picture.of(NcclSetting)
        if one.name == "NCCL_IB_PCI_RELAXED_ORDERING" and one.value.rstrip(".") == "1"
    ]
    adapters = [one for one in warns if "truncated" not in one.text]
    torn = [one for one in warns if _torn(one)] or (adapters if ordering else [])
    cls = "net-nic-ordering" if torn else "env-mismatch"
    yield Finding(
        cls=cls,
        weight=Weight.PATTERN,
        summary=(
            "a message came torn or out of order: the adapter or PCI ordering is suspected"
            if torn
            else "the two ends of one transfer differ in size: settings or calls are not the same"
        )
        + between(picture, warns),
        state=State.FAILED,
        at=(torn or warns)[0].at,
        culprits=link_of(picture, warns),
        shown=(
            *lines.lines(picture, torn or warns, "the two ends differ in size"),
            *lines.lines(picture, ordering if torn else (), "ordering was set here", limit=2),
        ),
        explains=lines.AFTER_A_STALL,
    )


def _torn(warn: NcclWarn) -> bool:
    """What no program can have asked for: NCCL checks for more to send than there is room, and
    for room without an address. Enough room and still an error is such a torn note of the peer.
    """
    if "incorrect receive info" in (warn.error or warn.text):
        return True
    if any(size <= 0 or size >= _HUGE for size in warn.sizes):
        return True
    if "truncated" in warn.text or len(warn.sizes) < 2:
        return False
    return warn.sizes[0] <= warn.sizes[1]


def _next(cls: str | None, host: str | None) -> tuple[NextStep, ...]:
    if cls is None:
        return ()
    if host is None or cls == "net-gdr-config":
        return ()
    return lines.on_host(host, "ports", "ibstat", "state and errors of its adapters' ports")
