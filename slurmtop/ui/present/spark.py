"""Small graphs out of block characters; a gap stays a gap. Pure."""

from collections.abc import Sequence

_LEVELS = "▁▂▃▄▅▆▇█"
GAP = " "


def spark(values: Sequence[float | None], *, full: float | None = None) -> str:
    """One cell a value, the lowest block for 0 and a blank where nothing is known.

    ``full`` is the value of the highest block; None takes the largest value there is.
    """
    known = [value for value in values if value is not None]
    top = full if full is not None else max(known, default=0.0)
    return "".join(GAP if value is None else _block(value, top) for value in values)


def _block(value: float, top: float) -> str:
    if top <= 0 or value <= 0:
        return _LEVELS[0]
    # Cut first: a share beyond all measure would not fit a number.
    return _LEVELS[min(int(min(value / top, 1.0) * len(_LEVELS)), len(_LEVELS) - 1)]
