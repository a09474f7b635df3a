"""Ids, limits and times as Slurm prints them: cases 001, 003, 006, 013, 034."""

import itertools
import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from slurmtop.collect.clock import SystemClock
from slurmtop.collect.env import child_environment
from slurmtop.collect.local import LocalRunner
from slurmtop.collect.squeue import QueueSource, fetch_expected_start
from slurmtop.control.actions import Asker, Refusal
from slurmtop.control.cancel import plan_cancel
from slurmtop.control.read_back import QueueReadBack
from slurmtop.model.job import Job, LimitKind
from slurmtop.model.ports import Command, Completed
from slurmtop.parse.slurm.ids import parse_job_id
from slurmtop.parse.slurm.squeue import parse_squeue
from slurmtop.parse.slurm.squeue_forms import parse_squeue_default
from slurmtop.parse.slurm.squeue_json import number_of, parse_squeue_json
from slurmtop.parse.slurm.times import parse_duration, parse_limit, parse_time
from slurmtop.ui.present.jobs import needs_somebody
from tests.cases.product import answering, by_id, cells, in_asked_form, limit, rows_of, squeue
from tests.cases.support import Case, found, load, product, prose, sentence, values
from tests.fakes import START, FakeRunner

MIB = 1024 * 1024


@values("001", "003", "006", "013", "034")
def test_values(path: str, wanted: Any) -> None:
    assert found(path) == wanted


# 001: a time limit above a year


@product("001")
def answer_001(case: Case) -> Any:
    return {
        "rows": {
            job.id.text: {
                "id": job.key.id,
                "limit_s": limit(job.limit),
                "limit_text": str(job.limit.kind),
                "left_s": limit(job.left),
                "used_s": job.used_s,
            }
            for job in squeue(case[1]).rows
        }
    }


@sentence(
    "001",
    "INVALID in both limit and time left on a healthy running job means: limit above 365 days;"
    ' show "> 365 d", no alarm',
)
def test_case_001_must_read_invalid_as_a_limit_above_a_year_without_alarm() -> None:
    job = by_id(squeue(load("001")[1]).rows)["90012"]
    assert job.limit.kind is LimitKind.OVER_A_YEAR
    assert job.left.kind is LimitKind.OVER_A_YEAR
    text, role = cells(job)["left"]
    assert text.replace(" ", "") == ">365d"
    assert role in ("", "dim")
    assert not needs_somebody(job)


@sentence("001", "never raise on INVALID, UNLIMITED, NOT_SET")
def test_case_001_must_never_raise_on_words() -> None:
    for word in ("INVALID", "UNLIMITED", "NOT_SET"):
        assert parse_limit(word).seconds is None
        assert parse_duration(word) is None
        assert parse_time(word) is None
    parsed = squeue(load("001")[1])
    assert (len(parsed.rows), parsed.bad) == (4, 0)
    for job in parsed.rows:
        assert cells(job)["left"][0]


# 003: ids of arrays that Slurm cut


def _tasks(job: Job) -> dict[str, Any]:
    tasks = job.id.tasks
    if tasks is None:
        return {"id": job.key.id, "task": job.id.task}
    return {
        "id": job.id.base,
        "tasks": tasks.count if tasks.exact else f"at least {tasks.count}",
        "exact": tasks.exact,
        "throttle": tasks.throttle if tasks.throttle_known else "unknown",
    }


def _array_rows(case: Case, n: int) -> list[Job]:
    if n < 3:
        return list(squeue(case[n]).rows)
    return list(
        parse_squeue(case[3].stdout, fields=("id", "state"), separator=b"|", record_mark=b"\n").rows
    )


@product("003")
def answer_003(case: Case) -> Any:
    names = ("first_command", "second_command", "third_command")
    return {
        name: {"rows": {key: _tasks(job) for key, job in by_id(_array_rows(case, n)).items()}}
        for n, name in enumerate(names, 1)
    }


@sentence(
    "003",
    'an id with "[" and no "]" is cut: the piece after the last comma may be half a number'
    ' ("8" of 81) and the throttle is unknown',
)
@pytest.mark.parametrize(
    "text", ["70400_[0-1,4,9,16,25,36,49,64,8", "700100_[0-1,4,9,16,25,36,49,64,"]
)
def test_case_003_must_see_that_an_id_without_its_bracket_is_cut(text: str) -> None:
    found_id = parse_job_id(text)
    assert found_id.cut
    assert found_id.tasks is not None
    assert (found_id.tasks.count, found_id.tasks.exact) == (9, False)
    assert (found_id.tasks.throttle, found_id.tasks.throttle_known) == (None, False)


@sentence(
    "003",
    'the fragment right before "..." must be dropped, it may be half a number',
)
def test_case_003_must_drop_the_fragment_before_the_dots() -> None:
    for fragment in ("3", "32", "324-9", "9-1"):
        text = f"700100_[0-1,4,9,16,25,36,49,64,81,100,121,144,169,196,225,256,289,{fragment}...%8]"
        tasks = parse_job_id(text).tasks
        assert tasks is not None
        # It stands for one task at least, whatever its number is.
        assert (tasks.count_text(), tasks.throttle) == ("19+", 8)
    for job in _array_rows(load("003"), 3)[:2]:
        assert isinstance(plan_cancel([job], Asker(me="", now=START)), Refusal)


@sentence(
    "003",
    "run squeue with SLURM_BITSTR_LEN=0 (taking the variable out is not enough: that gives the"
    ' 31-byte form); show "9+" or "19+" otherwise, never a cut number as fact',
)
def test_case_003_must_ask_for_whole_ids_and_show_a_plus_otherwise() -> None:
    for environ in ({}, {"SLURM_BITSTR_LEN": "64"}, {"SLURM_BITSTR_LEN": ""}):
        assert child_environment(environ)["SLURM_BITSTR_LEN"] == "0"
    for n, shown in ((1, "9+ "), (3, "19+ ")):
        for job in _array_rows(load("003"), n)[:2]:
            text, _ = cells(job)["why"]
            assert text.startswith(shown)


@sentence("003", '"a-b:c" is a step range')
def test_case_003_must_read_step_ranges() -> None:
    for low, high, step in itertools.product((0, 3), (10, 998), (1, 2, 7, 2000)):
        tasks = parse_job_id(f"7_[{low}-{high}:{step}]").tasks
        assert tasks is not None
        assert (tasks.count, tasks.exact) == (len(range(low, high + 1, step)), True)


# 006: the default format of squeue


@product("006")
def answer_006(case: Case) -> Any:
    rows = by_id(parse_squeue_default(case[1].stdout).rows)
    return {
        "rows": {
            key: {
                "id": job.id.base if job.id.tasks is not None else job.key.id,
                "kind": "array-rest" if job.id.tasks is not None else "job",
                "throttle": job.id.tasks.throttle if job.id.tasks is not None else None,
                "reason": job.reason,
                "state": job.state.word,
                "used_s": job.used_s,
            }
            for key, job in rows.items()
        }
    }


def _rest_006() -> Job:
    return by_id(parse_squeue_default(load("006")[1].stdout).rows)["57829110"]


@sentence(
    "006",
    'do not use the default format at all; if it is parsed, treat an id with "[" and no "]" as cut'
    " and the throttle as unknown",
)
async def test_case_006_must_never_ask_in_the_default_format() -> None:
    runner = FakeRunner()
    runner.on_call("squeue *", answering([]))
    for how in ({}, {"all_users": True}, {"user": "anna"}, {"job_id": "7"}, {"cluster": "a"}):
        await QueueSource(runner, runner.clock, **how).fetch()
    await QueueReadBack(runner).read(["7"], "")
    await fetch_expected_start(runner, "7")
    assert len(runner.calls) == 7
    for call in runner.calls:
        assert call.argv[0] == "squeue"
        option = "-O" if "-O" in call.argv else "-o"
        form = call.argv[call.argv.index(option) + 1]
        assert form.startswith(("JobArrayID:", "%i\x1f"))
        assert "-h" in call.argv
    tasks = _rest_006().id.tasks
    assert _rest_006().id.cut
    assert tasks is not None
    assert not tasks.throttle_known


@sentence("006", "read the throttle as 5 (true value: 50)")
def test_case_006_must_not_read_the_cut_throttle() -> None:
    tasks = _rest_006().id.tasks
    assert tasks is not None
    assert (tasks.throttle, tasks.throttle_known) == (None, False)
    assert "at once" not in cells(_rest_006())["why"][0]


@sentence("006", "fail on the missing bracket")
def test_case_006_must_not_fail_on_the_missing_bracket() -> None:
    parsed = parse_squeue_default(load("006")[1].stdout)
    assert (len(parsed.rows), parsed.bad) == (2, 0)


@sentence("006", "NAME, USER, PARTITION are cut to 8/8/9: never use them as keys")
def test_case_006_must_not_use_cut_names_as_keys() -> None:
    short = by_id(parse_squeue_default(load("006")[1].stdout).rows)["57829110_7"]
    whole = parse_squeue(
        b"57829110_7|gpu-long-a100|finetune-7b|annabelle\n57829110_8|gpu-long-h100|finetune-9b|annabell\n",
        fields=("id", "partition", "name", "user"),
        separator=b"|",
        record_mark=b"\n",
    ).rows
    assert short.key == whole[0].key
    assert whole[0].key != whole[1].key


# 013: SLURM_TIME_FORMAT


@product("013")
def answer_013(case: Case) -> Any:
    starts = {
        job.id.text: [
            other.start for n in (1, 2) for other in squeue(case[n]).rows if other.key == job.key
        ]
        for job in squeue(case[1]).rows
    }
    assert all(len(set(found_)) == 1 for found_ in starts.values())
    rows = {key: {"id": key, "start": found_[0]} for key, found_ in starts.items()}
    return {"parse_if_unset_not_possible": {"rows": rows}}


@sentence(
    "013",
    'slurmtop never lets SLURM_TIME_FORMAT through to its children (unset or "standard")',
)
@pytest.mark.parametrize("given", ["relative", "%s", "nonsense", ""])
async def test_case_013_must_keep_the_time_format_from_children(given: str, tmp_path: Path) -> None:
    program = tmp_path / "squeue"
    program.write_text("#!/bin/sh\nenv\n")
    program.chmod(0o755)
    environ = {"PATH": "/usr/bin:/bin", "SLURM_TIME_FORMAT": given}
    async with LocalRunner(SystemClock(), environ) as runner:
        done = await runner.run(Command((str(program),)))
    assert done.rc == 0
    names = dict(line.partition("=")[::2] for line in done.stdout.decode().splitlines())
    assert names.get("SLURM_TIME_FORMAT", "standard") == "standard"
    assert names["TZ"] == "UTC"


@sentence("013", "if handed such text anyway: value unknown, no crash, no wrong date")
def test_case_013_must_not_guess_dates() -> None:
    for n in (1, 2):
        parsed = squeue(load("013")[n])
        assert parsed.bad == 0
        assert len(parsed.rows) == load("013")[n].stdout.count(b"\n")
        assert all((job.start, job.end, job.submit) == (None,) * 3 for job in parsed.rows)


# 034: number objects of --json


def _json_job(job: Job) -> dict[str, Any]:
    mem, nodes, cpus = job.tres.mem_bytes, job.node_count, job.tres.cpus
    return {
        "id": job.raw_id,
        "limit": limit(job.limit),
        "limit_s": limit(job.limit),
        "start": job.start,
        "task": job.id.task,
        "array": job.id.stable,
        "held": job.priority == 0,
        "het_offset": (
            "unknown" if job.het_leader and job.id.het_offset is None else job.id.het_offset
        ),
        "mem_per_node_mib": None if mem is None or not nodes else mem / nodes / MIB,
        "mem_per_cpu_mib": None if mem is None or not cpus else mem / cpus / MIB,
    }


@product("034")
def answer_034(case: Case) -> Any:
    return {
        name: {"jobs": {j.raw_id: _json_job(j) for j in parse_squeue_json(case[n].stdout).rows}}
        for n, name in enumerate(("first", "second", "third"), 1)
    }


@sentence(
    "034",
    "set:false → no value, even though number is 0; array task 0 with set:true IS task 0",
)
def test_case_034_must_tell_no_value_from_zero() -> None:
    assert number_of({"set": False, "infinite": False, "number": 0}) is None
    assert number_of({"set": True, "infinite": False, "number": 0}) == 0
    first, second, _ = parse_squeue_json(load("034")[1].stdout).rows
    assert first.id.task is None
    assert second.id.task == 0


@sentence("034", "infinite wins over set")
@pytest.mark.parametrize("is_set", [False, True])
def test_case_034_must_let_infinite_win(is_set: bool) -> None:
    assert number_of({"set": is_set, "infinite": True, "number": 0}) == math.inf


@sentence("034", 'start_time 0 is "no start time"')
def test_case_034_must_not_read_1970_as_a_start() -> None:
    for start in (0, {"set": True, "infinite": False, "number": 0}):
        job = _from_json(start_time=start)
        assert job.start is None


@sentence("034", "time_limit is in MINUTES in JSON")
@pytest.mark.parametrize("minutes", [1, 60, 1_440, 20_160])
def test_case_034_must_read_limits_in_minutes(minutes: int) -> None:
    job = _from_json(time_limit={"set": True, "infinite": False, "number": minutes})
    assert job.limit.seconds == minutes * 60


@sentence(
    "034",
    "4294967295 / 4294967294 (and 2^16, 2^64 forms) are infinite / unset",
)
def test_case_034_must_know_the_markers_of_every_width() -> None:
    for bits in (32, 64):
        assert number_of(2**bits - 1) == math.inf
        assert number_of(2**bits - 2) is None
        assert _from_json(time_limit=2**bits - 1).limit.kind is LimitKind.UNLIMITED
        assert _from_json(time_limit=2**bits - 2).limit.seconds is None
    # Restarts are counted in 16 bits; job numbers and task numbers are not.
    assert _from_json(restart_cnt=2**16 - 2).restarts is None
    assert _from_json(restart_cnt=2**16 - 1).restarts is None
    assert _from_json(array_job_id=5, array_task_id=2**16 - 2).id.task == 2**16 - 2


@prose("034/third/jobs/1/note")
def test_case_034_null_is_unlimited_in_the_oldest_dialect() -> None:
    (job,) = parse_squeue_json(load("034")[3].stdout).rows
    assert job.limit.kind is LimitKind.UNLIMITED


def _from_json(**record: Any) -> Job:
    """The one job of an answer of ``squeue --json``."""
    whole = {"job_id": 5, "job_state": ["RUNNING"], **record}
    (job,) = parse_squeue_json(json.dumps({"jobs": [whole], "errors": []}).encode()).rows
    return job


@sentence("013", "third: data on stdout is good although stderr says error")
async def test_case_013_must_take_data_beside_an_error() -> None:
    step = load("013")[3]
    assert squeue(step).rows[0].start == datetime(2031, 5, 5, 14, 24, 22, tzinfo=UTC)
    runner = FakeRunner()
    rows = rows_of(step)
    runner.on_call(
        "squeue *",
        lambda command: Completed(0, in_asked_form(command.argv, rows), step.stderr, START, 0.1),
    )
    (job,) = (await QueueSource(runner, runner.clock).fetch()).rows
    assert (job.id.text, job.start) == ("6500", datetime(2031, 5, 5, 14, 24, 22, tzinfo=UTC))
