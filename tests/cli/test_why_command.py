"""``slurmtop why`` as a person runs it, against stand-ins for Slurm's programs."""

import json
import os
import re
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from slurmtop.model.text import cell_width
from tests.cli.stand_ins import StandIns, current_name, detail_text, queue_row, slurmtop

TRACEBACK = """step 100/200 loss 2.1
Traceback (most recent call last):
  File "/w/train.py", line 12, in <module>
    main()
ValueError: expected 8 columns, got 7
"""


def sacct_row(id: str, state: str, exit_code: str = "0:0", **changes: str) -> dict[str, str]:
    row = {
        "JobID": id,
        "JobIDRaw": id,
        "State": state,
        "ExitCode": exit_code,
        "DerivedExitCode": "0:0",
        "User": "" if "." in id else current_name(),
        "JobName": "llm-pretrain",
        "Submit": "2031-05-05T08:00:00",
        "Start": "2031-05-05T09:00:00",
        "End": "2031-05-05T10:00:00",
        "ElapsedRaw": "3600",
        "Elapsed": "01:00:00",
        "Timelimit": "1-00:00:00",
        "NNodes": "2",
        "NodeList": "gpu[01-02]",
    }
    row.update(changes)
    return row


def failed_job(slurm: StandIns, tmp_path: Path) -> Path:
    log = tmp_path / "4711.out"
    log.write_text(TRACEBACK)
    written = datetime(2031, 5, 5, 9, 59, tzinfo=UTC).timestamp()
    os.utime(log, (written, written))
    why, path = "NonZeroExitCode", str(log)
    slurm.say(
        jobs=[queue_row("4711", "FAILED", Reason=why, STDOUT=path, STDERR=path)],
        details={"4711": detail_text("4711", "FAILED", exit="1:0", out=path, reason=why)},
    )  # fmt: skip
    return log


def test_a_failed_job(slurm: StandIns, home: Path, tmp_path: Path) -> None:
    log = failed_job(slurm, tmp_path)
    done = slurmtop(slurm.environ(home), "why", "4711")
    lines = done.stdout.splitlines()
    assert done.stderr == ""
    assert done.returncode == 2
    assert len(lines) == 4
    assert lines[0].startswith("what   failed")
    assert "ValueError: expected 8 columns, got 7" in lines[0]
    assert lines[1] == "who    its own program; no rank is named"
    assert lines[2].startswith("proof  ")
    assert "4711.out:5: " in lines[2]
    assert all(cell_width(line) <= 80 for line in lines)
    whole = json.loads(slurmtop(slurm.environ(home), "why", "4711", "--json").stdout)
    assert whole["schema"] == "slurmtop.verdict/1"
    assert (whole["state"], whole["class"], whole["ended_by"]) == (
        "failed", "python-exception", "self",
    )  # fmt: skip
    assert whole["next"][0]["command"] == f"less +5 {log}"
    assert whole["culprits"] == []


def test_a_pending_job(slurm: StandIns, home: Path) -> None:
    slurm.say(
        jobs=[queue_row("4711", "PENDING", Reason="JobHeldUser")],
        details={"4711": detail_text("4711", "PENDING", reason="JobHeldUser", start="Unknown",
                                     end="Unknown")},
    )  # fmt: skip
    done = slurmtop(slurm.environ(home), "why", "4711")
    assert done.returncode == 0
    assert "JobHeldUser" in done.stdout.splitlines()[0]
    assert done.stdout.splitlines()[3].startswith("do     scontrol release 4711")
    assert [call[0] for call in slurm.calls if call[0] == "sacct"] == []


@pytest.mark.parametrize(
    ("asked", "status"),
    [("4711_5", 0), ("4711_14", 0), ("4711_13", 1), ("4711_20", 0), ("4711_1", 1), ("4712_5", 1)],
)
def test_a_task_that_waits_stands_in_the_rest(
    slurm: StandIns, home: Path, asked: str, status: int
) -> None:
    rest = queue_row("4711_[2-9,12-16:2,20%4]", "PENDING", Reason="JobArrayTaskLimit")
    slurm.say(jobs=[queue_row("4711_0"), rest])
    done = slurmtop(slurm.environ(home), "why", asked)
    assert done.returncode == status, done.stdout
    assert ("JobArrayTaskLimit" in done.stdout) is (status == 0)


def test_a_running_job(slurm: StandIns, home: Path, tmp_path: Path) -> None:
    log = tmp_path / "4711.out"
    log.write_text("step 100/200 loss 2.1\nstep 150/200 loss 2.0\n")
    now = time.time()
    os.utime(log, (now, now))
    start = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now - 600))
    end = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now + 3_000))
    slurm.say(
        jobs=[queue_row("4711", STDOUT=str(log), STDERR=str(log), StartTime=start, EndTime=end)],
        details={"4711": detail_text("4711", "RUNNING", out=str(log), start=start, end=end)},
    )
    done = slurmtop(slurm.environ(home), "why", "4711")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("what   step 150 of 200, log written ")
    assert "4711.out:2: step 150/200 loss 2.0" in done.stdout


def test_a_forgotten_job_comes_from_accounting(slurm: StandIns, home: Path) -> None:
    slurm.say(sacct=[sacct_row("4711", "TIMEOUT"), sacct_row("4711.batch", "CANCELLED", "0:15")])
    done = slurmtop(slurm.environ(home), "why", "4711")
    assert done.returncode == 2, done.stderr
    assert "time limit of 1-00:00:00" in done.stdout.splitlines()[0]


def test_ended_and_accounting_lags(slurm: StandIns, home: Path) -> None:
    slurm.say(sacct=[sacct_row("4711", "RUNNING", End="Unknown")])
    done = slurmtop(slurm.environ(home), "why", "4711")
    assert done.returncode == 0
    assert "result not known yet" in done.stdout


def test_unknown_everywhere(slurm: StandIns, home: Path) -> None:
    done = slurmtop(slurm.environ(home), "why", "4711")
    assert done.returncode == 1
    assert "not in the queue and not in accounting" in done.stdout


def test_nobody_answers(slurm: StandIns, home: Path) -> None:
    words = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
    slurm.say(
        refuse={
            "squeue": [words, 1],
            "scontrol": [words, 1],
            "sacct": ["sacct: error: Problem talking to the database: Connection refused", 1],
        }
    )
    done = slurmtop(slurm.environ(home), "why", "4711")
    assert done.returncode == 1
    assert "neither the controller nor accounting answers" in done.stdout
    assert "no such job" not in done.stdout


def test_no_accounting_here(slurm: StandIns, home: Path) -> None:
    slurm.say(refuse={"sacct": ["Slurm accounting storage is disabled", 1]})
    done = slurmtop(slurm.environ(home), "why", "4711")
    assert done.returncode == 1
    assert len([call for call in slurm.calls if call[0] == "sacct"]) == 1


def test_the_block_for_a_chat_is_masked(slurm: StandIns, home: Path, tmp_path: Path) -> None:
    token = "hf_" + "aB3" * 12
    log = failed_job(slurm, tmp_path)
    times = log.stat()
    log.write_text(f"ValueError: cannot log in with HF_TOKEN={token}\n")
    os.utime(log, (times.st_atime, times.st_mtime))
    done = slurmtop(slurm.environ(home), "why", "4711", "--copy")
    assert done.returncode == 2
    assert token not in done.stdout
    assert "cannot log in" in done.stdout
    assert "slurmtop 0.1.0, Slurm 24.11.5 at 20" in done.stdout


def test_an_id_with_its_cluster(slurm: StandIns, home: Path) -> None:
    slurm.say(jobs=[queue_row("4711", "PENDING")])
    done = slurmtop(slurm.environ(home), "why", "4711;beta", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["cluster"] == "beta"
    squeues = [call for call in slurm.calls if call[0] == "squeue"]
    assert all(call[call.index("-M") + 1] == "beta" for call in squeues)


@pytest.mark.parametrize("job", ["./4711", "abc", "4711/2", "-", "4711.0", "all", ""])
def test_what_is_no_job_id(slurm: StandIns, home: Path, job: str) -> None:
    done = slurmtop(slurm.environ(home), "why", job)
    assert done.returncode == 64
    assert "4711_3" in done.stderr
    assert slurm.calls == []


def test_a_recording_gives_the_same_answer(slurm: StandIns, home: Path, tmp_path: Path) -> None:
    failed_job(slurm, tmp_path)
    folder = str(tmp_path / "recording")
    first = slurmtop(slurm.environ(home), "why", "4711", "--json", "--record", folder)
    assert first.returncode == 2, first.stderr
    calls = len(slurm.calls)
    again = slurmtop({**slurm.environ(home), "PATH": "/nowhere"}, "why", "4711", "--json",
                     "--replay", folder)  # fmt: skip
    assert again.returncode == 2, again.stderr
    assert len(slurm.calls) == calls
    one, two = json.loads(first.stdout), json.loads(again.stdout)
    for both in (one, two):
        both.pop("made_at")
    assert one == two
    assert Path(folder).stat().st_mode & 0o077 == 0


def test_a_job_of_the_recorded_queue_is_answered_from_there(
    slurm: StandIns, home: Path, tmp_path: Path
) -> None:
    slurm.say(jobs=[queue_row("4711", State="PENDING", Reason="Priority", StartTime="N/A")])
    folder = str(tmp_path / "recording")
    first = slurmtop(slurm.environ(home), "jobs", "--record", folder)
    assert "from a recording" not in first.stdout
    environ = {**slurm.environ(home), "PATH": "/nowhere"}
    for arguments in (("jobs",), ()):
        again = slurmtop(environ, *arguments, "--replay", folder)
        assert re.search(r"\(from a recording of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\)", again.stdout)
    listed = slurmtop(environ, "jobs", "--json", "--replay", folder)
    assert json.loads(listed.stdout)["recorded_at"]
    why = slurmtop(environ, "why", "4711", "--replay", folder)
    assert (why.returncode, "neither the controller" in why.stdout) == (0, False), why.stdout
    assert "waiting" in why.stdout, why.stdout
    assert re.search(r"proof +the queue as recorded at 20[-\d :]+: 4711 PENDING", why.stdout)
    assert "this is what the queue said" in why.stderr
    told = json.loads(slurmtop(environ, "why", "4711", "--json", "--replay", folder).stdout)
    assert "from the queue as recorded at" in told["missing"][0]["why"]
    unknown = slurmtop(environ, "why", "4799", "--replay", folder)
    assert unknown.returncode == 1
