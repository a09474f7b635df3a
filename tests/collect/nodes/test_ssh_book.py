"""What is asked of ``ssh -G`` once for all who wait for it."""

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest

from slurmtop.collect.clock import cancel_and_wait, spawn
from slurmtop.collect.nodes.ssh_book import Person, SshBook
from slurmtop.model.ports import Command, Completed
from tests.fakes import START, FakeClock, FakeRunner


class Held(FakeRunner):
    """``ssh -G`` goes on until it is let go; then a signal has ended it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.let_go = asyncio.Event()

    async def run(self, command: Command) -> Completed:
        self.asked.set()
        await self.let_go.wait()
        return Completed(-2, b"", b"", START, 0.0)


@pytest.fixture
def told() -> list[dict[str, Any]]:
    return []


@pytest.fixture
async def runner(told: list[dict[str, Any]]) -> AsyncIterator[Held]:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: told.append(context))
    yield Held()
    loop.set_exception_handler(None)


def book_of(runner: Held) -> SshBook:
    return SshBook(runner, FakeClock(), {}, Person(name="anna", uid=1001, home="/home/anna"))


async def test_who_went_away_hears_nothing_of_its_end(
    runner: Held, told: list[dict[str, Any]]
) -> None:
    book = book_of(runner)
    waiting = spawn(book.settings("gpu02"), name="one who waits")
    await runner.asked.wait()
    await cancel_and_wait(waiting)
    asking = {task for task in asyncio.all_tasks() if task.get_name() == "ssh -G gpu02"}
    runner.let_go.set()
    await asyncio.wait(asking)
    del book, waiting, asking
    gc.collect()
    assert told == []


async def test_what_is_still_asked_ends_with_it(runner: Held, told: list[dict[str, Any]]) -> None:
    book = book_of(runner)
    waiting = spawn(book.settings("gpu02"), name="one who waits")
    await runner.asked.wait()
    await cancel_and_wait(waiting)
    await book.aclose()
    names = {task.get_name() for task in asyncio.all_tasks()}
    assert "ssh -G gpu02" not in names
    gc.collect()
    assert told == []
