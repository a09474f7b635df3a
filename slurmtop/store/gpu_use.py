"""How much of its GPUs each job uses, as far as somebody looked, and its trend."""

from collections import OrderedDict, deque
from dataclasses import dataclass
from datetime import datetime

from slurmtop.model.ids import JobKey

#: One point of a trend every this many seconds, and so many of them.
TREND_STEP_S = 60.0
TREND_POINTS = 8
#: Jobs that are remembered; those looked at longest ago are forgotten first.
MOST_JOBS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class JobUse:
    """The GPU use of a job at one moment.

    ``mean_percent`` is the mean utilisation of its known GPUs, None where none has that number.
    ``known`` GPUs of the ``held`` ones had values at ``at``; ``held`` is None where Slurm does not
    say. ``waits`` counts GPUs that are full by utilisation and draw little power. ``trend`` has the
    newest value last, None where nobody looked.
    """

    at: datetime
    mean_percent: float | None
    known: int
    held: int | None = None
    waits: int = 0
    trend: tuple[float | None, ...] = ()
    source: str = "probe"


class UseBook:
    """The last use of every job that was looked at, and its last minutes."""

    def __init__(self) -> None:
        self._uses: OrderedDict[JobKey, JobUse] = OrderedDict()
        self._points: dict[JobKey, deque[tuple[int, float | None]]] = {}

    def note(
        self,
        key: JobKey,
        *,
        at: datetime,
        mean_percent: float | None,
        known: int,
        held: int | None,
        waits: int = 0,
        source: str = "probe",
    ) -> None:
        """Take what was seen of a job; a point that is older than the last one is dropped."""
        before = self._uses.get(key)
        if before is not None and before.at > at:
            return
        points = self._points.setdefault(key, deque(maxlen=TREND_POINTS))
        slot = int(at.timestamp() // TREND_STEP_S)
        if points and points[-1][0] == slot:
            points.pop()
        points.append((slot, mean_percent))
        self._uses[key] = JobUse(
            at=at,
            mean_percent=mean_percent,
            known=known,
            held=held,
            waits=waits,
            trend=_trend(points, slot),
            source=source,
        )
        self._uses.move_to_end(key)
        while len(self._uses) > MOST_JOBS:
            old, _ = self._uses.popitem(last=False)
            del self._points[old]

    def get(self, key: JobKey) -> JobUse | None:
        """The last use that was seen; it may be old: ``at`` says when."""
        return self._uses.get(key)

    def __len__(self) -> int:
        return len(self._uses)


def _trend(points: deque[tuple[int, float | None]], slot: int) -> tuple[float | None, ...]:
    """The last minutes up to ``slot``, without the gap before the first point."""
    known = dict(points)
    first = max(points[0][0], slot - TREND_POINTS + 1)
    return tuple(known.get(one) for one in range(first, slot + 1))
