"""It moves although nothing is printed: what it is at. And: all wait for one, again and again."""

from collections.abc import Iterable

from slurmtop.model.units import ago_text
from slurmtop.model.verdict import Confidence, Evidence, State
from slurmtop.triage.live.enough import QUIET_S
from slurmtop.triage.live.finding import (
    LiveFinding,
    Weight,
    at_text,
    numbers_text,
    process_evidence,
    proofs,
    ranks_of,
    waiting_proof,
)
from slurmtop.triage.live.frames import Act
from slurmtop.triage.live.motion import Motion
from slurmtop.triage.live.pace import wait_text
from slurmtop.triage.live.patience import ends_by_itself, late, serving, threads_moved, until_late
from slurmtop.triage.live.roles import Parts, at_work_below, may_loop, may_spin, parts_of
from slurmtop.triage.live.rules.missing import without_process
from slurmtop.triage.live.view import ProcessView, RankView, World


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
    phases = {one.doing.phase for one in works}
    phase = next(iter(phases)) if len(phases) == 1 else None
    all_of_them = len(works) == len(world.ranks)
    sure = all_of_them or phase is not None or any(_surely(one) for one in works)
    lost = without_process(world)
    healthy = sure and not parts.away and not lost
    about = f" at {phase.value}" if phase is not None else ""
    if lost:
        has = "has" if len(lost) == 1 else "have"
        summary = f"{numbers_text(lost)} {has} no process; {ranks_of(works)} move{about}"
    elif all_of_them:
        summary = f"all {len(works)} ranks move{about}"
    else:
        summary = f"{ranks_of(works)} {'is' if len(works) == 1 else 'are'} at work{about}"
        if not healthy:
            verb = "uses a CPU" if len(works) == 1 else "use CPUs"
            summary = f"{ranks_of(works)} {verb}{about}"
        if parts.waiting:
            verb = "waits" if len(parts.waiting) == 1 else "wait"
            summary += f"; {ranks_of(parts.waiting)} {verb} for it"
    return LiveFinding(
        cls="healthy" if healthy else None,
        state=State.HEALTHY if healthy else State.UNKNOWN,
        weight=Weight.WORKING,
        summary=_since(world) + summary if healthy or lost else summary + _doubt(parts),
        shown=_shown(parts),
        confidence=Confidence.MEDIUM if healthy else Confidence.LOW,
    )


def _since(world: World) -> str:
    log = world.live.log
    if log.quiet_s is not None and log.quiet_s >= QUIET_S and not log.grew:
        return f"quiet for {ago_text(log.quiet_s)}, but working: "
    return "working: "


def _surely(one: RankView) -> bool:
    """Work and no loop: its stack changed, it reads or writes, or what it has started works."""
    looks = [look.doing for look in one.view.looks]
    if all(doing.by_stack for doing in looks) and looks[0].frames != looks[-1].frames:
        return True
    changed = one.view.change
    if changed is not None and changed.io_grew:
        return True
    below = any(child.motion is Motion.MOVED or len(child.looks) < 2 for child in serving(one))
    return below or threads_moved(one.view) or any(doing.on_others for doing in looks)


def _doubt(parts: Parts) -> str:
    if parts.away:
        return f"; {ranks_of(parts.away)} stood still in both looks"
    if all(one.doing.by_stack and one.motion is Motion.STILL for one in parts.works):
        return "; whether its threads ever come to an end cannot be told"
    return "; whether it works or goes round in a loop, stacks would tell"


def _shown(parts: Parts) -> tuple[Evidence, ...]:
    # Who moved itself comes first: it is the plainest proof.
    first = min(parts.works, key=lambda one: one.motion is not Motion.MOVED)
    return (*_work_of(first), *waiting_proof(parts.waiting))


def _work_of(one: RankView) -> tuple[Evidence, ...]:
    """What shows that it works: itself, or what it has started and waits for."""
    if one.motion is Motion.MOVED:
        return proofs(one.view, f"{one.name} moved between the two looks")
    below = at_work_below(one)
    if below:
        child = max(below, key=_cpu)
        return (
            process_evidence(child, f"{one.name} has started it, and it works"),
            *proofs(one.view, f"{one.name} waits for it"),
        )
    return proofs(one.view, f"{one.name} waits, and its own threads use a CPU")


def _cpu(view: ProcessView) -> float:
    return (view.change.cpu_share or 0.0) if view.change is not None else 0.0


def _unsure(world: World, parts: Parts) -> LiveFinding:
    """Something was seen, and it tells neither that it moves nor that it does not."""
    those = (*parts.away, *parts.open)
    first = next((one for one in those if one.doing.act not in (Act.UNKNOWN, Act.LOCK)), those[0])
    verb = "waits" if len(parts.waiting) == 1 else "wait"
    waits = f"; {ranks_of(parts.waiting)} {verb}" if parts.waiting else ""
    where = at_text(first)
    act = first.doing.act.value
    lost = without_process(world)
    if lost:
        waits = f"; {numbers_text(lost)} {'has' if len(lost) == 1 else 'have'} no process{waits}"
    spin = [one for one in parts.open if may_spin(world, one)]
    if len(spin) > 1 and first in spin:
        act = f"and {len(spin) - 1} more use CPUs, as who waits for a GPU does too"
    until = f"; {wait_text(world.pace, world.live)}" if may_loop(world, first) else ""
    if first.motion is Motion.STILL and ends_by_itself(first) and not late(world):
        until = f"; {until_late(world)}"
    return LiveFinding(
        state=State.UNKNOWN,
        weight=Weight.UNSURE,
        summary=f"cannot be told whether {first.name} gets anywhere: it {act}{where}{waits}{until}",
        shown=(*proofs(first.view, "what it was seen to do"), *waiting_proof(parts.waiting)),
        confidence=Confidence.LOW,
    )
