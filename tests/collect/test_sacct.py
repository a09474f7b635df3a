"""Accounting on demand: what is asked, what is remembered, and what is never asked again."""

from datetime import datetime, timedelta, timezone

import pytest

from slurmtop.collect.poller import SourceFailed
from slurmtop.collect.sacct import Accounting
from slurmtop.model.ports import Command, Completed
from slurmtop.model.snapshot import Trouble
from slurmtop.parse.slurm.sacct import SACCT_FIELDS
from tests.fakes import START, FakeRunner


def row(id: str, names: list[str], state: str = "COMPLETED") -> bytes:
    given = {"JobID": id, "JobIDRaw": id, "State": state, "JobName": "train"}
    return "\x1f".join(given.get(name, "") for name in names).encode() + b"\n"


ALL_NAMES = [name for name, _ in SACCT_FIELDS]


@pytest.fixture
def runner() -> FakeRunner:
    made = FakeRunner()
    made.on("sacct*", row("7", ALL_NAMES) + row("7.batch", ALL_NAMES))
    return made


async def test_job_and_steps_are_asked_by_id_with_our_separator(runner: FakeRunner) -> None:
    found = await Accounting(runner).history("7")
    assert [record.id.text for record in found.rows] == ["7", "7.batch"]
    assert found.rows[0].name == "train"
    argv = runner.calls[0].argv
    assert argv[:6] == ("sacct", "-n", "-P", "--delimiter=\x1f", "-j", "7")
    assert argv[-1] == ",".join(ALL_NAMES)
    assert "-D" not in argv


async def test_033_the_submit_time_bounds_the_search_in_utc(runner: FakeRunner) -> None:
    since = datetime(2031, 5, 5, 23, 30, tzinfo=timezone(timedelta(hours=12, minutes=45)))
    await Accounting(runner, cluster="alpha").history(["7", "8"], since=since, duplicates=True)
    argv = runner.calls[0].argv
    assert argv[argv.index("-S") + 1] == "2031-05-05T10:44:00"
    assert argv[argv.index("-M") + 1] == "alpha"
    assert argv[argv.index("-j") + 1] == "7,8"
    assert "-D" in argv


async def test_no_rows_is_an_answer(runner: FakeRunner) -> None:
    runner.on("sacct*", "")
    assert (await Accounting(runner).history("7")).rows == ()


async def test_fields_that_an_older_sacct_does_not_know_are_dropped(runner: FakeRunner) -> None:
    """22.05 names the first one only, so it takes one try for each."""
    old = {"SubmitLine", "StdOut", "StdErr", "Restarts"}

    def answer(command: Command) -> Completed:
        names = command.argv[-1].split(",")
        unknown = next((name for name in names if name in old), None)
        if unknown is not None:
            error = f'sacct: error: Invalid field requested: "{unknown}"\n'.encode()
            return Completed(1, b"", error, START, 0.1)
        return Completed(0, row("7", names), b"", START, 0.1)

    runner.on_call("sacct*", answer)
    accounting = Accounting(runner)
    (record,) = (await accounting.history("7")).rows
    assert (record.name, record.stdout) == ("train", None)
    assert len(runner.calls) == 5
    await accounting.history("7")
    assert len(runner.calls) == 6


async def test_038_disabled_accounting_is_asked_once(runner: FakeRunner) -> None:
    runner.on("sacct*", "", rc=1, stderr="Slurm accounting storage is disabled\n")
    accounting = Accounting(runner)
    for _ in range(3):
        with pytest.raises(SourceFailed) as failed:
            await accounting.history("7")
        assert failed.value.failure.trouble is Trouble.NO_ACCOUNTING
    assert len(runner.calls) == 1
    assert accounting.disabled is failed.value.failure


async def test_H1_a_database_that_is_down_is_asked_again_later(runner: FakeRunner) -> None:
    error = "sacct: error: Problem talking to the database: Connection refused\n"
    runner.on("sacct*", "", rc=1, stderr=error)
    accounting = Accounting(runner)
    with pytest.raises(SourceFailed) as failed:
        await accounting.history("7")
    assert failed.value.failure.trouble is Trouble.ACCOUNTING_DOWN
    assert accounting.disabled is None
    runner.on("sacct*", row("7", ALL_NAMES))
    assert len((await accounting.history("7")).rows) == 1


async def test_an_error_with_exit_status_0_is_no_empty_history(runner: FakeRunner) -> None:
    """Before 23.11.4 sacct ended with 0 for most errors."""
    error = "sacct: error: slurm_persist_conn_open: Connection refused\n"
    runner.on("sacct*", "", rc=0, stderr=error)
    with pytest.raises(SourceFailed):
        await Accounting(runner).history("7")
