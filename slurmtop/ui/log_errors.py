"""Finds the first error of a whole log: read in blocks, looked at off the event loop."""

import asyncio
from collections.abc import AsyncIterator, Iterator

from slurmtop.model.facts import LogFacts, LogLine
from slurmtop.parse.logs.errors import find_first_error
from slurmtop.parse.logs.lines import LineDecoder
from slurmtop.ui.log_pager import LogPager, OnProgress


async def first_error_of(
    pager: LogPager, facts: LogFacts | None, progress: OnProgress
) -> LogLine | None:
    """The first line of the file that names an error; None where there is none.

    What the facts found is taken where they read the whole file. Raises what reading raises.
    """
    if facts is not None and facts.complete and facts.first_error is not None:
        return facts.first_error
    size = pager.window.size
    loop = asyncio.get_running_loop()
    blocks = pager.blocks()
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
        return await asyncio.to_thread(lambda: find_first_error(lines()))
    finally:
        stopped = True


async def _next(blocks: AsyncIterator[bytes]) -> bytes | None:
    async for data in blocks:
        return data
    return None
