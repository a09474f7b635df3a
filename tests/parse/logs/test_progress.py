"""Step counters of training logs: the newest one, and never a date, a rate or a setting."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.parse.logs.lines import split_lines
from slurmtop.parse.logs.progress import find_progress


def progress(text: str) -> tuple[int, int | None] | None:
    found = find_progress(split_lines(text.encode()))
    return None if found is None else (found.step, found.total)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("step 48213/100000 loss 2.41", (48_213, 100_000)),
        (" iteration      500/    1000 | consumed samples:  128000 | lr: 1.0E-04", (500, 1_000)),
        ("Epoch 3:  45%|###| 450/1000 [00:10<00:12, 44.9it/s, v_num=0]", (450, 1_000)),
        ("global_step=123", (123, None)),
        ('{"step": 12, "loss": 0.5}', (12, None)),
        ("{'global_step': 77, 'loss': 0.5}", (77, None)),
        ("it 1,234 | loss 3.1", (1_234, None)),
        ("[rank0]: step 7 loss 0.1", (7, None)),
        ("2031-05-05 10:00:00,001 INFO step: 1,234,567/2,000,000", (1_234_567, 2_000_000)),
        ("Epoch: [3][ 450/5004]\tTime 0.2", (450, 5_004)),
        ("450/1000 [====>.....] - ETA: 5s", (450, 1_000)),
        ("epoch 003:  450 / 1000 loss=1.5, ppl=2", (450, 1_000)),
        ("steps: 20 loss: 1.2 iter time (s): 0.3 samples/sec: 10", (20, None)),
        ("iter 1000: loss 2.3, time 12ms", (1_000, None)),
        ("(step=0000100) Train Loss: 0.1", (100, None)),
        ("━━━━━╸ 450/1000 0:00:10 • 0:00:12", (450, 1_000)),
        ("Step 5 of 10", (5, 10)),
    ],
)
def test_common_shapes(line: str, expected: tuple[int, int | None]) -> None:
    assert progress(f"starting\n{line}\n") == expected


@pytest.mark.parametrize(
    "line",
    [
        "2031-05-05 06:16:47 version 2.27.5 ready",
        "step time 0.3 s",
        "step 0.5",
        "step_time: 0.3, steps/s 12",
        "max_steps=1000 warmup_steps: 20 num_steps 5",
        "Total optimization steps = 100",
        "--save-steps 500 --max-steps 1000",
        "Training steps: 100",
        "saving every step 500",
        "Eval step 3/50",
        "Loading checkpoint shards: 100%|###| 4/4 [00:10<00:00]",
        "Map (num_proc=8):  40%|##| 400/1000 [00:10<00:12]",
        "Validation: 45%|##| 9/20 [00:10<00:12]",
        "throughput 1.2it/s at 812 ms",
        "batch size = 32",
        "step 12/05/2031",
        "# nThread 1 nGpus 2 step: 2(factor) warmup iters: 5 iters: 20",
        "{'loss': 1.2, 'epoch': 0.3}",
        "Epoch 3/90",
    ],
)
def test_no_counters(line: str) -> None:
    assert progress(line) is None


def test_the_last_one_wins_with_its_line() -> None:
    lines = split_lines(b"step 10/100\nstep 11/100\nINFO saving\n")
    found = find_progress(lines)
    assert found is not None
    assert (found.step, found.total, found.line.number, found.line.offset) == (11, 100, 2, 12)


def test_a_total_below_the_step_is_no_total() -> None:
    assert progress("step 120/100") == (120, None)


def test_the_counter_with_a_total_wins_on_one_line() -> None:
    assert progress("global_step=7 | iteration 450/1000") == (450, 1_000)


@given(
    st.lists(
        st.sampled_from(
            ["step ", "iter", " 1", "23", "/", ",", "%|", "| ", "it ", " of ", "━", "\n"]
        )
        | st.text(max_size=6),
        max_size=40,
    ).map("".join)
)
def test_any_text_gives_a_sane_counter_or_none(text: str) -> None:
    lines = split_lines(text.encode("utf-8", "replace"))
    found = find_progress(lines)
    if found is not None:
        assert found.line in lines
        assert 0 <= found.step < 10**18
        assert found.total is None or found.total >= found.step


def test_long_hostile_lines_cost_little() -> None:
    for piece in ("step ", "1%|", "━", "iter ", "9", "1,234,", "epoch 1: ", "[", " | "):
        assert progress(piece * 4_000 + "\nstep 3/4\n") == (3, 4)
