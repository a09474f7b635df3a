"""Which lines may be NCCL's mass lines, told for all lines of a form at once.

Source: ``NCCL_DEBUG=INFO``; a process prints one line for each channel, ring and tree::

    node-a:815:864 [0] NCCL INFO Channel 00/24 : 0[0] -> 1[1] via P2P/CUMEM
    node-a:815:864 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1
"""

import re
from collections.abc import Iterable, Sequence
from enum import Enum, auto
from typing import NamedTuple

#: Rings, trees and channels: one of each kind of a process tells all.
WIRING = re.compile(
    rb"(?:(?:Channel|Ring) \d{1,4}(?:/\d{1,4})? : \d{1,7}(?:\[\w{1,12}\])? -> "
    rb"\d{1,7}(?:\[\w{1,12}\])?(?: \[\w{4,7}\])? via ([^:]{1,120})"
    rb"|((?:Channel|Ring|Trees?|NVLS Trees|CollNet|Pattern)\b)[^>:]{0,40}[ :]"
    rb"[-\d >/\[\]:|]{0,400})[ \r]*$"
)
#: What is left of a call where a line is cut or torn.
BROKEN = re.compile(
    rb"INFO (?:All\w{1,12}|Reduce\w{0,10}|Broadcast|Send|Recv|Gather|Scatter)(?:: ?o?p?C?o?u?n?)?$"
    rb"|sendbuff 0x|recvbuff 0x| comm 0x[0-9a-f]{1,16} \[nranks=\d{1,10}\] stream"
)
_DIGITS = re.compile(rb"[\d()]+")
_WORD = re.compile(rb"\S+")
_MOST_FORMS = 20_000
_LONGEST_FORM = 400


class Told(Enum):
    """What all lines of a form are."""

    NONE_OF_THESE = auto()
    TO_BE_LOOKED_AT = auto()


class Wiring(NamedTuple):
    """Lines of a ring, a tree or a channel: the word in them that names their process, and their
    kind."""

    start: int
    end: int
    kind: bytes

    def firsts(
        self, lines: Sequence[bytes], places: Sequence[int]
    ) -> Iterable[tuple[int, tuple[bytes, bytes]]]:
        """Of each process the first of these lines: its place, and (process, kind)."""
        start, end, kind = self
        writers = [lines[at][start:end] for at in reversed(places)]
        first = dict(zip(writers, reversed(places), strict=True))
        return [(at, (writer, kind)) for writer, at in first.items()]


def wiring_of(line: bytes) -> Wiring | None:
    """What the line, or a form, tells of its wiring; None where it is another one."""
    at = line.find(b"INFO ")
    found = WIRING.match(line, at + 5) if at >= 0 else None
    if found is None:
        return None
    words = [word.span() for word in _WORD.finditer(line, 0, at)]
    start, end = 0, at
    if len(words) > 2:
        # In front of ``INFO`` stands the thread, or the thread and ``NCCL``.
        named = line[slice(*words[-1])] == b"NCCL"
        start, end = words[-3 if named else -2]
    return Wiring(start, end, _DIGITS.sub(b"", found[1] or found[2]))


def may_be_broken(line: bytes) -> bool:
    """Does a part of a call stand in this line, or may one in lines of this form?"""
    if b"INFO " in line or b"buff 0x" in line or b"[nranks=" in line:
        return BROKEN.search(line) is not None
    return False


#: What is known of all lines of a form, whatever log they stand in.
_KNOWN: dict[bytes, Wiring | Told] = {}


def told_of(form: bytes) -> Wiring | Told:
    """What all lines of this form are."""
    told = _KNOWN.get(form)
    if told is None:
        told = _told_of(form)
        if len(form) <= _LONGEST_FORM:
            if len(_KNOWN) >= _MOST_FORMS:
                _KNOWN.clear()
            _KNOWN[form] = told
    return told


def _told_of(form: bytes) -> Wiring | Told:
    if b"opCount" in form:
        return Told.TO_BE_LOOKED_AT
    wiring = wiring_of(form)
    if wiring is not None:
        return wiring
    if may_be_broken(form) or b"NCCL CALL nccl" in form:
        return Told.TO_BE_LOOKED_AT
    return Told.NONE_OF_THESE
