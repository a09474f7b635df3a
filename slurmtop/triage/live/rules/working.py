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
from slurmtop.triage.live.frames import Act, Phase
from slurmtop.triage.live.motion import Motion
from slurmtop.triage.live.pace import wait_text
from slurmtop.triage.live.patience import (
    ends_by_itself,
    far_too_long,
    late,
    only_watches,
    serving,
    threads_moved,
    threads_work,
    until_late,
)
from slurmtop.triage.live.power import draws_power
from slurmtop.triage.live.roles import (
    Parts,
    at_work_below,
    may_loop,
    may_spin,
    parts_of,
)
from slurmtop.triage.live.rules.missing import without_process
from slurmtop.triage.live.view import ProcessView, RankView, World

#: What one rank does while the others wait on purpose.
_TURNS = frozenset({Phase.EVALUATION, Phase.CHECKPOINT})
#: The kernel itself does not let these run.
_STANDS = frozenset({Act.STOPPED, Act.DISK})
#: Who only looks again and again whether something has come uses no more of a CPU.
_LOOKING_SHARE = 0.05


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
    if _on_purpose(one, others):
        return
    yield LiveFinding(
        cls="slow-run",
        state=State.SLOW,
        weight=Weight.SLOW,
        summary=f"it makes steps, and in both looks all others waited for {one.name}{at_text(one)}",
        shown=(*proofs(one.view, "all others waited for it, twice"), *waiting_proof(others)),
        confidence=Confidence.LOW,
    )


def _on_purpose(one: RankView, others: list[RankView]) -> bool:
    """Is it its turn? An evaluation or a checkpoint of one rank, for which all others wait in a
    barrier, or a stage of a pipeline that the others have to wait for."""
    doings = [look.doing for other in others for look in other.view.looks]
    if any(look.doing.phase in _TURNS for look in one.view.looks):
        return True
    return any(doing.act is Act.P2P or "barrier" in (doing.op or "") for doing in doings)


def _waits(one: RankView, look: int) -> bool:
    if look >= len(one.view.looks) or draws_power(one):
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
    too_long = _much_too_long(world, works)
    healthy = sure and not parts.away and not lost and not too_long
    about = f" at {phase.value}" if phase is not None else ""
    many = len(works) > 1
    who = f"all {len(works)} ranks" if len(works) == world.count > 1 else ranks_of(works)
    if any(map(_by_power, works)):
        what = f"{'are' if many else 'is'} at work, by the power that GPUs draw"
    elif (all_of_them or lost) and not too_long:
        what = f"{'move' if many else 'moves'}{about}"
    elif healthy:
        what = f"{'are' if many else 'is'} at work{about}"
    elif any(map(_uses_cpu, works)):
        what = f"{'use CPUs' if many else 'uses a CPU'}{about}"
    elif any(map(at_work_below, works)):
        what = f"{'have' if many else 'has'} started what uses a little of a CPU{about}"
    elif all(one.motion is Motion.STILL for one in works):
        what = f"{'have' if many else 'has'} threads that use a little of a CPU{about}"
    else:
        what = f"{'wake' if many else 'wakes'} up again and again{about}"
    summary = f"{who} {what}"
    if lost:
        summary = (
            f"{numbers_text(lost)} {'has' if len(lost) == 1 else 'have'} no process; {summary}"
        )
    elif not all_of_them and parts.waiting:
        verb = "waits" if len(parts.waiting) == 1 else "wait"
        summary += f"; {ranks_of(parts.waiting)} {verb} for it"
    told = healthy and not all(map(_by_power, works))
    return LiveFinding(
        cls="healthy" if healthy else None,
        state=State.HEALTHY if healthy else State.UNKNOWN,
        weight=Weight.WORKING,
        summary=_since(world) + summary if healthy or lost else summary + _doubt(world, parts),
        shown=_shown(parts),
        confidence=Confidence.MEDIUM if told else Confidence.LOW,
    )


def _much_too_long(world: World, works: tuple[RankView, ...]) -> bool:
    """Is it silent for so long that nothing seen of them shows that they get anywhere? GPUs that
    all draw the power of work do."""
    if not late(world) or all(map(draws_power, works)):
        return False
    # After so long no CPU in use shows that it gets anywhere.
    return far_too_long(world) or not any(map(_gets_on, works))


def _gets_on(one: RankView) -> bool:
    """Does it do more than wake up, or spin at one place, to see whether something has come?"""
    changed = one.view.change
    if draws_power(one) or _works_below(one) or (changed is not None and changed.io_grew):
        return True
    looks = [look.doing for look in one.view.looks]
    stays = all(doing.by_stack for doing in looks) and looks[0].frames == looks[-1].frames
    return _uses_cpu(one) and (not stays or threads_work(one.view))


def _uses_cpu(one: RankView) -> bool:
    """Does it use more of a CPU than who only looks for something, itself or what it started?"""
    return _cpu(one.view) > _LOOKING_SHARE or _works_below(one)


def _works_below(one: RankView) -> bool:
    """Has it started what does more than watch?"""
    return not all(map(only_watches, at_work_below(one)))


def _by_power(one: RankView) -> bool:
    """Is it the power of its GPUs alone that tells that it works?"""
    return draws_power(one) and one.motion is not Motion.MOVED


def _since(world: World) -> str:
    log = world.live.log
    if log.quiet_s is not None and log.quiet_s >= QUIET_S and not log.grew:
        return f"quiet for {ago_text(log.quiet_s)}, but working: "
    return "working: "


def _surely(one: RankView) -> bool:
    """Work and no loop: its stack changed, it reads or writes, what it has started works, or its
    GPUs draw the power of work."""
    if draws_power(one):
        return True
    looks = [look.doing for look in one.view.looks]
    if all(doing.by_stack for doing in looks) and looks[0].frames != looks[-1].frames:
        return True
    changed = one.view.change
    if changed is not None and changed.io_grew:
        return True
    below = any(child.motion is Motion.MOVED or len(child.looks) < 2 for child in serving(one))
    return below or threads_moved(one.view) or any(doing.on_others for doing in looks)


def _doubt(world: World, parts: Parts) -> str:
    if parts.away:
        return f"; {ranks_of(parts.away)} stood still in both looks"
    below = any(map(at_work_below, parts.works))
    if not below and all(one.doing.by_stack and one.motion is Motion.STILL for one in parts.works):
        return "; whether its threads ever come to an end cannot be told"
    if all(one.doing.by_stack for one in parts.works) or _much_too_long(world, parts.works):
        quiet = world.live.log.quiet_s
        since = f": its log is quiet for {ago_text(quiet)}" if quiet is not None else ""
        those = "they get" if len(parts.works) > 1 else "it gets"
        return f"; whether {those} anywhere cannot be told{since}"
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
    if _by_power(one):
        return (_power_evidence(one), *proofs(one.view, f"{one.name} waits for its GPU"))
    return proofs(one.view, f"{one.name} waits, and its own threads use a CPU")


def _power_evidence(one: RankView) -> Evidence:
    return Evidence(
        family="telemetry",
        host=one.host,
        source=f"nvidia-smi on {one.host}",
        text=f"power.draw: {one.gpu_power or 0.0:.0%} of power.limit or more on its GPUs",
        says="GPUs that only wait for each other draw far less",
    )


def _cpu(view: ProcessView) -> float:
    return (view.change.cpu_share or 0.0) if view.change is not None else 0.0


def _unsure(world: World, parts: Parts) -> LiveFinding:
    """Something was seen, and it tells neither that it moves nor that it does not."""
    those = (*parts.away, *parts.open)
    stands = [one for one in parts.away if one.doing.act in _STANDS]
    first = next((one for one in those if one.doing.act not in (Act.UNKNOWN, Act.LOCK)), those[0])
    first = stands[0] if stands else first
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
    if first.motion in (Motion.STILL, Motion.POLLS) and ends_by_itself(first) and not late(world):
        until = f"; {until_late(world)}"
    summary = f"cannot be told whether {first.name} gets anywhere: it {act}{where}"
    if stands:
        summary = f"{first.name} {act}{where}; whether others wait for it cannot be told"
    return LiveFinding(
        state=State.UNKNOWN,
        weight=Weight.UNSURE,
        summary=f"{summary}{waits}{until}",
        shown=(*proofs(first.view, "what it was seen to do"), *waiting_proof(parts.waiting)),
        confidence=Confidence.LOW,
    )
