"""Summaries of pytest and unittest."""

from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.events.program import ProgramSays
from slurmtop.parse.logs.reading import SourceReader
from slurmtop.parse.logs.suites import SuiteReader


def _passed(text: str) -> int:
    reader = SourceReader("job.log", readers=[SuiteReader])
    reader.feed(text.encode())
    return len(reader.finish().of(ProgramSays))


def test_a_summary_of_pytest_without_a_failure_tells_that_all_passed() -> None:
    assert _passed("=== 12 passed, 1 skipped, 2 warnings in 63.21s (0:01:03) ===\n") == 1
    assert _passed("=== 1 failed, 12 passed in 3.21s ===\n") == 0
    assert _passed("the exam: 12 passed in 3 days\n") == 0


def test_the_ok_of_unittest_belongs_to_the_count_in_front_of_it() -> None:
    assert _passed("Ran 3 tests in 0.1s\n\nOK\n") == 1
    assert _passed("OK\n") == 0
    assert _passed("Ran 3 tests in 0.1s\n\nFAILED (errors=1)\nOK\n") == 0
    assert _passed("Ran 0 tests in 0.0s\n\nOK\n") == 0


@given(st.text(alphabet="Ran 3tespd in.OK=,\n0", max_size=300))
def test_any_text_is_read(text: str) -> None:
    _passed(text)
