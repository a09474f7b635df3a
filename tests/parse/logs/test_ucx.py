"""UCX's lines on adapters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.events.nccl import NcclWarn, Warn
from slurmtop.parse.logs.reading import read_bytes
from slurmtop.parse.logs.ucx import UcxReader
from tests.parse.logs.messages import read

HEAD = "[1735835013.823013] [n7:6471 :async]       ib_device.c:475  UCX  WARN  "


def warns(text: str) -> list[NcclWarn]:
    return [one for one in read_bytes("a.log", text.encode()).events if isinstance(one, NcclWarn)]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("IB Async event on mlx5_0: port error on port 1", Warn.IB_EVENT),
        ("IB Async event on mlx5_0: local catastrophic error", Warn.IB_EVENT),
        ("IB Async event on mlx5_0: GID table change on port 1", Warn.BENIGN),
        ("IB Async event on mlx5_0: client reregistration on port 1", Warn.BENIGN),
    ],
)
def test_an_event_of_an_adapter_is_told_with_its_host(words: str, kind: Warn) -> None:
    (event,) = warns(HEAD + words)
    assert (event.kind, event.device, event.at.host, event.at.pid) == (kind, "mlx5_0", "n7", 6471)


@pytest.mark.parametrize(
    "line",
    [
        "[n7:31180:0:31180] ib_mlx5_log.c:143  Transport retry count exceeded on mlx5_0:1/IB "
        "(synd 0x15 vend 0x81 hw_synd 0/0)",
        "[n7:31180 :0:31180] ib_mlx5_log.c:115  FATAL: Error on mlx5_0:1 QP 0xe6 wqe[78]: "
        "Transport retry count exceeded (synd 0x15 vend 0x81) opcode SEND",
    ],
)
def test_a_transport_that_gave_up_is_a_failed_completion(line: str) -> None:
    (event,) = warns(line)
    assert (event.kind, event.status, event.vendor) == (Warn.IB_COMPLETION, 12, 0x81)
    assert (event.device, event.at.host) == ("mlx5_0", "n7")


@given(st.lists(st.text(max_size=60).map(lambda text: "ib_mlx5_log.c " + text), max_size=5))
def test_any_text_is_read(lines: list[str]) -> None:
    read(UcxReader(), lines)
