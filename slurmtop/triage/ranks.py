"""Which processes of a job are its ranks. Pure.

A rank is the one process that a person means by it: what torchrun, srun or mpirun started in the
end, behind shells and containers. Never the agent of torchrun, never srun or slurmstepd, and never
a worker of a data loader or another helper that has merely inherited its rank's environment.

Where two processes may be meant, both are told with their rank unknown: nobody guesses. A task of
srun that starts eight workers itself (multiprocessing, vLLM, Ray) bears one number for all of
them: it is the rank of none.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from slurmtop.model.look import HostLook
from slurmtop.model.process import NodeProcess, NodeProcesses, RankProcess, Rung
from slurmtop.triage.identity import Identity, Source, trusted
from slurmtop.triage.process_tree import DEAD, Tree
from slurmtop.triage.programs import (
    Part,
    is_engine_worker,
    may_be_work,
    part_of,
    program_of,
)
from slurmtop.triage.rank_work import by_argv, chosen, resolved, work_below

#: So many layers of an engine are looked through, from its first process to its workers.
_LAYERS = 4


def rank_processes(looks: Sequence[NodeProcesses], job: str) -> tuple[RankProcess, ...]:
    """The ranks of ``job`` (its raw number) in ``looks``, by step, rank and host.

    A look that failed adds nothing: who asks must say which nodes were not seen.
    """
    mine = {
        process.key: process
        for look in looks
        for process in look.processes
        if process.job == job and process.state not in DEAD
    }
    by_host: dict[str, dict[int, NodeProcess]] = {}
    for one in mine.values():
        by_host.setdefault(one.host, {})[one.pid] = one
    named_on: dict[str, dict[int, Identity]] = {}
    for (host, pid), who in trusted(mine.values()).items():
        named_on.setdefault(host, {})[pid] = who
    trees = [Tree(processes, named_on.get(host, {})) for host, processes in by_host.items()]
    named = {id(tree): _named(tree) for tree in trees}
    nobody = not any(named.values())
    found: list[RankProcess] = []
    for tree in trees:
        here = named[id(tree)]
        # Without any name in the whole job the plain programs are meant; else only where the
        # names could not be read.
        if nobody or (not named[id(tree)] and _unreadable(tree)):
            here = [*here, *_without_names(tree)]
        found += _with_doubts(tree, here)
    working = {one.process.step for one in found if part_of(one.process) is Part.WORK}
    if working:
        # A shell between two commands stays a rank of its step; a step of shells is no training.
        found = [one for one in found if one.process.step in working and not _is_tool(one)]
    return tuple(sorted(found, key=_order))


def ranks_by_gpu(
    look: HostLook, ranks: Iterable[RankProcess]
) -> Mapping[str, tuple[RankProcess, ...]]:
    """The ranks on each GPU of one host, by the GPU's UUID and in the order of ``ranks``.

    A process on a GPU that a rank started counts for that rank, unless several of them are on
    GPUs of their own: then each may be a rank itself, and is told as one whose number is not
    known. A GPU whose processes belong to no rank is not there.
    """
    gpus = look.gpus
    if gpus is None or gpus.processes is None:
        return {}
    uuids: dict[int | None, str | None] = {one.index: one.uuid for one in gpus.samples}
    uuids.pop(None, None)
    by_pid = {one.process.pid: one for one in ranks if one.process.host == look.host}
    known = {p.pid: p for p in look.processes.processes} if look.processes else {}
    # By rank: the GPUs of each process that is the rank or below it.
    users: dict[int, dict[int, set[str]]] = {pid: {} for pid in by_pid}
    for process in gpus.processes:
        uuid = process.gpu_uuid or uuids.get(process.gpu_index)
        at, seen = process.pid, set[int]()
        while at not in by_pid and at in known and at not in seen:
            seen.add(at)
            at = known[at].ppid
        if uuid is not None and at in by_pid:
            users[at].setdefault(process.pid, set()).add(uuid)
    out: dict[str, list[RankProcess]] = {}
    for top, below in users.items():
        doubtful = _ranks_themselves(by_pid[top], below)
        for pid, on in sorted(below.items()):
            rank = by_pid[top]
            if pid in doubtful:
                rank = RankProcess(process=rank.process if pid == top else known[pid])
            for uuid in on:
                if rank not in out.setdefault(uuid, []):
                    out[uuid].append(rank)
    return {uuid: tuple(those) for uuid, those in out.items()}


def _ranks_themselves(rank: RankProcess, users: Mapping[int, set[str]]) -> set[int]:
    """Those of ``users`` (a rank and what it started, by pid, with the GPUs of each) that may be
    ranks of their own, so that the number of ``rank`` tells nothing of their GPUs."""
    own = users.get(rank.process.pid, set())
    beside = {pid: on - own for pid, on in users.items() if on - own}
    if rank.perhaps:
        return set(users) - {rank.process.pid}
    if not own:
        several = len(beside) > 1 and len(set().union(*beside.values())) > 1
        return set(beside) if several else set()
    apart = {pid for pid in beside if not users[pid] & own}
    if len(beside) > 1 and len(set().union(*beside.values())) > 1:
        apart = set(beside)
    if not apart:
        return set()
    # What torchrun started is a rank, whatever it has started itself.
    by_agent = rank.process.variable("TORCHELASTIC_RUN_ID") is not None
    return apart if by_agent else apart | {rank.process.pid}


def _with_doubts(tree: Tree, found: Sequence[RankProcess]) -> list[RankProcess]:
    """``found``, those without a number that may only have started the ranks."""
    ranks = {one.process.pid for one in found}
    out = []
    for one in found:
        who = tree.identities.get(one.process.pid)
        by_agent = one.process.variable("TORCHELASTIC_RUN_ID") is not None
        started = by_agent and who is not None and who.source is Source.TORCH
        perhaps = [] if started else _perhaps_ranks(tree, one.process, ranks)
        out.append(RankProcess(process=one.process, perhaps=tuple(perhaps)) if perhaps else one)
    return out


def _perhaps_ranks(
    tree: Tree, process: NodeProcess, ranks: set[int], layers: int = _LAYERS
) -> list[NodeProcess]:
    """What ``process`` has started and what may be the work in its place: workers of an engine,
    or several that have as many threads as it has (a data loader's have few)."""
    below = tree.below(process)
    workers = [one for one in below if is_engine_worker(one) and one.pid not in ranks]
    if workers or process.threads is None or not layers:
        return sorted(workers, key=lambda one: one.pid)
    alike: list[NodeProcess] = []
    todo, seen = list(tree.children.get(process.pid, ())), {process.pid, *ranks}
    while todo:
        one = todo.pop()
        if one.pid in seen:
            continue
        seen.add(one.pid)
        if may_be_work(one) and (one.threads or 0) >= process.threads:
            alike.append(one)
        else:
            todo += tree.children.get(one.pid, ())
    found: list[NodeProcess] = []
    for one in alike:
        # An engine in between may have started them: EngineCore of vLLM.
        found += _perhaps_ranks(tree, one, ranks, layers - 1) or [one]
    return sorted(found, key=lambda one: one.pid) if len(found) > 1 else []


def _named(tree: Tree) -> list[RankProcess]:
    """The ranks of one host that their environment names."""
    groups: dict[Identity, list[NodeProcess]] = {}
    for pid, who in tree.identities.items():
        groups.setdefault(who, []).append(tree.processes[pid])
    found: list[RankProcess] = []
    for who, members in _newest_attempts(groups).items():
        found += _told(tree, _work_of(tree, who, _tops(tree, who, members)), who)
    elders = _elders(tree, found)
    return _without_helpers(tree, [*found, *elders], {one.process.pid for one in elders})


def _newest_attempts(
    groups: Mapping[Identity, list[NodeProcess]],
) -> dict[Identity, list[NodeProcess]]:
    """Without what is left of an attempt where the same rank runs in a newer one."""
    newest: dict[Identity, int] = {}
    for who in groups:
        if who.attempt is not None:
            same = replace(who, attempt=None)
            newest[same] = max(newest.get(same, 0), who.attempt)
    return {
        who: members
        for who, members in groups.items()
        if who.attempt is None or who.attempt == newest[replace(who, attempt=None)]
    }


def _tops(tree: Tree, who: Identity, members: Sequence[NodeProcess]) -> list[NodeProcess]:
    """The members that no other one started: one, unless some have lost their parent.

    What a rank has started may live on without it, with its environment and another parent: a
    data loader, a program, the shell of either.
    """
    pids = {one.pid for one in members}
    tops = [one for one in members if not any(above.pid in pids for above in tree.above(one))]
    tops = [one for one in tops if tree.parts[one.pid] is not Part.HELPER]
    by_agent = any(one.variable("TORCHELASTIC_RUN_ID") is not None for one in tops)
    if who.source is Source.TORCH and by_agent:
        if tree.has_agent(who.step):
            tops = [one for one in tops if any(map(tree.is_torch_agent, tree.above(one)))]
    elif tree.knows_tasks:
        tops = [one for one in tops if tree.below_task(one)]
    return sorted(tops, key=lambda one: (one.start_ticks, one.pid))


def _work_of(tree: Tree, who: Identity, tops: Sequence[NodeProcess]) -> list[NodeProcess]:
    """The work at or below ``tops``, which bear one name; several where it cannot be told.

    Age does not tell: what an earlier attempt left behind is older than the rank, and what the
    rank itself let go is younger. So tools come last, then those whose parent has gone.
    """
    works = {top.pid: work for top in tops if (work := resolved(tree, top, who))}
    left = [one for one in tops if one.pid in works]
    left = [
        one for one in left if any(tree.parts[work.pid] is Part.WORK for work in works[one.pid])
    ] or left
    left = [one for one in left if not _was_adopted(tree, one, left)] or left
    return chosen([work for one in left for work in works[one.pid]])


def _was_adopted(tree: Tree, one: NodeProcess, beside: Iterable[NodeProcess]) -> bool:
    """Has it lost its parent? Then it is a child of the node's first process, or of one far above
    (slurmstepd, a container's first), from which the launcher of the others descends as well."""
    return one.ppid == 1 or any(
        one.ppid == above.pid for other in beside for above in tree.above(other)[1:]
    )


def _elders(tree: Tree, found: Sequence[RankProcess]) -> list[RankProcess]:
    """Programs that are their node's first rank and have started their sisters (Lightning)."""
    sisters: dict[int, list[RankProcess]] = {}
    for one in found:
        who = tree.identities.get(one.process.pid)
        if who is not None and who.source is Source.LOCAL:
            sisters.setdefault(one.process.ppid, []).append(one)
    out = []
    for pid, those in sisters.items():
        elder = tree.processes.get(pid)
        same = elder is not None and all(program_of(o.process) == program_of(elder) for o in those)
        if elder is not None and same and all(one.local_rank != 0 for one in those):
            first = those[0]
            # The sisters' numbers are true of a single node only, and so is this one.
            rank = None if first.rank is None else 0
            out.append(replace(first, process=elder, rank=rank, local_rank=0))
    return out


def _without_helpers(
    tree: Tree, found: Sequence[RankProcess], elders: set[int]
) -> list[RankProcess]:
    """What a rank has started is none, whatever its environment says."""
    ranks = {one.process.pid for one in found} - elders
    out: dict[int, RankProcess] = {}
    for one in found:
        if not any(above.pid in ranks for above in tree.above(one.process)):
            # Of an elder its own word comes last and counts.
            out[one.process.pid] = one
    return list(out.values())


def _without_names(tree: Tree) -> list[RankProcess]:
    """The work on a host whose environments say nothing: by command lines, or unknown."""
    tops = [
        one
        for one in tree.processes.values()
        if one.ppid not in tree.processes and one.step != "extern"
    ]
    out: list[RankProcess] = []
    for top in tops:
        for one in work_below(tree, top):
            rank, local = by_argv(tree, one)
            told = rank is not None or local is not None
            rung = Rung.ARGV if told else Rung.UNKNOWN
            out.append(RankProcess(process=one, rank=rank, local_rank=local, rung=rung))
    return out


def _unreadable(tree: Tree) -> bool:
    """Are there programs at work whose environment was not readable?"""
    return any(
        one.env is None and tree.parts[one.pid] is Part.WORK for one in tree.processes.values()
    )


def _told(tree: Tree, found: Sequence[NodeProcess], who: Identity) -> list[RankProcess]:
    if len(found) != 1:
        return [RankProcess(process=one) for one in found]
    # What the shell above it did not know yet it may know itself.
    own = tree.identities.get(found[0].pid, who)
    return [
        RankProcess(
            process=found[0],
            rank=who.rank,
            local_rank=who.local_rank if own.local_rank is None else own.local_rank,
            world_size=who.world_size if own.world_size is None else own.world_size,
            attempt=who.attempt,
            rung=Rung.ENVIRONMENT,
        )
    ]


def _is_tool(one: RankProcess) -> bool:
    return part_of(one.process) is Part.TOOL


def _order(one: RankProcess) -> tuple[int, str, bool, int, str, int]:
    step = one.process.step or ""
    number = int(step) if step.isdigit() else -1
    return (number, step, one.rank is None, one.rank or 0, one.process.host, one.process.pid)
