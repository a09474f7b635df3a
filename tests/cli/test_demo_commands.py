"""The commands that act, on the simulated cluster: what they did is seen in its queue."""

import asyncio
from collections.abc import Sequence

import pytest

from slurmtop.cli.action_report import Report
from slurmtop.cli.console import Console
from slurmtop.cli.control import Doing, read_wish
from slurmtop.cli.demo import NoLog, open_demo
from slurmtop.cli.options import parse_arguments
from slurmtop.cli.wiring import Wiring
from slurmtop.cli.world import make_world
from slurmtop.control import plan
from slurmtop.control.action_log import Entry
from slurmtop.control.actions import Asker
from slurmtop.control.execute import Executor
from slurmtop.control.read_back import QueueReadBack
from slurmtop.model.job import Job
from tests.fakes import FakeClock


class Quiet(Console):
    """Nobody at a terminal; ``told`` is what a person would have read."""

    def __init__(self) -> None:
        super().__init__()
        self.can_ask = False
        self.told: list[str] = []

    def tell(self, line: str) -> None:
        self.told.append(line)


class Desk:
    """One simulated cluster and whoever types commands at it."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.wiring: Wiring = open_demo("busy", 1.0)
        self.console = Quiet()

    async def type(
        self, *words: str, read_only: bool = False, read_only_from: str = "", log: object = None
    ) -> Report:
        wish, _ = read_wish(parse_arguments([*words, "--yes"]))
        executor = Executor(
            self.wiring.runner,
            self.wiring.clock,
            log or NoLog(),  # type: ignore[arg-type]
            read_only=read_only,
            read_back=QueueReadBack(self.wiring.runner),
            dry_run=wish.dry_run,
        )
        world = make_world(self.wiring)
        doing = Doing(self.wiring, world, executor, self.console, wish, read_only_from)
        task = asyncio.ensure_future(doing.run())
        for _ in range(600):
            if task.done():
                break
            await self.clock.advance(0.5)
        return await task

    async def queue(self) -> dict[str, Job]:
        answer = await self.wiring.queue_source(all_users=False).fetch()
        return {job.key.id: job for job in answer.rows}

    @property
    def commands(self) -> Sequence[str]:
        """Runs of each program that can act."""
        runs = self.wiring.runner.recent()
        return [
            " ".join(ran.argv)
            for ran in reversed(runs)
            if (ran.argv[0] == "scancel" and "--version" not in ran.argv)
            or (ran.argv[0] == "scontrol" and not {"show", "write"} & set(ran.argv))
        ]


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    clock = FakeClock()
    monkeypatch.setattr("slurmtop.cli.demo.SystemClock", lambda: clock)
    return Desk(clock)


def outcomes(report: Report) -> dict[str, str]:
    return {job.id: job.outcome for job in report.jobs}


async def test_cancel_two(desk: Desk) -> None:
    report = await desk.type("cancel", "4910", "4811")
    assert (outcomes(report), report.status) == ({"4910": "done", "4811": "done"}, 0)
    queue = await desk.queue()
    assert {queue[id].state.base for id in ("4910", "4811")} == {"CANCELLED"}


async def test_hold_and_release(desk: Desk) -> None:
    report = await desk.type("hold", "4910")
    assert outcomes(report) == {"4910": "done"}
    held = (await desk.queue())["4910"]
    assert (held.priority, held.reason) == (0, "JobHeldUser")
    report = await desk.type("release", "4910", "4914")
    assert outcomes(report) == {"4910": "done", "4914": "done"}
    assert ((await desk.queue())["4910"].priority or 0) > 0


async def test_requeue_and_requeue_with_hold(desk: Desk) -> None:
    report = await desk.type("requeue", "4811")
    assert outcomes(report) == {"4811": "done"}, report
    assert (await desk.queue())["4811"].restarts == 1
    report = await desk.type("requeue", "4822", "--hold")
    assert outcomes(report) == {"4822": "done"}, report
    job = (await desk.queue())["4822"]
    assert (job.state.word, job.priority) == ("PENDING", 0)


async def test_tasks_of_an_array_by_number(desk: Desk) -> None:
    report = await desk.type("cancel", "4830_[75-78]", "4830_2000")
    found = outcomes(report)
    assert found.pop("4830_2000") == "no_such_job"
    assert set(found.values()) == {"done"}, report
    assert desk.commands == ["scancel --ctld 4830_[75-78]"]
    queue = await desk.queue()
    assert queue["4830_75"].state.base == "CANCELLED"
    rest = queue["4830_[*]"].id.tasks
    assert rest is not None
    assert int(rest.text.partition("-")[0]) > 78
    assert queue["4830_74"].state.base != "CANCELLED"


async def test_a_requeue_of_an_array_runs_no_completed_task_again(desk: Desk) -> None:
    before = await desk.queue()
    failed = {id for id, job in before.items() if id.startswith("4830_") and _failed(job)}
    assert failed
    report = await desk.type("requeue", "4830")
    assert any("failed task" in line for line in desk.console.told)
    after = await desk.queue()
    again = {id for id, job in after.items() if job.restarts and id.startswith("4830_")}
    assert again == failed, report
    assert report.status == 0


def _failed(job: Job) -> bool:
    return job.state.base in ("FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL")


async def test_a_part_of_a_het_job_stands_for_all_of_it(desk: Desk) -> None:
    report = await desk.type("cancel", "4815+1")
    assert report.status == 0
    queue = await desk.queue()
    assert {queue[id].state.base for id in ("4815+0", "4815+1")} == {"CANCELLED"}


async def test_a_signal_and_a_step(desk: Desk) -> None:
    report = await desk.type("signal", "4811", "--signal", "USR1")
    assert desk.commands[0] == "scancel --ctld --signal=USR1 4811"
    assert [job.id for job in report.jobs] == ["4811"]
    report = await desk.type("cancel", "4811.99")
    assert outcomes(report) == {"4811.99": "no_such_job"}


async def test_a_job_of_somebody_else_is_not_tried(desk: Desk) -> None:
    report = await desk.type("hold", "4920", "4910")
    assert outcomes(report) == {"4910": "done", "4920": "refused"}
    assert report.status == 1
    assert "dave" in next(job.sentence for job in report.jobs if job.id == "4920")
    assert desk.commands == ["scontrol hold 4910"]
    asked = [ran for ran in desk.wiring.runner.recent() if ran.argv[0] == "sacctmgr"]
    assert len(asked) == 1


async def test_refusals_are_told_job_by_job(desk: Desk) -> None:
    report = await desk.type("signal", "4910", "4811", "77", "--signal", "USR2")
    found = outcomes(report)
    assert found["4910"] == "refused"
    assert found["77"] == "no_such_job"
    assert desk.commands == ["scancel --ctld --signal=USR2 4811"]


async def test_a_whole_array_that_cannot_be_meant_is_one_line(desk: Desk) -> None:
    report = await desk.type("release", "4830")
    assert [job.id for job in report.jobs] == ["4830"]
    assert report.jobs[0].outcome == "refused"
    assert desk.commands == []


@pytest.mark.parametrize(
    "words",
    [
        ("cancel", "4811"),
        ("requeue", "4811"),
        ("requeue", "4811", "--hold"),
        ("hold", "4910"),
        ("release", "4914"),
        ("signal", "4811", "--signal", "USR1"),
        ("cancel", "4811.0"),
    ],
)
async def test_read_only_is_refused_twice(
    desk: Desk, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await desk.type(*words, read_only=True, read_only_from="/etc/slurmtop/config.yaml")
    assert first.status == 1
    assert first.refused is not None
    assert "/etc/slurmtop/config.yaml" in first.refused
    assert "set read_only: false in your own settings" in first.refused
    assert list(desk.wiring.runner.recent()) == []
    # Were the plan to forget it, the executor would not.
    second = await desk.type(*words, read_only=True)
    assert second.status == 1
    assert desk.commands == []
    if second.commands:
        assert second.refused is not None
        assert "read-only" in second.refused


async def test_read_only_is_the_word_of_the_plan(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    original = plan.first_refusal

    def spy(jobs: Sequence[Job], asker: Asker, verb: str) -> object:
        asked.append(asker.read_only)
        return original(jobs, asker, verb)

    monkeypatch.setattr("slurmtop.cli.control.first_refusal", spy)
    await desk.type("cancel", "4811", read_only=True, read_only_from="--read-only")
    assert asked == [True]


class FullDisk:
    """A log that cannot be written."""

    def record(self, entry: Entry) -> str | None:
        return "this action could not be written to the log of actions: the disk is full"


async def test_without_a_log_nothing_is_done_unless_it_was_said(desk: Desk) -> None:
    report = await desk.type("cancel", "4811", log=FullDisk())
    assert (report.status, desk.commands) == (1, [])
    assert report.log_trouble is not None
    assert report.refused is not None
    assert "--without-log" in report.refused
    report = await desk.type("cancel", "4811", "--without-log", log=FullDisk())
    assert report.status == 0
    assert report.log_trouble is not None


async def test_a_dry_run_changes_nothing(desk: Desk) -> None:
    before = await desk.queue()
    report = await desk.type("requeue", "4811", "--dry-run")
    assert report.status == 0
    assert report.command_lines == ("scontrol requeue 4811",)
    assert desk.commands == []
    assert (await desk.queue())["4811"].state == before["4811"].state
