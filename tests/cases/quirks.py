"""Answers made for rules of Slurm that no handed case holds, and how they are read."""

import json
from pathlib import Path
from typing import Any

from slurmtop.model.job import (
    AccountingRecord,
    Job,
)
from slurmtop.parse.slurm.sacct import parse_sacct
from slurmtop.parse.slurm.squeue import LETTERS, parse_squeue
from slurmtop.parse.slurm.squeue_json import parse_squeue_json

FIXTURES = Path(__file__).parents[2] / "fixtures" / "slurm"
RELEASES = ("22.05.8", "24.11.5", "26.05.5")
GIB = 1024**3


def capture(release: str, name: str) -> bytes:
    return (FIXTURES / release / f"{name}.out").read_bytes()


def queue(text: str | bytes, letters: str, separator: str = "|") -> list[Job]:
    """The rows of ``squeue -h -o '%i|%T|…'``."""
    data = text.encode() if isinstance(text, str) else text
    found = parse_squeue(
        data,
        fields=[LETTERS[letter] for letter in letters],
        separator=separator.encode(),
        record_mark=b"\n",
    )
    assert found.bad == 0
    return list(found.rows)


def accounting(text: str, fields: str, separator: str = "|") -> list[AccountingRecord]:
    """The rows of ``sacct -n -P -o FIELDS``."""
    data = text.encode()
    found = parse_sacct(data, fields=fields.split(","), separator=separator.encode())
    assert found.bad == 0
    return list(found.rows)


def queue_json(*records: dict[str, Any], **document: Any) -> list[Job]:
    return list(parse_squeue_json(json.dumps({"jobs": records, **document}).encode()).rows)
