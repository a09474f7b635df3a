"""The table of nccl-tests, summed up.

Source: nccl-tests 2.0 to 2.19 (``src/common.cu``), for example::

           8             2     float     sum      -1    130.1    0.00    0.00      0    118.6  …
    # Avg bus bandwidth    : 6.6

Up to 2.12 the column behind the bandwidths was ``error``, a largest difference and no count: such
rows are never wrong by themselves.
"""

import math
import re
from collections.abc import Iterable, Iterator

from slurmtop.model.events.reports import BenchRow
from slurmtop.model.trace import Event, Where
from slurmtop.parse.logs.line import Message
from slurmtop.parse.logs.plain import texts

_VALUE = r"(?:\d{1,12}(?:\.\d{1,6})?(?:e[+-]\d{1,3})?|-?nan|inf|N/A)"
_ROW = re.compile(
    r"\s*\d{1,15}\s{1,20}\d{1,15}\s{1,20}[a-z]\w{2,15}(?:\s{1,20}(?:[a-z]\w{1,15}|none))?"
    rf"(?:\s{{1,20}}-?\d{{1,6}}(?=\s{{1,20}}\d))?(?P<values>(?:\s{{1,40}}{_VALUE}){{4,16}})\s*$"
)
_HEADER = re.compile(
    r"#?\s{0,20}size\s{1,20}count\s.{0,200}\balgbw\s{1,20}busbw\s{1,20}(?P<kind>#wrong|error)"
)
_BOUNDS = re.compile(r"(?:^|#)\s{0,20}Out of bounds values\s{1,20}: (?P<count>\d{1,15})")
_AVERAGE = re.compile(
    r"(?:^|#)\s{0,20}Avg bus bandwidth\s{1,20}: (?P<gb>\d{1,9}(?:\.\d{1,9})?(?:e[+-]\d{1,3})?)"
)
#: Columns of a half: time, algbw, busbw, #wrong; with -I four more behind.
_HALF = 4


class BenchReader:
    """One :class:`BenchRow` a table."""

    words: tuple[bytes, ...] = (
        b"busbw",
        b"Out of bounds values",
        b"Avg bus bandwidth",
        b" float",
        b" half",
        b" double",
        b"int8",
        b"int32",
        b"int64",
        b"f8e",
        b"fp8",
    )
    _texts = texts(words)

    def __init__(self) -> None:
        self._fresh()

    def _fresh(self) -> None:
        self._kind: str | None = None
        self._rows = 0
        self._wrong = 0
        self._at: Where | None = None
        self._out_of_bounds: int | None = None

    @property
    def open(self) -> bool:
        return False

    def see(self, message: Message) -> Iterable[Event]:
        text = message.text
        if not any(word in text for word in self._texts):
            return
        if (found := _AVERAGE.search(text)) is not None:
            yield from self._end(message.at, float(found["gb"]))
        elif (found := _BOUNDS.search(text)) is not None:
            self._out_of_bounds = int(found["count"])
            if not self._wrong:
                self._at = message.at
        elif (found := _HEADER.search(text)) is not None:
            yield from self._end(None, None)
            self._kind = found["kind"]
        elif (found := _ROW.match(text)) is not None:
            self._row(found["values"].split(), message.at)

    def _row(self, values: list[str], at: Where) -> None:
        self._rows += 1
        width = _HALF * 2 if len(values) == _HALF * 4 else _HALF
        halves = [values[place + 3] for place in range(0, len(values) - 3, width)]
        wrong = any(self._is_wrong(value) for value in halves)
        if wrong and not self._wrong:
            self._at = at
        self._wrong += wrong
        if not self._wrong:
            self._at = at

    def _is_wrong(self, value: str) -> bool:
        if value == "N/A" or self._kind == "error":
            return False
        if self._kind is None and not value.isdigit():
            # Without the table's head only a whole number is surely a count.
            return False
        number = float(value)
        return math.isnan(number) or number > 0

    def _end(self, at: Where | None, gb: float | None) -> Iterator[Event]:
        bad = self._wrong or self._out_of_bounds
        place = self._at if bad else at or self._at
        if place is not None:
            yield BenchRow(
                at=place,
                rows=self._rows,
                wrong_rows=self._wrong,
                out_of_bounds=self._out_of_bounds,
                bus_gb_s=gb,
                complete=gb is not None or self._out_of_bounds is not None,
            )
        self._fresh()

    def finish(self) -> Iterable[Event]:
        yield from self._end(None, None)
