"""A real training over four nodes, and what its own ranks say of where they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.fixtures import Cluster
from tests.cluster.layout import ClusterError
from tests.cluster.standins.cards import uuid_of

JOBS = Path(__file__).parent / "jobs"


@dataclass(frozen=True, kw_only=True, order=True)
class Rank:
    """One rank by its own words: the number that its process has on its node, and its GPU."""

    rank: int
    host: str
    pid: int
    gpu: int

    @property
    def uuid(self) -> str:
        return uuid_of(self.host, self.gpu)


@dataclass(frozen=True, kw_only=True)
class Training:
    """A job that trains until it is cancelled."""

    cluster: Cluster
    job: str
    ranks: tuple[Rank, ...]

    def on(self, host: str) -> list[Rank]:
        return [one for one in self.ranks if one.host == host]

    @property
    def step(self) -> int:
        """The newest step that its log tells."""
        text = self.cluster.log(self.job).read_text()
        return int(re.findall(r"(?m)^step (\d+)/", text)[-1])

    def goes_on(self) -> None:
        """Wait until it has made two more steps: nobody paused it."""
        begun = self.step
        self.cluster.wait_for("two more steps", lambda: self.step >= begun + 2, 20)


@contextmanager
def trains(
    cluster: Cluster,
    script: str = "trains.sh",
    *,
    ranks: int = 8,
    log: Path | None = None,
    **options: str | int | bool,
) -> Iterator[Training]:
    """Submit one of ``jobs/trains*.sh`` and wait until all its ranks are at work.

    ``log`` is the folder of its log, where that is not the one of all others.
    """
    path = JOBS / "trains.py"
    job = cluster.submit(
        JOBS / script, job_name=f"{cluster.tag}-trains", export=f"ALL,TRAINS={path}", **options
    )
    try:
        cluster.wait_state(job, "RUNNING")
        yield Training(cluster=cluster, job=job, ranks=_ranks(cluster, job, ranks, log))
    finally:
        cluster.run("scancel", job, check=False)


def _ranks(cluster: Cluster, job: str, count: int, folder: Path | None) -> tuple[Rank, ...]:
    log = cluster.log(job) if folder is None else folder / f"{job}.log"

    def text() -> str:
        return log.read_text() if log.exists() else ""

    def places() -> list[Path]:
        return [path for path in cluster.dir.glob(f"rank-{job}-*") if not path.suffix]

    def at_work() -> bool:
        if "Traceback" in text():
            raise ClusterError(text())
        return len(places()) == count and "\nstep 2/" in text()

    try:
        cluster.wait_for(f"{count} ranks of {job} at work", at_work, 120)
    except ClusterError as error:
        raise ClusterError(f"{error}\n{text()[-4000:]}") from error
    on_node: dict[str, list[tuple[int, int, list[str]]]] = {}
    for path in places():
        host, pid, devices = path.read_text().split()
        rank = int(path.name.rpartition("-")[2])
        on_node.setdefault(host, []).append((rank, int(pid), devices.split(",")))
    return tuple(
        sorted(
            Rank(rank=rank, host=host, pid=pid, gpu=int(devices[local]))
            for host, here in on_node.items()
            for local, (rank, pid, devices) in enumerate(sorted(here))
        )
    )
