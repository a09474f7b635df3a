"""What a source said, when, and how it is doing."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BadRecord:
    """The first record that a parser could not read: where it stood, and its start."""

    index: int
    why: str
    excerpt: str


@dataclass(frozen=True, slots=True)
class Parsed(Generic[T]):
    """What a parser made of some bytes. It never raises and never loses a neighbour.

    ``rows`` are the good records in order; ``bad`` counts the others and ``first_bad`` keeps
    the first of them for the person who has to find out why.
    """

    rows: tuple[T, ...]
    bad: int = 0
    first_bad: BadRecord | None = None

    @classmethod
    def of(cls, found: "Iterable[T | BadRecord]") -> "Parsed[T]":
        """Good records in order; bad ones counted, the first kept."""
        rows: list[T] = []
        bad = 0
        first: BadRecord | None = None
        for item in found:
            if isinstance(item, BadRecord):
                bad += 1
                first = first or item
            else:
                rows.append(item)
        return Parsed(tuple(rows), bad, first)


@dataclass(frozen=True, slots=True)
class Snapshot(Generic[T]):
    """A value with its age. ``took_s`` is how long the source needed to answer."""

    value: T
    sampled_at: datetime
    took_s: float = 0.0


class Trouble(StrEnum):
    """Kinds of failure that a person treats differently."""

    BUSY = "busy"
    """The controller is up but slow or refuses for now."""
    DOWN = "down"
    AUTH = "auth"
    """munge, clock or version trouble of this login node; the controller may be fine."""
    RATE_LIMITED = "rate-limited"
    DENIED = "denied"
    UNKNOWN_JOB = "unknown-job"
    NO_ACCOUNTING = "no-accounting"
    """Accounting is switched off here for good: do not ask again."""
    ACCOUNTING_DOWN = "accounting-down"
    NO_SLURM = "no-slurm"
    NO_CONFIG = "no-config"
    TOO_OLD = "too-old"
    """An option or field that this Slurm does not know."""
    TIMEOUT = "timeout"
    LOCAL = "local"
    """This machine could not start the command (fork, memory, permissions)."""
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a source did not answer: what failed, why, what to do, and the raw words."""

    trouble: Trouble
    sentence: str
    raw: str = ""
    retry_after_s: float | None = None
    """The shortest wait before asking again; infinity means never in this session."""
    copy: str = ""
    """What the sentence ends with, where that must be copied whole: a command, a line of a file."""


@dataclass(frozen=True, slots=True)
class SourceHealth:
    """How one source is doing. All ages are computed from these times when shown.

    ``asking_since`` is set while a call is in flight; ``failing_since`` from the first of an
    unbroken row of failures; ``interval_s`` is the present wait between calls.
    """

    name: str
    good_at: datetime | None = None
    took_s: float | None = None
    asking_since: datetime | None = None
    failure: Failure | None = None
    failing_since: datetime | None = None
    failures: int = 0
    interval_s: float = 0.0
    bad_records: int = 0
    next_at: datetime | None = None
