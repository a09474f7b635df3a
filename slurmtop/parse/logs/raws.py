"""Blocks of bytes to raw lines with their places, whatever the bytes are.

Source: any log; a bar redraws itself in one raw line, a hole of a sparse file is zeros::

    step 1\\r\\n
     45%|####5     | 450/1000\\r 46%|####6     | 460/1000\\x00\\x00\\x00

A raw line ends at ``\\n``. It is kept as bytes, because most lines of a long log are never looked
at. UTF-16 is turned into UTF-8; offsets still count bytes of the file.
"""

import codecs
from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate

from slurmtop.parse.logs.lines import raw_text

#: Bytes kept of a line that does not end: more than is ever shown of one.
_HELD = 17_000
_BAR_HELD = 64_000
#: The byte order marks of UTF-8, which Windows writes at the start of a file, and of UTF-16.
_MARK = b"\xef\xbb\xbf"
_MARKS = (b"\xff\xfe", b"\xfe\xff")
#: What Python calls UTF-16 whose mark tells the order of its bytes.
MARKED = "utf-16"


@dataclass(frozen=True, slots=True)
class Raw:
    """One raw line, or one state of a bar in it.

    ``place`` counts the lines of the file that hold words, ``serial`` all that were read.
    """

    data: bytes
    number: int | None
    offset: int
    place: int
    serial: int = 0

    def text(self) -> str:
        """Without escapes and zeros, at most 4,000 characters."""
        return raw_text(self.data)


class Block:
    """Raw lines that stand behind one another; the fields are those of the first.

    ``wide`` says that the file is UTF-16; ``dropped`` bytes of the first line were not kept.
    """

    def __init__(
        self,
        lines: list[bytes],
        *,
        number: int | None,
        offset: int,
        place: int,
        serial: int = 0,
        wide: bool = False,
        dropped: int = 0,
        text: bytes | None = None,
    ) -> None:
        self.lines = lines
        self._text = text
        self.number = number
        self.offset = offset
        self.place = place
        self.serial = serial
        self._wide = wide
        self._dropped = dropped
        some = not all(lines) or any(map(bytes.isspace, lines))
        self._blank = (
            [at for at, line in enumerate(lines) if not line or line.isspace()] if some else []
        )
        self._sizes: list[int] | None = None

    def take_text(self) -> bytes:
        """All lines joined by ``\\n``. What the file held is handed out once, and not kept."""
        text, self._text = self._text, None
        return b"\n".join(self.lines) if text is None else text

    @property
    def end_place(self) -> int:
        """That of the line behind these."""
        return self.place + len(self.lines) - len(self._blank)

    def _start(self, index: int) -> int:
        """Bytes from the first line to this one."""
        if self._sizes is None:
            sizes = map(_wide_size, self.lines) if self._wide else map(len, self.lines)
            self._sizes = list(accumulate(sizes, initial=0))
        ends = index * 2 if self._wide else index
        return self._sizes[index] + ends + (self._dropped if index else 0)

    def place_of(self, index: int) -> int:
        """How many lines with words stand before this one in the file."""
        return self.place + index - bisect_left(self._blank, index)

    def at(self, index: int) -> tuple[int | None, int, int]:
        """Number, offset and place of one line."""
        number = None if self.number is None else self.number + index
        return number, self.offset + self._start(index), self.place_of(index)

    def raw(self, index: int) -> Raw:
        """One line as it is."""
        return Raw(self.lines[index], *self.at(index), self.serial + index)

    def last_state(self, index: int) -> bytes:
        """One line, of a bar its last state; empty where it holds no words."""
        line = self.lines[index]
        if b"\r" in line:
            line = next((one for one in reversed(line.split(b"\r")) if one.strip()), b"")
        return b"" if line.isspace() else line

    def states(self, index: int) -> list[Raw]:
        """One line, a bar's states one by one; none without words."""
        data = self.lines[index]
        if b"\r" not in data:
            return [] if not data or data.isspace() else [self.raw(index)]
        raw = self.raw(index)
        out: list[Raw] = []
        offset = raw.offset
        for state in raw.data.split(b"\r"):
            if state and not state.isspace():
                out.append(Raw(state, raw.number, offset, raw.place, raw.serial))
            offset += _size(state, self._wide) + 1 + self._wide
        return out


class RawLines:
    """Turns the bytes of one file into blocks of raw lines."""

    def __init__(self) -> None:
        self.end = 0
        """Bytes from the start of the file to the end of what was fed or skipped."""
        self.count = 0
        """Lines that were given, the last one without an end among them."""
        self._at = 0
        self._number: int | None = 1
        self._place = 0
        self._rest = b""
        self._dropped = 0
        self._inside = False
        self._open_end = False
        self._wide: codecs.IncrementalDecoder | None = None

    @property
    def unfinished(self) -> bool:
        """The last line has no end (yet)."""
        return self._open_end or bool(self._rest)

    def feed(self, data: bytes, *, final: bool = False) -> list[Block]:
        """The lines that ``data`` finished; states of a bar that never ends a line, too.

        With ``final`` the last line is among them although it has no end, as far as it is not
        better told by :meth:`finish`.
        """
        if self.end == 0:
            self._wide = _wide_decoder(data)
            self._at = 2 if self._wide is not None and data[:2] in _MARKS else 0
            if data.startswith(_MARK):
                self.end = self._at = len(_MARK)
                data = data[len(_MARK) :]
        self.end += len(data)
        if self._wide is not None:
            data = self._wide.decode(data).encode("utf-8", "replace")
        if self._inside:
            data = self._behind_cut(data)
        lines = data.split(b"\n")
        last = lines.pop()
        self._open_end = final and bool(last) and bool(lines) and len(last) <= _BAR_HELD
        if self._open_end:
            blocks = [self._block([*lines, last], data)]
            last = b""
        else:
            blocks = [self._block(lines, data[: -len(last) - 1])] if lines else []
        self._rest += last
        if len(self._rest) > _BAR_HELD:
            blocks += self._shorten()
        return blocks

    def skip(self, count: int, number: int | None = None) -> list[Block]:
        """``count`` bytes are left out; ``number`` is the line in which the next byte stands."""
        blocks = self.finish()
        self.end += count
        self._at = self.end
        self._number = number
        self._inside = True
        return blocks

    def finish(self) -> list[Block]:
        """The last line, where the file ended without ``\\n``."""
        return [self._block([b""], b"")] if self._rest else []

    def _block(self, lines: list[bytes], text: bytes) -> Block:
        lines[0] = self._rest + lines[0]
        wide = self._wide is not None
        block = self._new(lines, self._rest + text)
        size = sum(map(_wide_size, lines)) if wide else len(self._rest) + len(text) - len(lines) + 1
        self._at += self._dropped + size + len(lines) * (1 + wide)
        self._place = block.end_place
        self.count += len(lines)
        if self._number is not None:
            self._number += len(lines)
        self._rest, self._dropped = b"", 0
        return block

    def _new(self, lines: list[bytes], text: bytes | None = None) -> Block:
        return Block(
            lines,
            number=self._number,
            offset=self._at,
            place=self._place,
            serial=self.count,
            wide=self._wide is not None,
            dropped=self._dropped,
            text=text,
        )

    def _behind_cut(self, data: bytes) -> bytes:
        """``data`` from where the first whole line, or state of a bar, begins."""
        ends = [at for at in (data.find(b"\n"), data.find(b"\r")) if at >= 0]
        wide = self._wide is not None
        if not ends:
            self._at += _size(data, wide)
            return b""
        cut = min(ends)
        if data[cut : cut + 1] == b"\n" and self._number is not None:
            self._number += 1
        self._at += _size(data[:cut], wide) + 1 + wide
        self._inside = False
        return data[cut + 1 :]

    def _shorten(self) -> list[Block]:
        wide = self._wide is not None
        blocks: list[Block] = []
        cut = self._rest.rfind(b"\r")
        if cut > 0:
            states, rest = self._rest[:cut], self._rest[cut + 1 :]
            blocks.append(self._new([states]))
            self._at += self._dropped + _size(states, wide) + 1 + wide
            self._place = blocks[-1].end_place
            self._rest, self._dropped = rest, 0
        text = self._rest.lstrip(b"\0")
        self._at += (len(self._rest) - len(text)) * (1 + wide)
        self._dropped += _size(text[_HELD:], wide)
        self._rest = text[:_HELD]
        return blocks


def _size(line: bytes, wide: bool) -> int:
    return _wide_size(line) if wide else len(line)


def _wide_size(line: bytes) -> int:
    return len(line.decode("utf-8", "replace").encode("utf-16-le", "replace"))


def _wide_decoder(data: bytes) -> codecs.IncrementalDecoder | None:
    name = wide_name(data)
    return None if name is None else codecs.getincrementaldecoder(name)("replace")


def wide_name(data: bytes) -> str | None:
    """What Python calls the UTF-16 that begins so, by its mark or the zero beside every letter.

    A mark without any zero behind it is none: a log of Latin-1 may begin with those two letters.
    """
    head = data[:400]
    if head[:2] in _MARKS and (0 in head[2:] or len(head) == 2):
        return MARKED
    if len(head) >= 8:
        odd, even = head[1::2], head[::2]
        if odd.count(0) > 0.8 * len(odd) and even.count(0) < 0.1 * len(even):
            return "utf-16-le"
        if even.count(0) > 0.8 * len(even) and odd.count(0) < 0.1 * len(odd):
            return "utf-16-be"
    return None
