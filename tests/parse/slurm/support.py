"""Captured outputs and cases with known answers, for the tests of this folder."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from slurmtop.parse.slurm.squeue import LETTERS, QUEUE_FIELDS

_ROOT = Path(__file__).parents[3]
FIXTURES = _ROOT / "fixtures" / "slurm"
CASES = _ROOT / "tests" / "cases" / "slurm"
VERSIONS = ("22.05.8", "24.11.5", "26.05.5")
#: ``squeue_fields`` of the captures, field by field.
LETTER_FIELDS = tuple(LETTERS[letter] for letter in "iAFKjuaPqTtrMlLSeVDCmbNBQZoEk")
#: ``squeue_O`` of the captures; there ``|`` stands behind every field.
NAMED_FIELDS = (
    "raw_id",
    "id",
    "name",
    "state",
    "state_compact",
    "reason",
    "tres",
    "tres_per_node",
    "nodes",
    "restarts",
    "stdout",
    "stderr",
    "end",
    "start",
    "het_leader",
)


@cache
def fixture(version: str, name: str) -> bytes:
    """What a command printed on a real cluster of that version."""
    return (FIXTURES / version / f"{name}.out").read_bytes()


def fields_asked(version: str, name: str) -> tuple[str, ...]:
    """The fields that a captured ``squeue -O`` was asked for, as its command line says."""
    asked = (FIXTURES / version / f"{name}.cmd").read_text(encoding="utf-8").partition("-O ")[2]
    known = dict(QUEUE_FIELDS)
    return tuple(known[field] for field in re.findall(r"([\w-]+):", asked))


#: The 27 fields of ``queue_marked`` and ``queue_marked_M``: without those of the exit code.
QUEUE_MARKED_FIELDS = fields_asked("22.05.8", "queue_marked")


@cache
def _folder(number: str) -> Path:
    (found,) = CASES.glob(f"{number}-*")
    return found


def case(number: str, command: int = 1, stream: str = "stdout") -> bytes:
    """What command ``command`` of a case printed; nothing where it printed nothing."""
    path = _folder(number) / f"{command}.{stream}"
    return path.read_bytes() if path.exists() else b""


def expected(number: str) -> Any:
    """The right answers of a case."""
    return yaml.safe_load((_folder(number) / "expected.yaml").read_text(encoding="utf-8"))
