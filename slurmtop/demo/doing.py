"""What the processes of the simulated jobs do at a moment: where they stand, and what they use.

A training goes round in a few places; what it has used grows with the cluster's time. In the job
that hangs everybody stands in the same collective but one, who waits for a worker of its data
loader, and that one for the shared file system.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from slurmtop.demo.gpus import ASIDE, hangs
from slurmtop.demo.jobs import DemoJob
from slurmtop.demo.processes import HZ, Kind, Process
from slurmtop.demo.specs import scatter
from slurmtop.demo.values import View

VENV = "/opt/venv/lib/python3.11"
TORCH = f"{VENV}/site-packages/torch"
#: (function, file, line), innermost first.
Call = tuple[str, str, int]
SHARD = "data/shard-000731.tar"
#: The worker of the data loader that the odd rank waits for.
STUCK_WORKER = 2
_STATES_SEED = 13


@dataclass(frozen=True, slots=True)
class Doing:
    """At this moment. ``cpu`` is the share of one CPU, ``switches`` and the bytes are by second;
    ``still_t`` is when all that stopped growing, None while it goes on. ``fd`` is the file that the
    system call is about, ``path`` where that leads."""

    state: str = "S"
    wchan: str = ""
    call: str = "running"
    fd: int | None = None
    path: str = ""
    cpu: float = 0.0
    switches: float = 0.0
    read_s: int = 0
    written_s: int = 0
    still_t: int | None = None
    calls: tuple[Call, ...] = ()
    gil: bool = False


def doing(view: View, one: Process) -> Doing:
    """What ``one`` does now."""
    if one.kind is Kind.SHELL:
        return Doing(wchan="do_wait", call="61")
    if one.kind is Kind.SRUN:
        return Doing(wchan="poll_schedule_timeout.constprop.0", call="7", switches=0.2)
    if one.kind is Kind.AGENT:
        return Doing(
            wchan="hrtimer_nanosleep", call="230", cpu=0.003, switches=10.0, calls=_AGENT, gil=False
        )
    stuck = hangs(view, one.job)
    if one.kind is Kind.WORKER:
        return _worker(one, stuck)
    return _stuck_rank(one) if stuck else _rank(view, one)


def _hung_t(job: DemoJob) -> int:
    return (job.start_t or 0) + (job.spec.hang_s or 0)


def _stuck_rank(one: Process) -> Doing:
    script = script_of(one)
    if one.rank == ASIDE:
        return Doing(
            wchan="poll_schedule_timeout.constprop.0",
            call="7",
            switches=0.2,
            still_t=_hung_t(one.job),
            calls=(*_LOADER, ("next_batch", script, 88), *_outer(script)),
        )
    # It polls the device without a pause.
    return Doing(
        state="R", cpu=0.99, calls=(*_REDUCE, ("step", script, 118), *_outer(script)), gil=False
    )


def _worker(one: Process, stuck: bool) -> Doing:
    if stuck and one.rank == ASIDE and one.worker == STUCK_WORKER:
        return Doing(
            state="D",
            wchan="rpc_wait_bit_killable",
            call="0",
            fd=9,
            path=f"{one.job.spec.workdir}/{SHARD}",
            still_t=_hung_t(one.job),
        )
    if stuck:
        still = _hung_t(one.job)
        return Doing(wchan="poll_schedule_timeout.constprop.0", call="7", still_t=still)
    return Doing(wchan="poll_schedule_timeout.constprop.0", call="7", cpu=0.3, switches=30.0,
                 read_s=90_000_000)  # fmt: skip


def _rank(view: View, one: Process) -> Doing:
    script = script_of(one)
    at = scatter(view.t * 31 + one.pid * _STATES_SEED, 4)
    calls = (
        (("forward", script.replace("train", "model"), 204), ("step", script, 109)),
        (("backward", f"{TORCH}/_tensor.py", 581), ("step", script, 112)),
        (("step", f"{TORCH}/optim/adamw.py", 243), ("step", script, 121)),
        (("__next__", f"{TORCH}/utils/data/dataloader.py", 708), ("next_batch", script, 88)),
    )[at]
    return Doing(
        state="R",
        cpu=0.93,
        switches=240.0,
        read_s=4_000_000,
        written_s=900,
        calls=(*calls, *_outer(script)),
        gil=at == 0,
    )


def script_of(one: Process) -> str:
    """The program that a rank runs, by its whole path."""
    return f"{one.job.spec.workdir}/{one.argv[-1]}"


def _outer(script: str) -> tuple[Call, ...]:
    return (("main", script, 143), ("<module>", script, 160))


_REDUCE: tuple[Call, ...] = (
    ("all_reduce", f"{TORCH}/distributed/distributed_c10d.py", 2806),
    ("wrapper", f"{TORCH}/distributed/c10d_logger.py", 81),
)
_LOADER: tuple[Call, ...] = (
    ("select", "/usr/lib/python3.11/selectors.py", 415),
    ("wait", "/usr/lib/python3.11/multiprocessing/connection.py", 947),
    ("_poll", "/usr/lib/python3.11/multiprocessing/connection.py", 440),
    ("poll", "/usr/lib/python3.11/multiprocessing/connection.py", 257),
    ("get", "/usr/lib/python3.11/multiprocessing/queues.py", 113),
    ("_try_get_data", f"{TORCH}/utils/data/dataloader.py", 1251),
    ("_get_data", f"{TORCH}/utils/data/dataloader.py", 1415),
    ("_next_data", f"{TORCH}/utils/data/dataloader.py", 1448),
    ("__next__", f"{TORCH}/utils/data/dataloader.py", 708),
)
_AGENT: tuple[Call, ...] = (
    ("_invoke_run", f"{TORCH}/distributed/elastic/agent/server/api.py", 870),
    ("run", f"{TORCH}/distributed/elastic/agent/server/api.py", 696),
    ("launch_agent", f"{TORCH}/distributed/launcher/api.py", 258),
    ("main", f"{TORCH}/distributed/run.py", 905),
    ("<module>", "/opt/venv/bin/torchrun", 8),
)


@dataclass(frozen=True, slots=True)
class Used:
    """What a process has used since it began."""

    ticks: int
    read_chars: int
    written_chars: int
    read_bytes: int
    written_bytes: int
    switches: int


def used(view: View, one: Process, now: Doing, later_s: float = 0.0) -> Used:
    """Up to now, or ``later_s`` later. Before it stood still it worked as a training does."""
    until = view.t + later_s if now.still_t is None else float(now.still_t)
    ran = max(0.0, until - (one.job.start_t or 0))
    waits = max(0.0, view.t + later_s - until)
    worked = Doing(cpu=0.9, switches=200.0, read_s=4_000_000) if now.still_t is not None else now
    return Used(
        ticks=int((ran * worked.cpu + waits * now.cpu) * HZ),
        read_chars=int(ran * worked.read_s * 1.1),
        written_chars=int(ran * worked.written_s),
        read_bytes=int(ran * worked.read_s),
        written_bytes=int(ran * worked.written_s),
        switches=int(ran * worked.switches + waits * now.switches),
    )


def threads_of(one: Process, now: Doing) -> Sequence[tuple[int, str, str, str]]:
    """(id, name, state, wchan) of some threads, the main one first."""
    out = [(one.pid, one.name[:15], now.state, now.wchan)]
    if one.kind is Kind.RANK:
        waits = "futex_wait_queue"
        out += [
            (one.pid + 200_000, "pt_autograd_0", "S", waits),
            (one.pid + 400_000, "cuda-EvtHandlr", "S", "poll_schedule_timeout.constprop.0"),
        ]
    return out
