"""The other subcommands, and how every one of them ends."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.stand_ins import StandIns, current_name, detail_text, queue_row, slurmtop

#: How an answer came about, beside the answer itself.
_ANSWERS = re.compile(r"slurmtop: [0-9.]+ s: (first answer|so far|verdict): ")


def three_jobs(slurm: StandIns) -> None:
    slurm.say(
        jobs=[
            queue_row("4711"),
            queue_row("4712_[1-5]", "PENDING", Reason="Priority"),
            queue_row("4713", "PENDING", UserName="somebody", Reason="Resources"),
        ],
        details={"4711": detail_text("4711", "RUNNING")},
    )


def test_jobs(slurm: StandIns, home: Path) -> None:
    three_jobs(slurm)
    done = slurmtop(slurm.environ(home), "jobs")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"6 jobs of {current_name()}: 1 running, 5 waiting")
    assert [line.split()[0] for line in lines[1:]] == ["JOB", "4711", "4712_[1-5]"]


def test_jobs_of_everybody_filtered_as_json(slurm: StandIns, home: Path) -> None:
    three_jobs(slurm)
    done = slurmtop(
        slurm.environ(home), "jobs", "--all-users", "--filter", "state:pending", "--json"
    )
    found = json.loads(done.stdout)
    assert found["schema"] == "slurmtop.jobs/1"
    assert found["user"] is None
    assert found["age_s"] >= 0
    assert found["unreadable_records"] == 0
    assert [job["id"] for job in found["jobs"]] == ["4713", "4712_[1-5]"]
    assert found["jobs"][1]["tasks"] == 5
    assert found["jobs"][0]["start"] is None


def test_a_filter_that_is_none(slurm: StandIns, home: Path) -> None:
    done = slurmtop(slurm.environ(home), "jobs", "--filter", "stat:pending")
    assert done.returncode == 64
    assert "--filter" in done.stderr
    assert slurm.calls == []


@pytest.mark.parametrize("arguments", [("jobs",), ("jobs", "--json"), ()])
def test_an_outage_is_no_empty_queue(
    slurm: StandIns, home: Path, arguments: tuple[str, ...]
) -> None:
    words = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
    slurm.say(refuse={"squeue": [words, 1]})
    done = slurmtop(slurm.environ(home), *arguments)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("slurmtop: the queue cannot be read: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("arguments", [("jobs",), ("why", "4711"), ()])
def test_a_signal_leaves_no_child_behind(
    slurm: StandIns, home: Path, tmp_path: Path, arguments: tuple[str, ...], number: int
) -> None:
    pid_file = tmp_path / "pid"
    (slurm.folder / "squeue").unlink()
    program = slurm.folder / "squeue"
    program.write_text(
        f"#!/bin/sh\necho $$ > {pid_file}.new; mv {pid_file}.new {pid_file}\nexec sleep 1000\n"
    )
    program.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-m", "slurmtop", *arguments],
        env=slurm.environ(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        wait_until(pid_file.exists)
        process.send_signal(number)
        out, err = process.communicate(timeout=10)
    finally:
        process.kill()
    assert (process.returncode, out, err) == (128 + number, b"", b"")
    # Whoever inherits what was killed may need a moment to bury it.
    wait_until(lambda: not alive(int(pid_file.read_text())), 10.0)


def alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(done: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline
        select.select([], [], [], 0.02)


def garble(slurm: StandIns) -> None:
    for name in ("squeue", "scontrol", "sacct"):
        program = slurm.folder / name
        program.unlink()
        program.write_text("#!/bin/sh\necho hello garbage\n")
        program.chmod(0o755)


@pytest.mark.parametrize("arguments", [("jobs",), ("jobs", "--json"), ()])
def test_an_answer_that_cannot_be_read_is_no_empty_queue(
    slurm: StandIns, home: Path, arguments: tuple[str, ...]
) -> None:
    garble(slurm)
    done = slurmtop(slurm.environ(home), *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert "squeue answered something slurmtop cannot read: 'hello garbage'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_why_does_not_take_garbage_for_a_job_that_does_not_exist(
    slurm: StandIns, home: Path
) -> None:
    garble(slurm)
    done = slurmtop(slurm.environ(home), "why", "4711", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["state"]) == (1, "unknown")
    text = json.dumps(found)
    for program in ("squeue", "scontrol", "sacct"):
        assert f"{program} answered something slurmtop cannot read" in text
    assert "not in the queue" not in text
    assert "does not exist" not in text


@pytest.mark.parametrize("arguments", ["demo", "--help", "jobs", "why 4711", "--version"])
@pytest.mark.parametrize(
    ("target", "says"), [(">&-", "output is closed"), (">/dev/full", "cannot be written")]
)
def test_output_that_cannot_be_written(
    slurm: StandIns, home: Path, arguments: str, target: str, says: str
) -> None:
    three_jobs(slurm)
    done = subprocess.run(
        ["/bin/sh", "-c", f"'{sys.executable}' -m slurmtop {arguments} {target}"],
        env=slurm.environ(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert says in done.stderr
    assert "fault" not in done.stderr
    # Beside how the answer came about, which why tells there.
    told = [line for line in done.stderr.splitlines() if not _ANSWERS.match(line)]
    assert len(told) == 1


def test_an_empty_queue_says_so(slurm: StandIns, home: Path) -> None:
    slurm.say(jobs=[])
    done = slurmtop(slurm.environ(home))
    assert done.returncode == 0
    assert done.stdout == f"0 jobs of {current_name()} (0 s old)\n"


def test_the_plain_report(slurm: StandIns, home: Path) -> None:
    three_jobs(slurm)
    mine = slurmtop(slurm.environ(home))
    assert mine.returncode == 0
    assert "4711" in mine.stdout
    assert "4713" not in mine.stdout
    everybody = slurmtop(slurm.environ(home), "--all-users")
    assert "4713" in everybody.stdout


@pytest.mark.parametrize("arguments", [(), ("why", "4711"), ("jobs",)])
def test_without_slurm(home: Path, slurm: StandIns, arguments: tuple[str, ...]) -> None:
    done = slurmtop({**slurm.environ(home), "PATH": "/nowhere"}, *arguments)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "slurmtop demo" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_demo_without_a_terminal(home: Path, slurm: StandIns) -> None:
    done = slurmtop({**slurm.environ(home), "PATH": "/nowhere"}, "demo")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Nothing here is real." in done.stdout
    lines = done.stdout.splitlines()
    hung = lines.index("slurmtop why 4817")
    assert "rank 11 on gpu04 waits for data at train.py:88" in lines[hung + 1]
    assert re.match(r"who    rank 11 pid \d+ on gpu04", lines[hung + 2])
    assert lines[hung + 3].startswith("proof  stack on gpu04: ")
    assert "These commands are for a real cluster." in done.stdout
    assert "/ 4817, enter twice, and p" in lines[-1]
    failed = next(n for n, line in enumerate(lines) if line.startswith("what   failed"))
    assert lines[failed + 1].startswith("who    ")
    assert lines[failed + 2].startswith("proof  ")
    assert lines[failed + 3].startswith("do     ")


def test_an_unknown_scenario(home: Path, slurm: StandIns) -> None:
    done = slurmtop(slurm.environ(home), "demo", "nosuch")
    assert done.returncode == 64
    assert "busy" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [("--version",), ("--help",), ("why", "4711"), ("why", "4711", "--json"), ("jobs",),
     ("jobs", "--json"), (), ("demo",)],
)  # fmt: skip
def test_textual_is_imported_by_the_screen_only(
    slurm: StandIns, home: Path, arguments: tuple[str, ...]
) -> None:
    three_jobs(slurm)
    # A job without a log is looked at on its nodes.
    banned = {"textual", "rich", "plotext", *(() if "why" in arguments else ("asyncssh",))}
    code = (
        "import sys\n"
        "from slurmtop.cli.main import main\n"
        f"main({list(arguments)!r})\n"
        f"bad = {banned!r} & set(sys.modules)\n"
        "sys.exit(f'imported: {bad}' if bad else 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=slurm.environ(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_first_questions_are_asked_before_textual_is_imported(
    slurm: StandIns, home: Path
) -> None:
    three_jobs(slurm)
    code = (
        "import os, sys\n"
        "from slurmtop.cli import tui\n"
        "from slurmtop.cli.options import Options\n"
        "from slurmtop.cli.wiring import open_wiring\n"
        "wiring = open_wiring(Options(), os.environ, early_queue=True)\n"
        "assert 'textual' not in sys.modules\n"
        "import asyncio\n"
        "async def first():\n"
        "    answer = await wiring.queue_source(all_users=False).fetch()\n"
        "    info = await tui._cluster_info(wiring)\n"
        "    await wiring.aclose()\n"
        "    print(len(answer.rows), info.name, sorted(wiring.runner.by_program.items()))\n"
        "asyncio.run(first())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=slurm.environ(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout == "2 mini [('scontrol', 1), ('squeue', 1)]\n"
    assert sorted(call[0] for call in slurm.calls) == ["scontrol", "squeue"]


def test_children_are_not_filtered_by_the_environment(slurm: StandIns, home: Path) -> None:
    three_jobs(slurm)
    done = slurmtop(slurm.environ(home, SQUEUE_STATES="RUNNING", SLURM_CLUSTERS="beta"), "jobs")
    assert done.returncode == 0
    assert "4712" in done.stdout
    (call,) = slurm.calls
    assert call[call.index("-M") + 1] == "beta"


@pytest.mark.parametrize("named", ["a,b", "all", "--x"])
def test_several_clusters_need_a_choice(slurm: StandIns, home: Path, named: str) -> None:
    done = slurmtop(slurm.environ(home, SLURM_CLUSTERS=named), "jobs")
    assert done.returncode == 64
    assert "--cluster NAME" in done.stderr
    chosen = slurmtop(slurm.environ(home, SLURM_CLUSTERS=named), "jobs", "--cluster", "a")
    assert chosen.returncode == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [("thme: nord\n", "line 1"), ("a: [\n", "not YAML"), ("queue_interval_s: soon\n", "seconds")],
)
def test_settings_that_are_wrong(
    slurm: StandIns, home: Path, tmp_path: Path, text: str, says: str
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    done = slurmtop(slurm.environ(home), "jobs", "--config", str(file))
    assert done.returncode == 1
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert slurm.calls == []
    missing = slurmtop(slurm.environ(home), "jobs", "--config", str(tmp_path / "none.yaml"))
    assert missing.returncode == 1
    assert "there is no such file" in missing.stderr


def test_recording_and_replay_that_cannot_be(slurm: StandIns, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    into_file = slurmtop(slurm.environ(home), "jobs", "--record", str(file))
    assert into_file.returncode == 1
    assert "cannot record into" in into_file.stderr
    nothing = slurmtop(slurm.environ(home), "jobs", "--replay", str(tmp_path / "nothing"))
    assert nothing.returncode == 1
    assert "cannot replay" in nothing.stderr
    assert nothing.stderr.count("\n") == 1


def _start(environ: dict[str, str], *arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "slurmtop", *arguments],
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A shell's background job, where a test run may stand, starts with SIGINT ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


class Bell:
    """A pipe with a name into which a stand-in says that it was called."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self._handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def wait(self, seconds: float = 20.0) -> None:
        heard, _, _ = select.select([self._handle], [], [], seconds)
        assert heard, "the stand-in was not called"

    def close(self) -> None:
        os.close(self._handle)


@pytest.fixture
def bell(tmp_path: Path) -> Iterator[Bell]:
    made = Bell(tmp_path / "bell")
    yield made
    made.close()


@pytest.mark.parametrize("arguments", [("jobs",), ("why", "4711"), ()])
def test_ctrl_c_is_quiet(
    slurm: StandIns, home: Path, tmp_path: Path, bell: Bell, arguments: tuple[str, ...]
) -> None:
    slurm.say(slow_s={"squeue": 30}, bell=str(tmp_path / "bell"))
    process = _start(slurm.environ(home), *arguments)
    bell.wait()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert (out, err) == (b"", b"")


def test_a_closed_pipe_is_quiet(slurm: StandIns, home: Path) -> None:
    slurm.say(jobs=[queue_row(str(1000 + n)) for n in range(3_000)], slow_s={"squeue": 0.3})
    process = _start(slurm.environ(home), "jobs")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=30) == 141
    assert err == b""


def test_odd_locales_cost_signs_only(slurm: StandIns, home: Path) -> None:
    slurm.say(jobs=[queue_row("4711", Name="模型"), queue_row("4712", Name="a\udcffb")])
    done = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-m", "slurmtop", "jobs"],
        env=slurm.environ(home, LC_ALL="POSIX", PYTHONCOERCECLOCALE="0"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"4711" in done.stdout
    assert b"4712" in done.stdout
