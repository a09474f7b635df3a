"""What the joined logs of one job say, small enough to be carried with its facts."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from slurmtop.model.events.launch import ChildEnded, ClosingSignal, ElasticFailure, WorkersRestart
from slurmtop.model.events.program import Closing, ProgramSays, Step
from slurmtop.model.events.reports import HorovodStall
from slurmtop.model.events.slurm import SlurmNote, StepEnded, StepNote, TaskExit
from slurmtop.model.events.torch import GlooError, StoreEvent, WatchdogTimeout
from slurmtop.model.facts import Died, LogsSay
from slurmtop.model.trace import Event
from slurmtop.model.verdict import State
from slurmtop.triage.collective_table import collective_tables
from slurmtop.triage.ending import how_it_ended
from slurmtop.triage.failures import Grade, failures, signal_of
from slurmtop.triage.finding import Shown, evidence_of
from slurmtop.triage.judge import judge
from slurmtop.triage.picture import Picture
from slurmtop.triage.rules.exits import tasks_are_ranks

#: SIGILL, SIGBUS, SIGFPE and SIGSEGV, which nobody sends, and SIGKILL.
_TELLING = frozenset({4, 7, 8, 9, 11})
#: Groups whose collectives are carried along; a job may have one for each layer of a model.
_MOST_TABLES = 16
_Exit = TaskExit | ChildEnded | ElasticFailure
#: Behind one of these Slurm itself, or a person, kills what is left.
_CLEARING_UP = frozenset({StepNote.ABORTED, StepNote.TERMINATING, StepNote.REVOKED})


def logs_say(
    picture: Picture, *, only_newest: bool = True, now: datetime | None = None
) -> LogsSay | None:
    """The verdict of the logs and what Slurm's word is weighed with; None where no line is."""
    if not any(source.lines for source in picture.traces.sources):
        return None
    ending = how_it_ended(picture)
    return LogsSay(
        verdict=judge(picture, now=now),
        hard=ending.hard or ending.state is State.HUNG,
        moved_on=_moved_on(picture),
        died=died_first(picture),
        world_size=picture.world_size,
        seen_ranks=picture.seen_ranks,
        launched=bool(picture.of(ElasticFailure, ClosingSignal, ChildEnded, WorkersRestart)),
        only_newest=only_newest,
        attempt=picture.attempt,
        steps=any(_in_newest(picture, one) and one.bar is None for one in picture.of(Step)),
        waited_s=_waited_s(picture),
        warned=ending.state is State.HUNG and _only_warned(picture),
        ended=_ended_behind(picture),
        tables=collective_tables(picture)[:_MOST_TABLES],
    )


def _in_newest(picture: Picture, event: Event) -> bool:
    """A source that tells of no restart tells nothing of which attempt its lines are."""
    return event.at.attempt == picture.attempt


def _waited_s(picture: Picture) -> float | None:
    return max((seconds for _, seconds in _waits(picture)), default=0.0) or None


def _waits(picture: Picture) -> list[tuple[Event, float]]:
    """What tells that a collective of the newest attempt waited in vain, and for how long."""
    watchdog = picture.of(WatchdogTimeout)
    waits: list[tuple[Event, float]] = []
    waits += [(one, (one.ran_ms or one.timeout_ms or 0) / 1000) for one in watchdog]
    waits += [(one, one.timeout_s or 0.0) for one in picture.of(GlooError)]
    waits += _stalls(picture)
    return [(event, seconds) for event, seconds in waits if _in_newest(picture, event)]


def _stalls(picture: Picture) -> list[tuple[Event, float]]:
    """Horovod warns anew each time that as much has passed again, for as long as the wait lasts."""
    out: list[tuple[Event, float]] = []
    begun: dict[str, tuple[float, float]] = {}
    for one in (event for _, event in failures(picture) if isinstance(event, HorovodStall)):
        seconds, now = one.seconds or 0.0, picture.moment(one.at)
        if now is None:
            out.append((one, seconds))
            continue
        first, last = begun.get(one.at.source, (now, now))
        first = now if now - last > 2 * seconds else first
        begun[one.at.source] = (first, now)
        out.append((one, now - first + seconds))
    # Of several waits the newest counts: those before came to their end.
    newest = {one.at.source: (one, seconds) for one, seconds in out}
    return [*newest.values()]


def _only_warned(picture: Picture) -> bool:
    """Is all that tells of a wait a warning of those who wait, who go on waiting?"""
    stuck = [event for told, event in failures(picture) if told is Grade.STUCK]
    return bool(stuck) and all(isinstance(event, HorovodStall | StoreEvent) for event in stuck)


def _ended_behind(picture: Picture) -> frozenset[int]:
    """The ranks that ended behind all waits in vain. Tasks of srun are ranks where no other
    launcher tells of any."""
    waits = [event for event, _ in _waits(picture)]
    if not waits:
        return frozenset()
    behind = [
        one
        for one in _exits(picture)
        if (one.exit_code or one.signal)
        and all(picture.before(wait.at, one.at) is True for wait in waits)
    ]
    others = [one for one in behind if not isinstance(one, TaskExit)]
    ranks = (one.rank for one in others if one.rank is not None)
    tasks = (task for one in behind if isinstance(one, TaskExit) for task in one.tasks)
    return frozenset(ranks if others else tasks)


def _moved_on(picture: Picture) -> bool:
    """Does a step, or the end of the training, stand behind the first failure?"""
    failed = [event for _, event in failures(picture)]
    first = picture.earliest(failed)
    if first is None:
        return False
    done = (e for e in picture.of(ProgramSays) if e.closing is Closing.FINISHED)
    return any(picture.before(first.at, move.at) for move in (*picture.of(Step), *done))


def died_first(picture: Picture) -> Died | None:
    """The process that crashed or was killed while nothing else had ended, by its launcher.

    None where another ended so too, where one ended before, and where Slurm or a person was
    ending the step: whoever is killed then is a victim.
    """
    died = _each_process([event for event in _exits(picture) if _counts(event)])
    first = picture.earliest(died)
    if first is None or _ended_before(picture, first):
        return None
    task, rank, host = told = _who(picture, first)
    if told == (None, None, None) or any(_who(picture, other) != told for other in died):
        return None
    signal = signal_of(first.exit_code, first.signal) or 0
    family = "slurm" if isinstance(first, TaskExit) else "log"
    evidence = evidence_of(picture, (Shown(first.at, "it ended before any other", family),))[0]
    return Died(signal=signal, evidence=evidence, task=task, rank=rank, host=host)


def _exits(picture: Picture) -> Iterator[_Exit]:
    yield from picture.of(TaskExit)
    yield from picture.of(ChildEnded)
    yield from picture.of(ElasticFailure)


def _each_process(exits: Sequence[_Exit]) -> list[_Exit]:
    """torchrun tells the same end twice: in a line, and with rank and host in its table."""
    pids = {e.pid for e in exits if isinstance(e, ElasticFailure) and e.rank is not None}
    return [
        e for e in exits if not (isinstance(e, ElasticFailure) and e.rank is None and e.pid in pids)
    ]


def _counts(event: _Exit) -> bool:
    """Died of such a signal, and not as a victim of torchrun, which marks who ended first."""
    if signal_of(event.exit_code, event.signal) not in _TELLING:
        return False
    return not isinstance(event, ElasticFailure) or event.first


def _ended_before(picture: Picture, first: _Exit) -> bool:
    """Had another process ended, or was the step being ended, before this one was killed?

    What stands in another file without a time may have been before. torchrun writes its table
    when all is over, and gives the time of each end.
    """
    if isinstance(first, ElasticFailure):
        times = (e.seconds for e in picture.of(ElasticFailure) if e.at != first.at)
        before = (e for e in times if e is not None and first.seconds is not None)
        return any(seconds < (first.seconds or 0.0) for seconds in before)
    earlier: list[Event] = [e for e in _exits(picture) if e.exit_code != 0 or e.signal]
    earlier += [e for e in picture.of(SlurmNote) if e.note in _CLEARING_UP]
    earlier += picture.of(StepEnded)
    return any(
        picture.before(other.at, first.at) is not False
        for other in earlier
        if other.at != first.at and not isinstance(other, ElasticFailure)
    )


def _who(picture: Picture, event: _Exit) -> tuple[int | None, int | None, str | None]:
    """(task, rank, host) of the process that ended, as far as its teller says."""
    if isinstance(event, TaskExit):
        if len(event.tasks) != 1 or len(event.hosts) != 1:
            return None, None, None
        task = event.tasks[0]
        rank = task if tasks_are_ranks(picture) else None
        return task, rank, picture.name_of(event.hosts[0])
    named = event.host if isinstance(event, ElasticFailure) else event.node
    return None, event.rank, None if named is None else picture.name_of(named)
