"""Who waits for nobody of the job: tasks with a group of their own."""

from dataclasses import replace

from tests.triage.live import examined_calls as c
from tests.triage.live.examined import Build, Do, spins, waits
from tests.triage.live.examined_case import Case, case
from tests.triage.live.examined_well import W

_GONE = Do(gone=True)
_VLLM = spins(
    "@vllm/worker/model_runner.py:1700 execute_model",
    "@vllm/engine/llm_engine.py:1200 step",
    "@vllm/entrypoints/llm.py:1300 generate",
    "gen.py:50 main",
    "gen.py:60 <module>",
)
_ZERO = spins("@deepspeed/runtime/engine.py:2100 step", "ft.py:80 main", "ft.py:90 <module>")


def apart() -> list[Case]:
    """All of it."""
    return [*_sweeps()]


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
