"""Text reports of other tools inside a log."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.events.reports import (
    BenchRow,
    FlightReport,
    HorovodStall,
    RasComm,
    RasProcess,
    RasRank,
    RasSummary,
)
from slurmtop.parse.logs.bench import BenchReader
from slurmtop.parse.logs.flight_text import FlightTextReader
from slurmtop.parse.logs.horovod import HorovodReader
from slurmtop.parse.logs.line import Reader
from slurmtop.parse.logs.ras_json import RasJsonReader
from slurmtop.parse.logs.ras_text import RasTextReader
from tests.parse.logs.messages import read

RAS_HEAD = """NCCL version 2.27.5 compiled with CUDA 12.9
CUDA runtime version 12090, driver version 12090

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      4          8            1         32       32

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
"""
RAS_FINE = RAS_HEAD + "    0         1         4         8        32        32   RUNNING      OK\n"
RAS_BAD = (
    RAS_HEAD
    + """    0         8         4         1         4        32   RUNNING      OK
    1         1         4         8        32        32   RUNNING  INCOMPLETE,ERROR,MISMATCH

Errors
======

INCOMPLETE
  Missing communicator data from 1 job process
  Process 3487984 on node 10.0.0.12 managing GPU 5

DEAD
  1 job process is considered dead (unreachable via the RAS network)
  Process 7 on node 10.0.0.13 managing GPUs 0,1

#1-0 (27a079b828ff1a75) INCOMPLETE
  Missing communicator data from 1 rank
  Rank 13 -- GPU 5 (NVML 6) managed by process 3487984 on node 10.0.0.12

#1-0 (27a079b828ff1a75) ERROR
  Asynchronous error on 1 rank
  Rank 4 reported Remote process error -- GPU 4 managed by process 41 on node 10.0.0.1

Warnings
========

#1-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different status
  31 ranks have status RUNNING
  Rank 3 has status ABORT -- GPU 3 managed by process 40 on node 10.0.0.1
  Communicator ranks have different AllReduce operation counts
  30 ranks have launched up to operation 17
  2 ranks have not launched any operations
  Rank 0 -- GPU 0 managed by process 30 on node 10.0.0.1
  Rank 3 -- [process information not found]

  Communicator ranks have different Broadcast operation counts
  31 ranks have launched up to operation 5
  Rank 9 has launched up to operation 4 -- GPU 1 managed by process 91 on node fe80::1
"""
)


def test_a_fine_ras_report_is_summed_up() -> None:
    (event,) = read(RasTextReader(), RAS_FINE)
    assert isinstance(event, RasSummary)
    assert (event.version, event.ranks, event.all_ok) == ("2.27.5", 32, True)
    assert "OK" in event.at.text


def test_every_finding_of_a_ras_report_is_told() -> None:
    *findings, summary = read(RasTextReader(), RAS_BAD)
    assert isinstance(summary, RasSummary)
    assert summary.all_ok is False
    silent, dead, missing, error, status, reduce, broadcast = (
        finding for finding in findings if isinstance(finding, RasComm)
    )
    assert (silent.comm_id, silent.dead) == (None, False)
    assert silent.processes == (RasProcess(3487984, "10.0.0.12", "5"),)
    assert dead.dead
    assert dead.processes == (RasProcess(7, "10.0.0.13", "0,1"),)
    assert missing.missing == (RasRank(13, "5", 3487984, "10.0.0.12"),)
    assert (error.errors, error.said) == (("ERROR",), "Remote process error")
    assert [rank.rank for rank in error.ranks] == [4]
    assert [(rank.rank, rank.status) for rank in status.ranks] == [(3, "ABORT")]
    assert (reduce.op, reduce.counts) == ("AllReduce", ((30, 17), (2, 0)))
    assert reduce.ranks == (RasRank(0, "0", 30, "10.0.0.1", 0), RasRank(3, launched=0))
    assert (broadcast.op, broadcast.counts) == ("Broadcast", ((31, 5), (1, 4)))
    assert broadcast.ranks == (RasRank(9, "1", 91, "fe80::1", 4),)
    assert {finding.comm_id for finding in findings[2:]} == {"27a079b828ff1a75"}  # type: ignore[attr-defined]


def test_a_mismatch_shows_its_counts() -> None:
    events = read(RasTextReader(), RAS_BAD)
    shown = [event.at.text for event in events if isinstance(event, RasComm) and event.counts]
    assert "30 ranks have launched up to operation 17" in shown[0]
    assert shown[0].startswith("#1-0 (27a079b828ff1a75) MISMATCH\n")


def test_a_report_inside_a_log_ends_with_other_lines() -> None:
    reader = RasTextReader()
    read(reader, [*RAS_FINE.split("\n"), *["step 1"] * 20])
    assert not reader.open


def ras_document(**changes: object) -> str:
    def rank(number: int, count: int) -> dict[str, object]:
        return {
            "rank": number,
            "host": "10.0.0.1",
            "pid": 40 + number,
            "cuda_dev": number,
            "status": {"init_state": 0, "async_error": 0, "abort_flag": False},
            "collective_counts": {"AllReduce": count, "Broadcast": 3},
        }

    comm: dict[str, object] = {
        "hash": "0x5f",
        "size": 4,
        "ranks": [rank(0, 7), rank(1, 7), rank(2, 7), rank(3, 6)],
        "missing_ranks": [],
        **changes,
    }
    return json.dumps({"nccl_version": "2.28.3", "communicators": [comm]}, indent=2)


def test_ras_in_json_tells_the_same_findings() -> None:
    counts, summary = read(RasJsonReader(), ras_document())
    assert isinstance(counts, RasComm)
    assert (counts.comm_id, counts.op, counts.counts) == ("5f", "AllReduce", ((3, 7), (1, 6)))
    assert counts.ranks == (RasRank(3, "3", 43, "10.0.0.1", 6),)
    assert isinstance(summary, RasSummary)
    assert (summary.version, summary.ranks, summary.all_ok) == ("2.28.3", 4, False)


def test_a_missing_rank_in_json_is_missing() -> None:
    missing = [{"rank": 5, "host": "unknown", "pid": -1, "status": {"unresponsive": True}}]
    finding, *_ = read(RasJsonReader(), ras_document(missing_ranks=missing, ranks=[]))
    assert isinstance(finding, RasComm)
    assert (finding.errors, finding.missing) == (("INCOMPLETE",), (RasRank(5),))


@pytest.mark.parametrize(
    "text", ['{"nccl_version": {}}', '{"nccl_version": "x", "communicators": 5}']
)
def test_another_document_says_nothing(text: str) -> None:
    assert read(RasJsonReader(), text) == []


MISSING = """{head}
internal record id: 31116
group info: 0:default_pg
collective: nccl:all_reduce
missing ranks: {{3, 4}}
input sizes: [[1571911]]
world size: 5
expected ranks: {{0, 1, 2, 3, 4}}
collective state: scheduled
collective stack trace:
 all_reduce at /p/distributed_c10d.py:2707
step at /p/train.py:41
[rank0]: something else"""


@pytest.mark.parametrize(
    "head",
    [
        "Not all ranks joining collective: sequence number: 31117",
        "Not all ranks joining collective, sequence number: 31117",
        "Not all ranks joining collective 31117 at entry 31116",
    ],
)
def test_missing_ranks_of_the_flight_recorder(head: str) -> None:
    (event,) = read(FlightTextReader(), MISSING.format(head=head))
    assert isinstance(event, FlightReport)
    assert (event.seq, event.missing, event.world) == (31117, (3, 4), 5)
    assert (event.group, event.op, event.state) == ("0:default_pg", "nccl:all_reduce", "scheduled")
    assert event.expected == (0, 1, 2, 3, 4)
    assert event.frames == ("all_reduce at /p/distributed_c10d.py:2707", "step at /p/train.py:41")
    assert "missing ranks: {3, 4}" in event.at.text


def test_the_first_form_of_the_analyser_stands_on_one_line() -> None:
    line = (
        "Not all ranks joining collective for group 0:default_pg collective nccl:all_reduce  "
        "Missing ranks are {1, 2} [[3, 4]] [[3, 4]] 4 scheduled"
    )
    (event,) = read(FlightTextReader(), line)
    assert isinstance(event, FlightReport)
    assert (event.missing, event.op) == ((1, 2), "nccl:all_reduce")


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("Collective 39 at entry 38 errors", "error message"),
        ("Collective sequence number: 39 has errors", "error msg"),
    ],
)
def test_culprits_of_the_flight_recorder(head: str, name: str) -> None:
    text = (
        f"{head}\ngroup info: 0\nexpected ranks: 128\n{name}: Culprit rank 22; Error type: "
        "SIZE_OR_SYNTAX_MISMATCH, Expected input sizes: '[[1025]]' does not match found input "
        "sizes: '[[2]]', Culprit rank 110; Error type: COLLECTIVE_TYPE_MISMATCH"
    )
    (event,) = read(FlightTextReader(), text)
    assert isinstance(event, FlightReport)
    assert (event.seq, event.world, event.missing, event.expected) == (39, 128, None, ())
    assert [(rank, kind) for rank, kind, _ in event.culprits] == [
        (22, "SIZE_OR_SYNTAX_MISMATCH"),
        (110, "COLLECTIVE_TYPE_MISMATCH"),
    ]


def test_an_undecided_entry_names_nobody() -> None:
    line = (
        "We cannot decide what's wrong with this collective entry because we missed FR dumps from "
        "ranks ({3}) so we don't have enough information."
    )
    (event,) = read(FlightTextReader(), line)
    assert isinstance(event, FlightReport)
    assert (event.undecided, event.missing, event.culprits) == (True, None, ())


STALL = (
    "WARNING: One or more tensors were submitted to be reduced, gathered or broadcasted by subset "
    "of ranks and are waiting for remainder of ranks for more than 60 seconds. This may indicate "
    "that only subset of ranks is submitting tensors, which will cause deadlock. "
)


def stalls(text: str) -> list[HorovodStall]:
    events = read(HorovodReader(), text)
    assert all(isinstance(event, HorovodStall) for event in events)
    return [event for event in events if isinstance(event, HorovodStall)]


def test_ready_ranks_over_a_break_in_the_line() -> None:
    (event,) = stalls(
        STALL + "Stalled ops: a.weight [ready ranks: 5, 1, 4], a.bias [ready ranks: 5\n, 1, 4], "
        "b.weight [ready ranks: 5, 1"
    )
    assert (event.ready, event.missing, event.seconds) == ((1, 4, 5), (), 60.0)
    assert event.tensors == ("a.weight", "a.bias")
    assert "a.weight [ready ranks: 5, 1, 4]" in event.at.text


def test_a_number_that_may_be_torn_is_not_read() -> None:
    (event,) = stalls(
        STALL + "Stalled ops: a.weight [ready ranks: 5, 14], a.bias [ready ranks: 5, 1\n4]"
    )
    assert event.ready == (5, 14)


def test_missing_ranks_one_tensor_a_line() -> None:
    first, second = stalls(
        STALL + "\nStalled ops:\na.weight [missing ranks: 2, 3]\nb [missing ranks: 2, 3]\n"
        "c [missing ranks: 0]\nstep 5"
    )
    assert (first.missing, first.tensors) == ((2, 3), ("a.weight", "b"))
    assert (second.missing, second.tensors) == ((0,), ("c",))


def test_missing_ranks_one_rank_a_line() -> None:
    first, second = stalls(
        STALL + "\nMissing ranks:\n0: [allreduce.a, allreduce.b ...]\n3!: [allreduce.a]\n"
        'One or more rank (marked by "!") is stalled for longer than 60 seconds. Will shutdown.'
    )
    assert (first.missing, first.tensors) == ((0,), ("allreduce.a", "allreduce.b"))
    assert (second.missing, second.tensors) == ((3,), ("allreduce.a",))


NEW_HEAD = (
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time"
    "   algbw   busbw #wrong"
)
OLD_HEAD = NEW_HEAD.replace("#wrong", " error")
ROW = (
    "      524288        131072     float     sum      -1    663.1    0.79    0.79  {:>6}    569.4"
    "    0.92    0.92  {:>6}"
)


def bench(*lines: str) -> BenchRow:
    (event,) = read(BenchReader(), lines)
    assert isinstance(event, BenchRow)
    return event


def test_wrong_rows_are_counted_and_the_first_is_shown() -> None:
    event = bench(
        NEW_HEAD, ROW.format("0", "0"), ROW.format("237858", "1"), ROW.format("1.04858e+06", "nan")
    )
    assert (event.rows, event.wrong_rows, event.complete) == (3, 2, False)
    assert "237858" in event.at.text


def test_unchecked_rows_are_not_wrong() -> None:
    assert bench(NEW_HEAD, ROW.format("N/A", "N/A")).wrong_rows == 0


def test_the_old_column_is_a_difference_and_no_count() -> None:
    event = bench(
        OLD_HEAD,
        "   32768   4096   float   sum   13.39  1.22  1.22  1e-07  11.85  1.38  1.38  2e+00",
        "# Out of bounds values : 0 OK",
        "# Avg bus bandwidth    : 6.6",
    )
    assert (event.rows, event.wrong_rows, event.out_of_bounds) == (1, 0, 0)
    assert (event.bus_gb_s, event.complete) == (6.6, True)


def test_a_table_without_its_head_is_read() -> None:
    line = (
        "    32768   4096   float    13.39    1.22    1.22  0e+00    11.85    1.38    1.38  0e+00"
    )
    event = bench(line, "# Avg bus bandwidth    : 1.5e+02 ")
    assert (event.rows, event.wrong_rows, event.bus_gb_s) == (1, 0, 150.0)


def test_a_head_alone_says_nothing() -> None:
    assert read(BenchReader(), NEW_HEAD) == []


@pytest.mark.parametrize(
    ("reader", "starts"),
    [
        (RasTextReader, ["Job summary", "#0-0 (5f) MISMATCH", "  Rank 3 -- "]),
        (RasJsonReader, ['{"nccl_version"', '"communicators": [{"ranks": [{}], "size": {}}]}']),
        (FlightTextReader, ["Not all ranks joining collective", "missing ranks: "]),
        (HorovodReader, [STALL, "Stalled ops: a [ready ranks: "]),
        (BenchReader, [NEW_HEAD, "  1  1  float  "]),
    ],
)
@given(texts=st.lists(st.text(), min_size=1, max_size=6))
def test_any_text_is_read(reader: type[Reader], starts: list[str], texts: list[str]) -> None:
    lines = [starts[0]]
    for place, text in enumerate(texts):
        lines.append(starts[place % len(starts)] + text)
        lines.append(text)
    read(reader(), lines)
