"""Jobs that end in every way Slurm knows, made all at once because each needs its time."""

import pwd
from pathlib import Path

from tests.cluster.faults import Faults
from tests.cluster.fixtures import STEPS, Cluster

TRAIN = """\
import sys

def load(path):
    raise ValueError(f"shard {path} is empty")

print("epoch 1", flush=True)
load("data-07")
"""
#: The node that is taken down, and the one where jobs push each other out.
BROKEN_NODE = "gpu04"
CONTESTED_NODE = "gpu03"


class Endings:
    """Submits, makes them end, and waits until they have. Nodes are mended by ``faults``."""

    def __init__(self, cluster: Cluster, faults: Faults) -> None:
        self._cluster = cluster
        submit, tag = cluster.submit, cluster.tag
        self.train = cluster.dir / "train.py"
        self.train.write_text(TRAIN)
        self.traceback = submit(f"python3 {self.train}", job_name=f"{tag}-traceback")
        self.no_log = submit("true", job_name=f"{tag}-nolog", output="/root/nowhere/%j.log")
        self.segfault = submit(
            "exec python3 -c 'import ctypes; ctypes.string_at(0)'", job_name=f"{tag}-segv"
        )
        self.completed = submit("echo all is well", job_name=f"{tag}-completed")
        self.cancelled = submit("sleep 900", job_name=f"{tag}-cancelled")
        self.never_ran = submit("true", job_name=f"{tag}-neverran", hold=True)
        # The batch script runs on the first of its nodes, the fault is on the other one.
        self.node_fail = submit(
            "srun sleep 900",
            job_name=f"{tag}-nodefail",
            nodelist=f"gpu02,{BROKEN_NODE}",
            nodes=2,
            no_requeue=True,
        )
        contest: dict[str, str | int | bool] = {
            "nodelist": CONTESTED_NODE,
            "gres": "gpu:h100:4",
            "partition": "low",
        }
        self.preempted = submit(
            f"srun python3 {STEPS}",
            job_name=f"{tag}-preempted",
            no_requeue=True,
            ntasks=4,
            **contest,
        )
        self.requeued = submit("sleep 900", job_name=f"{tag}-requeued", requeue=True, **contest)
        self._await_starts()
        cluster.run("scancel", self.cancelled, self.never_ran)
        self.first = submit(
            "sleep 900",
            job_name=f"{tag}-first",
            nodelist=CONTESTED_NODE,
            gres="gpu:h100:8",
        )
        faults.node_down(BROKEN_NODE, "test of a node failure")
        self._await_ends()

    @property
    def owner_uid(self) -> int:
        return pwd.getpwnam(self._cluster.user).pw_uid

    def log(self, job: str) -> Path:
        return self._cluster.log(job)

    def _await_starts(self) -> None:
        cluster = self._cluster
        for job in (self.cancelled, self.node_fail, self.preempted, self.requeued):
            cluster.wait_state(job, "RUNNING")
        step = f"{self.node_fail}.0"
        cluster.wait_for("its step", lambda: step in "".join(cluster.squeue("-s", "-o", "%i ")))
        log = self.log(self.preempted)
        cluster.wait_for("its ranks", lambda: log.exists() and "step 1/" in log.read_text())

    def _await_ends(self) -> None:
        wait = self._cluster.wait_state
        wait(self.traceback, "FAILED")
        wait(self.no_log, "FAILED")
        wait(self.segfault, "FAILED")
        wait(self.completed, "COMPLETED")
        wait(self.cancelled, "CANCELLED")
        wait(self.never_ran, "CANCELLED")
        wait(self.node_fail, "NODE_FAIL")
        wait(self.preempted, "PREEMPTED")
        wait(self.requeued, "PENDING")
        wait(self.first, "RUNNING")

    def clean(self) -> None:
        self._cluster.run("scancel", self.requeued, self.first, check=False)
