"""Which lines show what a model wrote."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.parse.logs.model_words import is_of_a_model


@pytest.mark.parametrize(
    "line",
    [
        "Generated: CUDA out of memory",
        "2031-05-05 10:00:01,123 - INFO - Generated text: 'Killed'",
        "[rank0]: [INFO] Sample 3: Traceback (most recent call last):",
        "Assistant: your traceback is",
    ],
)
def test_words_of_a_model_are_told_by_what_stands_in_front(line: str) -> None:
    assert is_of_a_model(line)


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: error in prediction: CUDA out of memory",
        "Generated 3 samples",
        "Completion: 45%",
        "[rank3]: torch.OutOfMemoryError: CUDA out of memory",
        "Generated:",
    ],
)
def test_other_lines_are_not_of_a_model(line: str) -> None:
    assert not is_of_a_model(line)


@given(st.text(alphabet="[(2:.,) INFO-|Generatd", max_size=400))
def test_any_line_is_told(line: str) -> None:
    is_of_a_model(line)
