"""Xid and SXid lines of the kernel log."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.gpu import KernelEvent, KernelKind
from slurmtop.parse.logs.kernel import parse_kernel
from slurmtop.triage.xid import event_meaning, fold_events
from tests.parse.gpu.support import case, mutated

XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=7, name=python, GPU has fallen off the bus."


def only(text: str) -> KernelEvent:
    (event,) = parse_kernel(text.encode()).events
    return event


@pytest.mark.parametrize(
    ("before", "time_text", "clock_s"),
    [
        ("[Mon May  5 10:00:01 2031] ", "May  5 10:00:01 2031", 1_935_741_601),
        ("[   12.345678] ", "12.345678", 12.345678),
        ("May 05 10:00:01 gpu05 kernel: ", "May 05 10:00:01", 957_520_801),
        ("2031-05-05T10:00:01+0200 gpu05 kernel: ", "2031-05-05 10:00:01", 1_935_741_601),
        ("2031-05-05T10:00:01,123456+00:00 ", "2031-05-05 10:00:01", 1_935_741_601),
        ("May 99 10:00:01 gpu05 kernel: ", "May 99 10:00:01", None),
        ("Foo  5 10:00:01 gpu05 kernel: ", "Foo  5 10:00:01", None),
        ("2031-02-30 10:00:99 ", "2031-02-30 10:00:99", None),
        ("", "", None),
    ],
)
def test_times_in_front(before: str, time_text: str, clock_s: float | None) -> None:
    event = only(before + XID)
    assert (event.code, event.pid, event.process) == (79, 7, "python")
    assert (event.time_text, event.clock_s) == (time_text, clock_s)


def test_the_old_form_and_a_slice() -> None:
    old = only("NVRM: Xid (0000:03:00): 14, Channel 00000001")
    assert (old.bus_id, old.code, old.text, old.pid) == ("0000:03:00", 14, "Channel 00000001", None)
    piece = only("NVRM: Xid (PCI:0000:3B:00 GPU-I:05): 13, pid=9, name=a b, Graphics Exception")
    assert (piece.bus_id, piece.slice_id, piece.process) == ("0000:3b:00", "05", "a b")
    assert only("NVRM: Xid (PCI:0000:3b:00): 62").text == ""


@pytest.mark.parametrize(
    ("severity", "action"),
    [("Fatal", "drain"), ("Always Fatal", "drain"), ("Non-fatal", "watch")],
)
def test_switches(severity: str, action: str) -> None:
    line = f"nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, {severity}, Link 30 LTSSM Fault Up"
    event = only(line)
    assert (event.kind, event.code, event.severity) == (KernelKind.SXID, 20034, severity)
    assert event.text == "Link 30 LTSSM Fault Up"
    assert event_meaning(event).action.startswith(action)


def test_a_switch_without_a_severity_is_not_guessed() -> None:
    event = only("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 24007, something")
    assert event.severity is None
    assert "severity not told" in event_meaning(event).says


def test_a_lost_card_in_one_line_and_one_that_is_not_lost() -> None:
    head = "NVRM: The NVIDIA GPU 0000:b3:00.0\nNVRM: (PCI ID: 10de:2330) installed in this system "
    event = only(head + "has\nNVRM: fallen off the bus and is not responding to commands.\n")
    assert (event.kind, event.bus_id, event.code) == (KernelKind.LOST, "0000:b3:00", None)
    assert event.text.startswith("(PCI ID")
    assert parse_kernel((head + "is not supported\n").encode()).events == ()


def test_uuids_are_told_by_the_bus() -> None:
    log = parse_kernel(b"NVRM: GPU at PCI:0000:3B:00: GPU-b8500000-1111-2222-3333-444455550000\n")
    assert log.uuids == (("0000:3b:00", "GPU-b8500000-1111-2222-3333-444455550000"),)
    assert log.events == ()


@pytest.mark.parametrize("line", ["Xid (PCI:0000:3b:00): 79", "nothing", "NVRM: loading"])
def test_other_lines_are_no_events(line: str) -> None:
    assert parse_kernel(line.encode()).events == ()


def test_grep_without_a_find_is_no_failure_but_a_closed_log_is() -> None:
    assert parse_kernel(b"", 1, b"").failure is None
    closed = parse_kernel(b"", 1, b"dmesg: read kernel buffer failed: Operation not permitted\n")
    assert closed.failure is not None
    assert closed.failure.retry_after_s == math.inf
    assert parse_kernel(b"", None).failure is not None


def test_a_cleanup_belongs_to_what_came_just_before_it_on_its_gpu() -> None:
    def line(second: int, bus: str, code: int) -> str:
        return f"[{second}.000000] NVRM: Xid (PCI:0000:{bus}:00): {code}, pid=7, name=python, x\n"

    text = line(1, "3b", 31) + line(2, "5d", 45) + line(3, "3b", 45) + line(90, "3b", 45)
    text += line(91, "3b", 45)
    folded = fold_events(parse_kernel(text.encode()).events)
    assert [(event.bus_id[5:7], event.code, event.follow_ups) for event in folded] == [
        ("3b", 31, ((45, 1),)),
        ("5d", 45, ()),
        ("3b", 45, ((45, 1),)),
    ]


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    for event in fold_events(parse_kernel(b"NVRM: Xid (PCI:0000:3b:00): " + data).events):
        event_meaning(event)


@given(st.integers(0, 2_500), st.binary(max_size=9), st.integers(0, 9))
def test_captures_with_damage(place: int, piece: bytes, cut: int) -> None:
    data = case("029")
    whole, hurt = parse_kernel(data).events, parse_kernel(mutated(data, place, piece, cut)).events
    assert len(hurt) >= len(whole) - 1 - cut
    for event in fold_events(hurt):
        event_meaning(event)


@given(st.integers(0, 999_999_999))
def test_every_code_has_a_meaning(code: int) -> None:
    event = only(f"NVRM: Xid (PCI:0000:3b:00): {code}, pid=7, name=python, x")
    assert event.code == code
    assert event_meaning(event).says
