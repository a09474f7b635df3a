"""Time of the simulated cluster: the real clock's, made faster."""

from datetime import UTC, datetime, timedelta

from slurmtop.model.ports import Clock


class DemoClock:
    """``now`` runs ``speed`` times as fast as the real clock it is given.

    ``monotonic`` and ``sleep`` stay real: a poll every 20 s is a poll every 20 s, and at speed
    60 the cluster has moved on by 20 minutes in between. A span measured between two ``now``
    is simulated time; divide it by ``speed`` for the seconds that a person waited.
    """

    def __init__(self, real: Clock, speed: float) -> None:
        if not speed > 0:
            raise ValueError("the speed of a demo must be above 0")
        self._real = real
        self._began = real.monotonic()
        self._skipped_s = 0.0
        self.speed = speed
        self.start = real.now().astimezone(UTC).replace(microsecond=0)

    def now(self) -> datetime:
        return self.start + timedelta(seconds=self.elapsed_s())

    def monotonic(self) -> float:
        return self._real.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self._real.sleep(seconds)

    def elapsed_s(self) -> float:
        """Simulated seconds since the demo began."""
        return self.real_elapsed_s() * self.speed + self._skipped_s

    def skip(self, seconds: float) -> None:
        """Let so many simulated seconds go by at once."""
        self._skipped_s += max(0.0, seconds)

    def real_elapsed_s(self) -> float:
        """Seconds that have really passed since the demo began."""
        return max(0.0, self._real.monotonic() - self._began)
