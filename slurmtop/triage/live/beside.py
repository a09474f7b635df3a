"""Several launches of one job at once: which of them tells how the job is. Pure.

Beside a training other programs run: a debugger, a copy, a server of its own. That one of them
stands still is no hang of the job while the training goes on; and what a training waits for may be
what another launch of the job is at.
"""

from collections.abc import Sequence
from dataclasses import replace

from slurmtop.model.verdict import Confidence, Evidence, State
from slurmtop.triage.live.finding import LiveFinding, Weight
from slurmtop.triage.live.patience import ends_by_itself
from slurmtop.triage.live.roles import parts_of
from slurmtop.triage.live.together import apart
from slurmtop.triage.live.view import World

Found = tuple[World, LiveFinding | None]
_MOVES = frozenset({State.HEALTHY, State.SLOW})


def settled(found: Sequence[Found]) -> list[tuple[World, LiveFinding]]:
    """What was found of each launch, without the hangs that the others make doubtful.

    A side program is left out and told beside the rest: where that is well, as what speaks against
    it. A launch that may wait for another one is unknown.
    """
    known = [(world, finding) for world, finding in found if finding is not None]
    sides = [one for one in known if any(_is_side(one, other) for other in found)]
    kept = [
        (world, _in_doubt(finding) if any(_may_serve(other, one) for other in found) else finding)
        for one in known
        if one not in sides
        for world, finding in (one,)
    ]
    told = tuple(evidence for _, finding in sides for evidence in _told(finding))
    return [(world, _with(finding, told)) for world, finding in kept]


def _with(finding: LiveFinding, told: tuple[Evidence, ...]) -> LiveFinding:
    if finding.state is State.HUNG:
        return replace(finding, perhaps=(*finding.perhaps, *told))
    return replace(finding, against=(*finding.against, *told))


def _is_side(one: tuple[World, LiveFinding], other: Found) -> bool:
    """Does it stand still beside a training that does not? A process that is alone, and ranks that
    all wait for something, may well rest. Of a smaller group that waits for one of its own the
    larger one has to be seen at work. Beside a group a process that is alone is none of it, however
    that one is."""
    world, finding = one
    if other[0] is world or finding.state is not State.HUNG:
        return False
    if world.count == 1 and _is_group(other[0]):
        return True
    if not _stands_beside(one, other):
        return False
    if world.count == 1:
        return _moves(other)
    larger = other[0].count > world.count and _is_group(other[0])
    return larger and (not finding.culprits or _moves(other))


def _may_serve(other: Found, one: tuple[World, LiveFinding]) -> bool:
    """May what it waits for come from the other launch: an answer, or the next piece of work?"""
    world, finding = one
    if other[0] is world or not _stands_beside(one, other):
        return False
    group = _is_group(other[0])
    if not (group or _has_gpus(other[0])):
        return False
    away = parts_of(world).away
    if finding.culprits:
        return bool(away) and all(map(ends_by_itself, away))
    return group or _moves(other)


def _stands_beside(one: tuple[World, LiveFinding], other: Found) -> bool:
    """Is it said to be hung, and the other one not?"""
    finding = other[1]
    return one[1].state is State.HUNG and (finding is None or finding.state is not State.HUNG)


def _is_group(world: World) -> bool:
    return world.count > 1 and not apart(world)


def _has_gpus(world: World) -> bool:
    return any(one.gpu_busy is not None for one in world.ranks)


def _moves(other: Found) -> bool:
    world, finding = other
    return (finding is not None and finding.state in _MOVES) or bool(parts_of(world).works)


def _in_doubt(finding: LiveFinding) -> LiveFinding:
    return replace(
        finding,
        state=State.UNKNOWN,
        cls=None,
        weight=Weight.UNSURE,
        summary=f"{finding.summary}: another launch of the job may be what it waits for",
        culprits=(),
        next=(),
        confidence=Confidence.LOW,
    )


def _told(finding: LiveFinding) -> tuple[Evidence, ...]:
    words = f"of another launch: {finding.summary}"
    return tuple(replace(one, says=words) for one in finding.shown[:1])
