"""Runs the work of a subcommand that prints and leaves, so that no signal orphans a child."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from slurmtop.cli.errors import EndedBySignal

T = TypeVar("T")

#: SIGINT needs no mention: asyncio cancels the work for it.
_ENDED_BY = (signal.SIGTERM, signal.SIGHUP)


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """The result of ``work``, which ends its own children when it is cancelled.

    :class:`EndedBySignal` after a SIGTERM or SIGHUP, once all of that is done.
    """
    ended_by: list[int] = []

    async def guarded() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def end(number: int) -> None:
            # A second signal must not break into the first one's tidying up.
            if not ended_by:
                task.cancel()
            ended_by.append(number)

        for number in _ENDED_BY:
            # Ignored stays ignored: that is what nohup asks for.
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, end, number)
        return await work

    try:
        result = asyncio.run(guarded())
    except BaseException:
        if ended_by:
            raise EndedBySignal(ended_by[0]) from None
        raise
    if ended_by:
        raise EndedBySignal(ended_by[0])
    return result
