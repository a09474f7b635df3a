"""Waits that end by themselves, sooner or later: two looks prove nothing, a long silence does."""

from dataclasses import replace

from tests.triage.live import examined_calls as c
from tests.triage.live.examined import Build, Do, stack, waits
from tests.triage.live.examined_beside import with_thread
from tests.triage.live.examined_case import Case, case
from tests.triage.live.examined_hangs import ELSEWHERE, HU, LOADER, H
from tests.triage.live.examined_well import W

FROM_S3 = c.worker(wchan="wait_woken", cpu=0.0)
ASLEEP = c.worker(**c.NAP)
RESULT = ("%threading.py:324 wait", "%concurrent/futures/_base.py:451 result")
THREAD = ("%concurrent/futures/thread.py:58 run", "%threading.py:982 run")
WRITES = stack("@torch/distributed/checkpoint/filesystem.py:300 _write_item", *THREAD)
ASYNC_SAVE = waits(
    *RESULT,
    "@torch/distributed/checkpoint/state_dict_saver.py:300 wait_prev",
    "train.py:290 save_checkpoint",
    *c.MAIN,
    cpu=0.0,
    more=(("ckpt", WRITES),),
)
RAY_GET = waits(
    "@ray/_private/worker.py:900 get_objects",
    "@ray/_private/worker.py:2700 get",
    "rollout.py:40 get",
    *c.MAIN,
    cpu=0.0,
)
GRPC = waits(
    "%threading.py:324 wait",
    "@grpc/_common.py:150 wait",
    "@grpc/_channel.py:1181 result",
    "client.py:30 fetch",
    *c.MAIN,
    cpu=0.0,
)
BACKS_OFF = stack(
    "@tenacity/nap.py:31 sleep",
    "@tenacity/__init__.py:400 __call__",
    "reward.py:30 call_judge",
    *THREAD,
)
REWARD = waits(*RESULT, "reward.py:70 score_batch", *c.MAIN, cpu=0.0, more=(("pool", BACKS_OFF),))
ENV = Do(wchan="wait_woken", cpu=0.0, wakes=0.1)
SPAWNED = replace(
    ENV,
    argv=(
        "python",
        "-c",
        "from multiprocessing.spawn import spawn_main; spawn_main(pipe_handle=7)",
        "--multiprocessing-fork",
    ),
)
ENVS = waits(
    "%multiprocessing/connection.py:379 _recv",
    "%multiprocessing/connection.py:250 recv",
    "vecenv.py:90 step_wait",
    "rollout.py:20 collect",
    *c.MAIN,
    wchan="unix_stream_read_generic",
    cpu=0.0,
    wakes=0.1,
    file="socket:[8812]",
    below=(ENV, ENV),
)
SPAWNED_ENVS = replace(ENVS, wchan="anon_pipe_read", file="pipe:[991]", below=(SPAWNED, SPAWNED))
UPLOADER = Do(name="wandb-core", argv=("wandb-core",), wchan="ep_poll", cpu=0.3, write=40_000)
ARTIFACT = waits(
    "%threading.py:324 wait",
    "@wandb/sdk/lib/mailbox.py:131 wait",
    "@wandb/sdk/wandb_run.py:1700 log_artifact",
    "train.py:220 train_step",
    *c.MAIN,
    cpu=0.0,
    below=(UPLOADER,),
)
ORBAX = waits(
    "%threading.py:324 wait",
    "@orbax/checkpoint/async_checkpointer.py:200 wait_until_finished",
    "train.py:290 save",
    *c.MAIN,
    cpu=0.0,
    more=(("save", stack("@tensorstore/x.py:3 result", "%threading.py:982 run")),),
)
LOSS = waits("@jax/_src/array.py:628 _value", "train.py:215 train_step", *c.MAIN, cpu=0.05, wakes=0)
SWAP = waits(
    "@deepspeed/runtime/swap_tensor/async_swapper.py:90 wait",
    "@deepspeed/runtime/zero/stage3.py:2000 step",
    *c.MAIN,
    cpu=0.0,
)
FSYNC = waits(
    "ckpt.py:31 _fsync",
    "train.py:290 save_checkpoint",
    *c.MAIN,
    state="D",
    wchan="nfs_wait_bit_killable",
    cpu=0.0,
    wakes=0.1,
)
VFORK = replace(FSYNC, wchan="kernel_clone")
ROOT = c.gloo("broadcast_object_list", 250)
SLEEP = Do(name="sleep", argv=("sleep", "30"), cpu=0.0, wakes=0.0, wchan="hrtimer_nanosleep")
MONITOR = Do(
    name="sh",
    argv=("sh", "-c", "while true; do nvidia-smi >> gpu.log; sleep 30; done"),
    wchan="do_wait",
    cpu=0.0,
    wakes=0.1,
    below=(SLEEP,),
)
ASKS = waits(
    "%ssl.py:1166 read",
    "up.py:40 upload",
    *c.MAIN,
    wchan="poll_schedule_timeout",
    cpu=0.0,
    wakes=0.1,
    below=(MONITOR,),
)
# Looks again and again, and uses next to nothing.
LOOKS = waits(
    "data.py:41 get_shard",
    "data.py:77 __iter__",
    *c.MAIN,
    wchan="hrtimer_nanosleep",
    cpu=0.01,
    wakes=10.0,
)
BLOCKING = waits("train.py:260 step", *c.MAIN, wchan="hrtimer_nanosleep", cpu=0.015, wakes=100.0)
RETRIES = Do(
    calls=stack("data.py:44 fetch_with_retry", "data.py:60 __iter__", *c.MAIN),
    then=stack(
        "%socket.py:836 create_connection",
        "@urllib3/util/connection.py:70 create_connection",
        "@requests/adapters.py:667 send",
        "data.py:40 fetch_with_retry",
        "data.py:60 __iter__",
        *c.MAIN,
    ),
    wchan="hrtimer_nanosleep",
    cpu=0.01,
)
STALE_LOCK = replace(c.FILELOCK, cpu=0.01, wakes=20.0)


def patience() -> list[Case]:
    return [*_short(), *_stays(), *_long()]


def _of(
    usual: Do, odd: dict[int, Do] | None = None, *, quiet: float | None, bare: bool = False
) -> Build:
    return Build(size=8, usual=usual, odd=odd or {}, quiet=quiet, stacks=not bare)


def _short() -> list[Case]:
    """Quiet for 12 s: nobody is hung."""
    odd: dict[str, tuple[Do, dict[int, Do]]] = {
        "pinned-s3-8": (c.ITEM, {3: c.loader(FROM_S3, FROM_S3, pinned=True)}),
        "ray-get-8": (ROOT, {0: RAY_GET}),
        "grpc-8": (c.REDUCE, {3: GRPC}),
        "reward-8": (ROOT, {0: REWARD}),
        "envs-8": (c.REDUCE, {3: ENVS}),
        "envs-spawned-8-bare": (c.REDUCE, {3: SPAWNED_ENVS}),
        "artifact-8": (c.ITEM, {7: ARTIFACT}),
        "nvme-swap-8": (c.ZERO3_FETCH, {3: SWAP}),
        "fsync-8": (c.GLOO_BARRIER, {0: FSYNC}),
        "fsync-8-bare": (c.GLOO_BARRIER, {0: FSYNC}),
        "upload-monitor-8-bare": (c.REDUCE, {0: ASKS}),
        "lock-file-8": (c.BARRIER, {3: STALE_LOCK}),
    }
    save = _of(c.BARRIER, {5: ASYNC_SAVE}, quiet=12.0)
    orbax = replace(_of(LOSS, {3: ORBAX}, quiet=12.0), per=1, launcher="srun")
    return [
        *(
            case(name, _of(usual, those, quiet=12.0, bare=name.endswith("-bare")), W)
            for name, (usual, those) in odd.items()
        ),
        case("async-thread-8", with_thread(save, [5], wchan="nfs_wait_bit_killable"), W),
        case("orbax-8", orbax, W),
        case("fsync-no-log-8", _of(c.GLOO_BARRIER, {0: FSYNC}, quiet=None), W),
    ]


#: What a watchdog prints after the timeout of its group: no life, and no wait is short then.
GAVE_UP = (
    "step 980/5000 loss=2.1\n"
    "[rank1]:[E504 22:01:01.211614608 ProcessGroupNCCL.cpp:629] [Rank 1] Watchdog caught collective"
    " operation timeout: WorkNCCL(SeqNum=981, OpType=BROADCAST, NumelIn=1, NumelOut=1,"
    " Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n"
)


def _stays() -> list[Case]:
    """As quiet as these, and a hang all the same."""
    stuck = ("io-stuck",)
    pinned = c.loader(ASLEEP, c.IDLE_WORKER, pinned=True)
    fifo = replace(c.SAVE_STUCK, wchan="wait_for_partner")
    vfork, bare = (_of(c.REDUCE, {2: VFORK}, quiet=22.0, bare=bare) for bare in (False, True))
    loader = _of(c.REDUCE, {2: pinned}, quiet=22.0)
    saves = _of(c.REDUCE, {2: fifo}, quiet=22.0)
    return [
        case("vfork-8", vfork, H, stuck, {2}, True),
        case("vfork-8-bare", bare, H, stuck, {2}, True),
        case("pinned-asleep-8", loader, H, LOADER, {2}, True),
        case("fifo-8", saves, H, ("checkpoint-stuck",), {2}, True),
    ]


def _long() -> list[Case]:
    """Quiet for 25 min: nothing of it is well any more."""
    long, spoken = 1500.0, ("uses a CPU", "stacks would tell")
    fsync = _of(c.REDUCE, {0: FSYNC}, quiet=long)
    ray = _of(ROOT, {0: RAY_GET}, quiet=long)
    told = replace(_of(ROOT, {0: RAY_GET}, quiet=20.0), text=GAVE_UP)
    ends = replace(_of(c.DESTROY, quiet=long), text="step 5000/5000\nTraining finished\n")
    lock = _of(c.BARRIER, {3: STALE_LOCK}, quiet=long)
    return [
        case("fsync-late-8", fsync, H, ("io-stuck",), {0}, True),
        case("ray-get-late-8", ray, H, ELSEWHERE, {0}, True),
        case("ray-get-told-8", told, H, ELSEWHERE, {0}, True),
        case("looks-8", _of(c.REDUCE, {3: LOOKS}, quiet=long), HU, None, {3}),
        case("blocking-wait-8", _of(BLOCKING, quiet=long), HU),
        case("destroy-spins-8", ends, HU),
        case("retries-8", _of(c.REDUCE, {5: RETRIES}, quiet=long), HU, None, {5}),
        case("stale-lock-8", lock, HU, None, {3}, unsaid=spoken),
    ]
