"""The header's words and sums, at fixed times."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.job import JobDetail, JobState, LimitKind, TimeLimit, Tres
from slurmtop.model.text import cell_width
from slurmtop.ui.present.job import (
    HEADER_LINES,
    JobCard,
    elapsed_s,
    expected_start_text,
    gpu_hours_text,
    header_lines,
    limit_text,
    moment_text,
    state_words,
    tres_text,
)
from slurmtop.ui.present.spans import line_width, plain, wrap
from tests.build import make_job, make_state
from tests.fakes import START

SIXTEEN = Tres(gpus=16, gpus_by_type=(("h100", 16),))


def shown(card: JobCard, *, now: datetime = START, width: int = 80) -> str:
    return "\n".join(plain(line) for line in header_lines(card, now, width, UTC))


def card(**fields: Any) -> JobCard:
    job = make_job("4711", **fields)
    return JobCard(asked="4711", job=job, sampled_at=START)


def test_a_running_job_says_elapsed_limit_left_nodes_gpus_and_hours() -> None:
    running = card(
        name="llm-pretrain", ran_s=10_927, tres=SIXTEEN, nodes="gpu[01-02]", node_count=2
    )
    text = shown(running, now=START + timedelta(seconds=12))
    assert "elapsed 3:02:19 · limit 1-00:00:00 · left 20:57:41" in text
    assert "2 nodes gpu[01-02] · 16 GPUs (h100) · 48.6 GPU-hours spent" in text
    assert "partition gpu · account ml · qos normal · restarts 0" in text
    assert "submitted 11:00:00 · started 08:57:53" in text
    assert "data 12 s old" in text


def test_what_slurm_did_not_say_is_a_dash_and_never_zero() -> None:
    job = make_job("4711", ran_s=None, node_count=None, nodes=None, restarts=None, limit_s=None)
    job = replace(job, tres=Tres(), limit=TimeLimit(LimitKind.UNKNOWN), submit=None, qos=None)
    text = shown(JobCard(asked="4711", job=job, sampled_at=START))
    assert "elapsed –" in text
    assert "– nodes" in text
    assert "GPUs unknown" in text
    assert "GPU-hours unknown" in text
    assert "restarts –" in text
    assert "qos –" in text


def test_a_pending_job_says_how_long_it_waits_and_never_an_elapsed_time() -> None:
    job = make_job("4711", "PENDING", gpus=8, start=START + timedelta(hours=2))
    text = shown(JobCard(asked="4711", job=job, sampled_at=START))
    assert "waiting 1:00:00 · limit 1-00:00:00 · reason Priority" in text
    assert "asks for 1 node · 8 GPUs" in text
    assert "may start 14:00:00" in text
    assert "elapsed" not in text
    assert "GPU-hours" not in text


def test_an_ended_job_stops_counting() -> None:
    ended = make_job("4711", "FAILED", gpus=8, ran_s=7_200, end=START - timedelta(hours=1))
    text = shown(JobCard(asked="4711", job=ended, sampled_at=START))
    assert "elapsed 1:00:00" in text
    assert "8.0 GPU-hours spent" in text
    assert "left" not in text


def test_over_the_limit_is_said_and_never_negative() -> None:
    assert "over its limit by 1:40" in shown(card(ran_s=700, limit_s=600))


@pytest.mark.parametrize(
    ("given_card", "says"),
    [
        (JobCard(asked="4711"), "asking Slurm …"),
        (JobCard(asked="4711", trouble="the controller is down"), "the controller is down"),
        (replace(card(), trouble="down"), "! no answer, data 5 min old"),
        (card(), "! data 5 min old"),
        (replace(card(), stale_after_s=600), "data 5 min old"),
        (replace(card(), gone=True), "left the queue, seen 5 min ago"),
    ],
)
def test_loading_outage_stale_and_gone_each_look_different(given_card: JobCard, says: str) -> None:
    assert says in shown(given_card, now=START + timedelta(minutes=5))


def test_a_job_that_left_is_not_shown_as_running() -> None:
    text = shown(replace(card(), gone=True))
    assert "last seen running" in text


def test_slurms_own_counter_is_preferred_to_dates_of_another_clock() -> None:
    job = make_job("4711", ran_s=600)
    detail = JobDetail(job=job, run_time_s=900)
    both = JobCard(asked="4711", job=job, detail=detail, detail_at=START)
    assert elapsed_s(both, START + timedelta(seconds=30)) == 930
    later_run = replace(job, start=START)
    assert elapsed_s(replace(both, job=later_run), START + timedelta(seconds=5)) == 5


def test_a_suspended_job_does_not_tick() -> None:
    job = make_job("4711", "SUSPENDED", ran_s=600)
    assert elapsed_s(JobCard(asked="4711", job=job), START) is None
    detail = JobDetail(job=job, run_time_s=200)
    known = JobCard(asked="4711", job=job, detail=detail, detail_at=START)
    assert elapsed_s(known, START + timedelta(hours=1)) == 200


@given(st.text(max_size=300), st.text(max_size=200), st.text(max_size=400), st.integers(20, 200))
def test_hostile_text_never_breaks_the_header(name: str, user: str, nodes: str, width: int) -> None:
    job = make_job("4711", name=name, user=user, nodes=nodes, reason=nodes, gpus=8)
    for state in ("RUNNING", "PENDING"):
        job = replace(job, state=make_state(state))
        lines = header_lines(JobCard(asked=name, job=job, sampled_at=START), START, width, UTC)
        assert len(lines) == HEADER_LINES
        for line in lines:
            assert line_width(line) <= width
            assert not any(ord(char) < 32 for char in plain(line))


def test_the_header_fits_80_by_24_with_long_names_and_keeps_what_matters() -> None:
    text = shown(card(name="n" * 250, nodes="gpu[" + "001-099," * 40 + "]", tres=SIXTEEN))
    assert "running" in text
    assert "16 GPUs (h100)" in text
    assert "GPU-hours spent" in text


@pytest.mark.parametrize(
    ("moment", "zone", "text"),
    [
        (START, "UTC", "12:00:00"),
        (START - timedelta(days=1), "UTC", "4 May 12:00"),
        (START - timedelta(days=400), "UTC", "31 Mar 2030 12:00"),
        (START - timedelta(hours=13), "Pacific/Chatham", "5 May 11:45"),
        (START, "Pacific/Chatham", "00:45:00"),
    ],
)
def test_a_moment_is_shown_in_the_viewers_zone(moment: datetime, zone: str, text: str) -> None:
    assert moment_text(moment, START, ZoneInfo(zone)) == text


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (TimeLimit(LimitKind.SECONDS, 90), "1:30"),
        (TimeLimit(LimitKind.UNLIMITED), "no limit"),
        (TimeLimit(LimitKind.OVER_A_YEAR), "over a year"),
        (TimeLimit(LimitKind.PARTITION_DEFAULT), "the partition's"),
        (TimeLimit(LimitKind.UNKNOWN), "–"),
    ],
)
def test_a_limit_in_words(limit: TimeLimit, text: str) -> None:
    assert limit_text(limit) == text


@pytest.mark.parametrize(
    ("tres", "text"),
    [
        (SIXTEEN, "16 GPUs (h100)"),
        (Tres(gpus=6, gpus_by_type=(("a100", 2), ("h100", 4))), "6 GPUs (2 a100, 4 h100)"),
        (Tres(gpus=0), "no GPU"),
        (Tres(gpus=0, slices_by_type=(("1g.10gb", 2),)), "2 slice 1g.10gb"),
        (Tres(gpus=0, shards=4), "4 GPU shards"),
        (Tres(), "GPUs unknown"),
    ],
)
def test_gpus_in_words(tres: Tres, text: str) -> None:
    assert tres_text(tres) == text


@pytest.mark.parametrize(
    ("hours", "text"),
    [
        (None, "GPU-hours unknown"),
        (0.0, "0.0 GPU-hours"),
        (0.01, "under 0.1 GPU-hours"),
        (24.28, "24.3 GPU-hours"),
        (1_204.4, "1,204 GPU-hours"),
    ],
)
def test_gpu_hours_in_words(hours: float | None, text: str) -> None:
    assert gpu_hours_text(hours) == text


def test_a_flag_is_worded_before_its_base_and_an_unknown_word_stays() -> None:
    assert state_words(JobState("COMPLETING", None, ("COMPLETING",))).startswith("ending")
    assert state_words(JobState("NEW_THING", None)) == "state NEW_THING"
    assert state_words(JobState("X\x1b", None)) == "state X␛"


def test_an_expected_start_is_a_guess_also_when_it_has_passed() -> None:
    assert "in 25 min" in expected_start_text(START + timedelta(minutes=25), START, UTC)
    assert "has passed" in expected_start_text(START - timedelta(minutes=25), START, UTC)
    assert "names no time" in expected_start_text(None, START, UTC)


@given(st.text(max_size=200).map(lambda text: text.replace("\n", " ")), st.integers(6, 90))
def test_wrapping_loses_no_word_and_keeps_the_width(text: str, width: int) -> None:
    lines = wrap(text, width, first="- ", rest="  ")
    assert "".join(line[2:] for line in lines).replace(" ", "") == text.replace(" ", "")
    assert all(cell_width(line) <= width for line in lines)
