"""A child that ends before it has read what was written to it."""

import asyncio
import gc
import os
import time
import weakref

from slurmtop.collect.child import start_child
from tests.collect.helpers import DEADLINE_S, alive, until


def gone(pid: int) -> None:
    """Wait without the loop: asyncio must not hear of the end before it writes."""
    limit = time.monotonic() + DEADLINE_S
    while alive(pid):
        assert time.monotonic() < limit
        time.sleep(0.001)


async def test_a_child_that_reads_nothing_leaves_no_complaint() -> None:
    troubles: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: troubles.append(str(context)))
    transports = []
    for _ in range(5):
        child, transport = await start_child(
            "/bin/sh", "-c", "exit 3", stdin=asyncio.subprocess.PIPE, env=os.environ
        )
        assert child.stdin is not None
        gone(child.pid)
        child.stdin.write(b"x" * 1_000_000)
        assert await child.wait() == 3
        transport.close()
        transports.append(weakref.ref(transport))
        del child, transport

    def forgotten() -> bool:
        gc.collect()
        return all(one() is None for one in transports)

    await until(forgotten, "the end of all that could complain")
    assert troubles == []
