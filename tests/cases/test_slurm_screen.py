"""Text of other people, and an empty queue, on the screen: cases 028, 029, 061."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from textual.pilot import Pilot

from slurmtop.collect.poller import SourceFailed
from slurmtop.collect.sacct import Accounting
from slurmtop.collect.sinfo import NodeSource
from slurmtop.collect.squeue import QueueSource
from slurmtop.model.job import AccountingRecord, Job
from slurmtop.model.snapshot import Parsed
from slurmtop.model.text import visible
from slurmtop.parse.slurm.failures import explain_failure
from slurmtop.parse.slurm.sacct import parse_sacct
from slurmtop.parse.slurm.sinfo import parse_sinfo
from slurmtop.parse.slurm.squeue_forms import parse_squeue_default
from tests.build import make_job
from tests.cases.product import CaseRunner, sacct, sacct_fields, squeue, until_done
from tests.cases.support import Case, found, load, product, prose, sentence, values
from tests.fakes import START
from tests.ui.golden import screen_text
from tests.ui.harness import Bench


@values("028", "029", "061")
def test_values(path: str, wanted: Any) -> None:
    assert found(path) == wanted


@asynccontextmanager
async def _screen(jobs: Sequence[Job]) -> AsyncIterator[tuple[Bench, Pilot[None]]]:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(160, 24)) as pilot:
        await bench.answer(pilot, jobs)
        yield bench, pilot


async def _shown(*jobs: Job) -> str:
    async with _screen(jobs) as (_, pilot):
        return screen_text(pilot.app)


# 028: pipes and newlines in names


def _records(n: int) -> Parsed[AccountingRecord]:
    return sacct(load("028")[n], separator={1: b"|", 2: b"\x1f"}[n])


@product("028")
def answer_028(case: Case) -> Any:
    return {
        "second_command": {
            "rows": {
                record.id.text: {
                    "id": record.id.base,
                    "name": record.name,
                    "state": record.state.word,
                }
                for record in _records(2).rows
            }
        }
    }


@sentence("028", "all three ids and states are still found; names may be marked unsure")
def test_case_028_must_find_ids_and_states_in_the_ambiguous_form() -> None:
    parsed = _records(1)
    assert [(record.id.text, record.state.word) for record in parsed.rows] == [
        ("7401", "RUNNING"),
        ("7402", "COMPLETED"),
        ("7403", "FAILED"),
    ]
    assert parsed.bad == 0
    # A name that may be wrong says so.
    sure = [record for record in parsed.rows if not record.name_unsure]
    assert {record.name for record in sure} <= {"crazy|name", "two\nlines", "x"}


@sentence("028", "3 jobs, never 5")
@pytest.mark.parametrize("n", [1, 2])
def test_case_028_must_count_three_jobs(n: int) -> None:
    assert len(_records(n).rows) == 3
    assert len({record.id.base for record in _records(n).rows}) == 3


@sentence("028", "show newlines in names as a visible mark")
async def test_case_028_must_show_newlines_as_a_mark() -> None:
    record = _records(2).rows[1]
    assert record.name == "two\nlines"
    text = await _shown(make_job("7402", name=record.name))
    (line,) = [line for line in text.splitlines() if "7402" in line]
    assert "two↵lines" in line


@sentence("028", "drop a job silently because of the field count")
@pytest.mark.parametrize(
    "name", ["a", "a|b", "a|b|c", "|", "||||", "x\ny", "x\n7499|RUNNING", "\n"]
)
def test_case_028_must_not_drop_a_job_silently(name: str) -> None:
    rows = [("7401", "RUNNING", name, "sbatch a.sh"), ("7402", "FAILED", "x", "sbatch b.sh")]
    data = "".join("|".join(row) + "\n" for row in rows).encode()
    step = load("028")[1]
    parsed = parse_sacct(data, fields=sacct_fields(step), separator=b"|")
    kept = [record.id.text for record in parsed.rows]
    assert parsed.bad > 0 or {"7401", "7402"} <= set(kept)


# 029: escapes in names


def _hostile() -> dict[str, Job]:
    parsed = squeue(load("029")[1], separator=b"\x1f", record_mark=b"\x1e")
    assert parsed.bad == 0
    return {job.id.text: job for job in parsed.rows}


@product("029")
def answer_029(case: Case) -> Any:
    return {
        "rows": {
            key: {"id": job.key.id, "state": job.state.word} for key, job in _hostile().items()
        }
    }


def _colours(pilot: Pilot[None], text: str) -> set[str]:
    """The colours in which ``text`` stands on the screen."""
    return {
        segment.style.color.name
        for strip in pilot.app.screen._compositor.render_strips()
        for segment in strip
        if text in segment.text and segment.style is not None and segment.style.color
    }


@prose("029/rows/7501/name_visible")
async def test_case_029_a_red_name_has_no_colour_and_clears_nothing() -> None:
    other = make_job("7500", name="before")
    job = replace(_hostile()["7501"], user="anna", start=other.start)
    async with _screen([make_job("7499"), other, job]) as (_, pilot):
        text = screen_text(pilot.app)
        assert "before" in text
        (line,) = [line for line in text.splitlines() if "7501" in line]
        assert "red" in line
        assert "␛" in line
        assert _colours(pilot, "␛[31mred") == _colours(pilot, "before")
        assert len(_colours(pilot, "before")) == 1


@prose("029/rows/7502/name_visible")
async def test_case_029_markup_is_literal() -> None:
    text = await _shown(replace(_hostile()["7502"], user="anna"))
    assert "[bold]x[/bold] [link=" in text


@sentence("029", "strip or make visible C0/C1 controls and ESC sequences, bidi overrides")
async def test_case_029_must_make_controls_visible() -> None:
    jobs = [replace(job, user="anna") for job in _hostile().values()]
    for text in (*(job.name + (job.comment or "") for job in jobs), "\x85\x9b31m\u2066\u200f"):
        safe = visible(text)
        assert not [c for c in safe if ord(c) < 32 or 0x7F <= ord(c) < 0xA0]
        assert not set(safe) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200f")
    shown = await _shown(*jobs)
    assert not [c for c in shown if (ord(c) < 32 and c != "\n") or 0x7F <= ord(c) < 0xA0]
    assert "\u202e" not in shown


@sentence("029", 'escape Textual/Rich markup: "[bold]" and "[link=…]" are shown as typed')
@pytest.mark.parametrize(
    "name", ["[bold]x[/bold]", "[link=f]y[/]", "[/red]", "[@click=app.quit]z[/]", "\\[b]"]
)
async def test_case_029_must_show_markup_as_typed(name: str) -> None:
    job = make_job("7502", name=name)
    assert name in await _shown(job)
    async with _screen([job]) as (_, pilot):
        await pilot.press("K")
        assert name in screen_text(pilot.app)


# 061: an empty queue


@product("061")
def answer_061(case: Case) -> Any:
    return {}


@prose("061/results/1")
def test_case_061_a_title_alone_is_no_job() -> None:
    parsed = parse_squeue_default(load("061")[1].stdout)
    assert (parsed.rows, parsed.bad) == ((), 0)


@prose("061/results/2")
async def test_case_061_nothing_at_all_is_no_job() -> None:
    parsed = squeue(load("061")[2])
    assert (parsed.rows, parsed.bad) == ((), 0)
    assert "No jobs of yours" in await _shown()


@prose("061/results/3")
def test_case_061_a_title_alone_is_no_record() -> None:
    step = load("061")[3]
    parsed = parse_sacct(step.stdout, fields=sacct_fields(step), separator=b"|")
    assert (parsed.rows, parsed.bad) == ((), 0)


@prose("061/results/4")
async def test_case_061_no_such_partition_is_an_empty_answer() -> None:
    parsed = parse_sinfo(load("061")[4].stdout, fields=("partition",), record_mark=b"\n")
    assert (parsed.rows, parsed.bad) == ((), 0)
    runner = CaseRunner()
    runner.says("sinfo *", load("061")[4])
    answer = await until_done(runner.clock, NodeSource(runner).fetch())
    assert answer.rows == ()
    # Partitions that are hidden from this user are asked for, so nothing is hidden by us.
    assert "-a" in runner.calls[0].argv


@prose("061/results/5")
async def test_case_061_no_such_user_is_no_empty_queue() -> None:
    step = load("061")[5]
    runner = CaseRunner()
    runner.says("squeue *", step)
    with pytest.raises(SourceFailed) as caught:
        await until_done(runner.clock, QueueSource(runner, runner.clock, user="nosuch").fetch())
    sentence_ = caught.value.failure.sentence
    assert "user" in sentence_
    assert "nosuch" in sentence_
    assert explain_failure("squeue", step.exit, step.stderr).sentence == sentence_


@sentence("061", "friendly empty view with the time of the last answer")
async def test_case_061_must_show_a_friendly_empty_view() -> None:
    async with _screen([]) as (bench, pilot):
        answered = f"{START:%H:%M:%S}"
        assert f"No jobs of yours; last answer {answered}" in screen_text(pilot.app)
        await bench.advance(pilot, 30)
        assert f"last answer {answered}" in screen_text(pilot.app)
        await bench.answer(pilot, [])
        later = START + timedelta(seconds=30)
        assert f"last answer {later:%H:%M:%S}" in screen_text(pilot.app)


@sentence("061", "sacct default window is today from 00:00")
async def test_case_061_must_never_rely_on_the_window_of_sacct() -> None:
    runner = CaseRunner()
    runner.accounting([])
    accounting = Accounting(runner)
    await until_done(runner.clock, accounting.history("7", since=START - timedelta(days=3)))
    await until_done(runner.clock, accounting.history("7"))
    bounded, named = (call.argv for call in runner.calls)
    assert bounded[bounded.index("-S") + 1].startswith("2031-05-02T")
    # Of jobs that are named, sacct looks back to the beginning.
    assert named[named.index("-j") + 1] == "7"
