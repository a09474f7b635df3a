"""The local runner, with real children."""

import asyncio
import errno
import os
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from slurmtop.collect.clock import SystemClock, cancel_and_wait, spawn
from slurmtop.collect.local import LocalRunner
from slurmtop.model.ports import Command, RunnerError
from tests.collect.helpers import DEADLINE_S, alive, until


@pytest.fixture
async def runner() -> AsyncIterator[LocalRunner]:
    environ = {**os.environ, "SQUEUE_STATES": "RUNNING", "KEPT": "yes", "TZ": "Pacific/Chatham"}
    async with LocalRunner(SystemClock(), environ, file_timeout_s=10.0) as made:
        yield made


def python(code: str, *, timeout_s: float = 20.0, max_bytes: int = 1_000_000) -> Command:
    return Command((sys.executable, "-S", "-c", code), timeout_s=timeout_s, max_bytes=max_bytes)


def shell(script: str, *, timeout_s: float) -> Command:
    """Up at once even on a busy machine, for the tests whose time limit does run out."""
    return Command(("/bin/sh", "-c", script), timeout_s=timeout_s)


async def test_output_errors_and_status_are_kept_apart(runner: LocalRunner) -> None:
    done = await runner.run(
        python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)")
    )
    assert (done.rc, done.stdout, done.stderr) == (7, b"out\n", b"err\n")
    assert not done.truncated
    assert not done.timed_out
    assert done.took_s > 0
    assert done.started_at.utcoffset() is not None


async def test_arguments_never_pass_a_shell(runner: LocalRunner) -> None:
    argument = "$(id); `id` | cat > x\n\x1f\x1e"
    done = await runner.run(
        Command((sys.executable, "-S", "-c", "import sys; print(ascii(sys.argv[1]))", argument))
    )
    assert done.stdout.decode().strip() == ascii(argument)


async def test_stdin_is_empty_unless_given(runner: LocalRunner) -> None:
    echo = "import sys; sys.stdout.write(sys.stdin.read())"
    assert (await runner.run(python(echo))).stdout == b""
    given = Command((sys.executable, "-S", "-c", echo), stdin=b"x" * 300_000)
    assert (await runner.run(given)).stdout == b"x" * 300_000


async def test_a_child_that_does_not_read_its_stdin_is_no_failure(runner: LocalRunner) -> None:
    done = await runner.run(Command((sys.executable, "-S", "-c", ""), stdin=b"x" * 3_000_000))
    assert done.rc == 0


async def test_039_children_get_a_clean_environment(runner: LocalRunner) -> None:
    code = "import os; e = os.environ; print('SQUEUE_STATES' in e, e['TZ'], e['KEPT'], e['LC_ALL'])"
    assert (await runner.run(python(code))).stdout == b"False UTC yes C.UTF-8\n"


async def test_039_endless_output_is_bounded_and_the_runaway_ended(runner: LocalRunner) -> None:
    code = "import os\nline = b'cancel [y/n]? ' * 5000\nwhile True: os.write(1, line)"
    done = await runner.run(python(code, max_bytes=100_000, timeout_s=60.0))
    assert done.truncated
    assert len(done.stdout) == 100_000
    assert done.rc == -9
    assert not done.timed_out


async def test_output_just_past_the_limit_is_drained_and_the_child_ends_itself(
    runner: LocalRunner,
) -> None:
    code = "import os, sys; sys.stdout.write('x' * 3_000_000); sys.stdout.flush(); sys.exit(3)"
    done = await runner.run(python(code, max_bytes=1000))
    assert (done.rc, done.stdout, done.truncated) == (3, b"x" * 1000, True)


async def test_output_of_exactly_the_limit_is_not_truncated(runner: LocalRunner) -> None:
    done = await runner.run(python("print('x' * 999)", max_bytes=1000))
    assert (len(done.stdout), done.truncated) == (1000, False)


async def test_a_time_limit_ends_the_whole_group(runner: LocalRunner) -> None:
    done = await runner.run(shell("sleep 600 & echo $!; wait", timeout_s=1.5))
    assert done.timed_out
    grandchild = int(done.stdout)
    await until(lambda: not alive(grandchild), "the grandchild is gone")


async def test_a_child_that_ignores_term_is_killed(runner: LocalRunner) -> None:
    done = await runner.run(
        shell("trap '' TERM; echo $$; while :; do sleep 600; done", timeout_s=1.5)
    )
    assert done.timed_out
    pid = int(done.stdout)
    await until(lambda: not alive(pid), "the child is gone")


async def test_a_daemon_that_keeps_the_output_open_does_not_hold_us(runner: LocalRunner) -> None:
    code = (
        "import subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(600)'])\n"
        "print('done')"
    )
    begun = time.monotonic()
    done = await runner.run(python(code, timeout_s=300.0))
    assert (done.rc, done.stdout) == (0, b"done\n")
    assert time.monotonic() - begun < 60


async def test_cancelling_ends_the_child(runner: LocalRunner, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = f"import os, time\nopen({str(note)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    task = spawn(runner.run(python(code, timeout_s=600)), name="test")
    await until(lambda: note.exists() and note.read_text() != "", "the child runs")
    await cancel_and_wait(task)
    assert task.cancelled()
    pid = int(note.read_text())
    await until(lambda: not alive(pid), "the child is gone")


async def test_closing_the_runner_ends_its_children(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = f"import os, time\nopen({str(note)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    async with LocalRunner(SystemClock(), os.environ) as runner:
        task = spawn(runner.run(python(code, timeout_s=600)), name="test")
        await until(lambda: note.exists() and note.read_text() != "", "the child runs")
    done = await task
    assert done.rc == -15
    assert not alive(int(note.read_text()))


async def test_closing_the_runner_ends_a_child_that_is_being_started() -> None:
    async with LocalRunner(SystemClock(), os.environ) as runner:
        task = spawn(runner.run(python("import time; time.sleep(600)", timeout_s=600)), name="test")
        # It is forked by now, and asyncio has not said so yet.
        await asyncio.sleep(0)
    async with asyncio.timeout(DEADLINE_S):
        done = await task
    assert done.rc == -15


async def test_programs_that_cannot_start_are_a_sentence(
    runner: LocalRunner, tmp_path: Path
) -> None:
    with pytest.raises(RunnerError, match="no-such-program was not found") as missing:
        await runner.run(Command(("no-such-program",)))
    assert isinstance(missing.value.__cause__, FileNotFoundError)
    plain = tmp_path / "plain"
    plain.write_text("x")
    with pytest.raises(RunnerError, match="may not run it"):
        await runner.run(Command((str(plain),)))
    with pytest.raises(RunnerError, match="could not be started"):
        await runner.run(Command(("true", "a\0b")))
    with pytest.raises(RunnerError, match="argument"):
        await runner.run(Command(("true", "x" * 3_000_000)))


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EAGAIN, "allows no more processes"),
        (errno.ENOMEM, "out of memory"),
        (errno.EMFILE, "too many open files"),
        (errno.EIO, "Input/output error"),
    ],
)
async def test_C8_a_full_login_node_is_a_sentence(
    runner: LocalRunner, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    async def refuse(*_args: object, **_options: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(asyncio.get_running_loop(), "subprocess_exec", refuse)
    with pytest.raises(RunnerError, match=words):
        await runner.run(Command(("squeue",)))


async def test_other_hosts_are_refused(runner: LocalRunner) -> None:
    for call in (
        runner.run(Command(("true",), host="gpu01")),
        runner.read("/etc/hosts", 0, 1, "gpu01"),
        runner.stat("/etc/hosts", "gpu01"),
        runner.list("/etc", "gpu01"),
    ):
        with pytest.raises(RunnerError, match="gpu01"):
            await call
    with pytest.raises(RunnerError, match="gpu01"):
        async for _ in runner.stream(Command(("true",), host="gpu01")):
            pass


async def test_a_stream_gives_output_as_it_comes(runner: LocalRunner) -> None:
    code = (
        "import sys\n"
        "for i in range(3):\n"
        "    print(i, flush=True)\n"
        "    assert sys.stdin.readline() == ''\n"
    )
    chunks = [chunk async for chunk in runner.stream(python(code))]
    assert b"".join(chunks) == b"0\n1\n2\n"


async def test_a_stream_waits_for_its_reader(runner: LocalRunner) -> None:
    """20 MB through a consumer that pauses: all of it arrives, in order."""
    code = "import os\nfor i in range(20): os.write(1, bytes([65 + i]) * 1_000_000)"
    total = 0
    last = 0
    async for chunk in runner.stream(python(code)):
        assert chunk[0] >= last
        last = chunk[-1]
        total += len(chunk)
        await asyncio.sleep(0)
    assert total == 20_000_000


async def test_leaving_a_stream_ends_the_child(runner: LocalRunner) -> None:
    code = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)"
    stream = runner.stream(python(code, timeout_s=600))
    pid = int(await anext(stream))
    assert alive(pid)
    await stream.aclose()  # type: ignore[attr-defined]
    await until(lambda: not alive(pid), "the child is gone")


async def test_a_silent_stream_ends_at_its_limit(runner: LocalRunner) -> None:
    silent = shell("echo x; sleep 600", timeout_s=1.5)
    chunks = [chunk async for chunk in runner.stream(silent)]
    assert b"".join(chunks) == b"x\n"
