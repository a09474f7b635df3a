"""Every logged call is counted once, whoever's line it stands in; of each communicator the newest
are kept with their places; other lines go on to the readers."""

from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.events.nccl import Call, CommCalls
from slurmtop.model.trace import RankFrom
from slurmtop.parse.logs.calls import KEPT, CallLines
from slurmtop.parse.logs.forms import Forms
from slurmtop.parse.logs.raws import Block
from slurmtop.parse.logs.reading import read_bytes
from tests.parse.logs.seen import texts


def call(
    op: str = "AllReduce",
    *,
    host: str = "node-a",
    pid: int = 215,
    op_count: int = 0,
    count: int = 8,
    root: int = 0,
    comm: str = "0x4e0140a0",
    nranks: int = 16,
) -> str:
    return (
        f"{host}:{pid}:{pid + 3} [0] NCCL INFO {op}: opCount {op_count:x} sendbuff 0x7f78 "
        f"recvbuff 0x7f79 count {count} datatype 7 op 0 root {root} comm {comm} "
        f"[nranks={nranks}] stream 0xb1"
    )


def told(text: str) -> tuple[CommCalls, ...]:
    return read_bytes("x", text.encode()).of(CommCalls)


def test_the_calls_of_a_communicator_are_one_event() -> None:
    lines = [call(op_count=n, count=n + 1) for n in range(100)]
    (event,) = told("\n".join([*lines, ""]))
    assert (event.comm, event.nranks, event.collectives) == ("0x4e0140a0", 16, 100)
    assert (event.at.host, event.at.pid, event.at.line) == ("node-a", 215, 100)
    assert event.first_at is not None
    assert event.first_at.line == 1
    assert len(event.last) == len(event.last_at) == KEPT
    assert event.last[-1] == Call("AllReduce", 100, 7, 0, 0, 99)
    assert [at.line for at in event.last_at] == list(range(37, 101))
    assert [at.text for at in event.last_at] == lines[36:]
    assert event.op_count_moves


def test_processes_and_communicators_are_kept_apart() -> None:
    lines = [
        call(host=host, pid=pid, comm=comm)
        for host in ("64", "node-b")
        for pid in (1, 2)
        for comm in ("0x1", "0x2")
    ]
    events = told("\n".join(lines * 3))
    assert {(e.at.host, e.at.pid, e.comm): e.collectives for e in events} == {
        (host, pid, comm): 3
        for host in ("64", "node-b")
        for pid in (1, 2)
        for comm in ("0x1", "0x2")
    }


def test_an_op_count_that_stands_still_is_told() -> None:
    (event,) = told(f"{call()}\n{call(count=9)}\n")
    assert not event.op_count_moves


def test_sends_and_receives_are_counted_by_peer_and_are_no_collectives() -> None:
    lines = [call("Send", root=1), call("Recv", root=2), call("Send", root=1), call("Broadcast")]
    (event,) = told("\n".join(lines))
    assert (event.sends, event.receives, event.collectives) == (((1, 2),), ((2, 1),), 1)
    assert [one.op for one in event.last] == ["Broadcast"]
    assert event.at.line == 4


def test_a_process_that_only_sends_has_no_collective() -> None:
    (event,) = told(call("Send", root=3) + "\n")
    assert (event.collectives, event.last, event.at.line) == (0, (), 1)


def test_prefixes_tell_the_writer_of_each_call() -> None:
    prefixes = ("3: ", "[rank3]:", "2025-08-12 09:37:02.2 worker-9 >> ", "[1,3]<stdout>:", "")
    for prefix in prefixes:
        (event,) = told("\n".join(f"{prefix}{call(op_count=n)}" for n in range(9)))
        assert (event.collectives, event.at.host, event.at.pid) == (9, "node-a", 215), prefix
    (tagged,) = told(f"[rank3]:{call()}\n")
    assert (tagged.at.rank, tagged.at.rank_from) == (3, RankFrom.TAG)
    assert tagged.last_at[0].text.startswith("[rank3]:node-a")


def test_without_a_host_the_collectors_tag_keeps_processes_apart() -> None:
    lines = [f"2025-08-12 09:37:0{n}.2 worker-{n % 2} >> {call(host='')}" for n in range(6)]
    events = told("\n".join(lines))
    assert [(event.at.label, event.at.host, event.collectives) for event in events] == [
        ("worker-0", None, 3),
        ("worker-1", None, 3),
    ]


def test_two_calls_torn_into_one_line_count_as_two() -> None:
    other = call(host="node-b", pid=7)
    events = told(f"{call()}{other}\n{call()}\n{other}\n")
    assert [(e.at.host, e.at.pid, e.collectives, e.torn) for e in events] == [
        ("node-a", 215, 2, 0),
        ("node-b", 7, 2, 0),
    ]


def test_a_host_that_only_stands_glued_to_other_words_is_not_believed() -> None:
    (event,) = told(f"{call()}{call(host='b-1', pid=7)}\n")
    assert (event.at.host, event.collectives, event.torn) == ("node-a", 1, 1)


def test_a_call_that_is_cut_makes_every_number_unsure() -> None:
    for size in (60, 90, 120, 145):
        (event,) = told(f"{call()}\n{call()[:size]}\n")
        assert (event.collectives, event.torn) == (1, 1), size
    (event,) = told(f"{call()[:99]}{call()}\n{call()[99:]}\n{call()}\n")
    assert event.torn > 0


def test_a_call_glued_to_other_words_does_not_hide_them() -> None:
    text = f"{call()}[rank5]:[E816 00:34:01.1 P.cpp:6] [Rank 5] Watchdog\n"
    assert "[Rank 5] Watchdog" in texts(text.encode())
    assert told(text)[0].collectives == 1


def test_a_cut_call_is_no_call() -> None:
    for size in (30, 60, 90, 150):
        assert told(call()[:size]) == ()


def test_the_trace_of_calls_counts_where_the_other_form_is_missing() -> None:
    traced = "node-a:215:218 NCCL CALL ncclAllReduce(7f91,7f92,8,7,0,0,0x4e0140a0,0xb1)"
    (event,) = told(f"{traced}\nnode-a:215:218 NCCL CALL ncclGroupStart()\n{traced}\n")
    assert (event.comm, event.collectives, event.at.pid) == ("0x4e0140a0", 2, 215)
    assert event.last[0] == Call("AllReduce", 8, 7, 0, 0, 0)
    (both,) = told(f"{traced}\n{call()}\n{traced}\n{call()}\n{call()}\n")
    assert both.collectives == 3


def test_the_form_of_rccl_is_read() -> None:
    (event,) = told(f"{call()} task 0 globalrank 2\n")
    assert event.collectives == 1


def test_a_gigabyte_keeps_the_newest_only() -> None:
    taken = CallLines()
    places = 0
    for _ in range(40):
        lines = [call(op_count=places + n, pid=n % 5).encode() for n in range(1_000)]
        block = Block(lines, number=places + 1, offset=places * 99, place=places, serial=places)
        assert list(taken.take(block, Forms(block.lines))) == []
        places += 1_000
    for comm in taken.all():
        assert comm.collectives == 8_000
        newest = [kept.number for kept in comm.newest()]
        assert len(newest) == KEPT
        assert newest == sorted(newest, key=lambda number: number or 0)
        last = comm.last_line()
        assert last is not None
        assert (last.number or 0) > 39_990
    assert len(taken._recent) < 10


def test_channels_are_shown_once_a_process_and_kind() -> None:
    lines = [
        f"node-a:{pid}:9 [0] NCCL INFO Channel {n:02d}/0 : 3[3] -> 4[4] via {via}"
        for n in range(8)
        for pid in (1, 2)
        for via in ("P2P/CUMEM", "NET/IB/0/GDRDMA")
    ]
    lines += [f"node-a:1:9 [0] NCCL INFO Ring {n:02d} : 7 -> 0 -> 1" for n in range(8)]
    lines += ["node-a:1:9 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1"] * 3
    got = texts("\n".join(lines).encode())
    assert len(got) == 4 + 1 + 1


def test_lines_that_only_look_like_wiring_are_shown() -> None:
    lines = ["node-a:1:9 [0] NCCL INFO Channel closed by peer: timeout"] * 3
    assert len(texts("\n".join(lines).encode())) == 3


BITS = st.sampled_from(
    [
        call(),
        call("Send"),
        call()[:77],
        "NCCL CALL nccl",
        ": opCount ",
        "3: ",
        "\n",
        "comm 0x1",
        " ",
        ":1:2 ",
    ]
)


@given(st.lists(BITS | st.text(max_size=4), max_size=12).map("".join))
def test_any_text_is_taken_without_an_exception(text: str) -> None:
    for event in told(text):
        assert event.collectives + len(event.sends) + len(event.receives) > 0
        assert len(event.last) == len(event.last_at)
