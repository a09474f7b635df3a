"""Bytes to traces: places are right, blocks make no difference, nothing is invented or raised."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmtop.model.events.nccl import CommCalls
from slurmtop.model.events.torch import WatchdogTimeout
from slurmtop.model.trace import Event, Traces
from slurmtop.parse.logs import keeping, reading
from slurmtop.parse.logs.line import Message
from slurmtop.parse.logs.raws import Block, Raw, RawLines
from slurmtop.parse.logs.reading import SourceReader, read_bytes
from tests.parse.logs.seen import Everything, read, texts

WATCHDOG = (
    b"[rank2]:[E816 00:34:01.133910474 ProcessGroupNCCL.cpp:629] [Rank 2] Watchdog caught "
    b"collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
    b"Timeout(ms)=600000) ran for 600004 milliseconds before timing out.\n"
)
CALL = (
    b"node-a:215:215 [0] NCCL INFO AllReduce: opCount 1f sendbuff 0x7f recvbuff 0x7f count 8 "
    b"datatype 7 op 0 root 0 comm 0x4e0140a0 [nranks=16] stream 0xb1\n"
)
REQUEUE = (
    b"slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2025-08-12T02:06:12 DUE TO JOB REQUEUE ***\n"
    b"slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2025-08-12T02:06:12 DUE TO "
    b"JOB REQUEUE ***\n"
)
RESTART = (
    b"W0816 00:34:01.133000 42 torch/distributed/elastic/agent/server/api.py:719] [default] "
    b"Worker group FAILED. 2/3 attempts left; will restart worker group\n"
)


def in_blocks(data: bytes, cuts: list[int]) -> Traces:
    reader = SourceReader("x.log")
    last = 0
    for cut in sorted(cut % (len(data) + 1) for cut in cuts):
        reader.feed(data[last:cut])
        last = cut
    reader.feed(data[last:])
    return reader.finish()


def test_a_message_stands_where_its_line_does() -> None:
    messages, traces = read(b"one\n\n  \n[rank1]: two\nthree")
    assert [(m.text, m.at.line, m.at.offset) for m in messages] == [
        ("one", 1, 0),
        ("two", 4, 8),
        ("three", 5, 21),
    ]
    assert [m.at.order for m in messages] == [0, 1, 2]
    source = traces.sources[0]
    assert (source.lines, source.read_bytes, source.cut) == (5, 26, True)
    assert source.first is not None
    assert source.last is not None
    assert (source.first.text, source.last.text) == ("one", "three")


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"a\r\nb\r\n", ["a", "b"]),
        (b" 1%|  | 1/9\r50%|# | 5/9\r\n", [" 1%|  | 1/9", "50%|# | 5/9"]),
        (b"\x1b[1;31mERROR\x1b[0m x\n", ["ERROR x"]),
        (b"\0\0\0a\0b\n", ["ab"]),
        (b"gr\xfcn\n", ["gr\ufffdn"]),
        ("\ufeffstep 1\nzwei\n".encode("utf-16-le"), ["step 1", "zwei"]),
        ("step 1, grün\nzwei\n".encode("utf-16-be"), ["step 1, grün", "zwei"]),
        (b"\xef\xbb\xbfn1: step 1\nzwei\n", ["n1: step 1", "zwei"]),
        (b"n1: step 1\n\xef\xbb\xbfn2: step 1\n", ["n1: step 1", "n2: step 1"]),
        (b"x" * 20_000 + b"\ny\n", ["x" * 4_000, "y"]),
        (b"0 | 2021-03-02 00:46:12,994 - a   \xe2\x94\x82\n^C   \xe2\x94\x82\n", ["a", "^C"]),
        (b"", []),
        (b"\n\n", []),
    ],
)
def test_any_bytes_become_lines(data: bytes, shown: list[str]) -> None:
    assert texts(data) == shown


def test_offsets_of_utf16_count_bytes_of_the_file() -> None:
    data = "grün\nzwei\n".encode("utf-16")
    messages, _ = read(data)
    assert [message.at.offset for message in messages] == [2, data.index("z".encode("utf-16-le"))]


def test_a_mark_of_utf8_is_part_of_no_name() -> None:
    data = b"node-2:41:41 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\nn2: zwei\n"
    plain, _ = read(data)
    marked, traces = read(b"\xef\xbb\xbf" + data)
    assert [one.at.host for one in marked] == [one.at.host for one in plain]
    assert [one.at.offset for one in marked] == [one.at.offset + 3 for one in plain]
    assert traces.sources[0].read_bytes == len(data) + 3


def test_a_bar_that_never_ends_a_line_costs_no_memory_and_no_error() -> None:
    bars = b"".join(b"\r%3d%%|## | %d/90000" % (n // 900, n) for n in range(90_000))
    messages, traces = read(bars + b"[rank1]: late\nnext\n")
    assert messages[-1].text == "next"
    assert messages[-1].at.line == 2
    assert messages[-1].at.offset == len(bars) + len(b"[rank1]: late\n")
    assert traces.sources[0].lines == 2


def test_a_hole_of_zeros_hides_nothing_behind_it() -> None:
    data = b"one\n" + b"\0" * 2_000_000 + b"two\nthree\n"
    messages, _ = read(data)
    assert [(m.text, m.at.line) for m in messages] == [("one", 1), ("two", 2), ("three", 3)]
    assert messages[2].at.offset == len(data) - len(b"three\n")


def test_behind_a_gap_lines_have_no_number() -> None:
    messages, traces = read(b"one\ntwo\nthr", 1_000, b"x of a cut line\nfour\n")
    assert [(m.text, m.at.line, m.at.offset) for m in messages] == [
        ("one", 1, 0),
        ("two", 2, 4),
        ("thr", 3, 8),
        ("four", None, 1_027),
    ]
    assert traces.sources[0].unread == ((11, 1_000),)


def test_a_number_that_is_known_behind_a_gap_is_kept() -> None:
    found: list[Message] = []
    reader = SourceReader("x", readers=[lambda: Everything(found)])
    reader.feed(b"one\n")
    reader.skip(50, number=8)
    reader.feed(b"rest\nnine\n")
    reader.finish()
    assert [(m.text, m.at.line) for m in found] == [("one", 1), ("nine", 9)]


def test_a_source_tells_its_ends() -> None:
    lines = [f"2025-08-12 09:{n // 60:02d}:{n % 60:02d} step {n}" for n in range(0, 600, 10)]
    source = read("\n".join([*lines, "bye", ""]).encode(), name="logs/rank118.log")[1].sources[0]
    assert (source.rank, source.host, source.cut) == (118, None, False)
    assert source.last is not None
    assert source.last.text == "bye"
    assert source.last_stamped is not None
    assert source.last_stamped.line == 60


def test_what_the_caller_knows_goes_into_the_source() -> None:
    reader = SourceReader("x")
    reader.feed(b"a\n")
    assert reader.finish(size=77, rank=5).sources[0].size == 77


def test_a_restart_begins_an_attempt_behind_its_line() -> None:
    traces = read_bytes("x", WATCHDOG + RESTART + WATCHDOG)
    assert [event.at.attempt for event in traces.of(WatchdogTimeout)] == [0, 1]


def test_a_requeue_begins_one_attempt_when_the_new_run_speaks() -> None:
    dying = b"srun: error: n1: task 0: Terminated\nsubmitit WARNING (2025-08-12 02:06:12) - x\n"
    data = WATCHDOG + REQUEUE + dying + b"NCCL version 2.27.5+cuda12.9\n" + WATCHDOG
    traces = read_bytes("x", data)
    assert [event.at.attempt for event in traces.of(WatchdogTimeout)] == [0, 1]
    assert {event.at.attempt for event in read_bytes("x", WATCHDOG + REQUEUE + dying).events} == {0}


def test_events_that_come_thousands_of_times_are_bounded() -> None:
    one = b"[rank%d]: ValueError: %s\n"
    words = [bytes([97 + n % 26, 97 + n // 26 % 26, 97 + n // 676]) for n in range(9_000)]
    traces = read_bytes("x", b"".join(one % (n % 9, word) for n, word in enumerate(words)))
    assert len(traces.events) < 7_000
    assert traces.sources[0].dropped_events > 0
    assert traces.events[0].at.line == 1
    assert traces.events[-1].at.line == 9_000


def test_of_thousands_of_like_lines_of_a_rank_the_first_and_the_last_are_read() -> None:
    one = b"[rank%d]: ValueError: x%d\n"
    traces = read_bytes("x", b"".join(one % (n % 9, n) for n in range(9_000)))
    assert len(traces.events) < 2_500
    assert [event.at.line for event in (*traces.events[:9], *traces.events[-9:])] == [
        *range(1, 10),
        *range(8_992, 9_001),
    ]


def test_the_events_of_a_source_stand_in_reading_order() -> None:
    traces = read_bytes("x", CALL * 3 + WATCHDOG + REQUEUE + CALL)
    orders = [event.at.order for event in traces.events]
    assert orders == sorted(orders)
    assert traces.of(CommCalls)[0].collectives == 4


def test_what_is_shown_stands_in_its_line() -> None:
    data = b"7%|# | 1/9 [0]" + WATCHDOG + CALL + b"a\n" * 5 + REQUEUE + RESTART
    lines = data.decode().split("\n")
    for event in read_bytes("x", data).events:
        assert event.at.line is not None
        assert event.at.text in lines[event.at.line - 1]
        assert event.at.text


PIECES = st.sampled_from(
    [
        WATCHDOG,
        CALL,
        REQUEUE,
        RESTART,
        WATCHDOG[:99],
        CALL[:130],
        b"\n",
        b"\r",
        b"\r\n",
        b" ",
        b"\0",
        b"\xff",
        b"\xc3\xbc",
        b"\x1b[31m",
        b"[rank3]: ",
        b"3: ",
        b"node-a: ",
        b"Traceback (most recent call last):\n",
        b'  File "x.py", line 1, in f\n',
        b"ValueError: x\n",
        b"step 3/4 loss 2\n",
        b"x" * 90,
        b"[451/1919]\n",
        b"n=71552, NumelOut=3",
        b"\xff\xfe",
        b"[2025-08-12 09:00:01] ",
        b"Job summary\n===========\n",
        b"node-a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC\n",
        b"x" * 20_000,
    ]
)
LOGS = st.lists(PIECES | st.binary(max_size=8), max_size=25).map(b"".join)


@settings(max_examples=60, deadline=None)
@given(LOGS, st.lists(st.integers(0, 10_000), max_size=6))
def test_the_blocks_in_which_a_log_comes_make_no_difference(data: bytes, cuts: list[int]) -> None:
    whole = read_bytes("x.log", data)
    assert in_blocks(data, cuts).events == whole.events
    assert in_blocks(data, cuts).sources[0].lines == whole.sources[0].lines


@settings(max_examples=25, deadline=None)
@given(LOGS, st.integers(1, 40), st.lists(st.integers(0, 10_000), max_size=6))
def test_blocks_make_no_difference_in_a_log_of_many_chunks(
    data: bytes, chunk: int, cuts: list[int]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_CHUNK", chunk * 50)
        assert in_blocks(data, cuts).events == in_blocks(data, []).events


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_are_read_without_an_exception(data: bytes) -> None:
    events = read_bytes("x", data).events
    assert all(isinstance(event, Event) for event in events)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 200))
def test_two_ranks_that_tear_each_others_lines_raise_nothing(seed: int, most: int) -> None:
    logs = [(WATCHDOG + CALL + RESTART) * 3, (CALL + WATCHDOG.replace(b"rank2", b"rank5")) * 3]
    torn, mix = b"", random.Random(seed)
    while any(logs):
        at = mix.randrange(2)
        size = mix.randrange(1, most + 1)
        torn, logs[at] = torn + logs[at][:size], logs[at][size:]
    for event in read_bytes("x", torn).of(WatchdogTimeout):
        assert event.at.rank in (2, 5, None)


def test_what_is_kept_is_counted_in_lines_not_in_bytes() -> None:
    assert keeping._ENDS < 100
    messages, _ = read(b"x\n" * 100_000)
    assert len(messages) == 100_000


@given(st.binary(max_size=60).map(lambda data: data.replace(b"a", b"\n").replace(b"b", b"\r")))
def test_a_last_line_without_an_end_is_a_line_of_its_block(data: bytes) -> None:
    apart, together = RawLines(), RawLines()
    before = apart.feed(data)
    unfinished = apart.unfinished
    before += apart.finish()
    after = together.feed(data, final=True)
    assert together.unfinished == unfinished
    after += together.finish()
    assert _raws(after) == _raws(before)
    assert together.count == apart.count


def _raws(blocks: list[Block]) -> list[Raw]:
    return [block.raw(at) for block in blocks for at in range(len(block.lines))]
