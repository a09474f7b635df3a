"""The collectives as tables: folding, marks, and what cannot be compared."""

from dataclasses import replace

from slurmtop.model.events.nccl import Call, CommCalls
from slurmtop.model.events.program import RankSeen
from slurmtop.model.events.torch import DumpSignal, Fingerprint, RunningCollective
from slurmtop.model.trace import Event
from slurmtop.triage.collective_table import Mark, Table, collective_tables
from slurmtop.triage.join import join
from tests.triage.traces import DEFAULT_PG, init, status, timed_out, traces, where


def tables(*events: Event, columns: int = 6) -> tuple[Table, ...]:
    return collective_tables(join(traces(*events)), columns=columns)


def called(rank: int, ops: list[str], *, first: str = "opCount 0", count: int = 8) -> CommCalls:
    lines = [where(f"{first} …", host="node-a", pid=1000 + rank) for _ in ops]
    return CommCalls(
        at=lines[-1],
        comm=f"0x{rank + 1:x}",
        nranks=4,
        collectives=len(ops),
        last=tuple(Call(op, count, 7, 0, 0, 0) for op in ops),
        last_at=tuple(lines),
        first_at=lines[0],
    )


def test_ranks_that_did_the_same_stand_in_one_row() -> None:
    world = RankSeen(at=where("world 8"), world=8)
    (table,) = tables(world, *(timed_out(rank, 9) for rank in (0, 1, 3)))
    assert (table.group, table.size, table.unseen, table.columns) == ("default_pg", 8, 5, (9,))
    (row,) = table.rows
    assert (row.ranks, row.global_ranks) == ((0, 1, 3), (0, 1, 3))
    assert [(cell.text, cell.mark) for cell in row.cells] == [("allreduce 64", Mark.WAITS)]
    assert not table.marked


def test_the_odd_operation_stands_first_and_is_marked() -> None:
    (table,) = tables(timed_out(0, 9), timed_out(1, 9), timed_out(2, 9, "BROADCAST"))
    odd, rest = table.rows
    assert (odd.ranks, odd.cells[0].mark) == ((2,), Mark.DIFFERS)
    assert (rest.ranks, rest.cells[0].mark) == ((0, 1), Mark.WAITS)


def test_of_two_equal_sides_both_are_marked() -> None:
    (table,) = tables(timed_out(0, 9), timed_out(1, 9, "BROADCAST"))
    assert [row.cells[0].mark for row in table.rows] == [Mark.DIFFERS, Mark.DIFFERS]


def test_sizes_that_may_differ_are_not_marked() -> None:
    (table,) = tables(timed_out(0, 9, "ALLTOALL", numel=3), timed_out(1, 9, "ALLTOALL", numel=4))
    assert not table.marked


def test_a_rank_that_says_that_it_launched_less_is_missing_there() -> None:
    idle = DumpSignal(
        at=where("…", rank=5), group_rank=5, group=DEFAULT_PG, enqueued=8, completed=8
    )
    (table,) = tables(timed_out(0, 9), idle)
    assert (table.rows[0].ranks, table.rows[0].cells[0].mark) == ((5,), Mark.MISSING)
    assert table.rows[0].note == "launched 8, done 8"


def test_a_rank_that_has_passed_a_position_is_done_there() -> None:
    (table,) = tables(timed_out(0, 6), timed_out(1, 7), status(1, 7, 9, 6))
    texts = {row.ranks: [cell.text for cell in row.cells] for row in table.rows}
    assert table.columns == (6, 7)
    assert texts == {(0,): ["allreduce 64", ""], (1,): ["done", "allreduce 64"]}


def test_only_the_last_positions_are_shown() -> None:
    (table,) = tables(*(timed_out(rank, 10 + rank) for rank in range(5)), columns=2)
    assert table.columns == (13, 14)


def test_timeouts_without_a_number_have_one_column_without_a_number() -> None:
    (table,) = tables(timed_out(0, None, group=None), timed_out(1, None, "BROADCAST", group=None))
    assert (table.columns, table.marked) == ((None,), True)


def test_calls_stand_by_their_position() -> None:
    events = [init(rank, 4) for rank in range(3)]
    ops = ["AllReduce", "Broadcast", "AllGather"]
    (table,) = tables(*events, called(0, ops), called(1, ops), called(2, ops[:2]))
    late, rest = table.rows
    assert (table.columns, table.comparable, table.unseen) == ((1, 2, 3), True, 1)
    assert [cell.text for cell in rest.cells] == [
        "allreduce 8 f32",
        "broadcast 8 f32 root 0",
        "allgather 8 f32",
    ]
    assert (late.ranks, late.cells[2].mark, late.note) == ((2,), Mark.MISSING, "2 calls")


def test_calls_of_logs_that_begin_in_the_middle_count_from_the_end_and_are_not_marked() -> None:
    events: list[Event] = [init(rank, 4) for rank in range(2)]
    late = called(1, ["Broadcast", "AllReduce"], first="opCount 4b2")
    (table,) = tables(*events, called(0, ["AllReduce", "AllGather"]), late)
    assert (table.columns, table.comparable, table.marked) == ((-1, 0), False, False)


def test_a_table_with_something_odd_stands_before_a_larger_one() -> None:
    events = [init(rank, 64) for rank in range(2)]
    same = [called(rank, ["AllReduce"]) for rank in range(2)]
    found = tables(*events, *same, timed_out(0, 9), timed_out(1, 9, "BROADCAST"))
    assert [table.kind for table in found] == ["torch", "nccl"]


def test_groups_in_which_nothing_was_called_have_no_table() -> None:
    running = RunningCollective(at=where("…"), group_rank=0, print=Fingerprint(0, 3, "ALLREDUCE"))
    assert tables(init(0, 4), running) == ()


def test_a_thousand_ranks_are_one_row() -> None:
    (table,) = tables(*(timed_out(rank, 9) for rank in range(1000)))
    assert [len(row.ranks) for row in table.rows] == [1000]


def test_an_unknown_datatype_keeps_its_number() -> None:
    call = replace(called(0, ["AllReduce"]), last=(Call("AllReduce", 8, 77, 0, 0, 0),))
    (table,) = tables(init(0, 4), call)
    assert table.rows[0].cells[0].text == "allreduce 8 type 77"
