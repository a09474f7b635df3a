"""What logs say, as typed statements, each with the raw line behind it and who wrote it.

``parse.logs`` turns bytes into these; ``triage`` thinks about them. A statement (an *event*, see
:mod:`slurmtop.model.events`) never says more than its line: who is to blame is thought later.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from slurmtop.model.facts import LogStatus


class RankFrom(StrEnum):
    """How the global rank of a line's writer was told; each rung is weaker than the one before."""

    TAG = "tag"
    """``[rank3]:`` of PyTorch, ``[rank: 3]`` of Lightning, ``[rank=3] ||`` of Determined."""
    MPI = "mpi"
    """``[1,3]<stdout>:`` of mpirun or Horovod: the rank of MPI."""
    WORDS = "words"
    """The program's own words: ``rank 0 RSS MEM USE``, ``[RANK 1] 2026-…``."""
    NCCL = "nccl"
    """(host, pid) of the line, and an init line of that process in the largest communicator."""


class Clock(StrEnum):
    """Which clock a stamp was read from. Stamps of two clocks are never compared."""

    WALL = "wall"
    BOOT = "boot"
    """Seconds since that host booted (``[74785.660366]`` of ``dmesg``)."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """When a line was written, by its own words.

    ``seconds`` counts from 1970 as if the line's clock showed UTC. ``zoned`` is true where the
    line tells its zone (then it is UTC). A stamp without a year has that of its file.
    """

    seconds: float
    clock: Clock = Clock.WALL
    zoned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """A raw line, where it stands, and who wrote it as far as its prefixes tell.

    ``text`` is what a person is shown: the raw line (without colours) from the prefix of its
    message on, at most 400 characters, the telling words always among them; a message that was
    wrapped or torn over lines keeps them all, joined by ``\\n``. ``order`` counts the messages of
    one source in reading order. ``task`` is srun's label (``3: ``), which is a node's number where
    one task is one node. A field is None where nothing tells it; nothing is guessed here.
    """

    source: str
    """The path as it was given (a name inside a folder, ``-`` for stdin)."""
    line: int | None
    offset: int
    order: int
    text: str
    rank: int | None = None
    rank_from: RankFrom | None = None
    local_rank: int | None = None
    task: int | None = None
    host: str | None = None
    """As written, e.g. ``node-a`` or ``10.0.0.10``; two names may be one host."""
    label: str | None = None
    """What a collector calls the writer: pdsh's ``node-a: ``, ``worker-9 >> ``, Ray's ip."""
    pid: int | None = None
    attempt: int = 0
    """Restarts of the job, or of torchrun's workers, that this source told before this line."""
    stamp: Stamp | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One statement of a log. The kinds stand in :mod:`slurmtop.model.events`."""

    at: Where


E = TypeVar("E", bound=Event)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One file (or stdin) that was to be read.

    ``unread`` are (offset, bytes) of what was left out of a long file. ``cut`` says that the last
    line has no end, or stops inside a message. ``rank`` and ``host`` are those of its name alone.
    """

    name: str
    status: LogStatus = LogStatus.READ
    why: str = ""
    size: int | None = None
    read_bytes: int = 0
    lines: int = 0
    unread: tuple[tuple[int, int], ...] = ()
    cut: bool = False
    rank: int | None = None
    host: str | None = None
    first: Where | None = None
    last: Where | None = None
    """Its first and last line that is not blank."""
    last_stamped: Where | None = None
    tail: tuple[Where, ...] = ()
    """Its last few lines that are not blank, whatever they say."""
    notable: tuple[Where, ...] = ()
    """Lines that call themselves errors or warnings, errors first: a few of those near its two
    ends, to be shown where nothing else explains the run; no evidence by themselves."""
    dropped_events: int = 0
    """Events of kinds that came thousands of times, between the first and the last ones kept."""


@dataclass(frozen=True, slots=True)
class Traces:
    """All that was read: the sources in the order given and their events in reading order."""

    sources: tuple[Source, ...] = ()
    events: tuple[Event, ...] = ()

    def of(self, *kinds: type[E]) -> tuple[E, ...]:
        """The events of these kinds, in reading order."""
        return tuple(event for event in self.events if isinstance(event, kinds))

    def has(self, *kinds: type[Event]) -> bool:
        return any(isinstance(event, kinds) for event in self.events)


def joined(parts: Iterable[Traces]) -> Traces:
    """Several readings as one, sources and events in the order given."""
    parts = tuple(parts)
    return Traces(
        tuple(source for part in parts for source in part.sources),
        tuple(event for part in parts for event in part.events),
    )
