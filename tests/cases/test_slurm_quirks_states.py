"""Rules about states, ends and runs that no handed case holds.

Each test is named after the number that the collection of quirks gives to its rule.
"""

from typing import Any

import pytest

from slurmtop.model.job import (
    ExitCode,
    JobState,
    LimitKind,
    Phase,
)
from slurmtop.parse.slurm.exit_codes import explain_exit, explain_job_exit
from slurmtop.parse.slurm.sacct import newest_run, parse_sacct
from slurmtop.parse.slurm.squeue_forms import parse_squeue_default
from slurmtop.parse.slurm.squeue_json import parse_squeue_json
from slurmtop.parse.slurm.states import parse_state, parse_state_list
from tests.cases.quirks import RELEASES, accounting, capture, queue, queue_json

# 002: a job past its limit


@pytest.mark.parametrize("separator", ["|", "^", "\x1f"])
def test_S002_time_left_of_a_job_past_its_limit_is_not_known(separator: str) -> None:
    rows = queue(
        separator.join(("1", "1:00:00", "INVALID", "1:00:25", "RUNNING"))
        + "\n"
        + separator.join(("2", "2-00:00:00", "INVALID", "2-00:00:01", "COMPLETING"))
        + "\n"
        + separator.join(("3", "1:00:00", "0:00", "1:00:00", "RUNNING"))
        + "\n",
        "ilLMT",
        separator,
    )
    assert [job.limit.seconds for job in rows] == [3_600, 172_800, 3_600]
    assert [job.left.kind for job in rows[:2]] == [LimitKind.UNKNOWN, LimitKind.UNKNOWN]
    assert (rows[2].left.kind, rows[2].left.seconds) == (LimitKind.SECONDS, 0)
    assert [job.used_s for job in rows] == [3_625, 172_801, 3_600]


# 005: ended for its user, nodes still busy; the exit code of what has not ended


@pytest.mark.parametrize(
    ("words", "base", "phase"),
    [
        (["COMPLETED", "COMPLETING"], "COMPLETED", Phase.ENDING),
        (["COMPLETING", "FAILED"], "FAILED", Phase.ENDING),
        (["TIMEOUT", "COMPLETING"], "TIMEOUT", Phase.ENDING),
        (["PENDING", "COMPLETING"], "PENDING", Phase.ENDING),
    ],
)
def test_S005_completing_keeps_the_base_that_json_tells(
    words: list[str], base: str, phase: Phase
) -> None:
    state = parse_state_list(words)
    assert (state.word, state.base, state.phase) == ("COMPLETING", base, phase)
    assert not state.ended


_DONE = {
    "status": ["SUCCESS"],
    "return_code": {"set": True, "infinite": False, "number": 0},
    "signal": {"id": {"set": False, "infinite": False, "number": 0}, "name": ""},
}


@pytest.mark.parametrize(
    "words", [["PENDING"], ["RUNNING"], ["PENDING", "REQUEUED"], ["SUSPENDED"]]
)
def test_S005_success_of_a_job_that_is_not_over_is_no_exit_code(words: list[str]) -> None:
    (job,) = queue_json({"job_id": 7, "job_state": words, "exit_code": _DONE})
    assert job.exit_code is None
    assert explain_job_exit(job).ok is None


def test_S005_success_counts_once_the_base_says_so() -> None:
    for words in (["COMPLETED"], ["COMPLETED", "COMPLETING"]):
        (job,) = queue_json({"job_id": 7, "job_state": words, "exit_code": _DONE})
        assert job.exit_code == ExitCode(0, 0)


def test_S005_real_captures_tell_no_exit_code_of_jobs_that_are_not_over() -> None:
    for release in RELEASES:
        for job in parse_squeue_json(capture(release, "squeue_json")).rows:
            assert (job.exit_code is not None) == job.state.ended


# 007: the default format cuts OOM to OO


def test_S007_two_letters_of_out_of_memory() -> None:
    (job,) = parse_squeue_default(
        b"             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
        b"              7001       gpu train-ll     anna OO       0:00      1 (OutOfMemory)\n"
    ).rows
    assert (job.state.base, job.state.phase) == ("OUT_OF_MEMORY", Phase.FAILED)
    assert job.reason == "OutOfMemory"
    assert queue("7001|OO\n7002|OOM\n7003|OUT_OF_MEMORY\n", "it")[0].state == job.state


# 010: out of memory as 0:125, and codes that sacct makes too small


@pytest.mark.parametrize("state", ["OUT_OF_MEMORY", "FAILED", "OOM", "OUT_OF_ME+"])
def test_S010_0_125_is_memory_and_no_signal(state: str) -> None:
    (record,) = accounting(f"6200|{state}|0:125\n", "JobID,State,ExitCode")
    meaning = explain_exit(record.state, record.exit_code, from_sacct=True)
    text = " ".join((meaning.sentence, meaning.short, *meaning.notes)).lower()
    assert "out of memory" in text
    assert "signal" not in text
    assert "125" not in text
    assert meaning.ok is False


@pytest.mark.parametrize(
    ("printed", "real"),
    [("9:0", "137"), ("15:0", "143"), ("2:0", "130"), ("127:0", "255"), ("0:0", "128")],
)
def test_S010_sacct_may_have_taken_128_off(printed: str, real: str) -> None:
    (record,) = accounting(f"6201|FAILED|{printed}\n", "JobID,State,ExitCode")
    meaning = explain_exit(record.state, record.exit_code, from_sacct=True)
    assert meaning.ok is False
    assert any(real in note for note in meaning.notes)
    own = explain_exit(record.state, record.exit_code)
    assert not any(real in note for note in own.notes)


def test_S010_the_controller_keeps_137() -> None:
    (text,) = queue("6202|FAILED|NonZeroExitCode\n", "iTr")
    assert text.exit_code is None
    for release in ("raw", "object"):
        code: Any = 35072
        if release == "object":
            code = {"set": True, "infinite": False, "number": 35072}
        (job,) = queue_json({"job_id": 6202, "job_state": "FAILED", "exit_code": code})
        assert job.exit_code == ExitCode(137, 0)
        assert "SIGKILL" in explain_job_exit(job).sentence


# 012: several rows of a requeued job

_RUNS = "JobID,State,ExitCode,Submit,Start,End"


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    "now",
    [
        "PENDING|0:0|2031-03-04T11:00:00|Unknown|Unknown",
        "RUNNING|0:0|2031-03-04T11:00:00|2031-03-04T11:02:03|Unknown",
    ],
)
def test_S012_the_newest_run_is_told(turned: bool, now: str) -> None:
    old = "900|REQUEUED|0:0|2031-03-04T10:00:00|2031-03-04T10:00:05|2031-03-04T11:00:00"
    lines = [f"900|{now}", old] if turned else [old, f"900|{now}"]
    rows = accounting("\n".join(lines) + "\n", _RUNS)
    assert len(rows) == 2
    (newest,) = newest_run(rows)
    assert newest.state.word == now.partition("|")[0]


def test_S012_without_submit_times_the_run_that_waits_is_the_newest() -> None:
    for rest in ("PENDING|0:0|Unknown|Unknown", "CANCELLED|0:0|None|2031-03-04T11:30:00"):
        rows = accounting(
            f"1|REQUEUED|0:0|2031-03-04T10:00:05|2031-03-04T11:00:00\n1|{rest}\n",
            "JobID,State,ExitCode,Start,End",
        )
        assert [row.state.word for row in newest_run(rows)] == [rest.partition("|")[0]]


def test_S012_the_word_requeued_is_no_failure_and_no_end() -> None:
    (row,) = accounting("1|REQUEUED|0:0\n", "JobID,State,ExitCode")
    assert (row.state.phase, row.state.ended) == (Phase.PENDING, False)
    meaning = explain_exit(row.state, row.exit_code, from_sacct=True)
    assert meaning.ok is None
    assert "put back" in meaning.sentence


@pytest.mark.parametrize("release", RELEASES)
def test_S012_real_duplicates_come_to_one_run_each(release: str) -> None:
    data = capture(release, "sacct_dup").partition(b"exit=0\n")[2] or capture(release, "sacct_dup")
    fields = ("JobID", "State", "ExitCode", "Start", "End", "NodeList")
    rows = parse_sacct(data, fields=fields, separator=b"|").rows
    jobs = [row for row in newest_run(rows) if row.id.step is None]
    assert len({row.id.stable for row in jobs}) == len(jobs)
    assert all(row.state.word != "REQUEUED" for row in jobs if release == "24.11.5")


# 020, 067: states


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("words", "word", "base", "phase"),
    [
        (["LAUNCH_FAILED", "FAILED"], "FAILED", "FAILED", Phase.FAILED),
        (["CONFIGURING", "POWER_UP_NODE", "RUNNING"], "CONFIGURING", "RUNNING", Phase.RUNNING),
        (["RECONFIG_FAIL", "COMPLETED"], "COMPLETED", "COMPLETED", Phase.COMPLETED),
        (["UPDATE_DB", "TIMEOUT"], "TIMEOUT", "TIMEOUT", Phase.FAILED),
        (["GETENV_FAILED", "PENDING"], "PENDING", "PENDING", Phase.PENDING),
        (["EXPEDITING", "PENDING"], "EXPEDITING", "PENDING", Phase.PENDING),
        (["EXPEDITING", "NODE_FAIL"], "EXPEDITING", "NODE_FAIL", Phase.PENDING),
        (["SIGNALING", "RUNNING"], "SIGNALING", "RUNNING", Phase.RUNNING),
        (["STOPPED", "RUNNING"], "STOPPED", "RUNNING", Phase.SUSPENDED),
        (["NEW_FLAG_OF_2040", "RUNNING"], "RUNNING", "RUNNING", Phase.RUNNING),
    ],
)
def test_S020_one_base_and_flags_in_any_order(
    words: list[str], word: str, base: str, phase: Phase, turned: bool
) -> None:
    state = parse_state_list(words[::-1] if turned else words)
    assert (state.word, state.base, state.phase) == (word, base, phase)
    assert set(state.flags) == set(words) - {base}


def test_S020_a_list_without_a_known_base_is_unknown_and_visible() -> None:
    (job,) = queue_json({"job_id": 5, "job_state": ["HIBERNATED"]})
    assert (job.state.word, job.state.phase) == ("HIBERNATED", Phase.UNKNOWN)
    (nothing,) = queue_json({"job_id": 5, "job_state": []})
    assert nothing.state == JobState("?", None)


@pytest.mark.parametrize(
    ("short", "long"),
    [
        *(("PD", "PENDING"), ("R", "RUNNING"), ("S", "SUSPENDED"), ("CD", "COMPLETED")),
        *(("CA", "CANCELLED"), ("F", "FAILED"), ("TO", "TIMEOUT"), ("NF", "NODE_FAIL")),
        *(("PR", "PREEMPTED"), ("BF", "BOOT_FAIL"), ("DL", "DEADLINE"), ("OOM", "OUT_OF_MEMORY")),
        *(("CG", "COMPLETING"), ("SO", "STAGE_OUT"), ("CF", "CONFIGURING"), ("RS", "RESIZING")),
        *(("RQ", "REQUEUED"), ("RF", "REQUEUE_FED"), ("RH", "REQUEUE_HOLD")),
        *(("SE", "SPECIAL_EXIT"), ("ST", "STOPPED"), ("RV", "REVOKED"), ("RD", "RESV_DEL_HOLD")),
        ("SI", "SIGNALING"),
    ],
)
def test_S067_short_and_long_are_the_same(short: str, long: str) -> None:
    by_code, by_word = queue(f"1|{short}\n2|{long}\n", "iT")
    assert by_code.state == by_word.state
    assert by_word.state.word == long
    assert by_word.state.phase is not Phase.UNKNOWN


def test_S067_expediting_has_a_long_word_only() -> None:
    assert parse_state("EXPEDITING").phase is Phase.PENDING
    assert not parse_state("EXPEDITING").ended


@pytest.mark.parametrize("word", ["?", "UNINITIALISED", "XY", "LAUNCH_FAILED", "HIBERNATED"])
def test_S067_words_of_no_meaning_stay_visible(word: str) -> None:
    (job,) = queue(f"1|{word}\n", "iT")
    assert (job.state.word, job.state.phase, job.state.ended) == (word, Phase.UNKNOWN, False)


@pytest.mark.parametrize(
    ("word", "terminal"),
    [
        *((word, True) for word in ("CD", "CA", "F", "TO", "NF", "PR", "BF", "DL", "OOM")),
        *((word, False) for word in ("PD", "R", "S", "CG", "SO", "CF", "RS", "RQ", "RF", "RH")),
        *((word, False) for word in ("SE", "ST", "RV", "RD", "SI", "EXPEDITING")),
    ],
)
def test_S067_no_flag_alone_is_an_end(word: str, terminal: bool) -> None:
    assert parse_state(word).ended is terminal
