"""The facts of one job: from every source, within the budget, whoever is silent."""

import asyncio
from datetime import UTC, datetime

import pytest

from slurmtop.collect.clock import cancel_and_wait, spawn
from slurmtop.collect.facts import gather_job_facts
from slurmtop.collect.sacct import Accounting
from slurmtop.collect.who import Who
from slurmtop.model.facts import JobFacts, LogStatus
from slurmtop.model.ports import Command, Completed, FileTimeout, RunnerError
from slurmtop.parse.slurm.sacct import SACCT_FIELDS
from tests.collect.slurm_forms import MARK, SACCT_SEPARATOR, queue_record
from tests.fakes import START, FakeRunner, settle

UNKNOWN = "slurm_load_jobs error: Invalid job id specified\n"
DOWN = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"
LOG = "/w/slurm-4711.out"


def block(id: str = "4711", state: str = "RUNNING", **fields: str) -> str:
    """The lines of ``scontrol show job`` that are read here."""
    values = {"name": "train", "out": f"/w/slurm-{id}.out", "exit": "0:0", "ids": ""} | fields
    return (
        f"JobId={id} {values['ids']}JobName={values['name']}\n"
        "   UserId=anna(1001) GroupId=ml(100) MCS_label=N/A\n"
        f"   JobState={state} Reason={values.get('reason', 'None')} Dependency=(null)\n"
        f"   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode={values['exit']}\n"
        f"   DerivedExitCode={values.get('derived', '0:0')}\n"
        "   SubmitTime=2031-05-05T10:00:00 EligibleTime=2031-05-05T10:00:00\n"
        "   StartTime=2031-05-05T11:00:00 EndTime=Unknown Deadline=N/A\n"
        "   Partition=gpu AllocNode:Sid=login:77\n"
        "   NodeList=gpu[01-02]\n"
        "   WorkDir=/w\n"
        f"   StdErr={values.get('err', values['out'])}\n"
        "   StdIn=/dev/null\n"
        f"   StdOut={values['out']}\n\n"
    )


def accounting_row(id: str, **values: str) -> str:
    """One row of sacct, with empty fields unless they are given by sacct's own names."""
    given = {"JobID": id, "JobIDRaw": id.split("_")[0]} | values
    return SACCT_SEPARATOR.join(given.get(name, "") for name, _ in SACCT_FIELDS) + "\n"


ENDED_ROWS = accounting_row(
    "4711",
    JobName="train",
    User="anna",
    State="FAILED",
    ExitCode="1:0",
    Submit="2031-05-05T10:00:00",
    Start="2031-05-05T10:30:00",
    End="2031-05-05T11:30:00",
    WorkDir="/w",
) + accounting_row("4711.batch", JobName="batch", State="FAILED", ExitCode="1:0")


@pytest.fixture
def runner() -> FakeRunner:
    """A cluster on which job 4711 runs and writes a log."""
    made = FakeRunner()
    made.on("squeue*", queue_record())
    made.on("scontrol*show job*", block())
    made.on("sacct*", "")
    made.files[LOG] = b"step 48213/100000\n"
    return made


async def gather(runner: FakeRunner, asked: str = "4711", **options: object) -> JobFacts:
    accounting = options.pop("accounting", Accounting(runner, mark=MARK))
    return await gather_job_facts(
        runner,
        runner.clock,
        asked,
        mark=MARK,
        accounting=accounting,  # type: ignore[arg-type]
        **options,  # type: ignore[arg-type]
    )


def programs(runner: FakeRunner) -> list[str]:
    return [call.argv[0] for call in runner.calls]


async def test_a_running_job_costs_two_commands_and_its_log(runner: FakeRunner) -> None:
    facts = await gather(runner, me=Who(1001, "anna"))
    assert sorted(programs(runner)) == ["scontrol", "squeue"]
    assert facts.job is not None
    assert facts.job.key.id == "4711"
    assert facts.detail is not None
    assert (facts.controller_answered, facts.accounting_answered) == (True, None)
    (log,) = facts.logs
    assert (log.label, log.path, log.status) == ("stdout", LOG, LogStatus.READ)
    assert log.progress is not None
    assert (log.progress.step, log.progress.total) == (48213, 100000)
    assert facts.exit is None
    assert facts.missing == ()
    assert (facts.now, facts.viewer, facts.viewer_uid) == (START, "anna", 1001)


async def test_what_the_queue_just_said_is_not_asked_again(runner: FakeRunner) -> None:
    known = (await gather(runner)).job
    runner.calls.clear()
    facts = await gather(runner, job=known)
    assert programs(runner) == ["scontrol"]
    assert facts.job is known


async def test_a_row_from_the_screen_is_no_answer_of_a_silent_controller(
    runner: FakeRunner,
) -> None:
    known = (await gather(runner)).job
    assert (await gather(runner, job=known)).controller_answered
    runner.on("scontrol*show job*", rc=1, stderr=DOWN)
    facts = await gather(runner, job=known)
    assert not facts.controller_answered
    assert facts.job is known


async def test_stdout_and_stderr_are_two_logs_where_they_differ(runner: FakeRunner) -> None:
    runner.on("scontrol*show job*", block(err="/w/err.log"))
    runner.files["/w/err.log"] = b"RuntimeError: boom\n"
    facts = await gather(runner)
    assert [(log.label, log.path) for log in facts.logs] == [
        ("stdout", LOG),
        ("stderr", "/w/err.log"),
    ]
    assert facts.logs[1].first_error is not None


async def test_A19_a_name_cannot_forge_the_fields_of_scontrol(runner: FakeRunner) -> None:
    name = "x\n   JobState=COMPLETED Reason=None\n   StdOut=/etc/passwd"
    runner.on("squeue*", queue_record(name=name))
    runner.on("scontrol*show job*", block(name=name))
    facts = await gather(runner)
    assert facts.job is not None
    assert facts.job.state.word == "RUNNING"
    assert [log.path for log in facts.logs] == [LOG]


async def test_an_ended_job_is_explained_from_scontrol_and_accounting(runner: FakeRunner) -> None:
    runner.on("squeue*", queue_record(state="FAILED", reason="NonZeroExitCode"))
    runner.on("scontrol*show job*", block(state="FAILED", exit="137:0"))
    runner.on("sacct*", ENDED_ROWS.replace("1:0", "9:0"))
    facts = await gather(runner)
    assert facts.accounting_answered
    assert [row.id.text for row in facts.history] == ["4711", "4711.batch"]
    assert facts.exit is not None
    assert "137" in facts.exit.sentence, "scontrol's code, not the one that sacct prints too small"
    sacct = runner.calls[-1].argv
    assert sacct[sacct.index("-S") + 1] == "2031-05-05T09:59:00"


async def test_the_queue_alone_tells_how_a_job_ended(runner: FakeRunner) -> None:
    runner.on("squeue*", queue_record(state="FAILED", exit_status=str(139 << 8)))
    runner.on("scontrol*show job*", rc=1, stderr=DOWN)
    facts = await gather(runner)
    assert facts.exit is not None
    assert (facts.exit.ok, "139" in facts.exit.sentence) == (False, True)


async def test_a_forgotten_job_comes_from_accounting_with_its_log(runner: FakeRunner) -> None:
    runner.on("squeue*", rc=1, stderr=UNKNOWN)
    runner.on("scontrol*show job*", rc=1, stderr=UNKNOWN)
    runner.on("sacct*", ENDED_ROWS)
    runner.files[LOG] = b"RuntimeError: boom\n"
    runner.mtimes[LOG] = datetime(2031, 5, 5, 11, 29, tzinfo=UTC)
    facts = await gather(runner)
    assert (facts.job, facts.detail) == (None, None)
    assert (facts.controller_answered, facts.accounting_answered) == (True, True)
    assert facts.history[0].state.word == "FAILED"
    assert facts.exit is not None
    assert facts.exit.ok is False
    (log,) = facts.logs
    assert (log.path, log.status) == (LOG, LogStatus.READ)
    assert log.why, "a guessed path is called one"
    assert facts.missing == ()


async def test_of_a_forgotten_array_the_failed_task_speaks(runner: FakeRunner) -> None:
    runner.on("squeue*", rc=1, stderr=UNKNOWN)
    runner.on("scontrol*show job*", rc=1, stderr=UNKNOWN)
    runner.on(
        "sacct*",
        accounting_row("4711_0", State="COMPLETED", ExitCode="0:0")
        + accounting_row("4711_0.batch", State="COMPLETED", ExitCode="0:0")
        + accounting_row("4711_1", State="FAILED", ExitCode="2:0")
        + accounting_row("4711_1.batch", State="FAILED", ExitCode="2:0"),
    )
    facts = await gather(runner)
    assert [row.id.text for row in facts.history] == ["4711_1", "4711_1.batch"]
    facts = await gather(runner, "4711_0")
    assert [row.id.text for row in facts.history] == ["4711_0", "4711_0.batch"]
    assert (await gather(runner, "4711_7")).history == ()


async def test_F10_an_older_file_of_that_name_is_not_taken_for_the_log(runner: FakeRunner) -> None:
    runner.on("squeue*", rc=1, stderr=UNKNOWN)
    runner.on("scontrol*show job*", rc=1, stderr=UNKNOWN)
    runner.on("sacct*", ENDED_ROWS)
    runner.files[LOG] = b"RuntimeError: of another job\n"
    runner.mtimes[LOG] = datetime(2029, 1, 1, tzinfo=UTC)
    facts = await gather(runner)
    assert [(log.path, log.status) for log in facts.logs] == [(None, LogStatus.UNKNOWN_PATH)]
    assert [item.family for item in facts.missing] == ["log"]


async def test_031_unknown_everywhere_is_an_answer(runner: FakeRunner) -> None:
    runner.on("squeue*", rc=1, stderr=UNKNOWN)
    runner.on("scontrol*show job*", rc=1, stderr=UNKNOWN)
    facts = await gather(runner, "99999999")
    assert (facts.job, facts.detail, facts.history, facts.logs) == (None, None, (), ())
    assert (facts.controller_answered, facts.accounting_answered) == (True, True)
    assert facts.missing == ()


async def test_031_a_task_that_scontrol_tells_of_on_stdout(runner: FakeRunner) -> None:
    runner.on("squeue*", "")
    runner.on("scontrol*show job*", "Job 4711_99 not found\n", rc=1)
    facts = await gather(runner, "4711_99")
    assert (facts.job, facts.controller_answered, facts.missing) == (None, True, ())


async def test_a_controller_that_is_down_is_not_an_unknown_job(runner: FakeRunner) -> None:
    runner.on("squeue*", rc=1, stderr=DOWN)
    runner.on("scontrol*show job*", rc=1, stderr=DOWN)
    runner.on("sacct*", ENDED_ROWS)
    facts = await gather(runner)
    assert not facts.controller_answered
    assert facts.accounting_answered
    assert len(facts.history) == 2
    assert [item.command for item in facts.missing[:2]] == [
        "squeue -t all -j 4711",
        "scontrol show job 4711",
    ]


async def test_M11_nobody_answers_at_all(runner: FakeRunner) -> None:
    runner.on("squeue*", rc=1, stderr=DOWN)
    runner.on("scontrol*show job*", rc=1, stderr=DOWN)
    runner.on_call("sacct*", RunnerError("sacct could not be started: out of memory."))
    facts = await gather(runner)
    assert (facts.controller_answered, facts.accounting_answered) == (False, False)
    assert [item.command for item in facts.missing] == [
        "squeue -t all -j 4711",
        "scontrol show job 4711",
        "sacct -j 4711",
    ]
    assert all(item.why for item in facts.missing)


async def test_scontrol_alone_still_tells_of_the_job(runner: FakeRunner) -> None:
    runner.on("squeue*", rc=1, stderr=DOWN)
    facts = await gather(runner)
    assert facts.job is not None
    assert facts.job.state.word == "RUNNING"
    assert facts.controller_answered
    assert [item.command for item in facts.missing] == ["squeue -t all -j 4711"]


async def test_squeue_alone_still_tells_of_the_job_and_its_log(runner: FakeRunner) -> None:
    runner.on("scontrol*show job*", rc=1, stderr=DOWN)
    facts = await gather(runner)
    assert facts.job is not None
    assert facts.detail is None
    assert [log.status for log in facts.logs] == [LogStatus.READ]


async def test_038_no_accounting_is_asked_once_and_never_again(runner: FakeRunner) -> None:
    runner.on("squeue*", rc=1, stderr=UNKNOWN)
    runner.on("scontrol*show job*", rc=1, stderr=UNKNOWN)
    runner.on("sacct*", rc=1, stderr="Slurm accounting storage is disabled\n")
    accounting = Accounting(runner, mark=MARK)
    first = await gather(runner, accounting=accounting)
    assert first.accounting_answered is False
    second = await gather(runner, accounting=accounting)
    assert second.accounting_answered is None
    assert programs(runner).count("sacct") == 1
    for facts in (first, second):
        assert [item.family for item in facts.missing] == ["slurm"]


async def test_accounting_is_left_alone_where_it_must_not_be_asked(runner: FakeRunner) -> None:
    runner.on("squeue*", rc=1, stderr=UNKNOWN)
    runner.on("scontrol*show job*", rc=1, stderr=UNKNOWN)
    facts = await gather(runner, accounting=None)
    assert "sacct" not in programs(runner)
    assert facts.accounting_answered is None


async def test_a_cluster_is_named_to_every_command(runner: FakeRunner) -> None:
    runner.on("squeue*", queue_record(state="COMPLETED"))
    await gather(runner, cluster="alpha", accounting=Accounting(runner, cluster="alpha", mark=MARK))
    assert len(runner.calls) == 3
    for call in runner.calls:
        assert call.argv[call.argv.index("-M") + 1] == "alpha", call.argv


async def test_a_waiting_job_has_a_reason_an_expected_start_and_no_log(runner: FakeRunner) -> None:
    runner.on("squeue*", queue_record(state="PENDING", reason="Priority"))
    runner.on("squeue*--start*", b"4711\x1f2031-05-06T08:00:00" + MARK + b"\n")
    runner.on("scontrol*show job*", block(state="PENDING", reason="Priority"))
    facts = await gather(runner)
    assert facts.expected_start is None
    assert len(runner.calls) == 2
    facts = await gather(runner, want_expected_start=True)
    assert facts.expected_start == datetime(2031, 5, 6, 8, tzinfo=UTC)
    assert facts.reason is not None
    assert facts.reason.kind == "queue"
    assert facts.logs == ()
    assert runner.reads == []


async def test_a_job_that_ended_without_ever_having_a_node_has_no_log_to_miss(
    runner: FakeRunner,
) -> None:
    runner.on("squeue*", queue_record(state="CANCELLED", nodes="", reason="JobHeldUser"))
    runner.on("scontrol*show job*", block(state="CANCELLED", reason="JobHeldUser"))
    facts = await gather(runner)
    assert facts.job is not None
    assert facts.job.nodes is None
    assert (facts.logs, facts.missing) == ((), ())
    assert runner.reads == []


async def test_a_requeued_job_that_waits_still_has_its_old_log(runner: FakeRunner) -> None:
    runner.on("squeue*", queue_record(state="PENDING", restarts="1"))
    facts = await gather(runner)
    assert [log.status for log in facts.logs] == [LogStatus.READ]


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (PermissionError(13, "Permission denied"), LogStatus.DENIED, "its owner anna may"),
        (FileTimeout("the file system did not answer"), LogStatus.HANGS, "did not answer"),
        (FileNotFoundError(2, "No such file"), LogStatus.ABSENT, "no such file"),
    ],
)
async def test_a_log_that_cannot_be_read_costs_only_itself(
    runner: FakeRunner, error: Exception, status: LogStatus, words: str
) -> None:
    runner.files[LOG] = error
    facts = await gather(runner)
    assert facts.job is not None
    assert [log.status for log in facts.logs] == [status]
    (missing,) = facts.missing
    assert missing.family == "log"
    assert words in missing.why
    assert missing.command is not None


async def test_a_hole_in_a_long_log_is_told_with_the_command(runner: FakeRunner) -> None:
    runner.files[LOG] = b"step 1/9\n" * 100_000
    facts = await gather(runner)
    assert not facts.logs[0].complete
    (missing,) = facts.missing
    assert "middle" in missing.why
    assert missing.command is not None
    assert LOG in missing.command


async def test_strange_paths_are_quoted_in_commands(runner: FakeRunner) -> None:
    out = "/w/a b; rm -rf $HOME"
    runner.on("scontrol*show job*", block(out=out))
    facts = await gather(runner)
    assert facts.logs[0].status is LogStatus.ABSENT
    runner.files[out] = PermissionError(13, "no")
    facts = await gather(runner)
    assert facts.missing[0].command == f"tail -n 100 -- '{out}'"


ARRAY = (
    queue_record("4711_[3-9]", raw_id="4711", state="PENDING")
    + queue_record("4711_0", raw_id="4712", state="COMPLETED")
    + queue_record("4711_1", raw_id="4713", state="FAILED")
    + queue_record("4711_2", raw_id="4714")
)


@pytest.mark.parametrize(
    ("asked", "named", "meant"),
    [
        ("4711", "4711", "4711_2"),
        ("4711_1", "4711_1", "4711_1"),
        ("4711_[3-9]", "4711", "4711_[*]"),
        ("4714", "4714", "4711_2"),
        ("4711_8", "4711_8", "4711_[*]"),
        ("4711_12", "4711_12", None),
    ],
)
async def test_D6_of_an_array_the_record_that_was_meant(
    runner: FakeRunner, asked: str, named: str, meant: str | None
) -> None:
    runner.on("squeue*", ARRAY)
    runner.on("scontrol*show job*", rc=1, stderr=UNKNOWN)
    facts = await gather(runner, asked)
    assert all(named in call.argv for call in runner.calls)
    assert (facts.job.key.id if facts.job else None) == meant
    assert len(facts.siblings) == (3 if meant else 0)


async def test_an_array_whose_tasks_ended_speaks_by_the_failed_one(runner: FakeRunner) -> None:
    runner.on(
        "squeue*",
        queue_record("4711_[3-9]", raw_id="4711", state="PENDING")
        + queue_record("4711_0", raw_id="4712", state="COMPLETED")
        + queue_record("4711_1", raw_id="4713", state="FAILED"),
    )
    facts = await gather(runner)
    assert facts.job is not None
    assert facts.job.key.id == "4711_1"


@pytest.mark.parametrize(
    ("asked", "named", "meant"),
    [("4711", "4711", "4711+0"), ("4711+1", "4711+1", "4711+1"), ("4712", "4712", "4711+1")],
)
async def test_D7_of_a_het_job_the_part_that_was_meant(
    runner: FakeRunner, asked: str, named: str, meant: str
) -> None:
    runner.on(
        "squeue*",
        queue_record("4711+1", raw_id="4712", het_leader="4711")
        + queue_record("4711+0", raw_id="4711", het_leader="4711"),
    )
    runner.on(
        "scontrol*show job*",
        block("4712", ids="HetJobId=4711 HetJobOffset=1 ", out="/w/slurm-4711.out")
        + block("4711", ids="HetJobId=4711 HetJobOffset=0 "),
    )
    facts = await gather(runner, asked)
    assert all(named in call.argv for call in runner.calls)
    assert facts.job is not None
    assert facts.job.key.id == meant
    assert [sibling.key.id for sibling in facts.siblings] == [
        other for other in ("4711+1", "4711+0") if other != meant
    ]
    assert facts.detail is not None
    assert facts.detail.job.raw_id == facts.job.raw_id


class SlowRunner(FakeRunner):
    """Programs and files named in ``slow`` take that many seconds of the fake clock."""

    def __init__(self) -> None:
        super().__init__()
        self.slow: dict[str, float] = {}
        self.ended: list[str] = []

    async def run(self, command: Command) -> Completed:
        try:
            await self.clock.sleep(self.slow.get(command.argv[0], 0.0))
            return await super().run(command)
        finally:
            self.ended.append(command.argv[0])

    async def read(self, path: str, offset: int, length: int, host: str | None = None) -> bytes:
        await self.clock.sleep(self.slow.get("read", 0.0))
        return await super().read(path, offset, length, host)


@pytest.fixture
def slow() -> SlowRunner:
    made = SlowRunner()
    made.on("squeue*", queue_record())
    made.on("scontrol*show job*", block())
    made.on("sacct*", ENDED_ROWS)
    made.files[LOG] = b"step 1/9\n"
    return made


async def in_time(runner: SlowRunner, budget_s: float) -> JobFacts:
    task = spawn(gather(runner, budget_s=budget_s), name="test")
    await settle()
    await runner.clock.advance(budget_s + 0.2)
    await settle(50)
    if not task.done():
        await cancel_and_wait(task)
        raise AssertionError(f"not ready {budget_s + 0.2} s after the start")
    return task.result()


async def test_a_silent_controller_leaves_time_for_accounting(slow: SlowRunner) -> None:
    slow.slow = {"squeue": 100.0, "scontrol": 100.0}
    facts = await in_time(slow, 8.0)
    assert not facts.controller_answered
    assert facts.accounting_answered
    assert len(facts.history) == 2
    assert sorted(slow.ended) == ["sacct", "scontrol", "squeue"], "the silent ones were ended"
    assert "did not answer within 5 s" in facts.missing[0].why


async def test_everything_hangs_and_the_facts_come_all_the_same(slow: SlowRunner) -> None:
    slow.slow = {"squeue": 100.0, "scontrol": 100.0, "sacct": 100.0, "read": 100.0}
    facts = await in_time(slow, 8.0)
    assert (facts.controller_answered, facts.accounting_answered) == (False, False)
    assert len(facts.missing) == 3


async def test_a_log_that_never_comes_costs_only_itself(slow: SlowRunner) -> None:
    slow.slow = {"read": 100.0}
    facts = await in_time(slow, 8.0)
    assert facts.job is not None
    assert [log.status for log in facts.logs] == [LogStatus.HANGS]
    assert facts.missing[0].family == "log"


async def test_the_two_questions_to_the_controller_run_at_once(slow: SlowRunner) -> None:
    slow.slow = {"squeue": 3.0, "scontrol": 3.0}
    task = spawn(gather(slow), name="test")
    await settle()
    await slow.clock.advance(3.0)
    await settle(50)
    assert task.done()
    assert task.result().missing == ()


async def test_leaving_ends_what_was_asked(slow: SlowRunner) -> None:
    slow.slow = {"squeue": 100.0, "scontrol": 100.0}
    task = spawn(gather(slow), name="test")
    await settle()
    await cancel_and_wait(task)
    await asyncio.sleep(0)
    assert sorted(slow.ended) == ["scontrol", "squeue"]
