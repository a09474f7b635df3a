"""Jobs as plain text and as JSON."""

import json
from datetime import timedelta
from pathlib import Path

from slurmtop.cli.job_rows import (
    elapsed_s,
    filtered,
    in_order,
    job_dict,
    left_s,
    summary_line,
    table_lines,
)
from slurmtop.model.job import ExitCode, LimitKind, TimeLimit, Tres
from slurmtop.parse.mask import MARK
from slurmtop.parse.slurm.hostlist import expand_hosts
from slurmtop.store.query import parse_query
from tests.control.builders import NOW, job

GOLDEN = Path(__file__).parent / "golden"
DAY = TimeLimit(LimitKind.SECONDS, 86_400)


def test_the_table() -> None:
    jobs = in_order(
        [
            job("4712_[1-5]", "PENDING", reason="Priority", tres=Tres()),
            job("4711", limit=DAY, end=NOW + timedelta(hours=21)),
            job(
                "4700",
                "FAILED",
                start=NOW - timedelta(hours=2),
                end=NOW - timedelta(hours=1),
                reason="NonZeroExitCode",
                exit_code=ExitCode(3, 0),
            ),
            job(
                "4713",
                name="模型" * 20,
                user="very-long-user-name-here",
                limit=DAY,
                end=NOW - timedelta(minutes=1),
            ),
        ]
    )
    assert "\n".join(table_lines(jobs, NOW)) + "\n" == (GOLDEN / "table.txt").read_text()


def test_hostile_text_cannot_make_a_second_row() -> None:
    lines = table_lines([job("4711", name="a\nb\x1b[2J", nodes="g\r1", user="")], NOW)
    assert len(lines) == 2
    assert "\x1b" not in lines[1]
    assert "↵" in lines[1]


def test_the_summary_counts_tasks_and_tells_the_age() -> None:
    jobs = [job("4711"), job("4712_[1-5]", "PENDING"), job("4700", "FAILED")]
    then = NOW - timedelta(seconds=30)
    assert summary_line(jobs, whose="anna", sampled_at=then, now=NOW) == (
        "7 jobs of anna: 1 running, 5 waiting, 1 failed (30 s old)"
    )
    assert summary_line([], whose="anna", sampled_at=NOW, now=NOW) == "0 jobs of anna (0 s old)"


def test_times_that_are_not_known_are_none() -> None:
    assert elapsed_s(job("4711", "PENDING", start=NOW + timedelta(hours=1)), NOW) is None
    assert elapsed_s(job("4711", start=NOW + timedelta(seconds=3)), NOW) == 0.0
    assert elapsed_s(job("4711", "FAILED", start=NOW), NOW) is None
    assert left_s(job("4711"), NOW) is None
    over_a_year = TimeLimit(LimitKind.OVER_A_YEAR)
    assert left_s(job("4711", limit=over_a_year, end=NOW), NOW) is None


def test_json_has_offsets_and_null() -> None:
    waits = json.loads(json.dumps(job_dict(job("4711", "PENDING", start=NOW, tres=Tres()), NOW)))
    assert waits["start"] is None
    assert waits["expected_start"] == "2031-05-05T12:00:00+00:00"
    assert waits["gpus"] is None
    assert waits["elapsed_s"] is None
    runs = job_dict(job("4711", limit=DAY, end=NOW + timedelta(hours=1)), NOW)
    assert runs["end"] is None
    assert runs["ends_at_latest"] == "2031-05-05T13:00:00+00:00"
    assert runs["left_s"] == 3_600
    assert runs["elapsed_s"] == 10_800
    assert set(runs) == set(waits)
    failed = job_dict(job("4700", "FAILED", exit_code=ExitCode(0, 11)), NOW)
    assert (failed["exit_code"], failed["exit_signal"]) == (0, 11)
    assert (runs["exit_code"], runs["exit_signal"]) == (None, None)


def test_the_filter_is_that_of_the_screen() -> None:
    jobs = [job("4711", nodes="gpu[01-02]"), job("4712", "PENDING")]
    assert filtered(jobs, parse_query("node:gpu02"), NOW, expand_hosts) == jobs[:1]
    assert filtered(jobs, parse_query("state:pending"), NOW, expand_hosts) == jobs[1:]
    assert filtered(jobs, parse_query(""), NOW, expand_hosts) == jobs


def test_secrets_in_names_and_comments_are_masked_in_json() -> None:
    secret = "token=cmtTok0123456789AbCdEfGh"
    told = job_dict(job("4711", name=f"train {secret}", comment=secret), NOW)
    assert told["name"] == f"train token={MARK.decode()}"
    assert told["comment"] == f"token={MARK.decode()}"
    assert job_dict(job("4711", name="train", comment=None), NOW)["comment"] is None
