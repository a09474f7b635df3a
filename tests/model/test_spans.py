"""Numbers that stand together, as spans."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.spans import span_text, spans_of


def test_neighbours_are_one_span() -> None:
    assert spans_of([5, 0, 2, 1, 1]) == ((0, 2), (5, 5))
    assert spans_of([]) == ()
    assert [span_text(span) for span in spans_of([5, 0, 2, 1])] == ["0-2", "5"]


@given(st.lists(st.integers(min_value=-50, max_value=50)))
def test_spans_hold_the_same_numbers(numbers: list[int]) -> None:
    spans = spans_of(numbers)
    assert [n for low, high in spans for n in range(low, high + 1)] == sorted(set(numbers))
    assert all(after[0] > before[1] + 1 for before, after in pairwise(spans))
