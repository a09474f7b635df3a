"""The summaries of test runs: a suite that passed threw its exceptions on purpose.

Source: pytest and unittest, for example::

    ==================== 12 passed, 1 skipped in 3.21s ====================
    Ran 30 tests in 1.204s
    OK (skipped=2)
"""

import re
from collections.abc import Iterable

from slurmtop.model.events.program import Closing, ProgramSays
from slurmtop.model.trace import Event
from slurmtop.parse.logs.line import Message

_PYTEST = re.compile(
    r"^(?:=+ )?(?P<counts>\d{1,7} [a-z]+(?:, \d{1,7} [a-z]+){0,8}) in \d[\d.]{0,12}s?"
    r"(?: \(\d[\d:, a-z]{0,40}\))?(?: =+)?\s*$"
)
_BAD = re.compile(r"\d (?:failed|errors?|xpassed)\b")
_RAN = re.compile(r"^Ran [1-9]\d{0,6} tests? in \d")
_OK = re.compile(r"^OK(?: \([\w =,]{1,120}\))?\s*$")
#: Messages in which unittest's ``OK`` follows, blank lines left away.
_REACH = 3


class SuiteReader:
    """Reads summaries; see :class:`~slurmtop.parse.logs.line.Reader`."""

    words: tuple[bytes, ...] = (b" passed", b"Ran ")

    def __init__(self) -> None:
        self._left = 0
        self._stream = ""

    @property
    def open(self) -> bool:
        return self._left > 0

    def see(self, message: Message) -> Iterable[Event]:
        """``ProgramSays`` where every test passed."""
        text = message.text
        if _RAN.match(text):
            self._left, self._stream = _REACH, message.stream
            return
        if self._left:
            self._left = 0 if text.startswith("FAILED") else self._left - 1
            if message.stream == self._stream and _OK.match(text):
                self._left = 0
                yield ProgramSays(at=message.at, closing=Closing.TESTS_PASSED)
            return
        found = _PYTEST.match(text)
        if found is not None and " passed" in found["counts"] and not _BAD.search(found["counts"]):
            yield ProgramSays(at=message.at, closing=Closing.TESTS_PASSED)

    def finish(self) -> Iterable[Event]:
        return ()
