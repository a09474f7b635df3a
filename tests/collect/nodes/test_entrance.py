"""The entrance, read by every login shell that is here; what is not installed is skipped."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.collect.nodes.entrance import NOISE_BYTES, Doorway, entrance
from slurmtop.collect.nodes.script import Unframer, framed, new_mark
from tests.collect.helpers import alive

SHELLS = ("sh", "dash", "bash", "tcsh", "csh", "fish", "zsh", "ksh", "busybox")
NASTY = "printf '%s\\n' \"it's\" '$HOME !x `id` \\\\ é \\n'; cat; echo err >&2; exit 5"


def login(shell: str, command: str, home: Path) -> "subprocess.Popen[bytes]":
    """As sshd does it: ``SHELL -c COMMAND``."""
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"{shell} is not installed")
    pipe = subprocess.PIPE
    argv = [path, *(("sh",) if shell == "busybox" else ()), "-c", command]
    env = {**os.environ, "HOME": str(home), "BASH_ENV": str(home / "noisy")}
    return subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, env=env)


def gone(pid: int) -> None:
    limit = time.monotonic() + 20
    while alive(pid):
        assert time.monotonic() < limit, f"{pid} still runs"
        time.sleep(0.01)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose bash speaks before it does anything, without a line break at the end."""
    (tmp_path / "noisy").write_text("echo 'Lmod: loading'; printf 'quota 97%%'; echo hm >&2\n")
    return tmp_path


@pytest.mark.parametrize("shell", SHELLS)
def test_every_login_shell_runs_the_script_unchanged(shell: str, home: Path) -> None:
    mark = new_mark()
    way_in = entrance(framed(("/bin/sh", "-c", NASTY), mark, timeout_s=20))
    child = login(shell, way_in.command, home)
    assert child.stdin is not None
    assert child.stdout is not None
    # stdin is held open, as the ways hold it.
    child.stdin.write(way_in.payload)
    child.stdin.flush()
    doorway, found = Doorway(way_in.mark), Unframer(mark)
    said = found.feed(doorway.feed(child.stdout.read()))
    assert child.wait(20) == 0
    child.communicate()
    assert said == "it's\n$HOME !x `id` \\\\ é \\n\n".encode()
    assert (found.rc, found.stderr, found.complete) == (5, b"err", True)
    if shell == "bash":
        assert doorway.noise == b"Lmod: loading\nquota 97%"


@pytest.mark.parametrize("shell", SHELLS)
def test_the_end_of_stdin_ends_everything(shell: str, home: Path) -> None:
    # Also what ignores TERM, and what ``timeout`` has put into a group of its own.
    text = "trap '' TERM; sleep 600 & echo pids $$ $!; sleep 601"
    way_in = entrance(framed(("/bin/sh", "-c", text), new_mark(), timeout_s=900))
    child = login(shell, way_in.command, home)
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(way_in.payload)
    child.stdin.flush()
    line = b""
    while not line.startswith(b"pids "):
        line = child.stdout.readline()
        assert line, "the script was never run"
    pids = [int(word) for word in line.split()[1:]]
    assert all(alive(pid) for pid in pids)
    child.stdin.close()
    # The shell that sshd waits for goes at once: a process in state D would keep nobody waiting.
    child.wait(20)
    child.stdout.close()
    assert child.stderr is not None
    child.stderr.close()
    for pid in pids:
        gone(pid)


def test_half_a_script_is_none(home: Path) -> None:
    way_in = entrance(b"echo run\n")
    for size in (0, 10, len(way_in.payload) // 2, len(way_in.payload) - 1):
        child = login("sh", way_in.command, home)
        stdout, _ = child.communicate(way_in.payload[:size])
        assert (child.returncode, stdout) == (97, b"")


def test_what_a_script_leaves_running_ends_with_it(home: Path) -> None:
    way_in = entrance(b"sleep 600 >/dev/null 2>&1 & echo $!\n")
    child = login("sh", way_in.command, home)
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(way_in.payload)
    child.stdin.flush()
    doorway = Doorway(way_in.mark)
    pid = int(doorway.feed(child.stdout.read()))
    child.wait(20)
    child.communicate()
    gone(pid)


def test_the_command_holds_nothing_that_a_shell_reads_in_its_own_way() -> None:
    command = entrance(b"x" * 70_000).command
    inner = command.removeprefix("exec /bin/sh -c '").removesuffix("'")
    assert not set(inner) & set("'\\!\n`")
    assert len(command) < 300


@given(st.lists(st.binary(max_size=60)), st.integers(1, 7))
def test_a_mark_is_found_wherever_the_stream_is_cut(noise: list[bytes], size: int) -> None:
    way_in = entrance(b"")
    before = b"".join(noise)
    stream = before + way_in.mark.encode() + b"\n" + b"answer" + before
    doorway = Doorway(way_in.mark)
    got = b"".join(doorway.feed(stream[n : n + size]) for n in range(0, len(stream), size))
    assert doorway.inside
    assert got == b"answer" + before
    assert doorway.noise == before[-NOISE_BYTES:]


def test_endless_noise_is_bounded() -> None:
    doorway = Doorway("mark")
    for _ in range(50):
        assert doorway.feed(b"x" * 10_000) == b""
    assert len(doorway.noise) <= NOISE_BYTES + 10
    assert doorway.feed(b"mark\nyes") == b"yes"
