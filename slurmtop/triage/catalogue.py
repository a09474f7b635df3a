"""The fault catalogue: every class slug, the section it stands in, what it means, what to do.

A class says what was wrong with the job, not which words its log used; "NCCL timeout" is
never a class. Verdicts, ``explain`` and the tests take their slugs from here.
"""

from dataclasses import dataclass

from slurmtop.triage.fault_classes import ENTRIES


@dataclass(frozen=True, slots=True)
class FaultClass:
    """One class: ``meaning`` and ``first_action`` are one sentence each."""

    slug: str
    family: str
    meaning: str
    first_action: str


#: Every class by its slug.
CATALOGUE: dict[str, FaultClass] = {
    slug: FaultClass(slug, family, meaning, action)
    for family, entries in ENTRIES
    for slug, meaning, action in entries
}


def family_of(slug: str | None) -> str | None:
    """The section that a class stands in; None for no class or a slug not in the catalogue."""
    entry = CATALOGUE.get(slug) if slug is not None else None
    return entry.family if entry is not None else None
