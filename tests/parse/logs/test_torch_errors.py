"""Errors of NCCL and gloo in PyTorch's words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.events.nccl import NcclWarn, Warn
from slurmtop.model.events.torch import GlooError, GlooTrouble, NcclError
from slurmtop.parse.logs.torch_errors import NcclErrorReader
from tests.parse.logs.messages import message, read

HEAD = (
    "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/"
    "NCCLUtils.hpp:268, remote process exited or there was a network error, NCCL version 2.21.5"
)
NAMED = "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting"
LAST = "socketProgressOpt: Call to recv from 10.0.0.5<33759> failed : Connection reset by peer"


def test_an_error_is_told_once_and_its_last_words_are_a_warning() -> None:
    first, second = read(NcclErrorReader(), f"{HEAD}\n{NAMED}\nLast error:\n{LAST}")
    assert isinstance(first, NcclError)
    assert (first.result, first.version) == ("ncclRemoteError", "2.21.5")
    assert isinstance(second, NcclWarn)
    assert (second.kind, second.peer, second.quoted) == (Warn.RESET, "10.0.0.5", True)


def test_the_last_words_alone_are_a_warning() -> None:
    first, second = read(
        NcclErrorReader(), f"ncclInternalError: Internal check failed.\nLast error: {LAST}"
    )
    assert isinstance(first, NcclError)
    assert first.result == "ncclInternalError"
    assert isinstance(second, NcclWarn)


def test_lines_behind_a_tagged_one_are_of_the_same_rank() -> None:
    reader = NcclErrorReader()
    events = [
        *reader.see(
            message(
                "[Rank 3] Process group watchdog: NCCL error: unhandled system error", 0, rank=3
            )
        ),
        *reader.see(message("Last error:", 1)),
        *reader.see(message(LAST, 2)),
    ]
    assert [(type(one), one.at.rank) for one in events] == [(NcclError, 3), (NcclWarn, 3)]


def test_a_work_that_failed_tells_its_place() -> None:
    (event,) = read(
        NcclErrorReader(),
        "[Rank 12] Collective WorkNCCL(SeqNum=1, OpType=BROADCAST, NumelIn=7, NumelOut=7, "
        "Timeout(ms)=1800000) raised the following async exception: NCCL error: unhandled cuda "
        "error, NCCL version 2.21.5",
    )
    assert isinstance(event, NcclError)
    assert (event.seq, event.op, event.result) == (1, "BROADCAST", "ncclUnhandledCudaError")


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("RuntimeError: NCCL Error 2: unhandled system error", "ncclSystemError"),
        (
            "RuntimeError: NCCL error in: x.cpp:1, invalid usage, NCCL version 2.7.8",
            "ncclInvalidUsage",
        ),
        (
            "HorovodInternalError: ncclCommInitRank failed: unhandled cuda error",
            "ncclUnhandledCudaError",
        ),
        ("node-a: Test NCCL failure common.cu:958 'internal error'", "ncclInternalError"),
        ("NCCL communicator was aborted on rank 3.", None),
    ],
)
def test_other_programs_name_the_result_too(text: str, result: str | None) -> None:
    (event,) = read(NcclErrorReader(), text)
    assert isinstance(event, NcclError)
    assert event.result == result


def test_nccl_tests_put_the_last_words_behind_a_slash() -> None:
    events = read(
        NcclErrorReader(),
        "n: Test NCCL failure common.cu:958 'unhandled system error (run with NCCL_DEBUG=INFO for "
        "details) / socketStartConnect: Connect to 10.0.0.1<4567> failed : Connection refused'",
    )
    assert [type(one) for one in events] == [NcclError, NcclWarn]


@pytest.mark.parametrize(
    ("text", "kind", "peer", "timeout_s"),
    [
        (
            "RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer "
            "[10.0.0.5]:4242",
            GlooTrouble.CLOSED,
            "10.0.0.5",
            None,
        ),
        (
            "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:144] Connection closed by peer "
            "[::ffff:10.0.0.5]:4242",
            GlooTrouble.CLOSED,
            "10.0.0.5",
            None,
        ),
        (
            "[gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv "
            "operation "
            "to complete",
            GlooTrouble.TIMED_OUT,
            None,
            1800.0,
        ),
        (
            "[gloo/transport/tcp/pair.cc:799] connect [10.0.0.5]:4242: Connection refused",
            GlooTrouble.REFUSED,
            None,
            None,
        ),
    ],
)
def test_gloo_loses_or_waits_for_another_process(
    text: str, kind: GlooTrouble, peer: str | None, timeout_s: float | None
) -> None:
    (event,) = read(NcclErrorReader(), text)
    assert isinstance(event, GlooError)
    assert (event.kind, event.peer, event.timeout_s) == (kind, peer, timeout_s)


def test_a_warning_of_nccl_itself_is_not_quoted() -> None:
    assert read(NcclErrorReader(), "n:1:2 [0] x.cc:1 NCCL WARN NCCL error: internal error") == []


@given(
    st.lists(
        st.sampled_from([HEAD, NAMED, "Last error:", LAST, "", "gloo/ x"]) | st.text(), max_size=12
    )
)
def test_any_text_is_read_without_an_error(lines: list[str]) -> None:
    read(NcclErrorReader(), lines)
