"""What the rules about collectives share: who waits, who may be named, a collective in words.

Silence is never evidence here. A rank is named for what lines say of it, and a majority counts
only where the ranks that say nothing could not turn it.
"""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import TypeVar

from slurmtop.model.events.torch import GroupStatus, Heartbeat, MonitoredBarrier, WatchdogTimeout
from slurmtop.model.facts import LogStatus
from slurmtop.model.spans import span_text, spans_of
from slurmtop.model.verdict import Collective, Culprit
from slurmtop.triage.picture import GroupView, Picture

V = TypeVar("V", bound=Hashable)

#: Classes that only say that somebody waited; whoever knows why explains them.
WAITED = frozenset(
    {
        "watchdog-timeout-unattributed",
        "heartbeat-unattributed",
        "first-collective-stuck",
        "startup-skew",
    }
)
#: The same, and what ranks report once the watchdog of another one has ended it.
WAITED_OR_LEFT = WAITED | {"peer-died", "socket-reset", "task-exit", "missing-rank"}

_LARGEST_LISTED = 4096
_SIDES_TOLD = 4


def size_of(picture: Picture, view: GroupView) -> int | None:
    """The number of ranks of a group, None where it is not told or told in two ways."""
    sizes = {view.size, picture.world_size if view.world else None} - {None}
    return next(iter(sizes)) if len(sizes) == 1 else None


def label_of(view: GroupView) -> str | None:
    """What people call the group: its description, else its key where that means something."""
    if view.desc is not None:
        return view.desc
    return None if view.key.startswith(("?", "nranks=", "fingerprints")) else view.key


def minority(values: Mapping[int, V], size: int | None) -> frozenset[int]:
    """The ranks whose value differs from that of nearly all, whatever the unseen ranks would say.

    Nobody where the size is not told: the visible majority may then be a minority.
    """
    if size is None or size < 3:
        return frozenset()
    sides: dict[V, set[int]] = defaultdict(set)
    for rank, value in values.items():
        sides[value].add(rank)
    if len(sides) < 2:
        return frozenset()
    most = max(sides.values(), key=len)
    few = frozenset(values) - most
    unseen = max(size - len(values), 0)
    return few if 4 * (len(few) + unseen) <= len(most) or _lone(few, unseen, most) else frozenset()


def _lone(few: frozenset[int], unseen: int, most: set[int]) -> bool:
    return len(few) == 1 and not unseen and len(most) > 1


def told_whole(picture: Picture) -> bool:
    """Was every source read to its end, and does each say anything?

    What lets a rank off may stand in what was not read; where that matters, nobody is named.
    """
    speaking = {event.at.source for event in picture.traces.events}
    return all(
        source.status is LogStatus.READ and not source.unread and source.name in speaking
        for source in picture.traces.sources
    )


def culprits(picture: Picture, ranks: Iterable[int], reason: str) -> tuple[Culprit, ...]:
    """Global ranks with their hosts, where these are known."""
    return tuple(
        Culprit(rank=rank, host=picture.rank_hosts.get(rank), reason=reason)
        for rank in sorted(set(ranks))
    )


def waiters(picture: Picture) -> frozenset[int]:
    """Global ranks that say themselves that they waited in an operation (by tag or number)."""
    out: set[int] = set()
    for event in picture.of(WatchdogTimeout, GroupStatus, MonitoredBarrier):
        if isinstance(event, GroupStatus) and event.seq is None:
            continue
        rank = picture.rank_of(event.at)
        if rank is None and isinstance(event, WatchdogTimeout | GroupStatus):
            rank = event.group_rank
        if rank is not None:
            out.add(rank)
    return frozenset(out)


def pending(picture: Picture) -> frozenset[int]:
    """Global ranks whose heartbeat says that work was still outstanding on them."""
    ranks = (picture.rank_of(e.at) for e in picture.of(Heartbeat) if e.pending)
    return frozenset(rank for rank in ranks if rank is not None)


def collective(
    picture: Picture,
    view: GroupView,
    *,
    op: str | None = None,
    seq: int | None = None,
    missing: Iterable[int] = (),
    mismatch: str | None = None,
) -> Collective:
    """The operation concerned, with the ranks of its group where their number is told."""
    size = size_of(picture, view)
    listed = size is not None and size <= _LARGEST_LISTED
    return Collective(
        op=op,
        seq=seq,
        group=label_of(view),
        expected_ranks=tuple(range(size)) if size is not None and listed and view.world else (),
        missing_ranks=tuple(sorted(missing)),
        mismatch=mismatch,
    )


def ranks_words(ranks: Collection[int]) -> str:
    """``rank 3``, ``ranks 0, 2 and 5``, ``ranks 0-6, 9 and 12 more``; "other ranks" for none."""
    if not ranks:
        return "other ranks"
    runs = spans_of(ranks)
    parts = [f"{a}, {b}" if b == a + 1 else span_text((a, b)) for a, b in runs]
    if len(parts) > 8:
        left = sum(b - a + 1 for a, b in runs[8:])
        parts = [*parts[:8], f"{left} more"]
    single = len(runs) == 1 and runs[0][0] == runs[0][1]
    words = " and ".join(part for part in (", ".join(parts[:-1]), parts[-1]) if part)
    return f"{'rank' if single else 'ranks'} {words}"


def sides_words(sides: Mapping[int, str]) -> str:
    """``allreduce on rank 0, broadcast on ranks 1-4``, the rarest first."""
    ranks: dict[str, list[int]] = defaultdict(list)
    for rank, side in sides.items():
        ranks[side].append(rank)
    order = sorted(ranks.items(), key=lambda one: (len(one[1]), one[0]))
    return ", ".join(f"{side} on {ranks_words(of)}" for side, of in order[:_SIDES_TOLD])
