"""The watchdog's lines of all ages of PyTorch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.events.torch import (
    DumpSignal,
    FailedStack,
    Group,
    GroupStatus,
    Heartbeat,
    TakenDown,
    WatchdogTimeout,
)
from slurmtop.parse.logs.torch_watchdog import WatchdogReader
from tests.parse.logs.messages import message, read

CAUGHT = "[Rank 3] Watchdog caught collective operation timeout: "
RAN = " ran for 1800333 milliseconds before timing out."


def timeouts(text: str) -> list[WatchdogTimeout]:
    return [one for one in read(WatchdogReader(), text) if isinstance(one, WatchdogTimeout)]


@pytest.mark.parametrize(
    ("work", "seq", "shape", "numel"),
    [
        ("OpType=ALLREDUCE, Timeout(ms)=1800000", None, None, None),
        ("OpType=ALLREDUCE, TensorShape=[512, 3], Timeout(ms)=1800000", None, "512, 3", None),
        ("SeqNum=6, OpType=ALLREDUCE, TensorShape=[1], Timeout(ms)=1800000", 6, "1", None),
        ("SeqNum=6, OpType=ALLREDUCE, NumelIn=7, NumelOut=7, Timeout(ms)=1800000", 6, None, 7),
    ],
    ids=["1.9", "1.11", "1.13", "2.1"],
)
def test_a_timeout_is_read_in_the_shape_of_every_age(
    work: str, seq: int | None, shape: str | None, numel: int | None
) -> None:
    (event,) = timeouts(f"{CAUGHT}WorkNCCL({work}){RAN}")
    assert (event.seq, event.op, event.shape) == (seq, "ALLREDUCE", shape)
    assert (event.numel_in, event.numel_out) == (numel, numel)
    assert (event.timeout_ms, event.ran_ms, event.group_rank) == (1_800_000, 1_800_333, 3)


def test_a_torn_operation_is_none_and_not_its_first_letters() -> None:
    (event,) = timeouts(f"{CAUGHT}WorkNCCL(SeqNum=6, OpType=_ALLGATHER_BA[451/1919]")
    assert (event.seq, event.op) == (6, None)


@pytest.mark.parametrize("end", range(len("[Rank 3] Watchdog caught coll"), 150, 7))
def test_a_timeout_cut_anywhere_is_still_a_timeout(end: int) -> None:
    whole = f"{CAUGHT}WorkNCCL(SeqNum=61, OpType=BROADCAST, NumelIn=7, NumelOut=7, Timeout(ms)=18)"
    (event,) = timeouts(whole[:end])
    assert event.group_rank == 3
    assert event.seq in (None, 61)
    assert event.op in (None, "BROADCAST")


def test_a_timeout_that_was_pasted_over_three_lines_is_one() -> None:
    text = (
        "[Rank 0] Watchdog caught collective operation timeout:\n"
        "  WorkNCCL(..., OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000)\n"
        "  ran for 1800090 milliseconds before timing out."
    )
    (event,) = timeouts(text)
    assert (event.op, event.numel_in, event.ran_ms) == ("ALLREDUCE", 1, 1_800_090)
    assert event.at.line == 1


def test_the_same_timeout_is_told_once_however_often_it_stands_there() -> None:
    line = f"{CAUGHT}WorkNCCL(SeqNum=6, OpType=ALLREDUCE, Timeout(ms)=1800000){RAN}"
    text = (
        f"{line}\n[PG 1 Rank 1] NCCL watchdog thread terminated with exception: {line}\n"
        f"  what():  {line}\n{line.replace('SeqNum=6', 'SeqNum=7')}"
    )
    assert [one.seq for one in timeouts(text)] == [6, 6, 7]
    assert [one.group for one in timeouts(text)] == [None, Group(id=1), None]


@pytest.mark.parametrize(
    ("prefix", "group"),
    [
        ("[Rank 1]", None),
        ("[PG 1 Rank 1]", Group(id=1)),
        ("[PG 2 (mesh_dp) Rank 1]", Group(guid="2", desc="mesh_dp")),
        (
            "[PG ID 0 PG GUID 0(default_pg) Rank 1]",
            Group(id=0, guid="0", desc="default_pg"),
        ),
        ("[PG ID 4 PG GUID 67 Rank 1]", Group(id=4, guid="67")),
    ],
    ids=["2.2", "2.3", "2.4", "2.6", "2.8"],
)
@pytest.mark.parametrize(
    "said",
    [
        "Timeout at NCCL work: 6, last enqueued NCCL work: 9, last completed NCCL work: 5.",
        "Exception (either an error or timeout) detected by watchdog at work: 6, "
        "last enqueued NCCL work: 9, last completed NCCL work: 5.",
        " failure detected by watchdog at work sequence id: 6 PG status: "
        "last enqueued work: 9, last completed work: 5",
    ],
    ids=["2.3", "2.4", "2.6"],
)
def test_a_status_tells_where_its_rank_stands_in_the_group(
    prefix: str, group: Group | None, said: str
) -> None:
    (event,) = read(WatchdogReader(), f"{prefix} {said}")
    assert isinstance(event, GroupStatus)
    assert (event.seq, event.enqueued, event.completed) == (6, 9, 5)
    assert (event.group_rank, event.group) == (1, group)


def test_a_completed_work_beyond_the_enqueued_one_is_garbage() -> None:
    (event,) = read(
        WatchdogReader(),
        "[PG 1 Rank 0] Timeout at NCCL work: 6, last enqueued NCCL work: 9, "
        "last completed NCCL work: 76280750235782912.",
    )
    assert isinstance(event, GroupStatus)
    assert (event.enqueued, event.completed) == (9, None)


@pytest.mark.parametrize(
    ("said", "own", "from_rank"),
    [
        ("Received a dump signal due to a collective timeout from this local rank", True, None),
        ("Received a dump signal due to a collective timeout from  rank 2 and", False, 2),
        ("Received a global timeout from another rank and will start to dump", False, None),
        ("Observed flight recorder dump signal from another rank via TCPStore.", False, None),
        ("First PG on this rank to signal dumping.", True, None),
    ],
)
def test_a_dump_signal_tells_whose_watchdog_was_first(
    said: str, own: bool, from_rank: int | None
) -> None:
    (event,) = read(
        WatchdogReader(),
        f"[PG ID 0 PG GUID 0(default_pg) Rank 5] {said} Last enqueued NCCL work: 136, "
        "last completed NCCL work: 136.This is most likely",
    )
    assert isinstance(event, DumpSignal)
    assert (event.own, event.from_rank) == (own, from_rank)
    assert (event.enqueued, event.completed) == (136, 136)


def test_a_stuck_watchdog_tells_for_how_long_and_how_much_waits() -> None:
    events = read(
        WatchdogReader(),
        "[PG 0 Rank 4] Heartbeat monitor timed out! Process will be terminated after dumping "
        "debug info. workMetaList_.size()=103\n"
        "[PG 0 Rank 4] ProcessGroupNCCL's watchdog got stuck for 600 seconds without making "
        "progress. workMetaList_.size() = 84",
    )
    assert [(one.seconds, one.pending) for one in events if isinstance(one, Heartbeat)] == [
        (None, 103),
        (600, 84),
    ]


@pytest.mark.parametrize(
    "said",
    [
        "To avoid data inconsistency, we are taking the entire process down.",
        "NCCL watchdog thread terminated with exception: x",
        "[PG 0 Rank 1] Process group watchdog thread terminated with exception: CUDA error: x",
        "Some NCCL operations have failed or timed out. Due to the",
    ],
)
def test_a_process_that_is_taken_down_says_so(said: str) -> None:
    assert [type(one) for one in read(WatchdogReader(), said)] == [TakenDown]


def test_the_frames_of_a_failed_collective_come_with_it() -> None:
    (event,) = read(
        WatchdogReader(),
        "Stack trace of the failed collective: \n"
        "#0 all_reduce from /opt/x/distributed_c10d.py:2696\n"
        "#1 <lambda> from <string>:1\n"
        "#7 stray from /x.py:1\n"
        "the next line",
    )
    assert isinstance(event, FailedStack)
    assert event.frames == (
        "all_reduce at /opt/x/distributed_c10d.py:2696",
        "<lambda> at <string>:1",
    )


def test_stacks_of_two_ranks_between_each_other_are_kept_apart() -> None:
    reader = WatchdogReader()
    head = "Stack trace of the failed collective: "
    events = [
        *reader.see(message(head, 0, rank=0)),
        *reader.see(message("#0 broadcast from /a.py:1", 1)),
        *reader.see(message(head, 2, rank=1)),
        *reader.see(message("#0 all_reduce from /b.py:2", 3)),
        *reader.finish(),
    ]
    assert [(one.at.rank, one.frames) for one in events if isinstance(one, FailedStack)] == [
        (0, ("broadcast at /a.py:1",)),
        (1, ("all_reduce at /b.py:2",)),
    ]


def test_a_stack_that_was_not_found_has_no_frames() -> None:
    (event,) = read(
        WatchdogReader(),
        "Stack trace of the failed collective not found, potentially because FlightRecorder is",
    )
    assert isinstance(event, FailedStack)
    assert event.frames == ()


def test_other_lines_tell_nothing() -> None:
    text = "watchdog started\nStep 5: loss 2.0\nprocess group initialised"
    assert read(WatchdogReader(), text) == []


@given(st.lists(st.text(max_size=120), max_size=12))
def test_any_text_is_read_without_an_error(lines: list[str]) -> None:
    read(WatchdogReader(), [f"Watchdog caught coll{line}" for line in lines])
    read(WatchdogReader(), [f"[PG ID 0 {line} failure detected by watchdog at" for line in lines])
