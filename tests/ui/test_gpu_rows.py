"""How many cells a node of a job has, where Slurm tells only the sum of its GPUs."""

from typing import Any

from slurmtop.model.job import Job
from slurmtop.model.look import HostLook
from slurmtop.store.gpus import GpuBook
from slurmtop.triage.gpu_share import Attributed
from slurmtop.ui.gpu_feed import share_on_nodes
from slurmtop.ui.widgets.gpu_rows import GpuRows
from tests.build import make_job
from tests.fakes import START
from tests.ui.gpu_bench import make_gpus


class Feed:
    """A book, and all that is seen as the job's."""

    def __init__(self) -> None:
        self.book = GpuBook()

    def gpus_of(self, view: str, host: str) -> Attributed | None:
        look = self.book.look(host)
        return None if look is None or look.gpus is None else Attributed("1", look.gpus.samples)


def cells(job: Job, **seen: int) -> list[int]:
    feed: Any = Feed()
    rows = GpuRows(feed, "job", lambda: ())
    rows.set_job(job, tuple(seen), share_on_nodes(job))
    for host, count in seen.items():
        feed.book.apply(HostLook(host=host, gpus=make_gpus(host, count), gpus_at=START))
        rows.update([host], START)
    return [len(row.cells) for row in rows.rows]


def test_what_is_missing_of_an_even_share_is_unknown() -> None:
    job = make_job("1", gpus=16, nodes="gpu[01-02]", node_count=2)
    assert cells(job, gpu01=8, gpu02=6) == [8, 8]


def test_an_uneven_spread_makes_no_gpu_up() -> None:
    job = make_job("1", gpus=4, nodes="gpu[01-02]", node_count=2)
    assert cells(job, gpu01=3, gpu02=1) == [3, 1]
