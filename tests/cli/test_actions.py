"""cancel, requeue, hold, release, signal: what is done, what is refused, how it is told."""

import json
from pathlib import Path
from typing import Any

import pytest

from slurmtop.cli.main import main
from tests.cli.stand_ins import StandIns, current_name, queue_row, slurmtop

CHANGES = ("hold", "release", "requeue", "requeuehold", "update")


def sent(slurm: StandIns) -> list[list[str]]:
    """The commands that change something."""
    return [
        call
        for call in slurm.calls
        if (call[0] == "scancel" and call[1:] != ["--version"])
        or (call[0] == "scontrol" and any(word in CHANGES for word in call))
    ]


def log_lines(home: Path) -> list[dict[str, Any]]:
    path = home / ".local/state/slurmtop/actions.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def queue(slurm: StandIns, *rows: dict[str, str], **more: Any) -> None:
    slurm.say(jobs=list(rows), **more)


def held(id: str) -> dict[str, str]:
    return queue_row(id, "PENDING", PriorityLong="0", Reason="JobHeldUser")


@pytest.mark.parametrize(
    ("arguments", "row", "command", "says"),
    [
        (("cancel", "4711"), queue_row("4711"), ["scancel", "4711"], "cancelled"),
        (
            ("hold", "4711"),
            queue_row("4711", "PENDING"),
            ["scontrol", "hold", "4711"],
            "held",
        ),
        (("release", "4711"), held("4711"), ["scontrol", "release", "4711"], "released"),
        (("requeue", "4711"), queue_row("4711"), ["scontrol", "requeue", "4711"], "requeued"),
        (
            ("requeue", "4711", "--hold"),
            queue_row("4711"),
            ["scontrol", "requeuehold", "4711"],
            "held",
        ),
    ],
)
def test_each_is_done_read_back_and_logged(
    slurm: StandIns,
    home: Path,
    arguments: tuple[str, ...],
    row: dict[str, str],
    command: list[str],
    says: str,
) -> None:
    queue(slurm, row, scripts={"4711": "#!/bin/bash\nsrun true\n"})
    done = slurmtop(slurm.environ(home), *arguments, "--yes")
    assert done.returncode == 0, done.stderr
    assert sent(slurm) == [command]
    (line,) = done.stdout.splitlines()
    assert line.startswith("job 4711: ")
    assert says in line
    asked, outcome = log_lines(home)
    assert (asked["event"], outcome["event"]) == ("asked", "outcome")
    assert asked["commands"] == [command]
    assert asked["id"] == outcome["id"]


def test_a_signal(slurm: StandIns, home: Path) -> None:
    queue(
        slurm,
        queue_row("4711"),
        steps=[
            {
                "StepID": "4711.0",
                "StepName": "train",
                "StepState": "RUNNING",
                "NumTasks": "2",
                "Nodes": "gpu[01-02]",
                "StartTime": "2031-05-05T09:00:00",
            }
        ],
        scripts={"4711": "#!/bin/bash\ntrap 'touch stop' USR1\nsrun train &\nwait\n"},
    )
    done = slurmtop(slurm.environ(home), "signal", "4711", "--signal", "SIGusr1", "--yes")
    assert sent(slurm) == [["scancel", "--ctld", "--signal=USR1", "4711"]]
    assert done.stdout.startswith("job 4711: ")


def test_without_a_question_it_is_told_who_dies_and_why(slurm: StandIns, home: Path) -> None:
    queue(slurm, queue_row("4711"), scripts={"4711": "#!/bin/bash\npython train.py\n"})
    arguments = ("signal", "4711", "--signal", "USR1", "--to", "everything")
    for how in ("--dry-run", "--yes"):
        done = slurmtop(slurm.environ(home), *arguments, how)
        assert "Who gets it (2): 1 dies of it, 1 not known" in done.stderr
        assert "batch shell: dies of it: " in done.stderr
        assert "dies of" not in done.stdout


@pytest.mark.parametrize(
    ("to", "option"),
    [("batch", "--batch"), ("everything", "--full")],
)
def test_whom_a_signal_is_for(slurm: StandIns, home: Path, to: str, option: str) -> None:
    queue(slurm, queue_row("4711"), scripts={"4711": "#!/bin/bash\nsrun train\n"})
    arguments = ("signal", "4711", "--signal", "10", "--to", to, "--yes")
    slurmtop(slurm.environ(home), *arguments)
    assert sent(slurm) == [["scancel", "--ctld", "--signal=USR1", option, "4711"]]


def test_json_says_who_gets_a_signal_and_what_it_does(slurm: StandIns, home: Path) -> None:
    queue(slurm, queue_row("4711"), scripts={"4711": "#!/bin/bash\npython train.py\n"})
    arguments = ("signal", "4711", "--signal", "USR1", "--to", "batch", "--yes", "--json")
    found = json.loads(slurmtop(slurm.environ(home), *arguments).stdout)
    (shell,) = found["reactions"]
    assert (shell["who"], shell["fate"], shell["ends_job"]) == ("batch shell", "dies", False)
    assert "no trap for USR1" in shell["why"]


STEP = {
    "StepID": "4711.0",
    "StepName": "train",
    "StepState": "RUNNING",
    "NumTasks": "1",
    "Nodes": "gpu01",
    "StartTime": "2031-05-05T09:00:00",
}


def test_one_step(slurm: StandIns, home: Path) -> None:
    queue(slurm, queue_row("4711", NumNodes="1", NodeList="gpu01"), steps=[STEP])
    done = slurmtop(slurm.environ(home), "cancel", "4711.0", "4711.7", "--yes", "--json")
    assert sent(slurm) == [["scancel", "--ctld", "4711.0"]]
    jobs = json.loads(done.stdout)["jobs"]
    assert [(job["id"], job["outcome"]) for job in jobs] == [
        ("4711.0", "done"),
        ("4711.7", "no_such_job"),
    ]
    assert "its steps are 0" in jobs[1]["sentence"]


def test_a_signal_to_the_step_of_that_number(slurm: StandIns, home: Path) -> None:
    queue(slurm, queue_row("4711"), steps=[STEP], scripts={"4711": "#!/bin/bash\nsrun x\n"})
    arguments = ("signal", "4711", "--signal", "USR2", "--to", "0", "--yes")
    slurmtop(slurm.environ(home), *arguments)
    assert sent(slurm) == [["scancel", "--ctld", "--signal=USR2", "4711.0"]]


def test_the_form_of_the_json_is_stable(slurm: StandIns, home: Path) -> None:
    queue(slurm, queue_row("4711"))
    done = slurmtop(slurm.environ(home), "cancel", "4711", "99999", "--yes", "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert list(found) == [
        "schema",
        "slurmtop",
        "kind",
        "cluster",
        "dry_run",
        "ok",
        "started_at",
        "took_s",
        "commands",
        "hosts",
        "jobs",
        "warnings",
        "reactions",
        "refused",
        "log_trouble",
        "saved",
    ]
    assert found["schema"] == "slurmtop.action-outcome/1"
    assert (found["kind"], found["ok"], found["dry_run"]) == ("cancel", False, False)
    assert found["commands"] == [["scancel", "4711"]]
    assert (found["refused"], found["log_trouble"], found["cluster"]) == (None, None, None)
    assert [list(job) for job in found["jobs"]] == [
        ["id", "outcome", "ok", "state", "sentence"],
        ["id", "outcome", "ok", "state", "sentence"],
    ]
    assert [(job["id"], job["outcome"], job["ok"]) for job in found["jobs"]] == [
        ("4711", "done", True),
        ("99999", "no_such_job", False),
    ]
    assert found["jobs"][0]["state"] == "CANCELLED"


def test_only_the_failed_tasks_of_an_array_are_requeued(slurm: StandIns, home: Path) -> None:
    queue(
        slurm,
        queue_row("4711_0", "COMPLETED"),
        queue_row("4711_1", "FAILED", JobID="4712"),
        queue_row("4711_2", JobID="4713"),
        queue_row("4711_[3-9]", "PENDING"),
    )
    done = slurmtop(slurm.environ(home), "requeue", "4711", "--yes")
    assert sent(slurm) == [["scontrol", "requeue", "4711_1"]]
    (note,) = [line for line in done.stderr.splitlines() if "array 4711" in line]
    assert "only its 1 failed task" in note
    assert note.endswith("left as they are: 1 completed, 7 pending, 1 running")
    saved, requeued = done.stdout.splitlines()
    assert saved.startswith("saved first: ")
    assert requeued.startswith("job 4711_1: requeued")


def test_jobs_that_cannot_be_meant_cost_no_other(slurm: StandIns, home: Path) -> None:
    queue(
        slurm,
        queue_row("4711"),
        queue_row("4712", "COMPLETED"),
    )
    done = slurmtop(
        slurm.environ(home), "cancel", "4711", "4712", "4711", "4714", "--yes", "--json"
    )
    assert done.returncode == 1
    assert sent(slurm) == [["scancel", "4711"]]
    jobs = json.loads(done.stdout)["jobs"]
    assert [(job["id"], job["outcome"]) for job in jobs] == [
        ("4711", "done"),
        ("4712", "refused"),
        ("4714", "no_such_job"),
    ]
    assert "already over" in jobs[1]["sentence"]


def test_what_slurm_refuses_is_told_and_is_no_success(slurm: StandIns, home: Path) -> None:
    queue(
        slurm,
        queue_row("4711", "PENDING"),
        scontrol={"4711": "Access/permission denied"},
    )
    done = slurmtop(slurm.environ(home), "hold", "4711", "--yes", "--json", timeout_s=150)
    assert done.returncode == 1
    (job,) = json.loads(done.stdout)["jobs"]
    assert job["outcome"] == "denied"


def test_a_waiting_job_gets_no_signal(slurm: StandIns, home: Path) -> None:
    queue(slurm, queue_row("4711", "PENDING"))
    done = slurmtop(slurm.environ(home), "signal", "4711", "--signal", "USR1", "--yes")
    assert done.returncode == 1
    assert sent(slurm) == []
    assert "not started" in done.stdout


def test_rank_processes_without_a_look_at_their_nodes_get_nothing(
    slurm: StandIns, home: Path
) -> None:
    queue(slurm, queue_row("4711"))
    arguments = ("signal", "4711", "--signal", "USR1", "--to", "ranks", "--yes")
    done = slurmtop(slurm.environ(home), *arguments)
    assert (done.returncode, sent(slurm)) == (1, [])
    assert "no rank process of job 4711 is reached" in done.stdout


@pytest.mark.parametrize("verb", ["cancel", "requeue", "hold", "release", "signal"])
def test_nothing_without_a_terminal_and_without_yes(slurm: StandIns, home: Path, verb: str) -> None:
    queue(slurm, queue_row("4711"))
    more = ("--signal", "USR1") if verb == "signal" else ()
    done = slurmtop(slurm.environ(home), verb, "4711", *more)
    assert done.returncode == 64
    assert slurm.calls == []
    assert done.stdout == ""
    assert "--yes" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("cancel",), "JOB"),
        (("cancel", "x", "--yes"), "no job id"),
        (("hold", "4711.0", "--yes"), "a step cannot be held: name its job, 4711"),
        (("release", "4711_3.0", "--yes"), "a step cannot be released: name its job, 4711_3"),
        (("requeue", "4711.0", "--yes"), "a step cannot be requeued: name its job, 4711"),
        (("signal", "4711", "--yes"), "--signal"),
        (("signal", "4711", "--signal", "NOSUCH", "--yes"), "there is no signal"),
        (("signal", "4711", "--signal", "USR1", "--to", "moon", "--yes"), "--to"),
        (("signal", "4711.0", "--signal", "USR1", "--to", "batch", "--yes"), "is a step already"),
        (("signal", "4711_[1-2]", "--signal", "USR1", "--to", "0", "--yes"), "has no step"),
        (("cancel", "1;a", "2;b", "--yes"), "one cluster at a time"),
        (("cancel", "4711", "--hold"), "unrecognized"),
    ],
)
def test_wrong_usage_asks_nobody(
    slurm: StandIns, home: Path, arguments: tuple[str, ...], says: str
) -> None:
    done = slurmtop(slurm.environ(home), *arguments)
    assert (done.returncode, done.stdout, slurm.calls) == (64, "", [])
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_dry_run_runs_nothing(slurm: StandIns, home: Path) -> None:
    queue(slurm, queue_row("4711"), queue_row("4712", "PENDING"))
    done = slurmtop(slurm.environ(home), "cancel", "4711", "4712", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert sent(slurm) == []
    assert log_lines(home) == []
    assert done.stdout.splitlines()[0] == "would run: scancel 4711 4712"
    assert "job 4712: would be cancelled; dry run, nothing was done" in done.stdout


def test_a_dry_run_says_what_would_be_refused(slurm: StandIns, home: Path) -> None:
    queue(slurm, queue_row("4711"), queue_row("4712", "COMPLETED"))
    done = slurmtop(slurm.environ(home), "cancel", "4711", "4712", "--dry-run", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 1
    assert found["dry_run"] is True
    assert [job["outcome"] for job in found["jobs"]] == ["dry_run", "refused"]


def test_a_log_that_cannot_be_written(slurm: StandIns, home: Path) -> None:
    queue(slurm, queue_row("4711"))
    (home / ".local").write_text("in the way")
    environ = slurm.environ(home)
    done = slurmtop(environ, "cancel", "4711", "--yes", "--json")
    assert done.returncode == 1
    assert sent(slurm) == []
    found = json.loads(done.stdout)
    assert "--without-log" in found["refused"]
    assert found["log_trouble"]
    assert "--without-log" in done.stderr
    done = slurmtop(environ, "cancel", "4711", "--yes", "--without-log")
    assert done.returncode == 0, done.stderr
    assert sent(slurm) == [["scancel", "4711"]]
    assert "log of actions" in done.stderr


OUTAGE = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"


def test_an_outage_is_no_unknown_job(slurm: StandIns, home: Path) -> None:
    queue(slurm, queue_row("4711"), refuse={"squeue": [OUTAGE, 1]})
    done = slurmtop(slurm.environ(home), "cancel", "4711", "--yes", "--json")
    assert done.returncode == 1
    assert sent(slurm) == []
    found = json.loads(done.stdout)
    assert found["jobs"] == []
    assert found["refused"].startswith("nothing was done: ")
    assert done.stderr.count("\n") == 1


def test_without_slurm(home: Path, slurm: StandIns) -> None:
    environ = {**slurm.environ(home), "PATH": "/nowhere"}
    done = slurmtop(environ, "cancel", "4711", "--yes")
    assert done.returncode == 1
    assert "Slurm is not here" in done.stderr


def test_another_cluster(slurm: StandIns, home: Path) -> None:
    queue(slurm, queue_row("4711"))
    done = slurmtop(slurm.environ(home), "cancel", "4711;beta", "--yes")
    assert done.returncode == 0, done.stderr
    assert sent(slurm) == [["scancel", "-M", "beta", "4711"]]


def test_many_ids_are_one_request_where_scancel_can(slurm: StandIns, home: Path) -> None:
    rows = [queue_row(str(number), "PENDING") for number in range(5_000, 5_120)]
    queue(slurm, *rows, version="24.11.5")
    ids = [row["JobArrayID"] for row in rows]
    done = slurmtop(slurm.environ(home), "cancel", *ids, "--yes")
    assert done.returncode == 0, done.stderr
    (command,) = sent(slurm)
    assert command == ["scancel", "--ctld", *ids]
    assert len(done.stdout.splitlines()) == 120
    # All of one's own in one call, not three calls of fifty.
    assert sum(call[0] == "squeue" and "-j" not in call for call in slurm.calls) >= 1


@pytest.mark.parametrize("source", ["option", "own file"])
@pytest.mark.parametrize("verb", ["cancel", "requeue", "hold", "release", "signal"])
def test_read_only_refuses_every_one(slurm: StandIns, home: Path, verb: str, source: str) -> None:
    queue(slurm, queue_row("4711"))
    more = ["--signal", "USR1"] if verb == "signal" else []
    where = "--read-only"
    if source == "own file":
        folder = home / ".config/slurmtop"
        folder.mkdir(parents=True)
        (folder / "config.yaml").write_text("read_only: true\n")
        where = str(folder / "config.yaml")
    else:
        more.append("--read-only")
    done = slurmtop(slurm.environ(home), verb, "4711", "--yes", *more)
    assert done.returncode == 1
    assert slurm.calls == []
    assert "read-only" in done.stderr
    assert where in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slurm: StandIns, home: Path) -> Path:
    """The site's settings, for a command that runs in this process."""
    path = tmp_path / "site.yaml"
    monkeypatch.setattr("slurmtop.cli.wiring.SITE_PATH", path)
    for name, value in slurm.environ(home).items():
        monkeypatch.setenv(name, value)
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "SLURM_CLUSTERS"):
        monkeypatch.delenv(name, raising=False)
    return path


@pytest.mark.parametrize("verb", ["cancel", "requeue", "hold", "release", "signal"])
def test_read_only_by_the_site(
    slurm: StandIns, site: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    queue(slurm, queue_row("4711"))
    site.write_text("read_only: true\n")
    more = ["--signal", "USR1"] if verb == "signal" else []
    assert main([verb, "4711", "--yes", "--json", *more]) == 1
    assert slurm.calls == []
    shown = capsys.readouterr()
    assert str(site) in shown.err
    assert str(site) in json.loads(shown.out)["refused"]


def test_ones_own_word_stands_above_the_sites(slurm: StandIns, site: Path, home: Path) -> None:
    queue(slurm, queue_row("4711", "PENDING"))
    site.write_text("read_only: true\n")
    own = home / ".config/slurmtop/config.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("read_only: false\n")
    assert main(["hold", "4711", "--yes"]) == 0
    assert sent(slurm) == [["scontrol", "hold", "4711"]]
    assert main(["hold", "4711", "--yes", "--read-only"]) == 1


def test_one_line_to_the_system_log_where_it_is_wanted(
    slurm: StandIns, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    monkeypatch.setattr("slurmtop.cli.wiring.send_line", lines.append)
    queue(slurm, queue_row("4711", "PENDING"))
    assert main(["hold", "4711", "--yes"]) == 0
    assert lines == []
    site.write_text("syslog: true\n")
    assert main(["release", "4711", "--yes"]) == 0
    (line,) = lines
    assert line.startswith(f"{current_name()} release 4711")
    assert "released" in line


def test_read_only_stands_above_dry_run_and_needs_no_yes(slurm: StandIns, home: Path) -> None:
    for more in (["--dry-run"], []):
        done = slurmtop(slurm.environ(home), "--read-only", "cancel", "4711", *more)
        assert (done.returncode, slurm.calls) == (1, [])


def test_a_recording_can_be_looked_at_only(slurm: StandIns, home: Path, tmp_path: Path) -> None:
    queue(slurm, queue_row("4711"))
    environ = slurm.environ(home)
    folder = str(tmp_path / "rec")
    assert slurmtop(environ, "jobs", "--record", folder).returncode == 0
    done = slurmtop(environ, "cancel", "4711", "--yes", "--replay", folder)
    assert done.returncode == 1
    assert sent(slurm) == []
    assert "start it without --replay to cancel jobs" in done.stderr


def test_it_never_imports_textual(slurm: StandIns, home: Path) -> None:
    queue(slurm, queue_row("4711"))
    done = slurmtop(slurm.environ(home), "cancel", "4711", "--dry-run", python=("-X", "importtime"))
    assert done.returncode == 0
    assert "slurmtop.cli.control" in done.stderr
    assert "textual" not in done.stderr
    assert "tree_sitter" not in done.stderr


def test_the_name_of_the_user_is_the_real_one(slurm: StandIns, home: Path) -> None:
    queue(slurm, queue_row("4711"))
    slurmtop(slurm.environ(home, USER="root"), "cancel", "4711", "--yes")
    assert log_lines(home)[0]["who"] == current_name()
