"""Several launches of one job at once: which of them tells how the job is. Pure.

Beside a training other programs run: a debugger, a copy, a server of its own. That one of them
stands still is no hang of the job while the training goes on; and what a training waits for may be
what another launch of the job is at.
"""

from collections.abc import Sequence
from dataclasses import replace

from slurmtop.model.verdict import Confidence, Evidence, State
from slurmtop.triage.live.at_rest import is_at_rest
from slurmtop.triage.live.finding import LiveFinding, Weight
from slurmtop.triage.live.frames import Act
from slurmtop.triage.live.patience import ends_by_itself, late
from slurmtop.triage.live.roles import parts_of
from slurmtop.triage.live.together import apart
from slurmtop.triage.live.view import World

Found = tuple[World, LiveFinding | None]
_MOVES = frozenset({State.HEALTHY, State.SLOW})
#: The kernel does not let these run.
_STANDS = frozenset({Act.STOPPED, Act.DISK})
#: So long one launch may need to answer another one (and so many times the job's usual silence);
#: and where nothing tells how long the job's own steps are.
_ANSWERS_S = 1_800.0
_TIMES = 3.0
_UNPACED_S = 7_200.0


def settled(found: Sequence[Found]) -> list[tuple[World, LiveFinding]]:
    """What was found of each launch, without the hangs that the others make doubtful.

    A side program is left out and told beside the rest: where that is well, as what speaks against
    it. A launch that may wait for another one is unknown, and so is one that stands still while
    the job goes on without it.
    """
    known = [(world, finding) for world, finding in found if finding is not None]
    sides = [one for one in known if any(_is_side(one, other) for other in found)]
    kept = [_weighed(one, found) for one in known if one not in sides]
    return [(world, _with(finding, sides)) for world, finding in kept]


def _weighed(one: tuple[World, LiveFinding], found: Sequence[Found]) -> tuple[World, LiveFinding]:
    world, finding = one
    if finding.state is State.HUNG and _may_rest(world, found):
        return world, _in_doubt(finding, "so does a server at rest, and a request would tell")
    if any(_may_serve(other, one) for other in found):
        return world, _in_doubt(finding, "another launch of the job may be what it waits for")
    if any(_goes_on_without(other, one) for other in found):
        return world, _in_doubt(finding, "another launch of the job is at work meanwhile")
    return one


def _may_rest(world: World, found: Sequence[Found]) -> bool:
    """Is it a server at rest? Steps in a log are those of another launch, where there is one."""
    alone = len(found) == 1
    return not (world.timed_out or (alone and world.stepped)) and is_at_rest(world)


def _with(finding: LiveFinding, sides: Sequence[tuple[World, LiveFinding]]) -> LiveFinding:
    told = tuple(evidence for _, one in sides for evidence in _told(one))
    if finding.state is State.HUNG:
        return replace(finding, perhaps=(*finding.perhaps, *told))
    # Of a process that is alone the evidence is enough.
    words = [f"; of another launch: {one.summary}" for world, one in sides if world.count > 1]
    summary = finding.summary + "".join(words[:1])
    return replace(finding, summary=summary, against=(*finding.against, *told))


def _is_side(one: tuple[World, LiveFinding], other: Found) -> bool:
    """Does it stand still beside a training that does not? A process that is alone, and ranks that
    all wait for something, may well rest. Of a smaller group that waits for one of its own the
    larger one has to be seen at work; who is stopped, or in state D, is at rest by no will of its
    own. Beside a group a process that is alone is none of it, however that one is."""
    world, finding = one
    if other[0] is world or finding.state is not State.HUNG:
        return False
    if world.count == 1 and _is_group(other[0]):
        return True
    if not _stands_beside(one, other):
        return False
    if world.count == 1:
        return _moves(other)
    if not _is_group(other[0]):
        return False
    if is_at_rest(world) and _moves(other):
        return True
    if other[0].count <= world.count:
        return False
    if not finding.culprits:
        return not _too_long(world)
    return _moves(other) and not _stands(world) and not late(world)


def _goes_on_without(other: Found, one: tuple[World, LiveFinding]) -> bool:
    """Is a launch at work that is as large, while this one stands still? Ranks that all wait, or
    for one to which something may yet come, may do so for as long as that goes on, if the log tells
    of no hang. Beside a larger one who sleeps may do so on purpose as well; of who is stopped a
    silence tells whether the job needs it."""
    world, finding = one
    if other[0] is world or not _stands_beside(one, other) or world.timed_out:
        return False
    if other[0].count < world.count or not _is_group(other[0]) or not _moves(other):
        return False
    if _may_come(world, finding):
        return True
    if other[0].count == world.count:
        return False
    if not finding.culprits:
        return True
    return not _too_long(world) and not (_stands(world) and late(world))


def _may_serve(other: Found, one: tuple[World, LiveFinding]) -> bool:
    """May what it waits for come from the other launch: an answer, or the next piece of work?"""
    world, finding = one
    if other[0] is world or not _stands_beside(one, other) or _too_long(world):
        return False
    group = _is_group(other[0])
    if not (group or _has_gpus(other[0])):
        return False
    if finding.culprits:
        return _may_come(world, finding)
    return group or _moves(other)


def _may_come(world: World, finding: LiveFinding) -> bool:
    """Does each rank that is away, or named, wait for what comes sooner or later? One without a
    process, or a node, waits for nothing."""
    named = {(one.host, one.pid) for one in finding.culprits}
    those = [one for one in world.ranks if (one.host, one.view.pid) in named]
    away = parts_of(world).away
    return len(those) == len(named) and all(map(ends_by_itself, (*those, *away)))


def _stands(world: World) -> bool:
    return any(one.doing.act in _STANDS for one in parts_of(world).away)


def _too_long(world: World) -> bool:
    """Is the job silent for longer than any launch of it needs to answer another one? Where the
    time from step to step is known, what waits so long makes none."""
    log = world.live.log
    if log.new_steps or log.grew or log.quiet_s is None:
        return False
    if world.timed_out:
        return True
    pace = world.pace
    least = _UNPACED_S if pace is None else max(_ANSWERS_S, _TIMES * pace.long_s)
    return log.quiet_s > least


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


def _in_doubt(finding: LiveFinding, why: str) -> LiveFinding:
    return replace(
        finding,
        state=State.UNKNOWN,
        cls=None,
        weight=Weight.UNSURE,
        summary=f"{finding.summary}: {why}",
        culprits=(),
        next=(),
        confidence=Confidence.LOW,
    )


def _told(finding: LiveFinding) -> tuple[Evidence, ...]:
    words = f"of another launch: {finding.summary}"
    return tuple(replace(one, says=words) for one in finding.shown[:1])
