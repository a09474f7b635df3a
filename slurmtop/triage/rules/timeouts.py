"""Timeouts: what a rank did on the host meanwhile, and what the log alone does not explain.

The watchdog's line names an operation and a rank that waited. It is a victim, as a rule; without
more than such lines the right answer is that nobody can be named.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from slurmtop.model.events.program import Closing, Doing, Phase, ProgramSays, Step
from slurmtop.model.events.slurm import Ending, StepEnded
from slurmtop.model.events.torch import (
    CudaError,
    DumpSignal,
    FailedStack,
    GlooError,
    GlooTrouble,
    GroupStatus,
    Heartbeat,
    NcclError,
    OfGroup,
    ParamsDiffer,
    TakenDown,
    WatchdogTimeout,
)
from slurmtop.model.trace import Event, Where
from slurmtop.model.verdict import Collective, Culprit, EndedBy
from slurmtop.triage.finding import Finding, Shown, Weight
from slurmtop.triage.join_groups import PRINTS, UNTOLD
from slurmtop.triage.ops import PAIR_OPS, plain_op
from slurmtop.triage.picture import Picture
from slurmtop.triage.waiting import (
    WAITED,
    WAITED_OR_LEFT,
    culprits,
    pending,
    ranks_words,
    sides_words,
    told_whole,
    waiters,
)

_DOING_WORDS = {
    Doing.EVALUATING: "evaluating",
    Doing.SAVING: "saving",
    Doing.LOADING: "loading",
    Doing.PREPARING: "preparing data",
    Doing.COMPILING: "compiling",
}
#: Phases that every rank has to go through before the first step.
_START = frozenset({Doing.LOADING, Doing.COMPILING})
#: A phase that began longer than this before the others' wait was no reason for it.
_LEAD_S = 1800.0
_SHOWN = 6
_SIDES = 4
_FIRST = 1


def find(picture: Picture) -> Iterator[Finding]:
    """Host work, start-up, the first collective, and the timeouts that stay unexplained."""
    timeouts = picture.of(WatchdogTimeout)
    told = [e for e in picture.of(*_SPEAKING) if not _periodic(e)]
    if _timed_out(picture, timeouts, told):
        yield _unattributed(picture, timeouts, told)
        yield from _host_work(picture, timeouts)
        yield from _first_stuck(picture, timeouts)
        yield from _one_more(picture, timeouts)
    elif gloo := [e for e in picture.of(GlooError) if e.kind is GlooTrouble.TIMED_OUT]:
        yield _gloo(picture, gloo)
    yield from _heartbeat(picture)
    yield from _nobody_there(picture)


_SPEAKING: tuple[type[OfGroup], ...] = (GroupStatus, DumpSignal, FailedStack, TakenDown)


def _timed_out(
    picture: Picture, timeouts: Sequence[WatchdogTimeout], told: Sequence[OfGroup]
) -> bool:
    """Did a wait come to its timeout? The watchdog says much the same when an error came."""
    if timeouts or any(isinstance(event, DumpSignal) for event in told):
        return True
    return bool(told) and not picture.of(NcclError, CudaError)


def _periodic(event: OfGroup) -> bool:
    return isinstance(event, GroupStatus) and event.seq is None


def _unattributed(
    picture: Picture, timeouts: Sequence[WatchdogTimeout], told: Sequence[OfGroup]
) -> Finding:
    events: list[OfGroup] = [*timeouts, *told]
    first = picture.earliest(events) or events[0]
    best = timeouts[0] if timeouts else None
    ranks = sorted(waiters(picture))
    who = f"{ranks_words(ranks)} waited" if ranks else "a rank waited"
    what = _op_words(timeouts) or "a collective"
    apart = next(_apart(picture), None)
    where = f" ({apart[0]})" if apart is not None else ""
    sides = apart[1] if apart is not None else ()
    ends = [one for one in picture.of(StepEnded) if _by_a_person(picture, one, first)]
    then = ", and then the job was cancelled" if ends else ""
    return Finding(
        cls="watchdog-timeout-unattributed",
        weight=Weight.SYMPTOM,
        summary=f"{who[0].upper()}{who[1:]} in {what} until the watchdog ended it{where}{then}; "
        "the lines at hand tell neither who kept it waiting nor why",
        at=first.at,
        shown=(
            *sides,
            *_lines(picture, timeouts, told),
            *(
                Shown(end.at, "cancelled without a reason, as by scancel", "slurm")
                for end in ends[:1]
            ),
        ),
        ended_by=EndedBy.USER if ends else None,
        collective=_collective(best, told),
        explains=frozenset({"heartbeat-unattributed", "task-exit", "peer-died", "socket-reset"}),
    )


def _by_a_person(picture: Picture, end: StepEnded, first: OfGroup) -> bool:
    """Was the whole job cancelled without a reason after the first wait had ended?

    What Slurm says of a step alone is also left where srun clears up.
    """
    bare = end.ending is Ending.CANCELLED and end.step.isdigit()
    return bare and picture.before(first.at, end.at) is True


def _apart(picture: Picture) -> Iterator[tuple[str, tuple[Shown, ...]]]:
    """Groups whose ranks wait at different positions: in words, and one line a position.

    Who is behind may only have failed to hear that the operation was done: it is no accusation.
    """
    for view in picture.groups:
        if view.kind != "torch" or view.key in (PRINTS, UNTOLD) or view.key.endswith(" pairs"):
            continue
        stands = {place.rank: place for place in view.places if place.timed_out is not None}
        sides = {
            rank: f"{place.op or 'operation'} {place.timed_out}" for rank, place in stands.items()
        }
        by_side: dict[str, list[int]] = defaultdict(list)
        for rank, side in sides.items():
            by_side[side].append(rank)
        if len(by_side) > 1:
            rarest_first = sorted(by_side.items(), key=lambda one: len(one[1]))[:_SIDES]
            yield (
                sides_words(sides),
                tuple(
                    Shown(stands[of[0]].at, f"{ranks_words(of)} of the group: {side}")
                    for side, of in rarest_first
                ),
            )


def _op_words(timeouts: Sequence[WatchdogTimeout]) -> str | None:
    ops = {plain_op(event.op) for event in timeouts} - {None}
    seqs = {event.seq for event in timeouts}
    if len(ops) != 1:
        return None
    seq = next(iter(seqs)) if len(seqs) == 1 else None
    op = next(iter(ops))
    return f"{op} {seq}" if seq is not None else op


def _lines(
    picture: Picture, timeouts: Sequence[WatchdogTimeout], told: Sequence[OfGroup]
) -> tuple[Shown, ...]:
    """A timeout of each rank first, then one line of each other kind."""
    out: dict[object, Shown] = {}
    for event in timeouts:
        rank = picture.rank_of(event.at)
        key = (rank if rank is not None else event.group_rank, event.seq)
        if len(out) < _SHOWN - 2:
            out.setdefault(key, Shown(event.at, "this rank waited until the timeout"))
    says = {
        GroupStatus: "how far this rank had come",
        DumpSignal: "it passes on or tells that a timeout came",
        FailedStack: "where it called the operation",
        TakenDown: "the watchdog ends the process",
    }
    for kind, words in says.items():
        for other in told:
            if isinstance(other, kind):
                out.setdefault(kind, Shown(other.at, words))
    return tuple(out.values())[: _SHOWN + 2]


def _collective(best: WatchdogTimeout | None, told: Sequence[OfGroup]) -> Collective | None:
    if best is None:
        frames = [e.frames for e in told if isinstance(e, FailedStack) and e.frames]
        op = plain_op(frames[0][0].split(" ", 1)[0]) if frames else None
        return Collective(op=op) if op else None
    group = best.group
    if group is None:
        statuses = [e.group for e in told if isinstance(e, GroupStatus) and e.seq == best.seq]
        group = next((one for one in statuses if one is not None), None)
    name = None if group is None else group.desc or group.guid
    return Collective(op=plain_op(best.op), seq=best.seq, group=name)


def _gloo(picture: Picture, events: Sequence[GlooError]) -> Finding:
    return Finding(
        cls="watchdog-timeout-unattributed",
        weight=Weight.SYMPTOM,
        summary="A rank waited for another one over gloo until the timeout; the lines at hand do "
        "not tell why",
        at=(picture.earliest(events) or events[0]).at,
        shown=_one_each(picture, events, "this rank waited until the timeout"),
    )


# A rank that worked on the host meanwhile


def _host_work(picture: Picture, timeouts: Sequence[WatchdogTimeout]) -> Iterator[Finding]:
    """A phase that somebody began and did not end before the others' timeout."""
    if not timeouts:
        return
    first = picture.earliest(timeouts) or timeouts[0]
    of_source: dict[str, list[Phase | Step]] = defaultdict(list)
    phases, steps = picture.of(Phase), picture.of(Step)
    told: tuple[Phase | Step, ...] = (*phases, *steps)
    for event in told:
        of_source[event.at.source].append(event)
    open_phases = [
        one
        for one in phases
        if _still_on(picture, one, first.at, of_source[one.at.source])
        and _in_time(picture, one, first)
    ]
    if not open_phases:
        return
    phase = open_phases[-1]
    waiting = waiters(picture) | pending(picture)
    writer = picture.rank_of(phase.at)
    if writer in waiting:
        return
    named: tuple[Culprit, ...] = ()
    reason = f"was {_DOING_WORDS[phase.doing]} while the others waited"
    if writer is not None and told_whole(picture):
        named = culprits(picture, [writer], reason)
    elif writer is None and 0 in waiting:
        # The lines without a rank are the first rank's, as a rule, and that one waited itself.
        return
    early = phase.doing in _START and all(e.seq is not None and e.seq <= _FIRST for e in timeouts)
    words = f"One process was {_DOING_WORDS[phase.doing]} while {ranks_words(waiting)} waited"
    if not waiting:
        return
    yield Finding(
        cls="startup-skew" if early else "host-work-exceeds-timeout",
        weight=Weight.PATTERN,
        summary=f"{words} in {_op_words(timeouts) or 'a collective'} past the timeout",
        at=phase.at,
        culprits=() if early else named,
        shown=(
            Shown(phase.at, f"{_DOING_WORDS[phase.doing]} begins here, its end is not there"),
            *(Shown(event.at, "this rank waited until the timeout") for event in timeouts[:4]),
        ),
        collective=_collective(first, picture.of(GroupStatus)),
        explains=WAITED_OR_LEFT - {"startup-skew"},
    )


def _in_time(picture: Picture, phase: Phase, timeout: WatchdogTimeout) -> bool:
    """Did the phase begin at about the time when the others began to wait, or later?"""
    begun, ended = picture.moment(phase.at), picture.moment(timeout.at)
    if begun is None or ended is None or timeout.ran_ms is None:
        return True
    return begun >= ended - timeout.ran_ms / 1000 - _LEAD_S


def _still_on(
    picture: Picture, phase: Phase, until: Where, same_source: Sequence[Phase | Step]
) -> bool:
    """Had this phase begun and not ended when the first timeout came?"""
    if phase.over or picture.before(phase.at, until) is not True:
        return False
    own = [e for e in same_source if _same_writer(picture, phase.at, e.at)]
    before = {
        e.total for e in own if isinstance(e, Step) and picture.before(e.at, phase.at) is True
    }
    later = [
        e
        for e in own
        if picture.before(phase.at, e.at) is True and picture.before(e.at, until) is True
    ]
    return not any(_ends(phase, event, before) for event in later)


def _ends(phase: Phase, event: Phase | Step, totals_before: set[int | None]) -> bool:
    """A step of the training ends a phase; the bar of the phase itself does not.

    A bar that is not full and counts to another number than those before is the phase's own.
    """
    if isinstance(event, Phase):
        return event.over and event.doing is phase.doing
    own_bar = event.total is not None and event.total not in totals_before
    return not own_bar or event.done is None or event.done >= (event.total or 0)


def _same_writer(picture: Picture, one: Where, other: Where) -> bool:
    a, b = picture.rank_of(one), picture.rank_of(other)
    return a is None or b is None or a == b


# The first collective, and one too many at the end


def _first_stuck(picture: Picture, timeouts: Sequence[WatchdogTimeout]) -> Iterator[Finding]:
    """Every rank that speaks waits in the very first collective of its group."""
    seqs = {event.seq for event in timeouts}
    statuses = {e.seq for e in picture.of(GroupStatus) if e.seq is not None}
    if not timeouts or seqs | statuses != {_FIRST}:
        return
    if any(plain_op(event.op) in PAIR_OPS for event in timeouts):
        return
    first = picture.earliest(timeouts) or timeouts[0]
    yield Finding(
        cls="first-collective-stuck",
        weight=Weight.PATTERN,
        summary="The very first collective of the group never ended, although every rank that "
        f"speaks ({ranks_words(waiters(picture))}) entered it",
        at=first.at,
        shown=_lines(picture, timeouts, picture.of(GroupStatus)),
        collective=_collective(first, picture.of(GroupStatus)),
        explains=WAITED_OR_LEFT - {"first-collective-stuck"},
    )


def _one_more(picture: Picture, timeouts: Sequence[WatchdogTimeout]) -> Iterator[Finding]:
    """The training had finished, and then somebody waited in a barrier that others never made."""
    if not timeouts:
        return
    first = picture.earliest(timeouts) or timeouts[0]
    over = [
        event
        for event in picture.of(ProgramSays)
        if event.closing in (Closing.FINISHED, Closing.TIME_UP)
        and picture.before(event.at, first.at) is True
    ]
    small = all(
        plain_op(e.op) == "barrier" or (plain_op(e.op) == "allreduce" and e.numel_in == 1)
        for e in timeouts
    )
    if not over or not small:
        return
    yield Finding(
        cls="collective-order-skew",
        weight=Weight.PATTERN,
        summary="The training was over, and one more barrier was called than all ranks took "
        f"part in: {ranks_words(waiters(picture) or {0})} waited in it",
        at=over[-1].at,
        shown=(
            Shown(over[-1].at, "the program says that it is done"),
            *(Shown(event.at, "a barrier after that") for event in timeouts[:4]),
        ),
        collective=_collective(first, picture.of(GroupStatus)),
        explains=WAITED_OR_LEFT,
    )


# Nothing but effects


def _heartbeat(picture: Picture) -> Iterator[Finding]:
    beats = picture.of(Heartbeat)
    if not beats:
        return
    yield Finding(
        cls="heartbeat-unattributed",
        weight=Weight.SYMPTOM,
        summary="The watchdog thread itself was stuck; its message does not tell why",
        at=(picture.earliest(beats) or beats[0]).at,
        shown=_one_each(picture, beats, "its watchdog made no progress"),
        explains=frozenset({"task-exit", "peer-died", "socket-reset"}),
    )


def _one_each(picture: Picture, events: Sequence[Event], says: str) -> tuple[Shown, ...]:
    out: dict[object, Shown] = {}
    for event in events:
        out.setdefault(picture.rank_of(event.at), Shown(event.at, says))
    return tuple(out.values())[:_SHOWN]


def _nobody_there(picture: Picture) -> Iterator[Finding]:
    """``rank 0 has inconsistent 0 params``: that rank sent nothing; its model is not another."""
    events = [e for e in picture.of(ParamsDiffer) if e.none_there]
    if not events:
        return
    yield Finding(
        cls="first-collective-stuck",
        weight=Weight.PATTERN,
        summary="DDP's first exchange brought nothing from another rank; the models need not "
        "differ",
        at=events[0].at,
        shown=tuple(Shown(e.at, "0 parameters there: nothing arrived") for e in events[:4]),
        collective=Collective(op="_verify_params_across_processes"),
        explains=WAITED | {"python-exception", "peer-died", "task-exit"},
    )
