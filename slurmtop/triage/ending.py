"""How the run ended, before anybody asks why: state before cause."""

import re
from dataclasses import dataclass

from slurmtop.model.events.launch import DeathSignal, Interrupted, WorkersRestart
from slurmtop.model.events.nccl import CommCalls, CommInit, InitPhase, NcclWarn, Warn
from slurmtop.model.events.program import Closing, ProgramSays, PyException, Step
from slurmtop.model.events.reports import BenchRow
from slurmtop.model.events.slurm import Ending as SlurmsEnding
from slurmtop.model.events.slurm import LaunchFailed, SlurmNote, StepEnded
from slurmtop.model.trace import Event, Where
from slurmtop.model.verdict import EndedBy, State
from slurmtop.triage.failures import Grade, failures, grade, survivals
from slurmtop.triage.finding import Shown
from slurmtop.triage.moving import moved_on
from slurmtop.triage.picture import GroupView, Picture

#: A program's last words that it did not do what it was to do.
_BADLY = (
    r"(?i:\bexit(?:ed|ing|s)?\b.{0,20}\b(?:code|status)\b[ =:]{0,3}-?[1-9]"
    r"|\b(?:training|run|job|script|program|worker|process|main|experiment)\b.{0,20} (?:has )?"
    r"(?:failed|crashed|aborted)\b)"
)
_FAILED_BADLY = re.compile(_BADLY)
_FAILED = re.compile(
    _BADLY + r"|(?:^|[\s\[|(:-])(?:ERROR|FATAL|CRITICAL|SEVERE)(?:[\s\]|):,-]|$)"
    r"|\bline \d{1,7}: [^:]{1,200}: (?:command not found|No such file|Permission denied)"
)
#: Trackers complain of their servers, and a table may have a column of that name.
_OF_OTHERS = re.compile(r"^wandb: |^COMET |NCCL |ProcessGroup|%\|")


_ENDS = (Closing.FINISHED, Closing.TIME_UP, Closing.TESTS_PASSED)


#: A network card or plugin that NCCL goes on without: no failure, and no proof of health either.
_LEFT_OUT = re.compile(r"(?i)initiali[sz]ation failed|unable to open device")


@dataclass(frozen=True, slots=True)
class Ending:
    """``hard``: a process, a launcher, Slurm or a person made an end; no rule may say otherwise.

    ``shown`` is the line that tells, None where nothing does.
    """

    state: State
    hard: bool = False
    ended_by: EndedBy | None = None
    shown: Shown | None = None


def how_it_ended(picture: Picture) -> Ending:
    """The state by the lines alone: the strongest end that was not got over, else what is
    moving, else unknown."""
    found = failures(picture)
    restart = _restarting(picture, found)
    if restart is not None:
        return restart
    worst = max((told for told, _ in found), default=Grade.NOTHING)
    of_worst = [event for told, event in found if told is worst]
    if worst is Grade.OUTSIDE:
        return _ended_outside(of_worst)
    if worst is Grade.ENDED:
        first = picture.earliest(of_worst) or of_worst[0]
        by = EndedBy.SLURM if isinstance(first, LaunchFailed) else None
        return Ending(State.FAILED, True, by, Shown(first.at, "a process ended here"))
    if worst is Grade.ERROR:
        first = picture.earliest(of_worst) or of_worst[0]
        return Ending(State.FAILED, shown=Shown(first.at, "an error that it did not get over"))
    if worst is Grade.STUCK:
        return Ending(State.HUNG, shown=Shown(of_worst[-1].at, "it waits, and no end is told"))
    return _without_failure(picture)


def _ended_outside(events: list[Event]) -> Ending:
    slurm = [e for e in events if isinstance(e, StepEnded)]
    persons = [e for e in events if isinstance(e, DeathSignal | Interrupted | PyException)]
    told = (slurm or persons or events)[0]
    if isinstance(told, StepEnded | SlurmNote):
        cut = isinstance(told, StepEnded) and told.ending is SlurmsEnding.CUT
        shown = Shown(told.at, "ended by Slurm", "slurm")
        return Ending(State.FAILED, True, None if cut else EndedBy.SLURM, shown)
    by = None if isinstance(told, DeathSignal) and told.signal not in (1, 2) else EndedBy.USER
    return Ending(State.FAILED, True, by, Shown(told.at, "ended from outside"))


def _restarting(picture: Picture, found: tuple[tuple[Grade, Event], ...]) -> Ending | None:
    """Workers are being started again with attempts left, and nothing has happened since."""
    last = None
    for event in picture.traces.of(WorkersRestart):
        last = event
    if last is None or last.left == 0:
        return None
    later = (e.at for _, e in found if picture.before(last.at, e.at) is not False)
    same = (at for at in later if at != last.at)
    if next(same, None) is not None or moved_on(picture, last.at):
        return None
    source = picture.source_of(last.at)
    if source is None or source.last is None or source.last.order > last.at.order:
        return None
    return Ending(State.RECOVERING, shown=Shown(last.at, "the workers are started again"))


def _without_failure(picture: Picture) -> Ending:
    shown = proof_of_health(picture)
    if shown is None:
        return Ending(State.UNKNOWN)
    doubt = _left_alone(picture) or doubt_of(picture, shown.at)
    return (
        Ending(State.HEALTHY, shown=shown) if doubt is None else Ending(State.UNKNOWN, shown=doubt)
    )


def _left_alone(picture: Picture) -> Shown | None:
    """An error behind which others go on with their steps, and its own rank is not seen to."""
    survived = survivals(picture)
    for event in picture.of(Event):
        if grade(event) is Grade.ERROR and survived.perhaps(event.at):
            words = "an error; others go on with their steps, its own rank is not seen to"
            return Shown(event.at, words)
    return None


def doubt_of(picture: Picture, proof: Where) -> Shown | None:
    """What takes the worth from a line that shows health: what stands behind it was not read, or
    the log closes with words that something failed."""
    source = picture.source_of(proof)
    if source is None:
        return None
    if proof.offset is not None and any(start > proof.offset for start, _ in source.unread):
        return Shown(proof, "a good sign, but what stands behind it was not read")
    behind = [one for one in source.tail if one.order > proof.order]
    closing = picture.of(ProgramSays)
    strong = bool(closing) and closing[-1].closing in (Closing.FINISHED, Closing.TESTS_PASSED)
    bad = _FAILED_BADLY if strong else _FAILED
    doubts = [at for at in reversed(behind) if bad.search(at.text)]
    others = (one for one in picture.traces.sources if one is not source)
    doubts += [at for one in others for at in one.tail[-2:] if _FAILED_BADLY.search(at.text)]
    for at in doubts:
        if not _OF_OTHERS.search(at.text):
            return Shown(at, "it says that something failed, and nothing shows that it went on")
    return None


def proof_of_health(picture: Picture) -> Shown | None:
    """The line that shows best that nothing is wrong; None where no line shows it.

    Ask only where nothing failed: a finished table, the end of the training, steps, set-up that
    all visible ranks completed, calls that all visible ranks made alike, or a harmless warning.
    """
    for row in picture.of(BenchRow):
        if row.complete and not row.wrong_rows and not row.out_of_bounds:
            return Shown(row.at, "the test ran to its end without a wrong result")
    ended = [e for e in picture.of(ProgramSays) if e.closing in _ENDS]
    if ended:
        return Shown(ended[-1].at, "the program says that it has finished")
    steps = picture.of(Step)
    if steps:
        return Shown(steps[-1].at, "it makes steps")
    return _setup_done(picture) or _calls_agree(picture) or _harmless(picture)


def _setup_done(picture: Picture) -> Shown | None:
    """Every communicator that was begun is complete on every rank that speaks."""
    if any(set(group.started) - set(group.complete) for group in picture.groups):
        return None
    done = [e for e in picture.of(CommInit) if e.phase is not InitPhase.START]
    if not done or _waits_in_a_call(picture):
        return None
    return Shown(done[-1].at, "set-up is complete on the ranks that speak")


def _waits_in_a_call(picture: Picture) -> bool:
    """Are the last calls those of a run that may as well be stuck in them?

    Calls are logged when they are made, not when they are done: only a counter that moves tells.
    """
    calls = [c for c in picture.of(CommCalls) if c.nranks != 1]
    return bool(calls) and not any(c.op_count_moves and c.collectives > 1 for c in calls)


def _calls_agree(picture: Picture) -> Shown | None:
    calls = picture.of(CommCalls)
    if not calls or _waits_in_a_call(picture):
        return None
    if not all(_level(group) for group in picture.groups if group.from_calls):
        return None
    if any(_nothing_alike(calls, nranks) for nranks in {one.nranks for one in calls}):
        return None
    return Shown(calls[-1].at, "the visible ranks make the same calls, and their counter moves")


def _nothing_alike(calls: tuple[CommCalls, ...], nranks: int | None) -> bool:
    """Do processes in communicators of one size share no operation at all?"""
    called = [{call.op for call in one.last} for one in calls if one.nranks == nranks]
    return len(called) > 1 and not set.intersection(*called)


def _level(group: GroupView) -> bool:
    """Is nobody more than the newest call apart from the others?"""
    heights = [place.enqueued for place in group.places if place.enqueued is not None]
    return not heights or max(heights) - min(heights) <= 1


def _harmless(picture: Picture) -> Shown | None:
    harmless = [e for e in picture.of(NcclWarn) if e.kind is Warn.BENIGN]
    if not harmless or any(_LEFT_OUT.search(e.text) for e in harmless):
        return None
    return Shown(harmless[-1].at, "a warning that healthy clusters show too")
