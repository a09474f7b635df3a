"""Ranks that stand still and wait for nobody, while the others wait for them."""

from collections.abc import Iterable
from dataclasses import replace

from slurmtop.model.text import visible
from slurmtop.model.units import ago_text, plural
from slurmtop.model.verdict import Confidence, Evidence, NextStep, State
from slurmtop.triage.live.doing import site_text
from slurmtop.triage.live.finding import (
    LiveFinding,
    Weight,
    at_text,
    culprit,
    proofs,
    ranks_of,
    stack_evidence,
    waiting_proof,
)
from slurmtop.triage.live.frames import Act, Phase
from slurmtop.triage.live.motion import Motion
from slurmtop.triage.live.patience import ends_by_itself, late, no_other_end, threads_work
from slurmtop.triage.live.roles import Parts, may_spin, parts_of, stuck_workers
from slurmtop.triage.live.together import apart
from slurmtop.triage.live.view import RankView, World

_BY_ACT = {
    Act.STOPPED: "process-stopped",
    Act.DISK: "io-stuck",
    Act.GIL: "gil-held",
}
_BY_PHASE = {
    Phase.LOADER: "data-loader-stuck",
    Phase.CHECKPOINT: "checkpoint-stuck",
    Phase.TEARDOWN: "teardown-hang",
}
#: What leaves no doubt comes first.
_ORDER = ("process-stopped", "io-stuck", "gil-held")
#: The kernel itself does not let these run: nobody else's wait is needed as proof.
_STANDS = frozenset({Act.STOPPED, Act.DISK})
#: What comes to its end by itself, sooner or later.
_TAKES_TIME = frozenset({Act.SLEEP, Act.LOCK, Act.SOCKET, Act.POLL, Act.CHILD, Act.BUSY, Act.OWN})
_PREPARES_NOTHING = frozenset({Act.SLEEP, Act.LOCK})
_ITS_TURN_S = 300.0
#: What is computed before the first step (an index of all data) has no pace to be measured by.
_PREPARES_S = 3_600.0
#: Beginnings of calls by which the first rank gives to all what it has got or made.
_FROM_FIRST = ("broadcast", "scatter")
_MOST_NAMED = 64
_SHOWN = 2


def find(world: World) -> Iterable[LiveFinding]:
    if world.live.log.new_steps:
        return
    parts = parts_of(world)
    stands = [one for one in parts.away if one.doing.act in _STANDS]
    if apart(world) and len(stands) < world.count:
        return
    if stands:
        # Most of the others wait, or may: else it goes on without them.
        waiting = len(parts.waiting) + sum(may_spin(world, one) for one in parts.open)
        most = 2 * waiting > world.count - len(stands) and not parts.works
        most = most or 2 * len(parts.waiting) > world.count - len(stands)
        if most or len(stands) == world.count:
            named = len(stands) <= _MOST_NAMED and not _shared(world, stands)
            yield _finding(world, parts, stands, Weight.STANDS, named=named)
        return
    if not parts.away:
        parts = _with_odd_one(world, parts)
    if not parts.away or parts.works or not enough_wait(world, parts):
        return
    # Of a rank that was not seen, or of which too little is known, nobody can say that it waits.
    whole = len(parts.away) + len(parts.waiting) == world.count
    few = 2 * (len(parts.away) + _unsure(parts)) < world.count
    few = few or (world.count == 2 and len(parts.away) == 1)
    if may_be_its_turn(world, parts):
        yield _perhaps(world, parts, "it may be its turn, a later look tells")
    elif behind := _behind(world, parts):
        yield _perhaps(world, parts, f"{behind}, and that may be what is waited for")
    elif world.log_moves and not any(no_other_end(one.view) for one in parts.away):
        yield _perhaps(world, parts, "its log goes on, so it may be at work")
    else:
        yield _finding(world, parts, list(parts.away), Weight.AWAY, named=whole and few)


def _perhaps(world: World, parts: Parts, why: str) -> LiveFinding:
    """They stand still, and that may be as it should be."""
    found = _finding(world, parts, list(parts.away), Weight.AWAY, named=True)
    return replace(
        found,
        state=State.UNKNOWN,
        cls=None,
        summary=f"{found.summary}: {why}",
        culprits=(),
        confidence=Confidence.LOW,
        next=(),
    )


def may_be_its_turn(world: World, parts: Parts) -> bool:
    """Do the others wait on purpose? All come together before they start, however long one of them
    loads; and what only the first rank does, or the first one of a node (an upload, figures, an
    index of the data), the others await in a barrier or in a call that brings them the result."""
    quiet = world.live.log.quiet_s
    prepares = not world.stepped and all(one.motion is Motion.LOOPS for one in parts.away)
    most = _PREPARES_S if prepares else _ITS_TURN_S
    if world.timed_out or quiet is None or quiet >= most or not parts.waits:
        return False
    loads = all(one.doing.act in _TAKES_TIME for one in parts.away)
    if not loads or any(one.doing.phase in _BY_PHASE for one in parts.away):
        return False
    if all(one.doing.act is Act.STORE for one in parts.waits):
        return not any(one.doing.act is Act.SLEEP for one in parts.away)
    # Who sleeps by a clock, or waits for a lock that no thread of it can open, prepares nothing.
    if any(one.doing.act in _PREPARES_NOTHING for one in parts.away):
        return False
    if len(parts.away) == 1 and parts.away[0].rank == 0 and all(map(_at_barrier, parts.waits)):
        return True
    meets = all(_at_barrier(one) or _takes(one) for one in parts.waits)
    return meets and all(_is_first(world, one) for one in parts.away)


def _at_barrier(one: RankView) -> bool:
    return "barrier" in (one.doing.op or "")


def _takes(one: RankView) -> bool:
    return (one.doing.op or "").startswith(_FROM_FIRST)


def _is_first(world: World, one: RankView) -> bool:
    """Is it the first rank of all, or the first one of a node that has several?"""
    if one.rank == 0:
        return True
    several = sum(other.host == one.host for other in world.ranks) > 1
    return several and one.told.local_rank == 0


def _behind(world: World, parts: Parts) -> str:
    """Who may be what those that stand still wait for, in words: one that is at something that ends
    by itself (it has locked a file, and is downloading it), or one that nobody saw; empty where
    there is none. Who only spins waits for its GPU, like others; and a FIFO without another end
    waits for no rank."""
    if late(world) or any(no_other_end(one.view) for one in parts.away):
        return ""
    for one in parts.open:
        if one.doing.act in _TAKES_TIME and not may_spin(world, one):
            return f"{one.name} {one.doing.act.value}{at_text(one)}"
    unseen = world.count - len(world.ranks)
    if unseen > 0 and not any(one.doing.phase in _BY_PHASE for one in parts.away):
        return f"of {plural(unseen, 'rank')} nothing was seen"
    return ""


def _shared(world: World, stands: list[RankView]) -> bool:
    """Do most ranks wait in the kernel, on several nodes? Then what they share keeps them, a file
    system or its server, and not one of them is to blame."""
    disk = [one for one in stands if one.doing.act is Act.DISK]
    hosts = {one.host for one in disk}
    return len(disk) == len(stands) and len(hosts) > 1 and 2 * len(disk) > world.count


def _unsure(parts: Parts) -> int:
    """Those that only the kernel shows to wait where stacks show it of others: they may be away as
    well, and then these are no few."""
    if not parts.waits:
        return 0
    return sum(not one.doing.by_stack for one in parts.seems)


def _with_odd_one(world: World, parts: Parts) -> Parts:
    """Where every other rank stands in one collective at one line, the only one that does not is
    away, also where its stack ends in C code that may wait for anything."""
    odd = [*parts.seems, *parts.open]
    if len(odd) != 1 or parts.works or len(world.ranks) != world.count or world.count < 3:
        return parts
    one = odd[0]
    places = {(o.doing.op, o.doing.site) for o in parts.waits if o.doing.act is Act.COLLECTIVE}
    framework = any(o.doing.framework for o in parts.waits)
    still = one.motion is Motion.STILL and one.doing.by_stack
    if len(parts.waits) != world.count - 1 or len(places) != 1 or framework or not still:
        return parts
    if one.doing.act not in (Act.LOCK, Act.POLL, Act.SOCKET) or threads_work(one.view):
        return parts
    if ends_by_itself(one) and not late(world):
        return parts
    return Parts(waits=parts.waits, seems=(), away=(one,), works=(), open=())


def enough_wait(world: World, parts: Parts) -> bool:
    """Do more than half of all ranks wait? In a world of two there is no majority: there the
    stacks of both must tell it."""
    if world.count > 2:
        return 2 * len(parts.waiting) > world.count
    if world.count == 2:
        return len(parts.waits) == 1 and all(one.doing.by_stack for one in parts.away)
    return False


def class_of(one: RankView) -> str:
    """What keeps a rank that is away."""
    doing = one.doing
    if doing.act in _STANDS:
        return _BY_ACT[doing.act]
    if doing.phase in _BY_PHASE:
        return _BY_PHASE[doing.phase]
    if doing.act in _BY_ACT:
        return _BY_ACT[doing.act]
    return "data-loader-stuck" if stuck_workers(one) else "rank-elsewhere"


def _finding(
    world: World, parts: Parts, those: list[RankView], weight: Weight, *, named: bool
) -> LiveFinding:
    away = sorted(those, key=_strongest)
    first = away[0]
    cls = class_of(first)
    alike = [one for one in away if class_of(one) == cls]
    comes = [one for one in away if one.doing.act not in _STANDS and ends_by_itself(one)]
    # Lines of a watchdog are newer than the silence.
    since = _since(world) if first in comes and not world.timed_out else ""
    culprits = tuple(culprit(one, how(one)) for one in away) if named else ()
    who = first.name if len(alike) == 1 else f"{len(alike)} ranks ({ranks_of(alike)})"
    waits = _waits_text(parts)
    unseen = world.count - len(parts.away) - len(parts.waiting)
    if weight is Weight.STANDS and not named and _shared(world, those):
        hosts = len({one.host for one in those})
        waits += f"; on {hosts} nodes at once: what they share keeps them, and nobody is named"
    elif not named and unseen > 0:
        waits += f"; of {plural(unseen, 'rank')} too little is known, so nobody is named"
    return LiveFinding(
        cls=cls,
        state=State.HUNG,
        weight=weight,
        summary=f"{who} {how(first, many=len(alike) > 1)}{since}{waits}",
        culprits=culprits,
        shown=(*_shown(alike), *waiting_proof(parts.waiting)),
        against=_rest(away[len(alike) :]),
        # Nobody knows how long this job's own steps are, or what it waits for may come yet.
        doubt=bool(comes) or (world.pace is None and any(o.motion is Motion.LOOPS for o in away)),
        next=_steps(first) if named else (),
    )


def _since(world: World) -> str:
    quiet = world.live.log.quiet_s
    return f" for {ago_text(quiet)}" if quiet is not None else ""


def _strongest(one: RankView) -> tuple[int, int]:
    cls = class_of(one)
    return (_ORDER.index(cls) if cls in _ORDER else len(_ORDER), one.rank or 0)


def how(one: RankView, *, many: bool = False) -> str:
    """``sleeps at train.py:30 in load``: what keeps a rank that is away."""
    doing, cls = one.doing, class_of(one)
    at = at_text(one)
    activity = one.view.looks[-1].activity
    if doing.act is Act.STOPPED:
        tracer = activity.tracer_pid if activity is not None else None
        by = f", traced by process {tracer}" if tracer else ""
        return f"{'are' if many else 'is'} stopped{by}"
    if doing.act is Act.DISK:
        wchan = f" ({visible(activity.wchan)})" if activity is not None and activity.wchan else ""
        if activity is not None and activity.open_file:
            wchan += f" on {visible(activity.open_file)}"
        return f"{'wait' if many else 'waits'} in the kernel, state D{wchan}{at}"
    if doing.act is Act.GIL:
        return f"{'hold' if many else 'holds'} the interpreter in C code{at}"
    file = activity.open_file if activity is not None else None
    one_does, all_do = {
        Act.SLEEP: ("sleeps", "sleep"),
        Act.READ: ("is blocked in a read or write", "are blocked in a read or write"),
        Act.BUSY: ("goes round and round", "go round and round"),
        Act.CHILD: ("waits for a child process", "wait for a child process"),
        Act.SOCKET: ("waits for the network", "wait for the network"),
    }.get(doing.act, ("waits", "wait"))
    what = all_do if many else one_does
    if doing.act is Act.READ and file and not many:
        what = f"is blocked on {visible(file)}"
    where = {
        "data-loader-stuck": " for data",
        "checkpoint-stuck": " in a checkpoint",
        "teardown-hang": " while closing down",
    }.get(cls, "")
    return f"{what}{where}{at}"


def _waits_text(parts: Parts) -> str:
    found = parts.waiting
    if not found:
        return ""
    ops = {one.doing.op for one in parts.waits if one.doing.op}
    op = f" in {visible(next(iter(ops)))}" if len(ops) == 1 and parts.waits else ""
    verb = "waits" if len(found) == 1 else "wait"
    return f"; {ranks_of(found)} {verb}{op} for it"


def _shown(away: list[RankView]) -> tuple[Evidence, ...]:
    out: list[Evidence] = []
    for one in away[:_SHOWN]:
        out += proofs(one.view, how(one))
        for worker in stuck_workers(one)[:1]:
            out += proofs(worker, "a worker of its loader that does not come back")
    return tuple(out)


def _rest(others: list[RankView]) -> tuple[Evidence, ...]:
    found = (stack_evidence(one.view, f"{one.name} is away as well") for one in others[:_SHOWN])
    return tuple(one for one in found if one is not None)


def _steps(one: RankView) -> tuple[NextStep, ...]:
    host, pid = one.host, one.view.pid
    if not host.replace("-", "").replace(".", "").isalnum():
        return ()
    if one.doing.act is Act.STOPPED:
        activity = one.view.looks[-1].activity
        if activity is not None and activity.tracer_pid:
            command = f"ssh {host} ps -fp {activity.tracer_pid}"
            return (NextStep("see what traces it", command, "read", "detach it there"),)
        command = f"ssh {host} kill -CONT {pid}"
        return (NextStep("let it go on", command, "write", "it goes on where it was stopped"),)
    if one.doing.act is Act.DISK:
        command = f"ssh {host} cat /proc/{pid}/wchan /proc/{pid}/mounts"
        why = "for the administrators: nobody can end this process"
        return (NextStep("record where it waits", command, "read", why),)
    if one.doing.act is Act.GIL:
        command = f"ssh {host} py-spy dump --native -p {pid}"
        why = "stops that one process for a moment; shows which C function keeps it"
        return (NextStep("see its native stack", command, "write", why),)
    where = site_text(one.doing.site)
    why = f"it stands at {where}" if where else "tells where it stands"
    command = f"ssh {host} py-spy dump --nonblocking -p {pid}"
    return (NextStep("see its stack again", command, "read", why),)
