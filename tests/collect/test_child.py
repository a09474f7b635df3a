"""A child that ends before it has read what was written to it."""

import asyncio
import gc
import os

from slurmtop.collect.child import start_child


async def test_a_child_that_reads_nothing_leaves_no_complaint() -> None:
    troubles: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: troubles.append(str(context)))
    for _ in range(5):
        child, transport = await start_child(
            "/bin/sh", "-c", "exit 3", stdin=asyncio.subprocess.PIPE, env=os.environ
        )
        assert child.stdin is not None
        # Without the loop: asyncio must not hear of the end before it writes.
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        child.stdin.write(b"x" * 1_000_000)
        assert await child.wait() == 3
        transport.close()
        del child, transport
    await asyncio.sleep(0)
    gc.collect()
    await asyncio.sleep(0)
    assert troubles == []
