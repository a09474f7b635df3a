"""What a chart draws. Pure; ``widgets/plot.py`` draws it."""

from dataclasses import dataclass

NOTHING = "nothing was seen yet"

Point = tuple[float, float | None]


@dataclass(frozen=True, slots=True)
class Series:
    """A line of a chart: ``(x, y)`` in order of x; y None is a gap."""

    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """``top`` is the upper end of y, None for the largest value; ``x_from`` and ``x_to`` are
    always the ends of x. ``nothing`` stands there while there is no value."""

    series: tuple[Series, ...]
    x_from: float
    x_to: float
    x_label: str
    top: float | None = None
    nothing: str = NOTHING
