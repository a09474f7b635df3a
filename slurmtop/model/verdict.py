"""The one object behind ``why``, ``triage``, the Why tab and ``--json``.

Schema ``slurmtop.verdict/1``. Empty ``culprits`` means that nobody can be blamed; that is a
good answer. :func:`verdict_dict` is the JSON form: ISO 8601 times with offset, null for
unknown, no field left out.
"""

import dataclasses
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

SCHEMA = "slurmtop.verdict/1"


class State(StrEnum):
    PENDING = "pending"
    HUNG = "hung"
    FAILED = "failed"
    SLOW = "slow"
    RECOVERING = "recovering"
    HEALTHY = "healthy"
    IDLE = "idle"
    UNKNOWN = "unknown"


#: States in which something is to be done: exit status 2 of ``why`` and ``triage``.
PROBLEM_STATES = frozenset({State.HUNG, State.FAILED, State.SLOW, State.RECOVERING})


class EndedBy(StrEnum):
    SELF = "self"
    USER = "user"
    SLURM = "slurm"
    FAULT = "fault"


class Confidence(StrEnum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    rank: int | None = None
    host: str | None = None
    gpu: str | None = None
    pid: int | None = None
    link: str | None = None
    mount: str | None = None
    reason: str = ""
    world: str | None = None
    step: str | None = None
    attempt: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    op: str | None = None
    seq: int | None = None
    group: str | None = None
    expected_ranks: tuple[int, ...] = ()
    missing_ranks: tuple[int, ...] = ()
    mismatch: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One raw line, where it stands, and what it shows.

    ``family`` is log, stack, process, flight-recorder, ras, telemetry, slurm or kernel.
    ``source`` is a path or a command; ``line`` counts from 1, ``offset`` is where it starts in
    bytes. Of a line behind a part that was not read only the offset is known.
    """

    family: str
    source: str
    text: str
    says: str
    host: str | None = None
    line: int | None = None
    time: datetime | None = None
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Missing:
    """What could not be read, and the command that would supply it."""

    family: str
    why: str
    command: str | None = None


class Fate(StrEnum):
    """What came of asking a source."""

    ANSWERED = "answered"
    REFUSED = "refused"
    """It is there, and this user may not read it."""
    TIMED_OUT = "timed out"
    ABSENT = "absent"
    """It is not there: no such tool, file or service."""
    FAILED = "failed"
    """It answered something that is no answer."""
    NOT_ASKED = "not asked"
    """On purpose: not needed, not allowed by a setting, or it may harm the job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFate:
    """One source of a verdict and what came of it.

    ``source`` is one of :data:`SOURCES`. ``hosts`` are the nodes that it is told of, empty for what
    is asked once a job. ``command`` is what opens or replaces it.
    """

    source: str
    fate: Fate
    hosts: tuple[str, ...] = ()
    why: str = ""
    command: str | None = None


#: Every source that a verdict can rest on, cheapest first; the order in which they are listed.
SOURCES = (
    "slurm",
    "accounting",
    "logs",
    "nodes",
    "processes",
    "environment",
    "activity",
    "memory events",
    "gpus",
    "network ports",
    "kernel log",
    "stacks",
    "flight recorder",
    "ras",
)


@dataclass(frozen=True, slots=True)
class NextStep:
    """An exact command. ``effect`` is ``read`` or ``write``."""

    label: str
    command: str
    effect: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    job: str | None
    """The job's id as people type it; None for a triage of files, unless they are of several
    jobs."""
    cluster: str = ""
    state: State
    family: str | None = None
    cls: str | None = None
    """``class`` in JSON: a slug of the fault catalogue; None when unknown."""
    ended_by: EndedBy | None = None
    confidence: Confidence = Confidence.LOW
    summary: str
    since: datetime | None = None
    culprits: tuple[Culprit, ...] = ()
    collective: Collective | None = None
    evidence: tuple[Evidence, ...] = ()
    against: tuple[Evidence, ...] = ()
    missing: tuple[Missing, ...] = ()
    next: tuple[NextStep, ...] = ()
    made_at: datetime | None = None
    sources: tuple[SourceFate, ...] = ()
    """What was asked and what came of it, in the order of :data:`SOURCES`."""


EVIDENCE_LIMIT = 8
EVIDENCE_CHARS = 400


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def verdict_dict(verdict: Verdict) -> dict[str, Any]:
    """The JSON form of a verdict, with ``schema`` first and ``class`` for ``cls``."""
    out: dict[str, Any] = {"schema": SCHEMA}
    for name, value in _plain(verdict).items():
        out["class" if name == "cls" else name] = value
    out["evidence"] = [
        {**item, "text": item["text"][:EVIDENCE_CHARS]} for item in out["evidence"][:EVIDENCE_LIMIT]
    ]
    return out
