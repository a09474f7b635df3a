"""One run of the lab: submit, wait for steps, let the fault happen, look, end, mend."""

import os
import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.cluster.faults import FaultError, Faults
from tests.cluster.fixtures import Cluster
from tests.cluster.layout import ClusterError
from tests.lab.happening import INJECT, OPTIONS, by_rank
from tests.lab.job import USUAL, Mark, Run, Timing, Void, cancel
from tests.lab.looking import Asked, look, on_nodes
from tests.lab.plan import STEP, WORLD, Planned
from tests.lab.rows import Look, Row
from tests.lab.session import PY_SPY

JOBS = Path(__file__).parent / "jobs"
#: The ranks' own timeout, which destroys the evidence.
GROUP_TIMEOUT_S = 120
#: The letters of the rank's state that show that the fault is there.
LETTERS = {"sigstop": "T", "node-frozen": "T", "d-state": "D", "busy-loop": "R", "gil": "S"}
#: Hangs in which steps were made before, and no more are made.
_NO_STEPS = frozenset({"rendezvous-short", "slow-rank"})


def run_one(
    cluster: Cluster,
    faults: Faults,
    planned: Planned,
    folder: Path,
    *,
    timing: Timing = USUAL,
    dry: bool = False,
) -> Row:
    """Make one run, whatever comes of it; nothing of it is left when it returns.

    ``dry``: instead of slurmtop the driver looks itself, at states and stacks of all ranks.
    """
    run = Run(cluster=cluster, faults=faults, planned=planned, folder=folder, timing=timing)
    begun, looks, seen, void = time.monotonic(), list[Look](), dict[str, Any](), None
    with _ended_after(run):
        try:
            _begin(run)
            for asked in _looks(run, seen):
                if dry:
                    seen[asked.when] = _by_hand(run)
                else:
                    looks.append(look(cluster, faults, asked))
                _still_there(run, seen)
        except (Void, ClusterError, FaultError) as error:
            void = str(error)
        where = run.culprit
    return Row(
        case=planned.case,
        rank=planned.rank,
        sync=planned.sync,
        mode=planned.mode,
        seed=planned.seed,
        job=run.job,
        host=where.host if where else None,
        pid=where.pid if where and run.mark(f"rank{planned.rank}") else None,
        seen=seen,
        looks=tuple(looks),
        left=on_nodes(cluster, faults, lambda _argv: True),
        took_s=round(time.monotonic() - begun, 1),
        void=void,
    )


def _begin(run: Run) -> None:
    case = run.planned.case
    values = {
        "TRAIN": JOBS / "train.py",
        "FAULT": case,
        "FAULT_RANK": run.planned.rank,
        "FAULT_STEP": STEP,
        "SYNC": run.planned.sync,
        "GROUP_TIMEOUT_S": GROUP_TIMEOUT_S,
        "RESTARTS": 2 if case == "max-restarts" else 0,
    }
    compiler = run.cluster.dir / "cc1plus"
    if not compiler.exists():
        compiler.symlink_to("/usr/bin/python3")
    export = ",".join(["ALL", *(f"{name}={value}" for name, value in values.items())])
    run.job = run.cluster.submit(
        JOBS / "train.sh",
        job_name=f"{run.cluster.tag}-{case}",
        export=export,
        **OPTIONS.get(case, {}),
    )
    run.cluster.wait_state(run.job, {"RUNNING"}, 90)
    run.begun = time.time()


def _looks(run: Run, seen: dict[str, Any]) -> Iterator[Asked]:
    """When to look: after the fault, or twice while nothing is wrong."""
    planned, timing = run.planned, run.timing
    inject = INJECT.get(planned.case, by_rank)
    if not run.truth.healthy or planned.case in ("max-restarts", "requeue-appended"):
        inject(run)
        run.sleep_until(run.fault_at + timing.after_s)
        _took(run, seen)
        yield _asked(run, "fault", run.fault_at)
        return
    at_random = list[float]()
    if timing.random:
        at_random = [random.Random(f"{planned.seed} {planned.case}").uniform(2, 90)]
        seen["random_second"] = round(at_random[0], 1)
    # Whichever comes first; the silence is told by the ranks themselves.
    while at_random and time.time() < run.begun + at_random[0] and not _came(run):
        time.sleep(0.2)
    if at_random and (
        not _came(run) or run.begun + at_random[0] < run.fault_at + timing.middle_s - 12
    ):
        run.sleep_until(run.begun + at_random.pop())
        yield _asked(run, "random", run.begun)
    inject(run)
    run.sleep_until(run.fault_at + timing.middle_s)
    yield _asked(run, "mid", run.fault_at)
    for second in at_random:
        run.sleep_until(run.begun + second)
        yield _asked(run, "random", run.begun)


def _came(run: Run) -> bool:
    """Has that begun in whose middle is looked? Notes when."""
    mark = run.mark("quiet")
    if mark is not None:
        run.fault_at = mark.at
        return True
    return "keeping the allocation" in run.text or run.step >= STEP


def _asked(run: Run, when: str, since: float) -> Asked:
    return Asked(
        job=run.job,
        folder=run.folder,
        when=when,
        after_s=time.time() - since,
        before=run.fault_at + GROUP_TIMEOUT_S,
    )


def _took(run: Run, seen: dict[str, Any]) -> None:
    """Is the fault there, by what the driver sees itself?"""
    case, truth = run.planned.case, run.truth
    states = run.slurm
    seen["slurm"] = sorted(states)
    if not states <= set(truth.slurm):
        raise Void(f"Slurm's state is {sorted(states)}, not {truth.slurm}; {run.text[-1500:]}")
    seen["step"] = run.step
    if truth.slurm != ("RUNNING",) or truth.healthy:
        return
    seen["states"] = {}
    for number in range(WORLD):
        mark = run.mark(f"rank{number}")
        if mark is not None:
            seen["states"][str(number)] = _state(run, mark)
    letter = seen["states"].get(str(run.planned.rank))
    if case in LETTERS and letter != LETTERS[case]:
        raise Void(f"the rank is in state {letter}, not {LETTERS[case]}")


def _state(run: Run, mark: Mark) -> str:
    found = [one for one in run.faults.processes(mark.host) if one.pid == mark.pid]
    return found[0].state if found else ""


def _by_hand(run: Run) -> dict[str, str]:
    """What ``ps`` and py-spy say of each rank; lasts as long as a triage may."""
    begun, told = time.time(), {}
    for number in range(WORLD):
        mark = run.mark(f"rank{number}")
        if mark is None or run.planned.case == "nic-cut":
            continue
        dump = f"timeout 5 {PY_SPY} dump --nonblocking --pid {mark.pid} 2>&1"
        ps = f"ps -L -o stat=,wchan:30=,comm= -p {mark.pid}"
        try:
            told[str(number)] = run.cluster.ssh(mark.host, f"{ps}; {dump}; true")
        except (ClusterError, subprocess.TimeoutExpired) as error:
            told[str(number)] = str(error)
    run.sleep_until(begun + 8)
    return told


def _still_there(run: Run, seen: dict[str, Any]) -> None:
    """A hang has made no step from before the look to after it; one that is well goes on."""
    if "step" not in seen:
        return
    made = run.step - int(seen["step"])
    seen["steps_made"] = made
    if run.truth.state == "hung" and run.planned.case not in _NO_STEPS and made:
        raise Void(f"it made {made} steps while it was looked at")


@contextmanager
def _ended_after(run: Run) -> Iterator[None]:
    """Whatever happens: mended, cancelled, and nothing on the nodes."""
    try:
        yield
    finally:
        for mend in reversed(run.mend):
            with suppress(FaultError, ClusterError):
                mend()
        _free(run.cluster, run.job)
        if run.job:
            cancel(run.cluster, run.job)
        _wait_clean(run)


def _free(cluster: Cluster, job: str) -> None:
    """Let whoever waits for one of the job's FIFOs go on."""
    if not job:
        return
    paths = [*cluster.dir.glob(f"*.fifo-{job}"), *cluster.dir.glob(f"checkpoint-*-{job}/*")]
    for path in paths:
        if path.is_fifo():
            for flags in (os.O_WRONLY, os.O_RDONLY):
                with suppress(OSError):
                    os.close(os.open(path, flags | os.O_NONBLOCK))


def _wait_clean(run: Run) -> None:
    with suppress(ClusterError):
        run.cluster.wait_for(
            "nodes without a process of the job",
            lambda: not on_nodes(run.cluster, run.faults, lambda _argv: True),
            20,
        )
