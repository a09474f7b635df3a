"""The commands that were run of late, kept for whoever wants to look at them."""

import asyncio

import pytest

from slurmtop.collect.metered import KEPT, MeteredRunner
from slurmtop.model.ports import Command, RunnerError
from tests.fakes import FakeClock, FakeRunner, settle


def metered() -> tuple[FakeClock, FakeRunner, MeteredRunner]:
    clock = FakeClock()
    inner = FakeRunner(clock)
    return clock, inner, MeteredRunner(inner, clock)


async def test_the_newest_is_first_with_how_it_went() -> None:
    clock, inner, runner = metered()
    inner.on("scancel*", rc=1, took_s=0.2)
    inner.on("squeue*", "out", took_s=0.4)
    inner.on("sinfo*", rc=None, took_s=60.0)
    start = clock.now()
    await runner.run(Command(("squeue",)))
    await clock.advance(5)
    await runner.run(Command(("scancel", "1"), host="gpu01"))
    await runner.run(Command(("sinfo",)))
    late, cancel, queue = runner.recent()
    assert (queue.argv, queue.at, queue.took_s, queue.rc) == (("squeue",), start, 0.4, 0)
    assert queue.trouble == ""
    assert (cancel.argv, cancel.host, cancel.rc) == (("scancel", "1"), "gpu01", 1)
    assert cancel.trouble == "exit 1"
    assert (cancel.at - queue.at).total_seconds() == 5
    assert (late.rc, late.trouble) == (None, "time limit")


async def test_what_still_runs_is_there_and_what_was_given_up_is_told() -> None:
    clock, inner, runner = metered()
    inner.on("squeue", "out")
    inner.gate = asyncio.Event()
    task = asyncio.ensure_future(runner.run(Command(("squeue",))))
    await settle()
    (running,) = runner.recent()
    assert running.took_s is None
    await clock.advance(3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (ended,) = runner.recent()
    assert (ended.took_s, ended.trouble) == (3.0, "given up")


async def test_what_never_started_says_why_and_streams_are_kept_too() -> None:
    _, inner, runner = metered()
    inner.on_call("squeue", RunnerError("there is no squeue"))
    inner.on("sinfo", "out")
    with pytest.raises(RunnerError):
        await runner.run(Command(("squeue",)))
    assert [chunk async for chunk in runner.stream(Command(("sinfo",)))] == [b"out"]
    stream, failed = runner.recent()
    assert failed.trouble == "there is no squeue"
    assert (stream.argv, stream.trouble) == (("sinfo",), "")
    assert stream.took_s is not None


async def test_only_so_many_are_kept() -> None:
    _, inner, runner = metered()
    inner.on("squeue *", "out")
    for number in range(KEPT + 5):
        await runner.run(Command(("squeue", str(number))))
    kept = runner.recent()
    assert len(kept) == KEPT
    assert kept[0].argv == ("squeue", str(KEPT + 4))
    assert kept[-1].argv == ("squeue", "5")
