"""The columns of squeue as ``-o`` and ``-O`` ask for them, of jobs and of steps."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from slurmtop.demo.text import pad
from slurmtop.demo.values import View

T = TypeVar("T")
_LONG_FIELD = re.compile(r"([^:]*)(?::(\.?)([0-9]*)(.*))?", re.DOTALL)
_LETTER_FIELD = re.compile(r"%(\.?)([0-9]*)(.)([^%]*)", re.DOTALL)
_MAX_WIDTH = 4_096


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """``value`` is None for a column that squeue does not know: only its suffix is printed."""

    heading: str
    value: Callable[[View, T], str] | None
    width: int
    right: bool
    suffix: str

    def cell(self, text: str) -> str:
        return pad(text, self.width, right=self.right) + self.suffix


#: Heading and value of each column, by its letter or its name.
Known = Mapping[str, tuple[str, Callable[[View, T], str]]]


def letter_columns(
    text: str, known: Known[T], kind: str, errors: list[str]
) -> tuple[str, list[Column[T]]]:
    """What stands in front of the first ``%``, and the columns of ``-o``."""
    lead = text.partition("%")[0]
    columns: list[Column[T]] = []
    for dot, width, letter, suffix in _LETTER_FIELD.findall(text[len(lead) :]):
        size = min(int(width or 0), _MAX_WIDTH)
        found = known.get(letter)
        if found is None:
            errors.append(f"squeue: error: Invalid {kind} format specification: {letter}\n")
            suffix = f"%{dot}{width}{letter}{suffix}"
        heading, value = found or ("", None)
        columns.append(Column(heading, value, size, bool(dot), suffix))
    return lead, columns


def long_columns(text: str, known: Known[T], kind: str, errors: list[str]) -> list[Column[T]]:
    """The columns of ``-O``."""
    return [_long_column(one, known, kind, errors) for one in text.split(",") if one]


def _long_column(text: str, known: Known[T], kind: str, errors: list[str]) -> Column[T]:
    match = _LONG_FIELD.fullmatch(text)
    name, dot, width, suffix = match.groups() if match else (text, None, None, None)
    size = 20 if dot is None else min(int(width or 0), _MAX_WIDTH)
    short = "numtasks" if name.lower().startswith("numtask") else name.lower()
    found = known.get(short)
    if found is None:
        errors.append(f"squeue: error: Invalid {kind} format specification: {name}\n")
    heading, value = found or ("", None)
    return Column(heading, value, size, bool(dot), suffix or "")


def cells(view: View, row: T, columns: Iterable[Column[T]]) -> str:
    """One row of the table."""
    return "".join(
        column.cell(column.value(view, row) if column.value else "") for column in columns
    )
