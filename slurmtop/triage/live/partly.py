"""Whether a world may be larger than what was looked at. Pure."""

from collections import Counter

from slurmtop.model.job import Job
from slurmtop.triage.live.view import RankView, World
from slurmtop.triage.programs import option_of


def is_partly(job: Job | None, world: World) -> bool:
    """May the world be larger than what was looked at: one part of a het job, more ranks than the
    nodes have room for, or a meeting point on a node that is none of the job's?"""
    if job is not None and (job.het_leader is not None or job.id.het_offset is not None):
        return True
    agents = [one for those in world.agents.values() for one in those]
    if any((option_of(one, "nnodes") or 0) > len(world.live.hosts) for one in agents):
        return True
    each = max(Counter(one.host for one in world.ranks).values(), default=0)
    local = max((one.told.local_rank or 0 for one in world.ranks), default=0)
    told = [option for one in world.ranks if (option := _per_node(one)) is not None]
    # Below torchrun most ranks may have ended, so that few are left to count.
    known = told or not agents
    room = max(each, local + 1, *told) * len(world.live.hosts)
    if known and world.size is not None and world.size > room and not _of_one_step(world):
        return True
    hosts = {host.partition(".")[0] for host in world.live.hosts}
    meets = {one.view.process.variable("MASTER_ADDR") for one in world.ranks}
    names = {name.partition(".")[0] for name in meets if name and _is_name(name)}
    return bool(names) and not names & hosts and not any(map(_with_first, world.ranks))


def _with_first(one: RankView) -> bool:
    """Does rank 0 belong to its node? Then the meeting point is there, by whatever name: a node may
    have one for each of its networks."""
    return one.rank is not None and one.rank == (one.told.local_rank or 0)


def _per_node(one: RankView) -> int | None:
    word = one.view.process.variable("LOCAL_WORLD_SIZE") or ""
    return int(word) if word.isascii() and word.isdigit() and len(word) < 6 else None


def _is_name(word: str) -> bool:
    return not word[0].isdigit() and ":" not in word and word != "localhost"


def _of_one_step(world: World) -> bool:
    """Has the step of its ranks as many tasks as there are ranks? Then all of them ran here."""
    tasks = {one.view.process.variable("SLURM_STEP_NUM_TASKS") for one in world.ranks}
    return tasks == {str(world.size)}
