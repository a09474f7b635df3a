"""Ranks that all wait for each other, in different calls: nobody of them can ever go on."""

from collections.abc import Iterable

from slurmtop.model.text import visible
from slurmtop.model.verdict import Collective, Confidence, Culprit, Evidence, State
from slurmtop.triage.live.doing import site_text
from slurmtop.triage.live.finding import LiveFinding, Weight, culprit, ranks_of, stack_evidence
from slurmtop.triage.live.frames import Act
from slurmtop.triage.live.pace import wait_text
from slurmtop.triage.live.patience import late, long_silence, transport_works, until_late
from slurmtop.triage.live.roles import parts_of
from slurmtop.triage.live.view import RankView, World

_MOST_SITES = 4
#: One rank gives or takes, and the others need not wait for each other: who has given its part goes
#: on to the next call, and who still waits may be waiting for another one's part.
_ROOTED = frozenset(
    {
        "broadcast",
        "broadcast_object_list",
        "reduce",
        "gather",
        "gather_object",
        "scatter",
        "scatter_object_list",
    }
)


def find(world: World) -> Iterable[LiveFinding]:
    """Only where every rank was seen, each in a collective by its stack, and none moved."""
    parts = parts_of(world)
    waits = parts.waits
    if len(waits) != len(world.ranks) or len(waits) < 2 or world.live.log.new_steps:
        return
    if not all(one.doing.act is Act.COLLECTIVE for one in waits):
        return
    groups: dict[tuple[str, str], list[RankView]] = {}
    for one in waits:
        groups.setdefault((one.doing.op or "", _site(one)), []).append(one)
    sides = sorted(groups.values(), key=len, reverse=True)
    if len(sides) < 2:
        return
    ops = {one.doing.op for one in waits}
    # A library that talks in sub-groups stands at different lines by design.
    plain = not any(one.doing.framework for one in waits)
    told = "; ".join(_side_text(side) for side in sides[:_MOST_SITES])
    whole = len(waits) == world.count and not world.silent
    odd = sides[1] if len(sides) == 2 and 2 * len(sides[1]) < len(waits) else []
    mismatch = len(ops) > 1
    plain = plain and not ops & _ROOTED
    # A large tensor on a slow network takes its time: who calls it at another line waits as well.
    sends = any(transport_works(one.view) for one in waits)
    named = odd if mismatch and plain and whole and world.count > 2 and not sends else []
    early = _may_go_on(world, waits, sends=sends)
    if early:
        yield LiveFinding(
            state=State.UNKNOWN,
            weight=Weight.SITES,
            summary=f"{_summary(sides, told, [])}; {early}",
            shown=_proofs(sides),
            confidence=Confidence.LOW,
            collective=Collective(mismatch=told),
        )
        return
    yield LiveFinding(
        cls="collective-op-mismatch" if mismatch else "collective-order-skew",
        state=State.HUNG,
        weight=Weight.SITES,
        summary=_summary(sides, told, named),
        doubt=sends,
        culprits=tuple(_culprit(one) for one in named),
        shown=_proofs(sides),
        collective=Collective(mismatch=told, op=None if mismatch else waits[0].doing.op),
    )


def _may_go_on(world: World, waits: tuple[RankView, ...], *, sends: bool) -> str:
    """Why it may go on by itself, and when that can be told; empty where it cannot."""
    if world.log_moves:
        return "their log goes on, so they may as well"
    if sends and not late(world):
        return "their other threads use CPUs: data may be on its way"
    if any(one.doing.framework for one in waits) and not late(world):
        return f"they may talk in groups of their own: {until_late(world)}"
    # A call waits for what its own GPU has yet to do, too; what that draws would tell.
    dark = world.gpus and any(one.gpu_power is None for one in waits)
    if dark and not long_silence(world):
        return f"their GPUs may have work left: {wait_text(world.pace, world.live)}"
    return ""


def _site(one: RankView) -> str:
    frame = one.doing.site
    return f"{frame.file}:{frame.line}" if frame is not None else ""


def _side_text(side: list[RankView]) -> str:
    where = site_text(side[0].doing.site)
    at = f" at {where}" if where else ""
    return f"{ranks_of(side)} in {visible(side[0].doing.op or 'a collective')}{at}"


def _summary(sides: list[list[RankView]], told: str, named: list[RankView]) -> str:
    if named:
        return f"{ranks_of(named)} took another way than the others: {told}"
    return f"the ranks wait for each other in different calls: {told}"


def _culprit(one: RankView) -> Culprit:
    where = site_text(one.doing.site)
    reason = f"is alone in {visible(one.doing.op or 'a collective')}"
    return culprit(one, f"{reason} at {where}" if where else reason)


def _proofs(sides: list[list[RankView]]) -> tuple[Evidence, ...]:
    return tuple(_proof(side) for side in (*sides[1:], sides[0])[:_MOST_SITES])


def _proof(side: list[RankView]) -> Evidence:
    found = stack_evidence(side[0].view, f"{ranks_of(side)} here")
    assert found is not None
    return found
