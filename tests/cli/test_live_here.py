"""``why`` and ``triage`` of a job whose node is this machine: real processes, really looked at."""

import fcntl
import json
import os
import platform
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.stand_ins import StandIns, detail_text, queue_row, slurmtop

#: What waits for the others, where PyTorch has it.
C10D = """\
import threading
from pathlib import Path

def all_reduce(marks):
    lock = threading.Lock()
    lock.acquire()
    Path(marks).open("a").write("x")
    lock.acquire()
"""
TRAIN = """\
import sys
sys.path.insert(0, sys.argv[1])
from torch.distributed.distributed_c10d import all_reduce

all_reduce(sys.argv[2])
"""
DEADLINE_S = 30.0


@dataclass(frozen=True)
class Here:
    """A job of four ranks on this machine."""

    slurm: StandIns
    home: Path
    ranks: Sequence["subprocess.Popen[bytes]"]
    log: Path

    def quiet_for(self, seconds: float) -> None:
        at = time.time() - seconds
        os.utime(self.log, (at, at))

    @property
    def environ(self) -> dict[str, str]:
        return self.slurm.environ(self.home)

    def triage(self, *options: str) -> tuple[dict[str, Any], str]:
        done = slurmtop(self.environ, "triage", "4711", "--json", *options)
        return json.loads(done.stdout), done.stderr


@pytest.fixture
def here(slurm: StandIns, home: Path, tmp_path: Path) -> Iterator[Here]:
    log, node, now = tmp_path / "4711.out", platform.node(), time.time()
    log.write_text("step 100/200 loss 2.1\nstep 150/200 loss 2.0\n")
    start, end = (
        time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now + seconds)) for seconds in (-600, 3_000)
    )
    path = str(log)
    row = queue_row("4711", STDOUT=path, STDERR=path, StartTime=start, EndTime=end, NodeList=node)
    detail = detail_text("4711", "RUNNING", out=path, start=start, end=end)
    slurm.say(jobs=[row], details={"4711": detail.replace("gpu[01-02]", node)})
    package = tmp_path / "site-packages" / "torch" / "distributed"
    package.mkdir(parents=True)
    (package / "distributed_c10d.py").write_text(C10D)
    script, marks = tmp_path / "train.py", tmp_path / "at_work"
    script.write_text(TRAIN)
    argv = [sys.executable, str(script), str(tmp_path / "site-packages"), str(marks)]
    ranks = []
    try:
        for rank in range(4):
            told = {"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0", "WORLD_SIZE": "4"}
            told |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            ranks.append(subprocess.Popen(argv, env={**os.environ, **told}))
        limit = time.monotonic() + DEADLINE_S
        while not marks.exists() or marks.stat().st_size < len(ranks):
            assert time.monotonic() < limit, "the ranks never came to work"
            time.sleep(0.01)
        yield Here(slurm, home, ranks, log)
    finally:
        for one in ranks:
            one.kill()
            one.wait()


def fates(data: dict[str, Any]) -> dict[str, str]:
    return {one["source"]: one["fate"] for one in data["sources"]}


def test_a_log_that_was_just_written_gets_one_look_and_no_stacks(here: Here) -> None:
    here.quiet_for(0)
    data, err = here.triage()
    assert data["state"] == "healthy", data
    told = fates(data)
    assert told["nodes"] == told["processes"] == "answered"
    assert told["stacks"] == told["ras"] == told["flight recorder"] == "not asked"
    first, *_, last = err.splitlines()
    assert " s: first answer: healthy: step 150 of 200" in first
    assert " s: verdict: healthy: " in last


def test_why_of_it_sends_nobody_there(here: Here) -> None:
    here.quiet_for(0)
    done = slurmtop(here.environ, "why", "4711", "--json")
    data = json.loads(done.stdout)
    assert data["state"] == "healthy"
    [nodes] = [one for one in data["sources"] if one["source"] == "nodes"]
    assert (nodes["fate"], nodes["why"]) == (
        "not asked", "its log grows: nothing to look for there",
    )  # fmt: skip
    assert sorted(call[0] for call in here.slurm.calls) == ["scontrol", "squeue"]


@pytest.mark.long
def test_a_rank_that_is_stopped_is_named_after_two_looks(here: Here) -> None:
    here.quiet_for(25)
    here.ranks[2].send_signal(signal.SIGSTOP)
    kept = str(here.log.with_name("recording"))
    data, err = here.triage("--record", kept)
    assert (data["state"], data["class"]) == ("hung", "process-stopped"), data
    assert [(one["rank"], one["host"], one["pid"]) for one in data["culprits"]] == [
        (2, platform.node(), here.ranks[2].pid)
    ]
    assert " s: first answer: unknown: " in err.splitlines()[0]
    assert err.splitlines()[-1].count(" s: verdict: hung: rank 2 ") == 1
    assert len([call for call in here.slurm.calls if call[0] == "sinfo"]) == 1
    calls = len(here.slurm.calls)
    again, _ = here.triage("--replay", kept)
    assert (again["state"], again["culprits"]) == ("hung", data["culprits"])
    assert len(here.slurm.calls) == calls, "a replay asks nobody"


def test_nodes_that_are_closed_by_the_settings_are_not_asked(here: Here, tmp_path: Path) -> None:
    here.quiet_for(25)
    closed = tmp_path / "closed.yaml"
    closed.write_text("node_access: off\n")
    for options, why in (
        (("--no-nodes",), "--no-nodes"),
        (("--config", str(closed)), f"the settings say so (node_access: off, {closed})"),
    ):
        data, _ = here.triage(*options)
        [nodes] = [one for one in data["sources"] if one["source"] == "nodes"]
        assert (nodes["fate"], nodes["why"]) == ("not asked", why)
        assert data["culprits"] == []


@pytest.mark.parametrize(
    "words", [("why", "4711"), ("why", "4711", "--json"), ("why", "4711", "--copy"),
              ("triage", "4711", "--json"), ("triage", "4711", "--json", "--save", "kept")],
    ids=" ".join,
)  # fmt: skip
def test_who_breaks_it_off_keeps_the_best_answer_so_far(
    here: Here, tmp_path: Path, words: Sequence[str]
) -> None:
    here.quiet_for(25)
    asking = subprocess.Popen(
        [sys.executable, "-m", "slurmtop", *words],
        env=here.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    assert asking.stderr is not None
    assert " s: first answer: " in asking.stderr.readline()
    asking.send_signal(signal.SIGINT)
    out, err = asking.communicate(timeout=DEADLINE_S)
    assert asking.returncode == 130
    if "--json" in words:
        assert json.loads(out)["state"] == "unknown"
    elif "--copy" in words:
        assert "4711" in out
        assert "unknown" in out.lower()
    else:
        assert [line.split()[0] for line in out.splitlines()] == ["what", "who", "proof", "do"]
    saves = "--save" in words
    assert (
        "not saved whole: broken off; slurmtop triage kept judges what is in it" in err
    ) is saves


@pytest.mark.parametrize(("term", "in_place"), [("xterm-256color", True), ("dumb", False)])
def test_on_a_terminal_the_answer_is_replaced_in_place(
    here: Here, term: str, in_place: bool
) -> None:
    here.quiet_for(25)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with os.fdopen(ours, "rb", buffering=0) as screen:
        asking = subprocess.Popen(
            [sys.executable, "-m", "slurmtop", "why", "4711", "--no-nodes"],
            env={**here.environ, "TERM": term, "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=subprocess.PIPE,
            cwd="/",
        )
        os.close(theirs)
        shown = _all_of(screen)
        _, err = asking.communicate(timeout=DEADLINE_S)
    assert asking.returncode == 0, err
    assert (b"\x1b[" in shown) is in_place
    assert (b"first answer" in err) is not in_place
    last = shown.split(b"\x1b[J")[-1].decode().splitlines()
    assert [line.split()[0] for line in last] == ["what", "who", "proof", "do"]


def _all_of(screen: Any) -> bytes:
    out = b""
    while True:
        try:
            data = screen.read(65_536)
        except OSError:
            return out
        if not data:
            return out
        out += data
