"""Both ends of a log, and where a job's logs are."""

from datetime import UTC, datetime, timedelta

import pytest

from slurmtop.collect.log_facts import (
    END_BYTES,
    Span,
    log_paths,
    read_log_facts,
    recorded_log,
)
from slurmtop.model.facts import LogStatus
from slurmtop.model.job import AccountingRecord, Job, JobDetail
from slurmtop.parse.slurm.ids import key_of, parse_job_id
from tests.fakes import START, FakeRunner

PATH = "/w/slurm-7.out"
ERROR = b"RuntimeError: CUDA error: out of memory\n"


def job(id: str = "7", raw_id: str | None = "7", **fields: object) -> Job:
    parsed = parse_job_id(id)
    return Job(key=key_of(parsed, ""), id=parsed, raw_id=raw_id, workdir="/w", **fields)  # type: ignore[arg-type]


def runner_with(data: bytes) -> FakeRunner:
    runner = FakeRunner()
    runner.files[PATH] = data
    return runner


async def test_a_small_log_is_read_whole() -> None:
    runner = runner_with(b"step 1/100\n" + ERROR + b"step 2/100\n\n")
    log = await read_log_facts(runner, "stdout", PATH)
    assert (log.status, log.complete, log.size) == (LogStatus.READ, True, 63)
    assert log.first_error is not None
    assert (log.first_error.number, log.first_error.offset) == (2, 11)
    assert log.last_line is not None
    assert (log.last_line.text, log.last_line.number) == ("step 2/100", 3)
    assert log.progress is not None
    assert log.progress.step == 2
    assert log.mtime == START


async def test_of_a_large_log_both_ends_are_read_and_the_hole_is_told() -> None:
    middle = b"step 5/900\n" * 100_000
    runner = runner_with(b"start\n" + ERROR + middle + b"step 77/900\n")
    log = await read_log_facts(runner, "stdout", PATH)
    assert not log.complete
    assert sum(length for _, _, length in runner.reads) == 2 * END_BYTES
    assert log.first_error is not None
    assert log.first_error.number == 2
    assert log.last_line is not None
    assert (log.last_line.text, log.last_line.number) == ("step 77/900", None)
    assert log.last_line.offset == len(b"start\n" + ERROR + middle)
    assert log.progress is not None
    assert log.progress.step == 77


async def test_an_error_in_the_tail_is_found_without_a_number() -> None:
    runner = runner_with(b"fine\n" * 100_000 + ERROR)
    log = await read_log_facts(runner, "stdout", PATH)
    assert log.first_error is not None
    assert (log.first_error.number, log.first_error.offset) == (None, 500_000)


@pytest.mark.parametrize("before", [b"", b"fine\n" * 100_000])
async def test_an_error_after_the_newest_step_is_told_apart(before: bytes) -> None:
    late = b"[rank3]:[E ProcessGroupNCCL.cpp:632] Watchdog caught collective operation timeout\n"
    runner = runner_with(ERROR + before + b"step 76/900\n" + ERROR + b"step 77/900\n" + late)
    log = await read_log_facts(runner, "stdout", PATH)
    assert log.first_error is not None
    assert log.first_error.offset == 0
    assert log.late_error is not None
    assert log.late_error.text == late.decode().rstrip()


async def test_an_error_before_the_newest_step_is_no_late_one() -> None:
    log = await read_log_facts(runner_with(ERROR + b"step 77/900\n"), "stdout", PATH)
    assert log.first_error is not None
    assert log.late_error is None


async def test_an_error_in_the_hole_blames_nothing() -> None:
    runner = runner_with(b"fine\n" * 100_000 + ERROR + b"fine\n" * 100_000)
    log = await read_log_facts(runner, "stdout", PATH)
    assert log.first_error is None
    assert not log.complete


async def test_progress_at_the_start_of_a_long_log_is_not_progress_of_now() -> None:
    runner = runner_with(b"step 1/900\n" + b"quiet\n" * 100_000)
    log = await read_log_facts(runner, "stdout", PATH)
    assert log.progress is None


async def test_slurms_own_last_word_is_kept() -> None:
    slurm = b"slurmstepd: error: *** JOB 7 ON gpu01 CANCELLED AT 2031-05-05T12:00:00 ***\n"
    log = await read_log_facts(runner_with(b"fine\n" + slurm), "stdout", PATH)
    assert log.slurm_line is not None
    assert log.slurm_line.number == 2


async def test_an_empty_log_is_read_and_has_nothing() -> None:
    log = await read_log_facts(runner_with(b""), "stdout", PATH)
    assert (log.status, log.size, log.last_line, log.complete) == (LogStatus.READ, 0, None, True)


async def test_a_denied_log_is_a_status() -> None:
    runner = FakeRunner()
    runner.files[PATH] = PermissionError(13, "Permission denied")
    log = await read_log_facts(runner, "stderr", PATH)
    assert (log.label, log.status) == ("stderr", LogStatus.DENIED)
    assert (await read_log_facts(FakeRunner(), "stdout", PATH)).status is LogStatus.ABSENT


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (START, True),
        (START + timedelta(minutes=30), True),
        (START - timedelta(hours=1), False),
        (START + timedelta(hours=3), False),
    ],
)
async def test_F10_a_guessed_log_must_have_been_written_by_the_run(
    written: datetime, read: bool
) -> None:
    runner = runner_with(b"x\n")
    runner.mtimes[PATH] = written
    span = Span(START, START + timedelta(minutes=1))
    log = await read_log_facts(runner, "stdout", PATH, written=span)
    assert (log.status is LogStatus.READ) is read
    assert (log.path == PATH) is read


def test_an_unknown_start_vouches_for_nothing() -> None:
    assert not Span(None, None).holds(START)
    assert Span(START, None).holds(START + timedelta(days=9))


def test_F5_paths_come_from_the_controller_and_are_joined() -> None:
    queue = job(stdout="logs/%j.log", stderr="logs/%j.log")
    assert log_paths(queue, None) == (("stdout", "/w/logs/7.log"),)
    detail = JobDetail(job=job(stdout="/w/real.log", stderr="/w/real.err"))
    assert log_paths(queue, detail) == (("stdout", "/w/real.log"), ("stderr", "/w/real.err"))
    assert log_paths(None, detail) == (("stdout", "/w/real.log"), ("stderr", "/w/real.err"))
    assert log_paths(job(), None) == (("stdout", None),)
    assert log_paths(None, None) == ()


def test_D1_an_array_task_has_its_own_log() -> None:
    task = job("3_1", "17", stdout="/w/slurm-17.out", stderr="/w/slurm-17.out")
    assert log_paths(task, None) == (("stdout", "/w/slurm-3_1.out"),)


def record(id: str, **fields: object) -> AccountingRecord:
    return AccountingRecord(id=parse_job_id(id), **fields)  # type: ignore[arg-type]


def test_a_forgotten_jobs_log_is_where_accounting_says() -> None:
    row = record("7", raw_id="7", stdout="/w/%j.log", workdir="/w")
    assert recorded_log(row, [row], "") == ("/w/7.log", None)


def test_F10_a_forgotten_batch_jobs_log_may_be_guessed() -> None:
    start = datetime(2031, 5, 5, tzinfo=UTC)
    row = record("3_1", raw_id="17", workdir="/w", start=start)
    path, span = recorded_log(row, [row, record("3_1.batch")], "")
    assert path == "/w/slurm-3_1.out"
    assert span is not None
    assert span.holds(start)
    assert recorded_log(row, [row, record("3_1.0")], "") == (None, None)
