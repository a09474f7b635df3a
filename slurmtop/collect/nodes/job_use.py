"""GPU use of the jobs on the screen, from the exporter or Prometheus of the site."""

from collections.abc import Iterable

from slurmtop.collect.nodes.exporter import Exporters
from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job, Phase
from slurmtop.model.ports import Clock
from slurmtop.parse.slurm.hostlist import hosts_in
from slurmtop.store.gpu_use import JobUse, UseBook
from slurmtop.triage.exporter_use import JobOnHosts, gpus_by_job
from slurmtop.triage.gpu_work import Work, mean_util, work_of

EVERY_S = 30.0
#: Nobody painted a job for so long: nothing is asked then.
_FORGET_S = 60.0
#: What is older than this is not "now"; the last look of slurmtop itself may be newer.
_FRESH_S = 150.0
_MOST_HOSTS = 512


class JobUseWatch:
    """``use_of`` answers from memory and remembers that somebody wants to know; ``run`` asks for
    the jobs that were wanted in the last minute, until it is cancelled."""

    def __init__(self, exporters: Exporters, clock: Clock) -> None:
        self._exporters = exporters
        self._clock = clock
        self._book = UseBook()
        self._jobs: dict[JobKey, Job] = {}
        self._wanted: dict[JobKey, float] = {}

    def saw(self, jobs: Iterable[Job]) -> None:
        """The queue as it is now: labels of other jobs are stale."""
        self._jobs = {job.key: job for job in jobs if job.tres.gpus and _runs(job)}

    def use_of(self, key: JobKey) -> JobUse | None:
        """What is known of a running job; None for what is older than two and a half minutes."""
        if key not in self._jobs:
            return None
        self._wanted[key] = self._clock.monotonic()
        use = self._book.get(key)
        if use is None or (self._clock.now() - use.at).total_seconds() > _FRESH_S:
            return None
        return use

    async def run(self) -> None:
        """Ask again and again; a source that fails costs its round only."""
        while True:
            await self.tick()
            await self._clock.sleep(EVERY_S if self._wanted else 1.0)

    async def tick(self) -> None:
        """One round for what was wanted of late."""
        since = self._clock.monotonic() - _FORGET_S
        self._wanted = {key: at for key, at in self._wanted.items() if at >= since}
        wanted = {key: job for key, job in self._jobs.items() if key in self._wanted}
        places: dict[str, tuple[Job, frozenset[str]]] = {}
        hosts: set[str] = set()
        for job in wanted.values():
            its = frozenset(hosts_in(job.nodes))
            if job.raw_id is not None and len(hosts | its) <= _MOST_HOSTS:
                hosts |= its
                places[job.raw_id] = (job, its)
        if not hosts:
            return
        told = await self._exporters.ask(sorted(hosts))
        seen = {host: one.node.samples for host, one in told.items() if one.node.answered}
        on_hosts = [JobOnHosts(raw_id, its, _each(job)) for raw_id, (job, its) in places.items()]
        running = {job.raw_id for job in self._jobs.values() if job.raw_id is not None}
        for raw_id, gpus in gpus_by_job(seen, on_hosts, running=running).items():
            job, its = places[raw_id]
            answers = [told[host] for host in its if host in seen]
            works = [work_of(gpu) for gpu in gpus]
            self._book.note(
                job.key,
                at=min(one.at for one in answers),
                mean_percent=mean_util(gpus),
                known=len(gpus),
                held=job.tres.gpus,
                waits=works.count(Work.WAITS) + works.count(Work.PERHAPS_WAITS),
                source=answers[0].source,
            )


def _runs(job: Job) -> bool:
    return job.state.phase in (Phase.RUNNING, Phase.SUSPENDED, Phase.ENDING) and bool(job.nodes)


def _each(job: Job) -> int | None:
    gpus, nodes = job.tres.gpus, job.node_count
    return gpus // nodes if gpus and nodes and gpus % nodes == 0 else None
