"""Sockets: interfaces, the bootstrap, resets, closed connections, strangers, lost workers."""

import re
from collections.abc import Iterable, Iterator, Sequence

from slurmtop.model.events.launch import DeathSignal, Interrupted, WorkerLost
from slurmtop.model.events.nccl import (
    ClosedByLocalRank,
    CommInit,
    InitPhase,
    NcclAddress,
    NcclRetry,
    NcclSetting,
    NcclWarn,
    Warn,
)
from slurmtop.model.events.program import ProgramSays, PyException, RankSeen
from slurmtop.model.events.reports import BenchRow
from slurmtop.model.events.slurm import StepEnded
from slurmtop.model.events.torch import GlooError, GlooTrouble, NcclError, StoreEvent, StoreTrouble
from slurmtop.model.trace import Event, Where
from slurmtop.model.verdict import Culprit, State
from slurmtop.triage.failures import lost_at_the_end
from slurmtop.triage.finding import Finding, Shown, Weight
from slurmtop.triage.picture import Picture
from slurmtop.triage.rules import lines
from slurmtop.triage.rules.pairs import Ended, between, link_of

#: Addresses that every host has for itself: loopback, link-local, bridges of containers.
_LOCAL_ADDRESS = re.compile(r"^(127\.|169\.254\.|172\.17\.|192\.168\.122\.|::1$)")
#: How gloo and c10d say that an interface or the host's own name is not to be had.
_NO_INTERFACE = re.compile(
    r"unable to find (address for|interface)|unsupported gloo device|"
    r"unable to resolve hostname|no socket interface",
    re.IGNORECASE,
)
_DEVICE = re.compile(r"\[(\d{1,3})\] NCCL ")
_IPV4 = re.compile(r"(\d{1,3})(?:\.\d{1,3}){3}$")
_CANNOT_REACH = (
    StoreTrouble.CONNECT_TIMEOUT,
    StoreTrouble.REFUSED,
    StoreTrouble.NO_HOST,
    StoreTrouble.FAILED,
)
_GPUS_PER_NODE = (4, 8, 16)


def find(picture: Picture) -> Iterable[Finding]:
    yield from _interface(picture)
    yield from _bootstrap(picture)
    yield from _foreign(picture)
    yield from _resets(picture)
    yield from _lost_workers(picture)
    yield from _local_rank_gone(picture)
    yield from _store_gone(picture)


def _warns(picture: Picture, *kinds: Warn) -> list[NcclWarn]:
    return [one for one in picture.of(NcclWarn) if one.kind in kinds]


def _interface(picture: Picture) -> Iterator[Finding]:
    """No interface, one without an address, or one that leads to no other host."""
    told: list[Event] = [*_warns(picture, Warn.NO_INTERFACE, Warn.BAD_ADDRESS)]
    told += [
        one
        for one in picture.of(PyException)
        if not one.swallowed and _NO_INTERFACE.search(one.message)
    ]
    away = _connects(picture, away=True)
    if not told and not away:
        return
    told = lines.in_time(picture, told)
    settings = [one for one in picture.of(NcclSetting) if one.name.endswith("_IFNAME")]
    first = (told or away)[0]
    yield Finding(
        cls="net-interface-config",
        weight=Weight.CAUSE if told else Weight.PATTERN,
        summary="the network interface that was chosen is missing or has no address"
        if told
        else "ranks listen on interfaces that do not reach each other",
        state=State.FAILED,
        at=first.at,
        culprits=lines.failing(picture, told, "has no usable interface") if told else (),
        shown=(
            *lines.lines(picture, told, "no usable interface"),
            *lines.lines(picture, away, "this address is not within reach", limit=2),
            *lines.lines(picture, settings, "this interface was asked for", limit=2),
        ),
        explains=lines.AFTER_A_DEATH,
    )


def _connects(picture: Picture, *, away: bool) -> list[NcclWarn]:
    """Connects that failed: ``away`` to an address that every host has for itself, or to one of
    quite another network than the writer's own; else all others."""
    own: dict[str | None, set[str]] = {}
    for one in picture.of(NcclAddress):
        if (network := _network(one.address)) is not None:
            own.setdefault(lines.host_of(picture, one.at), set()).add(network)

    def leads_away(warn: NcclWarn) -> bool:
        if warn.peer is None:
            return False
        if _LOCAL_ADDRESS.match(warn.peer):
            return True
        mine = own.get(lines.host_of(picture, warn.at), set())
        network = _network(warn.peer)
        return network is not None and bool(mine) and network not in mine

    return [one for one in _warns(picture, Warn.CONNECT) if leads_away(one) is away]


def _network(address: str) -> str | None:
    """The first number of an IPv4 address: private networks of one site often differ there."""
    found = _IPV4.match(address)
    return None if found is None else found[1]


def _bootstrap(picture: Picture) -> Iterator[Finding]:
    """Somebody could not connect: by NCCL, by the store, or only in attempts that go on."""
    warns = _connects(picture, away=False)
    began = lines.Began(picture)
    stores: list[Event] = [
        one
        for one in picture.of(StoreEvent)
        if one.kind in _CANNOT_REACH
        and not began.after(one.at, surely=one.kind is StoreTrouble.CONNECT_TIMEOUT)
    ]
    apart = (GlooTrouble.REFUSED, GlooTrouble.MESH)
    refusals = [one for one in picture.of(GlooError) if one.kind in apart]
    stores += [one for one in refusals if not began.after(one.at)]
    retries: list[Event] = [one for one in picture.of(NcclRetry) if not began.after(one.at)]
    told: Sequence[Event] = lines.in_time(picture, [*warns, *stores]) or retries
    if not told:
        return
    refused = any("refused" in (one.error or one.text).lower() for one in warns)
    sure = bool(warns) or any(
        isinstance(one, StoreEvent) and one.kind is StoreTrouble.CONNECT_TIMEOUT for one in stores
    )
    shown = (
        *lines.lines(picture, warns, "it could not connect"),
        *lines.lines(picture, stores, "it could not reach the store"),
        *lines.lines(picture, retries, "it tries again to connect", limit=2),
    )
    files = [one for one in picture.of(RankSeen) if (one.method or "").startswith("file:")]
    if files and (refused or retries):
        yield Finding(
            cls="stale-rendezvous",
            weight=Weight.CAUSE if refused else Weight.PATTERN,
            summary="the address came from a file and nobody listens there: it is likely that of "
            "an earlier run",
            state=State.FAILED,
            at=told[0].at,
            shown=(
                *lines.lines(picture, files, "the address is read from a file", limit=1),
                *shown,
            ),
            explains=lines.AFTER_A_DEATH,
        )
    yield Finding(
        cls="bootstrap-unreachable",
        weight=Weight.PATTERN if sure else Weight.SYMPTOM,
        summary=f"a rank could not connect{between(picture, warns)} while the job was set up",
        state=State.FAILED if warns or stores else None,
        at=told[0].at,
        culprits=link_of(picture, warns),
        shown=shown,
        explains=lines.AFTER_A_STALL,
    )


def _foreign(picture: Picture) -> Iterator[Finding]:
    warns = _warns(picture, Warn.FOREIGN)
    if warns:
        yield Finding(
            cls="foreign-connection",
            weight=Weight.PATTERN,
            summary="something that is not part of the job connected to a port of it",
            at=warns[0].at,
            shown=lines.lines(picture, warns, "the other end does not speak NCCL's protocol"),
            explains=frozenset({"peer-died", "socket-reset", "watchdog-timeout-unattributed"}),
        )


def _resets(picture: Picture) -> Iterator[Finding]:
    """Connections that were reset or closed: an effect, whose cause is somewhere else."""
    resets: list[Ended] = [
        *_warns(picture, Warn.RESET),
        *(one for one in picture.of(GlooError) if one.kind is GlooTrouble.RESET),
    ]
    closed: list[Ended] = [
        *_warns(picture, Warn.CLOSED),
        *(one for one in picture.of(GlooError) if one.kind is GlooTrouble.CLOSED),
    ]
    if resets:
        yield _broken(picture, "socket-reset", resets, "an open connection was reset", "reset")
    if closed:
        yield _broken(
            picture, "peer-died", closed, "another process closed its connection", "closed"
        )
    if resets or closed:
        return
    yield from _unnamed_system(picture)
    remote = [one for one in picture.of(NcclError) if one.result == "ncclRemoteError"]
    if remote:
        yield Finding(
            cls="peer-died",
            weight=_effect(picture, remote[0].at),
            summary="a remote process ended or the network to it failed; nothing tells which",
            state=State.FAILED,
            at=remote[0].at,
            shown=lines.lines(picture, remote, "NCCL lost the other end"),
        )


def _unnamed_system(picture: Picture) -> Iterator[Finding]:
    """A system call of NCCL failed, and the warning that would say which one is not there."""
    errors = [one for one in picture.of(NcclError) if one.result == "ncclSystemError"]
    if errors and not picture.of(NcclWarn):
        yield Finding(
            cls=None,
            weight=_effect(picture, errors[0].at),
            summary="a system call inside NCCL failed, mostly one on a connection; the warning "
            "that says which one is not here",
            state=State.FAILED,
            at=errors[0].at,
            shown=lines.lines(picture, errors, "NCCL reports a failed system call"),
            explains=frozenset({"task-exit"}),
        )


def _broken(picture: Picture, cls: str, warns: Sequence[Ended], summary: str, word: str) -> Finding:
    return Finding(
        cls=cls,
        weight=_effect(picture, warns[0].at),
        summary=f"{summary}{between(picture, warns)}; the cause lies elsewhere",
        state=State.FAILED,
        at=lines.in_time(picture, warns)[0].at,
        culprits=link_of(picture, warns),
        shown=lines.lines(picture, warns, f"the other end {word} the connection"),
    )


def _effect(picture: Picture, at: Where) -> Weight:
    return Weight.NOTE if lines.by_slurm(picture, at, *lines.SLURMS) else Weight.SYMPTOM


def _lost_workers(picture: Picture) -> Iterator[Finding]:
    lost = picture.of(WorkerLost)
    if not lost:
        return
    first = lost[0]
    host = None if first.address is None else picture.name_of(first.address)
    culprits: tuple[Culprit, ...] = ()
    if host is not None or first.rank is not None:
        reason = "its supervisor lost a worker there"
        culprits = (Culprit(host=host, rank=first.rank, pid=first.pid, reason=reason),)
    place = f" on {host}" if host else ""
    yield Finding(
        cls="peer-died",
        weight=Weight.PATTERN,
        summary=f"a worker died{place}, and its supervisor does not say why",
        state=State.FAILED,
        at=first.at,
        culprits=culprits,
        shown=lines.lines(picture, lost, "the supervisor lost this worker"),
        explains=lines.AFTER_A_DEATH - {"python-exception"},
    )


def _local_rank_gone(picture: Picture) -> Iterator[Finding]:
    """One local rank of which all others of its host say that it closed, and of no other one.

    At a normal end every rank closes its connections, so several are named.
    """
    if _normal_end(picture):
        return
    by_host: dict[str | None, list[ClosedByLocalRank]] = {}
    for one in picture.of(ClosedByLocalRank):
        by_host.setdefault(lines.host_of(picture, one.at), []).append(one)
    for host, closed in by_host.items():
        local_rank = _closed_first(closed)
        if local_rank is None or local_rank in map(_local_rank_of, (one.at for one in closed)):
            continue  # a rank that closes of its own will says so too
        reason = f"local rank {local_rank}: all others of the host say that it closed"
        told = [one for one in closed if one.local_rank == local_rank]
        # In one log of all ranks its own words would stand as well; elsewhere they may be lost.
        named = host is not None and len({one.at.source for one in told}) == 1
        yield Finding(
            cls="peer-died",
            weight=Weight.PATTERN,
            summary=f"local rank {local_rank}{f' on {host}' if host else ''} went away while "
            "the others went on",
            state=State.FAILED,
            at=told[0].at,
            culprits=(Culprit(host=host, reason=reason),) if named else (),
            shown=lines.lines(
                picture, told, f"local rank {local_rank} closed its connection", limit=8
            ),
            explains=frozenset({"socket-reset"}),
        )


def _closed_first(closed: Sequence[ClosedByLocalRank]) -> int | None:
    """The local rank that every other one of a whole node names alone; None for any gap.

    The device in a line's prefix is taken for the local rank of its writer, and nodes have 4, 8
    or 16 of them: a log that is not there leaves a gap.
    """
    said: dict[int, set[int]] = {}
    for one in closed:
        own = _local_rank_of(one.at)
        if own is not None:
            said.setdefault(own, set()).add(one.local_rank)
    for candidate in sorted({one.local_rank for one in closed}):
        others = said.keys() - {candidate}
        size = max(others | {candidate}) + 1
        if size not in _GPUS_PER_NODE or len(others) != size - 1:
            continue
        if all(said[other] == {candidate} for other in others):
            return candidate
    return None


def _local_rank_of(at: Where) -> int | None:
    if at.local_rank is not None:
        return at.local_rank
    found = _DEVICE.search(at.text)
    return int(found[1]) if found else None


def _normal_end(picture: Picture) -> bool:
    ended = any(
        one.phase in (InitPhase.DESTROYED, InitPhase.ABORTED) for one in picture.of(CommInit)
    )
    bench = any(one.complete for one in picture.of(BenchRow))
    told = picture.of(ProgramSays, Interrupted, DeathSignal, StepEnded)
    return ended or bench or bool(told)


def _store_gone(picture: Picture) -> Iterator[Finding]:
    """The store broke: whoever served it (rank 0, or its agent) has gone.

    Nobody is named: why it went, and whether of itself, only its own log can tell.
    """
    began = lines.Began(picture)
    resets = [
        one
        for one in picture.of(StoreEvent)
        if (one.kind is StoreTrouble.RESET or (one.kind is StoreTrouble.FAILED and began))
        and not lost_at_the_end(picture, one)
    ]
    if not resets:
        return
    yield Finding(
        cls="peer-died",
        weight=_effect(picture, resets[0].at),
        summary="the store that rank 0 serves has gone; its log has the cause",
        state=State.FAILED,
        at=resets[0].at,
        shown=tuple(_named_first(picture, resets)),
    )


def _named_first(picture: Picture, resets: Sequence[StoreEvent]) -> Iterator[Shown]:
    told = sorted(resets, key=lambda one: one.owner is None)
    yield from lines.lines(picture, told, "the connection to the store broke")
