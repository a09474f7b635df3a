"""Readers of single lines: stacks of living processes, calls that a library found to differ."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.events.reports import CallsApart, StackFrame
from slurmtop.parse.logs.calls_apart import CallsApartReader
from slurmtop.parse.logs.line import Reader
from slurmtop.parse.logs.plain import MOST_REPEATS
from slurmtop.parse.logs.stacks import StackReader
from tests.parse.logs.messages import read


def test_a_frame_that_closes_a_communicator_is_told_with_its_function() -> None:
    (frame,) = read(StackReader(), "#3  0x00007f in ncclCommDestroy (comm=0x55) at init.cc:1")
    assert isinstance(frame, StackFrame)
    assert frame.function == "ncclCommDestroy"


@pytest.mark.parametrize(
    "line",
    [
        "#3  0x00007f in ncclAllReduce (comm=0x55) at init.cc:1",
        '  File "train.py", line 12, in destroy_process_group',
        "n1:1:2 [0] NCCL INFO ncclCommAbort comm 0x55",
        "    torch.distributed.destroy_process_group()",
    ],
)
def test_other_frames_and_other_words_of_closing_are_not_told(line: str) -> None:
    assert read(StackReader(), line) == []


def test_a_difference_of_operations_is_told_apart_from_one_of_sizes() -> None:
    lines = [
        "Mismatched MPI operations: One rank did an allreduce, but another rank did a broadcast.",
        "Mismatched allgather tensor shapes: One rank gathered a tensor of rank 1, another of 2.",
    ]
    assert [e.shape for e in read(CallsApartReader(), lines) if isinstance(e, CallsApart)] == [
        False,
        True,
    ]


@pytest.mark.parametrize("reader", [StackReader, CallsApartReader])
def test_a_line_that_comes_for_ever_is_told_a_few_times_only(reader: Callable[[], Reader]) -> None:
    lines = ["#3  0x00007f in ncclCommAbort () at x", "Mismatched data types: One rank"] * 500
    assert len(read(reader(), lines)) == MOST_REPEATS


@given(st.lists(st.text(max_size=80)))
def test_no_text_makes_them_raise(lines: list[str]) -> None:
    for reader in (StackReader(), CallsApartReader()):
        read(reader, [f"#3 ncclComm{one} (Mismatched {one}" for one in lines])
