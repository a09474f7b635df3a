"""Tries what slurmtop can reach from here: Slurm's commands, own logs, the ways onto nodes.

Everything is asked once, bounded in time, and nothing is changed anywhere.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from slurmtop.collect.asking import slurm_id
from slurmtop.collect.batch_script import read_batch_script, script_number
from slurmtop.collect.cluster_info import ClusterInfo, read_cluster_info, takes_many
from slurmtop.collect.log_facts import log_paths
from slurmtop.collect.log_files import checked_stat, log_status
from slurmtop.collect.nodes.access import try_way
from slurmtop.collect.poller import SourceFailed, local_failure
from slurmtop.collect.rights import read_rights
from slurmtop.collect.sacct import Accounting
from slurmtop.collect.scontrol import fetch_job_detail
from slurmtop.collect.squeue import QueueSource
from slurmtop.collect.who import Who
from slurmtop.model.access import LogAccess, SlurmAccess, WayTried
from slurmtop.model.facts import LogStatus
from slurmtop.model.job import Job, Phase
from slurmtop.model.ports import (
    Clock,
    Command,
    Completed,
    FileStat,
    ReplayMiss,
    Runner,
    RunnerError,
)
from slurmtop.model.reach import Way
from slurmtop.model.rights import UNKNOWN_RIGHTS, Rights
from slurmtop.model.script import ScriptStatus
from slurmtop.model.snapshot import Failure

#: A person waits for all of it: a source that needs longer is told as one that does not answer.
COMMAND_LIMIT_S = 6.0
_MOST_LOGS = 3
#: No cluster has job 0; what accounting says to it is an answer all the same.
_ANY_JOB = "1"
_NODES_AT_ONCE = 4
#: Words by which one of our questions is known in its command.
_QUESTIONS = ("squeue", "config", "job", "batch_script", "sacct", "sacctmgr", "scancel")


class HurriedRunner:
    """Any runner whose commands get at most ``most_s`` seconds; what was asked already is not
    asked again. ``missed`` are the questions that a recording did not hold."""

    def __init__(self, inner: Runner, most_s: float = COMMAND_LIMIT_S) -> None:
        self._inner = inner
        self._most_s = most_s
        self._said: dict[Command, Completed] = {}
        self.missed: set[str] = set()

    async def run(self, command: Command) -> Completed:
        short = self._shorter(command)
        if short not in self._said:
            try:
                self._said[short] = await self._inner.run(short)
            except ReplayMiss:
                self.missed.update(word for word in _QUESTIONS if word in short.argv)
                raise
        return self._said[short]

    async def stream(self, command: Command) -> AsyncIterator[bytes]:
        async for chunk in self._inner.stream(self._shorter(command)):
            yield chunk

    async def read(self, path: str, offset: int, length: int, host: str | None = None) -> bytes:
        return await self._inner.read(path, offset, length, host)

    async def stat(self, path: str, host: str | None = None) -> FileStat:
        return await self._inner.stat(path, host)

    async def list(self, path: str, host: str | None = None) -> tuple[str, ...]:
        return await self._inner.list(path, host)

    def _shorter(self, command: Command) -> Command:
        return replace(command, timeout_s=min(command.timeout_s, self._most_s))


@dataclass(frozen=True, slots=True)
class Asked:
    """What Slurm told, and the own jobs, the newest first; None where the queue is silent."""

    slurm: SlurmAccess
    jobs: tuple[Job, ...] | None
    rights: Rights


async def ask_slurm(
    runner: HurriedRunner,
    clock: Clock,
    who: Who | None,
    *,
    cluster: str = "",
    mark: bytes | None = None,
    about: str = "",
) -> Asked:
    """The queue first and beside it what needs no job; then what is about one own job: that of
    the id ``about`` where it is among them, else the newest. Nobody's rights are asked for where
    ``who`` is not known."""
    source = QueueSource(runner, clock, cluster=cluster, me=who, mark=mark)
    queue, config, scancel = await asyncio.gather(
        _queue(source), _config(runner, cluster), _scancel(runner)
    )
    jobs = None if isinstance(queue, Failure) else newest_first(queue)
    info = config if isinstance(config, ClusterInfo) else ClusterInfo()
    facts = SlurmAccess(
        queue=queue if isinstance(queue, Failure) else None,
        queue_jobs=len(jobs or ()),
        config=config if isinstance(config, Failure) else None,
        private_data=info.private_data,
        scancel=scancel,
        sends_many=takes_many(scancel or ""),
        accounting_off=info.has_accounting is False,
    )
    job = _named(jobs or (), about)
    rights, detail, script, accounting = await asyncio.gather(
        _rights(runner, who, cluster),
        _detail(runner, job, cluster),
        _script(runner, job, cluster),
        _accounting(runner, job, cluster, mark, off=facts.accounting_off),
    )
    has_script = script is not None and script[0] is not ScriptStatus.NONE
    facts = replace(
        facts,
        job=job.id.text if job is not None else "",
        detail=detail,
        script=script[1] if script is not None and script[0] is not ScriptStatus.READ else None,
        has_script=has_script,
        operator=rights.operator,
        coordinates=None if rights.coordinates is None else tuple(sorted(rights.coordinates)),
        accounting=accounting,
        not_recorded=frozenset(runner.missed),
    )
    return Asked(facts, jobs, rights)


def newest_first(jobs: Sequence[Job]) -> tuple[Job, ...]:
    """Running jobs, those with GPUs first; then ended ones, then those that wait."""

    def order(job: Job) -> tuple[int, bool, int]:
        ranks = {Phase.RUNNING: 0, Phase.ENDING: 1, Phase.SUSPENDED: 1, Phase.PENDING: 3}
        number = int(job.id.base) if job.id.base.isdigit() else 0
        return ranks.get(job.state.phase, 2), not job.tres.gpus, -number

    return tuple(sorted(jobs, key=order))


def _named(jobs: Sequence[Job], about: str) -> Job | None:
    named = (job for job in jobs if about in (job.id.text, job.id.base, job.raw_id))
    return next(named, jobs[0] if jobs else None)


async def _queue(source: QueueSource) -> Sequence[Job] | Failure:
    try:
        return (await source.fetch()).rows
    except SourceFailed as error:
        return error.failure
    except RunnerError as error:
        return local_failure(error)


async def _config(runner: Runner, cluster: str) -> ClusterInfo | Failure:
    try:
        return await read_cluster_info(runner, cluster=cluster)
    except SourceFailed as error:
        return error.failure


async def _scancel(runner: Runner) -> str | None:
    try:
        done = await runner.run(Command(("scancel", "--version"), timeout_s=COMMAND_LIMIT_S))
    except RunnerError:
        return None
    words = done.stdout.decode("utf-8", "replace").strip()
    return (words.splitlines() or [""])[0][:80] if done.rc == 0 and words else None


async def _rights(runner: HurriedRunner, who: Who | None, cluster: str) -> Rights:
    if who is None:
        runner.missed.add("sacctmgr")
        return UNKNOWN_RIGHTS
    return await read_rights(runner, who, cluster)


async def _detail(runner: Runner, job: Job | None, cluster: str) -> Failure | None:
    if job is None:
        return None
    try:
        await fetch_job_detail(runner, slurm_id(job.id), cluster=cluster)
    except SourceFailed as error:
        return error.failure
    return None


async def _script(runner: Runner, job: Job | None, cluster: str) -> tuple[ScriptStatus, str] | None:
    if job is None:
        return None
    found = await read_batch_script(runner, script_number(job), cluster=cluster)
    return found.status, found.why


async def _accounting(
    runner: Runner, job: Job | None, cluster: str, mark: bytes | None, *, off: bool
) -> Failure | None:
    if off:
        return None
    id = _ANY_JOB if job is None else slurm_id(job.id)
    try:
        await Accounting(runner, cluster=cluster, mark=mark).history(id, timeout_s=COMMAND_LIMIT_S)
    except SourceFailed as error:
        return error.failure
    return None


async def try_logs(runner: Runner, jobs: Sequence[Job]) -> tuple[LogAccess, ...]:
    """Can the logs of the newest jobs that ran be read? One byte of each is."""
    ran = [job for job in jobs if job.state.phase is not Phase.PENDING][:_MOST_LOGS]
    return tuple(await asyncio.gather(*(_log(runner, job) for job in ran)))


async def _log(runner: Runner, job: Job) -> LogAccess:
    paths = log_paths(job, None)
    path = paths[0][1] if paths else None
    if path is None:
        return LogAccess(job=job.id.text, path=None)
    try:
        await checked_stat(runner, path)
        await runner.read(path, 0, 1)
    except ReplayMiss:
        return LogAccess(job=job.id.text, path=path, recorded=False)
    except (OSError, RunnerError) as error:
        status, why = log_status(error)
        return LogAccess(
            job=job.id.text,
            path=path,
            denied=status is LogStatus.DENIED,
            hangs=status is LogStatus.HANGS,
            why=why,
        )
    return LogAccess(job=job.id.text, path=path, readable=True)


async def try_ways(
    ways: Mapping[Way, Runner],
    clock: Clock,
    hosts: Sequence[str],
    *,
    job: str | None = None,
    timeout_s: float,
    tools: Sequence[str] | None = None,
    here: Collection[str] = (),
) -> tuple[WayTried, ...]:
    """Every way onto every host once, in the order of ``hosts``; srun onto the first one only:
    one step is all that this may cost a job. ``here`` are those that are this machine, which
    need none. ``tools``: see :func:`try_way`."""
    doors = asyncio.Semaphore(_NODES_AT_ONCE * max(1, len(ways)))

    async def one(host: str, way: Way, runner: Runner) -> WayTried:
        async with doors:
            return await try_way(
                runner, clock, host, way, job=job, timeout_s=timeout_s, tools=tools
            )

    return tuple(
        await asyncio.gather(
            *(
                one(host, way, runner)
                for host in hosts
                for way, runner in ways.items()
                if (way is not Way.HERE or host in here)
                and (way is not Way.SRUN or (job is not None and host == hosts[0]))
            )
        )
    )
