"""What a rule found: a possible cause, what shows it, and how strongly it speaks."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from slurmtop.model.trace import Where
from slurmtop.model.verdict import (
    EVIDENCE_CHARS,
    Collective,
    Culprit,
    EndedBy,
    Evidence,
    Missing,
    NextStep,
    State,
)
from slurmtop.triage.picture import Picture


class Weight(IntEnum):
    """How far a finding reaches towards the cause. Between equals the earliest in time wins."""

    NOTE = 10
    """Worth a line beside the verdict; never the verdict of a run that failed or hung."""
    SYMPTOM = 20
    """An effect whose cause stays open: a timeout, a closed connection."""
    PATTERN = 30
    """Several lines that tell a cause only together, or one that leaves room for another."""
    CAUSE = 40
    """A line that tells a cause."""
    OUTRIGHT = 50
    """A line that tells cause and culprit, or who ended it, beyond doubt."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A line that speaks for or against, and what it shows in a few words for people."""

    at: Where
    says: str
    family: str = "log"
    """log, flight-recorder, ras, slurm or kernel (see ``Evidence.family``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One candidate for the verdict.

    ``cls`` None: a state without a class. ``state`` is what this finding alone would make the
    run; None leaves it to how the log ends. ``at`` is the moment of the cause. ``explains`` are
    classes of weaker findings that follow from this one; they are then no rivals. ``shown`` is
    strongest first. ``culprits`` stay empty unless the lines allow to name somebody.
    """

    cls: str | None
    weight: Weight
    summary: str
    """One sentence for a tired person, no full stop."""
    state: State | None = None
    at: Where | None = None
    culprits: tuple[Culprit, ...] = ()
    shown: tuple[Shown, ...] = ()
    against: tuple[Shown, ...] = ()
    collective: Collective | None = None
    ended_by: EndedBy | None = None
    missing: tuple[Missing, ...] = ()
    next: tuple[NextStep, ...] = ()
    explains: frozenset[str] = frozenset()


def evidence_of(picture: Picture, shown: Sequence[Shown]) -> tuple[Evidence, ...]:
    """Findings' lines in the verdict's form, each line once."""
    out: dict[tuple[str, int, str], Evidence] = {}
    for one in shown:
        at = one.at
        out.setdefault(
            (at.source, at.offset, at.text),
            Evidence(
                family=one.family,
                source=at.source,
                line=at.line,
                host=picture.host_of(at),
                # A recording has blanks at the end in place of the letters of a secret.
                text=at.text.rstrip()[:EVIDENCE_CHARS],
                says=one.says,
                time=picture.time_of(at),
                offset=at.offset,
            ),
        )
    return tuple(out.values())
