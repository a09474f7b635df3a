"""Whether the ranks of a world belong together, or are tasks that never meet. Pure.

The number of a task says nothing of that: srun numbers the tasks of a sweep, or the parts of a long
list, as it does the ranks of a training, and so does the PMI that it may bring along.
"""

from slurmtop.model.process import Rung
from slurmtop.triage.identity import Source, identity_of, slurm_identity
from slurmtop.triage.live.frames import among_several
from slurmtop.triage.live.view import RankView, World

#: How torch calls the thread of the process that keeps the meeting point of a group.
_KEEPER = "pt_tcpstore"


def apart(world: World) -> bool:
    """Are its ranks tasks of one srun, of which nothing shows that any ever waits for another?

    What shows it: names that only a launcher of one training sets, a meeting point and a size that
    are told to all, the stack of one that waits for others, or threads of several that carry data.
    Who is in no group misses nobody, and nobody waits for it.
    """
    if world.count < 2 or all(map(_named, world.ranks)) or _started_by_one(world):
        return False
    if all(_told_to_meet(world, one) for one in world.ranks):
        return False
    return not any(map(_meets, world.ranks)) and not _share_one(world)


def _told_to_meet(world: World, one: RankView) -> bool:
    """Does its environment hold a meeting point, and as its size that of all of them?"""
    process = one.view.process
    size = process.variable("WORLD_SIZE")
    return bool(process.variable("MASTER_ADDR")) and size == str(world.count)


def _share_one(world: World) -> bool:
    """Have several threads that carry data, and does one alone keep the point at which they met?
    Each task of a sweep may have a group of its own, and keeps its own then."""
    carry = [one for one in world.ranks if one.view.in_group]
    return len(carry) > 1 and sum(map(_keeps, carry)) == 1


def _keeps(one: RankView) -> bool:
    activity = one.view.looks[-1].activity
    threads = activity.threads if activity is not None else ()
    return any(thread.name.startswith(_KEEPER) for thread in threads)


def _started_by_one(world: World) -> bool:
    """Has one of them started another? Lightning's first rank does, and bears no names itself."""
    pids = {(one.host, one.view.pid) for one in world.ranks}
    return any((one.host, one.view.process.ppid) in pids for one in world.ranks)


def _named(one: RankView) -> bool:
    """Does its environment name it as one of a group, or was it found by what it does?"""
    if one.told.rung is not Rung.ENVIRONMENT or one.view.process.env is None:
        return True
    who = identity_of(one.view.process)
    if who is None or who.rank != one.rank:
        # One number that was set once for all tasks is none.
        return False
    if who.source is not Source.MPI:
        return who.source is not Source.SLURM
    # An mpirun starts more of them than there are tasks of its step.
    task = slurm_identity(one.view.process, dict(one.view.process.env))
    return task is None or task.world_size != who.world_size or _by_mpirun(one)


def _by_mpirun(one: RankView) -> bool:
    names = ("OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PALS_RANKID")
    return any(one.view.process.variable(name) is not None for name in names)


def _meets(one: RankView) -> bool:
    """Was it seen where it waits for others, or in what only runs among several?"""
    doings = [look.doing for look in one.view.looks]
    return any(
        doing.on_others or any(among_several(frame) for frame in doing.frames) for doing in doings
    )
