"""Who waits for nobody of the job: tasks with a group of their own, and servers at rest. And a
meeting point by another name of its node."""

from collections.abc import Callable
from dataclasses import replace

from slurmtop.model.facts import JobFacts
from slurmtop.model.probe import NodeProbe
from tests.triage.live import examined_calls as c
from tests.triage.live.examined import Build, Do, spins, waits
from tests.triage.live.examined_beside import two
from tests.triage.live.examined_case import Case, at_pace, case, each_probe
from tests.triage.live.examined_hangs import MISSING, STOPPED, H
from tests.triage.live.examined_launches import SERVER
from tests.triage.live.examined_well import COLD, FORWARDS, HOT, W

_GONE = Do(gone=True)
_VLLM = spins(
    "@vllm/worker/model_runner.py:1700 execute_model",
    "@vllm/engine/llm_engine.py:1200 step",
    "@vllm/entrypoints/llm.py:1300 generate",
    "gen.py:50 main",
    "gen.py:60 <module>",
)
_ZERO = spins("@deepspeed/runtime/engine.py:2100 step", "ft.py:80 main", "ft.py:90 <module>")
_API = waits(
    "%selectors.py:468 select",
    "%asyncio/base_events.py:1898 _run_once",
    "%asyncio/base_events.py:608 run_forever",
    "@uvicorn/server.py:65 run",
    "serve.py:9 <module>",
    wchan="ep_poll",
    cpu=0.0,
)
#: A request that is being answered: within the model, one waits for the others.
_ANSWERS = waits(
    f"{c.C10D}:2709 all_reduce",
    c.LOGGER,
    "@vllm/distributed/parallel_state.py:300 all_reduce",
    "@torch/nn/modules/module.py:1747 _call_impl",
    "@vllm/worker/worker_base.py:80 start_worker_execution_loop",
    "serve.py:3 <module>",
    cpu=0.0,
)
_OWN_API = waits("api.py:31 recv", "api.py:50 <module>", wchan="inet_csk_accept", cpu=0.0)
_UP = "INFO: Application startup complete.\n"


def apart() -> list[Case]:
    """All of it."""
    return [*_sweeps(), *_servers_beside(), *_servers_alone(), *_other_names()]


def _sweeps() -> list[Case]:
    """Tasks of one srun, each with one GPU; inside Python a library makes a group of size 1."""
    gen = Build(
        size=8,
        launcher="tasks",
        alone=True,
        usual=_VLLM,
        quiet=25.0,
        text="generated 100 prompts\n",
    )
    tune = replace(gen, size=4, usual=_ZERO, text="epoch 3 acc 0.8\n")
    pipe = waits("data.py:31 read_shard", *c.MAIN, wchan="pipe_read", cpu=0.0)
    down = replace(tune, size=12, silent=["gpu02"], states=(("gpu02", "down*"),), quiet=150.0)
    half = replace(gen, odd={2: _GONE}, gpu=(60.0, 240.0))
    return [
        case("group-of-its-own-done", replace(gen, odd={2: _GONE}), W),
        case("group-of-its-own-done-bare", replace(gen, odd={2: _GONE}, stacks=False), W),
        case("group-of-its-own-done-half-power", half, W),
        case("group-of-its-own-sleeps", replace(gen, odd={2: c.SLEEPS}), W),
        case("group-of-its-own-uploads", replace(gen, odd={2: c.SSL_READ}, quiet=400.0), W),
        case("group-of-its-own-deepspeed-done", replace(tune, odd={2: _GONE}), W),
        case("group-of-its-own-deepspeed-reads", replace(tune, odd={2: pipe}), W),
        case("group-of-its-own-node-down", down, W),
    ]


def _servers_beside() -> list[Case]:
    """A server at rest beside a training at work whose log is quiet."""
    train = Build(size=8, usual=FORWARDS, gpu=HOT, quiet=2400.0)
    long = replace(train, quiet=9000.0)
    rests = Build(size=8, usual=SERVER, step="1", launcher="srun", port=1234, pid0=70_000)
    api = replace(rests, size=4, odd={0: _API})
    evals = replace(train, usual=c.BARRIER, odd={0: c.EVAL})
    own = replace(rests, size=4, odd={0: _OWN_API})
    stops = replace(api, odd={0: _API, 2: STOPPED})
    sleeps = replace(train, usual=c.REDUCE, odd={3: c.SLEEPS}, gpu=None)
    dead = replace(sleeps, odd={3: _GONE})
    other = replace(rests, usual=FORWARDS)
    return [
        case("api-beside-eight-at-work-40min", at_pace(two(train, api)), W),
        case("api-beside-eight-at-work-2h", two(long, api), W),
        case("api-beside-an-evaluation-40min", at_pace(two(evals, api)), W),
        case("own-api-beside-eight-at-work-40min", at_pace(two(train, own)), W),
        case("server-of-8-beside-8-at-work-40min", at_pace(two(train, rests)), W),
        case("server-of-8-beside-8-at-work-2h", two(long, rests), W),
        case("stopped-in-a-server-late", at_pace(two(train, stops)), H, None, {2}, True),
        case("api-beside-a-hang", at_pace(two(sleeps, api)), H, None, {3}, True),
        case("asleep-beside-as-many-at-work", at_pace(two(sleeps, other)), H, None, {3}, True),
        case("dead-beside-as-many-at-work", at_pace(two(dead, other)), H, MISSING, {3}, True),
    ]


def _servers_alone() -> list[Case]:
    alone = Build(size=4, usual=SERVER, text=_UP, quiet=25.0)
    api = replace(alone, odd={0: _API}, quiet=420.0)
    answers = replace(alone, usual=_ANSWERS, quiet=2400.0)
    return [
        case("server-alone-at-rest", alone, W),
        case("server-alone-at-rest-for-hours", replace(alone, quiet=9000.0), W),
        case("server-alone-at-rest-gpus-cold", replace(alone, gpu=COLD, quiet=9000.0), W),
        case("api-alone-at-rest", api, W),
        case("api-alone-stopped", replace(api, odd={0: _API, 2: STOPPED}), H, None, {2}, True),
        case("server-alone-that-lost-one", replace(api, odd={0: _API, 2: _GONE}), H, None, {2}),
        case("server-alone-in-the-midst-of-a-request", answers, H),
    ]


def _by_other_name(build: Build) -> Callable[[], JobFacts]:
    """``MASTER_ADDR`` is the name of the fast network's port of the first node; how many tasks the
    step has is not told."""

    def renamed(probe: NodeProbe) -> NodeProbe:
        look = probe.processes
        assert look is not None
        those = []
        for one in look.processes:
            env = dict(one.env or ())
            env.pop("SLURM_STEP_NUM_TASKS", None)
            if "MASTER_ADDR" in env:
                env["MASTER_ADDR"] = "gpu01i"
            those.append(replace(one, env=tuple(sorted(env.items())) if one.env else one.env))
        return replace(probe, processes=replace(look, processes=tuple(those)))

    return at_pace(each_probe(build, renamed))


def _other_names() -> list[Case]:
    dead = Build(size=8, usual=c.REDUCE, odd={3: _GONE}, quiet=2400.0)
    srun = replace(dead, launcher="srun")
    first = replace(srun, odd={0: _GONE})
    return [
        case("other-name-dead-torchrun", _by_other_name(dead), H, MISSING, {3}, True),
        case("other-name-dead-srun", _by_other_name(srun), H, MISSING, {3}, True),
        case("other-name-dead-first", _by_other_name(first), H, MISSING, {0}, True),
    ]
