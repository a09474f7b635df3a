"""One job of the lab, and what the driver sees of it from outside."""

import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.faults import Faults
from tests.cluster.fixtures import Cluster
from tests.cluster.layout import ClusterError
from tests.lab.plan import Planned
from tests.lab.truth import TRUTH, Truth

_STEP = re.compile(r"(?m)\bstep (\d+)/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """When is looked: so long after a fault, so long into a silence, and at a random second."""

    after_s: float = 20.0
    middle_s: float = 25.0
    random: bool = True


USUAL = Timing()


class Void(Exception):
    """The fault did not come about; the text says why."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What a rank wrote of itself: see ``jobs/places.py``."""

    host: str
    pid: int
    rank: int
    step: int
    at: float


@dataclass(kw_only=True)
class Run:
    """A run that is under way."""

    cluster: Cluster
    faults: Faults
    planned: Planned
    folder: Path
    timing: Timing = Timing()
    job: str = ""
    begun: float = 0.0
    fault_at: float = 0.0
    mend: list[Callable[[], None]] = field(default_factory=list)

    @property
    def truth(self) -> Truth:
        return TRUTH[self.planned.case]

    @property
    def text(self) -> str:
        path = self.cluster.log(self.job)
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def step(self) -> int:
        """The newest step in the log; 0 for none."""
        return max((int(number) for number in _STEP.findall(self.text)[-1:]), default=0)

    @property
    def steps_told(self) -> int:
        """How many lines of steps the log has."""
        return len(_STEP.findall(self.text))

    @property
    def slurm(self) -> set[str]:
        return self.cluster.states(self.job)

    def mark(self, name: str) -> Mark | None:
        path = self.cluster.dir / f"{name}-{self.job}"
        try:
            host, pid, rank, step, at = path.read_text().split()
        except (OSError, ValueError):
            return None
        return Mark(host, int(pid), int(rank), int(step), float(at))

    @property
    def culprit(self) -> Mark | None:
        """Where the rank of the fault is; without ranks, the node that tells of it."""
        return self.mark(f"rank{self.planned.rank}") or self.mark("fault")

    def wait_for(self, what: str, check: Callable[[], bool], deadline_s: float = 90) -> None:
        def now() -> bool:
            if "Traceback" in self.text and self.truth.slurm == ("RUNNING",) and not self.marked:
                raise Void(f"a rank failed: {self.text[-2000:]}")
            return check()

        try:
            self.cluster.wait_for(what, now, deadline_s)
        except ClusterError as error:
            raise Void(f"{error}; log: {self.text[-1500:]}") from error

    @property
    def marked(self) -> bool:
        return self.mark("fault") is not None

    def sleep_until(self, moment: float) -> None:
        time.sleep(max(0.0, moment - time.time()))


def cancel(cluster: Cluster, job: str) -> None:
    cluster.run("scancel", job, check=False)
    with suppress(ClusterError):
        cluster.wait_for(f"the end of {job}", lambda: not cluster.squeue("-j", job), 60)
