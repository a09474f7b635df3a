"""One look at the processes of each of many nodes, a few at a time."""

import asyncio
from collections.abc import Callable, Sequence

from slurmtop.collect.clock import cancel_and_wait, spawn
from slurmtop.collect.nodes.processes import read_processes
from slurmtop.model.ports import Clock, Runner
from slurmtop.model.process import NodeProcesses

AT_ONCE = 8

#: Hears how many nodes were looked at and how many there are.
Looked = Callable[[int, int], None]


async def read_many(
    runner: Runner,
    clock: Clock,
    hosts: Sequence[str],
    *,
    job: str | None = None,
    looked: Looked | None = None,
) -> tuple[NodeProcesses, ...]:
    """The processes of ``hosts``, in that order. Never raises for a node that does not answer.

    Whoever cancels it leaves no look behind.
    """
    doors = asyncio.Semaphore(AT_ONCE)
    done = 0

    async def look(host: str) -> NodeProcesses:
        nonlocal done
        async with doors:
            found = await read_processes(runner, clock, host, job=job)
        done += 1
        if looked is not None:
            looked(done, len(hosts))
        return found

    tasks = [spawn(look(host), name=f"processes of {host}") for host in dict.fromkeys(hosts)]
    try:
        await asyncio.gather(*tasks)
    finally:
        await cancel_and_wait(*tasks)
    return tuple(task.result() for task in tasks)
