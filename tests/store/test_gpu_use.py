"""GPU use of jobs: the newest word, the trend of minutes, and a bound."""

from datetime import timedelta

from slurmtop.model.ids import JobKey
from slurmtop.store.gpu_use import MOST_JOBS, TREND_POINTS, UseBook
from tests.fakes import START

KEY = JobKey("", "4711")


def note(book: UseBook, minutes: float, mean: float | None, key: JobKey = KEY) -> None:
    at = START + timedelta(minutes=minutes)
    book.note(key, at=at, mean_percent=mean, known=8, held=8)


def test_a_minute_has_one_point_and_a_gap_stays_one() -> None:
    book = UseBook()
    note(book, 0, 10.0)
    note(book, 0.5, 20.0)
    note(book, 1, 30.0)
    note(book, 4, 40.0)
    use = book.get(KEY)
    assert use is not None
    assert use.mean_percent == 40.0
    assert use.trend == (20.0, 30.0, None, None, 40.0)


def test_the_trend_has_an_end() -> None:
    book = UseBook()
    for minute in range(30):
        note(book, minute, float(minute))
    use = book.get(KEY)
    assert use is not None
    assert use.trend == tuple(float(n) for n in range(30 - TREND_POINTS, 30))


def test_an_older_word_does_not_replace_a_newer_one() -> None:
    book = UseBook()
    note(book, 5, 50.0)
    note(book, 4, 40.0)
    use = book.get(KEY)
    assert use is not None
    assert use.mean_percent == 50.0


def test_an_unknown_mean_is_no_zero() -> None:
    book = UseBook()
    note(book, 0, None)
    use = book.get(KEY)
    assert use is not None
    assert use.mean_percent is None
    assert use.trend == (None,)


def test_jobs_looked_at_longest_ago_are_forgotten() -> None:
    book = UseBook()
    for number in range(MOST_JOBS + 20):
        note(book, number / 100, 1.0, JobKey("", str(number)))
    assert len(book) == MOST_JOBS
    assert book.get(JobKey("", "0")) is None
    assert book.get(JobKey("", str(MOST_JOBS + 19))) is not None
