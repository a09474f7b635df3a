"""Processes that caught their own end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.events.launch import Crash
from slurmtop.parse.logs.crashes import CrashReader
from slurmtop.parse.logs.signals import ended, signal_name, signal_number
from tests.parse.logs.messages import read

UCX = """\
[node-a:5283 :0:5704] Caught signal 7 (Bus error: nonexistent physical address)
some other line
==== backtrace (tid:   5704) ====
 0 0x0000000000043090 killpg()  ???:0
 1 0x000000000008170d ncclGroupEnd()  ???:0
=================================
[node-a:5279 :0:5710] Caught signal 7 (Bus error"""


def crashes(text: str) -> list[Crash]:
    return [one for one in read(CrashReader(), text) if isinstance(one, Crash)]


def test_the_backtrace_tells_whether_a_crash_was_in_nccl() -> None:
    assert [(one.signal, one.in_nccl, one.at.line) for one in crashes(UCX)] == [
        (7, True, 1),
        (7, False, 7),
    ]


@pytest.mark.parametrize(
    ("text", "signal"),
    [
        ("Fatal Python error: Segmentation fault", 11),
        ("Fatal Python error: Aborted", 6),
        ("Fatal Python error: none_dealloc: deallocating None", None),
        ("terminate called after throwing an instance of 'c10::DistBackendError'", None),
        ("[node-a:1234] Signal: Segmentation fault (11)", 11),
        ("Signal: Bus error (7)", 7),
        ("*** SIGSEGV (@0x0) received by PID 71 (TID 0x7f) from PID 0; stack trace: ***", 11),
        ("!!!!!!! Segfault encountered !!!!!!!", 11),
        ("free(): invalid pointer", 6),
        ("*** stack smashing detected ***: terminated", 6),
    ],
)
def test_a_crash_tells_its_signal_where_its_words_do(text: str, signal: int | None) -> None:
    (event,) = crashes(text)
    assert event.signal == signal


def test_a_signal_that_a_program_expects_is_no_crash() -> None:
    assert crashes("Caught signal SIGUSR2 on node-a: this job is preempted.") == []


def test_many_crashes_are_kept_bounded_and_all_told() -> None:
    assert len(crashes("\n".join(["Caught signal 11 (Segmentation fault"] * 200))) == 200


@given(st.lists(st.sampled_from(UCX.split("\n")) | st.text(max_size=40), max_size=30))
def test_any_text_is_read_without_an_error(lines: list[str]) -> None:
    read(CrashReader(), lines)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("SIGKILL", 9),
        ("Signals.SIGTERM", 15),
        ("9", 9),
        ("Segmentation fault", 11),
        ("0", None),
        ("999", None),
        ("nothing", None),
        ("", None),
        (None, None),
    ],
)
def test_a_signal_is_known_by_any_of_its_names(text: str | None, number: int | None) -> None:
    assert signal_number(text) == number


def test_codes_of_shells_and_of_python_are_signals() -> None:
    assert [ended(code) for code in (None, 0, 1, -9, 137, 255)] == [
        (None, None),
        (0, None),
        (1, None),
        (None, 9),
        (None, 9),
        (255, None),
    ]
    assert signal_name("9") == "SIGKILL"
    assert signal_name("Signals.SIGTERM") == "SIGTERM"
    assert signal_name("SIGX") == "SIGX"


def test_open_mpis_head_line_is_a_crash_even_where_the_signal_is_cut_off() -> None:
    (event,) = crashes("[n1:77] *** Process received signal ***")
    assert (event.signal, event.in_nccl) == (None, False)


def test_open_mpis_report_is_one_crash_and_two_processes_are_two() -> None:
    text = """\
[n1:77] *** Process received signal ***
[n2:78] *** Process received signal ***
[n1:77] Signal: Segmentation fault (11)
[n2:78] Signal: Bus error (7)
[n1:77] [ 0] /lib/libnccl.so.2(ncclGroupEnd+0x1)
[n1:77] *** End of error message ***"""
    assert sorted(one.signal or 0 for one in crashes(text)) == [7, 11]
