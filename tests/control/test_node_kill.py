"""The script that signals processes, run for real by every shell that is here."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurmtop.control.actions import RankPid
from slurmtop.control.node_kill import Sent, kill_argv, read_kill
from slurmtop.model.ids import JobKey
from slurmtop.model.ports import Completed
from tests.fakes import START

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
CODE = (
    "import signal,sys\n"
    "open('/proc/self/comm','w').write('a) Z 1\\n(b')\n"
    "signal.signal(signal.SIGUSR1, lambda *_: print('got it', flush=True))\n"
    "print('ready', flush=True)\n"
    "while not sys.stdin.closed and sys.stdin.readline(): pass\n"
)


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    made = subprocess.Popen(
        [sys.executable, "-c", CODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert made.stdout is not None
    assert made.stdout.readline() == b"ready\n"
    yield made
    made.kill()
    made.communicate()


def _rank(pid: int, ticks: int) -> RankPid:
    return RankPid(host="gpu01", pid=pid, start_ticks=ticks, job=JobKey("", "1"), raw_id="1")


def _ticks(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox"])
def test_only_the_process_that_was_shown_gets_it(
    child: subprocess.Popen[bytes], shell: str
) -> None:
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"no {shell} here")
    start = [path, "sh"] if shell == "busybox" else [path]
    here = _rank(child.pid, _ticks(child.pid))
    other = _rank(child.pid, here.start_ticks + 1)
    dead = subprocess.Popen(["sleep", "900"])
    ended = _rank(dead.pid, _ticks(dead.pid))
    dead.kill()
    # Not collected yet: a zombie is there and gets nothing.
    os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)
    dead_words = _run(start, ended)
    dead.wait()
    assert dead_words == Sent.GONE
    assert _run(start, ended) == Sent.GONE
    assert _run(start, other) == Sent.REUSED
    assert child.poll() is None
    assert _run(start, here) == Sent.SENT
    assert child.stdout is not None
    assert child.stdout.readline() == b"got it\n", "once, and not for the other start"
    child.send_signal(signal.SIGKILL)


def _run(shell: list[str], rank: RankPid) -> Sent:
    argv = kill_argv("USR1", [rank])
    done = subprocess.run([*shell, *argv[1:]], capture_output=True, timeout=30, check=False)
    assert done.stderr == b""
    completed = Completed(done.returncode, done.stdout, done.stderr, START, 0.1)
    return read_kill(completed, [rank])[rank]


def test_words_that_nobody_expects_are_no_success() -> None:
    rank = _rank(30, 1)
    for said in (b"", b"31 sent\n", b"30 ok\n", b"\xff\xfe 30 sent", b"30  sent\n"):
        assert read_kill(Completed(0, said, b"", START, 0.1), [rank]) == {rank: Sent.UNREACHED}
