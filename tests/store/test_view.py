"""Filter, order, folds, cursor and marks; and how little is done for an unchanged queue."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from slurmtop.model.ids import JobId, JobKey, TaskSet
from slurmtop.model.job import Job
from slurmtop.store.jobs import JobBook
from slurmtop.store.query import parse_query
from slurmtop.store.rows import SORTS, Count
from slurmtop.store.view import JobView
from tests.build import make_job, move_to_key
from tests.fakes import START


def view_of(jobs: Sequence[Job], **options: object) -> tuple[JobBook, JobView]:
    book = JobBook()
    view = JobView(**options)  # type: ignore[arg-type]
    book.apply(tuple(jobs), START)
    view.update(book, START)
    return book, view


def ids(view: JobView) -> list[str]:
    return [row.key.id for row in view.rows]


def again(book: JobBook, view: JobView, jobs: Sequence[Job], seconds: float = 20) -> bool:
    now = (book.sampled_at or START) + timedelta(seconds=seconds)
    book.apply(tuple(jobs), now)
    return view.update(book, now)


def test_running_first_then_pending_by_priority_then_what_is_over() -> None:
    _, view = view_of(
        [
            make_job("1", "COMPLETED"),
            make_job("2", "PENDING", priority=10),
            make_job("3", "PENDING", priority=99),
            make_job("4", ran_s=50),
            make_job("5", ran_s=500),
        ]
    )
    assert ids(view) == ["5", "4", "3", "2", "1"]


def test_every_order_holds_every_job_and_is_stable() -> None:
    jobs = [make_job(str(n), priority=None if n % 3 else n, gpus=n % 2) for n in range(1, 30)]
    _, view = view_of(jobs)
    for sort in SORTS:
        for reverse in (False, True):
            view.set_sort(sort, reverse=reverse)
            assert sorted(ids(view), key=int) == [job.key.id for job in jobs]
    view.set_sort("name")
    assert ids(view) == [job.key.id for job in jobs]
    view.set_sort("name", reverse=True)
    assert ids(view) == [job.key.id for job in jobs], "equal names keep their order"


def test_unknown_values_come_last_both_ways() -> None:
    _, view = view_of([make_job("1", priority=None), make_job("2", priority=5)])
    view.set_sort("priority")
    assert ids(view) == ["2", "1"]
    view.set_sort("priority", reverse=True)
    assert ids(view) == ["2", "1"]


def test_ids_sort_as_numbers() -> None:
    _, view = view_of([make_job("100"), make_job("20"), make_job("3")])
    view.set_sort("id")
    assert ids(view) == ["3", "20", "100"]


def test_an_unknown_order_is_refused() -> None:
    _, view = view_of([])
    with pytest.raises(ValueError, match="no sort order"):
        view.set_sort("colour")


def test_an_array_is_one_row_with_counts() -> None:
    tasks = [make_job(f"70_{n}") for n in range(12)]
    tasks += [make_job(f"70_{n}", "PENDING") for n in range(12, 16)]
    tasks += [make_job(f"70_{n}", "FAILED") for n in range(16, 19)]
    rest = make_job("70_[19-999%20]", "PENDING")
    _, view = view_of([*tasks, rest])
    (row,) = view.rows
    assert row.group is not None
    assert row.group.kind == "array"
    assert row.group.counts == (
        Count("R", 12),
        Count("PD", 4),
        Count("F", 3),
        Count("waiting", 981),
    )
    assert view.total == 1_000


def test_a_task_list_that_slurm_cut_is_counted_as_at_least() -> None:
    tasks = TaskSet("0-1,4,9", 19, exact=False, throttle_known=False)
    rest = make_job("70_[0-1]", "PENDING")
    rest = Job(key=rest.key, id=JobId("70_[0-1,4...", "70", tasks=tasks), state=rest.state)
    _, view = view_of([make_job("70_5"), rest])
    (row,) = view.rows
    assert row.group is not None
    assert row.group.counts[-1] == Count("waiting", 19, exact=False)


def test_a_waiting_array_of_10_000_tasks_is_one_record() -> None:
    _, view = view_of([make_job("70_[0-9999%50]", "PENDING")])
    (row,) = view.rows
    assert row.group is None
    assert view.total == 10_000


def test_a_het_job_is_one_row_of_parts() -> None:
    _, view = view_of([make_job("93+0"), make_job("93+1"), make_job("95")])
    row = view.rows[0]
    assert row.group is not None
    assert row.group.kind == "het"
    assert [job.key.id for job in row.jobs] == ["93+0", "93+1"]
    assert len(view.rows) == 2


def test_two_clusters_with_one_id_are_two_groups() -> None:
    jobs = [make_job(f"70_{n}", cluster=name) for name in ("a", "b") for n in range(2)]
    _, view = view_of(jobs)
    assert [str(row.key) for row in view.rows] == ["70@a", "70@b"]


def test_open_and_close_a_group() -> None:
    _, view = view_of([make_job("1"), *(make_job(f"70_{n}") for n in range(3))])
    move_to_key(view, JobKey("", "70"))
    assert view.toggle_fold()
    assert ids(view) == ["1", "70", "70_0", "70_1", "70_2"]
    assert [row.depth for row in view.rows] == [0, 0, 1, 1, 1]
    view.move_to(view.cursor_index + 2)
    assert view.toggle_fold(), "also from a member"
    assert ids(view) == ["1", "70"]
    assert view.cursor_row is not None
    assert view.cursor_row.key.id == "70"
    view.move_to(0)
    assert not view.toggle_fold()


def test_the_cursor_follows_its_job() -> None:
    jobs = [make_job(str(n), ran_s=1_000 - n) for n in range(1, 10)]
    book, view = view_of(jobs)
    view.move_to(4)
    assert ids(view)[4] == "5"
    again(book, view, [make_job("99", ran_s=9_999), *jobs])
    assert view.cursor_row is not None
    assert view.cursor_row.key.id == "5"
    view.set_sort("id", reverse=True)
    assert view.cursor_row.key.id == "5"


def test_the_cursor_stays_at_its_place_when_its_job_leaves_the_view() -> None:
    jobs = [make_job(str(n), name="a" if n == 5 else "b", ran_s=1_000 - n) for n in range(1, 10)]
    _, view = view_of(jobs)
    view.move_to(4)
    view.set_query(parse_query("name:b"))
    assert view.cursor_index == 4
    assert view.cursor_row is not None
    assert view.cursor_row.key.id == "6"


def test_the_cursor_of_an_empty_view_is_none() -> None:
    book, view = view_of([])
    assert view.cursor_row is None
    view.move_to(3)
    view.toggle_mark()
    again(book, view, [make_job()])
    assert view.cursor_row is not None


def test_marks_are_kept_by_key() -> None:
    jobs = [make_job(str(n)) for n in range(1, 6)]
    book, view = view_of(jobs)
    move_to_key(view, JobKey("", "3"))
    view.toggle_mark()
    again(book, view, [make_job(str(n), ran_s=5) for n in range(1, 6)])
    assert [row.key.id for row in view.marked_rows()] == ["3"]
    view.set_query(parse_query("id:1"))
    assert [row.key.id for row in view.marked_rows()] == ["3"], "hidden, yet marked"
    view.toggle_mark()
    assert {row.key.id for row in view.marked_rows()} == {"1", "3"}


def test_a_marked_group_stays_marked_when_it_is_hidden() -> None:
    _, view = view_of([make_job("1"), make_job("70_0"), make_job("70_1")])
    move_to_key(view, JobKey("", "70"))
    view.toggle_mark()
    view.set_query(parse_query("id:1"))
    (row,) = view.marked_rows()
    assert [job.key.id for job in row.jobs] == ["70_0", "70_1"]


def test_the_mark_of_a_forgotten_job_goes() -> None:
    book, view = view_of([make_job("1"), make_job("2")])
    move_to_key(view, JobKey("", "2"))
    view.toggle_mark()
    again(book, view, [make_job("1")])
    assert view.marks, "gone from the queue, but still in sight"
    again(book, view, [make_job("1")], seconds=700)
    assert not view.marks


def test_a_job_that_left_the_queue_is_still_a_row() -> None:
    book, view = view_of([make_job("1"), make_job("2")])
    again(book, view, [make_job("1")])
    row = view.rows[1]
    assert row.key.id == "2"
    assert row.lost
    assert view.totals() == (Count("R", 1), Count("?", 1))


def test_an_unchanged_answer_rebuilds_nothing() -> None:
    jobs = [make_job(str(n)) for n in range(1, 50)]
    book, view = view_of(jobs)
    rows = view.rows
    before = view.rebuilds
    assert not again(book, view, jobs)
    assert view.rows is rows
    assert view.rebuilds == before


def test_rows_of_unchanged_jobs_are_the_same_objects() -> None:
    jobs = [make_job(str(n)) for n in range(1, 50)]
    jobs += [make_job(f"70_{n}") for n in range(3)]
    book, view = view_of(jobs)
    before = {row.key: row for row in view.rows}
    jobs[10] = make_job("11", "PENDING")
    again(book, view, jobs)
    changed = [row.key.id for row in view.rows if before[row.key] is not row]
    assert changed == ["11"]


def test_only_problems() -> None:
    _, view = view_of(
        [make_job("1"), make_job("2", "FAILED")], problem=lambda job: job.state.word == "FAILED"
    )
    view.set_problems_only(True)
    assert ids(view) == ["2"]
    view.set_problems_only(False)
    assert len(view.rows) == 2


def test_a_filter_on_time_is_looked_at_again_as_time_passes() -> None:
    jobs = [make_job("1", ran_s=3_590)]
    book, view = view_of(jobs)
    view.set_query(parse_query("time:>1h"))
    assert not view.rows
    assert again(book, view, jobs)
    assert ids(view) == ["1"]


def test_counts_do_not_depend_on_the_filter() -> None:
    _, view = view_of([make_job("1"), make_job("2", "PENDING"), make_job("3_[0-7]", "PENDING")])
    view.set_query(parse_query("id:1"))
    assert view.totals() == (Count("R", 1), Count("PD", 9))
    assert (view.shown, view.total) == (1, 10)


def test_every_job_is_in_exactly_one_bucket() -> None:
    words = [
        "RUNNING",
        "PENDING",
        "SUSPENDED",
        "COMPLETING",
        "RESIZING",
        "SIGNALING",
        "REQUEUED",
        "STAGE_OUT",
    ]
    words += [
        "COMPLETED",
        "FAILED",
        "CANCELLED",
        "TIMEOUT",
        "REVOKED",
        "NEWSTATE",
        "CONFIGURING",
        "STOPPED",
    ]
    jobs = [make_job(str(n), word) for n, word in enumerate(words, 1)]
    _, view = view_of(jobs)
    assert view.total == len(words)


def marked(view: JobView) -> set[str]:
    return {job.key.id for row in view.marked_rows() for job in row.jobs}


def test_a_range_of_marks_goes_from_the_last_mark_to_the_cursor_both_ways() -> None:
    _, view = view_of([make_job(str(n), ran_s=1_000 - n) for n in range(1, 10)])
    move_to_key(view, JobKey("", "6"))
    view.toggle_mark()
    move_to_key(view, JobKey("", "4"))
    view.mark_range()
    assert marked(view) == {"4", "5", "6"}
    move_to_key(view, JobKey("", "7"))
    view.mark_range()
    assert marked(view) == {"4", "5", "6", "7"}, "from where the last range ended"


def test_a_range_without_a_mark_before_marks_the_row_under_the_cursor() -> None:
    _, view = view_of([make_job("1"), make_job("2")])
    move_to_key(view, JobKey("", "2"))
    view.mark_range()
    assert marked(view) == {"2"}


def test_a_range_follows_its_first_row_when_the_order_changes() -> None:
    jobs = [make_job(str(n), name="abc"[n - 1], ran_s=1_000 - n) for n in range(1, 4)]
    _, view = view_of(jobs)
    move_to_key(view, JobKey("", "1"))
    view.toggle_mark()
    view.set_sort("name", reverse=True)
    assert ids(view) == ["3", "2", "1"]
    move_to_key(view, JobKey("", "2"))
    view.mark_range()
    assert marked(view) == {"1", "2"}


def test_a_range_into_an_open_array_marks_the_tasks_in_it_and_no_others() -> None:
    tasks = [make_job(f"70_{n}", ran_s=500 - n) for n in range(3)]
    _, view = view_of([make_job("1", ran_s=900), *tasks])
    move_to_key(view, JobKey("", "70"))
    view.toggle_fold()
    move_to_key(view, JobKey("", "1"))
    view.toggle_mark()
    move_to_key(view, JobKey("", "70_1"))
    view.mark_range()
    assert marked(view) == {"1", "70_0", "70_1"}


def test_all_that_match_are_marked_and_the_second_time_none_of_them() -> None:
    jobs = [make_job(str(n), name="a" if n % 2 else "b") for n in range(1, 7)]
    _, view = view_of(jobs)
    move_to_key(view, JobKey("", "2"))
    view.toggle_mark()
    view.set_query(parse_query("name:a"))
    view.mark_all()
    assert marked(view) == {"1", "2", "3", "5"}
    view.mark_all()
    assert marked(view) == {"2"}, "what the filter hides is left alone"


def test_all_that_match_of_an_array_do_not_grow_when_the_filter_goes() -> None:
    tasks = [make_job(f"70_{n}", "FAILED" if n < 2 else "RUNNING") for n in range(5)]
    _, view = view_of(tasks)
    for mark in (view.mark_all, view.toggle_mark):
        view.marks.clear()
        view.set_query(parse_query("state:failed"))
        mark()
        assert all(view.is_marked(row) for row in view.rows)
        view.set_query(parse_query(""))
        assert marked(view) == {"70_0", "70_1"}
        assert not view.is_marked(view.rows[0])


def test_one_task_leaves_the_marks_of_its_array_to_the_others() -> None:
    _, view = view_of([make_job(f"70_{n}", ran_s=500 - n) for n in range(3)])
    view.toggle_mark()
    view.toggle_fold()
    assert all(view.is_marked(row) for row in view.rows)
    move_to_key(view, JobKey("", "70_1"))
    view.toggle_mark()
    assert marked(view) == {"70_0", "70_2"}
    move_to_key(view, JobKey("", "70"))
    assert not view.is_marked(view.rows[0])
    view.mark_all()
    assert view.is_marked(view.rows[0])
    view.toggle_mark()
    assert marked(view) == set()


def test_what_left_the_queue_is_not_among_all() -> None:
    book, view = view_of([make_job("1"), make_job("2"), make_job("70_0"), make_job("70_1")])
    again(book, view, [make_job("1"), make_job("70_0")])
    view.mark_all()
    assert marked(view) == {"1", "70_0"}
    view.mark_all()
    assert marked(view) == set()


def test_a_task_that_starts_out_of_a_marked_rest_is_marked_with_it() -> None:
    plain, running, rest = make_job("1"), make_job("70_0"), make_job("70_[1-9]", "PENDING")
    book, view = view_of([plain, running, rest])
    view.toggle_fold()
    move_to_key(view, JobKey("", "70"))
    view.toggle_fold()
    move_to_key(view, JobKey("", "70_[*]"))
    view.toggle_mark()
    assert marked(view) == {"70_[*]"}
    started = make_job("70_1", ran_s=3)
    less = make_job("70_[2-9]", "PENDING")
    again(book, view, [plain, running, started, less])
    assert marked(view) == {"70_[*]", "70_1"}
    move_to_key(view, JobKey("", "70_1"))
    view.toggle_mark()
    again(book, view, [plain, running, started, make_job("2"), less])
    assert marked(view) == {"70_[*]"}, "what was taken back stays so"
    others = [make_job(f"70_{n}", ran_s=1) for n in range(2, 10)]
    again(book, view, [plain, running, started, make_job("2"), *others])
    ids_now = marked(view) - {"70_[*]"}
    assert ids_now == {f"70_{n}" for n in range(2, 10)}, "also when none waits any more"


def test_a_task_that_was_not_in_a_marked_rest_gets_no_mark() -> None:
    book, view = view_of([make_job("70_[1-9]", "PENDING"), make_job("80_[1-9]", "PENDING")])
    move_to_key(view, JobKey("", "80_[*]"))
    view.toggle_mark()
    left = [make_job("70_1"), make_job("70_[2-9]", "PENDING"), make_job("80_[1-9]", "PENDING")]
    again(book, view, [*left, make_job("81")])
    assert marked(view) == {"80_[*]"}


def test_marks_that_the_filter_hides_are_counted_and_a_closed_group_hides_none() -> None:
    _, view = view_of([make_job("1"), make_job("2"), make_job("70_0"), make_job("70_1", "FAILED")])
    view.mark_all()
    assert (len(view.marks), view.hidden_marks()) == (4, 0)
    view.set_query(parse_query("id:2"))
    assert view.hidden_marks() == 3
    assert {key.id for key in view.hidden_jobs()} == {"1", "70_0", "70_1"}
    view.set_query(parse_query(""))
    view.marks.clear()
    move_to_key(view, JobKey("", "70"))
    view.toggle_mark()
    assert view.hidden_marks() == 0
    view.set_query(parse_query("state:failed"))
    assert marked(view) == {"70_0", "70_1"}, "a marked group is meant whole"
    assert view.hidden_marks() == 1
    assert {key.id for key in view.hidden_jobs()} == {"70_0"}
