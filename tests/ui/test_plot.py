"""The door to plotext: nothing that stands in a history may end the process."""

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmtop.ui.present.chart import Chart, Series
from slurmtop.ui.present.spark import spark
from slurmtop.ui.widgets.plot import draw, runs_of

ROOT = Path(__file__).resolve().parents[2]


def make_chart(*series: tuple[tuple[float, float | None], ...], top: float | None = 100.0) -> Chart:
    return Chart(
        series=tuple(map(Series, series)), x_from=-60.0, x_to=0.0, x_label="minutes ago", top=top
    )


numbers = st.one_of(
    st.none(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -1.0, 1e300, -1e300, 1e7, 5e-324]),
)


@given(st.lists(numbers), st.floats(-1e6, 1e6), st.floats(0, 1e6))
def test_runs_hold_every_value_once_inside_the_limits(
    values: list[float | None], low: float, span: float
) -> None:
    points = [(float(x), y) for x, y in enumerate(values)]
    runs = runs_of(points, low, low + span)
    flat = [x for xs, _ in runs for x in xs]
    assert flat == [float(x) for x, y in enumerate(values) if y is not None]
    assert all(low <= y <= low + span for _, ys in runs for y in ys)
    assert all(len(xs) == len(ys) > 0 for xs, ys in runs)


def test_nan_and_infinity_are_gaps() -> None:
    points = [(0.0, 1.0), (1.0, math.nan), (2.0, 2.0), (3.0, math.inf), (4.0, 3.0)]
    assert runs_of(points, 0.0, 10.0) == [([0.0], [1.0]), ([2.0], [2.0]), ([4.0], [3.0])]


#: Drawn in a child: what goes wrong in plotext ends the whole process.
_HOSTILE = """
import itertools, math, random
from slurmtop.ui.present.chart import Chart, Series
from slurmtop.ui.widgets.plot import draw
odd = [None, math.nan, math.inf, -math.inf, 1e300, -1e300, 1e7, 1e8, -5.0, 0.0, 5e-324, 97.0]
chance = random.Random(7)
for count, (w, h), top in itertools.product(
    range(5), [(0, 0), (1, 1), (20, 5), (78, 16), (150, 45), (400, 120)], [None, 100.0, 1.0, 0.0]
):
    series = tuple(
        Series(tuple((-60 + i / 6, chance.choice(odd)) for i in range(chance.randrange(60))))
        for _ in range(count)
    )
    text = draw(Chart(series=series, x_from=-60.0, x_to=0.0, x_label="m", top=top), w, h)
    assert text is None or len(text.splitlines()) <= max(1, h)
print("alive")
"""


def test_extreme_values_do_not_end_the_process() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _HOSTILE],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == "alive\n", done.stderr[-2000:]


def test_a_chart_has_its_axes_and_its_lines() -> None:
    one = tuple((-60.0 + n, 50.0) for n in range(61))
    two = tuple((-60.0 + n, 90.0) for n in range(61))
    text = draw(make_chart(one, two), 78, 16)
    assert text is not None
    assert "minutes ago" in text
    assert "100" in text
    assert "1" * 10 in text.replace("\x1b[0m", "")
    assert len(text.splitlines()) == 16


@pytest.mark.parametrize("points", [(), ((-1.0, None),), ((-1.0, math.nan),)])
def test_nothing_to_draw_is_nothing(points: tuple[tuple[float, float | None], ...]) -> None:
    assert draw(make_chart(points), 78, 16) is None


@settings(max_examples=50)
@given(st.lists(numbers, max_size=40), st.sampled_from([None, 0.0, 1.0, 100.0]))
def test_a_sparkline_has_a_cell_a_value(values: list[float | None], full: float | None) -> None:
    text = spark(values, full=full)
    assert len(text) == len(values)
    assert all((char == " ") == (value is None) for char, value in zip(text, values, strict=True))


def test_a_sparkline_tells_nothing_from_zero() -> None:
    assert spark((None, 0.0, 50.0, 100.0), full=100.0) == " ▁▅█"
    assert spark((1.0, 2.0)) == "▅█"
