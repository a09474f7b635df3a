"""Finds the first error of a whole log: read in blocks, looked at off the event loop."""

import asyncio
from collections.abc import AsyncIterator, Iterator

from slurmtop.model.facts import LogFacts, LogLine
from slurmtop.parse.logs.errors import find_first_error
from slurmtop.parse.logs.lines import LineDecoder
from slurmtop.ui.log_pager import Hit, LogPager, OnProgress


async def first_error_of(
    pager: LogPager, facts: LogFacts | None, progress: OnProgress
) -> Hit | None:
    """The first line of the file that names an error; None where there is none.

    What the facts found is taken where they read the whole file. Raises what reading raises.
    """
    if facts is not None and facts.complete and facts.first_error is not None:
        return _hit(facts.first_error)
    size = pager.window.size
    loop = asyncio.get_running_loop()
    blocks = pager.blocks(0, size)
    stopped = False

    def lines() -> Iterator[LogLine]:
        decoder = LineDecoder()
        while not stopped:
            data = asyncio.run_coroutine_threadsafe(_next(blocks), loop).result()
            if data is None:
                yield from decoder.finish()
                return
            yield from decoder.feed(data)
            loop.call_soon_threadsafe(progress, decoder.end_offset, size)

    try:
        found = await asyncio.to_thread(lambda: find_first_error(lines()))
    finally:
        stopped = True
    return _hit(found) if found is not None else None


async def _next(blocks: AsyncIterator[tuple[int, bytes]]) -> bytes | None:
    async for _, data in blocks:
        return data
    return None


def _hit(line: LogLine) -> Hit:
    return Hit(line.offset, line.text, line.number)
