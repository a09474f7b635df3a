"""Before a suspect is ended what is known of it is kept, and where that fails nothing is done."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.stand_ins import StandIns, detail_text, queue_row, slurmtop
from tests.cli.test_actions import log_lines, queue, sent
from tests.cli.test_actions_asked import at_terminal

OFF = ("--node-access", "off")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The log of a job, with a secret in it."""
    path = tmp_path / "slurm-4711.out"
    path.write_text("step 99/200 loss 2.1\nexport HF_TOKEN=hf_qWeRtYuIoPaSdFgHjKlZxCvBnMqW\n")
    return path


def running(slurm: StandIns, log: Path, *, quiet_s: float = 0.0, state: str = "RUNNING") -> None:
    row = queue_row("4711", state, STDOUT=str(log), STDERR=str(log))
    detail = detail_text("4711", state, out=str(log))
    queue(slurm, row, details={"4711": detail}, scripts={"4711": "#!/bin/bash\nsrun true\n"})
    at = time.time() - quiet_s
    os.utime(log, (at, at))


def bundles(home: Path) -> list[Path]:
    return sorted((home / ".local/state/slurmtop/bundles").glob("*"))


def act(slurm: StandIns, home: Path, *words: str) -> tuple[dict[str, Any], str]:
    done = slurmtop(slurm.environ(home), *words, *OFF, "--yes", "--json")
    return json.loads(done.stdout), done.stderr


def test_a_quiet_job_is_saved_first(slurm: StandIns, home: Path, log: Path) -> None:
    running(slurm, log, quiet_s=300)
    found, err = act(slurm, home, "cancel", "4711")
    (bundle,) = bundles(home)
    assert found["ok"]
    assert found["saved"] == [str(bundle)]
    assert f"saves what is known first: {bundle}, about 10 s" in err
    assert [line["details"] for line in log_lines(home)] == [{"saved": [str(bundle)]}] * 2
    kept = b"".join(one.read_bytes() for one in bundle.iterdir())
    assert b"step 99/200" in kept
    assert b"hf_qWe" not in kept
    calls = [call[0] for call in slurm.calls if call[1:] != ["--version"]]
    first = calls.index("scancel")
    assert "scontrol" in calls[:first], "it was looked at before it was ended"
    again = slurmtop(
        {"PATH": "/nowhere", "PYTHONPATH": slurm.environ(home)["PYTHONPATH"]},
        "triage",
        "--json",
        str(bundle),
    )
    said = json.loads(again.stdout)
    saved = json.loads((bundle / "verdict.json").read_bytes())
    assert [said[name] for name in ("job", "state", "class", "culprits", "summary")] == [
        saved[name] for name in ("job", "state", "class", "culprits", "summary")
    ]


def test_a_job_that_works_is_ended_at_once(slurm: StandIns, home: Path, log: Path) -> None:
    running(slurm, log)
    found, err = act(slurm, home, "cancel", "4711")
    assert (found["ok"], found["saved"], bundles(home)) == (True, [], [])
    assert "saves" not in err


def test_an_error_behind_the_newest_step_is_a_suspicion(
    slurm: StandIns, home: Path, log: Path
) -> None:
    log.write_text(log.read_text() + "RuntimeError: NCCL error: unhandled system error\n")
    running(slurm, log)
    found, _ = act(slurm, home, "cancel", "4711")
    assert len(found["saved"]) == 1


def test_a_failed_job_that_is_to_run_again_is_saved(slurm: StandIns, home: Path, log: Path) -> None:
    running(slurm, log, state="FAILED")
    found, _ = act(slurm, home, "requeue", "4711")
    assert len(found["saved"]) == len(bundles(home)) == 1


def test_it_may_be_left_out(slurm: StandIns, home: Path, log: Path) -> None:
    running(slurm, log, quiet_s=300)
    found, _ = act(slurm, home, "cancel", "4711", "--no-save")
    assert (found["ok"], found["saved"], bundles(home)) == (True, [], [])


def test_where_it_cannot_be_saved_nothing_is_done(slurm: StandIns, home: Path, log: Path) -> None:
    running(slurm, log, quiet_s=300)
    state = home / ".local/state/slurmtop"
    state.mkdir(parents=True, mode=0o700)
    (state / "bundles").write_text("no folder")
    found, _ = act(slurm, home, "cancel", "4711")
    assert not found["ok"]
    assert "could not be saved first: job 4711: cannot save to" in found["refused"]
    assert found["refused"].endswith("to do it without: --no-save")
    assert found["jobs"][0]["sentence"] == (
        "job 4711: what is known of it could not be saved first, nothing was done"
    )
    assert sent(slurm) == []
    assert log_lines(home) == []
    found, _ = act(slurm, home, "cancel", "4711", "--no-save")
    assert found["ok"]


def test_a_dry_run_tells_it_and_keeps_nothing(slurm: StandIns, home: Path, log: Path) -> None:
    running(slurm, log, quiet_s=300)
    found, err = act(slurm, home, "cancel", "4711", "--dry-run")
    assert found["dry_run"]
    assert "saves what is known first: " in err
    assert bundles(home) == []


def test_of_many_running_jobs_only_some_logs_are_looked_at_and_that_is_told(
    slurm: StandIns, home: Path, log: Path
) -> None:
    rows = [queue_row(str(4711 + n), STDOUT=str(log), STDERR=str(log)) for n in range(10)]
    queue(slurm, *rows)
    found, err = act(slurm, home, "cancel", *(row["JobID"] for row in rows))
    assert found["ok"]
    assert "the logs of 8 running jobs were looked at" in err
    assert "not those of 2 others" in err


@pytest.mark.parametrize("answer", ["y", "n"])
def test_at_a_terminal_it_is_asked_once_more(
    slurm: StandIns, home: Path, log: Path, answer: str
) -> None:
    running(slurm, log, quiet_s=300)
    state = home / ".local/state/slurmtop"
    state.mkdir(parents=True, mode=0o700)
    (state / "bundles").write_text("no folder")
    with at_terminal(slurm, home, "cancel", "4711", *OFF) as terminal:
        terminal.wait_for("Type the id, 4711, to do it:")
        assert "First: saves what is known first: " in " ".join(terminal.text.split())
        terminal.type("4711\n")
        terminal.wait_for("Do it all the same, without saving it? [y/N]")
        assert sent(slurm) == []
        terminal.type(f"{answer}\n")
        terminal.wait_for("cancelled" if answer == "y" else "nothing was done")
        assert terminal.leave() == (0 if answer == "y" else 1)
    assert bool(sent(slurm)) is (answer == "y")
