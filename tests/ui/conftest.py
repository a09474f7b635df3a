"""Fixtures of the screen tests."""

import pytest

from tests.ui.golden import Golden


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(bool(request.config.getoption("--update-golden")))
