"""The GPUs of running jobs, looked at once on all their nodes, with the ranks on them."""

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from slurmtop.cli.errors import CannotWork, UsageError
from slurmtop.cli.gpu_rows import HostGpus, JobGpus
from slurmtop.cli.gpu_service import make_exporters
from slurmtop.cli.wiring import Wiring
from slurmtop.collect.asking import slurm_id
from slurmtop.collect.nodes.dcgmi import DcgmMode
from slurmtop.collect.nodes.gpu_watch import look_once, with_told
from slurmtop.collect.nodes.processes import read_processes
from slurmtop.collect.poller import SourceFailed
from slurmtop.collect.rights import read_rights
from slurmtop.collect.squeue import QueueSource
from slurmtop.config import Config
from slurmtop.control.rank_signal import raw_number
from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job, Phase
from slurmtop.model.look import HostLook
from slurmtop.model.ports import Runner, RunnerError
from slurmtop.model.process import RankProcess
from slurmtop.model.snapshot import Trouble
from slurmtop.model.text import visible
from slurmtop.parse.slurm.hostlist import HostlistError, expand_hosts, hosts_in
from slurmtop.parse.slurm.ids import looks_like_job_id, parse_job_id, split_cluster
from slurmtop.triage.gpu_share import JobShare, share_of
from slurmtop.triage.job_gpus import gpus_of_job
from slurmtop.triage.ranks import rank_processes, ranks_by_gpu

#: What is looked at where nobody named a job.
MOST_JOBS = 8
#: Nodes asked at the same time, and how many at all in one run of a command.
_AT_ONCE = 16
MOST_HOSTS = 1_024
#: A name that starts with a dash would be an option to ssh.
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,252})", re.ASCII)
_ON_NODES = (Phase.RUNNING, Phase.SUSPENDED)


def on_nodes(job: Job) -> bool:
    """Does it hold nodes with GPUs now, or may it?"""
    tres = job.tres
    some = tres.gpus != 0 or bool(tres.slices_by_type or tres.shards or tres.mps)
    return job.state.phase in _ON_NODES and job.nodes is not None and some


async def named_jobs(
    wiring: Wiring, text: str, *, runner: Runner | None = None, command: str = "gpus"
) -> tuple[Job, ...]:
    """The records of the job that ``text`` names which hold nodes; asked of ``runner`` where one
    is given. ``command`` is what its owner may run in this user's place.

    :class:`CannotWork` where nobody knows it, where it holds no nodes, and where its nodes are
    not for this user to look at: then nothing of it is asked of any node.
    """
    id, _ = split_cluster(text)
    if not looks_like_job_id(id):
        raise UsageError(f"{text!r} is no job id; a job looks like 4711, 4711_3 or 4711+1")
    named = parse_job_id(id)
    source = QueueSource(
        runner or wiring.runner,
        wiring.clock,
        cluster=wiring.cluster,
        job_id=slurm_id(named),
        mark=wiring.mark,
        federation=True,
    )
    try:
        rows = (await source.fetch()).rows
    except SourceFailed as error:
        if error.failure.trouble is Trouble.UNKNOWN_JOB:
            raise CannotWork(_unknown(id)) from error
        raise CannotWork(f"job {id} cannot be read: {error.failure.sentence}") from error
    except RunnerError as error:
        raise CannotWork(f"job {id} cannot be read: {error}") from error
    if not rows:
        raise CannotWork(_unknown(id))
    found = tuple(job for job in rows if job.state.phase in _ON_NODES and job.nodes is not None)
    await _check_owner(wiring, rows[0], command)
    if not found:
        state = visible(rows[0].state.word)
        raise CannotWork(
            f"job {id} holds no nodes now ({state}): slurmtop why {id} tells more about it"
        )
    return found


async def _check_owner(wiring: Wiring, job: Job, command: str) -> None:
    """:class:`CannotWork` where the job is somebody else's and this user is no operator."""
    if not job.user or job.user == wiring.who.name or wiring.who.uid == 0 or not wiring.live:
        return
    if (await read_rights(wiring.runner, wiring.who, wiring.cluster)).operator:
        return
    owner, id = visible(job.user), job.id.text
    raise CannotWork(
        f"job {id} is {owner}'s, and only {owner} and operators may look at its nodes:"
        f" {owner} can run slurmtop {command} {id} and show you what it says"
    )


def _unknown(id: str) -> str:
    return f"job {id}: no such job in the queue (any more); slurmtop why {id} tells how it ended"


def hosts_of(text: str) -> tuple[str, ...]:
    """``gpu01,gpu[03-04]`` of the command line. :class:`UsageError` for what is no host list."""
    if not text.isprintable():
        raise UsageError(f"{text!r} is no list of nodes, like gpu01,gpu[03-04]")
    try:
        found = tuple(dict.fromkeys(expand_hosts(text, limit=MOST_HOSTS)))
    except HostlistError as error:
        raise UsageError(f"{text!r} is no list of nodes: {error}") from error
    if not found or not all(_HOST.fullmatch(host) for host in found):
        raise UsageError(f"{text!r} is no list of nodes, like gpu01,gpu[03-04]")
    return found


def nodes_of(job: Job) -> tuple[str, ...]:
    """The nodes that it holds, however many; () where Slurm's list cannot be read."""
    return hosts_in(job.nodes)


async def look_at(
    wiring: Wiring,
    config: Config,
    jobs: Sequence[Job],
    *,
    mine: Sequence[Job] = (),
    hosts: Collection[str] | None = None,
) -> tuple[JobGpus, ...]:
    """One look at every node of ``jobs``, each node once, however many of them are there; at the
    first ``MOST_HOSTS`` in all, the others are told as not asked.

    With ``hosts`` only these; those of them that hold no job of ``jobs`` are looked at by
    themselves. ``mine`` are other own jobs: they may hold GPUs on the same nodes.
    """
    places = {job.key: nodes_of(job) for job in jobs}
    every_node = hosts if hosts is not None else (host for one in places.values() for host in one)
    wanted = dict.fromkeys(list(dict.fromkeys(every_node))[:MOST_HOSTS])
    for job in jobs:
        wiring.expect(raw_number(job), [host for host in places[job.key] if host in wanted])
    looks = await _looks(wiring, config, tuple(wanted), _only_job(jobs, places))
    every = tuple({job.key: job for job in (*mine, *jobs)}.values())
    out = [
        _of_job(wiring, job, places[job.key], looks, [one for one in every if one.key != job.key])
        for job in jobs
    ]
    taken = {host for names in places.values() for host in names}
    alone = [host for host in wanted if host not in taken]
    if alone:
        seen = tuple(_by_itself(wiring, looks[host]) for host in alone)
        out.append(JobGpus(job=None, hosts=seen))
    return tuple(out)


def _only_job(jobs: Sequence[Job], places: Mapping[JobKey, Sequence[str]]) -> dict[str, str | None]:
    """Host to the one job there, None where several are: then all processes are wanted."""
    found: dict[str, str | None] = {}
    for job in jobs:
        for host in places[job.key]:
            found[host] = None if host in found else raw_number(job)
    return found


async def _looks(
    wiring: Wiring, config: Config, hosts: Sequence[str], only: Mapping[str, str | None]
) -> dict[str, HostLook]:
    doors = asyncio.Semaphore(_AT_ONCE)
    exporters = make_exporters(wiring, config)

    async def one(host: str) -> HostLook:
        async with doors:
            look, processes = await asyncio.gather(
                look_once(
                    wiring.runner,
                    wiring.clock,
                    host,
                    dcgm=DcgmMode(config.dcgm),
                    reach=wiring.reach,
                ),
                read_processes(wiring.runner, wiring.clock, host, job=only.get(host)),
            )
        return replace(look, processes=processes)

    told, looks = await asyncio.gather(exporters.ask(hosts), asyncio.gather(*map(one, hosts)))
    return {
        host: with_told(look, told[host]) if host in told else look
        for host, look in zip(hosts, looks, strict=True)
    }


def _of_job(
    wiring: Wiring,
    job: Job,
    hosts: Sequence[str],
    looks: Mapping[str, HostLook],
    others: Sequence[Job],
) -> JobGpus:
    raw = raw_number(job)
    asked = [host for host in hosts if host in looks]
    processes = [look.processes for host in asked if (look := looks[host]).processes is not None]
    ranks = rank_processes([one for one in processes if one is not None], raw)
    share = _share(job)
    shares = [(_share(one), frozenset(nodes_of(one))) for one in others]
    out = []
    for host in asked:
        look = looks[host]
        near = tuple(other for other, places in shares if host in places)
        found = gpus_of_job(look, share, near)
        failed = look.gpus is None or not look.gpus.answered
        out.append(
            HostGpus(
                look=look,
                gpus=None if failed else found.gpus,
                says="" if failed else found.says,
                held=share.gpus or None,
                by_uuid=ranks_by_gpu(look, ranks),
                age_s=_age(wiring, look),
            )
        )
    missing = tuple(host for host in hosts if host not in looks)
    if not missing and sum(len(one.gpus or ()) for one in out) == job.tres.gpus:
        # All of them are seen, so each node holds what it shows.
        out = [replace(one, held=None if one.gpus is None else len(one.gpus)) for one in out]
    return JobGpus(job=job, hosts=tuple(out), not_asked=missing)


def _by_itself(wiring: Wiring, look: HostLook) -> HostGpus:
    """A node with all that it shows; whose its ranks are is told by their processes."""
    found = look.processes.processes if look.processes is not None else ()
    ranks: list[RankProcess] = []
    for job in dict.fromkeys(one.job for one in found if one.job is not None):
        if look.processes is not None:
            ranks.extend(rank_processes([look.processes], job))
    seen = look.gpus is not None and look.gpus.answered
    return HostGpus(
        look=look,
        gpus=look.gpus.samples if seen and look.gpus is not None else None,
        by_uuid=ranks_by_gpu(look, ranks),
        age_s=_age(wiring, look),
    )


def _age(wiring: Wiring, look: HostLook) -> float | None:
    if look.gpus_at is None:
        return None
    return max(0.0, (wiring.clock.now() - look.gpus_at).total_seconds())


def _share(job: Job) -> JobShare:
    """Its share of each of its nodes."""
    return share_of(
        raw_number(job), job.tres, job.node_count or len(nodes_of(job)) or None, job.start
    )
