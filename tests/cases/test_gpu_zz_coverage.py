"""Every value and every sentence of the GPU cases has its test."""

import importlib
from pathlib import Path

import pytest

from tests.cases.support import GPU

for _path in sorted(Path(__file__).parent.glob("test_gpu_*.py")):
    if _path.stem != Path(__file__).stem:
        importlib.import_module(f"tests.cases.{_path.stem}")


@pytest.mark.parametrize("number", GPU.numbers())
def test_every_case_is_covered(number: str) -> None:
    case = GPU.load(number)
    assert case.values or case.sentences, "a case that says nothing"
    assert set(case.values) - GPU.held_values == set(), "values without a test"
    held = {text for at, text in GPU.held_sentences if at == number}
    assert set(case.sentences) - held == set(), "sentences without a test"


def test_the_register_names_known_cases_only() -> None:
    assert {number for number, _ in GPU.held_sentences} <= set(GPU.numbers())
    assert {path.partition("/")[0] for path in GPU.held_values} <= set(GPU.numbers())
