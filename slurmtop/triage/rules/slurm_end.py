"""Slurm ended it: time limit, preemption, requeue, a failed node, a step that never started.

What tasks print once Slurm stops them is no cause. An error that is known to stand before
Slurm's line is: then Slurm only cleared up what had failed or was stuck already.
"""

from collections.abc import Iterable, Iterator

from slurmtop.model.events.reports import HorovodStall
from slurmtop.model.events.slurm import (
    Ending,
    LaunchFailed,
    NodeTrouble,
    SlurmNote,
    StepEnded,
    StepNote,
)
from slurmtop.model.events.torch import StoreEvent, StoreTrouble
from slurmtop.model.trace import Event, Where
from slurmtop.model.verdict import Culprit, EndedBy, NextStep, State
from slurmtop.triage.catalogue import CATALOGUE
from slurmtop.triage.failures import first_failure
from slurmtop.triage.finding import Finding, Shown, Weight
from slurmtop.triage.picture import Picture

#: Slurm warns and kills with some grace: an error so shortly before its line is an effect.
_GRACE_S = 60.0

_CLASSES = {
    Ending.PREEMPTION: "slurm-preempted",
    Ending.NODE_FAILURE: "slurm-node-fail",
    Ending.TIME_LIMIT: "slurm-time-limit",
    Ending.REQUEUE: "slurm-requeue",
}
_SUMMARIES = {
    "slurm-preempted": "Slurm took its nodes for a job that goes first (preemption)",
    "slurm-node-fail": "Slurm ended it because a node of the job failed",
    "slurm-time-limit": "Slurm ended it at its time limit",
    "slurm-requeue": "it was put back into the queue; this run of it is over",
}
_BY_NOTE = {
    StepNote.PREEMPTED: "slurm-preempted",
    StepNote.REQUEUED: "slurm-requeue",
    StepNote.TIMED_OUT: "slurm-time-limit",
}


def everything_but(cls: str) -> frozenset[str]:
    """What follows once somebody outside has ended the run: all that it says afterwards."""
    return frozenset(CATALOGUE) - {cls}


def find(picture: Picture) -> Iterable[Finding]:
    yield from _launch_failed(picture)
    yield from _node_trouble(picture)
    reason = _reason(picture)
    if reason is not None:
        yield reason


def _reason(picture: Picture) -> Finding | None:
    """The ending for which Slurm, or the program that Slurm warned, gives a reason."""
    ended = [e for e in picture.of(StepEnded) if e.ending in _CLASSES]
    notes = [e for e in picture.of(SlurmNote) if e.note in _BY_NOTE]
    if ended:
        strongest = min(ended, key=lambda event: list(_CLASSES).index(event.ending))
        cls, weight, at = _CLASSES[strongest.ending], Weight.OUTRIGHT, strongest.at
    elif notes:
        cls, weight, at = _noted(notes), Weight.PATTERN, notes[0].at
    else:
        return None
    shown = [Shown(at, "Slurm's reason for the end", "slurm")]
    shown += [Shown(e.at, "Slurm's words", "slurm") for e in ended if e.at != at]
    shown += [Shown(e.at, "the warning before the end", "slurm") for e in notes if e.at != at]
    earlier = earlier_failure(picture, at)
    if earlier is not None:
        return Finding(
            cls=cls,
            weight=Weight.SYMPTOM,
            summary=f"{_SUMMARIES[cls]}, after something else had gone wrong",
            state=State.FAILED,
            at=at,
            shown=tuple(shown),
            ended_by=EndedBy.SLURM,
        )
    return Finding(
        cls=cls,
        weight=weight,
        summary=_SUMMARIES[cls],
        state=State.FAILED,
        at=at,
        culprits=_failed_nodes(picture) if cls == "slurm-node-fail" else (),
        shown=tuple(shown),
        ended_by=EndedBy.SLURM,
        explains=everything_but(cls),
    )


def _noted(notes: list[SlurmNote]) -> str:
    """By the program's own words alone: who requeues itself at its limit is requeued."""
    told = {event.note for event in notes}
    for note, cls in _BY_NOTE.items():
        if note in told:
            return cls
    raise AssertionError("only notes of the table are given")


def earlier_failure(picture: Picture, end: Where) -> Event | None:
    """The first failure, or stall, that came before an end that was made from outside.

    Whatever stands behind a warning of that end, or within its grace, does not count.
    """
    warned = (StepNote.WARNED, StepNote.PREEMPTED, StepNote.TIMED_OUT, StepNote.REQUEUED)
    notes = [e for e in picture.of(SlurmNote) if e.note in warned]
    limit = end
    for note in notes:
        if picture.before(note.at, limit):
            limit = note.at

    def counts(event: Event) -> bool:
        if isinstance(event, LaunchFailed):
            return False
        stuck = isinstance(event, HorovodStall) or (
            isinstance(event, StoreEvent) and event.kind is StoreTrouble.BARRIER_WAITS
        )
        if stuck:
            return True
        first, second = picture.moment(event.at), picture.moment(limit)
        return first is None or second is None or second - first > _GRACE_S

    return first_failure(picture, limit, only=counts)


def _launch_failed(picture: Picture) -> Iterator[Finding]:
    failed = picture.of(LaunchFailed)
    if not failed:
        return
    first = failed[0]
    nodes = list(dict.fromkeys(picture.name_of(e.node) for e in failed if e.node))
    culprits: tuple[Culprit, ...] = ()
    if len(nodes) == 1:
        culprits = (Culprit(host=nodes[0], reason=f"the task could not be started: {first.why}"),)
    where = f" on {nodes[0]}" if len(nodes) == 1 else f" on {len(nodes)} nodes" if nodes else ""
    yield Finding(
        cls="slurm-launch-failure",
        weight=Weight.OUTRIGHT,
        summary=f"Slurm could not start the program{where}: {first.why}",
        state=State.FAILED,
        at=first.at,
        culprits=culprits,
        shown=tuple(Shown(e.at, "the launch was refused", "slurm") for e in failed[:4]),
        ended_by=EndedBy.SLURM,
        explains=everything_but("slurm-launch-failure"),
        next=tuple(
            NextStep("state of the node", f"scontrol show node {node}", "read", "its reason")
            for node in nodes[:1]
        ),
    )


def _node_trouble(picture: Picture) -> Iterator[Finding]:
    trouble = picture.of(NodeTrouble)
    if not trouble:
        return
    if any(e.ending is Ending.NODE_FAILURE for e in picture.of(StepEnded)):
        return  # told there, with these nodes
    first = next((e for e in trouble if not e.listed), trouble[0])
    ended = bool(picture.of(StepEnded, SlurmNote)) or _by_srun(first)
    culprits = _failed_nodes(picture)
    names = ", ".join(c.host for c in culprits[:4] if c.host) or "a node"
    more = f" and {len(culprits) - 4} more" if len(culprits) > 4 else ""
    yield Finding(
        cls="slurm-node-fail",
        weight=Weight.PATTERN
        if first.listed
        else Weight.OUTRIGHT
        if _by_srun(first)
        else Weight.CAUSE,
        summary=f"Slurm reports {names}{more} as failed or taken out",
        state=State.FAILED if ended else State.UNKNOWN,
        at=first.at,
        culprits=culprits,
        shown=tuple(Shown(e.at, "Slurm on the node", "slurm") for e in trouble[:6]),
        ended_by=EndedBy.SLURM if ended else None,
        explains=everything_but("slurm-node-fail") if _by_srun(first) else frozenset(),
    )


def _by_srun(event: NodeTrouble) -> bool:
    """srun speaks of the nodes of its own job; slurmctld speaks of any."""
    return "srun:" in event.at.text


def _failed_nodes(picture: Picture) -> tuple[Culprit, ...]:
    """The nodes that Slurm names as failed. The first node of a step is none of them, and a
    list of the whole cluster does not tell which nodes are this job's."""
    out: dict[str, Culprit] = {}
    for event in picture.of(NodeTrouble):
        for node in () if event.listed else event.nodes:
            name = picture.name_of(node)
            out.setdefault(name, Culprit(host=name, reason=f"Slurm on it: {event.why}"))
    return tuple(out.values())
