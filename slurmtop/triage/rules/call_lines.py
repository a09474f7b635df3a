"""NCCL's lines of each call (``NCCL_DEBUG_SUBSYS=COLL``): compared by position, never by opCount.

The lines tell what was called, never what was done; a difference at a position that all ranks
have passed is one all the same. A rank that is merely behind is so in every log of a moving job.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from slurmtop.model.events.nccl import Call, CommCalls
from slurmtop.model.events.program import Step
from slurmtop.model.trace import Where
from slurmtop.model.verdict import Collective, State
from slurmtop.triage.finding import Finding, Shown, Weight
from slurmtop.triage.ops import plain_op
from slurmtop.triage.picture import GroupView, Picture, Place
from slurmtop.triage.waiting import (
    WAITED_OR_LEFT,
    collective,
    culprits,
    minority,
    sides_words,
    size_of,
)

_STREAM = re.compile(r"\bstream (0x[0-9a-f]+)", re.IGNORECASE)
_ROOTED = frozenset({"broadcast", "reduce", "gather", "scatter"})
#: From here on a reduction is a handle of the process, no number that others share.
_USER_REDUCTION = 5


def find(picture: Picture) -> Iterator[Finding]:
    """Differences between the calls of ranks, and counters that tell nothing."""
    found = False
    for view in picture.groups:
        if view.kind == "nccl" and view.from_calls:
            for finding in _compared(picture, view):
                found = True
                yield finding
    yield from _counted_pairs(picture)
    if not found:
        yield from _counter_stands(picture)
        yield from _first_call(picture)


def at_positions(place: Place) -> dict[int, Call]:
    """The logged calls by position (1 is the first of the communicator)."""
    if place.enqueued is None:
        return {}
    first = place.enqueued - len(place.calls) + 1
    return {first + n: call for n, call in enumerate(place.calls)}


def _compared(picture: Picture, view: GroupView) -> Iterator[Finding]:
    tables = {place.rank: at_positions(place) for place in view.places if place.calls}
    if len(tables) < 2:
        return
    shared = set.intersection(*(set(table) for table in tables.values()))
    for position in sorted(shared):
        calls = {rank: table[position] for rank, table in tables.items()}
        cls, sides = _difference(calls)
        if cls is None:
            continue
        if cls == "collective-op-mismatch" and _shifted(tables, position):
            cls = "concurrent-use" if _many_streams(picture, view) else "collective-order-skew"
        yield _finding(picture, view, position, cls, sides)
        return


def _difference(calls: Mapping[int, Call]) -> tuple[str | None, dict[int, str]]:
    ops = {rank: plain_op(call.op) or call.op for rank, call in calls.items()}
    if len(set(ops.values())) > 1:
        return "collective-op-mismatch", ops
    op = next(iter(ops.values()))
    roots = {rank: f"{op} from root {call.root}" for rank, call in calls.items()}
    if op in _ROOTED and len(set(roots.values())) > 1:
        return "collective-op-mismatch", roots
    reductions = {
        rank: f"{op} with reduction {min(call.redop, _USER_REDUCTION)}"
        for rank, call in calls.items()
    }
    if len(set(reductions.values())) > 1:
        return "collective-op-mismatch", reductions
    shapes = {
        rank: f"{op} of {call.count} elements of type {call.datatype}"
        for rank, call in calls.items()
    }
    if op != "alltoall" and len(set(shapes.values())) > 1:
        return "collective-shape-mismatch", shapes
    return None, {}


def _shifted(tables: Mapping[int, Mapping[int, Call]], position: int) -> bool:
    """Do two ranks call the same from here on, one of them a call or two later?"""
    around = range(position - 2, position + 3)
    # Thousands of ranks, but only a few ways to go on from here.
    ways = {tuple(table.get(one) for one in around): table for table in tables.values()}
    found = list(ways.values())
    for n, table in enumerate(found):
        for other in found[n + 1 :]:
            here, there = table[position], other[position]
            if _same(here, there):
                continue
            for step in (1, 2):
                later, earlier = other.get(position + step), table.get(position + step)
                if (later is not None and _same(here, later)) or (
                    earlier is not None and _same(there, earlier)
                ):
                    return True
    return False


def _same(one: Call, other: Call) -> bool:
    return (one.op, one.count, one.datatype) == (other.op, other.count, other.datatype)


def _many_streams(picture: Picture, view: GroupView) -> bool:
    """Did one process call on one communicator from several streams?"""
    spots = {_spot(place) for place in view.places}
    for spot, event in calls_of(picture).items():
        if spot in spots:
            streams = {m[1] for at in event.last_at if (m := _STREAM.search(at.text))}
            if len(streams) > 1:
                return True
    return False


def _finding(
    picture: Picture, view: GroupView, position: int, cls: str, sides: Mapping[int, str]
) -> Finding:
    words = sides_words(sides)
    odd: frozenset[int] = frozenset()
    if cls in ("collective-op-mismatch", "collective-shape-mismatch"):
        odd = minority(sides, size_of(picture, view))
    named = [p.global_rank for p in view.places if p.rank in odd and p.global_rank is not None]
    places = {place.rank: place for place in view.places}
    calls, counts = calls_of(picture), Counter(sides.values())
    lines = [
        Shown(_line(calls.get(_spot(places[rank])), places[rank], position), side)
        for rank, side in sides.items()
    ]
    return Finding(
        cls=cls,
        weight=Weight.PATTERN,
        summary=f"The ranks' calls differ from call {position} of one communicator on: {words}",
        at=lines[0].at,
        culprits=culprits(picture, named, f"called {words} as call {position}"),
        shown=tuple(sorted(lines, key=lambda one: counts[one.says])[:4]),
        collective=collective(picture, view, op=min(sides.values()), seq=position, mismatch=words),
        explains=WAITED_OR_LEFT,
    )


def _line(calls: CommCalls | None, place: Place, position: int) -> Where:
    """The line of the call at this position."""
    if calls is None or place.enqueued is None:
        return place.at
    back = place.enqueued - position + 1
    return calls.last_at[-back] if 0 < back <= len(calls.last_at) else place.at


def _counted_pairs(picture: Picture) -> Iterator[Finding]:
    """Sends of one rank to another that are not as many as the other's receives.

    Only at a standstill: in a moving log the newest calls of two ranks are never the same.
    """
    if not any(place.timed_out is not None for view in picture.groups for place in view.places):
        return
    logged = calls_of(picture)
    for view in picture.groups:
        if view.kind != "nccl":
            continue
        calls = {place.rank: c for place in view.places if (c := logged.get(_spot(place)))}
        for rank, own in sorted(calls.items()):
            for peer, sent in own.sends:
                other = calls.get(peer)
                received = dict(other.receives).get(rank, 0) if other is not None else sent
                if sent == received or other is None:
                    continue
                words = f"rank {rank} sent {sent} times to rank {peer}, which received {received}"
                yield Finding(
                    cls="unmatched-p2p",
                    weight=Weight.PATTERN,
                    summary=f"Sends and receives do not match: {words}",
                    at=own.at,
                    shown=(Shown(own.at, words), Shown(other.at, words)),
                    collective=collective(picture, view, op="send", mismatch=words),
                    explains=WAITED_OR_LEFT,
                )
                return


def calls_of(picture: Picture) -> dict[tuple[str, int], CommCalls]:
    """The calls behind the places of communicators, by (source, order) of their lines."""
    return {(event.at.source, event.at.order): event for event in picture.of(CommCalls)}


def _spot(place: Place) -> tuple[str, int]:
    return (place.at.source, place.at.order)


def _counter_stands(picture: Picture) -> Iterator[Finding]:
    """opCount is 0 on every line although several calls were made on a communicator of several.

    NCCL moves it only for plans with network transfers (from 2.27.3), and some builds never do.
    """
    calls = [c for c in picture.of(CommCalls) if c.nranks != 1]
    if not calls or any(c.op_count_moves for c in calls if c.collectives > 1):
        return
    still = [c for c in calls if c.collectives > 1]
    if not still:
        return
    last = still[-1].last[-1] if still[-1].last else None
    yield Finding(
        cls="opcount-not-usable",
        weight=Weight.NOTE,
        state=State.UNKNOWN,
        summary="opCount is the same on every line, so it does not tell how far a rank has come",
        at=still[0].at,
        shown=tuple(
            Shown(at, "a later call with the same opCount") for c in still for at in _newest(c)
        )[:6],
        collective=collective_of(last),
    )


def _newest(calls: CommCalls) -> tuple[Where, ...]:
    return (*calls.last_at[-2:],) or (calls.at,)


def collective_of(call: Call | None) -> Collective | None:
    """The operation of one logged call."""
    return None if call is None else Collective(op=plain_op(call.op))


def _first_call(picture: Picture) -> Iterator[Finding]:
    """Set-up is complete, every visible rank has made its first call, and nothing is behind it.

    That is how a log looks that ends too early, and how one looks whose data never move.
    """
    calls = picture.of(CommCalls)
    if len(calls) < 2 or picture.of(Step) or any(c.collectives != 1 for c in calls):
        return
    ops = {plain_op(c.last[-1].op) for c in calls if c.last}
    if len(ops) != 1 or any(c.nranks == 1 for c in calls):
        return
    yield Finding(
        cls="first-collective-stuck",
        weight=Weight.NOTE,
        state=State.UNKNOWN,
        summary="The visible ranks made their first call, and nothing tells that it ended",
        at=calls[0].at,
        shown=tuple(
            Shown(c.at, "the first call of this rank, the last line of it") for c in calls[:4]
        ),
        collective=collective_of(calls[0].last[-1] if calls[0].last else None),
    )
