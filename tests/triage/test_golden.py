"""The words for every state, as reviewed text. ``SLURMTOP_UPDATE_GOLDEN=1`` rewrites them."""

import os
from pathlib import Path

import pytest

from slurmtop.model.text import cell_width
from slurmtop.triage.why import explain_job, known_anywhere
from slurmtop.triage.words import copy_block, first_line, four_lines, who_text
from tests.triage.builders import scenarios

GOLDEN = Path(__file__).parent / "golden"
SCENARIOS = scenarios()


def _text(name: str) -> str:
    verdict = explain_job(SCENARIOS[name])
    head = (
        f"state {verdict.state}, class {verdict.cls}, ended by {verdict.ended_by},"
        f" confidence {verdict.confidence}, known {known_anywhere(SCENARIOS[name])}"
    )
    block = copy_block(verdict, version="0.1.0", slurm_version="24.11.5")
    return "\n".join([head, *four_lines(verdict), "--", block])


@pytest.mark.parametrize("name", SCENARIOS)
def test_words_of_every_state(name: str) -> None:
    path = GOLDEN / f"{name}.txt"
    text = _text(name)
    if os.environ.get("SLURMTOP_UPDATE_GOLDEN") == "1" and "CI" not in os.environ:
        path.write_text(text)
    assert text == path.read_text()


def test_no_golden_without_scenario() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(SCENARIOS)


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("width", [0, 5, 20, 40, 80, 200])
def test_four_lines_fit(name: str, width: int) -> None:
    lines = four_lines(explain_job(SCENARIOS[name]), width)
    assert len(lines) == 4
    assert all(cell_width(line) <= width for line in lines)


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_first_line_is_the_same_everywhere(name: str) -> None:
    verdict = explain_job(SCENARIOS[name])
    assert four_lines(verdict, 400)[0] == f"what   {first_line(verdict)}"
    assert who_text(verdict) in four_lines(verdict, 400)[1]
