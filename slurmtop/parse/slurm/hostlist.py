"""Slurm's host lists: ``login1,gpu[01-02,05]a,r[0-1]n[1-2]``."""

from collections.abc import Iterable, Iterator

from slurmtop.parse.slurm.words import NONE_WORDS

_SEPARATORS = ", \t\n"
_MAX_DIGITS = 18

#: One piece of a name: literal text, or the ranges of one bracket.
_Ranges = list["_Range"]


class HostlistError(ValueError):
    """The list is broken or too long; ``str()`` says where."""


class _Range:
    """``08-11:2``: the numbers ``low`` to ``high`` printed at least ``width`` wide."""

    __slots__ = ("low", "size", "step", "width")

    def __init__(self, text: str) -> None:
        span, colon, step_text = text.partition(":")
        low_text, dash, high_text = span.partition("-")
        if not dash:
            high_text = low_text
        for number in (low_text, high_text, *([step_text] if colon else [])):
            if len(number) > _MAX_DIGITS or not number.isascii() or not number.isdigit():
                raise HostlistError(f"no range of numbers: [{text[:60]}]")
        self.low = int(low_text)
        self.width = len(low_text)
        self.step = int(step_text) if colon else 1
        if not self.step or int(high_text) < self.low:
            raise HostlistError(f"a range that leads nowhere: [{text[:60]}]")
        self.size = (int(high_text) - self.low) // self.step + 1

    def __iter__(self) -> Iterator[str]:
        for place in range(self.size):
            yield str(self.low + place * self.step).zfill(self.width)


def _items(text: str) -> Iterator[str]:
    """Split at separators that are not inside brackets."""
    start = 0
    inside = False
    for place, char in enumerate(text):
        if char == "[":
            if inside:
                raise HostlistError(f"a bracket inside a bracket: {text[start : place + 1][:60]}")
            inside = True
        elif char == "]":
            if not inside:
                raise HostlistError(f"a closing bracket alone: {text[start : place + 1][:60]}")
            inside = False
        elif char in _SEPARATORS and not inside:
            if place > start:
                yield text[start:place]
            start = place + 1
    if inside:
        raise HostlistError(f"no closing bracket: {text[start:][:60]}")
    if start < len(text):
        yield text[start:]


def _pieces(item: str) -> list[str | _Ranges]:
    pieces: list[str | _Ranges] = []
    rest = item
    while rest:
        literal, bracket, tail = rest.partition("[")
        if literal:
            pieces.append(literal)
        if not bracket:
            break
        inner, _, rest = tail.partition("]")
        pieces.append([_Range(part) for part in inner.split(",")])
    return pieces


def _size(pieces: list[str | _Ranges]) -> int:
    size = 1
    for piece in pieces:
        if not isinstance(piece, str):
            size *= sum(part.size for part in piece)
    return size


def _names(pieces: list[str | _Ranges]) -> list[str]:
    names = [""]
    for piece in pieces:
        if isinstance(piece, str):
            names = [name + piece for name in names]
        else:
            numbers = [number for part in piece for number in part]
            names = [name + number for name in names for number in numbers]
    return names


def expand_hosts(text: str, limit: int = 65_536) -> tuple[str, ...]:
    """The names in a host list, in order, as ``scontrol show hostnames`` prints them.

    Padding follows the lower bound (``[08-11]``); several brackets make a cross product;
    a suffix after a bracket and a step (``[1-7:2]``) are understood. ``None assigned``,
    ``(null)``, ``n/a`` and the empty text are ``()``. Raises :class:`HostlistError` for a
    broken list and for more than ``limit`` names.
    """
    if text.strip() in NONE_WORDS:
        return ()
    parsed = [_pieces(item) for item in _items(text)]
    if sum(_size(pieces) for pieces in parsed) > limit:
        raise HostlistError(f"more than {limit} hosts: {text[:60]}")
    return tuple(name for pieces in parsed for name in _names(pieces))


def hosts_in(text: str | None, limit: int = 65_536) -> tuple[str, ...]:
    """As :func:`expand_hosts`; none where there is no list, or one that cannot be read."""
    try:
        return expand_hosts(text or "", limit)
    except HostlistError:
        return ()


def hosts_or_text(text: str) -> tuple[str, ...]:
    """For filters: a list that cannot be read is one name, found as it is written."""
    try:
        return expand_hosts(text)
    except HostlistError:
        return (text,)


def count_hosts(text: str) -> int | None:
    """How many names a host list has, without making them; None for a broken list."""
    if text.strip() in NONE_WORDS:
        return 0
    try:
        return sum(_size(_pieces(item)) for item in _items(text))
    except HostlistError:
        return None


def _split_number(name: str) -> tuple[str, str]:
    """``gpu08`` as ("gpu", "08")."""
    place = len(name)
    while place and "0" <= name[place - 1] <= "9" and len(name) - place < _MAX_DIGITS:
        place -= 1
    return name[:place], name[place:]


def compress_hosts(names: Iterable[str]) -> str:
    """The shortest plain spelling of some names, each once: ``gpu[01-03,07],login1``.

    The inverse of :func:`expand_hosts` up to order and repeats: prefixes stand in the order
    of their first name, numbers in rising order.
    """
    groups: dict[str, set[str]] = {}
    for name in names:
        prefix, number = _split_number(name)
        groups.setdefault(prefix, set()).add(number)
    return ",".join(item for prefix, numbers in groups.items() for item in _group(prefix, numbers))


def together(lists: Iterable[str | None]) -> tuple[str, ...] | None:
    """The hosts of several lists, each host once; None where a list is unknown or broken."""
    hosts: dict[str, None] = {}
    for text in lists:
        if text is None:
            return None
        try:
            hosts.update(dict.fromkeys(expand_hosts(text)))
        except HostlistError:
            return None
    return tuple(hosts)


def _group(prefix: str, numbers: set[str]) -> Iterator[str]:
    if "" in numbers:
        yield prefix
        numbers = numbers - {""}
    if not numbers:
        return
    runs: list[list[str]] = []
    for number in sorted(numbers, key=lambda text: (len(text), text)):
        run = runs[-1] if runs else None
        if run and str(int(run[-1]) + 1).zfill(len(run[0])) == number:
            run.append(number)
        else:
            runs.append([number])
    parts = [run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    if len(parts) == 1 and len(runs[0]) == 1:
        yield prefix + parts[0]
    else:
        yield f"{prefix}[{','.join(parts)}]"
