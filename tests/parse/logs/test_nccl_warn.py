"""Warnings of NCCL, in the spellings of its versions and plugins."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.events.nccl import NcclWarn, Warn
from slurmtop.model.trace import Where
from slurmtop.parse.logs.nccl_peer import peer_name
from slurmtop.parse.logs.nccl_warn import TEXT_LIMIT, read_warn

AT = Where(source="job.log", line=1, offset=0, order=0, text="")


def warn(text: str, *, file: str = "misc/x.cc", quoted: bool = False) -> NcclWarn:
    line = text if quoted else f"{file}:77 NCCL WARN {text}"
    found = read_warn(line, AT, quoted)
    assert found is not None
    return found


COMPLETIONS = (
    (
        "NET/IB : Got completion with error 12, opcode 0, len 32633, vendor err 129",
        (None, 12, 129, None),
    ),
    (
        "NET/IB : Got completion from peer node48<37948> with error 12, opcode 2, len 1, ven",
        ("node48", 12, None, None),
    ),
    (
        "NET/IB : Got completion from peer fe80::1:78%ib0<53249> with error 4, opcode 32564, "
        "len 32564, vendor err 81 (Send)",
        ("fe80::1:78", 4, 81, None),
    ),
    (
        "NET/IB: Got completion from peer 172.16.4.9<40111> with status=12 opcode=0 len=0 vendor "
        "err 129 (Recv) localGid ::ffff:172.17.4.9 remoteGids::ffff:172.17.4.8 hca mlx5_3",
        ("172.16.4.9", 12, 129, "mlx5_3"),
    ),
    (
        "NET/IB: Got completion from peer 7.6.13.83<36315> with status=IBV_WC_RETRY_EXC_ERR(12) "
        "opcode=IBV_WC_SEND(0) reqSize=0 vendor_err=129 req_type=Send hca mlx5_bond_0",
        ("7.6.13.83", 12, 129, "mlx5_bond_0"),
    ),
    (
        "NET/IB: Got completion from peer r7-4<1> with status=transport retry counter exceeded(12) "
        "opcode=Send(0) vendor_err=129 qp_num=77 hca mlx5_0",
        ("r7-4", 12, 129, "mlx5_0"),
    ),
    (
        "NET/IBP:Got completion from peer 1501<2> with status=5 vendor err 249",
        ("1501", 5, 249, None),
    ),
    (
        "NET/IB : Got completion from peer xxx.xxx.xx.x<55921> with status=12 opcode=1 "
        "vendor err 1",
        (None, 12, 1, None),
    ),
)


@pytest.mark.parametrize(("text", "told"), COMPLETIONS)
def test_a_failed_completion_gives_peer_status_vendor_and_adapter(
    text: str, told: tuple[str | None, int, int | None, str | None]
) -> None:
    found = warn(text, file="transport/net_ib.cc")
    assert found.kind is Warn.IB_COMPLETION
    assert (found.peer, found.status, found.vendor, found.device) == told


@pytest.mark.parametrize(
    ("glued", "remote"),
    [
        ("remoteGidsfd00::3:ff20", "fd00::3:ff20"),
        ("remoteGids::ffff:10.1.0.221", "10.1.0.221"),
        ("remoteGids fe80::2", "fe80::2"),
        ("remoteGids::ffff:xxx.xx.x.x", None),
    ],
)
def test_gids_are_read_though_they_are_glued_to_their_word(glued: str, remote: str | None) -> None:
    found = warn(
        "NET/IB : Got completion from peer 10.0.0.236<54862> with status=12 opcode=0 len=0 vendor "
        f"err 129 (Recv) localGid fd00::3:ff22 {glued}"
    )
    assert (found.local_gid, found.remote_gid) == ("fd00::3:ff22", remote)


@pytest.mark.parametrize(
    ("text", "event", "device"),
    [
        ("NET/IB : Got async event : port error", "port error", None),
        ("NET/IB : mlx5_0:1 Got async event : port error", "port error", "mlx5_0:1"),
        ("NET/IB : mlx5_0:1 Got async error event: port error", "port error", "mlx5_0:1"),
        (
            "NET/IB : bnxt_re0:1 Got non-fatal async event: port error(10)",
            "port error",
            "bnxt_re0:1",
        ),
        ("NET/IB : mlx5_1:1 async fatal event: local catastrophic error", None, "mlx5_1:1"),
        (
            "NET/IB : mlx5_1:1 async fatal event on QP (0x7f12) qpn=3 handle=1 send_cq=1 recv_cq=1 "
            "state=6 sq_psn=0 rq_psn=0: local access violation work queue error",
            "local access violation work queue error",
            "mlx5_1:1",
        ),
        ("NET/IB : Got async event : GID table change", "GID table change", None),
        ("NET/IB : mlx5_2:1 GID table changed", "GID table change", "mlx5_2:1"),
    ],
)
def test_an_event_of_the_own_adapter_is_told_by_its_words(
    text: str, event: str | None, device: str | None
) -> None:
    found = warn(text)
    assert (found.kind, found.device) == (Warn.IB_EVENT, device)
    assert found.error == (event or "local catastrophic error")


@pytest.mark.parametrize(
    ("text", "call", "error", "kind"),
    [
        (
            "Call to ibv_modify_qp failed with 110 Connection timed out, on dev "
            "mlx5_2:1, curr state"
            " INIT, next state RTR, local GID index 3, local GID ::ffff:10.0.0.1, remote GID "
            "::ffff:10.0.0.2",
            "ibv_modify_qp",
            "Connection timed out",
            Warn.IB_CALL,
        ),
        (
            "Call to ibv_modify_qp failed with error No such device",
            "ibv_modify_qp",
            "No such device",
            Warn.IB_CALL,
        ),
        ("Call to ibv_get_async_event failed", "ibv_get_async_event", None, Warn.IB_CALL),
        (
            "Call to ibv_create_qp failed with error Invalid argument errno 22",
            "ibv_create_qp",
            "Invalid argument",
            Warn.IB_CALL,
        ),
        (
            "Call to ibv_reg_mr failed with error Bad address",
            "ibv_reg_mr",
            "Bad address",
            Warn.IB_MEMORY,
        ),
        (
            "Call to ibv_create_cq failed with error Cannot allocate memory",
            "ibv_create_cq",
            "Cannot allocate memory",
            Warn.IB_MEMORY,
        ),
        ("Call to ibv_dereg_mr failed with error x", "ibv_dereg_mr", "x", Warn.OTHER),
        ("Call to ibv_open_device failed", "ibv_open_device", None, Warn.BENIGN),
    ],
)
def test_a_failed_call_of_the_verbs_library(
    text: str, call: str, error: str | None, kind: Warn
) -> None:
    found = warn(text)
    assert (found.kind, found.call, found.error) == (kind, call, error)


def test_the_adapter_and_both_ends_of_a_queue_pair_that_cannot_be_connected() -> None:
    found = warn(
        "Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_2:1, curr state "
        "INIT, next state RTR, local GID index 3, local GID ::ffff:10.9.1.1, remote GID fe80::7"
    )
    assert (found.device, found.status) == ("mlx5_2:1", 110)
    assert (found.local_gid, found.remote_gid) == ("10.9.1.1", "fe80::7")


@pytest.mark.parametrize(
    ("text", "kind", "peer", "error"),
    [
        (
            "Call to connect failed : Connection timed out",
            Warn.CONNECT,
            None,
            "Connection timed out",
        ),
        (
            "Net : Connect to n9<21> failed : No route to host",
            Warn.CONNECT,
            "n9",
            "No route to host",
        ),
        (
            "Connect to 10.0.0.112<21724> failed : Connection refused",
            Warn.CONNECT,
            "10.0.0.112",
            "Connection refused",
        ),
        (
            "socketStartConnect: Connect to fe80::9:8cf0%ib1<17943> failed : Software caused "
            "connection abort",
            Warn.CONNECT,
            "fe80::9:8cf0",
            "Software caused connection abort",
        ),
        (
            "socketPollConnect: Connect to 10.0.0.4<56849> returned 113(No route to host) errno "
            "115(Operation now in progress)",
            Warn.CONNECT,
            "10.0.0.4",
            "No route to host",
        ),
        (
            "socketPollConnect: connect returned Connection refused, exceeded error "
            "retry count (35)",
            Warn.CONNECT,
            None,
            "Connection refused",
        ),
        (
            "ncclOsSocketPollConnect: connect to 10.0.0.4<5> returned Connection refused, exceeded "
            "error retry count after 35 attempts",
            Warn.CONNECT,
            "10.0.0.4",
            "Connection refused",
        ),
        (
            "ncclOsSocketPollConnect to 10.0.0.4<5> failed with error Connection timed out",
            Warn.CONNECT,
            "10.0.0.4",
            "Connection timed out",
        ),
        ("socketPollConnect: exceeded timeouts (20000)", Warn.CONNECT, None, "exceeded timeouts"),
        ("Connection closed by remote peer", Warn.CLOSED, None, None),
        ("Net : Connection closed by remote peer gpu-2<41>", Warn.CLOSED, "gpu-2", None),
        (
            "socketProgress: Connection closed by remote peer node-a-ib.cluster.local<51159>",
            Warn.CLOSED,
            "node-a-ib.cluster.local",
            None,
        ),
        ("socketProgress: Connection closed by remote peer 1204<9>", Warn.CLOSED, "1204", None),
        (
            "socketProgressOpt: Call to recv from 10.0.0.5<33759> failed : Connection "
            "reset by peer",
            Warn.RESET,
            "10.0.0.5",
            "Connection reset by peer",
        ),
        (
            "ncclOsSocketProgressOpt: Call to send to fd00::1%eth0<7> failed : Broken pipe",
            Warn.RESET,
            "fd00::1",
            "Broken pipe",
        ),
        ("Call to recv failed : Connection timed out", Warn.RESET, None, "Connection timed out"),
        ("Call to write failed : Connection reset by peer.", Warn.RESET, None, None),
    ],
)
def test_connections_in_the_words_of_every_age(
    text: str, kind: Warn, peer: str | None, error: str | None
) -> None:
    found = warn(text, file="misc/socket.cc")
    assert (found.kind, found.peer) == (kind, peer)
    assert found.error == (error or ("Connection reset by peer" if kind is Warn.RESET else None))


@pytest.mark.parametrize(
    ("text", "kind", "ranks", "sizes"),
    [
        (
            "Bootstrap Root : rank 1 of 8 ranks has already checked in",
            Warn.DUPLICATE_RANK,
            (1, 8),
            (),
        ),
        ("Bootstrap Root : mismatch in rank count from procs 8 : 16", Warn.RANK_COUNT, (), (8, 16)),
        (
            "Bootstrap Root : mismatch in info from procs, nranks 8 vs 4, nroots 1 vs 1, "
            "iroot 0 vs 0",
            Warn.RANK_COUNT,
            (),
            (8, 4),
        ),
        (
            "Bootstrap Root : mismatch in info from procs, nranks 8 vs 8, nroots 1 vs 2, "
            "iroot 0 vs 0",
            Warn.OTHER,
            (),
            (8, 8),
        ),
        (
            "Mismatched NCCL version detected : rank 0 version 22705 rank 5 version 22304",
            Warn.VERSION_MISMATCH,
            (0, 5),
            (22705, 22304),
        ),
        (
            "Duplicate GPU detected : rank 2 and rank 0 both on CUDA device 1000",
            Warn.DUPLICATE_GPU,
            (2, 0),
            (),
        ),
        (
            "Multiple ranks detected using the same GPU on this node. Set "
            "NCCL_MULTI_RANK_GPU_ENABLE=1 to enable this configuration.",
            Warn.DUPLICATE_GPU,
            (),
            (),
        ),
        (
            "Mismatched collective detected, please check your collective calls at and around rank "
            "39. You can use NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=COLL to see the collective logs",
            Warn.CALLS_DIFFER,
            (39,),
            (),
        ),
        (
            "NET/IB : req 0/1 tag 0 peer 10.0.0.6<58683> collective mismatch error, local size "
            "496640 remote size 65536",
            Warn.SIZE_MISMATCH,
            (),
            (496640, 65536),
        ),
        (
            "NET/Socket : message truncated : receiving 696320 bytes instead of 32768",
            Warn.SIZE_MISMATCH,
            (),
            (32768, 696320),
        ),
        (
            "NET/Socket : peer h<1> message truncated :\nreceiving 1048576 bytes instead of 65536",
            Warn.SIZE_MISMATCH,
            (),
            (65536, 1048576),
        ),
        ("AllReduce : invalid root 9 (root should be in the 0..8 range)", Warn.USAGE, (), ()),
        ("ncclGroupEnd: not in a group call.", Warn.USAGE, (), ()),
    ],
)
def test_what_ranks_disagree_about(
    text: str, kind: Warn, ranks: tuple[int, ...], sizes: tuple[int, ...]
) -> None:
    found = warn(text)
    assert (found.kind, found.ranks, found.sizes) == (kind, ranks, sizes)


def test_a_truncated_message_of_the_bootstrap_is_no_collective() -> None:
    assert warn("Message truncated : received 256 bytes instead of 4").call == "bootstrap"
    assert warn("NET/Socket : message truncated : receiving 2 bytes instead of 1").call is None


@pytest.mark.parametrize(
    ("text", "file", "kind", "error"),
    [
        ("Cuda failure 'out of memory'", "include/alloc.h", Warn.OUT_OF_MEMORY, "out of memory"),
        (
            "Cuda failure 2 'out of memory'",
            "transport/nvls.cc",
            Warn.OUT_OF_MEMORY,
            "out of memory",
        ),
        ("Failed to CUDA calloc 6291456 bytes", "include/alloc.h", Warn.OUT_OF_MEMORY, None),
        ("Failed to CUDA calloc async 608 bytes", "include/alloc.h", Warn.OUT_OF_MEMORY, None),
        ("Cuda failure 'invalid argument'", "transport.cc", Warn.CUDA, "invalid argument"),
        ("HIP failure 'invalid kernel file'", "enqueue.cc", Warn.CUDA, "invalid kernel file"),
        ("Cuda failure 'driver shutting down'", "init.cc", Warn.BENIGN, "driver shutting down"),
        ("Cuda failure 401 'bad state'", "transport/nvls.cc", Warn.NVLS, "bad state"),
        (
            "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 401 "
            "'bad state'.\nThis is usually caused by a system or configuration error in the Fabric "
            "Manager or NVSwitches.\nDisable NVLS (NCCL_NVLS_ENABLE=0) if you wish to avoid it",
            "transport/nvls.cc",
            Warn.NVLS,
            "bad state",
        ),
        (
            "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 4 : CUDA error 2 'no'. "
            "Proceeding without NVLS support.",
            "transport/nvls.cc",
            Warn.BENIGN,
            "no",
        ),
        (
            "P2P is disabled between NVLINK connected GPUs 0 and 1. This should not be the case "
            "given their connectivity, and is probably due to a hardware issue.",
            "graph/paths.cc",
            Warn.P2P,
            None,
        ),
        (
            "Could not find real path of /sys/class/pci_bus/0000:21/../../0000:21:00.0",
            "graph/xml.cc",
            Warn.TOPOLOGY,
            None,
        ),
    ],
)
def test_trouble_of_the_gpus(text: str, file: str, kind: Warn, error: str | None) -> None:
    found = warn(text, file=file)
    assert (found.kind, found.error) == (kind, error)


@pytest.mark.parametrize(
    ("text", "kind", "device"),
    [
        ("Call to posix_fallocate failed : No space left on device", Warn.SHM, None),
        (
            "Error: failed to extend /dev/shm/nccl-Ko3 to 9637892 bytes, error: No space left on "
            "device (28)",
            Warn.SHM,
            "/dev/shm/nccl-Ko3",
        ),
        (
            "Error while creating shared memory segment /dev/shm/nccl-a (size 9637888)",
            Warn.SHM,
            None,
        ),
        ("munmap of shared memory failed", Warn.OTHER, None),
        ("Call to socket failed : Too many open files", Warn.FILES, None),
        ("[Service thread] Accept failed Too many open files", Warn.FILES, None),
        ("Failed to malloc 4096 bytes", Warn.HOST_MEMORY, None),
        ("Bootstrap : no socket interface found", Warn.NO_INTERFACE, None),
        ("Error: network AWS Libfabric not found.", Warn.NO_INTERFACE, None),
        (
            "ncclSocketInit: connecting to address  with family 59936 is neither AF_INET(2) nor "
            "AF_INET6(10)",
            Warn.BAD_ADDRESS,
            None,
        ),
    ],
)
def test_trouble_of_the_host(text: str, kind: Warn, device: str | None) -> None:
    found = warn(text)
    assert (found.kind, found.device) == (kind, device)


@pytest.mark.parametrize(
    ("text", "peer"),
    [
        ("socketFinalizeAccept: wrong magic 74656d2f20544547 != 7970663b906d70b9", None),
        ("socketFinalizeAccept from 10.7.7.7<5>: wrong type 3 != 2", "10.7.7.7"),
        ("socketFinalizeAccept: didn't receive a valid magic from 10.7.7.7<5>", "10.7.7.7"),
        (
            "Socket magic mismatch from 10.7.7.7<5> (peer 0x01 != expected 0x02), discarding",
            "10.7.7.7",
        ),
    ],
)
def test_something_foreign_knocked(text: str, peer: str | None) -> None:
    found = warn(text)
    assert (found.kind, found.peer) == (Warn.FOREIGN, peer)


@pytest.mark.parametrize(
    "text",
    [
        "[Service thread] Error encountered progressing operation=Connect, res=3, "
        "closing connection",
        "[Service thread] Could not receive type from localRank 0, res=3, closed=0",
        "[Proxy Service 0] Failed to execute operation Connect from rank 0, retcode 3",
        "transport.cu:153 ->2 [Proxy thread error]",
        "Socket recv failed while polling for opId=0x55a51966cc80",
        "Proxy Call to rank 3 failed (Setup)",
        "communicator encountered a fatal error (detected in ncclAllReduce)",
        "Attempt to use communicator before the previous operation returned ncclSuccess",
        "commReclaim: comm 0x7f (rank = 3) in abort, error 6",
    ],
)
def test_what_only_passes_on_a_failure_is_an_effect(text: str) -> None:
    found = warn(text)
    assert found.kind is Warn.PROXY
    assert (found.peer, found.ranks) == (None, ())


@pytest.mark.parametrize(
    "text",
    [
        "Failed to open libibverbs.so[.1]",
        "NET/IB : Got async event : client reregistration",
        "NET/IB : mlx5_0:1 Got async event : port active",
        "NET/IB : mlx5_0:1 Got async event : LID change",
        "NET/IB : mlx5_0:1 Got non-fatal async event: P_Key change(12)",
        "NET/IB : Unable to open device mlx5_4",
        "P2P is disabled between connected GPUs 0 and 1. You can repress this message with "
        "NCCL_IGNORE_DISABLED_P2P=1.",
        "NET/Plugin : Plugin load (libnccl-net.so) returned 2 : libnccl-net.so: cannot open shared "
        "object file: No such file or directory",
        "NET/Plugin: Failed to find ncclCollNetPlugin_v6 symbol.",
        "TUNER/Plugin: Could not find: libnccl-tuner.so",
        "Failed to load CUDA missing symbol cuMulticastCreate",
        "dlvsym failed on ibv_query_ece - /usr/lib/libibverbs.so: undefined symbol "
        "version IBVERBS_1.1",
        "Could not find a path for pattern 4, falling back to simple order",
        "cuMem host allocations do not appear to be working; falling back to a /dev/shm/ based "
        "implementation. To disable this warning, set NCCL_CUMEM_HOST_ENABLE=0",
        "NUMA auto balancing enabled which can lead to variability in the RCCL performance! Disable"
        ' by "sudo sysctl kernel.numa_balancing=0"',
        'Missing "iommu=pt" from kernel command line which can lead to system instablity or hang!',
        "NET/OFI Only EFA provider is supported",
        "NET/OFI aws-ofi-nccl initialization failed",
        "Invalid value eth for NCCL_NTHREADS, using default 512.",
    ],
)
def test_what_healthy_clusters_print_is_benign(text: str) -> None:
    assert warn(text).kind is Warn.BENIGN


@pytest.mark.parametrize(
    ("text", "kind", "vendor", "error"),
    [
        (
            "NET/OFI Request 0x7f completed with error. RC: 107. Error: 4135 (Unresponsive remote "
            "[peer]). Completed length: 0, Request: { dev: 3, size: 0 }",
            Warn.IB_COMPLETION,
            4135,
            "Unresponsive remote [peer]",
        ),
        (
            "NET/OFI Request completed with error. RC: 21. Error: unknown error. "
            "Completed length: 0",
            Warn.IB_COMPLETION,
            None,
            "unknown error",
        ),
        (
            "NET/OFI Unable to register memory (type = 1) for device 0. RC: 12, Error: Cannot "
            "allocate memory",
            Warn.IB_MEMORY,
            None,
            "Cannot allocate memory",
        ),
        (
            "NET/OFI Couldn't enable endpoint. RC: -12, ERROR: Cannot allocate memory",
            Warn.IB_MEMORY,
            None,
            "Cannot allocate memory",
        ),
        (
            "NET/OFI Couldn't open CQ. RC: -22, ERROR: Invalid argument",
            Warn.OTHER,
            None,
            "Invalid argument",
        ),
    ],
)
def test_the_plugin_of_aws(text: str, kind: Warn, vendor: int | None, error: str) -> None:
    line = f"void f(nccl_ofi_req*, int):1648 NCCL WARN {text}"
    found = read_warn(line, AT)
    assert found is not None
    assert (found.kind, found.vendor, found.error) == (kind, vendor, error)
    assert found.status is None


@pytest.mark.parametrize(
    "line",
    [
        "misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer n2<5>",
        "node-a:1:2 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by "
        "remote peer n2<5>",
        "**h:1:2 [0] external/nccl_archive/src/misc/socket.cc:200 NCCL WARN Net : "
        "Connection closed by "
        "remote peer n2<5>**",
        "[0] include/socket.h 398 NCCL WARN Connection closed by remote peer n2<5>",
        "include/socket.h:398 WARN Connection closed by remote peer n2<5>",
        "os/linux.cc:310 (ncclOsSocketProgress) NCCL WARN Connection closed by remote peer n2<5>",
        "NCCL WARN Connection closed by remote peer n2<5>",
        "misc/[socket.cc:49](http://socket.cc:49/) NCCL WARN Connection closed by remote peer "
        "[n2](http://n2/)<5>",
    ],
)
def test_whatever_stands_before_the_message_it_is_read(line: str) -> None:
    found = read_warn(line, AT)
    assert found is not None
    assert (found.kind, found.peer) == (Warn.CLOSED, "n2")


def test_a_quoted_message_has_no_prefix_and_says_that_it_is_quoted() -> None:
    found = warn("Net : Connection closed by remote peer n2<5>", quoted=True)
    assert (found.kind, found.peer, found.quoted) == (Warn.CLOSED, "n2", True)


@pytest.mark.parametrize("text", ["", "   ", "WARNING: not of NCCL", "train.py:3 WARN nothing"])
def test_other_speakers_are_left_alone(text: str) -> None:
    assert read_warn(text, AT) is None


def test_an_unknown_warning_is_other_and_keeps_its_call() -> None:
    found = warn("Call to bind failed: Address already in use")
    assert (found.kind, found.call, found.error) == (Warn.OTHER, "bind", "Address already in use")


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("10.0.0.6", "10.0.0.6"),
        ("[fe80::1%ib0]", "fe80::1"),
        ("::ffff:10.1.0.221", "10.1.0.221"),
        ("fd00::", "fd00::"),
        ("node48", "node48"),
        ("15", "15"),
        ("xxx.xxx.x.x", None),
        ("0.0.0.0", None),
        ("", None),
        (None, None),
    ],
)
def test_names_of_peers_are_bare(raw: str | None, name: str | None) -> None:
    assert peer_name(raw) == name


WORDS = st.sampled_from(
    [
        "NCCL WARN ",
        "NET/IB : ",
        "Got completion from peer ",
        "async event : ",
        "Cuda failure '",
        "<1>",
        "Call to recv from ",
        "Connect to ",
        " failed : ",
        "NET/OFI ",
        "](http://x) ",
        "\n",
        "::ffff:",
        "x.cc:7 ",
        "localGid ",
        "Bootstrap Root : ",
        "12",
        " ",
    ]
)


@given(st.lists(WORDS | st.text(max_size=30), max_size=20).map("".join), st.booleans())
def test_no_text_raises(text: str, quoted: bool) -> None:
    found = read_warn(text, AT, quoted)
    assert found is None or len(found.text) <= TEXT_LIMIT


@pytest.mark.parametrize(
    "unit", ["a.", "Connect to a<", "::", "(", "'", "x.cc:1 ", "- ", "Call to a "]
)
def test_a_long_line_costs_little(unit: str) -> None:
    assert read_warn("NCCL WARN " + unit * 4000, AT) is not None
