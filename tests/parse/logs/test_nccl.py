"""NCCL's own lines: what a process says of itself, and the reader of a whole log."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.events.nccl import (
    Channel,
    ClosedByLocalRank,
    CommInit,
    Connected,
    InitPhase,
    InitTimings,
    NcclAddress,
    NcclChain,
    NcclNetwork,
    NcclRetry,
    NcclSetting,
    NcclVersion,
    NcclWarn,
    Warn,
)
from slurmtop.model.trace import Event
from slurmtop.parse.logs.nccl import NcclReader
from tests.parse.logs.messages import message, read


def one(line: str) -> Event:
    events = read(NcclReader(), [line])
    assert len(events) == 1, events
    return events[0]


def none(line: str) -> None:
    assert read(NcclReader(), [line]) == []


def comm(line: str) -> CommInit:
    found = one("NCCL INFO " + line)
    assert isinstance(found, CommInit)
    return found


@pytest.mark.parametrize(
    ("line", "phase", "comm_id"),
    [
        ("comm 0x7fa4 rank 0 nranks 2", InitPhase.START, None),
        ("comm 0x7fa4 rank 0 nranks 2 - COMPLETE", InitPhase.COMPLETE, None),
        (
            "comm 0x7fa4 rank 0 nranks 2 cudaDev 1 nvmlDev 1 - Init COMPLETE",
            InitPhase.COMPLETE,
            None,
        ),
        (
            "comm 0x7fa4 rank 0 nranks 2 cudaDev 1 busId 4f000 - Init COMPLETE",
            InitPhase.COMPLETE,
            None,
        ),
        (
            "comm 0x7fa4 rank 0 nranks 2 cudaDev 1 busId 4f000 commId 0xE49f - Init COMPLETE",
            InitPhase.COMPLETE,
            "e49f",
        ),
        (
            "comm 0x7fa4 rank 0 nranks 2 cudaDev 1 nvmlDev 1 busId 4f000 commId 0xe49f "
            "- Init START",
            InitPhase.START,
            "e49f",
        ),
        (
            "ncclCommInitRankConfig comm 0x7fa4 rank 0 nranks 2 cudaDev 1 nvmlDev 1 busId 4f000 "
            "commId 0xe49f - Init COMPLETE",
            InitPhase.COMPLETE,
            "e49f",
        ),
        (
            "[Rank 0] ncclCommInitRank comm 0x7fa4 rank 0 nranks 2 cudaDev 1 nvmlDev 1 busId 4f000 "
            "commId 0xe49f - Init START",
            InitPhase.START,
            "e49f",
        ),
        (
            "comm 0x7fa4 rank 0 nRanks 2 cudaDev 1 busId 4f000 commId 0xe49f - Destroy START",
            InitPhase.LEAVING,
            "e49f",
        ),
        (
            "comm 0x7fa4 rank 0 nranks 2 cudaDev 1 busId 4f000 - Destroy COMPLETE",
            InitPhase.DESTROYED,
            None,
        ),
        (
            "comm 0x7fa4 rank 0 nranks 2 cudaDev 1 busId 4f000 - Abort COMPLETE",
            InitPhase.ABORTED,
            None,
        ),
    ],
)
def test_a_communicator_begins_and_ends_in_every_version(
    line: str, phase: InitPhase, comm_id: str | None
) -> None:
    found = comm(line)
    assert (found.comm, found.rank, found.nranks) == ("0x7fa4", 0, 2)
    assert (found.phase, found.comm_id) == (phase, comm_id)
    assert found.cuda_dev in (None, 1)
    assert found.bus_id in (None, "4f000")


@pytest.mark.parametrize(
    ("line", "split", "comm_id"),
    [
        (
            "ncclCommSplit comm 0x6f rank 1 nranks 2 cudaDev 3 nvmlDev 3 busId d000 parent 0x5f "
            "color -7 key 3 commId 0x2f - Init START",
            None,
            "2f",
        ),
        (
            "ncclCommSplit comm 0x6f rank 1 nranks 2 cudaDev 3 nvmlDev 3 busId d000 parent 0x5f "
            "color -7 key 3- Init START",
            None,
            None,
        ),
        (
            "ncclCommSplit comm 0x6f rank 1 nranks 2 cudaDev 3 nvmlDev 3 busId d000 parent 0x5f "
            "splitCount 4 color -7 key 3- Init START",
            4,
            None,
        ),
        (
            "ncclCommShrink comm 0x6f rank 1 nranks 2 cudaDev 3 nvmlDev 3 busId d000 commId 0x2f "
            "parent 0x5f childCount 4 color -7 key 3 - Init START",
            4,
            "2f",
        ),
    ],
)
def test_a_split_names_its_parent(line: str, split: int | None, comm_id: str | None) -> None:
    found = comm(line)
    assert (found.comm, found.parent, found.split) == ("0x6f", "0x5f", split)
    assert (found.color, found.key, found.comm_id) == (-7, 3, comm_id)
    assert found.phase is InitPhase.START


@pytest.mark.parametrize(
    "line",
    [
        "comm 0x7f rank 3 nRanks 8 nNodes 2 localRanks 4 localRank 3 MNNVL 0",
        "comm 0x7f rank 3 nranks 8 cudaDev 3 busId d000 - Init COM",
        "AllReduce: opCount 0 sendbuff 0x7f recvbuff 0x7f count 8 datatype 7 op 0 root 0 comm 0x5f "
        "[nranks=8] stream 0x5f",
        "Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1",
        "RAS client listening socket at 127.0.0.1<28028>",
        "NET/Plugin : No plugin found (libnccl-net.so), using internal implementation",
        "group.cc:64 Mem Alloc Size 8 pointer 0x7f",
        "init.cc:1 -> 7",
    ],
)
def test_lines_that_tell_nothing_here(line: str) -> None:
    none("NCCL INFO " + line)


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("NCCL version 2.27.5+cuda12.9", "2.27.5"),
        ("NCCL version 2.4.7+cudaCUDA_MAJOR.CUDA_MINOR", "2.4.7"),
        ("NCCL INFO NCCL version 2.8.3+cuda11.1", "2.8.3"),
        ("RCCL version 2.18.3+hip6.0 HEAD:2f6d59e", "2.18.3"),
        ("RCCL version : 2.22.3-develop:8a1c2", "2.22.3"),
        (
            "… NCCL error in: x/NCCLUtils.hpp:268, unhandled cuda error, NCCL version 2.21.5",
            "2.21.5",
        ),
    ],
)
def test_versions(line: str, version: str) -> None:
    found = one(line)
    assert isinstance(found, NcclVersion)
    assert found.version == version


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("NCCL_SOCKET_IFNAME set by environment to eth2", "NCCL_SOCKET_IFNAME", "eth2"),
        ("NCCL_SOCKET_IFNAME set to =ib0,ib1", "NCCL_SOCKET_IFNAME", "=ib0,ib1"),
        ("NCCL_IB_DISABLE set by environment to 1.", "NCCL_IB_DISABLE", "1"),
        ("NCCL_IB_HCA set to ^mlx5_4", "NCCL_IB_HCA", "^mlx5_4"),
        ("NCCL_TOPO_FILE set by environment to /a/v1.", "NCCL_TOPO_FILE", "/a/v1."),
    ],
)
def test_settings(line: str, name: str, value: str) -> None:
    found = one("NCCL INFO " + line)
    assert isinstance(found, NcclSetting)
    assert (found.name, found.value) == (name, value)


@pytest.mark.parametrize(
    ("line", "addresses"),
    [
        ("Bootstrap : Using eth0:10.0.0.1<0>", ["eth0=10.0.0.1"]),
        ("Bootstrap: Using ib0:fe80::ba59:9f03:fc:765c%ib0<0>", ["ib0=fe80::ba59:9f03:fc:765c"]),
        (
            "Bootstrap : Using [0]eth0:node2_ip<0> [1]docker0:172.17.0.1<0> [2]lo:127.0.0.1<0>",
            ["eth0=node2_ip"],
        ),
        (
            "NET/Socket : Using [0]bond0.3:10.0.0.1<0> [1]ib1:10.1.0.1<0>",
            ["bond0.3=10.0.0.1", "ib1=10.1.0.1"],
        ),
        (
            "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB em1:10.0.0.82<0>",
            ["em1=10.0.0.82"],
        ),
        ("NET : Using interface enp3s0:10.0.0.103<0>", ["enp3s0=10.0.0.103"]),
        ("socketProgress: peer fe80::1:78%ib0<53249> is ready", []),
    ],
)
def test_addresses_tie_a_host_to_what_peers_call_it(line: str, addresses: list[str]) -> None:
    events = read(NcclReader(), ["NCCL INFO " + line])
    found = [one for one in events if isinstance(one, NcclAddress)]
    assert [f"{at.interface}={at.address}" for at in found] == addresses


def test_networks() -> None:
    lines = (
        "NCCL INFO NET/IB : No device found.",
        "NCCL INFO Using network Socket",
        "NCCL INFO Using network Socket",
        "NCCL INFO Using internal Network IB",
        "NCCL INFO Using network AWS Libfabric",
        "NCCL INFO Assigned NET plugin UCX to comm",
    )
    events = read(NcclReader(), lines)
    names = [event.name for event in events if isinstance(event, NcclNetwork)]
    assert names == [None, "Socket", "IB", "AWS Libfabric", "UCX"]


def test_timings_give_the_parts_of_the_start_in_seconds() -> None:
    found = one(
        "NCCL INFO Init timings - ncclCommInitRankConfig: rank 3 nranks 8 total 55.01 (kernels "
        "52.45, alloc 0.41, bootstrap 0.57, rest 0.51)"
    )
    assert isinstance(found, InitTimings)
    assert (found.rank, found.nranks, found.total_s) == (3, 8, 55.01)
    assert found.parts[:2] == (("kernels", 52.45), ("alloc", 0.41))
    old = one("NCCL INFO Init timings: rank 3 nranks 8 total 5.10 (kernels 1.00, rest 4.10)")
    assert isinstance(old, InitTimings)
    assert old.total_s == 5.1


@pytest.mark.parametrize(
    ("line", "ends", "via"),
    [
        ("Ring 01 : 15 -> 0 [send] via NET/AWS Libfabric/0", (15, 0), "NET/AWS Libfabric"),
        ("Ring 00 : 2[1a000] -> 3[1b000] via direct shared memory", (2, 3), "direct shared memory"),
        ("Channel 00 : 1[c2000] -> 0[c1000] via P2P/direct pointer", (1, 0), "P2P/direct pointer"),
        ("Channel 00/0 : 3[3] -> 4[4] via P2P/CUMEM", (3, 4), "P2P/CUMEM"),
        (
            "Channel 02/0 : 82[2] -> 90[2] [send] via NET/IBext_v8/3(81)/GDRDMA/Shared",
            (82, 90),
            "NET/IBext_v8/GDRDMA/Shared",
        ),
        ("Channel 02/0 : 8[2] -> 9[2] [receive] via NET/Socket/1", (8, 9), "NET/Socket"),
    ],
)
def test_ways_between_ranks(line: str, ends: tuple[int, int], via: str) -> None:
    found = one("NCCL INFO " + line)
    assert isinstance(found, Channel)
    assert ((found.sender, found.receiver), found.via) == (ends, via)


def test_of_many_channels_the_first_of_each_way_and_process_is_kept() -> None:
    lines = [
        f"NCCL INFO Channel {n:02}/0 : 1[1] -> {2 + n % 2}[2] [send] via NET/IB/{n % 8}"
        for n in range(32)
    ]
    reader = NcclReader()
    assert len(read(reader, lines, pid=1)) == 1
    assert len(read(reader, lines, pid=2)) == 1


def test_of_many_retries_the_first_and_the_last_are_kept() -> None:
    lines = [
        "NCCL INFO Call to connect returned Connection refused, retrying",
        "NCCL INFO Call to connect returned Connection refused, retrying",
        "NCCL INFO socketPollConnect: connect returned No route to host, retrying "
        "(2/34) after sleep"
        " for 200 msec",
        "NCCL INFO socketPollConnect: connect to n7<5> returned Connection refused, "
        "retrying (3/34) "
        "after sleep for 300 msec",
    ]
    found = [event for event in read(NcclReader(), lines) if isinstance(event, NcclRetry)]
    assert [(event.error, event.peer) for event in found] == [
        ("Connection refused", None),
        ("No route to host", None),
        ("Connection refused", "n7"),
        ("Connection refused", None),
    ]


def test_a_retry_tells_how_many_are_left() -> None:
    text = "NCCL INFO Call to connect to n7<5> returned No route to host, retrying {} after sleep"
    lines = [text.format(f"({at}/34)") for at in range(1, 35)]
    found = [event for event in read(NcclReader(), lines) if isinstance(event, NcclRetry)]
    assert [(event.attempt, event.attempts) for event in found] == [(1, 34), (34, 34)]


def test_the_first_failed_call_of_each_process_and_result_is_kept() -> None:
    lines = [
        "NCCL INFO misc/socket.cc:504 -> 2 (Operation now in progress)",
        "NCCL INFO bootstrap.cc:270 -> 2",
        "NCCL INFO os/linux.cc:9 (ncclOsSocketProgressOpt) -> 6 [Async thread]",
        "NCCL INFO group.cc:64 -> 0",
    ]
    found = [event for event in read(NcclReader(), lines) if isinstance(event, NcclChain)]
    assert [(event.file, event.result) for event in found] == [
        ("misc/socket.cc", 2),
        ("os/linux.cc", 6),
    ]


def test_local_ranks_that_closed_and_rings_that_are_connected() -> None:
    lines = [
        "NCCL INFO Connected all rings, use ring PXN 0 GDR 1",
        "NCCL INFO Connected all trees",
        "NCCL INFO [Service thread] Connection closed by localRank 7",
    ]
    found = read(NcclReader(), lines)
    assert [type(event) for event in found] == [Connected, ClosedByLocalRank]


def test_lines_of_before_2_3_have_no_nccl_in_them() -> None:
    reader = NcclReader()
    lines = [
        "node-a:18553:18553 [0] INFO NET : Using interface enp3s0:10.0.0.103<0>",
        "node-a:18553:18553 [0] INFO Using internal Network Socket",
        "node-a:18553:18612 [0] INFO comm 0x7fa42c00a3b0 rank 0 nranks 2",
        "node-a:18553:18611 [0] include/socket.h:360 WARN Call to connect failed : "
        "Connection timed "
        "out",
        "node-a:18553:18611 [0] INFO bootstrap.cu:28 -> 2 [Net]",
        "[2026-01-01] [worker] INFO comm 0x1 rank 0 nranks 2",
    ]
    assert [type(event) for event in read(reader, lines)] == [
        NcclAddress,
        NcclNetwork,
        CommInit,
        NcclWarn,
        NcclChain,
    ]


def test_a_peeled_line_of_before_2_3_is_known_by_its_head() -> None:
    peeled = message("INFO Using internal Network IB")
    assert list(NcclReader().see(peeled)) == []
    known = type(peeled)(peeled.text, "", peeled.at, head="node-a:18553:18612 [0]")
    assert len(list(NcclReader().see(known))) == 1


def test_newer_versions_say_of_a_foreign_caller_as_info() -> None:
    found = one("NCCL INFO socketFinalizeAccept: didn't receive a valid magic from 10.9.9.9<443>")
    assert isinstance(found, NcclWarn)
    assert (found.kind, found.peer) == (Warn.FOREIGN, "10.9.9.9")


def test_an_allocation_that_fails_after_another_failure_of_cuda_is_that_failure() -> None:
    lines = [
        "include/alloc.h:178 NCCL WARN Cuda failure 'invalid argument'",
        "include/alloc.h:185 NCCL WARN Failed to CUDA calloc 64 bytes",
        "include/alloc.h:185 NCCL WARN Failed to CUDA calloc 64 bytes",
    ]
    found = read(NcclReader(), lines)
    kinds = [event.kind for event in found if isinstance(event, NcclWarn)]
    assert kinds == [Warn.CUDA, Warn.CUDA, Warn.OUT_OF_MEMORY]


def test_the_same_warning_of_one_process_is_kept_a_few_times_only() -> None:
    line = "transport/net_ib.cc:1 NCCL WARN NET/IB : Got completion from peer n2<5> with error 5"
    assert 1 < len(read(NcclReader(), [line] * 500)) < 20


LINES = st.sampled_from(
    [
        "NCCL INFO ",
        "NCCL WARN ",
        "[0] INFO ",
        "comm 0x5f rank 1 nranks ",
        "- Init START",
        " via NET/IB/",
        "Channel 00/0 : 1[1] -> 2[2]",
        " set by environment to ",
        "Using ",
        "eth0:10.0.0.1<0>",
        "Init timings: rank 1 nranks 2 total 1.5 (",
        "NCCL version 2.",
        ", retrying",
        "a.cc:1 -> ",
        "localRank ",
        "9" * 30,
    ]
)


@given(st.lists(st.lists(LINES | st.text(max_size=20), max_size=9).map("".join), max_size=5))
def test_no_line_raises(lines: list[str]) -> None:
    reader = NcclReader()
    for order, line in enumerate(lines):
        tuple(reader.see(message(line, order)))
    assert tuple(reader.finish()) == ()


@pytest.mark.parametrize("unit", ["a.", "eth0:", "comm 0x1 ", "-> ", "Using ", " via ", "1[", "9"])
def test_a_long_line_costs_little(unit: str) -> None:
    tuple(NcclReader().see(message("NCCL INFO Channel 00 : " + unit * 4000)))
