"""What a training program says of itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.events.program import Closing, Doing, Phase, ProgramSays, RankSeen, Step
from slurmtop.model.events.system import MemoryUse
from slurmtop.model.trace import RankFrom
from slurmtop.parse.logs.program import ProgramReader
from tests.parse.logs.messages import read


def steps(*lines: str) -> list[Step]:
    return [event for event in read(ProgramReader(), lines) if isinstance(event, Step)]


@pytest.mark.parametrize(
    ("line", "done", "total", "bar"),
    [
        ("iter 83592: loss 1.5455, time: 4401.19ms", 83592, None, None),
        (" 45%|####5     | 450/1000 [00:10<00:12, 44.9it/s]", 450, 1000, None),
        ("Epoch 10:  93%|###| 18626/20000 [5:43<25:19, 0.9it/s]", 18626, 20000, "Epoch 10"),
        (
            "Preparing test set...:  46%|###| 31/67 [29:02<35:12, 58s/it]",
            31,
            67,
            "Preparing test set...",
        ),
        ("mmengine - INFO - Epoch(val)  [2][3400/3402]    eta: 0:00:00", 3400, 3402, "Epoch(val)"),
        ("mmengine - INFO - Epoch(train)  [2][50/3402]    eta: 0:00:00", 50, 3402, None),
        ("Test:  [  10/2500]  eta: 0:10:00  time: 0.1", 10, 2500, "Test"),
        ("{'loss': 3.5534, 'grad_norm': 1.41, 'epoch': 0.01}", None, None, None),
        ("step 48,213/100,000 loss 2.41", 48213, 100000, None),
    ],
)
def test_a_step_is_read(line: str, done: int | None, total: int | None, bar: str | None) -> None:
    (event,) = steps(line)
    assert (event.done, event.total, event.bar) == (done, total, bar)


@pytest.mark.parametrize(
    "line",
    [
        "save_steps=500",
        "  --max-steps 100000",
        "loss_scale: 65536.0",
        "loss: cross_entropy",
        "TrainingArguments(logging_steps=10, save_steps=500, warmup_steps=100)",
        "n1:1:2 [0] NCCL INFO Channel 00/0 : 3[3] -> 4[4]",
        "the model was trained in batches",
    ],
)
def test_settings_and_other_words_are_no_steps(line: str) -> None:
    assert steps(line) == []


def test_the_first_and_the_last_step_of_a_bar_are_told() -> None:
    lines = [f"Epoch {n // 5}:  1%|#| {n}/1000 [00:10<00:12, 44.9it/s]" for n in range(20)]
    assert [event.done for event in steps(*lines)] == [0, 19]


def test_the_last_step_keeps_its_place() -> None:
    (_, last) = steps("step 1 loss 2.5", "step 2 loss 2.4")
    assert (last.at.order, last.done) == (1, 2)


def phase(line: str) -> tuple[Doing, bool] | None:
    events = [event for event in read(ProgramReader(), line) if isinstance(event, Phase)]
    return (events[0].doing, events[0].over) if events else None


@pytest.mark.parametrize(
    ("line", "doing"),
    [
        ("Evaluating the results...", Doing.EVALUATING),
        ("mmengine - INFO - Evaluating bbox...", Doing.EVALUATING),
        ("Evaluate annotation type *bbox*", Doing.EVALUATING),
        ("***** Running Evaluation *****", Doing.EVALUATING),
        ("INFO:main:Start validation", Doing.EVALUATING),
        ("Sanity Checking: 0it [00:00, ?it/s]", Doing.EVALUATING),
        ("Validation DataLoader 0:  34%|###| 34/100 [00:10<00:20, 3.4it/s]", Doing.EVALUATING),
        ("[INFO|trainer.py:3503] >> Saving model checkpoint to /out/checkpoint-500", Doing.SAVING),
        ("saving checkpoint at iteration     500 to /ckpt in torch format", Doing.SAVING),
        ("[2031-05-05] [INFO] [Torch] Saving /ckpt/mp_rank_00.pt...", Doing.SAVING),
        ("Loading checkpoint shards:  50%|##| 1/2 [00:10<00:10, 10s/it]", Doing.LOADING),
        ("loading annotations into memory...", Doing.LOADING),
        ("Resuming from checkpoint /ckpt/5", Doing.LOADING),
        ("Map (num_proc=8):  10%|#| 100/1000 [00:10<01:30, 10 examples/s]", Doing.PREPARING),
        (
            "Running tokenizer on dataset:  10%|#| 1/10 [00:10<01:30, 10 examples/s]",
            Doing.PREPARING,
        ),
        ("creating index...", Doing.PREPARING),
        ("> building dataset index ...", Doing.PREPARING),
        ("AUTOTUNE mm(4096x4096, 4096x4096)", Doing.COMPILING),
        ("Building extension module fused_adam...", Doing.COMPILING),
        ("Capturing CUDA graph shapes:  10%|#| 1/10 [00:10<01:30, 1s/it]", Doing.COMPILING),
    ],
)
def test_a_phase_begins(line: str, doing: Doing) -> None:
    assert phase(line) == (doing, False)


@pytest.mark.parametrize(
    ("line", "doing"),
    [
        ("successfully saved checkpoint at iteration 500 to /ckpt", Doing.SAVING),
        ("Model weights saved in /out/model.safetensors", Doing.SAVING),
        (
            " Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.4",
            Doing.EVALUATING,
        ),
        ("{'eval_loss': 0.3, 'eval_runtime': 12.5}", Doing.EVALUATING),
        ("successfully loaded checkpoint from /ckpt at iteration 500", Doing.LOADING),
        ("index created!", Doing.PREPARING),
        ("SingleProcess AUTOTUNE benchmarking takes 2.3 seconds", Doing.COMPILING),
        ("Map: 100%|##| 1000/1000 [00:10<00:00, 10 examples/s]", Doing.PREPARING),
    ],
)
def test_a_phase_is_over(line: str, doing: Doing) -> None:
    assert phase(line) == (doing, True)


@pytest.mark.parametrize(
    "line",
    [
        "save_steps=500",
        "evaluation_strategy: steps",
        "Saving checkpoints is disabled",
        "checkpoints will be saved every 500 steps",
        "Evaluating every 1000 steps",
        "'loading': True",
        "saving: {'interval': 5}",
        "[PG 0 Rank 144] ProcessGroupNCCL preparing to dump debug info.",
        "Epoch 3:  10%|#| 100/1000 [00:10<01:30, 10it/s]",
        "Train set loaders: 8",
    ],
)
def test_settings_plans_and_training_are_no_phases(line: str) -> None:
    assert phase(line) is None


def test_a_phase_that_comes_again_after_training_is_told_again() -> None:
    lines = ["Evaluating bbox...", "Evaluating segm...", "step 5 loss 2.5", "Evaluating bbox..."]
    events = [event for event in read(ProgramReader(), lines) if isinstance(event, Phase)]
    assert [event.at.order for event in events] == [0, 3]


def test_done_ends_what_was_begun() -> None:
    lines = ["Loading and preparing results...", "DONE (t=27.37s)"]
    events = [event for event in read(ProgramReader(), lines) if isinstance(event, Phase)]
    assert [(event.doing, event.over) for event in events] == [
        (Doing.LOADING, False),
        (Doing.LOADING, True),
    ]


def test_many_phases_stay_bounded() -> None:
    lines = ["saving checkpoint at 5 to /c", "successfully saved checkpoint"] * 2_000
    assert len(read(ProgramReader(), lines)) < 600


def says(line: str) -> tuple[Closing, int | None] | None:
    events = [event for event in read(ProgramReader(), line) if isinstance(event, ProgramSays)]
    return (events[0].closing, events[0].rank) if events else None


@pytest.mark.parametrize(
    ("line", "closing", "rank"),
    [
        ("`Trainer.fit` stopped: `max_epochs=N` reached.", Closing.FINISHED, None),
        ("Training completed. Do not forget to share your model", Closing.FINISHED, None),
        ("Finished training", Closing.FINISHED, None),
        ("[after training is done] datetime: 2031-05-05 10:00:00", Closing.FINISHED, None),
        ("{'train_runtime': 12.5, 'train_loss': 0.5}", Closing.FINISHED, None),
        ("Worker 3 completed its entire epoch (training).", Closing.EPOCH_DONE, 3),
        ("[rank 5] rank 5 finished its data", Closing.EPOCH_DONE, 5),
        ("StopIteration", Closing.OUT_OF_DATA, None),
        ("WARNING: Your input ran out of data; interrupting training.", Closing.OUT_OF_DATA, None),
        ("DataLoader exhausted, leaving the loop", Closing.OUT_OF_DATA, None),
        ("Time limit of 1d reached. Stopping training.", Closing.TIME_UP, None),
        ("Time limit reached. Elapsed time is 0:00:05.", Closing.TIME_UP, None),
        ("exiting program after 235.1 minutes", Closing.TIME_UP, None),
    ],
)
def test_a_program_tells_its_end(line: str, closing: Closing, rank: int | None) -> None:
    assert says(line) == (closing, rank)


@pytest.mark.parametrize(
    "line",
    [
        "When training is done, run the evaluation",
        "The model is saved after training is complete",
        "training finished epoch 3",
        "Finished training epoch 3 of 10",
        "slurmstepd: error: *** STEP 1.0 ON n CANCELLED AT 2031 DUE TO TIME LIMIT ***",
        "time limit: 3600",
        "retries exhausted",
        "    except StopIteration:",
    ],
)
def test_conditions_and_single_epochs_are_no_end(line: str) -> None:
    assert says(line) is None


@pytest.mark.parametrize(
    ("line", "rank", "host", "world", "method"),
    [
        ("| distributed init (rank 3): tcp://m:9000", 3, None, None, "tcp://m:9000"),
        ("| initialized host <2nd node> as rank 4", 4, "<2nd node>", None, None),
        ("Initializing distributed: GLOBAL_RANK: 3, MEMBER: 4/8", 3, None, 8, None),
        ("self.dist_init_method: file:///shared/x.init", None, None, None, "file:///shared/x.init"),
        ("self.dist_world_size: 4", None, None, 4, None),
        ("self.dist_rank: 1", 1, None, None, None),
        ("init: rank=3 world_size=8 on host n7", 3, "n7", 8, None),
        ("Process index: 2", 2, None, None, None),
    ],
)
def test_ranks_worlds_and_rendezvous(
    line: str, rank: int | None, host: str | None, world: int | None, method: str | None
) -> None:
    (event,) = read(ProgramReader(), line)
    assert isinstance(event, RankSeen)
    assert (event.seen_rank, event.on_host, event.world, event.method) == (
        rank,
        host,
        world,
        method,
    )


@pytest.mark.parametrize(
    "line",
    [
        "lora_rank: 16",
        "init: lora rank=16 of the adapters",
        "arguments: rank=8 init_lora_weights=True",
        "[PG 0 Rank 3] ProcessGroupNCCL initialization options: world_size: 8",
        "rank=9 world_size=8 init",
    ],
)
def test_other_ranks_are_not_those_of_a_process(line: str) -> None:
    events = [event for event in read(ProgramReader(), line) if isinstance(event, RankSeen)]
    assert events == []


def test_the_world_of_a_flight_recorder_report_is_that_of_a_group() -> None:
    lines = ["Collective 39 at entry 38 errors", "group info: 0:tp", "world size: 2"]
    assert read(ProgramReader(), lines) == []


def test_memory_is_told_where_it_changes_and_at_the_end() -> None:
    sizes = ["5.00", "5.01", "5.02", "46.51", "212.04", "212.05"]
    events = read(
        ProgramReader(),
        [f"DEBUG TRAIN Batch 0/1 loss 4.5 rank 0 RSS MEM USE: {size}G" for size in sizes],
    )
    uses = [event for event in events if isinstance(event, MemoryUse)]
    assert [round(event.bytes / 2**30, 2) for event in uses] == [5.0, 46.51, 212.04, 212.05]
    assert {(event.at.rank, event.at.rank_from) for event in uses} == {(0, RankFrom.WORDS)}


@pytest.mark.parametrize(
    ("line", "size"),
    [
        ("RSS: 12.5 GB", 12.5 * 2**30),
        ("max_rss=900MB", 900 * 2**20),
        ("CPU Virtual Memory:  used = 97.25 GB, percent = 12.9%", 97.25 * 2**30),
    ],
)
def test_forms_of_memory(line: str, size: float) -> None:
    (event,) = read(ProgramReader(), line)
    assert isinstance(event, MemoryUse)
    assert event.bytes == int(size)


def test_memory_of_a_device_is_not_the_hosts() -> None:
    assert read(ProgramReader(), "memory: 3332  GPU memory used: 12.5 GB") == []


@given(st.lists(st.text(), max_size=6))
def test_any_text_is_read(texts: list[str]) -> None:
    for start in ("Epoch 3:  1%|", "Saving ", "rank 0 RSS ", "step ", "loss ", ""):
        read(ProgramReader(), [start + text for text in texts])
