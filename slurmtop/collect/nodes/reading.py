"""Reading what a node answered without holding up everything else."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")
#: What is shorter is read in some hundredths of a second; to ask a thread costs turns of the loop.
_LARGE_BYTES = 256 * 1024


async def read_answer(parse: Callable[[bytes], _T], data: bytes) -> _T:
    """What ``parse`` makes of ``data``: of a large answer in a thread, so that keys, other nodes
    and limits of time have their turns meanwhile."""
    return parse(data) if len(data) < _LARGE_BYTES else await asyncio.to_thread(parse, data)
