"""torchrun's failure tables and its agents' lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.events.launch import (
    ClosingSignal,
    DeathSignal,
    ElasticFailure,
    Unkillable,
    WorkersRestart,
)
from slurmtop.model.trace import Event
from slurmtop.parse.logs.elastic import ElasticReader
from slurmtop.parse.logs.line import Message
from tests.parse.logs.messages import message, read

TABLE = """\
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-01-02_03:04:07
  host      : node7.cluster
  rank      : 13 (local_rank: 5)
  exitcode  : -15 (pid: 4243)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 4243
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-01-02_03:04:05
  host      : node7.cluster
  rank      : 12 (local_rank: 4)
  exitcode  : 1 (pid: 4242)
  error_file: /tmp/torchelastic_x/run_x/attempt_0/4/error.json
  traceback : Traceback (most recent call last):
    File "/opt/x/train.py", line 16, in main
      host: str = f()
             ^^^
    File "/opt/x/data.py", line 5, in f
      raise ValueError("no")
  ValueError: no data: none

============================================================"""


def failures(text: str) -> list[ElasticFailure]:
    return [one for one in read(ElasticReader(), text) if isinstance(one, ElasticFailure)]


def test_a_table_gives_every_entry_and_marks_the_first() -> None:
    later, first = failures(TABLE)
    assert (later.rank, later.local_rank, later.host) == (13, 5, "node7.cluster")
    assert (later.exit_code, later.signal, later.pid, later.first) == (-15, 15, 4243, False)
    assert (first.rank, first.exit_code, first.signal, first.first) == (12, 1, None, True)
    assert first.message == "ValueError: no data: none"
    assert later.seconds is not None
    assert first.seconds is not None
    assert later.seconds - first.seconds == 2.0


@pytest.mark.parametrize("start", range(5, 9))
def test_a_table_that_begins_inside_an_entry_is_read(start: int) -> None:
    found = failures("\n".join(TABLE.split("\n")[start:]))
    assert [one.exit_code for one in found] == [-15, 1]
    assert [one.first for one in found] == [False, True]


@pytest.mark.parametrize("end", range(9, 27))
def test_a_table_that_stops_anywhere_gives_what_it_told(end: int) -> None:
    found = failures("\n".join(TABLE.split("\n")[:end]))
    assert found[0].rank == 13
    assert all(one.rank in (12, 13, None) for one in found)


def test_the_traceback_may_stand_on_a_line_of_its_own() -> None:
    text = TABLE.replace("traceback : Traceback", "traceback :\nTraceback")
    assert failures(text)[-1].message == "ValueError: no data: none"


def test_the_table_of_older_versions_is_read() -> None:
    (found,) = failures(
        "Root Cause:\n[0]:\n  time: 2021-07-01_12:00:00\n  rank: 0 (local_rank: 0)\n"
        '  exitcode: -9 (pid: 1234)\n  error_file: <N/A>\n  msg: "Signal 9 (SIGKILL) received"\n'
        "=======================\nOther Failures:\n  <NO_OTHER_FAILURES>"
    )
    assert (found.rank, found.signal, found.first) == (0, 9, True)
    assert found.message == "Signal 9 (SIGKILL) received"


def test_settings_with_the_same_names_are_no_table() -> None:
    assert read(ElasticReader(), "host: node-a\nrank: 3\ntime: 12\nFailures: 0") == []


def test_a_table_ends_where_other_lines_begin() -> None:
    reader = ElasticReader()
    read(reader, TABLE + "\nother line\nmore")
    assert not reader.open


def test_tables_of_two_nodes_between_each_other_are_kept_apart() -> None:
    reader = ElasticReader()
    found: list[Event] = []
    for order, line in enumerate(TABLE.split("\n")):
        for node in (0, 1):
            whole = message(line.replace("node7", f"node{node}"), 2 * order + node, task=node)
            found += reader.see(Message(whole.text, f"{node}:", whole.at))
    found += reader.finish()
    entries = [one for one in found if isinstance(one, ElasticFailure)]
    assert sorted((one.host, one.rank) for one in entries) == [
        ("node0.cluster", 12),
        ("node0.cluster", 13),
        ("node1.cluster", 12),
        ("node1.cluster", 13),
    ]
    assert {one.message for one in entries if one.first} == {"ValueError: no data: none"}


def test_a_table_that_nobody_ends_is_given_up() -> None:
    reader = ElasticReader()
    list(reader.see(message("  rank      : 3 (local_rank: 3)", 0)))
    assert reader.open
    (event,) = reader.see(message("exitcode", 10_000))
    assert isinstance(event, ElasticFailure)
    assert event.rank == 3
    assert not reader.open


def only(text: str) -> Event:
    (event,) = read(ElasticReader(), text)
    return event


def test_a_failed_worker_is_told_by_its_agent() -> None:
    event = only("failed (exitcode: -9) local_rank: 3 (pid: 4242) of binary: /usr/bin/python")
    assert isinstance(event, ElasticFailure)
    assert (event.rank, event.local_rank, event.signal, event.pid) == (None, 3, 9, 4242)


@pytest.mark.parametrize(
    ("text", "signal"),
    [
        ("Sending process 4242 closing signal SIGTERM", "SIGTERM"),
        ("Sending process 4242 closing signal SIGINTException ignored in", "SIGINT"),
        ("Unable to shutdown process 4242 via 15, forcefully exiting via 9", "SIGKILL"),
        (
            "Unable to shutdown process 4242 via Signals.SIGTERM, forcefully exiting via "
            "Signals.SIGKILL",
            "SIGKILL",
        ),
    ],
)
def test_a_closing_signal_names_its_victim(text: str, signal: str) -> None:
    event = only(text)
    assert isinstance(event, ClosingSignal)
    assert (event.pid, event.signal) == (4242, signal)


@pytest.mark.parametrize(
    ("text", "signal"),
    [
        ("Received 2 death signal, shutting down workers", 2),
        ("Received Signals.SIGTERM death signal, shutting down workers", 15),
        ("torch.multiprocessing.api.SignalException: Process 4242 got signal: 1", 1),
    ],
)
def test_a_signal_to_the_launcher_is_told(text: str, signal: int) -> None:
    event = only(text)
    assert isinstance(event, DeathSignal)
    assert event.signal == signal


def test_a_restart_tells_what_is_left() -> None:
    event = only("[default] Worker group FAILED. 2/3 attempts left; will restart worker group")
    assert isinstance(event, WorkersRestart)
    assert event.left == 2


def test_a_process_that_no_signal_ends_is_told() -> None:
    event = only("Process 4242 did not exit after SIGKILL within 30s; abandoning it")
    assert isinstance(event, Unkillable)
    assert event.pid == 4242


@given(st.lists(st.sampled_from(TABLE.split("\n")) | st.text(max_size=60), max_size=40))
def test_any_text_is_read_without_an_error(lines: list[str]) -> None:
    read(ElasticReader(), lines)
