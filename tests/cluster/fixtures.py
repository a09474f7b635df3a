"""Pytest fixtures for tests against the real cluster.

Every folder has them: ``tests/conftest.py`` names this module as a plugin.
The tests run as the cluster's first normal user.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.faults import FaultError, Faults
from tests.cluster.layout import NODES, CannotRun, ClusterError, load_layout
from tests.cluster.procs import wait_until

FINAL_STATES = (
    "COMPLETED",
    "FAILED",
    "CANCELLED",
    "TIMEOUT",
    "PREEMPTED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
)
#: Ranks that make steps until they are ended, and throw then: that is no cause of anything.
STEPS = Path(__file__).parent / "jobs/steps.py"
_numbers = itertools.count(1)
#: States that a job never leaves by itself.
ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY"}


def unavailable() -> str | None:
    """Why the tests of the real cluster cannot run in this process."""
    if not os.environ.get("SLURMTOP_CLUSTER_DIR") or not os.environ.get("SLURM_CONF"):
        return "no test cluster here (tests/cluster/run starts one and runs the tests in it)"
    if os.geteuid() == 0:
        return "tests of the real cluster run as its normal user, not as root"
    try:
        layout = load_layout()
        if Path(os.environ["SLURM_CONF"]) != layout.slurm_conf:
            return "SLURM_CONF is not the test cluster's"
        Faults(layout.fault_socket).ping()
    except (FaultError, CannotRun, OSError) as error:
        return f"the test cluster does not answer: {error}"
    return None


class Cluster:
    """The running cluster as the normal user sees it."""

    def __init__(self, folder: Path) -> None:
        self.layout = load_layout()
        self.root = self.layout.root
        self.conf = self.layout.slurm_conf
        self.source = self.layout.source
        self.shared = self.layout.shared
        self.nodes = NODES
        self.users = self.layout.users
        self.user = pwd.getpwuid(os.geteuid()).pw_name
        #: Folder that nodes and tests share; job logs go here.
        self.dir = folder
        #: In job names it tells this run's jobs from those that Slurm still remembers.
        self.tag = f"t{folder.name[-6:].replace('_', '0')}"

    def run(
        self, *argv: str, check: bool = True, deadline_s: float = 60, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command; with ``check`` a failure is an error with its stderr."""
        done = subprocess.run(
            argv,
            input=stdin,
            capture_output=True,
            text=True,
            # Job names of other tests may be any bytes.
            errors="replace",
            timeout=deadline_s,
            check=False,
        )
        if check and done.returncode != 0:
            raise ClusterError(f"{' '.join(argv)} ({done.returncode}): {done.stderr.strip()}")
        return done

    def submit(self, script: str | Path, *args: str, **options: str | int | bool) -> str:
        """Submit a script (a path, or text that starts with ``#!``) or a command line.

        ``time="5", gres="gpu:h100:2", hold=True`` become ``--time=5 …``; ``args``
        go in front as they are.  Returns the job id.
        """
        options = {"output": f"{self.dir}/%j.log", "chdir": str(self.dir), "time": 10, **options}
        argv = ["sbatch", "--parsable", *args]
        for key, value in options.items():
            name = "--" + key.replace("_", "-")
            if value is True:
                argv.append(name)
            elif value is not False:
                argv.append(f"{name}={value}")
        text = None
        if isinstance(script, Path):
            argv.append(str(script))
        elif script.startswith("#!"):
            text = script
        else:
            argv.append(f"--wrap={script}")
        return self.run(*argv, stdin=text).stdout.strip().partition(";")[0]

    def squeue(self, *args: str) -> list[str]:
        """Lines of ``squeue -h`` with the given arguments."""
        return self.run("squeue", "-h", *args).stdout.splitlines()

    def states(self, job: str) -> set[str]:
        """States of a job and all its tasks and components; empty when Slurm forgot it."""
        done = self.run("squeue", "-h", "-t", "all", "-j", job, "-o", "%T", check=False)
        return set(done.stdout.split())

    def wait_state(
        self, job: str, states: str | Collection[str], deadline_s: float = 60
    ) -> set[str]:
        """Wait until every task and component of a job is in one of ``states``."""
        wanted = {states} if isinstance(states, str) else set(states)
        seen: set[str] = set()

        def arrived() -> bool:
            nonlocal seen
            seen = self.states(job)
            if seen and seen <= ENDED and not seen <= wanted:
                raise ClusterError(f"job {job} has ended")
            return bool(seen) and seen <= wanted

        try:
            self.wait_for(f"job {job} in {sorted(wanted)}", arrived, deadline_s)
        except ClusterError as error:
            reason = self.run("scontrol", "show", "job", job, check=False).stdout
            raise ClusterError(f"{error}; it is {sorted(seen)}\n{reason}") from error
        return seen

    def wait_reason(self, job: str, word: str, deadline_s: float = 60) -> None:
        """Wait until squeue gives ``word`` as the reason of a job."""

        def given() -> bool:
            return self.squeue("-j", job, "-o", "%r") == [word]

        self.wait_for(f"{word} as the reason of {job}", given, deadline_s)

    def wait_accounting(self, job: str, word: str, deadline_s: float = 60) -> None:
        """Wait until accounting knows a job in a state that begins with ``word``."""

        def known() -> bool:
            done = self.run("sacct", "-nXP", "-j", job, "-o", "State")
            return done.stdout.startswith(word)

        self.wait_for(f"{word} in the accounting of {job}", known, deadline_s)

    def wait_forgotten(self, job: str, deadline_s: float = 60) -> None:
        """Wait until the controller knows a job no more."""
        self.wait_for(f"{job} forgotten", lambda: not self.states(job), deadline_s)

    def wait_for(self, what: str, check: Callable[[], bool], deadline_s: float = 30) -> None:
        """Poll for a condition; the error names what did not come."""
        wait_until(what, check, deadline_s, 0.2)

    def log(self, job: str) -> Path:
        """Where ``submit`` sent a job's output."""
        return self.dir / f"{job}.log"

    def ssh(self, node: str, *argv: str, deadline_s: float = 30) -> str:
        """Run a command on a node, with the host key checked."""
        options = ("-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes")
        return self.run("ssh", *options, node, *argv, deadline_s=deadline_s).stdout

    def cancel_all(self, deadline_s: float = 120) -> None:
        """Cancel all jobs of this user and wait until none is left on a node."""
        self.run("scancel", f"--user={self.user}", check=False, deadline_s=deadline_s)
        self.wait_for(
            "the end of all jobs", lambda: not self.squeue(f"--user={self.user}"), deadline_s
        )


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The real cluster; skips, or fails where SLURMTOP_REQUIRE_CLUSTER=1 demands it."""
    reason = unavailable()
    if reason is not None:
        if os.environ.get("SLURMTOP_REQUIRE_CLUSTER") == "1":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    with alone() as found:
        yield found


@contextmanager
def alone() -> Iterator[Cluster]:
    """The cluster for one process only, mended and empty; all jobs are cancelled at the end."""
    layout = load_layout()
    # Two test runs at once would cancel each other's jobs and mend each other's faults.
    path = layout.shared / f"session-{os.geteuid()}.lock"
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    folder = Path(tempfile.mkdtemp(prefix="tests-", dir=layout.shared))
    try:
        _lock(handle, 900)
        found = Cluster(folder)
        with Faults(layout.fault_socket) as faults:
            faults.restore()
            found.cancel_all()
            faults.cancel_other()
            # What earlier runs left behind would stand on every screen for five minutes.
            faults.forget_ended()
            found.wait_for(
                "an empty queue",
                lambda: not found.squeue("-t", "all", "-o", "%i"),
                120,
            )
        yield found
        found.cancel_all()
    finally:
        os.close(handle)
        shutil.rmtree(folder, ignore_errors=True)


def _lock(handle: int, deadline_s: float) -> None:
    end = time.monotonic() + deadline_s
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                pytest.fail("another test run keeps the cluster", pytrace=False)
            time.sleep(0.5)
        else:
            return


@pytest.fixture
def faults(cluster: Cluster) -> Iterator[Faults]:
    """Faults for one test; whatever it broke is mended afterwards."""
    with Faults(cluster.layout.fault_socket) as client:
        yield client


@dataclass(frozen=True)
class Mine:
    """The jobs of one test, by a name that no other job has."""

    cluster: Cluster
    name: str

    def submit(
        self, script: str | Path = "sleep 900", *args: str, **options: str | int | bool
    ) -> str:
        """As :meth:`Cluster.submit`; the tasks of an array have a log each."""
        if "array" in options:
            options = {"output": f"{self.cluster.dir}/%A_%a.log", **options}
        return self.cluster.submit(script, *args, job_name=self.name, **options)


@pytest.fixture
def mine(cluster: Cluster) -> Iterator[Mine]:
    """Whatever is left of them afterwards is cancelled."""
    jobs = Mine(cluster, f"{cluster.tag}-{next(_numbers)}")
    yield jobs
    cluster.run("scancel", f"--user={cluster.user}", f"--name={jobs.name}", check=False)


@pytest.fixture(scope="session")
def time_limit_job(cluster: Cluster) -> str:
    """A job of four ranks that its time limit ends: that takes up to two minutes from here on.

    A limit is at least one minute and Slurm looks for those past it every 30 s, so the tests
    that run before the one that needs it ask for it, too; not those long before it, because
    Slurm forgets a job 300 s after its end.
    """
    return cluster.submit(
        f"echo begun; srun python3 {STEPS}", job_name=f"{cluster.tag}-limit", time=1, ntasks=4
    )
