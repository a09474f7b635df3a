"""Which way onto the nodes of a cluster answers: found by trying one at a time, then kept.

A way that answered on some node is *proven*: where it then fails, that is the node's own trouble.
While none is proven, a way that failed on two nodes is left aside for some minutes, and a node
on which one failed goes on to the next. So a node that is down condemns no way for the others,
and a way that is closed is given up after two of them, however many nodes there are.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from slurmtop.model.reach import Reach, Way
from slurmtop.model.snapshot import Failure, Trouble

#: Nodes on which a way fails before it is left aside, and for how long.
_ENOUGH = 2
_ASIDE_S = 300.0
#: How long an answer speaks for the way.
_PROVES_S = 600.0
#: The way itself cannot be used here: one node says it for all.
_OF_THE_WAY = frozenset({Trouble.LOCAL, Trouble.NO_SLURM, Trouble.TOO_OLD})
_WAYS_WORDS = {Way.SSH: "ssh", Way.OPENSSH: "the ssh command", Way.SRUN: "srun", Way.HERE: "here"}


@dataclass(slots=True)
class _OfWay:
    good: dict[str, float] = field(default_factory=dict)
    bad: dict[str, float] = field(default_factory=dict)
    unusable_at: float | None = None


class Choice:
    """The state of choosing. ``order`` is from the first to try to the last. Times are monotonic
    seconds."""

    def __init__(self, order: Sequence[Way]) -> None:
        self.order = tuple(order)
        self._ways = {way: _OfWay() for way in self.order}
        self._reach: dict[str, Reach] = {}

    def prefer(self, way: Way) -> None:
        """Try ``way`` first: it answered the last time."""
        if way in self._ways:
            self.order = (way, *(one for one in self.order if one is not way))

    def proven(self, now: float) -> Way | None:
        """The way that answered last on any node, where that is not long ago."""
        newest = [
            (max(known.good.values()), way) for way, known in self._ways.items() if known.good
        ]
        if not newest:
            return None
        at, way = max(newest)
        return way if now - at < _PROVES_S else None

    def next(self, host: str, tried: Iterable[Way], now: float) -> tuple[Way | None, bool]:
        """The way to try on ``host``, where ``tried`` just failed, and whether it is proven.

        None where nothing is left: then the last failure stands.
        """
        tried = frozenset(tried)
        proven = self.proven(now)
        if proven is not None:
            return (None if proven in tried else proven), True
        open_ways = [way for way in self.order if not self._aside(way, now)]
        left = [way for way in open_ways or self.order if way not in tried]
        return (left[0] if left else None), False

    def answered(self, way: Way, host: str, now: float) -> bool:
        """``way`` works on ``host``; True where it was not proven before."""
        known = self._ways.get(way)
        new = known is not None and self.proven(now) is not way
        if known is not None:
            known.good[host] = now
            known.bad.clear()
            known.unusable_at = None
        reach = self._reach.get(host)
        if reach is None or reach.way is not way or reach.failure is not None:
            refused = () if reach is None else reach.refused
            others = tuple(item for item in refused if item[0] is not way)
            self._reach[host] = Reach(host=host, way=way, refused=others)
        return new

    def failed(self, way: Way, host: str, failure: Failure, now: float) -> None:
        known = self._ways.get(way)
        if known is not None:
            known.good.pop(host, None)
            if failure.trouble in _OF_THE_WAY:
                known.unusable_at = now
            # srun without a job on this node says nothing of the way.
            elif failure.trouble is not Trouble.UNKNOWN_JOB:
                known.bad[host] = now
        reach = self._reach.get(host)
        before = () if reach is None else reach.refused
        refused = (*(item for item in before if item[0] is not way), (way, failure))
        self._reach[host] = Reach(host=host, failure=summed_up(host, refused), refused=refused)

    def forget(self, hosts: Iterable[str]) -> None:
        for host in hosts:
            self._reach.pop(host, None)
            for known in self._ways.values():
                known.good.pop(host, None)
                known.bad.pop(host, None)

    def reach(self, host: str) -> Reach | None:
        return self._reach.get(host)

    def _aside(self, way: Way, now: float) -> bool:
        known = self._ways[way]
        if known.unusable_at is not None and now - known.unusable_at < _ASIDE_S:
            return True
        return sum(1 for at in known.bad.values() if now - at < _ASIDE_S) >= _ENOUGH


def summed_up(host: str, refused: Sequence[tuple[Way, Failure]]) -> Failure:
    """One failure out of those of each way."""
    if len(refused) == 1:
        return refused[0][1]
    order = tuple(_WAYS_WORDS)
    told = " ".join(
        f"By {_WAYS_WORDS[way]}: {failure.sentence}"
        for way, failure in sorted(refused, key=lambda one: order.index(one[0]))
    )
    waits = [f.retry_after_s for _, f in refused if f.retry_after_s is not None]
    return Failure(
        refused[0][1].trouble,
        f"There is no way onto {host} now. {told}",
        "\n".join(failure.raw for _, failure in refused if failure.raw),
        min(waits) if waits else None,
    )
