"""What the logs of one job say, judged in a process of its own.

Reading a megabyte of log takes a second or more of a core, and the screen must not wait: the
bytes are read through the Runner like everything else, and what comes back is the verdict.
"""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from slurmtop.collect.log_pool import ParsePool
from slurmtop.model.facts import LogsSay


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBytes:
    """The bytes of one log: all of it, or its two ends. ``parts`` are (offset, bytes) in order."""

    path: str
    size: int
    year: int
    parts: tuple[tuple[int, bytes], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """How the newest run is told from earlier ones in the same log.

    ``ids`` are the job's number and its id as typed; empty where there was no earlier run.
    ``end`` is when the newest run ended; None while it goes on.
    """

    ids: frozenset[str] = frozenset()
    end: datetime | None = None


class JudgeLogs(Protocol):
    """Judges logs; raises :class:`~slurmtop.collect.log_pool.ReaderLost` where it cannot."""

    async def __call__(self, logs: Sequence[LogBytes], runs: Runs) -> LogsSay | None: ...


async def judge_beside(logs: Sequence[LogBytes], runs: Runs) -> LogsSay | None:
    """Judge in another process, which is ended when this is cancelled."""
    pool = ParsePool(1)
    try:
        return await pool.judge(tuple(logs), runs)
    finally:
        pool.close()


async def judge_here(logs: Sequence[LogBytes], runs: Runs) -> LogsSay | None:
    """Judge in this process, for small logs and where no screen waits."""
    await asyncio.sleep(0)
    return judge_now(logs, runs)


def judge_now(logs: Sequence[LogBytes], runs: Runs) -> LogsSay | None:
    """Read, join and judge. Never raises for what stands in a log."""
    # Imported by who judges: a screen that has it done in another process needs none of these.
    from slurmtop.model.trace import joined
    from slurmtop.parse.logs.reading import SourceReader
    from slurmtop.triage.join import join
    from slurmtop.triage.logs_say import logs_say

    traces = []
    all_sure = True
    for log in logs:
        parts, sure = _newest(log, runs.ids, runs.end)
        all_sure = all_sure and sure
        if not parts:
            continue
        reader = SourceReader(log.path, year=log.year)
        at = 0
        for offset, data in parts:
            reader.skip(offset - at)
            reader.feed(data)
            at = offset + len(data)
        traces.append(reader.finish(size=log.size))
    return logs_say(join(joined(traces)), only_newest=all_sure)


def _newest(
    log: LogBytes, ids: Collection[str], end: datetime | None
) -> tuple[tuple[tuple[int, bytes], ...], bool]:
    from slurmtop.parse.logs.newest_run import newest_run

    return newest_run(log.parts, ids, end) if ids else (log.parts, True)
