"""Ranks without a process: dead, not started, or done while the others are still closing down."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from slurmtop.model.process import NodeProcess
from slurmtop.model.text import visible
from slurmtop.model.units import ago_text, plural
from slurmtop.model.verdict import Collective, Confidence, Culprit, Evidence, State
from slurmtop.triage.live.finding import (
    LiveFinding,
    Weight,
    culprit,
    numbers_text,
    process_evidence,
    proofs,
    ranks_of,
    waiting_proof,
)
from slurmtop.triage.live.frames import Act, Phase, is_own, phase_of
from slurmtop.triage.live.patience import (
    LATE_S,
    ends_by_itself,
    late,
    long_silence,
    transport_works,
)
from slurmtop.triage.live.roles import Parts, Role, may_spin, parts_of, role_of
from slurmtop.triage.live.rules.away import how
from slurmtop.triage.live.rules.kernel import killed_for_memory
from slurmtop.triage.live.together import apart
from slurmtop.triage.live.view import ProcessView, RankView, World
from slurmtop.triage.programs import Part, part_of

_MOST = 64


def find(world: World) -> Iterable[LiveFinding]:
    if not world.two or world.live.log.new_steps:
        return
    if not world.ranks:
        yield from _no_rank_yet(world)
        return
    unseen = without_process(world)
    if not unseen:
        yield from _closing(world, parts_of(world))
        return
    parts = parts_of(world)
    left = _left_over(world, unseen)
    if left and not world.log_moves and all(_closes_down(world, one) for one in left):
        yield _lingering(world, unseen, left)
    elif left:
        yield _still_there(world, unseen, left)
    elif not parts.works and not parts.open and parts.waiting:
        yield from _gone(world, unseen, parts)
    elif not parts.works and not parts.away and all(may_spin(world, one) for one in parts.open):
        # The kernel has told the end of one; the others use CPUs, as who waits for a GPU does.
        killed = {host for rank in unseen if (host := _host_of(world, rank))}
        if len(unseen) == 1 and any(_oom_kills(world, host) for host in killed):
            spin = replace(parts, seems=(*parts.seems, *parts.open), open=())
            yield from _gone(world, unseen, spin)


def without_process(world: World) -> tuple[int, ...]:
    """The numbers of the ranks without a process; empty where nobody can say, and of tasks that
    wait for nobody: these end one by one."""
    return () if apart(world) else unseen_of(world)


def unseen_of(world: World) -> tuple[int, ...]:
    """The numbers of the ranks or tasks without a process; empty where nobody can say."""
    numbers = [one.rank for one in world.ranks]
    size = world.size
    if size is None or None in numbers or not world.seen_whole or size > 1 << 20:
        return ()
    if any(not _complete(world, host) for host in world.live.hosts):
        return ()
    there = set(numbers)
    if world.partly:
        # What was never seen may run elsewhere.
        seen = {one.rank for one in world.first_ranks if one.world_size == size}
        return tuple(sorted(rank for rank in seen - there if rank is not None and rank < size))
    return tuple(rank for rank in range(size) if rank not in there)


def _complete(world: World, host: str) -> bool:
    probe = world.probe(host)
    look = probe.processes if probe is not None else None
    if look is None or not look.complete or look.hidden:
        return False
    # Slurm's own daemon of the step belongs to root, and is no rank.
    return all(
        one.process.env is not None
        for one in world.others.get(host, ())
        if _ours(one) and part_of(one.process) is Part.WORK
    )


def _ours(one: ProcessView) -> bool:
    return one.process.step not in ("extern", None)


# After the work


def _left_over(world: World, unseen: Sequence[int]) -> list[RankView]:
    """The few that are left where most have ended well, which is so where each node without a rank
    of its own still has its torchrun: of ranks that fail it takes all others along. Without one, a
    long silence of those that are at their end tells the same."""
    bare = [host for host in world.live.hosts if all(one.host != host for one in world.ranks)]
    agents = set(world.agents)
    if agents and not agents.issuperset(bare or world.live.hosts):
        return []
    if not agents and not (late(world) and all(_at_its_end(world, one) for one in world.ranks)):
        return []
    left = [one for one in world.ranks if role_of(world, one) in (Role.AWAY, Role.SEEMS)]
    stays = len(left) == len(world.ranks) and not any(one.doing.on_others for one in left)
    return left if stays and len(left) <= min(len(unseen), _MOST) else []


def _lingering(world: World, unseen: Sequence[int], left: list[RankView]) -> LiveFinding:
    first = left[0]
    who = first.name if len(left) == 1 else ranks_of(left)
    verb = "does" if len(left) == 1 else "do"
    told = "has" if len(unseen) == 1 else "have"
    apart_first = sorted(world.agents, key=lambda host: host == first.host)
    agents = [_agent(world, host, world.agents[host][0]) for host in apart_first[:1]]
    return LiveFinding(
        cls="teardown-hang",
        state=State.HUNG,
        weight=Weight.AWAY,
        summary=f"{numbers_text(unseen)} {told} ended, and {who} {verb} not: {how(first)}",
        culprits=tuple(culprit(one, f"has not ended: {how(one)}") for one in left),
        shown=(*proofs(first.view, "it is left over"), *agents),
    )


def _closes_down(world: World, one: RankView) -> bool:
    """Is there a sign that it has done its work? Ranks that share out work, and wait for nobody,
    end when each has done its own."""
    if one.doing.phase is Phase.TEARDOWN:
        return True
    return world.finished and (late(world) or not ends_by_itself(one))


def _still_there(world: World, unseen: Sequence[int], left: list[RankView]) -> LiveFinding:
    first = left[0]
    told = "has" if len(unseen) == 1 else "have"
    return LiveFinding(
        state=State.UNKNOWN,
        weight=Weight.AWAY,
        summary=f"{numbers_text(unseen)} {told} ended, and {first.name} {how(first)}: whether it"
        " has more to do than they had, or does not come to its end, cannot be told",
        shown=proofs(first.view, "what it was seen to do"),
        confidence=Confidence.LOW,
    )


def _agent(world: World, host: str, agent: NodeProcess) -> Evidence:
    return process_evidence(
        _view_of(world, host, agent), "it waits for the end of all ranks, and most have ended"
    )


def _closing(world: World, parts: Parts) -> Iterable[LiveFinding]:
    """All processes are there, and all are closing down: one of them does not get through."""
    if parts.works or len(parts.open) > 0 or not world.ranks or parts.away:
        return
    if not all(_at_its_end(world, one) for one in world.ranks):
        return
    if not long_silence(world):
        return
    # Data on its way takes its time.
    if any(transport_works(one.view) for one in world.ranks) and not late(world):
        return
    yield LiveFinding(
        cls="teardown-hang",
        state=State.HUNG,
        weight=Weight.SITES,
        summary=f"all {plural(len(world.ranks), 'rank')} are stuck in closing down",
        shown=waiting_proof(world.ranks),
    )


def _at_its_end(world: World, one: RankView) -> bool:
    """Does it close down for certain: after the last step by a log, or in a call of a library that
    is for that alone? A function of the program may clean up anything, and a thread that no Python
    code has started says nothing of the program."""
    if one.doing.phase is not Phase.TEARDOWN:
        return False
    if world.finished:
        return True
    ends = any(phase_of(one) is Phase.TEARDOWN and not is_own(one) for one in one.doing.frames)
    return ends and not one.doing.helper


# In the midst of it


def _gone(world: World, unseen: Sequence[int], parts: Parts) -> Iterable[LiveFinding]:
    starting = all(one.doing.act is Act.STORE for one in parts.waits) and bool(parts.waits)
    named = 2 * len(unseen) < world.count and 2 * len(parts.waiting) > world.count
    hosts = {rank: _host_of(world, rank) for rank in unseen[:_MOST]}
    killed = [host for host in set(hosts.values()) if host and _oom_kills(world, host)]
    waits = f"{ranks_of(parts.waiting)} {'waits' if len(parts.waiting) == 1 else 'wait'}"
    has = "has" if len(unseen) == 1 else "have"
    who = numbers_text(unseen)
    where = {host for host in hosts.values() if host}
    place = f" on {visible(next(iter(where)))}" if len(where) == 1 else ""
    cls = "host-oom" if killed and len(unseen) == 1 else "missing-rank"
    seen = {one.rank for one in world.first_ranks}
    more = " any more" if seen.issuperset(unseen) else ""
    if not more and not killed and (starting or not world.stepped):
        age = age_s(world, [one.view.process for one in parts.waiting])
        if _may_come(world, age) if starting else age is not None and age < LATE_S:
            told = f"{who}{place} {has} not come yet; {waits}{_until(age)}"
            yield _unsure(told, parts.waiting)
            return
    if world.log_moves and not killed:
        told = f"{who}{place} {has} no process{more}; {waits}, and the log goes on"
        yield _unsure(told, parts.waiting)
        return
    reason = f"has no process{more}"
    summary = f"{who}{place} {has} no process{more}; {waits}"
    if starting:
        cls, reason = "rendezvous-timeout", "has not come to the meeting point"
        summary = f"{who}{place} {has} not come to the meeting point; {waits}"
    elif cls == "host-oom":
        reason += ", and the kernel killed one there for lack of memory"
        summary = f"{who}{place} is gone: memory ran out there; {waits}"
    culprits = tuple(Culprit(rank=rank, host=hosts[rank], reason=reason) for rank in unseen[:_MOST])
    yield LiveFinding(
        cls=cls,
        state=State.HUNG,
        weight=Weight.MISSING,
        summary=summary,
        culprits=culprits if named and len(unseen) <= _MOST else (),
        shown=(*_memory(world, killed), *waiting_proof(parts.waiting)),
        collective=Collective(
            op=next((one.doing.op for one in parts.waits if one.doing.op), None),
            expected_ranks=tuple(range(world.size or 0)) if (world.size or 0) <= _MOST else (),
            missing_ranks=tuple(unseen),
        ),
    )


def age_s(world: World, processes: Iterable[NodeProcess]) -> float | None:
    """Seconds since the youngest of ``processes`` was started; None where that is not known."""
    ages = [
        (probe.at - one.started_at).total_seconds()
        for one in processes
        if one.started_at is not None and (probe := world.probe(one.host)) is not None
    ]
    return min(ages, default=None)


def _may_come(world: World, age: float | None) -> bool:
    """May who was never seen still be on its way: a node that is slow to load the program, an image
    that is being pulled? ``age``: for how many seconds the others can have waited at most; they
    wait no longer than the log is quiet either."""
    quiet = world.live.log.quiet_s
    return min((one for one in (age, quiet) if one is not None), default=0.0) < LATE_S


def _unsure(summary: str, waiting: Sequence[RankView]) -> LiveFinding:
    return LiveFinding(
        state=State.UNKNOWN,
        weight=Weight.MISSING,
        summary=summary,
        shown=waiting_proof(waiting),
        confidence=Confidence.LOW,
    )


def _until(age: float | None) -> str:
    least = ago_text(LATE_S)
    if age is None or age >= LATE_S:
        return f": look again once the log is quiet for {least}"
    return f", started {ago_text(age)} ago: a start may take minutes, look again {least} after it"


def _host_of(world: World, rank: int) -> str | None:
    """Where the rank was: by the first look, or where all others leave one place free."""
    for one in world.first_ranks:
        if one.rank == rank:
            return one.process.host
    per_host: dict[str, list[int]] = {host: [] for host in world.live.hosts}
    for view in world.ranks:
        if view.rank is not None:
            per_host.setdefault(view.host, []).append(view.rank)
    each = max(len(those) for those in per_host.values())
    short = [host for host, those in per_host.items() if len(those) < each]
    return short[0] if len(short) == 1 else None


def _oom_kills(world: World, host: str) -> bool:
    probe = world.probe(host)
    counted = probe is not None and any((one.oom_kills or 0) > 0 for one in probe.memory)
    return counted or killed_for_memory(world, host)


def _memory(world: World, hosts: Sequence[str]) -> tuple[Evidence, ...]:
    out = []
    for host in hosts[:1]:
        probe = world.probe(host)
        for group in probe.memory if probe is not None else ():
            if group.oom_kills:
                out.append(
                    Evidence(
                        family="kernel",
                        host=host,
                        source=f"memory.events of {group.path} on {host}",
                        text=f"oom_kill {group.oom_kills}",
                        says="the kernel killed a process of the job for lack of memory",
                    )
                )
    return tuple(out[:1])


# Before it


def _no_rank_yet(world: World) -> Iterable[LiveFinding]:
    """torchrun waits for its like on nodes where there is none."""
    hosts = world.live.hosts
    without = [host for host in hosts if host not in world.agents]
    if not world.agents or not without or not world.seen_whole:
        return
    if not all(_complete(world, host) for host in hosts):
        return
    started = {one.process.host for one in world.first_ranks}
    if started - set(without) or len(world.agents) < 1:
        # Ranks ran at the first look: it is between two attempts, or about to end.
        return
    busy = [host for host in without if _works(world, host)]
    age = age_s(world, [one for those in world.agents.values() for one in those])
    early = _may_come(world, age)
    hung = not busy and not early
    named = 2 * len(without) < len(hosts) and hung
    words = ", ".join(visible(host) for host in without[:4])
    agents = len(world.agents)
    shown = [process_evidence(view, "all that runs there") for view in _alone(world, without[0])]
    host, those = next(iter(world.agents.items()))
    text = f"{plural(agents, 'node')} {'has' if agents == 1 else 'have'} a launcher that waits"
    summary = f"no launcher came up on {words}, and the others wait for it: no rank runs yet"
    if early:
        summary = f"no launcher on {words} yet, and the others wait for it{_until(age)}"
    yield LiveFinding(
        cls="rendezvous-timeout" if hung else None,
        state=State.HUNG if hung else State.UNKNOWN,
        weight=Weight.MISSING,
        summary=summary,
        culprits=tuple(
            Culprit(host=one, reason="no launcher and no rank runs there") for one in without
        )
        if named
        else (),
        shown=(*shown[:2], process_evidence(_view_of(world, host, those[0]), text)),
    )


def _view_of(world: World, host: str, process: NodeProcess) -> ProcessView:
    return next(one for one in world.others[host] if one.process.key == process.key)


def _alone(world: World, host: str) -> list[ProcessView]:
    return [one for one in world.others.get(host, ()) if _ours(one)]


def _works(world: World, host: str) -> bool:
    return any(
        one.change is not None and (one.change.works or one.change.io_grew)
        for one in world.others.get(host, ())
    )
