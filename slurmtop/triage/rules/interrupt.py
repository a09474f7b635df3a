"""A person ended it: Ctrl-C, a closed terminal, scancel. Not a fault.

Slurm's ``CANCELLED AT`` without a reason is what scancel leaves, of the owner or of an
administrator, but also what is left when srun or a supervisor clears up: it weighs little.
"""

from collections.abc import Iterable, Iterator

from slurmtop.model.events.launch import DeathSignal, Interrupted
from slurmtop.model.events.program import PyException
from slurmtop.model.events.slurm import Ending, OomKill, SlurmNote, StepEnded, StepNote, TaskExit
from slurmtop.model.trace import Event
from slurmtop.model.verdict import EndedBy, Missing, State
from slurmtop.triage.failures import was_sent_signal
from slurmtop.triage.finding import Finding, Shown, Weight
from slurmtop.triage.picture import Picture
from slurmtop.triage.rules.slurm_end import earlier_failure, everything_but

_CLS = "user-interrupt"
_WORDS = {1: "its terminal was closed", 2: "somebody pressed Ctrl-C"}
_SIGTERM = 15
_NOT_KNOWN = (Ending.OTHER, Ending.CUT)


def find(picture: Picture) -> Iterable[Finding]:
    yield from _by_terminal(picture)
    yield from _cancelled(picture)
    yield from _terminated(picture)


def _by_terminal(picture: Picture) -> Iterator[Finding]:
    signals = [e for e in picture.of(DeathSignal) if e.signal in _WORDS]
    typed: list[Event] = [*signals, *picture.of(Interrupted)]
    keyboard = [e for e in picture.of(PyException) if e.name == "KeyboardInterrupt"]
    told = typed or [e for e in keyboard if not e.swallowed]
    if not told:
        return
    first = picture.earliest(told) or told[0]
    words = _words(first)
    earlier = earlier_failure(picture, first.at)
    shown = tuple(Shown(e.at, words) for e in (first, *told) if e is first or e.at != first.at)
    if earlier is not None:
        yield Finding(
            cls=_CLS,
            weight=Weight.SYMPTOM,
            summary=f"{words}, after something had gone wrong",
            state=State.FAILED,
            at=first.at,
            shown=shown,
            ended_by=EndedBy.USER,
        )
        return
    yield Finding(
        cls=_CLS,
        weight=Weight.OUTRIGHT,
        summary=f"a person ended it: {words}",
        state=State.FAILED,
        at=first.at,
        shown=shown,
        ended_by=EndedBy.USER,
        explains=everything_but(_CLS),
    )


def _words(event: Event) -> str:
    if isinstance(event, DeathSignal):
        return _WORDS[event.signal]
    if "cancel" in event.at.text.lower():
        return "somebody cancelled it"
    return _WORDS[2]


def _cancelled(picture: Picture) -> Iterator[Finding]:
    """``CANCELLED AT`` and nothing that explains it."""
    ended = picture.of(StepEnded)
    if not ended or any(e.ending not in (Ending.CANCELLED, *_NOT_KNOWN) for e in ended):
        return
    first = picture.earliest(ended) or ended[0]
    if _task_failed_first(picture, first) or picture.of(OomKill):
        return
    if earlier_failure(picture, first.at) is not None:
        return
    unknown = next((e for e in ended if e.ending in _NOT_KNOWN), None)
    if unknown is not None:
        yield _for_some_reason(unknown)
        return
    yield Finding(
        cls=_CLS,
        weight=Weight.PATTERN,
        summary="it was cancelled while it ran; Slurm gives no reason, as after scancel",
        state=State.FAILED,
        at=first.at,
        shown=tuple(Shown(e.at, "cancelled without a reason", "slurm") for e in ended[:3]),
        ended_by=EndedBy.USER,
        missing=(_who(first),),
        explains=everything_but(_CLS) - {"host-work-exceeds-timeout"},
    )


def _for_some_reason(end: StepEnded) -> Finding:
    """Slurm gives a reason, or may: nobody can be said to have done it."""
    why = "its line is cut before the reason" if end.ending is Ending.CUT else "see its line"
    return Finding(
        cls=None,
        weight=Weight.SYMPTOM,
        summary=f"Slurm ended it while it ran: {why}",
        state=State.FAILED,
        at=end.at,
        shown=(Shown(end.at, "Slurm ended it here", "slurm"),),
        missing=(_who(end),),
    )


def _who(end: StepEnded) -> Missing:
    return Missing(
        "slurm",
        "who cancelled it is not in the log",
        f"sacct -j {end.step.partition('.')[0]} --format=JobID,State%30,ExitCode,Reason",
    )


def _task_failed_first(picture: Picture, end: StepEnded) -> bool:
    """Had a task ended on its own before Slurm cleared up the rest?"""
    return any(
        not was_sent_signal(task) and picture.before(end.at, task.at) is not True
        for task in picture.of(TaskExit)
    )


def _terminated(picture: Picture) -> Iterator[Finding]:
    """The launcher got SIGTERM: somebody ended it, and its log does not say who."""
    signals = [e for e in picture.of(DeathSignal) if e.signal == _SIGTERM]
    if not signals or picture.of(StepEnded):
        return
    first = picture.earliest(signals) or signals[0]
    if earlier_failure(picture, first.at) is not None:
        return
    aborted = any(e.note is StepNote.ABORTED for e in picture.of(SlurmNote))
    yield Finding(
        cls=None,
        weight=Weight.SYMPTOM,
        summary="its launcher was told to end (SIGTERM); by whom is not in the log",
        state=State.FAILED,
        at=first.at,
        shown=(Shown(first.at, "SIGTERM of a supervisor, of Slurm or of a person"),),
        ended_by=EndedBy.SLURM if aborted else None,
        missing=(Missing("slurm", "who ended it is not in the log", "sacct -j JOBID"),),
    )
