"""Launches that are no training, or not yet: side programs, servers, sweeps, late starts, the end.

Tasks of a sweep bear the numbers that srun gave them, and no other ones.
"""

from collections.abc import Callable
from dataclasses import replace

from slurmtop.model.facts import JobFacts, LogLine, Progress
from slurmtop.model.probe import NodeProbe
from tests.triage.live import examined_calls as c
from tests.triage.live.examined import Build, Do, spins, stack, waits
from tests.triage.live.examined_beside import hot, two
from tests.triage.live.examined_case import Case, case, each_probe
from tests.triage.live.examined_well import FORWARDS, HOT

_WELL = "healthy unknown"
_GONE = Do(gone=True)

# Beside a training.
_STOPPED = Do(calls=stack("debug.py:3 <module>"), state="T", wchan="do_signal_stop", cpu=0.0)
_NFS = replace(_STOPPED, state="D", wchan="rpc_wait_bit_killable")
_TRAIN = Build(size=8, usual=FORWARDS, quiet=60.0)
_BARE = replace(FORWARDS, state="S", wchan="x", cpu=0.5, wakes=50.0)
SERVER = waits(
    f"{c.C10D}:2709 broadcast_object_list",
    c.LOGGER,
    "@vllm/distributed/parallel_state.py:300 broadcast_object",
    "@vllm/worker/worker_base.py:80 start_worker_execution_loop",
    "serve.py:3 <module>",
    cpu=0.0,
)
_POST = waits(
    "%socket.py:706 readinto",
    "%http/client.py:286 _read_status",
    "@urllib3/connectionpool.py:464 _make_request",
    "@requests/adapters.py:667 send",
    "@trl/extras/vllm_client.py:180 generate",
    "@trl/trainer/grpo_trainer.py:1200 _generate",
    *c.MAIN,
    wchan="wait_woken",
    cpu=0.0,
)
_FOR_PROMPTS = spins(
    f"{c.C10D}:2709 broadcast_object_list",
    c.LOGGER,
    "@trl/trainer/grpo_trainer.py:1230 _generate",
    *c.MAIN,
)
_GENERATES = Do(calls=c.FORWARD.calls, then=c.BACKWARD.calls, state="R", wchan="0", cpu=1.0)

# Tasks of a sweep, and a training that srun starts and that sets its own names later.
_DDP = spins(
    "@torch/nn/parallel/distributed.py:1500 forward",
    "@torch/nn/modules/module.py:1747 _call_impl",
    "@lightning/pytorch/strategies/strategy.py:390 training_step",
    *c.STEP,
)
_QUEUE = waits("%threading.py:324 wait", "%queue.py:171 get", "shard.py:60 next", *c.MAIN, cpu=0.0)
_TASKS = Build(size=4, launcher="tasks", usual=c.ITEM, quiet=60.0, text="epoch 3 acc 0.8\n")
_SWEEP = replace(_TASKS, sweep=True)

# Before the first step.
_LATE = Build(size=12, usual=c.STORE, launcher="srun", text="", age=20.0, quiet=15.0)

# What only sounds like the end.
_HOOK = stack(
    f"{c.C10D}:4122 reduce_scatter_tensor",
    c.LOGGER,
    "@torch/distributed/fsdp/_runtime_utils.py:850 _reduce_grad",
    "@torch/distributed/fsdp/_runtime_utils.py:770 _post_backward_hook",
    "@torch/utils/_contextlib.py:116 decorate_context",
)
_FSDP = replace(
    c.BACKWARD, state="S", cpu=0.0, more=(("pt_autograd_0", _HOOK),), wchan="futex_wait_queue"
)
_CACHE = spins(f"{c.C10D}:4159 barrier", c.LOGGER, "train.py:50 cleanup", *c.MAIN)
_CLEANS_UP = replace(_CACHE, state="S", wchan="futex_wait_queue", cpu=0.0)
_LEAVES = replace(c.DESTROY, state="S", wchan="futex_wait_queue", cpu=0.0)
_LOGS = spins(f"{c.C10D}:3000 all_gather_object", c.LOGGER, "actor.py:50 log", *c.MAIN)


def _beside(first: Build, usual: Do, size: int = 1, **more: object) -> Callable[[], JobFacts]:
    """Another step of the same job."""
    other = {"step": "1", "launcher": "srun", "port": 1234, "pid0": 70_000, **more}
    return two(first, Build(size=size, usual=usual, **other))  # type: ignore[arg-type]


def _without_torchrun(build: Build, host: str) -> Callable[[], JobFacts]:
    def left(probe: NodeProbe) -> NodeProbe:
        look = probe.processes
        if probe.host != host or look is None:
            return probe
        those = tuple(one for one in look.processes if one.name != "torchrun")
        return replace(probe, processes=replace(look, processes=those))

    return each_probe(build, left)


def _at_the_last_step(build: Build) -> Callable[[], JobFacts]:
    def made() -> JobFacts:
        facts = build.facts()
        last = Progress(5000, 5000, LogLine("step 5000/5000 loss=1.9", 9, 400))
        return replace(facts, logs=tuple(replace(one, progress=last) for one in facts.logs))

    return made


def launched() -> tuple[Case, ...]:
    """All of it."""
    return (*_side_programs(), *_sweeps(), *_starts(), *_ends())


def _side_programs() -> tuple[Case, ...]:
    waits_for_server = Build(
        size=4, usual=_FOR_PROMPTS, odd={0: _POST}, quiet=400.0, text="starting\n"
    )
    sleeps = Build(size=8, usual=c.REDUCE, odd={3: c.SLEEPS})
    return (
        case("debugger-stopped-beside", _beside(_TRAIN, _STOPPED), _WELL),
        case("copy-in-d-beside", _beside(_TRAIN, _NFS), _WELL),
        case(
            "debugger-stopped-beside-hot",
            _beside(replace(_TRAIN, usual=c.ITEM, gpu=HOT), _STOPPED),
            _WELL,
        ),
        case(
            "debugger-stopped-and-the-log-grows",
            _beside(replace(_TRAIN, usual=c.REDUCE, grew=True, quiet=1.0), _STOPPED),
            _WELL,
        ),
        case("server-at-rest-beside", _beside(_TRAIN, SERVER, 4), _WELL),
        case(
            "server-at-rest-beside-bare",
            _beside(replace(_TRAIN, usual=_BARE, stacks=False), SERVER, 4, stacks=False),
            _WELL,
        ),
        case(
            "larger-server-at-rest-beside",
            _beside(replace(_TRAIN, size=4), SERVER, 8),
            _WELL,
        ),
        case(
            "answer-of-a-server-at-work",
            _beside(waits_for_server, _GENERATES, 4, gpu=HOT),
            _WELL,
        ),
        case(
            "debugger-stopped-beside-a-hang",
            _beside(sleeps, _STOPPED),
            "hung",
            ("rank-elsewhere", "data-loader-stuck"),
            {3},
            must=True,
        ),
        case(
            "evaluation-beside-a-hang",
            _beside(sleeps, FORWARDS),
            "hung",
            ("rank-elsewhere", "data-loader-stuck"),
            {3},
            must=True,
        ),
        case(
            "stopped-rank-beside-a-server-at-rest",
            _beside(Build(size=4, usual=c.REDUCE, odd={2: _STOPPED}), SERVER, 8),
            "hung",
            ("process-stopped",),
            {2},
            must=True,
        ),
    )


def _sweeps() -> tuple[Case, ...]:
    done = {2: _GONE}
    return (
        case("sweep-one-task-done", replace(_SWEEP, odd=done).facts, _WELL),
        case("sweep-one-task-done-hot", replace(_SWEEP, odd=done, gpu=hot({2}, 4)).facts, _WELL),
        case("sweep-one-task-done-bare", replace(_SWEEP, odd=done, stacks=False).facts, _WELL),
        case(
            "sweep-one-task-sleeps-hot",
            replace(_SWEEP, odd={2: c.SLEEPS}, gpu=hot({2}, 4)).facts,
            _WELL,
        ),
        case("sweep-all-wait-bare", replace(_SWEEP, usual=_QUEUE, stacks=False).facts, _WELL),
        case("sweep-one-task-stopped", replace(_SWEEP, odd={2: _STOPPED}).facts, _WELL),
        case(
            "sweep-one-task-out-of-memory",
            replace(_SWEEP, odd=done, stacks=False, quiet=200.0, oom={"gpu01": 1}).facts,
            _WELL,
        ),
        case(
            "sweep-a-silent-node",
            replace(_SWEEP, size=12, silent=["gpu02"], states=(("gpu02", "down*"),)).facts,
            _WELL,
        ),
        case(
            "names-set-later-one-gone",
            replace(_TASKS, size=8, usual=_DDP, odd=done, quiet=400.0).facts,
            "hung",
            ("missing-rank",),
            {2},
            must=True,
        ),
        case(
            "names-set-later-one-sleeps",
            replace(_TASKS, size=8, usual=c.REDUCE, odd={2: c.SLEEPS}).facts,
            "hung",
            ("rank-elsewhere", "data-loader-stuck"),
            {2},
            must=True,
        ),
    )


def _starts() -> tuple[Case, ...]:
    third = dict.fromkeys(range(8, 12), _GONE)
    torchrun = replace(_LATE, usual=_GONE, launcher="torchrun")
    return (
        case("container-late-on-one-node", replace(_LATE, odd=third).facts, _WELL),
        case(
            "container-late-on-one-node-bare", replace(_LATE, odd=third, stacks=False).facts, _WELL
        ),
        case("one-task-late", replace(_LATE, size=8, odd={7: _GONE}, age=15.0, quiet=12.0), _WELL),
        case(
            "one-task-late-in-a-second-step",
            replace(_LATE, size=8, odd={7: _GONE}, quiet=4000.0),
            _WELL,
        ),
        case("torchrun-late-on-one-node", _without_torchrun(torchrun, "gpu03"), _WELL),
        case(
            "container-never-came",
            replace(_LATE, odd=third, age=900.0, quiet=890.0).facts,
            "hung",
            ("rendezvous-timeout",),
            {8, 9, 10, 11, "gpu03"},
            must=True,
        ),
        case(
            "torchrun-never-came",
            _without_torchrun(replace(torchrun, age=900.0, quiet=890.0), "gpu03"),
            "hung",
            ("rendezvous-timeout",),
            {"gpu03"},
            must=True,
        ),
    )


def _ends() -> tuple[Case, ...]:
    silent = Build(size=16, usual=_LOGS, silent=["gpu02"], gpu=HOT, quiet=130.0)
    return (
        case(
            "fsdp-hooks-of-a-backward",
            Build(size=8, usual=replace(_FSDP, cpu=1.0, wakes=0.0), gpu=HOT, quiet=30.0),
            _WELL,
        ),
        case(
            "fsdp-hooks-that-hang",
            Build(size=8, usual=_FSDP, quiet=1500.0),
            "hung unknown",
            never={"teardown-hang"},
            unsaid=("closing down",),
        ),
        case(
            "cleanup-of-a-cache",
            Build(size=8, usual=_CACHE, gpu=HOT, quiet=20.0),
            _WELL,
        ),
        case(
            "cleanup-of-a-cache-that-hangs",
            Build(size=8, usual=_CACHE, quiet=1500.0),
            "hung unknown",
            never={"teardown-hang"},
            unsaid=("closing down",),
        ),
        case(
            "all-leave-their-group",
            Build(size=8, usual=_LEAVES, quiet=900.0),
            "hung unknown",
            ("teardown-hang", "device-stall", "watchdog-timeout-unattributed", None),
        ),
        case(
            "all-clean-up-after-the-last-step",
            _at_the_last_step(Build(size=8, usual=_CLEANS_UP, quiet=900.0)),
            "hung",
            ("teardown-hang",),
        ),
        case(
            "all-clean-up-in-the-midst-of-it",
            Build(size=8, usual=_CLEANS_UP, quiet=900.0),
            "hung unknown",
            never={"teardown-hang"},
            unsaid=("closing down",),
        ),
        case(
            "silent-node-others-compute",
            silent,
            _WELL,
        ),
        case(
            "node-down-others-compute",
            replace(silent, states=(("gpu02", "down*"),)),
            _WELL,
        ),
    )
