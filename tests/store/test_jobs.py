"""What changes between two answers of the queue."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from slurmtop.model.ids import JobKey
from slurmtop.model.job import ExitMeaning, Job, Phase
from slurmtop.store.jobs import (
    JobAppeared,
    JobBook,
    JobEnded,
    JobEvent,
    JobRequeued,
    JobStarted,
    JobVanished,
)
from tests.build import make_job, make_state
from tests.fakes import START

CASES = Path(__file__).resolve().parents[1] / "cases" / "slurm"
KEY = JobKey("", "4711")


def at(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def kinds(events: tuple[JobEvent, ...]) -> list[str]:
    return [type(event).__name__ for event in events]


def case_jobs(case: str, n: int) -> list[Job]:
    """``id|short|STATE|reason|nodes|start`` of the requeue case."""
    jobs = []
    for line in (CASES / case / f"{n}.stdout").read_text().splitlines():
        number, _, state, reason, nodes, start = line.split("|")
        when = START.fromisoformat(start + "+00:00")
        jobs.append(make_job(number, state, reason=reason, nodes=nodes, start=when, restarts=None))
    return jobs


def test_the_first_answer_is_no_news() -> None:
    book = JobBook()
    assert book.apply([make_job()], START) == ()
    assert [job.key for job in book.jobs] == [KEY]


def test_a_job_appears_starts_and_ends() -> None:
    book = JobBook()
    book.apply([], START)
    waiting = make_job(state="PENDING")
    assert kinds(book.apply([waiting], START + at(20))) == ["JobAppeared"]
    assert kinds(book.apply([make_job()], START + at(40))) == ["JobStarted"]
    (event,) = book.apply([make_job(state="TIMEOUT")], START + at(60))
    assert isinstance(event, JobEnded)
    assert event.job.state.phase is Phase.FAILED


def test_case_004_completing_then_pending_is_one_requeue() -> None:
    case = "004-completing-then-pending-again"
    book = JobBook()
    told: list[JobEvent] = []
    for n in (1, 2, 3):
        told += book.apply(case_jobs(case, n), START + at(20 * n))
    assert kinds(tuple(told)) == ["JobRequeued"]
    assert isinstance(told[0], JobRequeued)
    assert told[0].attempt == 2
    assert book.attempt(JobKey("", "5521")) == 2


def test_a_requeue_that_slurm_counts_early_is_told_once() -> None:
    book = JobBook()
    told: list[JobEvent] = []
    for n, (state, restarts) in enumerate(
        [("RUNNING", 0), ("COMPLETING", 1), ("PENDING", 1), ("RUNNING", 1)]
    ):
        job = make_job(state=state, restarts=restarts)
        told += book.apply([job], START + at(20 * n))
    assert kinds(tuple(told)) == ["JobRequeued", "JobStarted"]
    assert book.attempt(KEY) == 2


def test_a_job_first_seen_while_it_completes_keeps_its_number() -> None:
    book = JobBook()
    book.apply([make_job(state="COMPLETING", restarts=1)], START)
    (event,) = book.apply([make_job(state="PENDING", restarts=1)], START + at(20))
    assert isinstance(event, JobRequeued)
    assert event.attempt == 2


def test_a_requeue_between_two_answers_shows_by_its_count() -> None:
    book = JobBook()
    book.apply([make_job(restarts=0)], START)
    told = book.apply([make_job(restarts=1, ran_s=5)], START + at(20))
    assert kinds(told) == ["JobRequeued", "JobStarted"]


def test_completing_alone_is_no_end() -> None:
    book = JobBook()
    book.apply([make_job()], START)
    assert book.apply([make_job(state="COMPLETING")], START + at(20)) == ()
    assert kinds(book.apply([], START + at(40))) == ["JobVanished"]


def test_case_036_a_vanished_job_is_not_flipped_back() -> None:
    book = JobBook()
    running = make_job("8001")
    book.apply([running, make_job("8002")], START)
    told = book.apply([make_job("8002")], START + at(20))
    assert kinds(told) == ["JobVanished"]
    key = running.key
    assert book.gone[key].result is None
    assert book.settle(key, make_state("RUNNING"), START + at(25)) == ()
    assert book.apply([running, make_job("8002")], START + at(10)) == ()
    assert key in book.gone
    done = ExitMeaning(True, "Completed.", "self", short="exit 0")
    (event,) = book.settle(key, make_state("COMPLETED"), START + at(90), exit=done)
    assert isinstance(event, JobEnded)
    assert book.gone[key].exit is done
    assert book.get(key) == replace(running, state=make_state("COMPLETED"))
    assert book.settle(key, make_state("FAILED"), START + at(95)) == ()


def test_a_vanished_job_leaves_after_ten_minutes() -> None:
    book = JobBook()
    book.apply([make_job()], START)
    book.apply([], START + at(20))
    book.apply([], START + at(610))
    assert KEY in book.gone
    before = book.version
    book.apply([], START + at(621))
    assert KEY not in book.gone
    assert book.version != before


def test_an_unchanged_answer_changes_nothing() -> None:
    book = JobBook()
    jobs = [make_job(str(number)) for number in range(100)]
    book.apply(jobs, START)
    before = book.version
    assert book.apply(tuple(jobs), START + at(20)) == ()
    assert book.version == before


def test_one_changed_job_costs_one_event() -> None:
    book = JobBook()
    jobs = [make_job(str(number)) for number in range(1, 101)]
    book.apply(jobs, START)
    jobs[7] = make_job("8", "FAILED")
    assert kinds(book.apply(jobs, START + at(20))) == ["JobEnded"]


def test_the_tasks_that_start_are_no_end_of_the_waiting_rest() -> None:
    book = JobBook()
    book.apply([make_job("70_[0-1]", "PENDING")], START)
    told = book.apply([make_job("70_0"), make_job("70_1")], START + at(20))
    assert kinds(told) == ["JobAppeared", "JobAppeared"]
    assert not book.gone


def test_a_cancelled_waiting_array_is_gone() -> None:
    book = JobBook()
    book.apply([make_job("70_[0-1]", "PENDING")], START)
    assert kinds(book.apply([], START + at(20))) == ["JobVanished"]


def test_the_waiting_rest_keeps_its_key_while_it_shrinks() -> None:
    book = JobBook()
    book.apply([make_job("70_[0-9]", "PENDING")], START)
    told = book.apply([make_job("70_[1-9]", "PENDING"), make_job("70_0")], START + at(20))
    assert kinds(told) == ["JobAppeared"]


def test_other_peoples_jobs_do_not_end_when_only_ones_own_are_asked_for() -> None:
    book = JobBook()
    mine, theirs = make_job("1", user="anna"), make_job("2", user="bob")
    book.apply([mine, theirs], START, user=None)
    assert book.apply([mine], START + at(20), user="anna") == ()
    assert not book.gone
    assert book.apply([mine, theirs], START + at(40), user=None) == ()
    assert kinds(book.apply([theirs], START + at(60), user=None)) == ["JobVanished"]


def test_ones_own_new_job_is_news_also_when_all_users_come_in_sight() -> None:
    book = JobBook()
    book.apply([], START, user="anna")
    told = book.apply([make_job("1"), make_job("2", user="bob")], START + at(20), user=None)
    assert [(type(event), event.job.user) for event in told] == [(JobAppeared, "anna")]


def test_an_id_used_again_by_somebody_else_is_another_job() -> None:
    book = JobBook()
    book.apply([make_job(user="dora", restarts=3)], START)
    told = book.apply([make_job(user="anna", restarts=0)], START + at(20))
    assert kinds(told) == ["JobVanished", "JobAppeared"]
    assert book.attempt(KEY) == 1


def test_a_job_in_several_partitions_is_one_job() -> None:
    book = JobBook()
    rows = [
        make_job(state="PENDING", partitions=(name,)) for name in ("gpu", "gpu-long", "preempt")
    ]
    book.apply(rows, START)
    (job,) = book.jobs
    assert job.partitions == ("gpu", "gpu-long", "preempt")
    again = [replace(row) for row in rows]
    assert book.apply(again, START + at(20)) == ()
    assert book.jobs[0] is job


def test_siblings_are_the_other_parts() -> None:
    book = JobBook()
    parts = [make_job("93+0"), make_job("93+1"), make_job("94")]
    book.apply(parts, START)
    assert book.siblings(parts[0]) == (parts[1],)
    assert book.siblings(parts[2]) == ()


def test_a_vanished_job_that_comes_back_in_a_newer_answer_is_there() -> None:
    book = JobBook()
    book.apply([make_job()], START)
    assert isinstance(book.apply([], START + at(20))[0], JobVanished)
    book.apply([make_job()], START + at(40))
    assert KEY not in book.gone
    assert len(book.jobs) == 1


def test_started_says_the_attempt() -> None:
    book = JobBook()
    book.apply([make_job(state="PENDING", restarts=2)], START)
    (event,) = book.apply([make_job(restarts=2)], START + at(20))
    assert isinstance(event, JobStarted)
    assert event.attempt == 3
