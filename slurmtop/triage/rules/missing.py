"""Ranks that never came to an operation: only those that a line says so of.

That a rank says nothing is never a reason to name it. Words that point to a rank for more (``check
rank 0 logs``), counts of how many came, and a rank that only reports are no accusation either.
"""

from collections.abc import Iterable, Iterator

from slurmtop.model.events.launch import Interrupted
from slurmtop.model.events.program import Closing, ProgramSays, PyException, Step
from slurmtop.model.events.reports import FlightReport, HorovodStall, RasComm
from slurmtop.model.events.torch import Desync, MonitoredBarrier
from slurmtop.model.verdict import Collective, Culprit, State
from slurmtop.triage.finding import Finding, Shown, Weight
from slurmtop.triage.ops import plain_op
from slurmtop.triage.picture import GroupView, Picture, Place
from slurmtop.triage.rules.nccl_bug import damaged
from slurmtop.triage.rules.reported import flight_collective
from slurmtop.triage.waiting import (
    WAITED_OR_LEFT,
    collective,
    culprits,
    ranks_words,
    size_of,
    told_whole,
    waiters,
)

_LEFT = WAITED_OR_LEFT - {"missing-rank"}
#: RAS lists a few processes by number; a report of many missing ones is one of a broken network.
_FEW = 4


def find(picture: Picture) -> Iterator[Finding]:
    """Missing ranks by the words of reports, barriers and status lines; data that ran out."""
    yield from _flight(picture)
    yield from _horovod(picture)
    yield from _barrier(picture)
    yield from _desync(picture)
    yield from _ras(picture)
    yield from _idle_behind(picture)
    yield from _out_of_data(picture)


def _flight(picture: Picture) -> Iterator[Finding]:
    reports = [r for r in picture.of(FlightReport) if r.missing]
    # A rank that waits in one group is missing in another for that reason only.
    waiting = {rank for r in reports for rank in set(r.expected) - set(r.missing or ())}
    for report in reports:
        missing = sorted(set(report.missing or ()) - waiting)
        if len(reports) > 1 and not told_whole(picture):
            missing = []
        if report.expected and len(missing) >= len(report.expected):
            missing = []
        listed = sorted(report.missing or ())
        words = f"{ranks_words(listed)} never came to it"
        yield Finding(
            cls="missing-rank",
            weight=Weight.OUTRIGHT if missing else Weight.PATTERN,
            state=State.HUNG,
            summary=f"Operation {report.seq} ({plain_op(report.op)}) waits: {words}",
            at=report.at,
            culprits=culprits(picture, missing, "not there, by the flight recorder"),
            shown=(Shown(report.at, words, "flight-recorder"),),
            collective=flight_collective(report, missing=listed),
            explains=_LEFT,
        )


def _horovod(picture: Picture) -> Iterator[Finding]:
    stalls = picture.of(HorovodStall)
    told = [(stall, frozenset(_not_ready(stall, picture.world_size))) for stall in stalls]
    if not told:
        return
    # Whoever waits for one tensor keeps the others waiting for the next one.
    missing = frozenset.intersection(*(ranks for _, ranks in told))
    stall = told[-1][0]
    words = f"{ranks_words(missing)} never came" if missing else "some ranks never came"
    tensor = stall.tensors[0] if stall.tensors else None
    yield Finding(
        cls="missing-rank",
        weight=Weight.OUTRIGHT if missing else Weight.PATTERN,
        state=State.HUNG,
        summary=f"Horovod waits for a part of the ranks: {words}",
        at=told[0][0].at,
        culprits=culprits(picture, missing, "not ready, by Horovod's stall check"),
        shown=tuple(Shown(one.at, words) for one, _ in told[-4:]),
        collective=Collective(op=tensor, missing_ranks=tuple(sorted(missing))),
        explains=_LEFT,
    )


def _not_ready(stall: HorovodStall, world: int | None) -> Iterable[int]:
    """Named outright, or the complement: every rank below a ready one exists."""
    if stall.missing:
        return stall.missing
    if not stall.ready:
        return ()
    size = max(max(stall.ready) + 1, world or 0)
    return () if size > 1 << 20 else sorted(set(range(size)) - set(stall.ready))


def _barrier(picture: Picture) -> Iterator[Finding]:
    events = picture.of(MonitoredBarrier)
    late = [e for e in events if e.late]
    for event in late or events[:1]:
        words = (
            f"{ranks_words(event.late)} did not come in time"
            if event.late
            else "some rank did not come; whom rank 0 waited for stands in its own log"
        )
        yield Finding(
            cls="missing-rank",
            weight=Weight.OUTRIGHT if event.late else Weight.PATTERN,
            summary=f"A monitored barrier failed: {words}",
            at=event.at,
            culprits=culprits(picture, event.late, "did not come to the barrier in time"),
            shown=tuple(Shown(e.at, words) for e in [event, *events][:4]),
            collective=Collective(op="monitored_barrier", missing_ranks=event.late),
            explains=_LEFT | {"python-exception"},
        )


def _desync(picture: Picture) -> Iterator[Finding]:
    for event in picture.of(Desync):
        if not event.lagging:
            continue
        words = f"{ranks_words(event.lagging)} lag behind"
        yield Finding(
            cls="missing-rank",
            weight=Weight.OUTRIGHT,
            summary=f"PyTorch's desync report says that {words}",
            at=event.at,
            culprits=culprits(picture, event.lagging, "behind, by the desync report"),
            shown=(Shown(event.at, words),),
            collective=Collective(missing_ranks=event.lagging),
            explains=_LEFT,
        )


def _ras(picture: Picture) -> Iterator[Finding]:
    """Processes that RAS misses. It names them outright only once it calls them dead."""
    if damaged(picture):
        return
    for comm in picture.of(RasComm):
        if comm.dead and (comm.processes or comm.missing):
            gone = _dead(picture, comm)
            few = gone if len(gone) <= _FEW else ()
            words = f"{len(gone)} of its processes {'is' if len(gone) == 1 else 'are'} dead"
            yield Finding(
                cls="peer-died",
                weight=Weight.CAUSE,
                state=State.HUNG,
                summary=f"NCCL's RAS says that {words}",
                at=comm.at,
                culprits=few,
                shown=(Shown(comm.at, words, "ras"),),
                explains=_LEFT | {"missing-rank"},
            )
        elif comm.missing or comm.processes:
            ranks = [one.rank for one in comm.missing]
            words = f"{ranks_words(ranks)} did not answer" if ranks else "a process did not answer"
            yield Finding(
                cls="missing-rank",
                weight=Weight.PATTERN,
                state=State.HUNG,
                summary=f"NCCL's RAS has no data of a part of a communicator: {words}",
                at=comm.at,
                shown=(Shown(comm.at, words, "ras"),),
                collective=Collective(group=comm.comm_id, missing_ranks=tuple(ranks)),
                explains=_LEFT,
            )


def _dead(picture: Picture, comm: RasComm) -> tuple[Culprit, ...]:
    """Dead processes with host and rank; a rank of RAS is one of its communicator only."""
    known = {(one.host, one.pid): one.rank for one in picture.processes}
    gone: list[tuple[str | None, int | None]] = [(one.node, one.pid) for one in comm.processes]
    gone += [(one.node, one.pid) for one in comm.missing]
    named = ((None if node is None else picture.name_of(node), pid) for node, pid in gone)
    return tuple(
        Culprit(rank=known.get(process), host=process[0], pid=process[1], reason="dead, by RAS")
        for process in dict.fromkeys(named)
    )


def _idle_behind(picture: Picture) -> Iterator[Finding]:
    """Status lines: at the timeout a rank had launched less than the operation others wait in,
    and nothing of its own was outstanding, in this group or in another one."""
    outstanding = {
        place.global_rank
        for view in picture.groups
        for place in view.places
        if place.timed_out is not None
        or (None not in (place.enqueued, place.completed) and place.enqueued != place.completed)
    }
    for view in picture.groups:
        if view.kind != "torch" or view.key.startswith(("?", "fingerprints", "id ")):
            continue
        waiting = [place for place in view.places if place.timed_out is not None]
        if len(waiting) < 2 or size_of(picture, view) == 2:
            continue
        # Two ranks at least have come this far.
        seq = sorted(place.timed_out for place in waiting if place.timed_out is not None)[-2]
        idle = [place for place in view.places if _never_came(place, seq)]
        named = (place.global_rank for place in idle if place.global_rank not in outstanding)
        ranks = frozenset(rank for rank in named if rank is not None)
        if not ranks:
            continue
        yield _behind(
            picture, view, seq, idle, waiting, frozenset(r for r in ranks if r is not None)
        )


def _never_came(place: Place, seq: int) -> bool:
    return place.enqueued is not None and place.enqueued == place.completed and place.enqueued < seq


def _behind(
    picture: Picture,
    view: GroupView,
    seq: int,
    idle: list[Place],
    waiting: list[Place],
    ranks: frozenset[int],
) -> Finding:
    words = f"{ranks_words(ranks)} never launched operation {seq} of the group"
    return Finding(
        cls="missing-rank",
        weight=Weight.PATTERN,
        summary=f"{words[0].upper()}{words[1:]}, which the others wait in",
        at=waiting[0].at,
        culprits=culprits(picture, ranks, f"launched nothing after operation {seq - 1}"),
        shown=(
            *(Shown(place.at, "all that it launched is done") for place in idle[:2]),
            *(Shown(place.at, f"waits in operation {seq}") for place in waiting[:2]),
        ),
        collective=collective(picture, view, op=waiting[0].op, seq=seq, missing=ranks),
        explains=_LEFT,
    )


def _out_of_data(picture: Picture) -> Iterator[Finding]:
    """One worker says that its data are at an end, and others wait or a person ended it.

    Every worker says so once an epoch: one that went on, or many that said it, tell nothing.
    """
    told = [
        event
        for event in picture.of(ProgramSays)
        if event.closing in (Closing.EPOCH_DONE, Closing.OUT_OF_DATA)
        and not any(picture.before(event.at, step.at) for step in picture.of(Step))
    ]
    if not told:
        return
    ranks = {_worker(picture, event) for event in told}
    stuck = waiters(picture) - {rank for rank in ranks if rank is not None}
    if not stuck and not picture.of(Interrupted) and not _thrown(picture, told):
        return
    named = [rank for rank in ranks if rank is not None]
    others_went_on = bool(stuck or picture.of(Interrupted))
    if len(ranks) != 1 or not others_went_on or not told_whole(picture):
        named = []
    who = ranks_words(named) if named else "A worker"
    yield Finding(
        cls="data-exhausted",
        weight=Weight.PATTERN,
        summary=f"{who[0].upper()}{who[1:]} came to the end of its data while others went on",
        at=told[0].at,
        culprits=culprits(picture, named, "at the end of its data while others wait"),
        shown=tuple(Shown(event.at, "it says that its data are at an end") for event in told[:4]),
        explains=_LEFT,
    )


def _thrown(picture: Picture, told: Iterable[ProgramSays]) -> bool:
    """Did the program end with it (``StopIteration`` that nobody caught)?"""
    spots = {(event.at.source, event.at.order) for event in told}
    thrown = (e for e in picture.of(PyException) if not e.swallowed)
    return any((e.at.source, e.at.order) in spots for e in thrown)


def _worker(picture: Picture, event: ProgramSays) -> int | None:
    return event.rank if event.rank is not None else picture.rank_of(event.at)
