"""The newest look at every node, and the last hour of every GPU."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from slurmtop.model.gpu import GpuSample
from slurmtop.model.look import HostLook

HISTORY = timedelta(hours=1)
#: One point of history every this many seconds; looks in between only replace the last value.
POINT_S = 10.0

#: Picks the number of a metric out of a sample; None where it is not known.
Metric = Callable[[GpuSample], float | None]


@dataclass(slots=True)
class _Ring:
    points: deque[tuple[datetime, GpuSample]] = field(default_factory=deque)


class GpuBook:
    """Holds the looks by host. A GPU is known by ``(host, uuid)``, else by its index.

    A point of history is the last sample of its ten seconds; what was not seen leaves a gap.
    """

    def __init__(self) -> None:
        self._looks: dict[str, HostLook] = {}
        self._rings: dict[tuple[str, str], _Ring] = {}

    def apply(self, look: HostLook) -> None:
        """Take the newest look at one host; a failed one keeps the values that were there."""
        old = self._looks.get(look.host)
        self._looks[look.host] = look
        if look.gpus is None or look.gpus_at is None:
            return
        if old is not None and old.gpus_at == look.gpus_at:
            return
        for sample in look.gpus.samples:
            ring = self._rings.setdefault((look.host, gpu_key(sample)), _Ring())
            _add(ring.points, look.gpus_at, sample)

    def forget(self, hosts: Iterable[str]) -> None:
        """Drop hosts that nobody looks at any more, with their history."""
        gone = set(hosts)
        for host in gone:
            self._looks.pop(host, None)
        for key in [key for key in self._rings if key[0] in gone]:
            del self._rings[key]

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(self._looks)

    def look(self, host: str) -> HostLook | None:
        return self._looks.get(host)

    def history(self, host: str, gpu: GpuSample) -> Sequence[tuple[datetime, GpuSample]]:
        """Points of the last hour, the oldest first."""
        ring = self._rings.get((host, gpu_key(gpu)))
        return () if ring is None else tuple(ring.points)

    def trend(
        self, host: str, gpu: GpuSample, metric: Metric, *, now: datetime, points: int
    ) -> tuple[float | None, ...]:
        """The last ``points`` ten-second values of ``metric`` up to ``now``, the newest last;
        None where nothing was seen."""
        out: list[float | None] = [None] * points
        ring = self._rings.get((host, gpu_key(gpu)))
        for at, sample in () if ring is None else reversed(ring.points):
            ago = int((now - at).total_seconds() // POINT_S)
            if ago >= points:
                break
            if ago >= 0 and out[points - 1 - ago] is None:
                out[points - 1 - ago] = metric(sample)
        return tuple(out)


def gpu_key(gpu: GpuSample) -> str:
    """What names a GPU on its host: UUID, bus id, else its number there; a slice with its id."""
    number = gpu.index if gpu.index is not None else f"dcgm{gpu.dcgm_id}"
    name = gpu.uuid or gpu.bus_id or str(number)
    return name if gpu.slice_id is None else f"{name}/{gpu.slice_id}"


def _add(points: deque[tuple[datetime, GpuSample]], at: datetime, sample: GpuSample) -> None:
    if points and at <= points[-1][0]:
        return
    slot = int(at.timestamp() // POINT_S)
    if points and int(points[-1][0].timestamp() // POINT_S) == slot:
        points.pop()
    points.append((at, sample))
    while points and at - points[0][0] > HISTORY:
        points.popleft()
