"""Accounting on demand: what is asked, what is remembered, and what is never asked again."""

import re
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from slurmtop.collect.poller import SourceFailed
from slurmtop.collect.private_files import PrivateFolder
from slurmtop.collect.recording import RecordingRunner
from slurmtop.collect.replay import ReplayRunner
from slurmtop.collect.sacct import Accounting
from slurmtop.model.ports import Command, Completed
from slurmtop.model.snapshot import Trouble
from slurmtop.parse.slurm.sacct import SACCT_FIELDS, parse_sacct
from tests.collect.slurm_forms import MARK, SACCT_SEPARATOR, fixture
from tests.fakes import START, FakeRunner


def row(
    id: str,
    names: list[str],
    state: str = "COMPLETED",
    *,
    name: str = "train",
    separator: str = SACCT_SEPARATOR,
) -> bytes:
    given = {"JobID": id, "JobIDRaw": id, "State": state, "JobName": name}
    return separator.join(given.get(field, "") for field in names).encode() + b"\n"


ALL_NAMES = [name for name, _ in SACCT_FIELDS]


@pytest.fixture
def runner() -> FakeRunner:
    made = FakeRunner()
    made.on("sacct*", row("7", ALL_NAMES) + row("7.batch", ALL_NAMES))
    return made


async def test_job_and_steps_are_asked_by_id_with_our_separator(runner: FakeRunner) -> None:
    found = await Accounting(runner, mark=MARK).history("7")
    assert [record.id.text for record in found.rows] == ["7", "7.batch"]
    assert found.rows[0].name == "train"
    argv = runner.calls[0].argv
    assert argv[:6] == ("sacct", "-n", "-P", f"--delimiter={SACCT_SEPARATOR}", "-j", "7")
    assert argv[-1] == ",".join(ALL_NAMES)
    assert "-D" not in argv


async def test_033_the_submit_time_bounds_the_search_in_utc(runner: FakeRunner) -> None:
    since = datetime(2031, 5, 5, 23, 30, tzinfo=timezone(timedelta(hours=12, minutes=45)))
    await Accounting(runner, cluster="alpha", mark=MARK).history(
        ["7", "8"], since=since, duplicates=True
    )
    argv = runner.calls[0].argv
    assert argv[argv.index("-S") + 1] == "2031-05-05T10:44:00"
    assert argv[argv.index("-M") + 1] == "alpha"
    assert argv[argv.index("-j") + 1] == "7,8"
    assert "-D" in argv


async def test_no_rows_is_an_answer(runner: FakeRunner) -> None:
    runner.on("sacct*", "")
    assert (await Accounting(runner, mark=MARK).history("7")).rows == ()


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
    accounting = Accounting(runner, mark=MARK)
    (record,) = (await accounting.history("7")).rows
    assert (record.name, record.stdout) == ("train", None)
    assert len(runner.calls) == 5
    await accounting.history("7")
    assert len(runner.calls) == 6


async def test_038_disabled_accounting_is_asked_once(runner: FakeRunner) -> None:
    runner.on("sacct*", "", rc=1, stderr="Slurm accounting storage is disabled\n")
    accounting = Accounting(runner, mark=MARK)
    for _ in range(3):
        with pytest.raises(SourceFailed) as failed:
            await accounting.history("7")
        assert failed.value.failure.trouble is Trouble.NO_ACCOUNTING
    assert len(runner.calls) == 1
    assert accounting.disabled is failed.value.failure


async def test_H1_a_database_that_is_down_is_asked_again_later(runner: FakeRunner) -> None:
    error = "sacct: error: Problem talking to the database: Connection refused\n"
    runner.on("sacct*", "", rc=1, stderr=error)
    accounting = Accounting(runner, mark=MARK)
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
        await Accounting(runner, mark=MARK).history("7")


def forging_name(separator: str) -> str:
    """A name of job 7 that ends its row, adds a failed job 8, and begins a step of 7."""
    place = ALL_NAMES.index("JobName")
    ended = separator.join(["x", *("" for _ in ALL_NAMES[place + 1 : -1]), "7"])
    forged = row("8", ALL_NAMES, "FAILED", name="forged", separator=separator).decode()
    begun = row("7.0", ALL_NAMES, separator=separator).decode().split(separator)
    return f"{ended}\n{forged}{separator.join([*begun[:place], 'y'])}"


async def test_a_name_cannot_forge_a_row_of_accounting(runner: FakeRunner) -> None:
    """It may hold newlines and 0x1f, and it may know its own number; not our letters."""
    name = forging_name("\x1f")
    plain = row("7", ALL_NAMES, name=name, separator="\x1f")
    fooled = [record.id.text for record in parse_sacct(plain).rows]
    assert fooled == ["7", "8", "7.0"], "this is what a separator that names can hold comes to"
    runner.on("sacct*", row("7", ALL_NAMES, name=name) + row("7.batch", ALL_NAMES))
    found = await Accounting(runner, mark=MARK).history("7")
    assert (found.bad, [record.id.text for record in found.rows]) == (0, ["7", "7.batch"])
    assert (found.rows[0].name, found.rows[0].name_unsure) == (name, False)


async def test_the_separator_is_another_one_each_time(runner: FakeRunner) -> None:
    for _ in range(20):
        # The canned answer stands between other letters, so it is none.
        with pytest.raises(SourceFailed, match="cannot read"):
            await Accounting(runner).history("7")
    separators = {call.argv[3].removeprefix("--delimiter=") for call in runner.calls}
    assert len(separators) == 20
    assert all(re.fullmatch("\x1f[A-Za-z]{6}\x1f", one) for one in separators)


async def test_a_real_sacct_separates_with_several_characters(runner: FakeRunner) -> None:
    def answer(command: Command) -> Completed:
        for name in ("Restarts", "StdOut", "StdErr"):
            if name in command.argv[-1].split(","):
                error = f'sacct: error: Invalid field requested: "{name}"\n'.encode()
                return Completed(1, b"", error, START, 0.1)
        return Completed(0, fixture("22.05.8", "sacct_marked.out"), b"", START, 0.1)

    runner.on_call("sacct*", answer)
    found = await Accounting(runner, mark=b"\x1eq7Vd2k").history("20287")
    asked = fixture("22.05.8", "sacct_marked.cmd").decode()
    assert f" -o {runner.calls[-1].argv[-1]}\n" in asked
    jobs = [record for record in found.rows if record.id.step is None]
    assert (found.bad, len(found.rows), len(jobs)) == (0, 19, 10)
    assert not any(record.name_unsure for record in found.rows)
    (forger,) = (record for record in jobs if record.id.text == "20294")
    assert (
        forger.name
        == "x\x1f/w\x1f\x1fsbatch\x1f20294\n1\x1fFAILED\x1f7:0\x1f0:0\x1fslurmtop\x1froot"
    )
    assert (forger.workdir, forger.state.word) == ("/home/alice/exitcodes", "COMPLETED")


async def test_a_recording_replays_accounting_by_its_mark(
    runner: FakeRunner, tmp_path: Path
) -> None:
    secret = row("7", ALL_NAMES, name="password=hunter2") + row("7.batch", ALL_NAMES)
    runner.on("sacct*", secret)
    recorder = RecordingRunner(
        runner, PrivateFolder(tmp_path / "rec"), clock=runner.clock, mark=MARK
    )
    seen = await Accounting(recorder, mark=recorder.mark).history("7")
    await recorder.aclose()
    replay = ReplayRunner(tmp_path / "rec")
    again = await Accounting(replay, mark=replay.mark).history("7")
    assert seen.rows[0].name == "password=hunter2"
    assert "hunter2" not in again.rows[0].name
    assert again.rows == (replace(seen.rows[0], name=again.rows[0].name), seen.rows[1])
    with pytest.raises(SourceFailed):
        await Accounting(replay).history("7")
