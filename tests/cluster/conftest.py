"""Marks every test of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.fixtures import Cluster
from tests.cluster.training import Training, trains

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        # The hook is given the items of all folders.
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="module")
def training(cluster: Cluster) -> Iterator[Training]:
    """Eight ranks of torchrun on four nodes, for all tests of one file."""
    with trains(cluster) as found:
        yield found
