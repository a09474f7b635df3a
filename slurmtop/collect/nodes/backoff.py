"""How long a host that failed is left alone, so that nobody hammers at a closed door."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from slurmtop.model.ports import Clock, NodeUnreachable
from slurmtop.model.snapshot import Failure

_FIRST_S = 2.0
#: Also for "never": who was refused for want of a job may have one by then.
_LONGEST_S = 120.0


@dataclass(slots=True)
class _Last:
    failure: Failure
    failures: int
    again_at: float


class BackOff:
    """The last failure of each host, told again until its time is over.

    Each failure in a row doubles the wait, with up to a half more at random: a rack that comes
    back is not asked by everybody in the same second.
    """

    def __init__(self, clock: Clock, jitter: Callable[[], float] = random.random) -> None:
        self._clock = clock
        self._jitter = jitter
        self._last: dict[str, _Last] = {}

    def check(self, host: str) -> None:
        """Raise ``NodeUnreachable`` with the last failure where its time is not over."""
        last = self._last.get(host)
        if last is not None and self._clock.monotonic() < last.again_at:
            raise NodeUnreachable(host, last.failure)

    def failed(self, host: str, failure: Failure) -> None:
        last = self._last.get(host)
        failures = 1 if last is None else last.failures + 1
        wait_s = max(_FIRST_S * 2 ** min(failures - 1, 10), failure.retry_after_s or 0.0)
        wait_s = min(wait_s, _LONGEST_S) * (1 + self._jitter() / 2)
        self._last[host] = _Last(failure, failures, self._clock.monotonic() + wait_s)

    def forget(self, host: str) -> bool:
        """It answered, or somebody asks for a new try: no wait is left. True: it had failed."""
        return self._last.pop(host, None) is not None
