"""Numbers that stand together, as pairs of the first and the last: 0, 1, 2, 5 is 0-2, 5."""

from collections.abc import Iterable


def spans_of(numbers: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """(first, last) of each run of neighbours, rising; each number counts once."""
    spans: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if spans and number == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    return tuple(spans)


def span_text(span: tuple[int, int]) -> str:
    """``7`` or ``0-3``."""
    first, last = span
    return str(first) if first == last else f"{first}-{last}"
