"""What the user's program says of itself: exceptions, progress, phases, its end."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from slurmtop.model.trace import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class PyException(Event):
    """The line that names an exception, or one that a line of a log quotes.

    ``chain`` counts from 0 for the first of a chain (the cause). ``frames`` are the innermost
    frames (``train.py:41 in step``), innermost last, at most 8. ``swallowed`` is true after
    ``Exception ignored in`` and in logged, survived errors. ``hedged`` says that only the line in
    front of the traceback, a warning or talk of another try, hints that it was survived. ``cut``
    says that a traceback began and its end is not there: ``name`` is then empty.
    """

    name: str
    """With its module, e.g. ``torch.OutOfMemoryError``."""
    message: str
    frames: tuple[str, ...] = ()
    chain: int = 0
    swallowed: bool = False
    hedged: bool = False
    cut: bool = False
    process: int | None = None
    """Of ``-- Process 1 terminated with the following error:``, the number of the process that
    ``torch.multiprocessing.spawn`` saw fail first, on its node."""


class Mark(NamedTuple):
    """How far a bar or counter had come at one message; ``form`` are the words of a line without
    a counter, empty else."""

    order: int
    done: int | None
    form: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Event):
    """The program moved: a step, a bar, a loss line. First and last of each source and rank.

    ``bar`` is the words in front of a bar (``Preparing test set``). ``done`` of ``total``.
    ``recent`` are the last few changes of this bar up to this one, oldest first.
    """

    done: int | None
    total: int | None = None
    bar: str | None = None
    recent: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LossLost(Event):
    """``step 12 loss nan``: the loss is no number, here and in the newest line of this counter."""


class Doing(StrEnum):
    """A phase in which a rank may be busy on its own while others wait."""

    EVALUATING = "evaluating"
    SAVING = "saving"
    LOADING = "loading"
    PREPARING = "preparing"
    """Tokenising, building an index or a cache, downloading."""
    COMPILING = "compiling"


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase(Event):
    """``Evaluate annotation type *bbox*``, ``Saving model checkpoint to …``. ``over`` is true for
    a line that tells its end (``checkpoint saved``)."""

    doing: Doing
    over: bool = False


class Closing(StrEnum):
    FINISHED = "finished"
    """The training is over: ``max_epochs=N reached``, ``Training completed``."""
    EPOCH_DONE = "epoch done"
    """One worker came to the end of its data: ``Worker 0 completed its entire epoch``."""
    OUT_OF_DATA = "out of data"
    """``StopIteration``, ``ran out of batches``, ``dataset exhausted``."""
    TIME_UP = "time up"
    """The program's own time limit: ``Time limit of 1d reached. Stopping training.``"""
    TESTS_PASSED = "tests passed"
    """The summary of a suite of tests, none of which failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSays(Event):
    """A line by which the program tells that it (or one worker) has come to an end."""

    closing: Closing
    rank: int | None = None
    """A worker that the words name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSeen(Event):
    """The program tells a rank and more about it: ``initialized host n2 as rank 4``,
    ``distributed init (rank 3)``, ``dist_world_size: 4``, ``file:///…`` as a rendezvous.

    ``seen_rank`` may be None where only the world or the method is told.
    """

    seen_rank: int | None = None
    on_host: str | None = None
    world: int | None = None
    method: str | None = None
