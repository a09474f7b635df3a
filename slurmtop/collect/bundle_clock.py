"""The clock of a bundle: what was read of it while the job was looked at, and the same again.

Ages in a verdict ("quiet for 25 s") must come out as they were told, whenever and wherever the
bundle is read. Readings are kept by the name of the task that took them, because tasks that run
beside each other take theirs in any order. The task that made the clock, and those without a name,
are ``main``::

    {"main": ["2031-05-05T12:00:00+00:00", "2031-05-05T12:00:07.5+00:00"]}
"""

import asyncio
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from slurmtop.collect.clock import pause
from slurmtop.collect.replay import ReplayRunner
from slurmtop.model.ports import Clock
from slurmtop.parse.mask import mask_text

_MAIN = "main"
_UNNAMED = re.compile(r"Task-\d+\Z")
#: A look takes some hundred; a flow that reads for ever must not fill the memory.
_MOST = 50_000
#: A time limit of a replay is for what hangs here, not for a machine slower than the first one.
_PATIENCE = 10.0


class RecordingClock:
    """Any clock, and in ``form`` what ``now`` said."""

    def __init__(self, inner: Clock) -> None:
        self._inner = inner
        self._said: dict[str, list[datetime]] = {}
        self._count = 0
        self._main = _current()

    def now(self) -> datetime:
        at = self._inner.now()
        if self._count < _MOST:
            self._count += 1
            self._said.setdefault(_name(self._main), []).append(at)
        return at

    def monotonic(self) -> float:
        return self._inner.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)

    async def pause(self, seconds: float) -> None:
        await pause(self._inner, seconds)

    @property
    def form(self) -> dict[str, list[str]]:
        # A task may be named for a path.
        return {
            mask_text(name): [at.isoformat() for at in said] for name, said in self._said.items()
        }


class BundleClock:
    """The time as it was told then. Where a task asks more often than it did then, the time of the
    newest answer that ``replay`` has given out, and of the pauses since.

    ``pause`` goes ahead without waiting. ``sleep`` waits for real: it is what limits are made of.
    """

    def __init__(self, replay: ReplayRunner, real: Clock, readings: Mapping[str, Any]) -> None:
        self._replay = replay
        self._real = real
        self._readings = {name: _times(said) for name, said in readings.items()}
        self._next: dict[str, int] = {}
        self._ahead = replay.started_at
        self._main = _current()

    def now(self) -> datetime:
        name = mask_text(_name(self._main))
        said = self._readings.get(name, ())
        place = self._next.get(name, 0)
        if place >= len(said):
            return self._at()
        self._next[name] = place + 1
        self._ahead = max(self._ahead, said[place])
        return said[place]

    def monotonic(self) -> float:
        return (self._at() - self._replay.started_at).total_seconds()

    async def sleep(self, seconds: float) -> None:
        await self._real.sleep(max(1.0, seconds) * _PATIENCE)

    async def pause(self, seconds: float) -> None:
        self._ahead = self._at() + timedelta(seconds=max(0.0, seconds))
        await asyncio.sleep(0)

    def _at(self) -> datetime:
        return max(self._ahead, self._replay.answered_at)


def _current() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def _name(main: asyncio.Task[Any] | None) -> str:
    task = _current()
    if task is None or task is main:
        return _MAIN
    name = task.get_name()
    return _MAIN if _UNNAMED.match(name) else name


def _times(said: Any) -> tuple[datetime, ...]:
    """What can be read of it: a bundle may come from anybody."""
    out = []
    for text in said if isinstance(said, list) else ():
        try:
            at = datetime.fromisoformat(text)
        except (TypeError, ValueError):
            break
        out.append(at if at.tzinfo is not None else at.replace(tzinfo=UTC))
    return tuple(out)
