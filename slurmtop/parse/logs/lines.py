"""Bytes of a log to lines: split, decoded, harmless escapes gone.

Source: any training log, for example ``tail -c 512K slurm-4711.out``::

    [rank0]: step 48213/100000 loss 2.41\\n
     45%|####5     | 450/1000 [00:10<00:12, 44.9it/s]\\r 46%|####6     | 460/1000 …

A line ends at ``\\n`` only. A progress bar redraws itself with ``\\r``; what counts is its last
state, as on a terminal. Colour and cursor sequences are removed, so that a pattern finds the
words between them. Nothing raises, whatever the bytes are.
"""

import codecs
import re

from slurmtop.model.facts import LogLine

#: Characters kept of one line; the rest is dropped.
LINE_LIMIT = 4_000

#: Bytes held of an unfinished line: enough for LINE_LIMIT characters of UTF-8.
_HELD = LINE_LIMIT * 4

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]?|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[()*+][0-9A-Za-z]|[ -/]*[0-~])?"
)


def decoded(raw: bytes, *, finished: bool = True) -> str:
    """The text of one line without escapes, at most :data:`LINE_LIMIT` characters.

    A byte order mark in front of it is none of it: files that were joined have theirs inside.

    ``finished`` false: a character cut at the end is left away, not shown as U+FFFD.
    """
    if len(raw) > _HELD:
        raw = raw[:_HELD]
        finished = False
    text = codecs.utf_8_decode(raw, "replace", finished)[0]
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    return text.removeprefix("\ufeff")[:LINE_LIMIT]


def raw_text(raw: bytes) -> str:
    """The text of one line, also without the zeros of a hole."""
    return decoded(raw.replace(b"\0", b"") if b"\0" in raw else raw)


class LineDecoder:
    """Turns blocks of a growing file into lines; holds what is not finished.

    ``offset`` is where the first block starts in the file and ``number`` the number of its
    first line, or None where the start of the file was not read. At most 16 KB are held, even
    when a bar never writes ``\\n``.
    """

    def __init__(self, *, offset: int = 0, number: int | None = 1) -> None:
        self._start = offset
        self._end = offset
        self._number = number
        self._state = b""
        self._state_blank = True
        self._drawn = b""

    @property
    def end_offset(self) -> int:
        """Bytes from the start of the file to the end of all that was fed."""
        return self._end

    @property
    def pending(self) -> LogLine | None:
        """The unfinished last line as it stands, or None after a ``\\n``."""
        return self._line(finished=False) if self._start < self._end else None

    def feed(self, data: bytes) -> tuple[LogLine, ...]:
        """The lines that ``data`` finished."""
        pieces = data.split(b"\n")
        last = pieces.pop()
        lines: list[LogLine] = []
        for piece in pieces:
            self._hold(piece)
            self._end += 1
            lines.append(self._line())
            self._next_line()
        self._hold(last)
        return tuple(lines)

    def finish(self) -> tuple[LogLine, ...]:
        """The last line, where the file ended without ``\\n``."""
        if self._start == self._end:
            return ()
        line = self._line()
        self._next_line()
        return (line,)

    def _line(self, *, finished: bool = True) -> LogLine:
        # A bar clears itself with blanks; the terminal's reader remembers what stood there.
        raw = self._drawn if self._state_blank and self._drawn else self._state
        return LogLine(decoded(raw, finished=finished), self._number, self._start)

    def _next_line(self) -> None:
        self._start = self._end
        self._state = self._drawn = b""
        self._state_blank = True
        if self._number is not None:
            self._number += 1

    def _hold(self, piece: bytes) -> None:
        self._end += len(piece)
        redrawn = piece.split(b"\r") if b"\r" in piece else (piece,)
        for index, state in enumerate(redrawn):
            if index:
                if not self._state_blank:
                    self._drawn = self._state
                self._state = b""
                self._state_blank = True
            # One byte past the limit stays, so that the cut is known as a cut.
            if len(self._state) <= _HELD:
                self._state = (self._state + state if self._state else state)[: _HELD + 1]
            if self._state_blank and state and not state.isspace():
                self._state_blank = False


def split_lines(
    data: bytes, *, offset: int = 0, number: int | None = 1, starts_inside: bool = False
) -> tuple[LogLine, ...]:
    """All lines of a block, the unfinished last one too.

    ``starts_inside`` says that the block may begin in the middle of a line (a tail): that first
    piece is dropped, unless a carriage return in it began a state that is whole.
    """
    if starts_inside and data:
        end = data.find(b"\n")
        first = data if end < 0 else data[:end]
        drawn = first.rstrip(b"\r").find(b"\r")
        cut = drawn + 1 if drawn >= 0 else len(first) + (end >= 0)
        data = data[cut:]
        offset += cut
        if drawn < 0 and end >= 0 and number is not None:
            number += 1
    decoder = LineDecoder(offset=offset, number=number)
    return decoder.feed(data) + decoder.finish()
