"""Who of many nodes has a stream, and who is looked at in turn.

A stream is a process on the node and a connection that stays open: a job on a thousand nodes would
need a thousand. So the nodes in view have one, a bounded number of them, and the others are looked
at one after the other, by a few at once, however many there are.
"""

import asyncio
import math
from collections.abc import Coroutine, Iterable, Mapping

from slurmtop.collect.clock import cancel_and_wait, spawn
from slurmtop.collect.nodes.gpu_host import HostWatch
from slurmtop.model.ports import Clock

#: Streams at once; where a view has no more nodes than these, each of them has one.
MOST_STREAMS = 64
#: Who scrolls through a list passes many nodes: only those get a stream where the view rests.
SETTLE_S = 1.0
#: The others: so many looks at once, so long a rest after each, and no node sooner again.
LOOKS_AT_ONCE = 4
_REST_S = 1.0
_AGAIN_S = 60.0


class Turns:
    """Runs the watches of ``hosts``; ``in_view`` says anew which of them come first."""

    def __init__(
        self, hosts: Mapping[str, HostWatch], clock: Clock, *, most_streams: int = MOST_STREAMS
    ) -> None:
        self._hosts = hosts
        self._clock = clock
        self._most = most_streams
        self._wanted = tuple(hosts)[:most_streams]
        self._changed = asyncio.Event()
        self._streams: dict[str, asyncio.Task[None]] = {}
        self._looking: set[str] = set()
        self._looked_at: dict[str, float] = {}

    @property
    def in_turn(self) -> int:
        """How many nodes have no stream."""
        return len(self._hosts) - min(len(self._wanted), self._most)

    def in_view(self, hosts: Iterable[str]) -> None:
        """These come first, the most important ones at the beginning."""
        if len(self._hosts) <= self._most:
            return
        wanted = tuple(host for host in dict.fromkeys(hosts) if host in self._hosts)[: self._most]
        if wanted and set(wanted) != set(self._wanted):
            self._wanted = wanted
            self._changed.set()

    def again(self, host: str) -> None:
        """It may be looked at again at once."""
        self._looked_at.pop(host, None)

    async def run(self) -> None:
        """Run until cancelled, and until nothing of it runs on any node."""
        at_once = LOOKS_AT_ONCE if len(self._hosts) > self._most else 0
        tasks = [self._spawn(self._look(), "GPU looks in turn") for _ in range(at_once)]
        try:
            while True:
                self._changed.clear()
                await self._give_streams()
                await self._changed.wait()
                for task in (*tasks, *self._streams.values()):
                    if task.done():
                        # None ends by itself: this raises what went wrong.
                        task.result()
                await self._clock.sleep(SETTLE_S)
        finally:
            await cancel_and_wait(*tasks, *self._streams.values())
            self._streams.clear()

    async def _give_streams(self) -> None:
        """End the streams out of view, then start those in view: never more than there may be."""
        leaving = [self._streams.pop(host) for host in set(self._streams) - set(self._wanted)]
        await cancel_and_wait(*leaving)
        for host in self._wanted:
            if host not in self._streams and host not in self._looking:
                watch = self._hosts[host]
                self._streams[host] = self._spawn(watch.run(), f"GPU watch of {host}")

    def _spawn(self, part: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
        task = spawn(part, name=name)
        task.add_done_callback(lambda _: self._changed.set())
        return task

    async def _look(self) -> None:
        while True:
            host = self._next()
            if host is not None:
                self._looking.add(host)
                try:
                    await self._hosts[host].look()
                finally:
                    self._looking.discard(host)
                    self._looked_at[host] = self._clock.monotonic()
                    if host in self._wanted:
                        # It came into view meanwhile.
                        self._changed.set()
            await self._clock.sleep(_REST_S)

    def _next(self) -> str | None:
        """Who was looked at longest ago and is due; None where nobody is."""
        now = self._clock.monotonic()
        taken = {*self._wanted, *self._streams, *self._looking}
        rest = [host for host in self._hosts if host not in taken]
        first = min(rest, key=lambda host: self._looked_at.get(host, -math.inf), default=None)
        if first is None or now - self._looked_at.get(first, -math.inf) < _AGAIN_S:
            return None
        return first
