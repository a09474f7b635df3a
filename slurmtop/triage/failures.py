"""Which lines tell that something ended or broke, and which of them the run got over.

An error that its own writer went on from did not fail the run: steps of the same rank behind it
prove that. What the watchdog, a launcher, Slurm or a person did is never got over.
"""

import re
from collections.abc import Callable, Iterable
from enum import IntEnum
from functools import lru_cache

from slurmtop.model.events.launch import (
    ChildEnded,
    ClosingSignal,
    Crash,
    DeathSignal,
    ElasticFailure,
    Interrupted,
    Unkillable,
    WorkerLost,
    WorkersOutOfMemory,
)
from slurmtop.model.events.nccl import NcclChain, NcclRetry, NcclWarn, Warn
from slurmtop.model.events.program import Closing, Phase, ProgramSays, PyException, RankSeen
from slurmtop.model.events.reports import BenchRow, CallsApart, FlightReport, HorovodStall
from slurmtop.model.events.slurm import (
    LaunchFailed,
    OomKill,
    SlurmNote,
    StepEnded,
    StepNote,
    TaskExit,
)
from slurmtop.model.events.system import HostHardware, KernelOom, LimitHit, PcieFatal, Xid
from slurmtop.model.events.torch import (
    CudaError,
    Desync,
    DumpSignal,
    FailedStack,
    FingerprintMismatch,
    GlooError,
    GroupStatus,
    Heartbeat,
    MonitoredBarrier,
    NcclError,
    ParamsDiffer,
    StoreEvent,
    StoreTrouble,
    TakenDown,
    UnusedParameters,
    WatchdogTimeout,
)
from slurmtop.model.trace import Event, Where
from slurmtop.triage.cascades import is_cascade
from slurmtop.triage.moving import Moves
from slurmtop.triage.picture import Picture

#: Signals that a launcher, Slurm or the watchdog sends: who got one is a victim.
SENT_SIGNALS = frozenset({1, 2, 6, 9, 15})
#: A rank that goes on for this long after another one's error did not need that one.
_OUTLIVED_S = 600.0
#: Steps of others behind so many lines are more than the last ones before they wait for who has
#: failed. Of the steps between, most are never read.
_LATER_LINES = 6
_LATER_STEPS = 4


class Grade(IntEnum):
    """What a line says about the end of the run."""

    NOTHING = 0
    STUCK = 1
    """Somebody waits, and no line tells an end."""
    ERROR = 2
    """An error that its writer may still get over."""
    ENDED = 3
    """A process, step or job was ended, or the watchdog takes its process down."""
    OUTSIDE = 4
    """Slurm or a person ended it."""


#: Warnings of NCCL that do not stop a collective: seen on healthy clusters, or by passers-by.
_HARMLESS_WARNS = frozenset({Warn.BENIGN, Warn.FOREIGN, Warn.OTHER})
#: ncclInProgress is no error.
_NO_ERROR_RESULTS = frozenset({0, 7})
#: What only a process does that lives.
_WORK = (Phase, ProgramSays, BenchRow, RankSeen)
#: Lines behind a traceback that a dying process, or its launcher, may leave.
_IS_NO_WORD = re.compile(
    r"%\||^wandb: |^\s|Traceback|^\S{0,80}(?:Error|Exception)\b|slurm|srun|elastic"
    r"|torch/distributed|(?i:error|fail|exit|abort|kill|terminat|signal|clean|destroy|clos|finish|complet|\bend)"
)
_QUOTED = re.compile(r"\s{0,8}> ?\S")
_LOST_STORE = (StoreTrouble.RESET, StoreTrouble.FAILED)
_ENDING_NOTES = frozenset({StepNote.ABORTED, StepNote.TERMINATING, StepNote.REVOKED})


def signal_of(exit_code: int | None, signal: int | None) -> int | None:
    """The signal that ended a process: told, as a negative code, or as a shell's 128 + signal."""
    if signal is not None:
        return signal
    if exit_code is None:
        return None
    if exit_code < 0:
        return -exit_code
    return exit_code - 128 if 128 < exit_code < 128 + 65 else None


def _of_exit(exit_code: int | None, signal: int | None) -> Grade:
    return Grade.NOTHING if exit_code == 0 and not signal else Grade.ENDED


def _of_warn(event: NcclWarn) -> Grade:
    return Grade.NOTHING if event.kind in _HARMLESS_WARNS else Grade.ERROR


def _of_store(event: StoreEvent) -> Grade:
    return Grade.STUCK if event.kind is StoreTrouble.BARRIER_WAITS else Grade.ERROR


def _of_bench(event: BenchRow) -> Grade:
    wrong = event.wrong_rows or (event.out_of_bounds or 0) > 0
    return Grade.ERROR if wrong else Grade.NOTHING


def _of_exception(event: PyException) -> Grade:
    if event.swallowed:
        return Grade.NOTHING
    return Grade.OUTSIDE if event.name == "KeyboardInterrupt" else Grade.ERROR


def is_aside(event: Event) -> bool:
    """Did something end that the run may not have needed: a command of its script, or what
    somebody started beside the steps of the job (``extern``); or is a line quoted (``> ``)?"""
    if _QUOTED.match(event.at.text):
        return True
    if isinstance(event, OomKill):
        return event.step.endswith(".extern")
    return isinstance(event, ChildEnded) and event.aside


def grade(event: Event) -> Grade:
    """What one event says about the end of its run, whatever stands before or behind it."""
    match event:
        case TaskExit() | ChildEnded() | OomKill() | WatchdogTimeout() if is_aside(event):
            return Grade.ERROR
        case StepEnded() | DeathSignal() | Interrupted():
            return Grade.OUTSIDE
        case SlurmNote():
            return Grade.OUTSIDE if event.note in _ENDING_NOTES else Grade.NOTHING
        case TaskExit() | ChildEnded() | ElasticFailure():
            return _of_exit(event.exit_code, event.signal)
        case WatchdogTimeout() | TakenDown() | Heartbeat() | DumpSignal() | FailedStack():
            return Grade.ENDED
        case WorkerLost() | Crash() | LaunchFailed() | OomKill() | KernelOom() | Unkillable():
            return Grade.ENDED
        case NcclWarn():
            return _of_warn(event)
        case NcclChain():
            return Grade.NOTHING if event.result in _NO_ERROR_RESULTS else Grade.ERROR
        case StoreEvent():
            return _of_store(event)
        case PyException():
            return _of_exception(event)
        case CudaError():
            return Grade.NOTHING if event.caught else Grade.ERROR
        case BenchRow():
            return _of_bench(event)
        case Xid() | PcieFatal() | LimitHit() | NcclError() | UnusedParameters() | ParamsDiffer():
            return Grade.ERROR
        case GlooError() | HostHardware() | WorkersOutOfMemory():
            # Ray gives the work of a worker that it killed to another one.
            return Grade.ERROR
        case GroupStatus():
            # ``Timeout at NCCL work: 6``; the heartbeat's ``last completed`` alone is no failure.
            return Grade.ENDED if event.seq is not None else Grade.NOTHING
        case NcclRetry():
            last = event.attempts is not None and event.attempt == event.attempts
            return Grade.ERROR if last else Grade.NOTHING
        case FingerprintMismatch() | MonitoredBarrier() | Desync() | CallsApart():
            return Grade.ERROR
        case HorovodStall() | FlightReport():
            return Grade.STUCK
        case _:
            return Grade.NOTHING


class Survivals:
    """Tells for any line whether its writer went on after it.

    New steps of the same rank say yes. Where the ranks are not known, steps say so only behind
    every end of a process (the bar of another rank moves on for a moment), or where they go on
    for long, or make more than a few. Words on the end of the training say nothing: a script that
    failed prints them too.

    Of an exception that is called harmless in front any work, or word, of its rank is enough; of
    what ended beside the run the new steps of any rank, or words where a command was not found.
    A suite of tests that passed was meant to see all that stands in front of its summary.
    """

    def __init__(self, picture: Picture) -> None:
        self._picture = picture
        self._moves = Moves(picture)
        self._last_end: dict[str, int] = {}
        self._last_error: dict[str, int] = {}
        self._hedged = {
            (one.at.source, one.at.order) for one in picture.of(PyException) if one.hedged
        }
        self._passed = {
            one.at.source: one.at.order
            for one in picture.of(ProgramSays)
            if one.closing is Closing.TESTS_PASSED
        }
        self._aside: dict[tuple[str, int], bool] = {}
        for event in picture.of(Event):
            if is_aside(event):
                not_begun = isinstance(event, ChildEnded) and event.exit_code is not None
                self._aside[event.at.source, event.at.order] = not_begun
            told = grade(event)
            if told is Grade.ENDED:
                self._last_end[event.at.source] = event.at.order
            elif told is Grade.ERROR:
                self._last_error[event.at.source] = event.at.order

    def was_tested(self, at: Where) -> bool:
        """Does a suite of tests that passed close what stands here?"""
        return self._passed.get(at.source, -1) > at.order

    def __call__(self, at: Where) -> bool:
        return self._shown(at) or self._passed_by(at)

    def perhaps(self, at: Where) -> bool:
        """Do only steps of others speak for it, and no end of the training behind?

        What others wrote before it may have stood in a buffer until they ended as well.
        """
        finished = any(
            one.closing is Closing.FINISHED
            and one.at.source == at.source
            and one.at.order > at.order
            for one in self._picture.of(ProgramSays)
        )
        return not finished and not self._shown(at) and self._passed_by(at)

    def _passed_by(self, at: Where) -> bool:
        """Did others go on with their steps behind every error, and no process end behind it?"""
        last = max(at.order, self._last_error.get(at.source, -1))
        if self._last_end.get(at.source, -1) > at.order:
            return False
        return self._moves.anybody_went_on(at.source, last + _LATER_LINES, new=_LATER_STEPS)

    def _shown(self, at: Where) -> bool:
        if self.was_tested(at):
            return True
        not_begun = self._aside.get((at.source, at.order))
        if not_begun is not None:
            if self._last_end.get(at.source, -1) > at.order:
                return False
            went_on = self._moves.anybody_went_on(at.source, at.order)
            if went_on or not not_begun:
                return went_on
            # Behind steps it is a command of the clean-up: the work itself was found.
            return at.source in self._moves.sources() or self._speaks_on(at, None)
        rank = self._picture.rank_of(at)
        ended = self._last_end.get(at.source, -1) if rank is None else -1
        if self._moves.went_on(at.source, rank, max(at.order, ended)) or self._outlived(at):
            return True
        return (at.source, at.order) in self._hedged and self._speaks_on(at, rank)

    def _speaks_on(self, at: Where, rank: int | None) -> bool:
        """Does its rank do, or say, anything that is no end, with no end of a process behind?"""
        if self._last_end.get(at.source, -1) > at.order:
            return False
        if self._moves.went_on(at.source, rank, at.order, new=1):
            return True
        source = self._picture.source_of(at)
        later = [
            *(e.at for kind in _WORK for e in self._picture.of(kind) if e.at.source == at.source),
            *(one for one in (source.tail if source else ()) if not _IS_NO_WORD.search(one.text)),
        ]
        return any(one.order > at.order and self._picture.rank_of(one) == rank for one in later)

    def _outlived(self, at: Where) -> bool:
        """Did unknown writers come to the end of the work, or go on for long, after it?"""
        moves, source = self._moves, at.source
        if moves.made_whole(source, at.order) and moves.went_on(source, None, at.order):
            return True
        other = moves.last(source, None)
        if other is None or not moves.went_on(source, None, at.order, new=1):
            return False
        first, second = self._picture.moment(at), self._picture.moment(other.at)
        return first is not None and second is not None and second - first > _OUTLIVED_S


def lost_at_the_end(picture: Picture, event: Event) -> bool:
    """Is it a connection to the store that broke after the program said that it had finished?

    The rank that serves the store is often the first to leave.
    """
    if not isinstance(event, StoreEvent) or event.kind not in _LOST_STORE:
        return False
    return any(
        one.closing is Closing.FINISHED and picture.before(one.at, event.at)
        for one in picture.of(ProgramSays)
    )


@lru_cache(maxsize=1)
def survivals(picture: Picture) -> Survivals:
    """What the run got over: told once a picture, as many rules ask for it."""
    return Survivals(picture)


@lru_cache(maxsize=1)
def failures(picture: Picture) -> tuple[tuple[Grade, Event], ...]:
    """All that ended, broke or got stuck in the newest attempt and was not got over."""
    survived = survivals(picture)
    out = []
    for event in picture.of(Event):
        told = grade(event)
        if told is Grade.NOTHING:
            continue
        if told <= Grade.ERROR and (survived(event.at) or lost_at_the_end(picture, event)):
            continue
        if told is Grade.ENDED and survived.was_tested(event.at):
            continue
        out.append((told, event))
    return tuple(out)


def was_sent_signal(event: Event) -> bool:
    """Was the process of this line ended by a signal that others send?

    A crash without a signal is an abort (``terminate called``), mostly by the watchdog.
    """
    match event:
        case TaskExit() | ElasticFailure() | ChildEnded():
            return signal_of(event.exit_code, event.signal) in SENT_SIGNALS
        case Crash():
            return event.signal is None or event.signal in SENT_SIGNALS
        case ClosingSignal():
            return True
        case _:
            return False


def _is_root(told: Grade, event: Event) -> bool:
    if told is Grade.OUTSIDE or was_sent_signal(event):
        return False
    return not (isinstance(event, PyException) and is_cascade(event))


def first_failure(
    picture: Picture, before: Where | None = None, *, only: Callable[[Event], bool] | None = None
) -> Event | None:
    """The earliest line of a failure that nobody from outside made.

    With ``before``, only of those that are known to have come before that line.
    """
    found: Iterable[Event] = (
        event
        for told, event in failures(picture)
        if _is_root(told, event)
        and (only is None or only(event))
        and (before is None or picture.before(event.at, before))
    )
    return picture.earliest(found)
