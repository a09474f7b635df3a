"""What stands beside a main thread, or in a name of its functions, and says nothing of a rank."""

from collections.abc import Callable
from dataclasses import replace

from slurmtop.model.facts import JobFacts
from slurmtop.model.probe import NodeProbe
from slurmtop.model.process import NodeProcess
from tests.triage.live import examined_calls as c
from tests.triage.live.examined import Build, Do, spins, stack, waits
from tests.triage.live.examined_beside import with_thread
from tests.triage.live.examined_case import Case, case, each_probe
from tests.triage.live.examined_hangs import ELSEWHERE, HU, LOADER, STUCK_WORKER, H
from tests.triage.live.examined_well import HOT, W

BEAT = stack("hb.py:20 beat", "%threading.py:982 run")
BEATS = stack("%http/client.py:286 _read_status", "hb.py:22 beat", "%threading.py:982 run")
SLEEPS = replace(c.SLEEPS, more=(("hb", BEAT),))
SAVE_STUCK = replace(c.SAVE_STUCK, more=(("hb", BEAT),))
QUEUE = waits(
    "%threading.py:324 wait",
    "%queue.py:171 get",
    "data.py:55 next_item",
    *c.MAIN,
    cpu=0.0,
    more=(("hb", BEAT),),
)
HOOK = stack(
    f"{c.C10D}:4122 reduce_scatter_tensor",
    c.LOGGER,
    "@torch/distributed/fsdp/_runtime_utils.py:850 _reduce_grad",
    "@torch/distributed/fsdp/_runtime_utils.py:770 _post_backward_hook",
    "@torch/utils/_contextlib.py:116 decorate_context",
)
FSDP = replace(
    c.BACKWARD, state="S", cpu=0.0, wchan="futex_wait_queue", more=(("pt_autograd_0", HOOK),)
)
CLEANS = waits(
    "data.py:31 cleanup_text",
    "data.py:60 __getitem__",
    "@torch/utils/data/_utils/fetch.py:52 fetch",
    "@torch/utils/data/dataloader.py:631 __next__",
    "train.py:201 train_step",
    *c.MAIN,
    **c.NAP,
)
CACHE = spins(f"{c.C10D}:4159 barrier", c.LOGGER, "train.py:50 cleanup_cache", *c.MAIN)
RECOMPUTES = waits("blocks.py:44 checkpoint_forward", "train.py:205 train_step", *c.MAIN, **c.NAP)
LOOP = replace(
    c.LOOP,
    calls=stack("data.py:44 validate_batch", "train.py:205 train_step", *c.MAIN),
    then=stack("data.py:45 validate_batch", "train.py:205 train_step", *c.MAIN),
)
HOROVOD = waits(
    "@horovod/torch/mpi_ops.py:1250 synchronize",
    "@horovod/torch/optimizer.py:300 synchronize",
    "train.py:210 train_step",
    *c.MAIN,
    wchan="hrtimer_nanosleep",
    cpu=0.04,
    wakes=900.0,
)
BUFFERS = waits(
    "@torch/nn/parallel/distributed.py:1900 _distributed_broadcast_coalesced",
    "@torch/nn/parallel/distributed.py:1850 _sync_buffers",
    "@torch/nn/parallel/distributed.py:1500 _pre_forward",
    "@torch/nn/modules/module.py:1747 _call_impl",
    "train.py:205 train_step",
    *c.MAIN,
    cpu=0.0,
)


def lightning(first: Do) -> Callable[[], JobFacts]:
    """Rank 0 does ``first``, and has started the other ranks itself."""

    build = Build(size=4, usual=c.ITEM, odd={0: first}, launcher="none", step="batch")
    return each_probe(build, lambda probe: _started(probe, build))


def _started(probe: NodeProbe, build: Build) -> NodeProbe:
    assert probe.processes is not None
    local = {build.pid(rank): rank for rank in range(1, build.size)}

    def below(one: NodeProcess) -> NodeProcess:
        if one.pid not in local:
            return one
        told = {"SLURM_JOB_ID": "4711", "NODE_RANK": "0", "WORLD_SIZE": str(build.size)}
        told |= {"LOCAL_RANK": str(local[one.pid])}
        told |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
        return replace(one, ppid=build.pid(0), env=tuple(sorted(told.items())))

    found = tuple(map(below, probe.processes.processes))
    return replace(probe, processes=replace(probe.processes, processes=found))


def threads() -> list[Case]:
    return [*_beside(), *_names()]


def _of(usual: Do, odd: dict[int, Do] | None = None, *, bare: bool = False) -> Build:
    """A training of eight, quiet for 25 min."""
    return Build(size=8, usual=usual, odd=odd or {}, quiet=1500.0, stacks=not bare)


def _beside() -> list[Case]:
    soon = Build(size=8, usual=c.REDUCE, odd={3: SLEEPS}, quiet=22.0)
    sleeps = _of(c.REDUCE, {3: c.SLEEPS})
    bare = _of(c.REDUCE, {3: c.SLEEPS}, bare=True)
    saves = _of(c.BARRIER, {0: SAVE_STUCK})
    queue = _of(c.BARRIER, {0: QUEUE})
    stuck = c.loader(STUCK_WORKER)
    horovod = replace(_of(HOROVOD, {3: c.SLEEPS}), launcher="mpirun")
    saved = ("checkpoint-stuck",)
    return [
        case("heartbeat-sleep-8", with_thread(soon, [3], moved=BEATS), H, LOADER, {3}, True),
        case("heartbeat-fifo-8", with_thread(saves, [0], moved=BEATS), H, saved, {0}, True),
        case("heartbeat-queue-8", with_thread(queue, [0], moved=BEATS), HU, None, {0}),
        case("monitors-8", with_thread(sleeps, range(8), ticks=18), H, LOADER, {3}, True),
        case("monitors-8-bare", with_thread(bare, range(8), ticks=18), H, LOADER, {3}, True),
        case("lightning-sleeps-4", lightning(c.SLEEPS), H, LOADER, {0, "gpu01"}),
        case("lightning-loader-4", lightning(c.loader(c.IDLE_WORKER)), HU, None, {0, "gpu01"}),
        case("horovod-8", horovod, H, LOADER, {3}, True),
        case("horovod-all-8", replace(horovod, odd={}, quiet=30.0), W),
        case("nfs-loaders-8", _of(stuck), H, ("io-stuck",)),
        case("nfs-loaders-short-8", replace(_of(stuck), quiet=30.0), W),
        case("ddp-buffers-8", _of(BUFFERS, {0: c.SLEEPS}), H, LOADER, {0}, True),
    ]


def _names() -> list[Case]:
    b, never, unsaid = Build, {"teardown-hang"}, ("closing down",)
    spinning = replace(FSDP, cpu=1.0, wakes=0.0)
    cleans = b(size=8, usual=c.REDUCE, odd={3: CLEANS})
    recomputes = b(size=8, usual=c.REDUCE, odd={3: RECOMPUTES})
    return [
        case("fsdp-hooks-8", b(size=8, usual=spinning, gpu=HOT, quiet=30.0), W),
        case("fsdp-hooks-hung-8", _of(FSDP), HU, never=never, unsaid=unsaid),
        case("cleanup-cache-8", b(size=8, usual=CACHE, gpu=HOT, quiet=20.0), W),
        case("cleanup-text-8", cleans, H, None, {3}, True, never, unsaid),
        case("recompute-8", recomputes, H, ELSEWHERE, {3}, True),
        case("validate-batch-8", _of(c.REDUCE, {3: LOOP}), H, ELSEWHERE, {3}, True),
    ]
