"""Trouble with the store that ranks meet at."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.events.torch import StoreEvent, StoreTrouble
from slurmtop.parse.logs.torch_store import StoreReader
from tests.parse.logs.messages import read

T = StoreTrouble


@pytest.mark.parametrize(
    ("text", "kind", "fields"),
    [
        (
            "Waiting in store based barrier to initialize process group for rank: 6, key: "
            "store_based_barrier_key:1 (world_size=16, worker_count=7, timeout=0:30:00)",
            T.BARRIER_WAITS,
            {"asking": 6, "expected": 16, "joined": 7, "timeout_s": 1800.0},
        ),
        (
            "Waiting in store based barrier to initialize process group for 10 seconds rank: 3, "
            "key: "
            "store_based_barrier_key:1 (world_size=4, num_workers_joined=2, timeout=1 day, "
            "0:00:00)",
            T.BARRIER_WAITS,
            {"asking": 3, "expected": 4, "joined": 2, "timeout_s": 86_400.0},
        ),
        (
            "RuntimeError: Timed out initializing process group in store based barrier on rank: "
            "0, for "
            "key: store_based_barrier_key:1 (world_size=8, worker_count=16, timeout=0:30:00)",
            T.BARRIER_TIMEOUT,
            {"asking": 0, "expected": 8, "joined": 16, "key": "store_based_barrier_key:1"},
        ),
        (
            "Timed out after 901 seconds waiting for clients. 7/8 clients joined.",
            T.CLIENTS_TIMEOUT,
            {"joined": 7, "expected": 8, "timeout_s": 901.0},
        ),
        (
            "wait timeout after 300000ms, keys: /default_pg/0//cuda//0",
            T.KEY_TIMEOUT,
            {"key": "/default_pg/0//cuda//0", "timeout_s": 300.0},
        ),
        (
            "[3] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d "
            "key-value "
            "store by key '0', but store->get('0') got error: Socket Timeout",
            T.KEY_TIMEOUT,
            {"asking": 3, "owner": 0, "key": "0"},
        ),
        (
            "[14] is setting up NCCL communicator and retrieving ncclUniqueId from [8] via c10d "
            "key-value "
            "store by key '0:1', but store->get('0:1') got error: Connection reset by peer. This "
            "may",
            T.RESET,
            {"asking": 14, "owner": 8, "key": "0:1"},
        ),
        (
            "The client socket has timed out after 60s while trying to connect to (10.0.0.7, "
            "29500).",
            T.CONNECT_TIMEOUT,
            {"host": "10.0.0.7", "port": 29_500, "timeout_s": 60.0},
        ),
        (
            "RuntimeError: connect() timed out. Original timeout was 1800000 ms.",
            T.CONNECT_TIMEOUT,
            {"timeout_s": 1800.0},
        ),
        (
            "The client socket has failed to connect to [node-1]:29500 (errno: 111 - Connection "
            "refused).",
            T.REFUSED,
            {"host": "node-1", "port": 29_500},
        ),
        (
            "The client socket has failed to connect to any network address of (node-1, 29500).",
            T.REFUSED,
            {"host": "node-1", "port": 29_500},
        ),
        (
            "The client socket has failed to connect to [node-1]:29500 (errno: 113 - No route to "
            "host).",
            T.NO_HOST,
            {"host": "node-1"},
        ),
        (
            "The IPv4 network addresses of (gone, 29500) cannot be retrieved (gai error: -2 - "
            "Name or",
            T.NO_HOST,
            {"host": "gone", "port": 29_500},
        ),
        (
            "The server socket has failed to listen on [::]:47531 (errno: 98 - Address already in "
            "use).",
            T.PORT_IN_USE,
            {"port": 47_531},
        ),
        (
            "The server socket has failed to listen on any local network address. port: 29500, "
            "useIpv6: "
            "0, code: -98, name: EADDRINUSE, message: address already in use",
            T.PORT_IN_USE,
            {},
        ),
        ("RuntimeError: Address already in use", T.PORT_IN_USE, {"port": None}),
        (
            "recvValue failed on SocketImpl(fd=3, addr=[b]:40000, remote=[node-a]:29500): failed "
            "to",
            T.RESET,
            {"host": "node-a", "port": 29_500},
        ),
        ("sendBytes failed on SocketImpl: Broken pipe TCPStore", T.RESET, {}),
        (
            'Failed to check the "should dump" flag on TCPStore, (maybe TCPStore server has shut '
            "down too",
            T.RESET,
            {},
        ),
        (
            "The node 'n1_12_0' has failed to send a keep-alive heartbeat to the rendezvous 'none' "
            "due to an error of type RendezvousTimeoutError.",
            T.RESET,
            {},
        ),
        ("torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError", T.CLIENTS_TIMEOUT, {}),
        ("api.RendezvousConnectionError: The connection to the C10d store", T.FAILED, {}),
    ],
)
def test_every_form_of_trouble_is_told(
    text: str, kind: StoreTrouble, fields: dict[str, Any]
) -> None:
    (event,) = read(StoreReader(), text)
    assert isinstance(event, StoreEvent)
    assert event.kind is kind
    assert {name: getattr(event, name) for name in fields} == fields


@pytest.mark.parametrize(
    "text",
    [
        "The client socket cannot be initialized to connect to [localhost]:29500 (errno: 97 - "
        "Address "
        "family not supported by protocol).",
        "The IPv6 network addresses of (node-1, 29500) cannot be retrieved (gai error: -2 - Name "
        "or",
        "The server socket has failed to listen on [::]:80 (errno: 13 - Permission denied).",
        "TensorBoard could not bind to port 6006: Address already in use",
        "NCCL WARN Call to bind failed : Address already in use",
        "The node 'n1_12_0' has failed to shutdown the rendezvous 'none' due to an error of type "
        "RendezvousConnectionError.",
        "Added key: store_based_barrier_key:1 to store for rank: 0",
    ],
)
def test_what_healthy_runs_print_is_no_trouble(text: str) -> None:
    assert read(StoreReader(), text) == []


def test_a_name_that_is_never_found_is_trouble_even_by_ipv6_alone() -> None:
    line = "The IPv6 network addresses of (gone, 29500) cannot be retrieved (gai error: -3 - Temp"
    events = read(StoreReader(), [line] * 12)
    assert [one.kind for one in events if isinstance(one, StoreEvent)] == [T.NO_HOST]


def test_an_exception_that_wraps_a_told_trouble_tells_nothing_new() -> None:
    text = (
        "The client socket has timed out after 60s while trying to connect to (a, 29500).\n"
        "RendezvousConnectionError: The connection to the C10d store has failed."
    )
    assert [one.kind for one in read(StoreReader(), text) if isinstance(one, StoreEvent)] == [
        T.CONNECT_TIMEOUT
    ]


@given(st.text(max_size=200), st.sampled_from([word.decode() for word in StoreReader.words]))
def test_any_text_is_read_without_an_error(text: str, word: str) -> None:
    read(StoreReader(), f"{text[:50]}{word}{text[50:]}")
