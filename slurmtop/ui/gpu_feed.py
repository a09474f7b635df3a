"""Looks at GPUs as they come in: one watch a view, over one book for the whole app."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from slurmtop.collect.clock import spawn
from slurmtop.model.gpu import GpuSample
from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job, Phase
from slurmtop.model.look import HostLook
from slurmtop.parse.slurm.hostlist import hosts_in
from slurmtop.store.gpu_use import JobUse, UseBook
from slurmtop.store.gpus import GpuBook
from slurmtop.store.jobs import JobBook
from slurmtop.triage.gpu_share import Attributed, JobShare, share_of
from slurmtop.triage.gpu_work import Work, mean_util, work_of
from slurmtop.triage.job_gpus import gpus_of_job
from slurmtop.ui.services import GpuWatching, Services

#: A watch goes on for so long after its view was left: who comes back sees no gap.
KEPT_S = 60.0
#: News of many nodes are told together, at most this often.
GATHER_S = 0.5
#: Leaving slurmtop waits this long for watches to end; what is left ends with the loop.
CLOSING_S = 2.0
#: A new watch waits this long for those that were told to end.
ENDING_S = 10.0
#: How often it is worked out anew which other jobs are there, and how much a job uses.
SHARES_S = 30.0
USE_S = 10.0


@dataclass(slots=True)
class _Watch:
    """``left_at``: monotonic seconds when its view was left, None while it is shown."""

    hosts: tuple[str, ...]
    job: Job | None
    watching: GpuWatching
    task: asyncio.Task[None] | None = None
    left_at: float | None = None
    shares: dict[str, list[JobShare]] = field(default_factory=dict)
    shares_at: float | None = None
    used_at: float | None = None


class GpuFeed:
    """Fills a :class:`GpuBook` while a view shows nodes.

    A view is a word of the caller's (``job 4711``, ``nodes``); ``show`` starts its watch,
    ``leave`` lets it go on for a minute at the most. While nobody touches a key (``idle``) no
    node is asked. ``aclose`` ends all of it.
    """

    def __init__(
        self,
        services: Services,
        jobs: Callable[[], JobBook],
        on_news: Callable[[frozenset[str]], None],
        on_broken: Callable[[BaseException], None],
    ) -> None:
        self._services = services
        self._clock = services.data_clock or services.clock
        self._jobs = jobs
        self._on_news = on_news
        self._on_broken = on_broken
        self._watches: dict[str, _Watch] = {}
        self._news: set[str] = set()
        self._telling: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._closed = False
        self.book = GpuBook()
        self.uses = UseBook()
        self.paused = False

    @property
    def possible(self) -> bool:
        """Can nodes be asked at all here?"""
        return self._services.watch_gpus is not None

    def show(self, view: str, hosts: Sequence[str], *, job: Job | None = None) -> None:
        """Watch ``hosts`` for ``view``. What it watched before goes on where it is the same.

        Watches of views that were left end at once where they would ask one of these nodes, too.
        """
        watch_gpus, wanted = self._services.watch_gpus, tuple(hosts)
        if watch_gpus is None or self._closed:
            return
        before = self._watches.get(view)
        if before is not None and before.hosts == wanted and _run(before.job) == _run(job):
            before.job, before.left_at = job, None
            self._start(view, before)
            return
        self.stop(view)
        for name, other in list(self._watches.items()):
            if other.left_at is not None and not set(other.hosts).isdisjoint(wanted):
                self.stop(name)
        watch = _Watch(wanted, job, watch_gpus(wanted, job=job, on_look=self._looked))
        self._watches[view] = watch
        self._start(view, watch)

    def leave(self, view: str) -> None:
        """The view is out of sight; its watch ends in a minute unless it is shown again."""
        watch = self._watches.get(view)
        if watch is not None and watch.left_at is None:
            watch.left_at = self._clock.monotonic()

    def stop(self, view: str) -> None:
        """End the watch of a view now."""
        watch = self._watches.pop(view, None)
        if watch is not None:
            self._end(watch)

    def poke(self, view: str) -> None:
        """Try at once what has failed."""
        watch = self._watches.get(view)
        if watch is not None:
            watch.watching.poke()

    def in_view(self, view: str, hosts: Sequence[str]) -> None:
        """Which nodes of a view a person sees just now, the most important ones first."""
        watch = self._watches.get(view)
        if watch is not None:
            watch.watching.in_view(hosts)

    def in_turn(self, view: str) -> int:
        """How many nodes of a view are not kept fresh: they are looked at one after the other."""
        watch = self._watches.get(view)
        return 0 if watch is None else watch.watching.in_turn

    def watched(self, view: str) -> bool:
        """Is a watch of that view there (it may be paused)?"""
        return view in self._watches

    def second_passed(self, *, idle: bool) -> None:
        """End what was left a minute ago; pause while nobody is there."""
        now = self._clock.monotonic()
        for view, watch in list(self._watches.items()):
            if watch.left_at is not None and now - watch.left_at >= KEPT_S:
                self.stop(view)
        self.paused = idle
        for view, watch in self._watches.items():
            if not idle:
                self._start(view, watch)
            else:
                self._end(watch)

    async def aclose(self) -> None:
        """End every watch and wait until it is gone, but not for a node that hangs."""
        self._closed = True
        for view in list(self._watches):
            self.stop(view)
        if self._telling is not None:
            self._telling.cancel()
        if self._ending:
            await asyncio.wait(set(self._ending), timeout=CLOSING_S)

    def use_of(self, key: JobKey) -> JobUse | None:
        """How much of its GPUs a job uses: by the site's exporter or the last look, the newer."""
        told, seen = self._services.job_gpu_use, self.uses.get(key)
        use = told(key) if told is not None else None
        if use is None or (seen is not None and seen.at > use.at):
            return seen
        return use

    @property
    def knows_use(self) -> bool:
        """Is there anybody who tells it, or any job of which it is known?"""
        return self._services.job_gpu_use is not None or len(self.uses) > 0

    def gpus_of(self, view: str, host: str) -> Attributed | None:
        """Which GPUs of a node are those of the job that ``view`` watches; None: no look yet."""
        watch, look = self._watches.get(view), self.book.look(host)
        if watch is None or watch.job is None or look is None or look.gpus is None:
            return None
        now = self._clock.monotonic()
        if watch.shares_at is None or now - watch.shares_at >= SHARES_S:
            watch.shares = shares_on(self._jobs(), watch.hosts, watch.job)
            watch.shares_at = now
        return gpus_of_job(look, share_on_nodes(watch.job), watch.shares.get(host, ()))

    def gpus_of_jobs(
        self,
        host: str,
        mine: Sequence[Job],
        there: Sequence[Job],
        *,
        node_gpus: int | None = None,
    ) -> frozenset[str]:
        """The UUIDs of those GPUs of a node that are told to be of one of ``mine``.

        ``there`` are all the jobs that are known on it, ``mine`` too; ``node_gpus`` is how many
        cards it has by Slurm, None where that is not told.
        """
        look = self.book.look(host)
        if look is None:
            return frozenset()
        shares = {job.key: share_on_nodes(job) for job in there if holds_gpus(job)}
        told: set[str] = set()
        for job in mine:
            share = shares.get(job.key)
            if share is not None:
                others = [other for key, other in shares.items() if key != job.key]
                gpus = gpus_of_job(look, share, others, node_gpus=node_gpus).gpus or ()
                told.update(gpu.uuid for gpu in gpus if gpu.uuid)
        return frozenset(told)

    def _start(self, view: str, watch: _Watch) -> None:
        if watch.task is None and not self.paused:
            watch.task = spawn(self._run(watch.watching), name=f"GPU watch: {view}")
            watch.task.add_done_callback(self._ended)

    async def _run(self, watching: GpuWatching) -> None:
        """Begin only when what ran before has left its nodes: nothing piles up there."""
        if self._ending:
            await asyncio.wait(set(self._ending), timeout=ENDING_S)
        await watching.run()

    def _end(self, watch: _Watch) -> None:
        task, watch.task = watch.task, None
        if task is not None and not task.done():
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
            task.cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._on_broken(error)

    def _looked(self, look: HostLook) -> None:
        self.book.apply(look)
        self._news.add(look.host)
        if self._telling is None:
            self._telling = spawn(self._tell(), name="GPU news")

    async def _tell(self) -> None:
        await self._clock.sleep(GATHER_S)
        self._telling = None
        news, self._news = frozenset(self._news), set()
        for view, watch in self._watches.items():
            if watch.job is not None and not news.isdisjoint(watch.hosts):
                self._note_use(view, watch, watch.job)
        self._on_news(news)

    def _note_use(self, view: str, watch: _Watch, job: Job) -> None:
        """Remember how much of its GPUs a job uses, where every node of it has answered."""
        now = self._clock.monotonic()
        if watch.used_at is not None and now - watch.used_at < USE_S:
            return
        samples: list[GpuSample] = []
        times: list[datetime] = []
        for host in watch.hosts:
            look, mine = self.book.look(host), self.gpus_of(view, host)
            if look is None or look.gpus_at is None or look.failure is not None:
                return
            if mine is None or mine.gpus is None:
                return
            samples.extend(mine.gpus)
            times.append(look.gpus_at)
        if not samples:
            return
        watch.used_at = now
        works = [work_of(gpu) for gpu in samples]
        self.uses.note(
            job.key,
            at=min(times),
            mean_percent=mean_util(samples),
            known=len(samples),
            held=job.tres.gpus,
            waits=works.count(Work.WAITS) + works.count(Work.PERHAPS_WAITS),
        )


def share_on_nodes(job: Job) -> JobShare:
    """A job's share of each of its nodes."""
    return share_of(job.raw_id or job.id.text, job.tres, job.node_count, job.start)


def holds_gpus(job: Job) -> bool:
    """Does it hold GPUs on nodes now?"""
    holds = job.state.phase in (Phase.RUNNING, Phase.SUSPENDED, Phase.ENDING)
    return holds and bool(job.nodes) and bool(job.tres.gpus)


def shares_on(book: JobBook, hosts: Sequence[str], besides: Job) -> dict[str, list[JobShare]]:
    """The shares of the other jobs with GPUs that the queue shows on these nodes."""
    wanted = set(hosts)
    out: dict[str, list[JobShare]] = {}
    for job in book.jobs:
        if not holds_gpus(job) or job.key == besides.key:
            continue
        for host in hosts_of(job.nodes):
            if host in wanted:
                out.setdefault(host, []).append(share_on_nodes(job))
    return out


@lru_cache(maxsize=4096)
def hosts_of(nodes: str) -> tuple[str, ...]:
    """The nodes of a job, each by name; none for a list that cannot be read."""
    return hosts_in(nodes)


def _run(job: Job | None) -> tuple[JobKey, int | None, datetime | None] | None:
    """What makes a run of a job another one: requeued, it may have other GPUs there."""
    return None if job is None else (job.key, job.restarts, job.start)
