"""Marks every test of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        # The hook is given the items of all folders.
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.cluster)
