"""Groups of ranks and where each rank stands in them, as PyTorch's c10d tells it.

A group is the same on two ranks where its GUID is. ``PG ID`` counts groups of one process and is
comparable only for 0, the default group. Lines without any of these name a rank of *some* group:
they are put together only where no rank stands at two places at once.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from slurmtop.model.events.torch import (
    DumpSignal,
    Fingerprint,
    Group,
    GroupStatus,
    OfGroup,
    RunningCollective,
    WatchdogTimeout,
)
from slurmtop.model.trace import Traces, Where
from slurmtop.triage.join_comms import read_comms
from slurmtop.triage.ops import PAIR_OPS, group_size, numel_of, plain_op
from slurmtop.triage.picture import GroupView, Place

DEFAULT = "0"
"""The key of PyTorch's default group, whose ranks are the global ones."""
UNTOLD = "?"
"""The key of the view of lines that do not tell their group."""
PRINTS = "fingerprints"
"""The key of the view of ``TORCH_DISTRIBUTED_DEBUG``, whose counter is its own."""


@dataclass(frozen=True, slots=True)
class _Told:
    """What one line tells of one rank. ``writer`` is the global rank of its writer."""

    rank: int
    at: Where
    writer: int | None
    timed_out: int | None = None
    op: str | None = None
    numel_in: int | None = None
    numel_out: int | None = None
    enqueued: int | None = None
    completed: int | None = None


def read_groups(
    traces: Traces,
    name_of: Callable[[str], str],
    is_current: Callable[[Where], bool],
    ranks: Mapping[tuple[str, int], int],
) -> tuple[GroupView, ...]:
    """The groups of the newest attempt: PyTorch's by name, then NCCL's communicators."""
    told: dict[tuple[str, int], list[_Told]] = defaultdict(list)
    descs: dict[tuple[str, int], str] = {}
    events = [e for e in traces.of(OfGroup) if is_current(e.at)]
    groups = _groups_of_timeouts(events, ranks)
    for event in events:
        group = event.group or groups.get((event.at.source, event.at.order))
        one = _told(event, ranks.get((event.at.source, event.at.order)))
        if one is None:
            continue
        key = PRINTS if isinstance(event, RunningCollective) else _key(group, one, event)
        if one.op in PAIR_OPS:
            key += " pairs"
        told[key, event.at.attempt].append(one)
        if group is not None and group.desc is not None:
            descs.setdefault((key, event.at.attempt), group.desc)
    views = [_view(key, descs.get(key), lines) for key, lines in sorted(told.items())]
    found = [view for view in views if view is not None]
    return (*found, *read_comms(traces, name_of, is_current, ranks))


def _groups_of_timeouts(
    events: Iterable[OfGroup], ranks: Mapping[tuple[str, int], int]
) -> dict[tuple[str, int], Group]:
    """The group of a timeout is told by the status line of the same writer and position."""
    statuses: dict[tuple[str, int | None, int | None], set[Group]] = defaultdict(set)
    bare: list[WatchdogTimeout] = []
    for event in events:
        if isinstance(event, GroupStatus) and event.group is not None and event.seq is not None:
            statuses[(*_writer(event, ranks), event.seq)].add(event.group)
        if isinstance(event, WatchdogTimeout) and event.group is None and event.seq is not None:
            bare.append(event)
    out: dict[tuple[str, int], Group] = {}
    for event in bare:
        found = statuses.get((*_writer(event, ranks), event.seq), set())
        if not found:
            found = _same_position(event, statuses, ranks)
        if len(found) == 1:
            out[event.at.source, event.at.order] = next(iter(found))
    return out


#: Positions from here on do not meet by chance in two groups.
_TELLING_POSITION = 100


def _same_position(
    event: WatchdogTimeout,
    statuses: Mapping[tuple[str, int | None, int | None], set[Group]],
    ranks: Mapping[tuple[str, int], int],
) -> set[Group]:
    """The default group, where it is the only group told and another rank hangs at this high
    position of it: a line cut off before its status."""
    told = {group for groups in statuses.values() for group in groups}
    there = {seq for _, _, seq in statuses}
    writer = ranks.get((event.at.source, event.at.order), event.group_rank)
    if len(told) != 1 or event.seq not in there or writer != event.group_rank:
        return set()
    (only,) = told
    default = only.guid in (None, DEFAULT) and (only.id == 0 or only.desc == "default_pg")
    return told if default and (event.seq or 0) >= _TELLING_POSITION else set()


def _writer(event: OfGroup, ranks: Mapping[tuple[str, int], int]) -> tuple[str, int | None]:
    rank = ranks.get((event.at.source, event.at.order), event.group_rank)
    return (event.at.source, rank)


def _told(event: OfGroup, writer: int | None) -> _Told | None:
    rank = event.group_rank if event.group_rank is not None else writer
    if rank is None:
        return None
    one = _Told(rank, event.at, writer)
    if isinstance(event, WatchdogTimeout):
        return replace(
            one,
            timed_out=event.seq,
            op=plain_op(event.op),
            numel_in=event.numel_in if event.numel_in is not None else numel_of(event.shape),
            numel_out=event.numel_out,
        )
    if isinstance(event, GroupStatus):
        if event.seq is None:
            # The line of every half a minute: it may be hours older than the hang.
            return None
        return replace(one, timed_out=event.seq, enqueued=event.enqueued, completed=event.completed)
    if isinstance(event, DumpSignal):
        return replace(one, enqueued=event.enqueued, completed=event.completed)
    if isinstance(event, RunningCollective):
        return _printed(one, event.print)
    return None


def _printed(one: _Told, print_: Fingerprint) -> _Told:
    rank = one.rank if print_.rank is None else print_.rank
    return replace(one, rank=rank, enqueued=print_.seq, op=plain_op(print_.op))


def _key(group: Group | None, one: _Told, event: OfGroup) -> str:
    if group is None or (group.id is None and group.guid is None and group.desc is None):
        return UNTOLD
    if group.guid is not None:
        return group.guid
    if group.id == 0 or group.desc == "default_pg":
        return DEFAULT
    if group.desc is not None:
        return f"desc {group.desc}"
    # The nth group of one process: nobody else's place is comparable with it.
    return f"id {group.id} of {one.writer if one.writer is not None else event.at.source}"


def _view(key: tuple[str, int], desc: str | None, lines: list[_Told]) -> GroupView | None:
    name, attempt = key
    if _clash(name, lines):
        return None
    world = name == DEFAULT
    by_rank: dict[int, list[_Told]] = defaultdict(list)
    for one in lines:
        by_rank[one.rank].append(one)
    places = tuple(_place(rank, told, world) for rank, told in sorted(by_rank.items()))
    sizes = {
        size
        for one in lines
        if (size := group_size(one.op, one.numel_in, one.numel_out)) is not None
        and size > max(by_rank)
    }
    return GroupView(
        key=name,
        kind="torch",
        attempt=attempt,
        size=next(iter(sizes)) if len(sizes) == 1 else None,
        world=world,
        desc=desc,
        places=places,
    )


def _clash(key: str, lines: list[_Told]) -> bool:
    """Do these lines speak of more than one group?"""
    writers: dict[int, set[int]] = defaultdict(set)
    positions: dict[int, set[int]] = defaultdict(set)
    last: dict[int, int] = {}
    for one in lines:
        if one.writer is not None:
            writers[one.rank].add(one.writer)
        if one.timed_out is not None:
            positions[one.rank].add(one.timed_out)
        if key == PRINTS and one.enqueued is not None:
            if one.enqueued < last.get(one.rank, 0):
                return True
            last[one.rank] = one.enqueued
    if any(len(found) > 1 for found in writers.values()):
        return True
    if key == DEFAULT and any(found != {rank} for rank, found in writers.items()):
        return True
    # With a name, a watchdog may tell of several operations of one group that are overdue.
    return key.startswith(UNTOLD) and any(len(found) > 1 for found in positions.values())


def _place(rank: int, lines: list[_Told], world: bool) -> Place:
    timed_out = min((one.timed_out for one in lines if one.timed_out is not None), default=None)
    timeouts = [one for one in lines if one.timed_out == timed_out and one.op is not None]
    best = timeouts[0] if timeouts else lines[-1]
    writer = next((one.writer for one in lines if one.writer is not None), None)
    return Place(
        rank=rank,
        at=best.at,
        enqueued=_largest(one.enqueued for one in lines),
        completed=_largest(one.completed for one in lines),
        timed_out=timed_out,
        op=best.op,
        numel_in=best.numel_in,
        numel_out=best.numel_out,
        global_rank=writer if writer is not None else (rank if world else None),
    )


def _largest(numbers: Iterable[int | None]) -> int | None:
    return max((number for number in numbers if number is not None), default=None)
