"""A task ended with a code and the launcher stopped the rest; why, no line tells.

The first exit is the best hint there is. srun and mpirun watch all tasks of a step, so their
first line may name who went first; torchrun's table is one node's view and names nobody.
"""

from collections.abc import Iterable, Iterator, Sequence

from slurmtop.model.events.launch import ChildEnded, Crash, ElasticFailure
from slurmtop.model.events.slurm import SlurmNote, StepNote, TaskExit
from slurmtop.model.events.torch import NcclError
from slurmtop.model.trace import Event, RankFrom, Where
from slurmtop.model.verdict import Culprit, Missing
from slurmtop.triage.failures import first_failure, signal_of, was_sent_signal
from slurmtop.triage.finding import Finding, Shown, Weight
from slurmtop.triage.picture import Picture
from slurmtop.triage.rules.lines import everybody_speaks, host_of

_CLS = "task-exit"
_SIGNALS = {4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV"}
_SHOWN_LINES = 4
_Exit = TaskExit | ChildEnded | ElasticFailure | Crash


def find(picture: Picture) -> Iterable[Finding]:
    exits: list[_Exit] = [
        *(e for e in picture.of(TaskExit) if not e.out_of_memory),
        *picture.of(ChildEnded),
        *picture.of(ElasticFailure),
        *(e for e in picture.of(Crash) if not e.in_nccl),
    ]
    exits = [event for event in exits if _code(event) != 0]
    exits = [event for event in exits if not _vague(event)] or exits
    if exits:
        yield from _exited(picture, exits)


def _exited(picture: Picture, exits: Sequence[_Exit]) -> Iterator[Finding]:
    """Own ends first: who got a signal of a launcher is a victim, unless nothing else is told."""
    own = [event for event in exits if not was_sent_signal(event)]
    if not own and picture.of(NcclError):
        return  # the abort of a process that throws what NCCL told it
    first = picture.earliest(own or exits) or exits[0]
    cause = first_failure(picture)
    alone = cause is None or isinstance(cause, _Exit)
    warned = any(
        note.note in (StepNote.WARNED, StepNote.PREEMPTED) for note in picture.of(SlurmNote)
    )
    named = alone and not warned and everybody_speaks(picture)
    culprits = _who(picture, first, exits) if named else ()
    others = [e for e in exits if e is not first and e.at != first.at]
    yield Finding(
        cls=_CLS,
        weight=Weight.PATTERN if alone and own else Weight.SYMPTOM,
        summary=f"{_subject(first, culprits)} {_how(first)}; the reason is not in what was read",
        at=first.at,
        culprits=culprits,
        shown=(
            Shown(first.at, "the first process that ended", _family(first)),
            *(Shown(e.at, "ended later", _family(e)) for e in others[: _SHOWN_LINES - 1]),
        ),
        missing=(Missing("log", "the log of the task that ended first was not read, or is silent"),)
        if alone
        else (),
    )


def _vague(event: _Exit) -> bool:
    """``one process returned a non-zero exit code``: which one stands in a line of its own."""
    if not isinstance(event, ChildEnded):
        return False
    return {event.exit_code, event.signal, event.rank, event.pid, event.node} == {None}


def _code(event: _Exit) -> int | None:
    """The exit code; None for a signal."""
    if isinstance(event, Crash) or event.signal:
        return None
    return event.exit_code


def _family(event: Event) -> str:
    return "slurm" if isinstance(event, TaskExit) else "log"


def _how(event: _Exit) -> str:
    code = None if isinstance(event, Crash) else event.exit_code
    signal = signal_of(code, event.signal)
    if signal is not None:
        return f"was ended by {_SIGNALS.get(signal, f'signal {signal}')}"
    return "failed" if code is None else f"exited with code {code}"


def _subject(event: _Exit, culprits: tuple[Culprit, ...]) -> str:
    if culprits:
        who = f"rank {culprits[0].rank}" if culprits[0].rank is not None else "a task"
        return f"{who} on {culprits[0].host}" if culprits[0].host else who
    if isinstance(event, TaskExit) and len(event.tasks) > 1:
        return "several tasks at once"
    if isinstance(event, TaskExit) and event.tasks:
        place = f" on {event.hosts[0]}" if len(event.hosts) == 1 else ""
        return f"task {event.tasks[0]}{place}"
    return "a process"


def _who(picture: Picture, first: _Exit, exits: Sequence[_Exit]) -> tuple[Culprit, ...]:
    """Whom the first exit names, where its teller sees all tasks of the step.

    Nobody where the first line names several hosts, where the process was sent a signal, or
    where a task elsewhere ended in the same way: then the program failed on both alike, and
    which line came first is chance.
    """
    if was_sent_signal(first) or any(_rivals(picture, first, other) for other in exits):
        return ()
    if isinstance(first, TaskExit) and all(other.at == first.at for other in exits):
        # mpirun says of one process that it was the first; srun tells of each that ends.
        return ()
    reason = f"{_how(first)} before the others"
    hosts = _hosts(picture, first)
    host = next(iter(hosts)) if len(hosts) == 1 else None
    rank = _rank(picture, first)
    if isinstance(first, ElasticFailure) or (host is None and rank is None):
        return ()
    return (Culprit(rank=rank, host=host, reason=reason),)


def _hosts(picture: Picture, event: _Exit) -> frozenset[str]:
    """Where the processes of an exit ran, as far as their teller says."""
    match event:
        case TaskExit():
            return frozenset(picture.name_of(host) for host in event.hosts)
        case ChildEnded():
            return frozenset({picture.name_of(event.node)} if event.node else ())
        case ElasticFailure():
            return frozenset({picture.name_of(event.host)} if event.host else ())
        case Crash():
            host = host_of(picture, event.at)
            return frozenset({host} if host else ())


def _rank(picture: Picture, event: _Exit) -> int | None:
    match event:
        case TaskExit(tasks=(task,)):
            return task if tasks_are_ranks(picture) else None
        case ChildEnded():
            return event.rank
        case Crash():
            return picture.rank_of(event.at)
        case _:
            return None


def _rivals(picture: Picture, first: _Exit, other: _Exit) -> bool:
    """Did another task, not of the same host, end alike, or not surely later?"""
    if other is first:
        return False
    here = _hosts(picture, first)
    if here and here == _hosts(picture, other):
        return False
    return _how(first) == _how(other) or picture.before(first.at, other.at) is not True


def tasks_are_ranks(picture: Picture) -> bool:
    """Do srun's task numbers show to be global ranks? Only lines that carry both can tell."""
    told = False
    for event in picture.of(Event):
        at = event.at
        rank = _written_rank(at)
        if at.task is None or rank is None:
            continue
        if at.task != rank:
            return False
        told = told or at.task > 0
    return told


def _written_rank(at: Where) -> int | None:
    return at.rank if at.rank_from in (RankFrom.TAG, RankFrom.WORDS, RankFrom.MPI) else None
