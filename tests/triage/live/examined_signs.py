"""Signs that tell less than they seem to: a watchdog's line of the run before, a warning of those
who wait, a child that only watches. And one that tells more: a logger that is waited for."""

from dataclasses import replace
from datetime import timedelta

from tests.triage.builders import NOW
from tests.triage.live import examined_calls as c
from tests.triage.live.examined import Build, Do, waits
from tests.triage.live.examined_case import Case, at_pace, case
from tests.triage.live.examined_hangs import DONE, ELSEWHERE, H
from tests.triage.live.examined_patience import GAVE_UP
from tests.triage.live.examined_well import W

_GONE = Do(gone=True)
#: Of the run of now, which waits as long.
_AGAIN = GAVE_UP.split("\n", 1)[1].replace("981", "1")
_ABORTED = "srun: error: gpu01: task 1: Aborted (core dumped)\n"
_NFS = waits(
    "ckpt.py:31 load",
    *c.MAIN,
    state="D",
    wchan="nfs_wait_bit_killable",
    cpu=0.0,
    wakes=0.1,
)
_HOROVOD = waits(
    "@horovod/torch/mpi_ops.py:1250 synchronize",
    "@horovod/torch/optimizer.py:300 synchronize",
    "train.py:210 train_step",
    *c.MAIN,
    cpu=0.0,
)
_UPLOADS = waits(
    "%ssl.py:1166 read",
    "@urllib3/connectionpool.py:464 _make_request",
    "@botocore/httpsession.py:500 send",
    "up.py:40 upload_artifacts",
    *c.MAIN,
    wchan="poll_schedule_timeout",
    cpu=0.0,
)
_FSYNC = waits(*c.SAVE, state="D", wchan="nfs_wait_bit_killable", cpu=0.0, wakes=0.1)
_MONITOR = Do(argv=("python", "gpu_monitor.py"), cpu=0.05, wakes=10.0, wchan="hrtimer_nanosleep")
_SENDS = Do(
    name="wandb-core",
    argv=("/x/wandb-core", "--port"),
    cpu=0.3,
    read=20_000_000,
    chars=20_000_000,
    wchan="ep_poll",
    wakes=100.0,
)


def signs() -> tuple[Case, ...]:
    """All of it."""
    return (*_by_a_loop(), *_warned(), *_logger(), *_monitor())


def _by_a_loop() -> list[Case]:
    """``while ! srun python train.py; do :; done``: the watchdog's line is of the run before, which
    shows by the end of a task that is there."""
    b = Build(
        size=8,
        usual=c.STORE,
        odd={3: c.SSL_READ},
        launcher="srun",
        age=660.0,
        quiet=20.0,
        text=GAVE_UP + _ABORTED + "Loading dataset\n",
    )
    cast = replace(b, usual=c.gloo("broadcast_object_list", 40, "load"), odd={0: c.SSL_READ})
    # Nobody was started anew where the one that has ended is not there.
    left = replace(b, usual=c.REDUCE, age=10_800.0, odd={1: _GONE}, text=GAVE_UP + _ABORTED)
    again = replace(b, text=GAVE_UP + _ABORTED + "Loading dataset\n" + _AGAIN)
    well = f"{W} recovering"
    return [
        case("by-a-loop-downloads-11min", b, well),
        case("by-a-loop-downloads-20min", replace(b, age=1200.0), well),
        case("by-a-loop-first-loads-11min", cast, well),
        case("by-a-loop-reads-nfs-11min", replace(b, odd={5: _NFS}), well),
        case("by-a-loop-one-is-silent", replace(b, silent=["gpu02"]), well),
        case("by-a-loop-and-waited-in-vain-again", again, H, ELSEWHERE, {3}, True),
        case("watchdog-ended-one-for-good", left, H, ("missing-rank",), {1}, True),
    ]


def _stall(times: int) -> str:
    """Horovod's stall check, which says so each minute of any wait."""
    text = (
        ": W /tmp/pip/horovod/common/stall_inspector.cc:105] One or more tensors were submitted to"
        " be reduced, gathered or broadcasted by subset of ranks and are waiting for remainder of"
        " ranks for more than 60 seconds. This may indicate that different ranks are trying to"
        " submit different tensors or that only subset of ranks is submitting tensors, which will"
        " cause deadlock.\nMissing ranks:\n0: [allreduce.grad.w1, allreduce.grad.w2]\n"
    )
    at = (NOW + timedelta(seconds=61 * i) for i in range(times))
    return "step 980/5000 loss=2.1\n" + "".join(
        f"[{one:%Y-%m-%d %H:%M:%S}.123456{text}" for one in at
    )


def _warned() -> list[Case]:
    """Horovod warns of a wait, and waits on: rank 0 saves, uploads or evaluates."""
    b = Build(size=8, launcher="mpirun", usual=_HOROVOD, quiet=12.0, text=_stall(1))
    odd = {"upload": _UPLOADS, "fsync": _FSYNC, "evaluates": c.EVAL}
    thrice = replace(b, odd={0: _UPLOADS}, text=_stall(3))
    for_long = replace(b, odd={0: _UPLOADS}, text=_stall(12))
    return [
        *(case(f"warned-{name}", at_pace(replace(b, odd={0: do})), W) for name, do in odd.items()),
        case("warned-upload-3min", at_pace(thrice), W),
        case("warned-upload-12min", at_pace(for_long), H, None, {0}, True),
        case("warned-asleep", at_pace(replace(b, odd={0: c.SLEEPS})), H, ELSEWHERE, {0}, True),
    ]


def _logger() -> list[Case]:
    """The last rank stands in the logger's ``finish``, and waits for what the logger sends."""
    sends = replace(c.WANDB_FINISH, below=(_SENDS,))
    # It tries again and again, and nothing moves.
    tries = replace(c.WANDB_FINISH, below=(replace(_SENDS, read=0, chars=0),))
    # Who waits elsewhere is helped by no logger.
    asleep = replace(c.SLEEPS, below=(_SENDS,))
    b = Build(size=8, usual=_GONE, odd={0: sends}, text=DONE, quiet=400.0)
    beside = Build(size=8, usual=c.REDUCE, odd={0: asleep}, quiet=400.0)
    return [
        case("logger-sends-by-srun-7min", replace(b, launcher="srun"), W),
        case("logger-sends-7min", b, W),
        case("logger-sends-others-in-a-barrier-7min", replace(b, usual=c.END_BARRIER), W),
        case("logger-only-tries-7min", replace(b, odd={0: tries}), H, ("teardown-hang",), {0}),
        case("logger-sends-beside-a-sleep-7min", at_pace(beside), H, ELSEWHERE, {0}, True),
    ]


def _monitor() -> list[Case]:
    """Rank 3 has been stuck for 40 min at a step a second; its own monitor uses 5 % of a CPU."""
    odd = {
        "save": replace(c.SAVE_STUCK, below=(_MONITOR,)),
        "loader": c.loader(c.worker(wchan="pipe_read", cpu=0.0), _MONITOR),
        "sleep": replace(c.SLEEPS, below=(_MONITOR,)),
    }
    return [
        case(
            f"monitor-beside-{name}-40min",
            at_pace(Build(size=8, usual=c.REDUCE, odd={3: do}, quiet=2400.0)),
            "hung unknown",
            None,
            {3},
        )
        for name, do in odd.items()
    ]
