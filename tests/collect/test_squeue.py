"""The queue source: what it asks, what it learns, and what it does not do twice."""

import asyncio
from datetime import UTC, datetime

import pytest

from slurmtop.collect.asking import new_record_mark
from slurmtop.collect.clock import spawn
from slurmtop.collect.poller import Poller, SourceFailed
from slurmtop.collect.squeue import QueueAnswer, QueueSource, fetch_expected_start
from slurmtop.collect.who import Who
from slurmtop.model.job import ExitCode
from slurmtop.model.ports import Command, Completed, RunnerError
from slurmtop.model.snapshot import Snapshot, Trouble
from slurmtop.parse.slurm.squeue import queue_format
from tests.collect.slurm_forms import MARK, fixture, queue_record
from tests.fakes import START, FakeClock, FakeRunner

ME = Who(1001, "anna")


def source(runner: FakeRunner, **options: object) -> QueueSource:
    return QueueSource(runner, runner.clock, me=ME, mark=MARK, **options)  # type: ignore[arg-type]


def argv(runner: FakeRunner, call: int = -1) -> tuple[str, ...]:
    return runner.calls[call].argv


@pytest.fixture
def runner() -> FakeRunner:
    made = FakeRunner()
    made.on("squeue*", queue_record())
    return made


def last_option(runner: FakeRunner) -> tuple[str, ...]:
    before_format = argv(runner)[:-2]
    assert argv(runner)[-2] == "-O"
    return before_format


async def test_own_jobs_are_asked_with_me_and_all_states(runner: FakeRunner) -> None:
    answer = await source(runner).fetch()
    assert last_option(runner) == ("squeue", "-h", "-a", "--local", "-t", "all", "--me")
    assert argv(runner)[-1] == queue_format(MARK)
    assert [job.key.id for job in answer.rows] == ["4711"]
    assert answer.raw_bytes == len(queue_record())
    assert runner.calls[0].timeout_s >= 120


async def test_everybodys_jobs_are_asked_in_the_default_states(runner: FakeRunner) -> None:
    await source(runner, all_users=True).fetch()
    assert last_option(runner) == ("squeue", "-h", "-a", "--local")


async def test_one_users_jobs_and_one_job(runner: FakeRunner) -> None:
    await source(runner, user="bert").fetch()
    assert last_option(runner)[-4:] == ("-t", "all", "-u", "bert")
    await source(runner, job_id="4711_3").fetch()
    assert last_option(runner)[-4:] == ("-t", "all", "-j", "4711_3")


async def test_054_a_cluster_is_asked_by_name_and_stands_in_the_key(runner: FakeRunner) -> None:
    answer = await source(runner, cluster="alpha").fetch()
    assert last_option(runner)[3:5] == ("-M", "alpha")
    assert answer.rows[0].key.cluster == "alpha"


async def test_a_federation_is_asked_without_local(runner: FakeRunner) -> None:
    await source(runner, federation=True).fetch()
    assert "--local" not in argv(runner)


async def test_real_answers_are_read() -> None:
    mark = b"\x1eq7Vd2k"
    runner = FakeRunner()
    runner.on("squeue*", fixture("22.05.8", "queue_exit_codes.out"))
    answer = await QueueSource(runner, runner.clock, mark=mark).fetch()
    assert answer.bad == 0
    assert len(answer.rows) == 10
    codes = {job.name: job.exit_code for job in answer.rows}
    assert (codes["exit3"], codes["held"]) == (ExitCode(3, 0), None)


async def test_unchanged_records_give_the_very_same_objects(runner: FakeRunner) -> None:
    one = source(runner)
    runner.on("squeue*", queue_record("1") + queue_record("2") + queue_record("3"))
    first = await one.fetch()
    runner.on("squeue*", queue_record("3") + queue_record("2", state="COMPLETED"))
    second = await one.fetch()
    assert second.reused == 1
    assert second.rows[0] is first.rows[2]
    assert second.rows[1].state.word == "COMPLETED"
    runner.on("squeue*", queue_record("1"))
    third = await one.fetch()
    assert third.reused == 0, "only the answer before is kept"


async def test_A11_without_me_the_name_is_asked_for_from_then_on(
    runner: FakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USER", "somebody-else")
    runner.on("*--me*", rc=1, stderr="squeue: unrecognized option '--me'\nTry \"squeue --help\"\n")
    old = source(runner)
    assert len((await old.fetch()).rows) == 1
    assert [("--me" in call.argv, "anna" in call.argv) for call in runner.calls] == [
        (True, False),
        (False, True),
    ]
    await old.fetch()
    assert len(runner.calls) == 3
    assert argv(runner)[-4:-2] == ("-u", "anna")


async def test_a_slurm_without_local_is_asked_without_it(runner: FakeRunner) -> None:
    runner.on("*--local*", rc=1, stderr="squeue: unrecognized option '--local'\n")
    old = source(runner)
    await old.fetch()
    await old.fetch()
    assert len(runner.calls) == 3


@pytest.mark.parametrize("rc", [0, 1])
async def test_A10_an_unknown_field_is_dropped_and_remembered(runner: FakeRunner, rc: int) -> None:
    """22.05 prints the line and goes on with exit status 0; older ones end with 1."""

    def answer(command: Command) -> Completed:
        if "tres-alloc" in command.argv[-1]:
            error = b"squeue: error: Invalid job format specification: tres-alloc\n"
            return Completed(rc, queue_record(tres="") if rc == 0 else b"", error, START, 0.1)
        return Completed(0, queue_record(drop=("tres",)), b"", START, 0.1)

    runner.on_call("squeue*", answer)
    old = source(runner)
    jobs = await old.fetch()
    assert (jobs.rows[0].name, jobs.rows[0].tres.cpus, jobs.bad) == ("train", None, 0)
    await old.fetch()
    assert len(runner.calls) == 3


async def test_a_slurm_that_refuses_everything_is_not_asked_for_ever(runner: FakeRunner) -> None:
    def refuse(command: Command) -> Completed:
        field = command.argv[-1].split(",")[0].split(":")[0]
        error = f"squeue: error: Invalid job format specification: {field}\n".encode()
        return Completed(1, b"", error, START, 0.1)

    runner.on_call("squeue*", refuse)
    with pytest.raises(SourceFailed):
        await source(runner).fetch()
    assert len(runner.calls) <= 6


async def test_061_no_jobs_is_an_answer(runner: FakeRunner) -> None:
    runner.on("squeue*", b"")
    answer = await source(runner).fetch()
    assert (answer.rows, answer.bad) == ((), 0)


async def test_061_an_error_with_exit_status_0_is_no_empty_queue(runner: FakeRunner) -> None:
    runner.on("squeue*", b"", rc=0, stderr="squeue: error: Invalid user: nosuch\n\n")
    with pytest.raises(SourceFailed) as failed:
        await source(runner, user="nosuch").fetch()
    assert "nosuch" in failed.value.failure.raw + failed.value.failure.sentence


async def test_041_a_controller_that_does_not_answer_is_a_failure(runner: FakeRunner) -> None:
    runner.on(
        "squeue*",
        rc=1,
        stderr="slurm_load_jobs error: Socket timed out on send/recv operation\n",
        took_s=41.0,
    )
    with pytest.raises(SourceFailed) as failed:
        await source(runner).fetch()
    assert failed.value.failure.trouble is Trouble.BUSY


async def test_a_command_stopped_at_its_limit_is_a_timeout(runner: FakeRunner) -> None:
    runner.on("squeue*", queue_record(), rc=None)
    with pytest.raises(SourceFailed) as failed:
        await source(runner).fetch()
    assert failed.value.failure.trouble is Trouble.TIMEOUT


async def test_an_answer_that_was_cut_off_is_not_whole(runner: FakeRunner) -> None:
    done = Completed(0, queue_record(), b"", START, 0.1, truncated=True)
    runner.on_call("squeue*", lambda _command: done)
    with pytest.raises(SourceFailed, match="not all was read"):
        await source(runner).fetch()


async def test_a_runner_that_cannot_start_squeue(runner: FakeRunner) -> None:
    def missing(_command: Command) -> Completed:
        raise RunnerError("squeue was not found on this machine.") from FileNotFoundError(2, "x")

    runner.on_call("squeue*", missing)
    with pytest.raises(SourceFailed) as failed:
        await source(runner).fetch()
    assert failed.value.failure.trouble is Trouble.NO_SLURM


async def test_a_bad_record_is_counted_and_costs_no_neighbour(runner: FakeRunner) -> None:
    broken = b"only\x1fthree\x1ffields" + MARK + b"\n"
    runner.on("squeue*", queue_record("1") + broken + queue_record("2"))
    answer = await source(runner).fetch()
    assert [job.key.id for job in answer.rows] == ["1", "2"]
    assert answer.bad == 1
    assert answer.first_bad is not None
    assert answer.first_bad.index == 1


async def test_A2_a_name_with_our_signs_cannot_forge_a_record(runner: FakeRunner) -> None:
    name = "x\x1f\x1eAbCdEe\n9\x1fRUNNING"
    runner.on("squeue*", queue_record("1", name=name) + queue_record("2"))
    answer = await source(runner).fetch()
    assert [job.key.id for job in answer.rows] == ["1", "2"]
    assert answer.rows[0].state.word == "RUNNING"


async def test_063_rows_of_several_partitions_become_one(runner: FakeRunner) -> None:
    rows = queue_record("1", partition="gpu") + queue_record("1", partition="long")
    runner.on("squeue*", rows)
    answer = await source(runner).fetch()
    assert [job.partitions for job in answer.rows] == [("gpu", "long")]


class TickingClock(FakeClock):
    """Every look at it is a millisecond later: work that takes time."""

    def monotonic(self) -> float:
        self._monotonic += 0.001
        return self._monotonic


async def test_a_long_answer_lets_others_run_in_between(runner: FakeRunner) -> None:
    clock = TickingClock()
    runner.on("squeue*", b"".join(queue_record(str(number)) for number in range(1, 20_001)))
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = spawn(other(), name="other")
    answer = await QueueSource(runner, clock, me=ME, mark=MARK).fetch()
    task.cancel()
    assert len(answer.rows) == 20_000
    # 20,000 records, a look at the clock every 32: 625 looks of 1 ms are 78 slices of 8 ms.
    assert 50 < turns < 200


async def test_the_source_fits_the_poller(runner: FakeRunner) -> None:
    runner.on("squeue*", queue_record() + b"broken" + MARK)
    seen: list[Snapshot[QueueAnswer]] = []
    poller = Poller(source(runner), runner.clock, seen.append, jitter=lambda: 0.0)
    await poller.tick()
    assert [job.key.id for job in seen[0].value.rows] == ["4711"]
    assert (poller.health.bad_records, poller.health.interval_s) == (1, 20.0)


async def test_the_expected_start_is_the_earliest_of_its_records(runner: FakeRunner) -> None:
    lines = (
        b"7_[2-9]\x1f2031-05-06T08:00:00" + MARK + b"\n7_1\x1f2031-05-05T20:00:00" + MARK + b"\n"
    )
    runner.on("squeue*", lines)
    start = await fetch_expected_start(runner, "7", cluster="alpha", mark=MARK)
    assert start == datetime(2031, 5, 5, 20, 0, tzinfo=UTC)
    assert argv(runner)[:9] == (
        "squeue",
        "-h",
        "-a",
        "-M",
        "alpha",
        "--local",
        "--start",
        "-j",
        "7",
    )
    runner.on("squeue*", b"7\x1fN/A" + MARK)
    assert await fetch_expected_start(runner, "7", mark=MARK) is None
    runner.on("squeue*", b"")
    assert await fetch_expected_start(runner, "7", mark=MARK) is None


def test_the_mark_is_random_and_safe_inside_a_format() -> None:
    marks = {new_record_mark() for _ in range(50)}
    assert len(marks) == 50
    for mark in marks:
        assert mark[:1] == b"\x1e"
        assert mark[1:].isalpha()
        assert len(mark) == 7
