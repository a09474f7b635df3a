"""The one door to plotext: a chart as strips, drawn once for its size and its data.

plotext 6.1 ends the whole process (``std::bad_alloc``) on a NaN beside finite values and on
values far outside the limits of an axis. So nothing else may call it: here gaps split a series
into finite runs, values are held inside the limits, and the limits are always set.
"""

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType

from rich.ansi import AnsiDecoder
from rich.console import Console
from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

from slurmtop.ui.present.chart import Chart, Point
from slurmtop.ui.present.spans import wrap

#: Below this there is no room for axes.
_LEAST_WIDTH, _LEAST_HEIGHT = 20, 5
_MOST_WIDTH, _MOST_HEIGHT = 300, 100
_COLOURS = (12, 9, 10, 11, 13, 14)
UNAVAILABLE = "charts unavailable: plotext is not there or does not work"


def runs_of(
    points: Sequence[Point], low: float, high: float
) -> list[tuple[list[float], list[float]]]:
    """The finite pieces between gaps, held inside ``low`` and ``high``."""
    runs: list[tuple[list[float], list[float]]] = []
    fresh = True
    for x, y in points:
        if y is None or not math.isfinite(y) or not math.isfinite(x):
            fresh = True
            continue
        if fresh:
            runs.append(([], []))
            fresh = False
        runs[-1][0].append(x)
        runs[-1][1].append(min(high, max(low, y)))
    return runs


def draw(chart: Chart, width: int, height: int) -> str | None:
    """The chart as text with colour codes; None where it cannot be drawn: too small, no
    finite value, or plotext is not there."""
    if width < _LEAST_WIDTH or height < _LEAST_HEIGHT:
        return None
    plotext = _plotext()
    if plotext is None:
        return None
    values = [
        y for series in chart.series for _, y in series.points if y is not None and math.isfinite(y)
    ]
    if not values or not chart.x_from < chart.x_to:
        return None
    # Beyond this the ticks of an axis mean nothing any more.
    top = min(1e15, chart.top if chart.top is not None else max(values) * 1.1)
    low, high = 0.0, top if math.isfinite(top) and top > 0 else 1.0
    figure = plotext.figure
    figure.clear()
    plotext.terminal.limit(False, False)
    figure.theme("simple")
    figure.canvas("default")
    figure.plot_size(min(width, _MOST_WIDTH), min(height, _MOST_HEIGHT))
    for index, series in enumerate(chart.series):
        # Several lines are told apart by their digits, not by colour alone.
        symbol = "hd" if len(chart.series) == 1 else str(index + 1)
        marker = plotext.marker(symbol, _COLOURS[index % len(_COLOURS)])
        inside = [(x, y) for x, y in series.points if chart.x_from <= x <= chart.x_to]
        for xs, ys in runs_of(inside, low, high):
            signal = figure.signal(xs, ys, marker=marker)
            if len(xs) > 1:
                signal.lines(True)
            figure.draw(signal)
    figure.ruler("x").lim(chart.x_from, chart.x_to)
    figure.ruler("y").lim(low, high)
    figure.label(chart.x_label, "x")
    return str(figure.build().string())


def _plotext() -> ModuleType | None:
    """The library, loaded when the first chart is drawn."""
    try:
        return import_module("plotext")
    except Exception:
        # A native library may break in any way; that costs the chart only.
        return None


class PlotView(Widget):
    """Shows a :class:`Chart` that ``make`` hands out at every paint; drawn anew only where it or
    the size has changed."""

    DEFAULT_CSS = "PlotView { height: 1fr; }"

    def __init__(self, make: Callable[[], Chart], *, id: str) -> None:
        super().__init__(id=id)
        self._make = make
        self._key: object = None
        self._strips: list[Strip] = []

    def render_line(self, y: int) -> Strip:
        if y == 0:
            self._prepare()
        width = self.size.width
        strip = self._strips[y] if y < len(self._strips) else Strip.blank(width, self.rich_style)
        return strip.adjust_cell_length(width, self.rich_style)

    def _prepare(self) -> None:
        chart, (width, height) = self._make(), self.size
        key = (chart, width, height)
        if key == self._key:
            return
        self._key = key
        self._strips = self._draw(chart, width, height)

    def _draw(self, chart: Chart, width: int, height: int) -> list[Strip]:
        try:
            text = draw(chart, width, height)
        except Exception:
            # Whatever plotext raises costs the chart only.
            text = None
        if text is None:
            why = chart.nothing if _plotext() is not None else UNAVAILABLE
            if width < _LEAST_WIDTH or height < _LEAST_HEIGHT:
                why = "too small for a chart"
            return [
                Strip([Segment(line, self.rich_style)]) for line in wrap(f"  {why}", max(1, width))
            ]
        console = Console(width=max(1, width), force_terminal=True, color_system="truecolor")
        return [
            Strip(line.render(console, end="")).crop(0, width)
            for line in AnsiDecoder().decode(text)
        ]
