"""A home and stand-ins for Slurm's programs."""

from pathlib import Path

import pytest

from tests.cli.stand_ins import StandIns, current_name


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def slurm(tmp_path: Path) -> StandIns:
    return StandIns(tmp_path / "bin", current_name())
