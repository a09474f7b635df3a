"""Every value and every sentence of the cases has its test, and nothing stands for nothing."""

import importlib
from pathlib import Path

import pytest

from tests.cases.support import (
    HELD_SENTENCES,
    HELD_VALUES,
    UNTESTABLE,
    load,
    numbers,
)

for _path in sorted(Path(__file__).parent.glob("test_slurm_*.py")):
    if _path.stem != Path(__file__).stem:
        importlib.import_module(f"tests.cases.{_path.stem}")


@pytest.mark.parametrize("number", numbers())
def test_every_case_is_covered(number: str) -> None:
    case = load(number)
    assert case.values or case.sentences, "a case that says nothing"
    assert set(case.values) - HELD_VALUES == set(), "values without a test"
    untestable = UNTESTABLE.get(number, {})
    held = {text for at, text in HELD_SENTENCES if at == number}
    left = set(case.sentences) - held - set(untestable)
    assert left == set(), "sentences without a test"
    assert set(untestable) <= set(case.sentences) - held, "not needed any more"


def test_the_register_names_known_cases_only() -> None:
    assert {number for number, _ in HELD_SENTENCES} <= set(numbers())
    assert {path.partition("/")[0] for path in HELD_VALUES} <= set(numbers())
    assert set(UNTESTABLE) <= set(numbers())
