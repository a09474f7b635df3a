"""The rank processes of a job as those who get a signal: whom it reaches, and whom not. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from slurmtop.control.actions import RankPid
from slurmtop.control.fates import fate_of, process_rows
from slurmtop.model.job import Job
from slurmtop.model.process import NodeProcesses, RankProcess, Rung
from slurmtop.model.script import Reaction
from slurmtop.model.text import visible
from slurmtop.model.units import plural
from slurmtop.parse.slurm.hostlist import compress_hosts
from slurmtop.triage.programs import program_of
from slurmtop.triage.ranks import rank_processes
from slurmtop.triage.subject import clause

_REASONS = 3


@dataclass(frozen=True, slots=True)
class RanksFound:
    """``pids`` are the processes that would get it, ``reactions`` what it does to them.

    ``short`` are sentences about ranks that it would not reach, or may not: nothing is left out
    without one. ``notes`` are sentences beside that.
    """

    pids: tuple[RankPid, ...] = ()
    reactions: tuple[Reaction, ...] = ()
    short: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def ranks_found(job: Job, looks: Sequence[NodeProcesses], signal: str) -> RanksFound:
    """The ranks of ``job`` in ``looks``, one look for each of its nodes."""
    number = raw_number(job)
    ranks = rank_processes(looks, number)
    pids = tuple(
        RankPid(
            host=one.process.host,
            pid=one.process.pid,
            start_ticks=one.process.start_ticks,
            job=job.key,
            raw_id=number,
            rank=one.rank,
        )
        for one in ranks
    )
    rows = [(_kind_of(one), one.process, *fate_of(one.process, signal)) for one in ranks]
    numbers = {one.process.key: one.rank for one in ranks}
    return RanksFound(
        pids,
        process_rows(rows, numbers),
        (
            *not_looked_at(looks, "ranks on {hosts} not reached: {why}"),
            *_missing(ranks, looks),
            *_started_by_them(ranks),
        ),
        tuple(_doubts(ranks)),
    )


def not_looked_at(looks: Iterable[NodeProcesses], words: str) -> tuple[str, ...]:
    """A sentence for each reason why nodes could not be looked at."""
    reasons: dict[str, list[str]] = {}
    for look in looks:
        if look.failure is not None:
            # The same trouble is told once for all nodes that have it.
            why = visible(clause(look.failure.sentence)).replace(look.host, "the node")
            reasons.setdefault(why, []).append(look.host)
    told = [
        words.format(hosts=visible(compress_hosts(hosts)), why=why)
        for why, hosts in list(reasons.items())[:_REASONS]
    ]
    rest = [host for hosts in list(reasons.values())[_REASONS:] for host in hosts]
    if rest:
        hosts = visible(compress_hosts(rest))
        told.append(words.format(hosts=hosts, why="for other reasons"))
    return tuple(told)


def raw_number(job: Job) -> str:
    """The plain number by which the nodes know the job: of an array task its own."""
    return job.raw_id or job.id.base


def _kind_of(one: RankProcess) -> str:
    step = one.process.step or ""
    # Two worlds of one job have the same ranks.
    return "rank" if step in ("", "0", "batch") else f"step {step}: rank"


def _missing(ranks: Sequence[RankProcess], looks: Sequence[NodeProcesses]) -> Iterable[str]:
    """``6 of 8 ranks are reached``, where the size of a world says so."""
    worlds: dict[tuple[str | None, int], set[int]] = {}
    for one in ranks:
        if one.world_size is not None and one.rank is not None:
            worlds.setdefault((one.process.step, one.world_size), set()).add(one.rank)
    several = len(worlds) > 1
    for (step, size), found in worlds.items():
        if len(found) < size:
            where = f" of step {step}" if several else ""
            yield f"only {len(found)} of {plural(size, 'rank')}{where} are reached"
    cut = [look.host for look in looks if look.failure is None and not look.complete]
    if cut:
        hosts = visible(compress_hosts(cut))
        yield f"the list of processes was cut on {hosts}: ranks may be missing"


def _started_by_them(ranks: Sequence[RankProcess]) -> Iterable[str]:
    """Where what stands for a rank has started several that may be ranks: these do not get it."""
    programs: dict[str, list[RankProcess]] = {}
    for one in ranks:
        if one.perhaps:
            name = visible(program_of(one.process) or one.process.name)
            programs.setdefault(name, []).append(one)
    for name, those in programs.items():
        where = visible(compress_hosts(list(dict.fromkeys(one.process.host for one in those))))
        count = plural(sum(len(one.perhaps) for one in those), "process", "processes")
        yield (
            f"{count} that {name} started on {where} may be the ranks:"
            f" {name} alone gets it, and must pass it on"
        )


def _doubts(ranks: Sequence[RankProcess]) -> Iterable[str]:
    """Where several processes may be one rank, all of them get it, and that is said."""
    unknown: dict[str, list[RankProcess]] = {}
    for one in ranks:
        if one.rung is Rung.UNKNOWN and not one.perhaps:
            unknown.setdefault(one.process.host, []).append(one)
    several = [host for host, those in unknown.items() if len(those) > 1]
    if several:
        where = visible(compress_hosts(several))
        yield f"not known which processes on {where} are the ranks: each that may be one gets it"
