"""What the Nodes screen costs the controller, counted by the meter that the header shows."""

from typing import Any

from slurmtop.collect.metered import MeteredRunner
from slurmtop.collect.poller import Poller
from slurmtop.collect.sinfo import NodeSource
from slurmtop.collect.squeue import QueueSource
from slurmtop.collect.who import Who
from slurmtop.model.ports import Command, Completed
from slurmtop.ui.screens.jobs import JobsScreen
from slurmtop.ui.screens.nodes import NodesScreen
from tests.fakes import settle
from tests.ui.harness import Bench

MARK = b"\x1eAbCdEf"


def metered_bench() -> tuple[Bench, MeteredRunner]:
    bench = Bench()

    def empty(command: Command) -> Completed:
        return Completed(0, b"", b"", bench.clock.now(), 0.1)

    bench.runner.on_call("squeue *", empty)
    bench.runner.on_call("sinfo *", empty)
    runner = MeteredRunner(bench.runner, bench.clock)
    me = Who(20017, "anna")

    def open_nodes(*, on_value: Any, on_health: Any) -> Any:
        return Poller(NodeSource(runner, mark=MARK), bench.clock, on_value, on_health)

    def open_queue(*, user: str | None, on_value: Any, on_health: Any) -> Any:
        source = QueueSource(runner, bench.clock, all_users=user is None, me=me, mark=MARK)
        return Poller(source, bench.clock, on_value, on_health)

    for name, value in (
        ("open_nodes", open_nodes),
        ("open_queue", open_queue),
        ("calls_last_minute", runner.calls_last_minute),
    ):
        object.__setattr__(bench.services, name, value)
    return bench, runner


async def test_jobs_and_nodes_together_stay_within_ten_requests_a_minute() -> None:
    bench, runner = metered_bench()
    app = bench.app()
    async with app.run_test(size=(100, 30)) as pilot:
        await bench.advance(pilot, 90)
        assert runner.calls_last_minute() <= 6
        assert runner.by_program["sinfo"] == 0
        await pilot.press("3")
        await settle()
        assert isinstance(app.screen, NodesScreen)
        most = 0
        for _ in range(300):
            await bench.clock.advance(1)
            most = max(most, runner.calls_last_minute())
        assert 6 < most <= 10
        assert 4 <= runner.by_program["sinfo"] <= 6


async def test_leaving_the_screen_stops_the_asking_and_coming_back_does_not_hurry_it() -> None:
    bench, runner = metered_bench()
    app = bench.app()
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("3")
        await bench.advance(pilot, 5)
        assert runner.by_program["sinfo"] == 1
        for _ in range(10):
            await pilot.press("escape", "3")
            await bench.advance(pilot, 1)
        assert runner.by_program["sinfo"] == 1
        await pilot.press("escape")
        assert isinstance(app.screen, JobsScreen)
        await bench.advance(pilot, 300)
        assert runner.by_program["sinfo"] == 1
        assert runner.calls_last_minute() <= 6
        await pilot.press("3")
        await bench.advance(pilot, 2)
        assert runner.by_program["sinfo"] == 2


async def test_a_controller_that_is_down_is_not_asked_at_every_visit() -> None:
    bench, runner = metered_bench()
    words = b"slurm_load_node error: Unable to contact slurm controller (connect failure)\n"
    bench.runner.on_call("sinfo *", lambda _command: Completed(1, b"", words, bench.clock.now(), 1))
    app = bench.app()
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("3")
        await bench.advance(pilot, 5)
        for _ in range(10):
            await pilot.press("escape", "3")
            await bench.advance(pilot, 1)
        assert runner.by_program["sinfo"] == 1
