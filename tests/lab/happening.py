"""How the fault of each case comes about, or the silence of a healthy one; seen from outside."""

import time
from collections.abc import Callable

from tests.cluster.faults import FaultError
from tests.lab.job import Mark, Run, Void, cancel
from tests.lab.plan import STEP, WORLD

OOM_BYTES = 256 * 2**20


def by_rank(run: Run) -> None:
    """The rank does it by itself, and tells."""
    run.wait_for("the fault", lambda: run.marked)
    mark = run.mark("fault")
    run.fault_at = mark.at if mark else time.time()


def _steps(run: Run) -> None:
    run.wait_for(f"step {STEP}", lambda: run.step >= STEP and run.culprit is not None)
    run.fault_at = time.time()


def _signal(name: str) -> Callable[[Run], None]:
    def send(run: Run) -> None:
        _steps(run)
        who = _there(run)
        run.cluster.ssh(who.host, "kill", f"-{name}", str(who.pid))
        run.fault_at = time.time()

    return send


def _there(run: Run) -> Mark:
    who = run.culprit
    if who is None:
        raise Void(f"rank {run.planned.rank} did not tell where it is")
    return who


def _freeze(run: Run) -> None:
    _steps(run)
    host = _there(run).host
    run.mend.append(lambda: run.faults.thaw(host))
    run.faults.freeze(host)
    run.fault_at = time.time()


def _cut(run: Run) -> None:
    _steps(run)
    host = _there(run).host
    run.mend.append(lambda: run.faults.link_up(host))
    run.faults.link_down(host)
    run.fault_at = time.time()


def _starve(run: Run) -> None:
    """Into a small memory group with it, then it may go on."""
    by_rank(run)
    who = _there(run)
    try:
        run.faults.limit_memory(who.host, who.pid, OOM_BYTES)
    except FaultError as error:
        raise Void(f"no memory limit can be set here: {error}") from error
    (run.cluster.dir / f"limited-{run.job}").touch()
    run.fault_at = time.time()


def _quiet(run: Run) -> None:
    run.wait_for("the silence", lambda: run.mark("quiet") is not None)
    mark = run.mark("quiet")
    run.fault_at = mark.at if mark else time.time()


def _buffered(run: Run) -> None:
    """No step is told: a while after all ranks are there, they have made some."""
    run.wait_for("all ranks", lambda: all(run.mark(f"rank{number}") for number in range(WORLD)))
    run.fault_at = time.time()


def _idle(run: Run) -> None:
    run.wait_for("the end of the training", lambda: "keeping the allocation" in run.text)
    run.fault_at = time.time()


def _ended(run: Run) -> None:
    """It is Slurm that ends it."""
    _steps(run)
    run.wait_for("its end", lambda: bool(run.slurm & set(run.truth.slurm[:1])), 180)
    run.fault_at = time.time()


def _preempt(run: Run) -> None:
    _steps(run)
    first = run.cluster.submit("sleep 60", job_name=f"{run.cluster.tag}-first", exclusive=True)
    run.mend.append(lambda: cancel(run.cluster, first))
    run.wait_for("its end", lambda: bool(run.slurm & set(run.truth.slurm[:1])), 90)
    run.fault_at = time.time()


def _requeued(run: Run) -> None:
    """Back from the queue, and at work again."""
    run.wait_for("the fault", lambda: run.marked)
    run.wait_for("its return", lambda: "back into the queue" in run.text)
    before = run.steps_told
    run.wait_for("new steps", lambda: run.steps_told >= before + 3, 150)
    run.fault_at = time.time()


def _restarted(run: Run) -> None:
    """Its launcher has started all ranks again, and they are at work again."""
    by_rank(run)
    before = run.steps_told
    run.wait_for("new steps", lambda: run.steps_told >= before + 3, 60)


INJECT: dict[str, Callable[[Run], None]] = {
    "sigstop": _signal("STOP"),
    "sigkill": _signal("KILL"),
    "node-frozen": _freeze,
    "nic-cut": _cut,
    "host-oom": _starve,
    "time-limit": _ended,
    "preemption": _preempt,
    "max-restarts": _restarted,
    "requeue-appended": _requeued,
    "order-deadlock": by_rank,
    "long-first-step": _quiet,
    "compile": _quiet,
    "evaluation": _quiet,
    "slow-checkpoint": _quiet,
    "buffered-log": _buffered,
    "uneven-data": _steps,
    "steady": _steps,
    "idle-shell": _idle,
}
#: Options of sbatch beside those that all have.
OPTIONS: dict[str, dict[str, str | int | bool]] = {
    "time-limit": {"time": 1},
    "preemption": {"partition": "low", "no_requeue": True},
    "requeue-appended": {"requeue": True, "open_mode": "append"},
}
