"""Batch scripts as people write them, each against what is read out of it."""

from pathlib import Path

import pytest

from slurmtop.jobscript.prepared import prepared_for
from slurmtop.jobscript.reading import read_script
from tests.jobscript.summary import summary

SCRIPTS = Path(__file__).parent / "scripts"
NAMES = sorted(path.stem for path in SCRIPTS.glob("*.sbatch"))


def expected() -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    name = ""
    for line in (SCRIPTS / "expected.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            out[name].append(line.strip())
        else:
            name = line
            out[name] = []
    return out


def test_each_script_is_told_once() -> None:
    assert sorted(expected()) == NAMES
    assert len(NAMES) > 25


@pytest.mark.parametrize("name", NAMES)
def test_a_script_is_read_as_expected(name: str) -> None:
    reading = read_script((SCRIPTS / f"{name}.sbatch").read_text(encoding="utf-8"))
    assert [prepared_for(reading), *summary(reading)] == expected()[name]


def test_a_text_in_a_here_document_starts_nothing() -> None:
    reading = read_script((SCRIPTS / "heredoc.sbatch").read_text(encoding="utf-8"))
    assert [launch.line for launch in reading.launches] == [6]
    assert reading.traps == ()
