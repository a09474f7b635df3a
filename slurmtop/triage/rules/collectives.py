"""Ranks of one group did not call the same thing: other operation, other size, other order.

Read from the watchdog's lines, joined by group and position. Where the two sides are equal, or
the rank that is ahead may be in its right, both sides are told and nobody is named.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from slurmtop.model.events.nccl import NcclWarn, Warn
from slurmtop.model.events.torch import WatchdogTimeout
from slurmtop.triage.finding import Finding, Shown, Weight
from slurmtop.triage.join_groups import PRINTS, UNTOLD
from slurmtop.triage.ops import PAIR_OPS, UNEVEN_OPS, plain_op
from slurmtop.triage.picture import GroupView, Picture, Place
from slurmtop.triage.waiting import (
    WAITED_OR_LEFT,
    collective,
    culprits,
    minority,
    sides_words,
    size_of,
)

_SHOWN_SIDES = 4
#: Without a group's name, positions further apart than this are those of two groups.
_NEAR = 16


def find(picture: Picture) -> Iterator[Finding]:
    """Mismatches and skews among the ranks whose watchdog spoke."""
    for view in picture.groups:
        if view.kind != "torch" or view.key == PRINTS:
            continue
        waiting = [place for place in view.places if place.op is not None]
        if view.key.endswith(" pairs"):
            yield from _unmatched(picture, view, waiting)
            continue
        found = list(_differ_at_one_position(picture, view, waiting))
        yield from found
        if not found:
            yield from _skewed(picture, view, waiting)
    yield from _told_by_nccl(picture)


def _differ_at_one_position(
    picture: Picture, view: GroupView, waiting: list[Place]
) -> Iterator[Finding]:
    by_seq: dict[int | None, list[Place]] = defaultdict(list)
    for place in waiting:
        by_seq[place.timed_out].append(place)
    for seq, places in sorted(by_seq.items(), key=lambda one: -1 if one[0] is None else one[0]):
        ops = {place.rank: place.op or "" for place in places}
        if len(set(ops.values())) > 1:
            yield _mismatch(picture, view, seq, places, ops, "collective-op-mismatch")
            continue
        if seq is None or next(iter(ops.values())) in UNEVEN_OPS:
            continue
        sizes = {
            place.rank: f"{place.op} of {place.numel_in} elements"
            for place in places
            if place.numel_in is not None
        }
        if len(set(sizes.values())) > 1:
            yield _mismatch(picture, view, seq, places, sizes, "collective-shape-mismatch")


def _mismatch(
    picture: Picture,
    view: GroupView,
    seq: int | None,
    places: list[Place],
    sides: Mapping[int, str],
    cls: str,
) -> Finding:
    odd = minority(sides, size_of(picture, view))
    words = sides_words(sides)
    what = "different operations" if cls == "collective-op-mismatch" else "different sizes"
    at = "at one position" if seq is None else f"at operation {seq}"
    # Without a name it is likely, not certain, that these lines speak of one group.
    weight = Weight.PATTERN if view.key == UNTOLD else Weight.CAUSE
    return Finding(
        cls=cls,
        weight=weight,
        summary=f"The ranks called {what} {at} of one group: {words}",
        at=places[0].at,
        culprits=culprits(picture, _global(places, odd), f"called {words} {at}"),
        shown=_one_line_a_side(places, sides),
        collective=collective(
            picture,
            view,
            op=min(sides.values()) if cls == "collective-op-mismatch" else places[0].op,
            seq=seq,
            mismatch=words,
        ),
        explains=WAITED_OR_LEFT | {"collective-order-skew"},
    )


def _global(places: Iterable[Place], ranks: Iterable[int]) -> frozenset[int]:
    """Global ranks of these ranks of a group, those that are told."""
    wanted = frozenset(ranks)
    found = (place.global_rank for place in places if place.rank in wanted)
    return frozenset(rank for rank in found if rank is not None)


def _one_line_a_side(places: Iterable[Place], sides: Mapping[int, str]) -> tuple[Shown, ...]:
    lines: dict[str, list[Shown]] = defaultdict(list)
    for place in places:
        side = sides.get(place.rank)
        if side is not None:
            lines[side].append(Shown(place.at, f"rank {place.rank} of the group: {side}"))
    # The rarest side first: it is the one to look at.
    order = sorted(lines.values(), key=len)[:_SHOWN_SIDES]
    return tuple(found[0] for found in order)


def _skewed(picture: Picture, view: GroupView, waiting: list[Place]) -> Iterator[Finding]:
    """Ranks that wait at different positions, in different operations.

    The same operation at two positions may be one that some ranks have finished already, and the
    root of a broadcast may be ahead. Who has launched as much as the others is not off at all.
    """
    placed = [(place.timed_out, place) for place in waiting if place.timed_out is not None]
    if len({seq for seq, _ in placed}) < 2:
        return
    low = min(seq for seq, _ in placed)
    high = max(seq for seq, _ in placed)
    behind = [place for seq, place in placed if seq == low]
    ahead = [place for seq, place in placed if seq == high]
    if any((place.enqueued or 0) >= high for place in behind):
        return
    if {place.op for place in behind} & {place.op for place in ahead}:
        return
    if view.key == UNTOLD and high - low > _NEAR:
        return
    sides = {place.rank: f"{place.op} {seq}" for seq, place in placed}
    words = sides_words(sides)
    yield Finding(
        cls="collective-order-skew",
        weight=Weight.PATTERN,
        summary=f"The ranks of one group are {high - low} operations apart: {words}",
        at=behind[0].at,
        shown=_one_line_a_side([place for _, place in placed], sides),
        collective=collective(picture, view, op=behind[0].op, seq=low, mismatch=words),
        explains=WAITED_OR_LEFT,
    )


def _unmatched(picture: Picture, view: GroupView, waiting: list[Place]) -> Iterator[Finding]:
    """A send or a receive that timed out found no partner; which end is at fault is open."""
    # While others wait in a collective, the transfer may only be late for the same reason.
    if not waiting or any(plain_op(e.op) not in PAIR_OPS for e in picture.of(WatchdogTimeout)):
        return
    sides = {place.rank: place.op or "" for place in waiting}
    words = sides_words(sides)
    yield Finding(
        cls="unmatched-p2p",
        weight=Weight.PATTERN,
        summary=f"A transfer between two ranks waited for its other end: {words}",
        at=waiting[0].at,
        shown=_one_line_a_side(waiting, sides),
        collective=collective(picture, view, op=waiting[0].op, seq=waiting[0].timed_out),
        explains=WAITED_OR_LEFT,
    )


def _told_by_nccl(picture: Picture) -> Iterator[Finding]:
    """NCCL 2.4 compared the calls itself; its line names the rank that noticed, not who is off."""
    warns = [warn for warn in picture.of(NcclWarn) if warn.kind is Warn.CALLS_DIFFER]
    if not warns:
        return
    yield Finding(
        cls="collective-op-mismatch",
        weight=Weight.CAUSE,
        summary="NCCL found that the ranks called different collectives",
        at=(picture.earliest(warns) or warns[0]).at,
        shown=tuple(Shown(warn.at, "NCCL compared the calls") for warn in warns[:4]),
        explains=WAITED_OR_LEFT | {"python-exception"},
    )
