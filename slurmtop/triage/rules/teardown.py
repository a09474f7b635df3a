"""Stuck or complaining while it was closed down, once the work was done.

Only lines that show the closing itself count: a frame of destroy or abort, or communicators of
some ranks destroyed while others never are and a watchdog fires. That the training had finished
before a timeout is not enough: a rank may have gone on to another call.
"""

from collections.abc import Iterable, Iterator

from slurmtop.model.events.launch import Crash
from slurmtop.model.events.nccl import CommInit, InitPhase
from slurmtop.model.events.program import Closing, ProgramSays, PyException
from slurmtop.model.events.reports import StackFrame
from slurmtop.model.events.torch import FailedStack, Heartbeat, WatchdogTimeout
from slurmtop.model.trace import Event, Where
from slurmtop.model.verdict import State
from slurmtop.triage.finding import Finding, Shown, Weight
from slurmtop.triage.picture import Picture

_CLOSING_FRAMES = (
    "destroy_process_group",
    "_shutdown_backend",
    "abort_process_group",
    "_abort_process_group",
    "destroy_model_parallel",
    "destroy_distributed_environment",
    "ncclcommabort",
    "ncclcommdestroy",
    "ncclcommfinalize",
)


def find(picture: Picture) -> Iterable[Finding]:
    stuck: list[Event] = [*picture.of(WatchdogTimeout), *picture.of(Heartbeat)]
    shown = [*_frames(picture), *_taken(picture), *_half_destroyed(picture, stuck)]
    if not shown:
        return
    finished = [e for e in picture.of(ProgramSays) if e.closing is Closing.FINISHED]
    finished = [e for e in finished if picture.before(e.at, shown[0].at)]
    done = tuple(Shown(e.at, "the work was done") for e in finished[-1:])
    yield Finding(
        cls="teardown-hang",
        weight=Weight.OUTRIGHT if finished else Weight.PATTERN,
        summary="it got stuck while its communicators were closed, after the work",
        state=State.HUNG if picture.of(StackFrame) else None,
        at=done[0].at if done else shown[0].at,
        shown=(*shown[:4], *done),
        explains=frozenset(
            {
                "watchdog-timeout-unattributed",
                "heartbeat-unattributed",
                "task-exit",
                "user-interrupt",
                "peer-died",
            }
        ),
    )


def _frames(picture: Picture) -> Iterator[Shown]:
    """Stacks that stand in the closing of a group when the run is stopped or times out."""
    for stack in picture.of(FailedStack):
        if _closes(stack.frames):
            yield Shown(stack.at, "the stack stands in the closing of a group")
    for thrown in picture.of(PyException):
        if thrown.name == "KeyboardInterrupt" and _closes(thrown.frames):
            yield Shown(thrown.at, "it was stopped while it closed a group")


def _taken(picture: Picture) -> Iterator[Shown]:
    """Stacks that somebody took of the process; of one that crashed they tell no wait."""
    if not picture.of(Crash):
        for frame in picture.of(StackFrame):
            yield Shown(frame.at, "the stack stands in the closing of a communicator")


def _closes(frames: tuple[str, ...]) -> bool:
    return any(word in frame.lower() for frame in frames for word in _CLOSING_FRAMES)


def _half_destroyed(picture: Picture, stuck: list[Event]) -> Iterator[Shown]:
    """Ranks closed their communicators and then somebody's watchdog fired."""
    ends: list[Where] = [
        e.at for e in picture.of(CommInit) if e.phase in (InitPhase.DESTROYED, InitPhase.ABORTED)
    ]
    for event in stuck:
        closed = [at for at in ends if picture.before(at, event.at)]
        if closed:
            yield Shown(event.at, "a wait timed out while groups were being closed")
            yield Shown(closed[0], "a communicator was closed before")
            return
