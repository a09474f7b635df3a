"""Words of the Jobs screen: health, header, notices, columns and cells. No app needed."""

from datetime import timedelta, timezone
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.job import ExitCode, ExitMeaning, Job, LimitKind, TimeLimit, Tres
from slurmtop.model.snapshot import Failure, SourceHealth, Trouble
from slurmtop.model.text import cell_width
from slurmtop.store.jobs import Gone, JobBook
from slurmtop.store.rows import Count, Row
from slurmtop.store.view import JobView
from slurmtop.ui.present import header
from slurmtop.ui.present import jobs as present
from slurmtop.ui.present.health import Condition, HealthWords, describe_health
from slurmtop.ui.present.spans import line_width, plain
from tests.build import make_job, make_state
from tests.fakes import START


def ago(seconds: float) -> Any:
    return START - timedelta(seconds=seconds)


def health(**fields: Any) -> SourceHealth:
    return SourceHealth("queue", interval_s=20.0, **fields)


DOWN = Failure(Trouble.DOWN, "The controller does not answer.")


@pytest.mark.parametrize(
    ("given_health", "condition", "sentence"),
    [
        (health(), Condition.LOADING, "loading: asking Slurm for the queue"),
        (
            health(asking_since=ago(23)),
            Condition.LOADING,
            "loading: asking Slurm for the queue, no answer for 23 s",
        ),
        (health(good_at=ago(12), took_s=0.3), Condition.FRESH, "answered 12 s ago"),
        (
            health(good_at=ago(12), took_s=0.3, bad_records=3),
            Condition.FRESH,
            "answered 12 s ago; 3 records unreadable",
        ),
        (
            health(good_at=ago(30), took_s=0.3, asking_since=ago(4)),
            Condition.FRESH,
            "answered 30 s ago",
        ),
        (
            health(good_at=ago(30), took_s=0.3, asking_since=ago(9)),
            Condition.SLOW,
            "slow: no answer for 9 s, it took 0.3 s before",
        ),
        (
            health(good_at=ago(40), took_s=8.0, asking_since=ago(20)),
            Condition.FRESH,
            "answered 40 s ago",
        ),
        (health(good_at=ago(51), took_s=0.3), Condition.STALE, "stale: last answer 51 s ago"),
        (
            health(good_at=ago(70), took_s=0.3, asking_since=ago(45)),
            Condition.STALE,
            "stale: last answer 70 s ago; no answer for 45 s",
        ),
        (
            health(
                good_at=ago(41), failure=DOWN, failing_since=ago(21), next_at=ago(-40), failures=1
            ),
            Condition.STALE,
            "stale: last answer 41 s ago; The controller does not answer since 11:59; "
            "next try in 40 s",
        ),
        (
            health(good_at=ago(41), failure=DOWN, failing_since=ago(21), asking_since=ago(3)),
            Condition.STALE,
            "stale: last answer 41 s ago; The controller does not answer since 11:59; "
            "asking again, 3 s so far",
        ),
        (
            health(failure=DOWN, failing_since=ago(200_000), next_at=ago(10)),
            Condition.SILENT,
            "no answer yet: The controller does not answer since 3 May 04:26; next try in 0 s",
        ),
        (
            health(failure=Failure(Trouble.NO_SLURM, "There is no Slurm here.", "", float("inf"))),
            Condition.REFUSED,
            "refused: There is no Slurm here; not asked again in this session",
        ),
    ],
)
def test_health_in_words(given_health: SourceHealth, condition: Condition, sentence: str) -> None:
    words = describe_health(given_health, START)
    assert (words.condition, words.sentence) == (condition, sentence)


def test_health_speaks_in_the_viewers_zone() -> None:
    failing = health(good_at=ago(9), failure=DOWN, failing_since=START)
    for zone in (ZoneInfo("Pacific/Chatham"), timezone(timedelta(hours=12, minutes=45))):
        assert "since 00:45" in describe_health(failing, START, zone).sentence


def test_hostile_words_of_a_failure_are_made_visible() -> None:
    failing = health(failure=Failure(Trouble.OTHER, "\x1b[2J\nboom"))
    assert "\x1b" not in describe_health(failing, START).sentence
    assert "\n" not in describe_health(failing, START).sentence


def test_only_stale_rows_look_old() -> None:
    for condition in Condition:
        words = HealthWords(condition, "x: y", "")
        assert words.old_rows is (condition is Condition.STALE)


@pytest.mark.parametrize("failure", [None, DOWN])
def test_an_answer_from_the_future_is_never_young(failure: Failure | None) -> None:
    ahead = describe_health(health(good_at=ago(-600), took_s=0.3, failure=failure), START)
    assert ahead.condition is Condition.STALE
    assert "the clock of this machine stepped back" in ahead.sentence
    near = describe_health(health(good_at=ago(-3), took_s=0.3), START)
    assert near.condition is Condition.FRESH


# Cells


def cells(job: Job, *, gone: Gone | None = None, after_s: float = 0) -> dict[str, str]:
    row = Row(job.key, job, gone)
    at = present.Now(START + timedelta(seconds=after_s), "anna")
    return {column.name: column.cell(row, at)[0] for column in present.COLUMNS}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0:00"),
        (0, "0:00"),
        (59.9, "0:59"),
        (725, "12:05"),
        (3_599, "59:59"),
        (3_600, "1h00m"),
        (86_399, "23h59m"),
        (86_400, "1d00h"),
        (99 * 86_400 + 23 * 3_600, "99d23h"),
        (123 * 86_400, "123d"),
    ],
)
def test_durations_take_six_cells(seconds: float, text: str) -> None:
    assert present.short_duration(seconds) == text
    assert len(text) <= 6


def test_a_running_job_ticks() -> None:
    job = make_job(ran_s=65, limit_s=600, gpus=8)
    assert cells(job)["time"] == "1:05"
    assert cells(job, after_s=2)["time"] == "1:07"
    assert cells(job, after_s=2)["left"] == "8:53"
    assert cells(job, after_s=700)["left"] == "over"


def test_a_pending_job_waits_and_never_runs_less_than_nothing() -> None:
    job = make_job(state="PENDING", ran_s=-600, waits_s=7_260)
    assert cells(job)["time"] == "2h01m"
    assert cells(job)["left"] == "–"
    assert cells(make_job(ran_s=-600))["time"] == "0:00"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (LimitKind.UNLIMITED, "none"),
        (LimitKind.OVER_A_YEAR, ">365d"),
        (LimitKind.UNKNOWN, "–"),
        (LimitKind.PARTITION_DEFAULT, "–"),
    ],
)
def test_limits_that_are_no_number(kind: LimitKind, text: str) -> None:
    assert cells(make_job(limit=TimeLimit(kind)))["left"] == text


def test_what_is_not_known_is_a_dash_and_never_zero() -> None:
    unknown = cells(make_job(tres=Tres(), node_count=None, priority=None, start=None, name=""))
    assert [unknown[name] for name in ("gpus", "nodes", "priority", "time", "name")] == ["–"] * 5
    assert cells(make_job(gpus=0))["gpus"] == "0"


@pytest.mark.parametrize(
    "word", ["COMPLETING", "SUSPENDED", "STOPPED", "REVOKED", "NEWSTATE", "TIMEOUT"]
)
def test_no_time_where_slurms_record_does_not_say(word: str) -> None:
    assert cells(make_job(state=word))["time"] == "–"


def test_completing_is_neither_success_nor_failure() -> None:
    row = Row(make_job().key, make_job(state="COMPLETING"))
    column = next(column for column in present.COLUMNS if column.name == "state")
    assert column.cell(row, present.Now(START)) == ("ending", "busy")


def test_the_state_is_always_a_word() -> None:
    for word in ("RUNNING", "PENDING", "OUT_OF_MEMORY", "NODE_FAIL", "REVOKED", "NEWSTATE", "?"):
        text = cells(make_job(state=word))["state"]
        assert 0 < len(text) <= 9


def test_why_of_a_pending_job_is_in_plain_words() -> None:
    assert cells(make_job(state="PENDING", reason="JobHeldUser"))["why"].startswith("Held by")
    parent = make_job(state="PENDING", reason="Dependency", dependency="afterok:4700")
    assert "afterok:4700" in cells(parent)["why"]
    for nothing in (None, "None"):
        assert "not looked at" in cells(make_job(state="PENDING", reason=nothing))["why"]
    rest = make_job("70_[0-99%4]", "PENDING")
    assert cells(rest)["why"].startswith("100 waiting, 4 at once: ")
    assert cells(rest)["id"] == "70_[…]"


def test_why_of_others() -> None:
    assert cells(make_job(nodes="gpu[01-02]"))["why"] == "gpu[01-02]"
    assert cells(make_job(restarts=2))["why"] == "gpu01, attempt 3"
    assert "time limit" in cells(make_job(state="TIMEOUT"))["why"]
    assert "another cluster" in cells(make_job(state="REVOKED"))["why"]
    assert "does not know" in cells(make_job(state="NEWSTATE"))["why"]


@pytest.mark.parametrize(
    ("job", "why", "role"),
    [
        (make_job(state="FAILED", exit_code=ExitCode(3, 0)), "exit 3", "bad"),
        (make_job(state="FAILED", exit_code=ExitCode(0, 11)), "killed by SIGSEGV", "bad"),
        (make_job(state="FAILED"), "exit code not known", "bad"),
        (make_job(state="OUT_OF_MEMORY", exit_code=ExitCode(0, 125)), "out of memory", "bad"),
        (
            make_job(state="TIMEOUT", limit_s=3_600),
            "time limit 1:00:00 reached",
            "bad",
        ),
        (make_job(state="COMPLETED", exit_code=ExitCode(0, 0)), "exit 0", ""),
        (
            make_job(state="COMPLETED", exit_code=ExitCode(0, 0), derived_exit_code=ExitCode(1, 0)),
            "a step: exit 1",
            "warn",
        ),
    ],
)
def test_why_of_the_ended_starts_with_the_essential(job: Job, why: str, role: str) -> None:
    assert cells(job)["why"] == why
    assert cell_width(why) <= 28
    layout = tuple((column, 28) for column in present.COLUMNS if column.name == "why")
    line = present.row_line(
        Row(job.key, job), layout, present.Now(START), cursor=False, marked=False
    )
    assert line[-1] == (why.ljust(28), role)


def test_what_accounting_told_of_a_job_that_left_is_shown() -> None:
    told = ExitMeaning(False, "Failed with exit code 9.", "self", short="exit 9 or 137")
    known = Gone(make_job(state="FAILED"), START, make_state("FAILED"), told)
    assert cells(known.job, gone=known)["why"] == "exit 9 or 137"


def test_a_vanished_job_waits_for_its_result_and_then_stops_waiting() -> None:
    gone = Gone(make_job(ran_s=60), START)
    early, late = cells(gone.job, gone=gone, after_s=30), cells(gone.job, gone=gone, after_s=301)
    assert early["state"] == "gone"
    assert early["why"] == "ended, result not known yet"
    assert late["why"] == "ended, result unknown: slurmtop why 4711"
    assert early["time"] == late["time"] == "1:00"
    known = Gone(make_job(state="COMPLETED"), START, make_state("COMPLETED"))
    assert cells(known.job, gone=known)["state"] == "done"


def test_who_needs_somebody() -> None:
    yes = [
        make_job(state="FAILED"),
        make_job(state="NODE_FAIL"),
        make_job(state="PENDING", reason="JobHeldUser"),
        make_job(state="PENDING", reason="DependencyNeverSatisfied"),
    ]
    no = [
        make_job(),
        make_job(state="COMPLETED"),
        make_job(state="COMPLETING"),
        make_job(state="PENDING", reason="Priority"),
        make_job(state="PENDING", reason="JobArrayTaskLimit"),
        make_job(state="PENDING", reason=None),
    ]
    assert [present.needs_somebody(job) for job in yes] == [True] * len(yes)
    assert [present.needs_somebody(job) for job in no] == [False] * len(no)


def test_the_tick_changes_with_what_is_read_and_only_then() -> None:
    def tick(job: Job, after_s: float) -> str:
        return present.tick_of(Row(job.key, job), present.Now(START + timedelta(seconds=after_s)))

    seconds, minutes = make_job(ran_s=65, limit_s=600), make_job(ran_s=7_200, limit_s=86_400)
    assert tick(seconds, 0) != tick(seconds, 1)
    assert tick(minutes, 1) == tick(minutes, 59)
    assert tick(minutes, 59) != tick(minutes, 60)
    ended = make_job(state="COMPLETED")
    assert tick(ended, 0) == tick(ended, 1_000)


# Columns


@pytest.mark.parametrize("with_user", [False, True])
@pytest.mark.parametrize("with_use", [False, True])
def test_columns_never_exceed_the_screen(with_user: bool, with_use: bool) -> None:
    job = make_job("57829110_9999", name="训练" * 20, nodes="gpu[01-99]")
    row = Row(job.key, job)
    for width in range(3, 301):
        layout = present.lay_out(width, with_user=with_user, id_cells=13, with_use=with_use)
        line = present.row_line(row, layout, present.Now(START), cursor=True, marked=False)
        head = present.header_line(layout, "natural", False)
        used = line_width(line)
        assert used <= max(width, present.GUTTER + 1)
        assert used == line_width(head)
        if width >= 60:
            names = [column.name for column, _ in layout]
            assert names[0] == "id"
            assert {"id", "state", "time", "name"} <= set(names)
        if width >= 80:
            assert used == width


def test_the_least_needed_column_goes_first() -> None:
    shown = [
        {column.name for column, _ in present.lay_out(width, with_user=False, with_use=True)}
        for width in range(200, 70, -1)
    ]
    assert shown[0] == {column.name for column in present.COLUMNS} - {"user"}
    for wide, narrow in pairwise(shown):
        assert narrow <= wide
    order = [gone for wide, narrow in pairwise(shown) for gone in wide - narrow]
    assert order == ["priority", "partition", "use", "nodes", "left", "gpus"]
    everybody = {column.name for column, _ in present.lay_out(80, with_user=True)}
    assert "user" in everybody


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_name_keeps_the_columns_in_line(name: str, nodes: str) -> None:
    job = make_job(name=name, nodes=nodes, user=name)
    layout = present.lay_out(120, with_user=True)
    line = present.row_line(
        Row(job.key, job), layout, present.Now(START), cursor=False, marked=True
    )
    assert line_width(line) == 120
    text = plain(line)
    assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 for char in text)
    assert cell_width(text) == 120


def test_a_group_line() -> None:
    book, view = JobBook(), JobView()
    tasks = [make_job(f"70_{n}") for n in range(12)]
    book.apply([*tasks, make_job("70_[12-992]", "PENDING")], START)
    view.update(book, START)
    layout = present.lay_out(100, with_user=False)
    line = present.row_line(view.rows[0], layout, present.Now(START), cursor=True, marked=True)
    text = plain(line)
    assert text.startswith(">*▸70 ")
    assert "12 R  981 waiting" in text


# Header and notices


def head(**fields: Any) -> header.QueueHead:
    given_fields: dict[str, Any] = {
        "cluster": "hpc1",
        "user": "anna",
        "all_users": False,
        "counts": (Count("R", 12), Count("PD", 19, exact=False)),
        "health": HealthWords(Condition.FRESH, "answered 3 s ago", "dim"),
        "calls": 6,
    }
    return header.QueueHead(**{**given_fields, **fields})


def test_the_header_counts_by_phase() -> None:
    first, second = header.header_lines(head(), 80)
    assert plain(first).startswith("hpc1 · jobs of anna · 12 running · 19+ pending")
    assert plain(second).startswith("answered 3 s ago")
    assert plain(second).endswith("6 calls/min")
    narrow = plain(header.header_lines(head(demo="hang"), 60)[0])
    assert narrow.startswith("hpc1 · jobs of anna · 12 R 19+ PD ")
    assert narrow.endswith("DEMO hang, simulated")


def test_no_answer_has_no_counts() -> None:
    assert "no count yet" in plain(header.header_lines(head(counts=None), 80)[0])
    assert "no jobs" in plain(header.header_lines(head(counts=()), 80)[0])


def test_a_long_trouble_gets_more_lines_and_loses_no_word() -> None:
    sentence = "stale: " + " ".join(f"word{n}" for n in range(30))
    lines = header.header_lines(head(health=HealthWords(Condition.STALE, sentence, "bad")), 80)
    text = " ".join(plain(line).strip() for line in lines[1:])
    assert text.startswith(sentence)
    assert text.endswith("6 calls/min")


def test_modes_are_in_words() -> None:
    lines = header.header_lines(
        head(
            sort="gpus",
            reverse=True,
            marked=3,
            problems_only=True,
            read_only=True,
            demo="hang",
            idle=True,
            private_data=True,
        ),
        200,
    )
    text = " ".join(plain(line) for line in lines)
    for words in (
        "by gpus, reversed",
        "3 marked",
        "only problems",
        "read-only",
        "DEMO hang, simulated",
        "idle, asking less often",
        "some jobs may be hidden",
    ):
        assert words in text


@given(st.integers(1, 300), st.text(max_size=80))
def test_no_header_line_is_wider_than_the_screen(width: int, user: str) -> None:
    words = HealthWords(Condition.STALE, "stale: last answer 41 s ago; something long", "bad")
    for line in header.header_lines(head(user=user, health=words, marked=2), width):
        assert line_width(line) <= max(width, 8)


def test_the_footer_drops_what_does_not_fit_and_keeps_help_and_quit() -> None:
    entries = [(str(n), f"action {n}", n != 3, False) for n in range(8)]
    entries += [("q", "quit", True, True), ("?", "help", True, True)]
    wide, narrow = header.footer_line(entries, 200), header.footer_line(entries, 40)
    assert "(3 action 3)" in plain(wide)
    assert line_width(narrow) <= 40
    assert "q quit" in plain(narrow)
    assert "? help" in plain(narrow)
    assert "action 7" not in plain(narrow)
