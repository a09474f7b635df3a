"""Who a process says it is, by its environment: its rank and in which world. Pure.

An environment is inherited, so that a rank's name alone makes no rank: ``ranks.py`` looks at the
trees of processes as well.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

from slurmtop.model.process import NodeProcess

_LONGEST_NUMBER = 7
_MPI = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"),
    ("PALS_RANKID", "PALS_SIZE", "PALS_LOCAL_RANKID"),
    ("PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK"),
    ("PMI_RANK", "PMI_SIZE", "PMI_LOCAL_RANK"),
)


class Source(IntEnum):
    """Which variables told it; what is set later in the course of a launch is stronger."""

    SLURM = 1
    MPI = 2
    LOCAL = 3
    """``LOCAL_RANK`` without ``RANK``: a program that starts its own sisters on one node."""
    TORCH = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Processes with equal identities on one host are one rank, its helpers, or its wrappers.

    ``world`` is all that tells one world from another, as far as it can be read. Neither the local
    rank nor the size of the world makes another one of it: a wrapper may not know them yet.
    """

    source: Source
    step: str | None
    world: tuple[str, ...] = ()
    rank: int | None = None
    local_rank: int | None = field(default=None, compare=False)
    world_size: int | None = field(default=None, compare=False)
    attempt: int | None = None


def identity_of(process: NodeProcess) -> Identity | None:
    """None where the environment names no rank, or cannot be read."""
    if process.env is None:
        return None
    env = dict(process.env)
    step = process.step
    rank, local = _number(env, "RANK"), _number(env, "LOCAL_RANK")
    size = _number(env, "WORLD_SIZE")
    where = (env.get("MASTER_ADDR", ""), env.get("MASTER_PORT", ""))
    run = env.get("TORCHELASTIC_RUN_ID", "")
    attempt = _number(env, "TORCHELASTIC_RESTART_COUNT")
    if rank is not None and (size is not None or local is not None or run or any(where)):
        # A port changes from attempt to attempt; a run has a name of its own.
        world = (run,) if run and run != "none" else where
        return Identity(
            source=Source.TORCH, step=step, world=world, rank=rank, local_rank=local,
            world_size=size, attempt=attempt,
        )  # fmt: skip
    if local is not None:
        return Identity(
            source=Source.LOCAL, step=step, world=(*where, str(local)),
            rank=local if _is_first_node(env, size) else None, local_rank=local, world_size=size,
        )  # fmt: skip
    return mpi_identity(process, env) or slurm_identity(process, env)


def _is_first_node(env: dict[str, str], size: int | None) -> bool:
    """Is the local rank the rank? Only a word for it counts: of a second node that tells nothing
    the numbers begin at 0 as well."""
    node = _number(env, "NODE_RANK")
    if node is not None:
        return node == 0
    if size is not None and size == _number(env, "LOCAL_WORLD_SIZE"):
        return True
    names = ("NNODES", "SLURM_STEP_NUM_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES")
    told = next((number for name in names if (number := _number(env, name)) is not None), None)
    return told == 1


def mpi_identity(process: NodeProcess, env: dict[str, str]) -> Identity | None:
    """By what an MPI or a PMI server has set."""
    for rank_name, size_name, local_name in _MPI:
        rank = _number(env, rank_name)
        if rank is not None:
            return Identity(
                source=Source.MPI, step=process.step, world=(env.get("PMIX_NAMESPACE", ""),),
                rank=rank, local_rank=_local(env, local_name), world_size=_size(env, size_name),
            )  # fmt: skip
    return None


def slurm_identity(process: NodeProcess, env: dict[str, str]) -> Identity | None:
    """By the task of srun; a batch shell is task 0 as well and no rank."""
    rank = _number(env, "SLURM_PROCID")
    if rank is None or process.step is None or not process.step.split("+")[0].isdigit():
        return None
    return Identity(
        source=Source.SLURM, step=process.step, rank=rank, local_rank=_local(env, "SLURM_LOCALID"),
        world_size=_size(env, "SLURM_STEP_NUM_TASKS"),
    )  # fmt: skip


def trusted(processes: Iterable[NodeProcess]) -> dict[tuple[str, int], Identity]:
    """The identity of each process (by host and pid) that has one.

    A ``RANK`` that was set once for all (``export RANK=0`` above an srun) is none: in its step all
    tasks bear the same one. Then the task of srun or the number of an MPI counts. A local rank
    that two hosts of a step have is not the rank of either.
    """
    found: dict[tuple[str, int], tuple[NodeProcess, Identity]] = {}
    tasks: dict[str, set[str]] = {}
    ranks: dict[str, set[int | None]] = {}
    for process in processes:
        who = identity_of(process)
        if who is None:
            continue
        found[process.host, process.pid] = (process, who)
        if who.source is Source.TORCH and process.step is not None:
            env = dict(process.env or ())
            below = mpi_identity(process, env) or slurm_identity(process, env)
            if below is not None:
                tasks.setdefault(process.step, set()).add(f"{below.source} {below.rank}")
                ranks.setdefault(process.step, set()).add(who.rank)
    twice = _on_two_hosts(found)
    inherited = {step for step, those in tasks.items() if len(those) > 1 and len(ranks[step]) == 1}
    out: dict[tuple[str, int], Identity] = {}
    for key, (process, who) in found.items():
        if who.source is Source.TORCH and process.step in inherited:
            env = dict(process.env or ())
            below = mpi_identity(process, env) or slurm_identity(process, env)
            if below is None:
                continue
            who = replace(below, step=process.step)
        if who.source is Source.LOCAL and process.step in twice:
            who = replace(who, rank=None)
        out[key] = who
    return out


def _on_two_hosts(
    found: Mapping[tuple[str, int], tuple[NodeProcess, Identity]],
) -> frozenset[str | None]:
    """The steps in which processes of several hosts take their local rank for the rank."""
    hosts: dict[str | None, set[str]] = {}
    for process, who in found.values():
        if who.source is Source.LOCAL and who.rank is not None:
            hosts.setdefault(process.step, set()).add(process.host)
    return frozenset(step for step, those in hosts.items() if len(those) > 1)


def _local(env: dict[str, str], name: str) -> int | None:
    value = _number(env, name)
    return _number(env, "SLURM_LOCALID") if value is None else value


def _size(env: dict[str, str], name: str) -> int | None:
    for one in (name, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"):
        value = _number(env, one)
        if value is not None:
            return value
    return None


def _number(env: dict[str, str], name: str) -> int | None:
    value = env.get(name, "")
    plain = value.isascii() and value.isdigit() and len(value) <= _LONGEST_NUMBER
    return int(value) if plain else None
