"""What became of a job, from queue and accounting: cases 033, 036, 064."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slurmtop.collect.sacct import Accounting
from slurmtop.model.facts import JobFacts
from slurmtop.model.job import AccountingRecord
from slurmtop.model.verdict import State
from slurmtop.parse.slurm.hostlist import expand_hosts
from slurmtop.parse.slurm.sacct import newest_run
from slurmtop.parse.slurm.states import parse_state
from slurmtop.store.jobs import JobAppeared, JobBook, JobEnded, JobRequeued, JobVanished
from slurmtop.store.view import JobView
from slurmtop.triage.why import explain_job
from slurmtop.triage.words import first_line
from slurmtop.ui.present.jobs import needs_somebody
from tests.build import make_job
from tests.cases.product import cells, hosts, sacct
from tests.cases.support import Case, found, load, product, prose, sentence, values
from tests.fakes import START, FakeRunner


@values("033", "036", "064")
def test_values(path: str, wanted: Any) -> None:
    assert found(path) == wanted


# 033: an id used again


@product("033")
def answer_033(case: Case) -> Any:
    (record,) = newest_run(sacct(case[1]).rows)
    return {"job": {"id": record.id.base, "user": record.user, "state": record.state.word}}


@sentence(
    "033",
    "bound by submit time; two different jobs, not two attempts (other user, years apart)",
)
async def test_case_033_must_bind_a_job_by_its_submit_time() -> None:
    case = load("033")
    assert newest_run(sacct(case[1]).rows) == newest_run(sacct(case[2]).rows)
    assert newest_run(sacct(case[1]).rows[::-1]) == newest_run(sacct(case[2]).rows)
    runner = FakeRunner()
    runner.on("sacct *", b"")
    submit = datetime(2031, 5, 5, 10, tzinfo=UTC)
    await Accounting(runner).history("7801", since=submit)
    argv = runner.calls[0].argv
    since = datetime.fromisoformat(argv[argv.index("-S") + 1]).replace(tzinfo=UTC)
    assert submit - timedelta(hours=1) < since <= submit
    book = JobBook()
    old = make_job("7801", user="dora", submit=datetime(2027, 6, 1, tzinfo=UTC))
    book.apply([old], START)
    events = book.apply([replace(old, user="anna", submit=submit)], START + timedelta(seconds=20))
    assert [type(event) for event in events] == [JobVanished, JobAppeared]
    assert not any(isinstance(event, JobRequeued) for event in events)
    assert book.attempt(old.key) == 1


# 036: accounting lags behind


class _Lag:
    """The queue a minute before, at t = 0 and at t = 90 s, with what accounting says then."""

    def __init__(self) -> None:
        self.book = JobBook()
        running = [make_job("8001"), make_job("8002")]
        self.book.apply(running, START - timedelta(seconds=60))
        self.first = self.book.apply(running[1:], START)
        self.at_t0 = self._settle(2, START)
        self.t0 = self._seen(START)
        self.t0_cells = self.cells("8001", START)
        later = START + timedelta(seconds=90)
        self.book.apply(running[1:], later)
        self.at_t90 = self._settle(3, later)
        self.t90 = self._seen(later)

    def _settle(self, n: int, at: datetime) -> list[Any]:
        events: list[Any] = []
        keys = {key.id: key for key in self.book.gone}
        for record in sacct(load("036")[n]).rows:
            if record.id.text in keys:
                events += self.book.settle(keys[record.id.text], record.state, at)
        return events

    def cells(self, job: str, now: datetime) -> dict[str, Any]:
        view = JobView()
        view.update(self.book, now)
        row = next(row for row in view.rows if row.key.id == job)
        return cells(row.job, now, row=row)

    def _seen(self, now: datetime) -> dict[str, str]:
        gone = {key.id: entry for key, entry in self.book.gone.items()}
        seen = {job.key.id: job.state.word for job in self.book.jobs}
        for name, entry in gone.items():
            why = self.cells(name, now)["why"][0]
            seen[name] = why if entry.result is None else entry.result.word
        return seen


@product("036")
def answer_036(case: Case) -> Any:
    lag = _Lag()
    return {"at_t0": lag.t0, "at_t90": lag.t90}


@prose("036/at_t0/8001")
def test_case_036_the_result_is_not_known_yet() -> None:
    assert _Lag().t0["8001"] == "ended, result not known yet"
    (record,) = sacct(load("036")[2]).rows
    facts = JobFacts(
        asked="8001", cluster="", now=START, history=(record,), accounting_answered=True
    )
    assert first_line(explain_job(facts)).startswith("ended, result not known yet")


@sentence("036", 'no "failed" or "lost" alert at t0')
def test_case_036_must_not_alert_at_t0() -> None:
    lag = _Lag()
    assert [type(event) for event in lag.first] == [JobVanished]
    assert lag.at_t0 == []
    told = " ".join(text for text, _ in lag.t0_cells.values()).lower()
    assert "fail" not in told
    assert "lost" not in told
    assert all(role != "bad" for _, role in lag.t0_cells.values())
    assert not any(needs_somebody(entry.job) for entry in lag.book.gone.values())


@sentence("036", "no flip back of 8001 to RUNNING")
def test_case_036_must_not_flip_back_to_running() -> None:
    lag = _Lag()
    assert lag.t0_cells["state"][0] == "gone"
    assert lag.t90["8001"] == "COMPLETED"
    assert [type(event) for event in lag.at_t90] == [JobEnded]
    (key,) = lag.book.gone
    assert lag.book.settle(key, parse_state("RUNNING"), START + timedelta(seconds=120)) == ()
    assert lag.book.gone[key].result == parse_state("COMPLETED")


@sentence("036", "give up on waiting only after minutes and then say unknown")
def test_case_036_must_wait_for_minutes_then_say_unknown() -> None:
    book = JobBook()
    book.apply([make_job("8001")], START - timedelta(seconds=20))
    book.apply([], START)
    view = JobView()
    view.update(book, START)
    (row,) = view.rows

    def why(seconds: float) -> str:
        return cells(row.job, START + timedelta(seconds=seconds), row=row)["why"][0]

    assert {why(seconds) for seconds in (0, 60, 119)} == {"ended, result not known yet"}
    assert "result unknown" in why(600)


# 064: no start


def records_064() -> dict[str, AccountingRecord]:
    parsed = sacct(load("064")[1])
    assert parsed.bad == 0
    return {record.id.text: record for record in parsed.rows}


@product("064")
def answer_064(case: Case) -> Any:
    return {
        "rows": {
            key: {
                "id": record.id.base,
                "start": record.start,
                "end": record.end,
                "ended": record.state.ended,
                "never_started": record.never_started,
                "nodes": hosts(record.nodes),
                "elapsed_s": record.elapsed_s,
            }
            for key, record in records_064().items()
        }
    }


@sentence("064", "negative run time for 9604")
def test_case_064_must_not_tell_a_negative_run_time() -> None:
    record = records_064()["9604"]
    assert record.elapsed_s == 2_400
    facts = JobFacts(
        asked="9604", cluster="", now=START, history=(record,), accounting_answered=True
    )
    verdict = explain_job(facts)
    assert verdict.state is State.HEALTHY
    assert "40 min" in verdict.summary
    assert "-" not in verdict.summary


@sentence("064", "ask for telemetry of a host called None or assigned")
@pytest.mark.parametrize("text", ["None assigned", "None", "N/A", "(null)", "", "none", "n/a"])
def test_case_064_must_not_take_words_for_hosts(text: str) -> None:
    assert expand_hosts(text) == ()
    row = f"9601|PENDING|Unknown|Unknown|00:00:00|{text}|1\n".encode()
    (record,) = sacct(load("064")[1], stdout=row).rows
    assert record.nodes is None
