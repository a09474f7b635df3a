"""Lines by their form: as written, but every digit a zero.

Source: any log. Thousands of its lines have few forms, for example these two have one::

    [rank3]: step 48213/100000 loss 2.41
    [rank5]: step 52117/100000 loss 1.98

No pattern of this wing tells one digit from another, so that what is found in a form stands at
the same place in all of its lines. All here is done for whole blocks at a time.
"""

from collections.abc import Collection, Container, Mapping, Sequence
from itertools import compress, repeat

_AS_ZERO = bytes.maketrans(b"123456789", b"0" * 9)


def form_of(line: bytes) -> bytes:
    """The line, or several, with every digit as a zero."""
    return line.translate(_AS_ZERO)


class Forms:
    """The forms of some lines, made when they are asked for. No line holds ``\\n``."""

    __slots__ = ("_kinds", "_lines", "_of", "_text")

    def __init__(self, lines: Sequence[bytes], text: bytes | None = None) -> None:
        self._lines = lines
        self._text = text
        self._of: list[bytes] | None = None
        self._kinds: Collection[bytes] | None = None

    @property
    def text(self) -> bytes:
        """The lines as they are, joined by ``\\n``."""
        if self._text is None:
            self._text = b"\n".join(self._lines)
        return self._text

    @property
    def of(self) -> list[bytes]:
        """One form for each line."""
        if self._of is None:
            self._of = form_of(self.text).split(b"\n") if self._lines else []
        return self._of

    @property
    def kinds(self) -> Collection[bytes]:
        """Each form once."""
        if self._kinds is None:
            self._kinds = set(self.of)
        return self._kinds

    def places(self, wanted: Container[bytes]) -> dict[bytes, list[int]]:
        """For each form that is wanted, where its lines are, in order."""
        out: dict[bytes, list[int]] = {}
        of = self.of
        for at in compress(range(len(of)), map(wanted.__contains__, of)):
            form = of[at]
            if form in out:
                out[form].append(at)
            else:
                out[form] = [at]
        return out

    def numbered(self, number_of: Mapping[bytes, int]) -> bytes:
        """For each line the number of its form, 1 to 255; 0 for a form that has none."""
        return bytes(map(number_of.get, self.of, repeat(0)))

    def behind(self, first: Sequence[bytes], wanted: Sequence[int]) -> "Forms":
        """Those of the lines ``first``, and then of the lines that stand at ``wanted``."""
        begin = Forms(first)
        whole = Forms(())
        whole._of = begin.of + list(map(self.of.__getitem__, wanted))
        # Those of other lines are looked at for nothing, and there may be one for each line.
        every = len(wanted) == len(self.of)
        whole._kinds = {*begin.kinds, *self.kinds} if every else set(whole._of)
        return whole
