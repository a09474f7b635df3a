"""Jobs that wait for work, have none, begin anew, or cannot be judged."""

from dataclasses import replace

from tests.triage.live import examined_calls as c
from tests.triage.live.examined import Build, Do, waits
from tests.triage.live.examined_case import Case, case
from tests.triage.live.examined_hangs import FROZEN, Sruns

W = "healthy unknown"
WI = "healthy unknown idle"
ANY = ("healthy", None, "slow-run", "slow-init")
HOT, COLD = (99.0, 640.0), (100.0, 110.0)
FORWARDS = replace(c.ITEM, then=c.FORWARD.calls)
POLLS = waits(
    "watch_ckpt.py:20 wait_for_new", "watch_ckpt.py:60 main", "watch_ckpt.py:70 <module>", **c.NAP
)
VLLM = waits(
    "@vllm/distributed/device_communicators/shm_broadcast.py:450 acquire_read",
    "@vllm/v1/executor/multiproc_executor.py:600 worker_busy_loop",
    "%multiprocessing/process.py:108 run",
    "%multiprocessing/process.py:314 _bootstrap",
    "%multiprocessing/spawn.py:122 spawn_main",
    "job.py:1 <module>",
    state="R",
    wchan="0",
    cpu=0.9,
)
BASH = Do(name="bash", argv=("bash",), wchan="do_wait", cpu=0.0)
SHELL = Do(name="bash", argv=("/bin/bash", "-l"), wchan="n_tty_read", cpu=0.0)
JUPYTER = waits(
    "%selectors.py:468 select",
    "%asyncio/base_events.py:607 run_forever",
    "@jupyterlab/labapp.py:940 main",
    "job.py:8 <module>",
    wchan="ep_poll",
    cpu=0.01,
    argv=("/opt/conda/bin/python", "/opt/conda/bin/jupyter-lab"),
)


def odd() -> list[Case]:
    b, spin, n = Build, c.ITEM, None
    return [
        case(
            "vllm-idle-8",
            b(
                size=8,
                usual=VLLM,
                launcher="srun",
                per=8,
                quiet=3000.0,
                text="Application startup complete.\n",
            ),
            WI,
            ANY,
        ),
        case(
            "vllm-idle-gpu-8",
            b(
                size=8,
                usual=VLLM,
                launcher="srun",
                per=8,
                quiet=3000.0,
                gpu=(0.0, 95.0),
                text="Application startup complete.\n",
            ),
            WI,
            ANY,
        ),
        case(
            "gloo-idle-gpu-8",
            b(
                size=8,
                usual=replace(c.REDUCE, then=c.FORWARD.calls, cpu=0.5),
                quiet=300.0,
                gpu=(3.0, 95.0),
            ),
            W,
            ANY,
        ),
        case("sruns-moves-16", Sruns(size=16, usual=FORWARDS, quiet=300.0), W, ANY),
        case("sruns-shutdown-8", Sruns(size=8, usual=c.SAVES, quiet=20.0), W, ANY),
        case(
            "poll-ckpt-1",
            b(size=1, usual=POLLS, quiet=1200.0, argv=("python", "watch_ckpt.py")),
            WI,
            (*ANY, "rank-elsewhere"),
        ),
        case("serial-item-1", b(size=1, usual=spin, quiet=120.0), W, ANY),
        case(
            "jupyter-1",
            b(size=1, usual=JUPYTER, launcher="none", quiet=4000.0, text="", argv=JUPYTER.argv),
            WI,
            ANY,
        ),
        case(
            "shell-1",
            b(size=1, usual=SHELL, launcher="none", quiet=4000.0, text="", argv=SHELL.argv),
            WI,
            ANY,
        ),
        case(
            "batch-shell-done-1",
            b(
                size=1,
                usual=BASH,
                launcher="none",
                quiet=4000.0,
                text="Training finished\n",
                argv=BASH.argv,
            ),
            WI,
            (*ANY, "teardown-hang"),
        ),
        case(
            "agents-only-8",
            b(size=8, usual=Do(gone=True), quiet=20.0, attempt=1),
            "healthy unknown recovering idle",
            (*ANY, "slurm-requeue", "task-exit", "missing-rank"),
        ),
        case(
            "restarted-8",
            b(size=8, usual=c.IMPORT, age=40.0, attempt=2, quiet=30.0),
            "healthy unknown recovering",
            ANY,
        ),
        case("stranger-8", b(size=8, usual=spin, readable=False, quiet=600.0), W, ANY),
        case(
            "stranger-gloo-64",
            b(size=64, per=8, usual=c.REDUCE, readable=False, stacks=False, quiet=2000.0),
            W,
            ANY,
        ),
        case(
            "half-silent-16",
            b(size=16, usual=spin, silent=["gpu02", "gpu04"], grew=True, steps=True, quiet=2.0),
            "healthy",
            ANY,
        ),
        case(
            "one-silent-quiet-16", b(size=16, usual=FORWARDS, silent=["gpu02"], quiet=60.0), W, ANY
        ),
        case(
            "all-silent-16",
            b(size=16, usual=spin, silent=[f"gpu0{i}" for i in range(1, 5)], quiet=700.0),
            W,
            ANY,
        ),
        case(
            "one-look-4",
            b(size=4, usual=c.REDUCE, odd={2: c.SLEEPS}, looks=1),
            "unknown healthy",
            n,
            {2},
        ),
        case(
            "two-seconds-4",
            b(size=4, usual=c.REDUCE, odd={2: c.SLEEPS}, apart=2.0),
            "unknown healthy",
            n,
            {2},
        ),
        case(
            "suspended-8",
            b(size=8, usual=FROZEN, slurm="SUSPENDED"),
            "unknown healthy pending idle",
            n,
        ),
        case(
            "mpi-steps-8",
            b(size=8, launcher="mpirun", usual=spin, grew=True, steps=True, quiet=1.0),
            "healthy",
            ANY,
        ),
        case(
            "sleep-few-4",
            b(size=4, usual=c.SLEEPS, quiet=90.0, per=1),
            "healthy unknown hung",
            (*ANY, "data-loader-stuck", "rank-elsewhere"),
        ),
    ]
