"""An error of one rank in the midst of a run: what the steps of others behind it tell."""

from collections.abc import Callable

import pytest

from slurmtop.model.verdict import State, Verdict
from tests.triage.builders import log
from tests.triage.test_combined import told
from tests.triage.test_mixed_logs import judged

FULL = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total"
    " capacity of 79.11 GiB of which 1.02 GiB is free."
)
MEMORY = f"[rank3]: {FULL}\n"
SAMPLE = (
    "[rank3]: Traceback (most recent call last):\n"
    '[rank3]:   File "a.py", line 1, in f\n'
    "[rank3]: ValueError: bad sample\n"
)
PEER = "[rank1]: RuntimeError: Connection closed by peer [10.1.2.3]:48279\n"
EXIT = "srun: error: gpu01: task 3: Exited with exit code 1\n"
DONE = "Training completed.\n"


def steps(first: int, last: int, tag: str = "") -> str:
    return "".join(f"{tag}step {n}/200 loss 1.2\n" for n in range(first, last))


def of(text: str) -> Verdict:
    return judged(("train.log", text))


@pytest.mark.parametrize("error", [MEMORY, SAMPLE, f"{FULL}\n"])
@pytest.mark.parametrize("tag", ["", "[rank0]: "])
@pytest.mark.parametrize("last", [62, 150])
def test_others_that_go_on_leave_open_what_became_of_a_rank(
    error: str, tag: str, last: int
) -> None:
    """The steps may have stood in a buffer, or the run did without that rank."""
    verdict = of(steps(1, 50, tag) + error + steps(50, last, tag))
    assert not verdict.culprits
    if error.startswith("[") or tag:
        assert (verdict.state, verdict.cls) == (State.UNKNOWN, None)
        assert "others go on" in verdict.evidence[0].says
    else:
        assert verdict.state is State.HEALTHY


@pytest.mark.parametrize("tag", ["", "[rank0]: "])
def test_the_end_of_the_training_behind_it_closes_the_matter(tag: str) -> None:
    verdict = of(steps(1, 50, tag) + MEMORY + steps(50, 201, tag) + DONE)
    assert (verdict.state, verdict.culprits) == (State.HEALTHY, ())


@pytest.mark.parametrize("tag", ["", "[rank0]: "])
@pytest.mark.parametrize(
    "behind",
    [
        pytest.param(lambda tag: steps(50, 53, tag), id="for a moment"),
        pytest.param(lambda tag: steps(50, 150, tag) + EXIT, id="a process ended behind"),
        pytest.param(lambda tag: EXIT + steps(50, 150, tag), id="a process ended at once"),
        pytest.param(lambda tag: steps(50, 150, tag) + PEER, id="another fails behind"),
        pytest.param(lambda tag: f"{tag}step 49/200 loss 1.2\n" * 30, id="the same step"),
    ],
)
def test_a_rank_that_broke_the_run_is_still_named(tag: str, behind: Callable[[str], str]) -> None:
    verdict = of(steps(1, 50, tag) + MEMORY + behind(tag))
    assert (verdict.state, verdict.cls) == (State.FAILED, "gpu-oom")
    assert [one.rank for one in verdict.culprits] == [3]


def test_slurms_word_that_it_failed_stands() -> None:
    text = steps(1, 50) + MEMORY + steps(50, 150)
    verdict = told("FAILED", "1:0", text, logs=(log("stdout", 400),))
    assert (verdict.state, verdict.culprits) == (State.FAILED, ())
