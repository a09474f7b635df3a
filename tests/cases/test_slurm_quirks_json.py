"""Rules about ``--json`` that no handed case holds.

Each test is named after the number that the collection of quirks gives to its rule.
"""

import json
from typing import Any

import pytest

from slurmtop.model.ids import TaskSet
from slurmtop.model.job import (
    AccountingRecord,
    ExitCode,
    LimitKind,
    Phase,
)
from slurmtop.parse.slurm.exit_codes import explain_exit
from slurmtop.parse.slurm.sacct_json import parse_sacct_json
from slurmtop.parse.slurm.squeue_json import parse_squeue_json
from tests.cases.quirks import RELEASES, capture, queue_json

# 032: sacct --json up to 23.02 says SUCCESS of every exit


def _sacct_json(**record: Any) -> AccountingRecord:
    document = {"jobs": [{"job_id": 8, "steps": [], **record}], "errors": []}
    found = parse_sacct_json(json.dumps(document).encode())
    assert found.bad == 0
    return found.rows[0]


@pytest.mark.parametrize(
    "code",
    [
        {"status": "SUCCESS", "return_code": 0},
        {"status": "SUCCESS", "return_code": {"set": True, "infinite": False, "number": 0}},
    ],
)
def test_S032_success_of_a_failed_job_is_no_exit_code(code: Any) -> None:
    row = _sacct_json(state={"current": "FAILED", "reason": "None"}, exit_code=code)
    assert row.exit_code is None
    meaning = explain_exit(row.state, row.exit_code, from_sacct=True)
    assert meaning.ok is False
    done = _sacct_json(state={"current": "COMPLETED", "reason": "None"}, exit_code=code)
    assert done.exit_code == ExitCode(0, 0)


def test_S032_a_signal_and_the_later_dialects_are_believed() -> None:
    old = {"status": "SIGNALED", "return_code": None, "signal": {"signal_id": 11, "name": "x"}}
    row = _sacct_json(state={"current": "FAILED", "reason": "None"}, exit_code=old)
    assert row.exit_code == ExitCode(0, 11)
    new = {
        "status": ["ERROR"],
        "return_code": {"set": True, "infinite": False, "number": 1},
        "signal": {"id": {"set": False, "infinite": False, "number": 0}, "name": ""},
    }
    row = _sacct_json(state={"current": ["FAILED"], "reason": "None"}, exit_code=new)
    assert row.exit_code == ExitCode(1, 0)


@pytest.mark.parametrize("release", RELEASES)
def test_S032_real_captures_agree_with_the_text(release: str) -> None:
    found = parse_sacct_json(capture(release, "sacct_json"))
    assert found.bad == 0
    assert len(found.rows) > 20
    for row in found.rows:
        assert row.id.base
        assert row.state.phase is not Phase.UNKNOWN
        if row.state.base == "FAILED":
            assert row.exit_code != ExitCode(0, 0)
    never = [row for row in found.rows if row.never_started]
    assert all(row.start is None and row.end is not None for row in never)


def test_S032_tasks_that_wait_are_a_bit_map() -> None:
    tasks = [row.id.tasks for row in parse_sacct_json(capture("24.11.5", "sacct_json")).rows]
    assert [one for one in tasks if one is not None] == [TaskSet("1-19%4", 19, throttle=4)]


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"sacct: error", b'{"jobs": null}'])
def test_S032_no_json_is_no_empty_history(data: bytes) -> None:
    assert parse_sacct_json(data).bad == 1


# 045: JSON that is an excuse


@pytest.mark.parametrize(
    "data",
    [
        b'{"errors": [{"error": "Unspecified error", "error_number": -1}], "jobs": []}',
        b'{"errors": [{"description": "Unable to query", "source": "x"}]}',
        b'{"jobs": null, "errors": []}',
        b"",
        b"squeue: error: cannot find serializer plugin\n",
    ],
)
def test_S045_errors_without_jobs_are_no_empty_queue(data: bytes) -> None:
    found = parse_squeue_json(data)
    assert (found.rows, found.bad) == ((), 1)


def test_S045_warnings_and_errors_beside_jobs_cost_none() -> None:
    warned = {"warnings": [{"description": "old option"}], "errors": []}
    assert len(queue_json({"job_id": 1, "job_state": "RUNNING"}, **warned)) == 1
    assert len(queue_json({"job_id": 1, "job_state": "RUNNING"}, errors=[{"error": "x"}])) == 1
    empty = parse_squeue_json(json.dumps({"jobs": [], **warned}).encode())
    assert (empty.rows, empty.bad) == ((), 0)


# 055, 057: dialects of squeue --json


def test_S055_the_dialect_of_22_05() -> None:
    failed, running, rest, killed = queue_json(
        {
            "job_id": 51,
            "array_job_id": 0,
            "array_task_id": None,
            "job_state": "FAILED",
            "exit_code": 256,
            "time_limit": 60,
            "start_time": 1_700_000_000,
        },
        {
            "job_id": 53,
            "array_job_id": 50,
            "array_task_id": 3,
            "job_state": "RUNNING",
            "exit_code": 0,
            "time_limit": None,
            "nodes": "gpu02",
        },
        {
            "job_id": 50,
            "array_job_id": 50,
            "array_task_id": None,
            "job_state": "PENDING",
            "array_task_string": "4-9%2",
            "start_time": 0,
            "exit_code": 0,
        },
        {"job_id": 54, "job_state": "CANCELLED", "exit_code": 15},
    )
    assert (failed.exit_code, failed.limit.seconds) == (ExitCode(1, 0), 3_600)
    assert failed.id.text == "51"
    assert (running.id.text, running.limit.kind) == ("50_3", LimitKind.UNLIMITED)
    assert running.exit_code is None
    assert (rest.key.id, rest.start) == ("50_[*]", None)
    assert rest.id.tasks == TaskSet("4-9%2", 6, throttle=2)
    assert killed.exit_code == ExitCode(0, 15)


def test_S055_the_real_answer_has_ended_jobs_too() -> None:
    jobs = parse_squeue_json(capture("22.05.8", "squeue_json")).rows
    by_id = {job.id.text: job for job in jobs}
    assert by_id["4"].exit_code == ExitCode(3, 0)
    assert by_id["5"].exit_code == ExitCode(0, 11)
    assert by_id["13"].exit_code == ExitCode(0, 15)
    assert by_id["1"].exit_code == ExitCode(0, 0)


def test_S057_an_answer_that_obeyed_no_filter_is_filtered_again() -> None:
    jobs = queue_json(
        {"job_id": 1, "job_state": ["RUNNING"], "user_name": "anna", "partition": "gpu"},
        {"job_id": 2, "job_state": ["COMPLETED"], "user_name": "bob", "partition": "cpu"},
    )
    assert [(job.user, job.state.phase, job.partitions) for job in jobs] == [
        ("anna", Phase.RUNNING, ("gpu",)),
        ("bob", Phase.COMPLETED, ("cpu",)),
    ]
