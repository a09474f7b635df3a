"""NCCL's communicators across processes, and the calls that each rank logged on them.

A pointer (``comm 0x5f``) names a communicator in one process only and is used again after a free.
``commId`` is the same on all ranks; a split has its parent's key, its number and its colour.
Positions are counted by lines, never by opCount, and only where a log holds all of the lines from
the communicator's first call on.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from slurmtop.model.events.nccl import CommCalls, CommInit, InitPhase
from slurmtop.model.trace import Source, Traces, Where
from slurmtop.triage.join_ranks import Key, process_of
from slurmtop.triage.ops import plain_op
from slurmtop.triage.picture import GroupView, Place

_FIRST_CALL = re.compile(r"opCount 0\b")
Name = Callable[[str], str]


@dataclass(slots=True)
class _Member:
    """A communicator in one process."""

    process: Key
    key: str
    rank: int
    nranks: int | None
    at: Where
    complete: bool = False
    started: bool = False
    calls: CommCalls | None = None


@dataclass(slots=True)
class _Book:
    """What is known so far of (process, pointer)."""

    members: list[_Member] = field(default_factory=list)
    current: dict[tuple[Key, str], _Member] = field(default_factory=dict)


def read_comms(
    traces: Traces,
    name_of: Name,
    is_current: Callable[[Where], bool],
    ranks: Mapping[tuple[str, int], int],
) -> tuple[GroupView, ...]:
    """A view of each communicator of the newest attempt whose ranks are told without a clash."""
    book = _Book()
    for event in traces.of(CommInit, CommCalls):
        key = process_of(event.at, name_of)
        if key is None or not is_current(event.at):
            continue
        if isinstance(event, CommInit):
            _enter(book, key, event)
        elif isinstance(event, CommCalls):
            member = book.current.get((key, event.comm))
            if member is not None and member.calls is None:
                member.calls = event
    groups: dict[tuple[str, int], list[_Member]] = defaultdict(list)
    for member in book.members:
        groups[member.key, member.process[2]].append(member)
    sources = {source.name: source for source in traces.sources}
    worlds = _largest(book.members)
    views = []
    for (name, attempt), members in sorted(groups.items(), key=lambda one: one[0]):
        if not _clash(members):
            world = members[0].nranks == worlds.get(attempt)
            views.append(_view(name, attempt, members, sources, ranks, world))
    return tuple(views)


def _largest(members: list[_Member]) -> dict[int, int]:
    largest: dict[int, int] = {}
    for member in members:
        attempt = member.process[2]
        largest[attempt] = max(largest.get(attempt, 0), member.nranks or 0)
    return largest


def _enter(book: _Book, process: Key, event: CommInit) -> None:
    slot = (process, event.comm)
    known = book.current.get(slot)
    if event.phase not in (InitPhase.START, InitPhase.COMPLETE):
        if event.phase in (InitPhase.DESTROYED, InitPhase.ABORTED):
            book.current.pop(slot, None)
        return
    if event.rank is None:
        return
    fresh = known is None or event.phase is InitPhase.START or known.complete
    if fresh:
        key = _key(book, process, event)
        known = _Member(process, key, event.rank, event.nranks, event.at)
        book.members.append(known)
        book.current[slot] = known
    if known is None:
        return
    if event.phase is InitPhase.START:
        known.started = True
    else:
        known.complete = True


def _key(book: _Book, process: Key, event: CommInit) -> str:
    if event.comm_id is not None:
        return event.comm_id
    if event.parent is not None and event.parent.strip("0x"):
        parent = book.current.get((process, event.parent))
        if parent is not None and event.split is not None:
            return f"{parent.key}/{event.split}/{event.color}"
        return f"split {event.comm} of {process[0]}:{process[1]}"
    # Up to 2.15 nothing tells which communicators belong together but their size.
    return f"nranks={event.nranks}"


def _clash(members: list[_Member]) -> bool:
    """Two processes with one rank, or one process with two: these are several communicators."""
    ranks = [member.rank for member in members]
    processes = [member.process for member in members]
    sizes = {member.nranks for member in members}
    return len(set(ranks)) != len(ranks) or len(set(processes)) != len(processes) or len(sizes) > 1


def _view(
    name: str,
    attempt: int,
    members: list[_Member],
    sources: Mapping[str, Source],
    ranks: Mapping[tuple[str, int], int],
    world: bool,
) -> GroupView:
    members = sorted(members, key=lambda member: member.rank)
    whole = all(_counted(member.calls, sources) for member in members if member.calls is not None)
    return GroupView(
        key=name,
        kind="nccl",
        attempt=attempt,
        size=members[0].nranks,
        world=world,
        places=tuple(_place(member, ranks, whole) for member in members),
        started=tuple(member.rank for member in members if member.started),
        complete=tuple(member.rank for member in members if member.complete),
        from_calls=any(member.calls is not None for member in members),
    )


def _place(member: _Member, ranks: Mapping[tuple[str, int], int], whole: bool) -> Place:
    calls = member.calls
    at = member.at if calls is None else calls.at
    last = calls.last[-1] if calls is not None and calls.last else None
    return Place(
        rank=member.rank,
        at=at,
        enqueued=calls.collectives if calls is not None and whole else None,
        op=plain_op(last.op) if last is not None else None,
        calls=calls.last if calls is not None else (),
        global_rank=ranks.get((at.source, at.order)),
    )


def _counted(calls: CommCalls, sources: Mapping[str, Source]) -> bool:
    """Does a log hold every call from the communicator's first one on?"""
    first, source = calls.first_at, sources.get(calls.at.source)
    if calls.torn or first is None or source is None or first.source != calls.at.source:
        return False
    if _FIRST_CALL.search(first.text) is None:
        return False
    return not any(
        first.offset < offset + size and offset < calls.at.offset for offset, size in source.unread
    )
