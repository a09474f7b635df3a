"""The rows of the GPUs tab, kept from look to look: what has no news is not built anew."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from slurmtop.model.facts import LogFacts
from slurmtop.model.gpu import NodeGpus
from slurmtop.model.job import Job
from slurmtop.store.gpu_metrics import METRICS, GpuMetric
from slurmtop.triage.gpu_share import JobShare
from slurmtop.triage.gpu_work import (
    GpuRef,
    JobLook,
    Odd,
    WorkVerdict,
    judge_work,
    odd_ones,
)
from slurmtop.ui.gpu_feed import GpuFeed
from slurmtop.ui.present.gpu_grid import GridRow, build_row, is_stale, sort_rows

#: Looks at the whole job are kept this far apart, so many of them, and judged this often.
LOOK_STEP_S = 30.0
LOOKS_KEPT = 10
JUDGE_S = 5.0


class GpuRows:
    """Rows by host, the odd ones among them, and what the GPUs alone say of the job."""

    def __init__(self, feed: GpuFeed, view: str, logs: Callable[[], Sequence[LogFacts]]) -> None:
        self._feed, self._view, self._logs = feed, view, logs
        self.metric: GpuMetric = METRICS[0]
        self.worst_first = False
        self.hosts: tuple[str, ...] = ()
        self.rows: tuple[GridRow, ...] = ()
        self.odd: dict[GpuRef, Odd] = {}
        self.verdict: WorkVerdict | None = None
        self.built = 0
        """How many rows were built so far."""
        self._by_host: dict[str, GridRow] = {}
        self._job: Job | None = None
        self._held = 0
        self._looks: deque[JobLook] = deque(maxlen=LOOKS_KEPT)
        self._judged: tuple[int, datetime] | None = None
        """How many nodes had answered when it was judged last, and when."""

    def set_job(self, job: Job, hosts: Sequence[str], share: JobShare) -> None:
        """The job's newest record and its share of each node. On another run what was seen before
        says nothing."""
        held_each = share.gpus or share.even or 0
        before = self._job
        self._job = job
        if (
            before is not None
            and tuple(hosts) == self.hosts
            and (before.start, before.restarts) == (job.start, job.restarts)
            and held_each == self._held
        ):
            return
        self.hosts, self._held = tuple(hosts), held_each
        self._looks.clear()
        self._judged = None
        self.verdict, self.odd, self._by_host = None, {}, {}
        for host in self.hosts:
            self._build(host)
        self._order()

    def set_worst_first(self, yes: bool) -> None:
        self.worst_first = yes
        self._order()

    def update(self, news: Iterable[str], now: datetime) -> bool:
        """Build the rows of ``news`` anew, and those whose odd ones are others now."""
        mine = [host for host in news if host in self._by_host]
        if not mine:
            return False
        for host in mine:
            self._build(host)
        self._find_odd(set(mine))
        self._judge(now)
        self._order()
        return True

    def build_all(self, now: datetime) -> None:
        """Build every row: the metric is another one, or nobody looked for a while."""
        self.odd = {}
        self.update(self.hosts, now)

    def _build(self, host: str) -> None:
        self.built += 1
        look = self._feed.book.look(host)
        mine = self._feed.gpus_of(self._view, host)
        held = self._held
        total = self._job.tres.gpus if self._job is not None else None
        if held and total is not None:
            # Spread unevenly, what is missing here may have been seen elsewhere.
            rest = (row for other, row in self._by_host.items() if other != host)
            held = min(held, total - sum(len(row.samples) for row in rest))
        self._by_host[host] = build_row(host, look, mine, self.metric, self.odd, held=held)

    def _find_odd(self, built: set[str]) -> None:
        seen = [pair for row in self._by_host.values() if row.answered for pair in row.seen]
        found = odd_ones(seen, self.metric.pick, least=self.metric.least)
        before, self.odd = self.odd, {one.gpu: one for one in found}
        changed = {ref.host for ref in before.keys() ^ self.odd.keys()}
        changed |= {ref.host for ref in self.odd if ref.host in built}
        for host in changed:
            if host in self._by_host:
                self._build(host)

    def _order(self) -> None:
        rows = [self._by_host[host] for host in self.hosts]
        self.rows = tuple(sort_rows(rows, self.metric, worst_first=self.worst_first))

    def _judge(self, now: datetime) -> None:
        """Keep a look at the whole job now and then, and judge by them and by the present one.

        Values that are old count as unknown: a job is never judged by what was.
        """
        answered = sum(row.answered and bool(row.cells) for row in self._by_host.values())
        judged = self._judged
        same = judged is not None and judged[0] == answered
        if judged is not None and same and (now - judged[1]).total_seconds() < JUDGE_S:
            return
        self._judged = (answered, now)
        if not answered:
            self.verdict = None
            return
        nodes: list[NodeGpus] = []
        held = 0
        for row in self._by_host.values():
            held += self._held or len(row.cells)
            if row.look is None or row.look.gpus is None:
                nodes.append(NodeGpus(host=row.host))
                continue
            fresh = row.answered and not is_stale(row.look, now)
            nodes.append(replace(row.look.gpus, samples=row.samples if fresh else ()))
        total = self._job.tres.gpus if self._job is not None else None
        look = JobLook(now, tuple(nodes), total or held)
        looks = [*self._looks, look]
        if not self._looks or (now - self._looks[-1].at).total_seconds() >= LOOK_STEP_S:
            self._looks.append(look)
        self.verdict = judge_work(looks, log_silent_s=silent_s(self._logs(), now))


def silent_s(logs: Sequence[LogFacts], now: datetime) -> float | None:
    """Seconds since any of the logs has grown; None where that is not known."""
    written = [log.mtime for log in logs if log.mtime is not None]
    return (now - max(written)).total_seconds() if written else None
