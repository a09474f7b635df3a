"""What the app costs the controller, counted by the controller itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.desk import Desk, open_desk
from tests.cluster.faults import Faults
from tests.cluster.fixtures import Cluster


@pytest.fixture(scope="module")
def job(cluster: Cluster) -> Iterator[str]:
    made = cluster.submit("echo step 1/10; sleep 900", job_name=f"{cluster.tag}-counted")
    cluster.wait_state(made, "RUNNING")
    yield made
    cluster.run("scancel", made, check=False)


class Counter:
    """RPCs of alice since the last look; nobody else is at work under her name."""

    def __init__(self, cluster: Cluster, faults: Faults) -> None:
        self._user, self._faults = cluster.user, faults
        self.new()

    def new(self) -> int:
        """How many since the last call."""
        count = self._faults.rpc_counts().get(self._user, 0)
        since, self._last = count - getattr(self, "_last", count), count
        return since


async def _polls(desk: Desk, count: int) -> None:
    """Wait for ``count`` more answers of the queue, and until the last has been taken in."""
    wanted = len(desk.wire.answers_of("squeue")) + count
    await desk.until(f"{count} polls", lambda: len(desk.wire.answers_of("squeue")) >= wanted)
    await desk.pilot.pause()


@pytest.mark.parametrize("all_users", [False, True])
async def test_a_poll_is_two_rpcs(
    cluster: Cluster, job: str, faults: Faults, tmp_path: Path, all_users: bool
) -> None:
    async with open_desk(tmp_path, all_users=all_users) as desk:
        await _polls(desk, 1)
        counter = Counter(cluster, faults)
        metered = desk.wiring.runner.total
        before = len(desk.wire.asked)
        await _polls(desk, 3)
        spent = counter.new()
        asked = desk.wire.asked[before:]
        assert {argv[0] for argv in asked} == {"squeue"}, "an idle app asks for the queue alone"
        assert 0 < spent <= 2 * len(asked)
        # The figure in the header is the controller's own.
        assert desk.wiring.runner.total - metered == spent


async def test_opening_a_job_is_at_most_three(
    cluster: Cluster, job: str, faults: Faults, tmp_path: Path
) -> None:
    async with open_desk(tmp_path, interval_s=600) as desk:
        await desk.go_to(job)
        counter = Counter(cluster, faults)
        await desk.open_job(job)
        await desk.shows("step 1 of 10")
        assert 0 < counter.new() <= 3
        await desk.show_tab("Logs")
        await desk.shows("step 1/10")
        await desk.press("escape")
        assert counter.new() == 0, "a log is read, not asked for"
        await desk.open_job(job)
        await desk.show_tab("Script")
        await desk.shows("#!/bin/sh")
        assert counter.new() <= 4, "the script is one more"


async def test_a_resting_job_screen_adds_nothing(
    cluster: Cluster, job: str, faults: Faults, tmp_path: Path
) -> None:
    # Its log is quiet: nobody is sent to its nodes here.
    async with open_desk(tmp_path, node_access="off") as desk:
        await desk.open_job(job)
        await desk.shows("step 1 of 10")
        before = len(desk.wire.asked)
        await _polls(desk, 3)
        assert {argv[0] for argv in desk.wire.asked[before:]} == {"squeue"}


async def test_the_refresh_key_is_held_to_two_seconds(
    cluster: Cluster, job: str, faults: Faults, tmp_path: Path
) -> None:
    async with open_desk(tmp_path, interval_s=600) as desk:
        counter = Counter(cluster, faults)
        asked = len(desk.wire.asked_of("squeue"))
        answered = len(desk.wire.answers_of("squeue"))
        begun = desk.app.services.clock.monotonic()
        for _ in range(20):
            await desk.press("r")
        await desk.until(
            "an answer to the key", lambda: len(desk.wire.answers_of("squeue")) > answered
        )
        took_s = desk.app.services.clock.monotonic() - begun
        most = 1 + int(took_s // 2)
        assert 1 <= len(desk.wire.asked_of("squeue")) - asked <= most
        assert counter.new() <= 2 * most
