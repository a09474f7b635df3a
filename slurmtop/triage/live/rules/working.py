"""It moves although nothing is printed: what it is at. And: all wait for one, again and again."""

from collections.abc import Iterable

from slurmtop.model.units import ago_text
from slurmtop.model.verdict import Confidence, Evidence, State
from slurmtop.triage.live.enough import QUIET_S
from slurmtop.triage.live.finding import (
    LiveFinding,
    Weight,
    at_text,
    proofs,
    ranks_of,
    waiting_proof,
)
from slurmtop.triage.live.frames import Act
from slurmtop.triage.live.motion import Motion
from slurmtop.triage.live.roles import Parts, parts_of
from slurmtop.triage.live.view import RankView, World


def find(world: World) -> Iterable[LiveFinding]:
    if not world.two or not world.ranks:
        return
    parts = parts_of(world)
    yield from _slow(world)
    if parts.works:
        yield _working(world, parts)
    elif parts.open or parts.away:
        yield _unsure(world, parts)


def _slow(world: World) -> Iterable[LiveFinding]:
    """Steps are made, and in each look all but one wait, always for the same."""
    if not world.live.log.new_steps or world.count < 3 or len(world.ranks) != world.count:
        return
    late = [one for one in world.ranks if not any(_waits(one, n) for n in range(2))]
    others = [one for one in world.ranks if all(_waits(one, n) for n in range(2))]
    if len(late) != 1 or len(others) != world.count - 1:
        return
    one = late[0]
    yield LiveFinding(
        cls="slow-run",
        state=State.SLOW,
        weight=Weight.SLOW,
        summary=f"it makes steps, and in both looks all others waited for {one.name}{at_text(one)}",
        shown=(*proofs(one.view, "all others waited for it, twice"), *waiting_proof(others)),
        confidence=Confidence.LOW,
    )


def _waits(one: RankView, look: int) -> bool:
    if look >= len(one.view.looks):
        return False
    doing = one.view.looks[look].doing
    return doing.on_others or (not doing.by_stack and doing.act is Act.LOCK)


def _working(world: World, parts: Parts) -> LiveFinding:
    works = parts.works
    quiet = world.live.log.quiet_s
    silent = quiet is not None and quiet >= QUIET_S and not world.live.log.grew
    since = f"quiet for {ago_text(quiet)}, but working" if silent and quiet else "working"
    phases = {one.doing.phase for one in works}
    phase = next(iter(phases)) if len(phases) == 1 else None
    about = f" at {phase.value}" if phase is not None else ""
    all_of_them = len(works) == len(world.ranks)
    if all_of_them:
        summary = f"{since}: all {len(works)} ranks move{about}"
    else:
        verb = "is" if len(works) == 1 else "are"
        summary = f"{since}: {ranks_of(works)} {verb} at work{about}"
        if parts.waiting:
            summary += f"; {ranks_of(parts.waiting)} wait for it"
    sure = all_of_them or phase is not None or any(_surely(one) for one in works)
    if parts.away or not sure:
        return LiveFinding(
            state=State.UNKNOWN,
            weight=Weight.WORKING,
            summary=_doubt(summary, parts),
            shown=_shown(parts),
            confidence=Confidence.LOW,
        )
    return LiveFinding(
        cls="healthy",
        state=State.HEALTHY,
        weight=Weight.WORKING,
        summary=summary,
        shown=_shown(parts),
        confidence=Confidence.MEDIUM,
    )


def _surely(one: RankView) -> bool:
    """Work and no loop: its stack changed, it reads or writes, or what it has started works."""
    looks = [look.doing for look in one.view.looks]
    if all(doing.by_stack for doing in looks) and looks[0].frames != looks[-1].frames:
        return True
    changed = one.view.change
    if changed is not None and changed.io_grew:
        return True
    return any(child.motion is Motion.MOVED for child in one.below) or any(
        doing.on_others for doing in looks
    )


def _doubt(summary: str, parts: Parts) -> str:
    if parts.away:
        return f"{summary}; {ranks_of(parts.away)} stood still in both looks"
    return f"{summary}; whether it gets anywhere, its stacks would tell"


def _shown(parts: Parts) -> tuple[Evidence, ...]:
    first = parts.works[0]
    says = f"{first.name} moved between the two looks"
    return (*proofs(first.view, says), *waiting_proof(parts.waiting))


def _unsure(world: World, parts: Parts) -> LiveFinding:
    """Something was seen, and it tells neither that it moves nor that it does not."""
    those = (*parts.away, *parts.open)
    first = next((one for one in those if one.doing.act not in (Act.UNKNOWN, Act.LOCK)), those[0])
    waits = f"{ranks_of(parts.waiting)} wait; " if parts.waiting else ""
    where = at_text(first)
    act = first.doing.act.value
    return LiveFinding(
        state=State.UNKNOWN,
        weight=Weight.UNSURE,
        summary=f"{waits}{first.name} {act}{where}: whether it gets anywhere cannot be told",
        shown=(*proofs(first.view, "what it was seen to do"), *waiting_proof(parts.waiting)),
        confidence=Confidence.LOW,
    )
