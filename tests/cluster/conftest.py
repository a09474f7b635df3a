"""Marks every test of this folder and gives it the fixtures of the real cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.fixtures import cluster as cluster
from tests.cluster.fixtures import faults as faults
from tests.cluster.fixtures import time_limit_job as time_limit_job

HERE = Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cluster: needs the real Slurm test cluster (tests/cluster)")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        # The hook is given the items of all folders.
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.cluster)
