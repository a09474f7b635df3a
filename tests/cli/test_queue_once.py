"""The queue asked once: what a person at a terminal hears while Slurm takes its time."""

import asyncio
import sys
from typing import cast

import pytest

from slurmtop.cli import queue_once
from slurmtop.cli.wiring import Wiring
from slurmtop.collect.clock import SystemClock
from slurmtop.model.job import Job
from slurmtop.model.snapshot import Parsed


class Stderr:
    """Sets ``written`` at the first line."""

    def __init__(self, *, terminal: bool) -> None:
        self.terminal = terminal
        self.text = ""
        self.written = asyncio.Event()

    def isatty(self) -> bool:
        self.written.set()
        return self.terminal

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        return


class SlowQueue:
    """A queue, and the wiring that gives it, that answers once ``answer`` is set."""

    clock = SystemClock()
    recorded_at = None

    def __init__(self, answer: asyncio.Event) -> None:
        self.answer = answer

    def queue_source(self, *, all_users: bool) -> "SlowQueue":
        return self

    async def fetch(self) -> Parsed[Job]:
        async with asyncio.timeout(10):
            await self.answer.wait()
        return Parsed(())


@pytest.mark.parametrize("terminal", [True, False])
async def test_a_person_is_told_once_that_squeue_takes_long(
    monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    stderr = Stderr(terminal=terminal)
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(queue_once, "_PATIENCE_S", 0.01)
    wiring = cast("Wiring", SlowQueue(stderr.written))
    await queue_once.fetch_queue(wiring, all_users=False)
    assert stderr.text.count("still waiting for squeue") == int(terminal)
    assert stderr.text.count("\n") == int(terminal)


async def test_a_quick_answer_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = Stderr(terminal=True)
    monkeypatch.setattr(sys, "stderr", stderr)
    answered = asyncio.Event()
    answered.set()
    await queue_once.fetch_queue(cast("Wiring", SlowQueue(answered)), all_users=False)
    assert stderr.text == ""
