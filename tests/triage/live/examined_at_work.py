"""Examined again: GPUs at work below ranks that seem to wait, waits on purpose, and those that only
look whether something has come. Beside each what looks alike and is a hang."""

from collections.abc import Callable
from dataclasses import replace

from slurmtop.model.facts import JobFacts
from slurmtop.model.job import Tres
from tests.triage.live import examined_calls as c
from tests.triage.live.examined import Build, Do, spins, stack, waits
from tests.triage.live.examined_beside import hot, with_thread
from tests.triage.live.examined_case import Case, case
from tests.triage.live.examined_hangs import HU
from tests.triage.live.examined_patience import BLOCKING, RETRIES
from tests.triage.live.examined_second_well import JSON
from tests.triage.live.examined_well import ANY, COLD, FORWARDS, HOT, W

MAPPINGS = "@megatron/core/tensor_parallel/mappings.py:30 _reduce"
LAYERS = "@megatron/core/tensor_parallel/layers.py:230 forward"
PRETRAIN = ("pretrain_gpt.py:270 train_step", "pretrain_gpt.py:300 <module>")
ACTOR = spins(f"{c.C10D}:3000 all_gather_object", c.LOGGER, "actor.py:50 log", *c.MAIN)
CRITIC = spins(f"{c.C10D}:4159 barrier", c.LOGGER, "critic.py:70 sync", *c.MAIN)
CRITICS = {6: CRITIC, 7: CRITIC}
REDUCES = spins(f"{c.C10D}:2825 all_reduce", c.LOGGER, MAPPINGS, *PRETRAIN)
GATHERS = spins(f"{c.C10D}:2825 all_gather_into_tensor", c.LOGGER, LAYERS, *PRETRAIN)
STAGES = dict.fromkeys(range(8, 16), GATHERS)
CONTROL = waits("controller.py:40 run", *c.MAIN, **c.NAP)
SERVER = waits(
    "@torch/distributed/rpc/api.py:340 shutdown",
    "@torch/distributed/rpc/api.py:81 wrapper",
    "ps.py:90 main",
    "ps.py:99 <module>",
    cpu=0.0,
)
BROADCAST = c.gloo("broadcast_object_list", 40, "load")
FETCH = replace(c.SSL_READ, wakes=0.2)
FLOCK = waits(
    "data.py:18 _locked", "data.py:20 load", *c.MAIN, wchan="locks_lock_inode_wait", cpu=0.0
)
FILE = waits("data.py:50 prepare", "data.py:20 load", *c.MAIN, **c.NAP)
LOCKED = {0: FETCH, **dict.fromkeys((1, 2, 3), FLOCK)}
NAPS = waits(
    "data.py:41 get_batch",
    "data.py:77 __iter__",
    *c.MAIN,
    wchan="hrtimer_nanosleep",
    cpu=0.01,
    wakes=10.0,
)
BEAT = stack("hb.py:20 beat", "%threading.py:982 run")
BEATS = stack("hb.py:22 beat", "%threading.py:982 run")
QUEUE = waits(
    "%threading.py:324 wait",
    "%queue.py:171 get",
    "data.py:55 next_item",
    *c.MAIN,
    cpu=0.0,
    more=(("hb", BEAT),),
)
LOCK_FILE = replace(c.FILELOCK, cpu=0.01, wakes=20.0)
ROLLOUT = waits(
    "%threading.py:324 wait", "%queue.py:171 get", "rollout.py:60 next_batch", *c.MAIN, cpu=0.0
)
GRAD = replace(c.BACKWARD, state="S", wchan="futex_wait_queue", cpu=0.0)
OWN_GRAD = replace(
    GRAD,
    more=(("autograd", stack("ops.py:40 backward", "@torch/autograd/function.py:300 apply")),),
)


def _on_cpus(build: Build) -> Callable[[], JobFacts]:
    """The same in a job that asked for no GPU."""

    def made() -> JobFacts:
        facts = build.facts()
        assert facts.job is not None
        return replace(facts, job=replace(facts.job, tres=Tres()))

    return made


def _begun(build: Build) -> Build:
    """The same, soon after it was started."""
    return replace(build, text="", age=100.0)


def _steps(build: Build) -> Build:
    """The same, while its log tells new steps."""
    return replace(build, grew=True, steps=True, quiet=1.0)


def at_work() -> list[Case]:
    """All of it."""
    return [*_hot(), *_on_purpose(), *_looks_again(), *_alike(), *_slow()]


def _hot() -> list[Case]:
    """Ranks stand in calls, and their GPUs draw the power of work."""
    b, cold = Build, (100.0, 115.0)
    return [
        case("rl-groups-hot", b(size=8, usual=ACTOR, odd=CRITICS, gpu=HOT, quiet=30.0), W, ANY),
        case("rl-groups-dark", b(size=8, usual=ACTOR, odd=CRITICS, quiet=30.0), W, ANY),
        case(
            "rl-groups-cold",
            b(size=8, usual=ACTOR, odd=CRITICS, gpu=cold, quiet=30.0),
            "hung",
            ("collective-op-mismatch",),
            {6, 7},
        ),
        case(
            "queue-full-hot",
            b(size=16, per=8, usual=REDUCES, odd=STAGES, gpu=HOT, quiet=15.0),
            W,
            ANY,
        ),
        case("queue-full-dark", b(size=16, per=8, usual=REDUCES, odd=STAGES, quiet=15.0), W, ANY),
        case(
            "groups-stand-late",
            b(size=16, per=8, usual=REDUCES, odd=STAGES, gpu=cold, quiet=900.0),
            "hung",
            ("collective-op-mismatch",),
        ),
        case(
            "controller-hot",
            b(size=8, usual=c.ITEM, odd={0: CONTROL}, gpu=hot({0}, 8), quiet=60.0),
            W,
            ANY,
        ),
        case(
            "parameter-server-hot",
            b(size=4, usual=c.ITEM, odd={0: SERVER}, gpu=hot({0}, 4), quiet=20.0),
            W,
            ANY,
        ),
        case(
            "sleeps-cold-8",
            b(size=8, usual=c.ITEM, odd={5: c.SLEEPS}, gpu=COLD, quiet=60.0),
            "hung",
            None,
            {5},
            True,
        ),
    ]


def _on_purpose() -> list[Case]:
    """The others wait for whom it is the turn of."""
    b = Build
    two_nodes = {0: JSON, 4: JSON}
    return [
        case(
            "json-rank0-broadcast",
            _begun(b(size=8, usual=BROADCAST, odd={0: JSON}, quiet=70.0)),
            W,
            ANY,
        ),
        case(
            "json-rank0-broadcast-for-ever",
            b(size=8, usual=BROADCAST, odd={0: JSON}, quiet=700.0),
            "hung",
            None,
            {0},
            True,
        ),
        case(
            "json-rank3-broadcast",
            b(size=8, usual=BROADCAST, odd={3: JSON}, quiet=200.0),
            "hung",
            None,
            {3},
            True,
        ),
        case(
            "local-mains-prepare",
            _begun(b(size=8, usual=c.BARRIER, odd=two_nodes, quiet=90.0)),
            W,
            ANY,
        ),
        case(
            "local-mains-prepare-for-ever",
            b(size=8, usual=c.BARRIER, odd=two_nodes, quiet=700.0),
            "hung",
            None,
            {0, 4},
            True,
        ),
        case(
            "one-rank-a-node-is-no-main",
            b(size=4, per=1, usual=c.GLOO_BARRIER, odd={2: JSON}, quiet=90.0),
            "hung",
            None,
            {2},
            True,
        ),
        case(
            "flock-behind-download",
            _begun(b(size=16, usual=c.GLOO_BARRIER, odd=LOCKED, quiet=15.0)),
            W,
            ANY,
        ),
        case(
            "flock-behind-download-bare",
            _begun(b(size=16, usual=c.GLOO_BARRIER, odd=LOCKED, quiet=15.0, stacks=False)),
            W,
            ANY,
        ),
        case(
            "second-node-naps-for-a-file",
            _begun(b(size=8, usual=c.BARRIER, odd={0: FETCH, 4: FILE}, quiet=15.0)),
            W,
            ANY,
        ),
    ]


def _looks_again() -> list[Case]:
    """Awake again and again, and it gets nowhere."""
    b = Build
    ended = "step 5000/5000\nTraining finished\n"
    no_cpu = ("uses a CPU", "stacks would tell")
    return [
        case(
            "looks-for-a-shard",
            b(size=8, usual=c.REDUCE, odd={3: NAPS}, quiet=1500.0),
            HU,
            None,
            {3},
            unsaid=no_cpu,
        ),
        case(
            "blocking-wait-all", b(size=8, usual=BLOCKING, quiet=1500.0), HU, unsaid=("use CPUs",)
        ),
        case("destroy-spins-all", b(size=8, usual=c.DESTROY, text=ended, quiet=1500.0), HU),
        case(
            "retries-for-3-h",
            b(size=8, usual=c.REDUCE, odd={5: RETRIES}, quiet=10_800.0, age=20_000.0),
            HU,
            None,
            {5},
        ),
        case(
            "evaluates-for-3-h",
            b(size=8, usual=c.BARRIER, odd={0: c.EVAL}, quiet=10_800.0, age=20_000.0),
            "unknown",
        ),
        case(
            "hot-for-3-h",
            b(size=8, usual=FORWARDS, gpu=HOT, quiet=10_800.0, age=20_000.0),
            "healthy",
        ),
        case(
            "queue-beside-a-heartbeat",
            with_thread(b(size=8, usual=c.BARRIER, odd={0: QUEUE}, quiet=1500.0), [0], moved=BEATS),
            HU,
            None,
            {0},
        ),
        case(
            "stale-filelock",
            b(size=8, usual=c.BARRIER, odd={3: LOCK_FILE}, quiet=1500.0),
            HU,
            None,
            {3},
            unsaid=no_cpu,
        ),
    ]


def _alike() -> list[Case]:
    """All wait, without stacks or without GPUs."""
    b = Build
    gpu = ("GPU",)
    stall = {"device-stall"}
    return [
        case("rollouts-bare", b(size=8, usual=ROLLOUT, stacks=False, quiet=12.0), W, ANY),
        case("reduce-bare-late", b(size=8, usual=c.REDUCE, stacks=False, quiet=90.0), HU),
        case(
            "backward-on-cpus",
            _on_cpus(b(size=8, usual=GRAD, quiet=700.0)),
            HU,
            never=stall,
            unsaid=gpu,
        ),
        case("backward-on-cpus-early", _on_cpus(b(size=8, usual=GRAD, quiet=12.0)), W, unsaid=gpu),
        case(
            "own-backward-on-cpus",
            _on_cpus(b(size=8, usual=c.REDUCE, odd={3: OWN_GRAD}, quiet=1500.0)),
            HU,
            None,
            {3},
            never=stall,
            unsaid=gpu,
        ),
        case(
            "own-backward-on-cpus-early",
            _on_cpus(b(size=8, usual=c.REDUCE, odd={3: OWN_GRAD}, quiet=12.0)),
            W,
            unsaid=gpu,
        ),
    ]


def _slow() -> list[Case]:
    """Steps are made, and all wait for one."""
    b = Build
    at_text = Do(
        calls=stack("hooks.py:160 normalise_text", *c.STEP),
        then=stack("hooks.py:161 normalise_text", *c.STEP),
        cpu=0.7,
        wakes=150.0,
        wchan="hrtimer_nanosleep",
    )
    return [
        case("eval-rank0-steps", _steps(b(size=8, usual=c.GLOO_BARRIER, odd={0: c.EVAL})), W, ANY),
        case("last-stage-steps", _steps(b(size=8, usual=c.RECV_F, odd={7: FORWARDS})), W, ANY),
        case(
            "slow-text-4",
            _steps(b(size=4, per=1, usual=c.REDUCE, odd={2: at_text})),
            "slow",
            ("slow-run",),
        ),
        case(
            "slow-text-4-bare",
            _steps(b(size=4, per=1, usual=c.REDUCE, odd={2: at_text}, stacks=False)),
            "slow",
            ("slow-run",),
        ),
        case(
            "slow-text-rank0-4",
            _steps(b(size=4, per=1, usual=c.REDUCE, odd={0: at_text})),
            "slow",
            ("slow-run",),
        ),
    ]
