"""A command that was started before anybody asked for its answer."""

import asyncio
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurmtop.cli.early import EarlyChild, EarlyRunner, first_command, start_early
from slurmtop.collect.asking import check
from slurmtop.collect.clock import SystemClock
from slurmtop.collect.poller import SourceFailed
from slurmtop.model.ports import Command, Runner
from tests.fakes import FakeRunner

CLOCK = SystemClock()


@pytest.fixture
def children() -> Iterator[list[EarlyChild]]:
    made: list[EarlyChild] = []
    yield made
    for child in made:
        child.end()


def start(children: list[EarlyChild], code: str, **limits: int) -> tuple[str, ...]:
    argv = (sys.executable, "-c", code)
    child = start_early(argv, {}, CLOCK, **limits)
    assert child is not None
    children.append(child)
    return argv


async def test_the_answer_is_handed_on_once(children: list[EarlyChild]) -> None:
    argv = start(children, "import sys; print('x' * 200_000); print('e', file=sys.stderr); exit(3)")
    inner = FakeRunner()
    inner.on("*", b"fresh")
    runner = EarlyRunner(inner, children)
    early = await runner.run(Command(argv))
    assert (early.rc, len(early.stdout), early.stderr) == (3, 200_001, b"e\n")
    assert not early.truncated
    assert early.took_s > 0
    assert (await runner.run(Command(argv))).stdout == b"fresh"
    assert len(inner.calls) == 1


async def test_other_commands_pass(children: list[EarlyChild]) -> None:
    argv = start(children, "print(1)")
    inner = FakeRunner()
    inner.on("*", b"other")
    runner = EarlyRunner(inner, children)
    assert (await runner.run(Command((*argv, "more")))).stdout == b"other"
    assert (await runner.run(Command(argv, host="gpu01"))).stdout == b"other"
    inner.files["/a"] = b"abc"
    assert await runner.read("/a", 1, 2) == b"bc"
    assert (await runner.stat("/a")).size == 3
    assert await runner.list("/") == ("a",)
    assert [chunk async for chunk in runner.stream(Command(("x",)))] == [b"other"]


async def test_output_is_bounded(children: list[EarlyChild]) -> None:
    argv = start(children, "print('x' * 1000)")
    done = await EarlyRunner(FakeRunner(), children).run(Command(argv, max_bytes=10))
    assert done.stdout == b"x" * 10
    assert done.truncated


async def test_a_runaway_is_ended_and_told_as_one(children: list[EarlyChild]) -> None:
    code = "import os\nwhile True: os.write(1, b'x' * 1_000_000)"
    argv = start(children, code, max_bytes=2_000_000)
    done = await EarlyRunner(FakeRunner(), children).run(Command(argv, timeout_s=60))
    assert done.truncated
    assert len(done.stdout) == 2_000_000
    assert done.rc == -signal.SIGKILL
    with pytest.raises(SourceFailed, match="printed more than 1 MiB"):
        check(argv, done)


async def test_one_that_hangs_is_ended_at_its_limit(children: list[EarlyChild]) -> None:
    argv = start(children, "import time; time.sleep(60)")
    done = await EarlyRunner(FakeRunner(), children).run(Command(argv, timeout_s=0.2))
    assert done.timed_out
    assert children[0].ended


async def test_leaving_while_it_is_awaited_ends_it(children: list[EarlyChild]) -> None:
    argv = start(children, "import time; time.sleep(60)")
    task = asyncio.ensure_future(EarlyRunner(FakeRunner(), children).run(Command(argv)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert children[0].ended


def test_one_that_nobody_asked_for_is_ended(children: list[EarlyChild]) -> None:
    start(children, "import time; time.sleep(60)")
    EarlyRunner(FakeRunner(), children).end()
    assert children[0].ended


def test_what_cannot_start_is_left_to_the_ordinary_runner(tmp_path: Path) -> None:
    assert start_early((str(tmp_path / "none"),), {}, CLOCK) is None
    assert start_early(("a\0b",), {}, CLOCK) is None


def test_the_first_command_of_a_question() -> None:
    async def ask(runner: Runner) -> object:
        return await runner.run(Command(("squeue", "-h")))

    async def ask_nothing(runner: Runner) -> object:
        return None

    assert first_command(ask) == ("squeue", "-h")
    assert first_command(ask_nothing) == ()
