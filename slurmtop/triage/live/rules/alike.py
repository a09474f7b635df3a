"""All ranks wait, and nothing on the hosts tells one from another."""

from collections.abc import Iterable

from slurmtop.model.nic import NicKind
from slurmtop.model.text import visible
from slurmtop.model.units import ago_text, plural
from slurmtop.model.verdict import Collective, Confidence, Evidence, Missing, NextStep, State
from slurmtop.triage.live.doing import PERHAPS_ON_OTHERS, site_text
from slurmtop.triage.live.finding import LiveFinding, Weight, at_text, ranks_of, waiting_proof
from slurmtop.triage.live.frames import LONG_WORK, Act, among_several
from slurmtop.triage.live.pace import wait_text
from slurmtop.triage.live.patience import (
    LATE_S,
    ends_by_itself,
    late,
    long_silence,
    transport_works,
    until_late,
)
from slurmtop.triage.live.roles import LONG_QUIET_S, Parts, parts_of
from slurmtop.triage.live.rules.missing import age_s
from slurmtop.triage.live.together import apart
from slurmtop.triage.live.view import RankView, World

#: A GPU that waits for another one is busy with that: at most so many per cent is rest.
_AT_REST = 10.0
_STAYS = ", and it does not end"


def find(world: World) -> Iterable[LiveFinding]:
    parts = parts_of(world)
    if parts.away or parts.works or parts.open or not parts.waiting or world.silent:
        return
    if world.live.log.grew or world.log_moves:
        return
    if _on_device(world, parts):
        yield _device(world, parts)
    else:
        yield _collective(world, parts)


def _on_device(world: World, parts: Parts) -> bool:
    """Do they wait for GPUs, or might they, where there are some that have something to do?"""
    if not world.gpus:
        return False
    if all(one.gpu_busy is not None and one.gpu_busy < _AT_REST for one in parts.waiting):
        return False
    if any(one.doing.act in PERHAPS_ON_OTHERS for one in parts.waiting):
        return True
    return any(one.gpu_busy is not None for one in parts.waiting)


def _device(world: World, parts: Parts) -> LiveFinding:
    quiet = world.live.log.quiet_s
    # Who waits for a GPU looks as in every long step. What the GPUs draw tells that they rest;
    # else a silence longer than any step of this job.
    rest = all(one.gpu_power is not None for one in parts.waiting) and long_silence(world)
    rest = rest and not _at_long_work(parts)
    long = world.timed_out or (quiet is not None and quiet >= LONG_QUIET_S)
    long = long and (rest or _much_too_long(world))
    # Of a rank that was not seen the others may be waiting; tasks that never meet wait each for
    # its own.
    long = long and len(parts.waiting) == world.count and not apart(world)
    count = plural(len(parts.waiting), "rank")
    since = f", and the log is quiet for {ago_text(quiet)}" if quiet is not None else ""
    return LiveFinding(
        cls="device-stall" if long else None,
        state=State.HUNG if long else State.UNKNOWN,
        weight=Weight.ALIKE,
        summary=f"all {count} wait for their GPUs{since}: nothing on the hosts can name one",
        shown=(*waiting_proof(parts.waiting), *_odd_ports(world)),
        confidence=Confidence.MEDIUM if long else Confidence.LOW,
        missing=(
            Missing(
                "flight-recorder",
                "which operation each GPU stands in: the sequence numbers of all ranks tell it",
                "torchfrtrace --prefix nccl_trace_rank_ /tmp",
            ),
        ),
        next=(
            NextStep(
                "look for the odd GPU",
                f"slurmtop gpus {world.live.job}",
                "read",
                "one that is at rest, or draws other power than the rest, is the suspect",
            ),
        ),
    )


def _at_long_work(parts: Parts) -> bool:
    """Is one that only seems to wait at what is no step: an evaluation, a checkpoint?"""
    return any(one.doing.phase in LONG_WORK for one in parts.seems)


def _much_too_long(world: World) -> bool:
    quiet = world.live.log.quiet_s or 0.0
    told = world.timed_out or world.pace is not None
    return late(world) and (told or quiet > 2 * LATE_S)


def _collective(world: World, parts: Parts) -> LiveFinding:
    waits = parts.waits
    places = {_place(one) for one in waits}
    first = waits[0] if waits else parts.waiting[0]
    back = [one for one in parts.waiting if one.doing.act is Act.BACKWARD]
    op = visible(first.doing.op) if first.doing.op else None
    busy = _at_something(parts)
    stays = ""
    count = plural(len(parts.waiting), "rank")
    if len(waits) == len(parts.waiting) and len(places) == 1:
        where = site_text(first.doing.site)
        at = f" at {where}" if where else ""
        summary, stays = f"all {count} wait in the same {op or 'call'}{at}", _STAYS
    elif busy:
        summary = f"all {count} stay where they are and use CPUs: nothing seen tells for what"
    elif not any(one.doing.by_stack for one in parts.waiting):
        summary = (
            f"all {count} wait, none was on a CPU between two looks: stacks would tell for what"
        )
    elif len(back) == len(parts.waiting):
        summary, stays = f"all {count} stand in the backward pass{at_text(first)}", _STAYS
    elif back:
        verb = "stands" if len(back) == 1 else "stand"
        summary = (
            f"{ranks_of(back)} {verb} in the backward pass{at_text(back[0])}, the others wait:"
            " nothing seen names one"
        )
    else:
        summary = f"all {count} wait for each other or for a lock: nothing seen names one"
    starting = all(one.doing.act is Act.STORE for one in waits) and len(waits) == len(parts.waiting)
    starting = starting and not _long_there(world, parts)
    unseen = world.count - len(parts.waiting)
    if unseen > 0:
        summary += f"; of {plural(unseen, 'rank')} nothing was seen"
    sends = "" if busy else _sends(world, parts)
    if sends:
        summary += f"; {sends}"
    # Seen from outside a rank whose own thread uploads waits for a lock like all others.
    comes = any(not one.doing.by_stack and ends_by_itself(one) for one in parts.seems)
    comes = comes and not late(world)
    if comes:
        summary += f"; a thread of one waits for the network: {until_late(world)}"
    # Who only seems to wait for others may wait for work that comes from outside, or be at a
    # function of its own in the backward pass.
    short = bool(parts.seems) and not long_silence(world)
    if short:
        summary += f"; {wait_text(world.pace, world.live)}"
    elif _at_long_work(parts) and not late(world):
        short = True
        summary += f"; {until_late(world)}"
    hung = len(parts.waiting) == world.count > 1
    hung = hung and not (starting or busy or sends or comes or short)
    # Tasks that never meet wait each for its own.
    hung = hung and not apart(world)
    if hung:
        summary += stays
    return LiveFinding(
        cls="watchdog-timeout-unattributed" if hung else None,
        state=State.HUNG if hung else State.UNKNOWN,
        weight=Weight.ALIKE,
        summary=summary,
        shown=(*waiting_proof(parts.waiting), *_odd_ports(world)),
        confidence=Confidence.LOW,
        collective=Collective(op=first.doing.op) if op is not None else None,
    )


def _sends(world: World, parts: Parts) -> str:
    """May data be on its way, by the CPUs that they use, and until when? In words; empty where
    none is in use, or where no call takes as long as that."""
    works = _with_cpu(parts)
    if _much_too_long(world):
        return ""
    if not works:
        told = all(o.view.change and o.view.change.cpu_share is not None for o in parts.waiting)
        return "" if told else f"whether they use CPUs was not seen: {_until(world)}"
    # A large tensor on a slow network takes its time: then the threads of the transport work.
    if any(transport_works(one.view) for one in works):
        return "their other threads use CPUs: data may be on its way"
    # Who polls without a pause may take in data by that, or wait for what its GPU has yet to do.
    return f"they poll on CPUs: {_until(world)}"


def _with_cpu(parts: Parts) -> list[RankView]:
    return [o for o in parts.waiting if o.view.change is not None and o.view.change.works]


def _at_something(parts: Parts) -> bool:
    """Do they use CPUs, and does nothing tell that they wait? So does a server at rest that polls
    for the next request, and who computes in C code, below whatever library."""
    return bool(_with_cpu(parts)) and not any(map(_for_others, parts.waiting))


def _for_others(one: RankView) -> bool:
    """Does its stack tell that others, or its GPU, have to do something first? What stands further
    out tells nothing: below a library that talks to others CPUs do work of all kinds."""
    doing, inner = one.doing, one.doing.inner
    if doing.on_others or doing.act in PERHAPS_ON_OTHERS:
        return True
    return inner is not None and among_several(inner)


def _until(world: World) -> str:
    if world.pace is not None or world.live.log.quiet_s is None:
        return until_late(world)
    return f"it may come yet, so look again once its log is quiet for {ago_text(2 * LATE_S)}"


def _long_there(world: World, parts: Parts) -> bool:
    """Do they wait for longer than any start takes? A log may be quiet from before they began."""
    age = age_s(world, [one.view.process for one in parts.waiting])
    return _much_too_long(world) and (age is None or age >= 2 * LATE_S)


def _place(one: RankView) -> tuple[str | None, str]:
    return (one.doing.op, site_text(one.doing.site))


def _odd_ports(world: World) -> tuple[Evidence, ...]:
    """Ports of the fast network that are down on one node and up on others: a trail, no proof, for
    nobody knows whether the job talks through them."""
    down: dict[str, list[tuple[str, str]]] = {}
    up: set[str] = set()
    for host in world.answered:
        probe = world.probe(host)
        for port in probe.nics if probe is not None else ():
            if port.kind is NicKind.ETH:
                continue
            if port.works:
                up.add(port.name)
            elif port.works is False:
                down.setdefault(port.name, []).append((host, port.state or ""))
    odd = [(name, hosts[0]) for name, hosts in down.items() if len(hosts) == 1 and name in up]
    return tuple(
        Evidence(
            family="telemetry",
            host=host,
            source=f"/sys/class/infiniband on {host}",
            text=f"{name} {state}",
            says="this port is down, on other nodes of the job it is up",
        )
        for name, (host, state) in odd[:2]
    )
