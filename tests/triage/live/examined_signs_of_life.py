"""Signs of life that take a suspicion back: a log that goes on, GPUs that some use, CPUs at work.

Beside each what looks alike and is a hang.
"""

from dataclasses import replace

from tests.triage.live import examined_calls as c
from tests.triage.live.examined import Build, Do, spins, stack, waits
from tests.triage.live.examined_at_work import ACTOR, CONTROL, CRITIC
from tests.triage.live.examined_case import Case, at_pace, case
from tests.triage.live.examined_hangs import HU, STOPPED, H
from tests.triage.live.examined_patience import GAVE_UP
from tests.triage.live.examined_power import FIFO
from tests.triage.live.examined_well import COLD, W

#: A third of the limit, and kernels that come and go: none of them waits for others.
SOME = (60.0, 240.0)
LONG, HOURS = 2_400.0, 24_000.0
_GONE = Do(gone=True)
_BATCH = c.gloo("broadcast_object_list", 61, "next_batch")
_ENGINE = spins(
    "@vllm/worker/model_runner.py:1700 execute_model",
    "@vllm/engine/llm_engine.py:1200 step",
    "@vllm/entrypoints/llm.py:1300 generate",
    "gen.py:50 main",
    "gen.py:60 <module>",
)
_EVALUATES = spins("train.py:240 evaluate", *c.MAIN)
_HF_EVALUATES = spins(
    "@transformers/trainer.py:4200 evaluation_loop",
    "@transformers/trainer.py:4000 evaluate",
    *c.MAIN,
)
_WAIT = ("wait for each other", "wait for their GPUs")


def signs_of_life() -> list[Case]:
    return [*_log_goes_on(), *_few_hot(), *_some_use(), *_on_cpus(), *_first_step(), *_own_socket()]


def _log_goes_on() -> list[Case]:
    """It grew between the looks, a second ago, and tells no steps."""
    text = "rollouts 12/64\nrollouts 14/64\n"
    b = Build(size=8, usual=_BATCH, odd={0: CONTROL}, grew=True, quiet=1.0, text=text)
    gather, sync = c.gloo("all_gather_object", 50, "log"), c.gloo("barrier", 70, "sync")
    groups = replace(b, usual=gather, odd={6: sync, 7: sync}, gpu=COLD)
    shards = replace(b, usual=_ENGINE, odd={2: _GONE}, text="generated 100 prompts\n")
    down = replace(b, size=12, odd={}, silent=["gpu02"], states=(("gpu02", "down*"),))
    stopped, fifo = (replace(b, odd={3: one}) for one in (STOPPED, FIFO))
    steps = Build(size=8, usual=c.REDUCE, odd={3: c.SLEEPS}, grew=True, quiet=1.0)
    rooted = replace(groups, odd={6: sync}, text=steps.text)
    return [
        case("prints-controller-8", b, W),
        case("prints-controller-cold-8", replace(b, gpu=COLD), W),
        case("printed-controller-8", replace(b, grew=False, quiet=8.0), W),
        case("prints-two-groups-8", groups, W),
        case("prints-shard-done-8", shards, W),
        case("prints-node-down-12", down, W),
        case("prints-all-wait-8", replace(b, odd={}), W),
        case("prints-stopped-8", stopped, H, ("process-stopped",), {3}, True),
        case("prints-fifo-8", fifo, H, None, {3}, True),
        case("printed-long-ago-8", replace(b, grew=False, quiet=25.0), H, None, {0}, True),
        case("gave-up-prints-8", replace(b, text=GAVE_UP), H, None, {0}),
        # Where it tells steps, only these are a sign of life.
        case("steps-sleeps-prints-8", steps, H, None, {3}, True),
        case("steps-gone-prints-8", replace(steps, odd={3: _GONE}), H, None, {3}, True),
        case("steps-odd-prints-8", rooted, H, None, {6}, True),
    ]


def _few_hot() -> list[Case]:
    """Some ranks generate, the controller sleeps until they have, the rest wait."""
    inner = spins(
        "@vllm/worker/model_runner.py:1700 execute_model", "rollout.py:30 generate", *c.MAIN
    )
    sync = spins("@torch/cuda/__init__.py:985 synchronize", *_calls(inner))
    said = ("ranks 1-7 wait",)

    def b(gen: Do, count: int, gpu: tuple[float, float]) -> Build:
        power = {rank: gpu if 1 <= rank <= count else COLD for rank in range(8)}
        odd = {0: CONTROL, **dict.fromkeys(range(1, 1 + count), gen)}
        return Build(
            size=8, usual=_BATCH, odd=odd, gpu=power, quiet=400.0, text="rollout 12 done\n"
        )

    hot, warm = (99.0, 640.0), (100.0, 315.0)
    most = {rank: warm if rank else COLD for rank in range(8)}
    hour = Build(
        size=8, usual=c.ITEM, odd={0: CONTROL}, quiet=4000.0, text="rollout 12 done\n", gpu=most
    )
    return [
        case("few-hot-three-8", b(sync, 3, hot), W, unsaid=said),
        case("few-hot-one-8", b(sync, 1, hot), W, unsaid=said),
        case("few-hot-two-in-c-8", b(inner, 2, hot), W, unsaid=said),
        case("few-warm-three-8", b(sync, 3, warm), W, unsaid=said),
        case(
            "few-warm-one-hours-8", at_pace(replace(b(sync, 1, warm), quiet=HOURS)), HU, None, {0}
        ),
        case("most-warm-hour-8", hour, W, unsaid=said),
    ]


def _calls(do: Do) -> tuple[str, ...]:
    """As :func:`stack` takes them."""
    places = {"/opt/conda/lib/python3.11/site-packages/": "@", "/home/anna/run/": ""}
    out = []
    for one in do.calls:
        head = next(head for head in places if one.file.startswith(head))
        out.append(f"{places[head]}{one.file.removeprefix(head)}:{one.line} {one.function}")
    return tuple(out)


def _some_use() -> list[Case]:
    """Small models, decoding, evaluation: no kernel of theirs waits for others."""
    one = spins(
        "@torch/cuda/__init__.py:985 synchronize",
        "eval.py:40 generate",
        "train.py:240 evaluate",
        *c.MAIN,
    )
    first = {rank: COLD if rank else SOME for rank in range(8)}
    rest = {rank: SOME if rank else COLD for rank in range(8)}
    third = {rank: COLD if rank == 3 else SOME for rank in range(8)}
    b = Build(size=8, usual=_EVALUATES, gpu=SOME, quiet=150.0)
    control = replace(b, usual=c.ITEM, odd={0: CONTROL}, gpu=rest, quiet=30.0, text="rollout 12\n")
    shards = replace(b, usual=_ENGINE, odd={2: _GONE}, quiet=25.0, text="generated 100\n")
    fault = replace(b, usual=c.ITEM, gpu=third, quiet=25.0)
    return [
        case("some-use-controller-8", control, W),
        case("some-use-two-groups-8", replace(b, usual=ACTOR, odd={6: CRITIC, 7: CRITIC}), W),
        case("some-use-shard-done-8", shards, W),
        case("some-use-evaluate-8", at_pace(b), W),
        case("some-use-hf-evaluate-8", at_pace(replace(b, usual=_HF_EVALUATES)), W),
        case("cold-evaluate-8", at_pace(replace(b, gpu=COLD)), W),
        case("at-rest-evaluate-8", at_pace(replace(b, gpu=(0.0, 90.0))), W),
        case(
            "some-use-first-evaluates-8",
            at_pace(replace(b, usual=c.BARRIER, odd={0: one}, gpu=first)),
            W,
        ),
        case("some-use-stopped-8", replace(fault, odd={3: STOPPED}), H, None, {3}, True),
        case(
            "some-use-fifo-8",
            at_pace(replace(fault, odd={3: FIFO}, quiet=LONG)),
            H,
            None,
            {3},
            True,
        ),
        case(
            "some-use-sleeps-hours-8",
            at_pace(replace(fault, odd={3: c.SLEEPS}, quiet=HOURS)),
            H,
            None,
            {3},
            True,
        ),
    ]


def _on_cpus() -> list[Case]:
    """The CPUs do the work, below a library that can talk: nobody waits for anybody."""
    skip = spins(
        "@transformers/tokenization_utils_fast.py:550 _batch_encode_plus",
        "collate.py:20 __call__",
        "@torch/utils/data/_utils/fetch.py:55 fetch",
        "@torch/utils/data/dataloader.py:757 _next_data",
        "@torch/utils/data/dataloader.py:701 __next__",
        "@accelerate/data_loader.py:1330 __iter__",
        "@transformers/trainer.py:2480 _inner_training_loop",
        *c.MAIN,
    )
    adam = spins(
        "@deepspeed/ops/adam/cpu_adam.py:180 step",
        "@deepspeed/runtime/zero/stage3.py:2000 _optimizer_step",
        "@deepspeed/runtime/engine.py:2153 step",
        *c.STEP,
    )
    text = "Resuming from checkpoint\n"
    resumes = Build(size=8, usual=skip, quiet=700.0, age=900.0, text=text)
    rest = replace(resumes, gpu=(0.0, 90.0))
    evaluate = Build(size=8, usual=_HF_EVALUATES, quiet=400.0)
    offload = Build(size=8, usual=adam, gpu=(5.0, 95.0), quiet=400.0)
    some = replace(offload, gpu=(20.0, 150.0), quiet=150.0)
    return [
        case("cpus-skip-batches-8", resumes, W, unsaid=_WAIT),
        case("cpus-skip-batches-at-rest-8", rest, W, unsaid=_WAIT),
        case("cpus-hf-evaluate-8", at_pace(evaluate), W),
        case("cpus-adam-8", at_pace(offload), W, unsaid=_WAIT),
        case("cpus-adam-some-use-8", at_pace(some), W, unsaid=_WAIT),
    ]


def _first_step() -> list[Case]:
    """The first rank builds an index of all data, in C++ below the interpreter's lock."""
    train = (
        "pretrain_gpt.py:200 train_valid_test_datasets_provider",
        "pretrain_gpt.py:300 <module>",
    )
    index = Do(
        calls=stack(
            "@megatron/core/datasets/gpt_dataset.py:520 _build_document_sample_shuffle_indices",
            *train,
        ),
        state="R",
        wchan="0",
        cpu=1.0,
        gil=True,
    )
    meets = spins(
        f"{c.C10D}:4159 barrier",
        c.LOGGER,
        "@megatron/core/datasets/blended_megatron_dataset_builder.py:400 build",
        *train,
    )
    text = "> building train, validation, and test datasets for GPT ...\n"
    b = Build(size=8, usual=meets, odd={0: index}, gpu=COLD, age=380.0, quiet=320.0, text=text)
    steps = replace(b, age=10_000.0, text="step 980/5000 loss=2.1\nstep 981/5000 loss=2.1\n")
    return [
        case("index-6min-8", b, W),
        case("index-40min-8", replace(b, age=2_500.0, quiet=LONG), W),
        case("index-hours-8", replace(b, age=8_000.0, quiet=7_900.0), H, None, {0}, True),
        case("index-not-the-first-8", replace(b, odd={3: index}), H, None, {3}, True),
        case("index-behind-steps-8", steps, H, None, {0}, True),
    ]


def _own_socket() -> list[Case]:
    """A line of the program waits for the network, and nothing else tells for what."""
    own = waits("data.py:41 recv_msg", *c.STEP, wchan="sk_wait_data", cpu=0.0, wakes=0.0)
    b = Build(size=8, usual=c.ITEM, odd={3: own}, gpu=COLD, quiet=LONG)
    zero = replace(b, usual=c.ZERO3_FETCH)
    return [
        case("own-socket-8", at_pace(b), H, ("rank-elsewhere",), {3}, True),
        case("own-socket-zero3-8", at_pace(zero), H, ("rank-elsewhere",), {3}, True),
        case("own-socket-short-8", at_pace(replace(b, quiet=240.0)), W),
        # They may talk to each other there, or from stage to stage.
        case("own-socket-of-two-8", at_pace(replace(b, odd={3: own, 6: own})), HU),
        case("own-socket-of-stages-8", at_pace(replace(b, usual=c.gloo("recv", 220))), HU),
    ]
