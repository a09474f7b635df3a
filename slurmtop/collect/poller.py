"""Asking one source again and again without ever being a burden to it.

One call in flight at most. A failure doubles the wait, up to five minutes; a slow answer
lengthens it too, since a controller that rate-limits shows as slowness only.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Generic, Protocol, TypeVar

from slurmtop.collect.clock import cancel_and_wait, spawn
from slurmtop.model.ports import Clock, RunnerError
from slurmtop.model.snapshot import Failure, Snapshot, SourceHealth, Trouble

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

LONGEST_BACK_OFF_S = 300.0
POKE_GAP_S = 2.0
_MOST_DOUBLINGS = 10
_SLOW_ANSWER_S = 2.0
_SLOW_FACTOR = 5.0
_JITTER_PART = 0.1


class SourceFailed(Exception):
    """A source did not answer; ``failure`` says why, in words for people."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.sentence)
        self.failure = failure


class Source(Protocol[T_co]):
    """Something to ask: ``fetch`` makes one call and raises :class:`SourceFailed`."""

    @property
    def name(self) -> str: ...

    @property
    def interval_s(self) -> float: ...

    async def fetch(self) -> T_co: ...


def local_failure(error: RunnerError) -> Failure:
    """What a runner says when a command could not even be started."""
    missing = isinstance(error.__cause__, FileNotFoundError)
    return Failure(Trouble.NO_SLURM if missing else Trouble.LOCAL, str(error))


def fault_of_ours(what: str, error: Exception) -> Failure:
    """What slurmtop itself could not make of an answer; it must show, and end nothing else."""
    sentence = f"slurmtop could not use {what} ({type(error).__name__}: {error})."
    return Failure(Trouble.OTHER, sentence, raw=repr(error))


def _no_health(_health: SourceHealth) -> None:
    return


def _random_part() -> float:
    return random.random()  # noqa: S311 - spreads calls of many users in time, no secret


class Poller(Generic[T]):
    """Calls ``source.fetch`` and hands the answers on.

    ``on_value`` gets each good answer, stamped with the time at which it was asked for: an
    answer is never called younger than it may be. ``on_health`` is told when a call starts,
    succeeds and fails. ``min_interval_s`` is a site's floor for the waits between calls (not
    for a key: that has ``poke_gap_s``). ``jitter`` gives a number from 0 to 1; up to a tenth
    is added to every wait.
    """

    def __init__(
        self,
        source: Source[T],
        clock: Clock,
        on_value: Callable[[Snapshot[T]], None],
        on_health: Callable[[SourceHealth], None] = _no_health,
        *,
        min_interval_s: float = 0.0,
        poke_gap_s: float = POKE_GAP_S,
        jitter: Callable[[], float] = _random_part,
    ) -> None:
        self._source = source
        self._clock = clock
        self._on_value = on_value
        self._on_health = on_health
        self._min_interval_s = min_interval_s
        self._poke_gap_s = poke_gap_s
        self._jitter = jitter
        self._interval_s: float | None = None
        self._factor = 1.0
        self._in_flight = False
        self._poked = False
        self._wake = asyncio.Event()
        self._jitter_part = 0.0
        # Of the last call, by the monotonic clock; None before the first.
        self._started: float | None = None
        self._ended = 0.0
        self.health = SourceHealth(source.name, interval_s=self._base_s())

    @property
    def stopped(self) -> bool:
        """True once the source said that it must never be asked again in this session."""
        failure = self.health.failure
        return failure is not None and failure.retry_after_s == float("inf")

    async def run(self) -> None:
        """Loop until cancelled, or until the source said never to ask again."""
        while not self.stopped:
            if self._in_flight:
                self._wake.clear()
                await self._wake.wait()
                continue
            wait_s = self._due() - self._clock.monotonic()
            if wait_s <= 0:
                await self.tick()
            else:
                await self._sleep(wait_s)

    async def tick(self) -> None:
        """One round. Does nothing while another is in flight or after :attr:`stopped`."""
        if self._in_flight or self.stopped:
            return
        self._in_flight = True
        self._poked = False
        self._started = self._clock.monotonic()
        self._tell(replace(self.health, asking_since=self._clock.now(), next_at=None))
        try:
            value = await self._source.fetch()
        except asyncio.CancelledError:
            self._end_call()
            self._tell(replace(self.health, asking_since=None))
            raise
        except SourceFailed as error:
            self._failed(error.failure)
        except RunnerError as error:
            self._failed(local_failure(error))
        except Exception as error:  # A fault of ours must show, and must not end the polling.
            self._failed(fault_of_ours(f"the answer of {self._source.name}", error))
        else:
            self._succeeded(value)

    def poke(self) -> None:
        """Ask now: two seconds after the last call at the earliest, and after the one in flight.

        Only a controller that limits this user's calls is given the wait that it asked for.
        """
        self._poked = True
        self._wake.set()

    def set_interval(self, seconds: float | None) -> None:
        """Wait ``seconds`` between calls from now on; None is the source's own interval."""
        self._interval_s = seconds
        self._replan()

    def slow_down(self, factor: float) -> None:
        """Make every wait ``factor`` times as long; 1.0 restores."""
        self._factor = factor
        self._replan()

    def _base_s(self) -> float:
        own = self._source.interval_s if self._interval_s is None else self._interval_s
        return max(own * self._factor, self._min_interval_s)

    def _wait_s(self) -> float:
        """Between the last call and the next, without jitter."""
        base = self._base_s()
        health = self.health
        if health.failure is not None:
            doublings = min(health.failures, _MOST_DOUBLINGS)
            return max(
                base, min(base * (1 << doublings), LONGEST_BACK_OFF_S), self._refused_for_s()
            )
        if health.took_s is not None and health.took_s > _SLOW_ANSWER_S:
            return max(base, _SLOW_FACTOR * health.took_s)
        return base

    def _refused_for_s(self, *, key: bool = False) -> float:
        """What the failure itself asks for. A person who has mended munge need not wait for it."""
        failure = self.health.failure
        if failure is None or (key and failure.trouble is not Trouble.RATE_LIMITED):
            return 0.0
        return failure.retry_after_s or 0.0

    def _due(self) -> float:
        if self._started is None:
            return self._clock.monotonic()
        wait_s = self._wait_s() * (1 + _JITTER_PART * self._jitter_part)
        # After a failure or a slow answer the source rests; else calls keep their pace.
        slow = self._ended - self._started > _SLOW_ANSWER_S
        due = wait_s + (self._ended if slow or self.health.failure else self._started)
        if self._poked:
            due = min(
                due,
                max(
                    self._started + self._poke_gap_s,
                    self._ended + self._refused_for_s(key=True),
                ),
            )
        return due

    def _replan(self) -> None:
        if not self._in_flight:
            self._tell(self._planned(self.health))
        self._wake.set()

    def _planned(self, health: SourceHealth) -> SourceHealth:
        self.health = health
        if self.stopped:
            return replace(health, interval_s=self._base_s(), next_at=None)
        in_s = max(0.0, self._due() - self._clock.monotonic())
        return replace(
            health,
            interval_s=self._wait_s(),
            next_at=self._clock.now() + timedelta(seconds=in_s),
        )

    def _end_call(self) -> None:
        self._ended = self._clock.monotonic()
        self._jitter_part = self._jitter()
        self._in_flight = False
        self._wake.set()

    def _succeeded(self, value: T) -> None:
        asked_at = self.health.asking_since or self._clock.now()
        self._end_call()
        took_s = self._ended - (self._started or self._ended)
        bad = getattr(value, "bad", 0)
        health = SourceHealth(
            self._source.name,
            good_at=asked_at,
            took_s=took_s,
            bad_records=bad if isinstance(bad, int) else 0,
        )
        # Planned before the value is used: a screen that breaks must not stop the clockwork.
        planned = self._planned(health)
        self._tell(planned)
        self._on_value(Snapshot(value, asked_at, took_s))

    def _failed(self, failure: Failure) -> None:
        asked_at = self.health.asking_since
        self._end_call()
        health = replace(
            self.health,
            asking_since=None,
            failure=failure,
            failing_since=self.health.failing_since or asked_at,
            failures=self.health.failures + 1,
        )
        self._tell(self._planned(health))

    def _tell(self, health: SourceHealth) -> None:
        self.health = health
        self._on_health(health)

    async def _sleep(self, seconds: float) -> None:
        """Until ``seconds`` have passed or something changed."""
        self._wake.clear()
        timer = spawn(self._clock.sleep(seconds), name=f"{self._source.name}: wait")
        woken = spawn(self._wake.wait(), name=f"{self._source.name}: wake")
        try:
            await asyncio.wait((timer, woken), return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancel_and_wait(timer, woken)
