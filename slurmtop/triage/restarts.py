"""Where the newest run begins in a log that several runs of one job wrote, one behind the other.

Slurm's word of a requeue and torchrun's of a restart are counted while a log is read. All other
restarts (a loop in the batch script, a job that was preempted or lost a node, ``--open-mode=
append``) show only by what comes behind an end: the beginnings of a run, and then its steps::

    slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2031-05-05T10:00:00 DUE TO PREEMPTION ***
    Resuming from checkpoint /ckpt/900
    step 901/1000 loss=2.1

An end is history only where both stand behind it: ranks that are dying go on for a moment, and
tasks that need nothing of one another outlive the one that failed.
"""

from collections.abc import Sequence

from slurmtop.model.events.nccl import NcclVersion
from slurmtop.model.events.program import Closing, Phase, ProgramSays, PyException, RankSeen, Step
from slurmtop.model.events.slurm import SlurmNote, StepEnded
from slurmtop.model.trace import Event, Traces, Where
from slurmtop.triage.cascades import is_cascade
from slurmtop.triage.failures import Grade, grade
from slurmtop.triage.picture import Picture, Restart

#: A run that is being ended may write so many lines more.
_DYING_LINES = 30
#: Slurm and launchers tell one end in several lines, one behind the other.
_WORDS_OF_AN_END = 6
#: The newest ends of a log, behind each of which a run may have begun.
_ENDS_LOOKED_AT = 200
#: Slurm gives the tasks of a job that it ends about 30 s, sites more.
_GRACE_S = 120.0
#: Zones of the world are whole quarters of an hour apart.
_ZONE_STEP_S = 900.0
_RESUMES = ("resum", "restor")


def restarts(traces: Traces) -> dict[str, Restart]:
    """The newest restart of each source that its own lines show."""
    of_source: dict[str, list[Event]] = {}
    for event in traces.events:
        of_source.setdefault(event.at.source, []).append(event)
    found = ((name, _newest(events)) for name, events in of_source.items())
    return {name: restart for name, restart in found if restart is not None}


def earlier_ends(picture: Picture) -> tuple[Where, ...]:
    """How the run before the newest one ended, one line a source: the program's own exception,
    else the words of whoever ended it."""
    return tuple(
        _told_by_program(picture, name, restart) or restart.end
        for name, restart in picture.restarts.items()
    )


def _told_by_program(picture: Picture, source: str, restart: Restart) -> Where | None:
    thrown = [
        event.at
        for event in picture.traces.of(PyException)
        if event.at.source == source
        and event.at.order <= restart.end.order
        and grade(event) is Grade.ERROR
        and not is_cascade(event)
    ]
    return thrown[-1] if thrown else None


def _newest(events: Sequence[Event]) -> Restart | None:
    """Only the last end counts: what stands behind it cannot be of a run before it."""
    ends = [at for at, event in enumerate(events) if grade(event) >= Grade.ENDED]
    for place in ends[: -_ENDS_LOOKED_AT - 1 : -1]:
        # The words of one end stand together; a further one may be that of the newest run.
        behind = events[place + 1 :]
        stop = next((at for at, event in enumerate(behind) if _ends(event)), len(behind))
        begin = _begin(events[max(0, place - _WORDS_OF_AN_END) : place + 1], behind[:stop])
        if begin is not None:
            return Restart(begin, events[place].at)
    return None


def _ends(event: Event) -> bool:
    return grade(event) >= Grade.ENDED


def _begin(before: Sequence[Event], behind: Sequence[Event]) -> int | None:
    """The order of the first message of a run that began behind an end, if one is seen to."""
    end = before[-1].at.order
    moved = max((event.at.order for event in behind if _moves(event)), default=-1)
    for sign in behind:
        if sign.at.order < moved and _begins_a_run(sign):
            return sign.at.order
    words = [event for event in before if end - event.at.order < _WORDS_OF_AN_END]
    # Slurm says that it ends the whole step, or the whole job.
    if not any(isinstance(event, StepEnded | SlurmNote) and _ends(event) for event in words):
        return None
    steps = (event for event in behind if isinstance(event, Step))
    late = [step for step in steps if step.at.order - end > _DYING_LINES]
    done = any(isinstance(e, ProgramSays) and e.closing is Closing.FINISHED for e in behind)
    told = [event for event in words if isinstance(event, StepEnded)]
    if any(done or any(_long_after(one, step) for one in told) for step in late):
        return end + 1
    return None


def _begins_a_run(event: Event) -> bool:
    """What a process says once, when it begins."""
    if isinstance(event, Phase):
        return any(word in event.at.text.lower() for word in _RESUMES)
    return isinstance(event, NcclVersion | RankSeen)


def _moves(event: Event) -> bool:
    return isinstance(event, Step) and event.done != 0


def _long_after(end: StepEnded, step: Step) -> bool:
    """Did a step come later than the grace that Slurm gives, whatever the zones of the clocks?"""
    stamp = step.at.stamp
    if end.seconds is None or stamp is None:
        return False
    apart = stamp.seconds - end.seconds
    return apart > 0 and _GRACE_S < apart % _ZONE_STEP_S < _ZONE_STEP_S - _GRACE_S
