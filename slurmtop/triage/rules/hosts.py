"""The host: its memory, shared memory, file descriptors, and what it shows of its PCI tree."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from slurmtop.model.events.launch import ChildEnded, Crash, ElasticFailure, WorkersOutOfMemory
from slurmtop.model.events.nccl import CommInit, InitPhase, NcclChain, NcclWarn, Warn
from slurmtop.model.events.program import PyException
from slurmtop.model.events.slurm import OomKill, TaskExit
from slurmtop.model.events.system import HostHardware, KernelOom, Limit, LimitHit, MemoryUse
from slurmtop.model.events.torch import NcclError
from slurmtop.model.trace import Event, Where
from slurmtop.model.verdict import Culprit, NextStep, State
from slurmtop.triage.finding import Finding, Shown, Weight
from slurmtop.triage.picture import Picture
from slurmtop.triage.rules import lines

_SIGBUS = 7
#: A process that grows by less than this is not worth a word.
_CLIMB_BYTES = 8 * 2**30
_CLIMB_TIMES = 3.0
_CLIMB_LINES = 3
#: So many processes that end alike are no longer one that failed.
_NAMED = 4


def find(picture: Picture) -> Iterable[Finding]:
    yield from _out_of_memory(picture)
    yield from _memory_climb(picture)
    yield from _shared_memory(picture)
    yield from _files(picture)
    yield from _topology(picture)
    yield from _hardware(picture)


def _hits(picture: Picture, limit: Limit, *kinds: Warn) -> list[Event]:
    """Where a limit stopped something, leaving out what the program caught and survived."""
    survived = {(one.at.source, one.at.order) for one in picture.of(PyException) if one.swallowed}
    hits: list[Event] = [
        one
        for one in picture.of(LimitHit)
        if one.limit is limit and (one.at.source, one.at.order) not in survived
    ]
    hits += [one for one in picture.of(NcclWarn) if one.kind in kinds]
    return lines.in_time(picture, hits)


def _out_of_memory(picture: Picture) -> Iterator[Finding]:
    killed: list[Event] = [
        *(one for one in picture.of(TaskExit) if one.out_of_memory),
        *picture.of(OomKill),
        *picture.of(KernelOom),
        *picture.of(WorkersOutOfMemory),
    ]
    hits = _hits(picture, Limit.MEMORY, Warn.HOST_MEMORY)
    if not killed and not hits:
        return
    # SIGKILL has other senders: a worker that got it alone proves no lack of memory.
    sure = [one for one in hits if not (isinstance(one, LimitHit) and "by signal" in one.text)]
    culprits = _killed(picture, killed) or lines.failing(picture, sure, "no host memory left")
    told = lines.in_time(picture, killed) or hits
    place = next((f" on {one.host}" for one in culprits if one.host), "")
    shown = (
        *_first_each(picture, lines.in_time(picture, killed)),
        *lines.lines(picture, hits, "no host memory left"),
    )
    yield Finding(
        cls="host-oom",
        weight=Weight.OUTRIGHT if culprits or killed else Weight.CAUSE,
        summary=f"the memory of the host or the job's limit was used up{place}"
        + (" and a process was killed" if killed else "")
        if killed or sure
        else "a data loader's worker got SIGKILL, which is mostly a lack of host memory",
        state=State.FAILED,
        at=told[0].at,
        culprits=culprits,
        shown=shown,
        explains=lines.AFTER_A_DEATH | {"shm-exhausted"},
    )


def _first_each(picture: Picture, killed: Sequence[Event]) -> tuple[Shown, ...]:
    """One line a kind and host: the task that was killed, the count of Slurm, the kernel's."""
    kept: dict[tuple[type, str | None, int | None], Shown] = {}
    for event in killed:
        if isinstance(event, KernelOom):
            says, family = "the kernel killed a process for lack of memory", "kernel"
        elif isinstance(event, WorkersOutOfMemory):
            says, family = "Ray killed a worker for lack of host memory", "log"
        elif isinstance(event, OomKill):
            says, family = "Slurm counted kills for lack of memory in this step", "slurm"
        else:
            says, family = "Slurm saw a task run out of memory", "slurm"
        key = (type(event), lines.host_of(picture, event.at), event.at.rank)
        kept.setdefault(key, Shown(event.at, says, family))
    return tuple(kept.values())[:5]


def _killed(picture: Picture, killed: Sequence[Event]) -> tuple[Culprit, ...]:
    """The hosts on which something was killed for memory, with the rank where a pid tells it."""
    ranks = {
        (one.host, one.pid): one.rank for one in picture.processes if one.attempt == picture.attempt
    }
    found: dict[str, Culprit] = {}
    loose: Culprit | None = None
    for event in lines.in_time(picture, killed):
        host = lines.host_of(picture, event.at)
        pid = rank = None
        hosts: tuple[str, ...] = () if host is None else (host,)
        if isinstance(event, TaskExit):
            hosts = tuple(picture.name_of(one) for one in event.hosts)
        elif isinstance(event, OomKill) and event.host is not None:
            hosts = (picture.name_of(event.host),)
        elif isinstance(event, WorkersOutOfMemory) and event.address is not None:
            hosts = (picture.name_of(event.address),)
        elif isinstance(event, KernelOom):
            pid = event.pid
            rank = ranks.get((host, pid)) if pid is not None else None
        reason = "killed for lack of host memory"
        for one in hosts:
            known = found.get(one)
            if known is None or (known.rank is None and rank is not None):
                found[one] = Culprit(host=one, rank=rank, pid=pid, reason=reason)
        if not hosts and rank is not None and loose is None:
            loose = Culprit(rank=rank, pid=pid, reason=reason)
    return tuple(found.values()) or ((loose,) if loose else ())


def _memory_climb(picture: Picture) -> Iterator[Finding]:
    """A rank whose own report of its memory climbs steeply up to the last line."""
    series: dict[tuple[str, int | None], list[MemoryUse]] = {}
    for one in picture.of(MemoryUse):
        series.setdefault((one.at.source, picture.rank_of(one.at)), []).append(one)
    for (_, rank), uses in series.items():
        rise = _rise(uses)
        if rise is None:
            continue
        name = "a process" if rank is None else f"rank {rank}"
        low, high = uses[rise].bytes, uses[-1].bytes
        reason = f"host memory climbed from {_gib(low)} to {_gib(high)} GiB"
        host = lines.host_of(picture, uses[-1].at)
        named = rank is not None or host is not None
        yield Finding(
            cls="host-oom",
            weight=Weight.PATTERN,
            summary=f"{name} climbs in host memory: {_gib(low)} to {_gib(high)} GiB, still going",
            state=State.UNKNOWN,
            at=uses[-1].at,
            culprits=(Culprit(rank=rank, host=host, reason=reason),) if named else (),
            shown=tuple(
                Shown(one.at, "its memory grows from line to line")
                for one in (uses[-1], *uses[rise + 1 : -1][-3:][::-1], uses[rise])
            ),
        )


def _rise(uses: Sequence[MemoryUse]) -> int | None:
    """Where the climb began that lasts to the end; None where there is none worth a word."""
    start = len(uses) - 1
    for place, (before, after) in reversed(tuple(enumerate(pairwise(uses)))):
        if after.bytes <= before.bytes:
            break
        start = place
    if len(uses) - 1 - start < _CLIMB_LINES:
        return None
    low, high = uses[start].bytes, uses[-1].bytes
    return start if high >= low * _CLIMB_TIMES and high - low >= _CLIMB_BYTES else None


def _gib(count: int) -> str:
    return f"{count / 2**30:.0f}"


def _shared_memory(picture: Picture) -> Iterator[Finding]:
    hits = _hits(picture, Limit.SHM, Warn.SHM)
    crashes: list[Event] = [one for one in picture.of(Crash) if one.signal == _SIGBUS]
    ends: list[ElasticFailure | ChildEnded | TaskExit] = [
        *(one for one in picture.of(ElasticFailure) if one.signal == _SIGBUS),
        *(one for one in picture.of(ChildEnded) if one.signal == _SIGBUS),
        *(one for one in picture.of(TaskExit) if one.signal == _SIGBUS),
    ]
    if not hits and not crashes and not ends:
        return
    in_nccl = any(isinstance(one, Crash) and one.in_nccl for one in crashes)
    sure = bool(hits) or in_nccl
    told: Sequence[Event] = hits or lines.in_time(picture, crashes) or ends
    reason = "its shared memory is full or too small"
    culprits = lines.failing(picture, hits or crashes, reason) or _ended(picture, ends, reason)
    place = next((f" of {one.host}" for one in culprits if one.host), "")
    yield Finding(
        cls="shm-exhausted",
        weight=Weight.OUTRIGHT if hits and culprits else Weight.CAUSE if sure else Weight.PATTERN,
        summary=f"the shared memory{place} is full or too small"
        if hits
        else f"bus errors, the sign of too little shared memory{place}",
        state=State.FAILED,
        at=told[0].at,
        culprits=culprits,
        shown=(
            *lines.lines(picture, hits, "no room in shared memory"),
            *lines.lines(picture, crashes, "a bus error: a page of memory had no place"),
            *lines.lines(picture, ends, "ended by a bus error", limit=2),
        ),
        next=_next(culprits),
        explains=lines.AFTER_A_DEATH,
    )


def _ended(
    picture: Picture, ends: Iterable[ElasticFailure | ChildEnded | TaskExit], reason: str
) -> tuple[Culprit, ...]:
    """Whose end a launcher told: by the table of torchrun, or the hosts of srun's line."""
    found: dict[tuple[str | None, int | None], Culprit] = {}
    for one in ends:
        hosts = one.hosts if isinstance(one, TaskExit) else (_ran_on(one),)
        rank = None if isinstance(one, TaskExit) else one.rank
        for host in hosts:
            name = None if host is None else picture.name_of(host)
            if name is not None or rank is not None:
                found.setdefault((name, rank), Culprit(host=name, rank=rank, reason=reason))
    return tuple(found.values()) if len(found) <= _NAMED else ()


def _ran_on(one: ElasticFailure | ChildEnded) -> str | None:
    return one.host if isinstance(one, ElasticFailure) else one.node or one.address


def _next(culprits: Sequence[Culprit]) -> tuple[NextStep, ...]:
    host = next((one.host for one in culprits if one.host), None)
    if host is None:
        return ()
    return lines.on_host(host, "shared memory", "df -h /dev/shm", "how much is left there")


def _files(picture: Picture) -> Iterator[Finding]:
    hits = _hits(picture, Limit.FILES, Warn.FILES)
    if hits:
        culprits = lines.failing(picture, hits, "ran out of file descriptors")
        yield Finding(
            cls="fd-limit",
            weight=Weight.OUTRIGHT,
            summary="a process ran out of file descriptors",
            state=State.FAILED,
            at=hits[0].at,
            culprits=culprits,
            shown=lines.lines(picture, hits, "no file descriptor left"),
            # Without descriptors no port can be bound either, whatever the words for that are.
            explains=lines.AFTER_A_DEATH | {"port-in-use"},
        )


def _topology(picture: Picture) -> Iterator[Finding]:
    """The PCI tree could not be read; a process whose set-up ended well was not harmed by it."""
    fine = {
        _process(picture, one.at) for one in picture.of(CommInit) if one.phase is InitPhase.COMPLETE
    }
    warns = [
        one
        for one in picture.of(NcclWarn)
        if one.kind is Warn.TOPOLOGY and _process(picture, one.at) not in fine
    ]
    if not warns:
        return
    broken = any(one.quoted for one in warns) or bool(picture.of(NcclChain, NcclError))
    if not broken and lines.Began(picture):
        return
    culprits = lines.failing(picture, warns, "NCCL cannot read its PCI topology")
    place = next((f" of {one.host}" for one in culprits if one.host), "")
    yield Finding(
        cls="topology-detection",
        weight=Weight.CAUSE if broken else Weight.PATTERN,
        summary=f"NCCL could not read the PCI topology{place}",
        state=State.FAILED,
        at=warns[0].at,
        culprits=culprits,
        shown=lines.lines(picture, warns, "a device is not where the PCI tree says"),
        explains=lines.AFTER_A_DEATH,
    )


def _hardware(picture: Picture) -> Iterator[Finding]:
    """The host itself: no class of the catalogue, but a cause of all that came after it."""
    broken = lines.in_time(picture, picture.of(HostHardware))
    if broken:
        culprits = lines.failing(picture, broken, "its kernel reports broken hardware")
        place = next((f" {one.host}" for one in culprits if one.host), " a host")
        yield Finding(
            cls=None,
            weight=Weight.CAUSE,
            summary=f"the kernel of{place} reports broken hardware: processor or memory",
            at=broken[0].at,
            culprits=culprits,
            shown=lines.lines(picture, broken, "an uncorrected hardware error", "kernel"),
            explains=lines.AFTER_A_DEATH,
        )


def _process(picture: Picture, at: Where) -> tuple[str | None, int | None, str]:
    return lines.host_of(picture, at), at.pid, at.source
