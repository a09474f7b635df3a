"""The terminal as something to write to that never holds a thread for good."""

import os
import select
import time
from collections.abc import Callable
from typing import TextIO

#: How long a terminal that takes nothing is waited for once the screen is to end.
_LAST_WRITE_S = 1.0
_AGAIN_S = 0.2


class PaintedOn:
    """Stands in for ``file`` under Textual's writer thread, which may neither die nor block: the
    screen waits for it. ``gone`` is called, in that thread, where the terminal is no longer there.
    """

    def __init__(self, file: TextIO, gone: Callable[[], None]) -> None:
        self._file = file
        self._tell_gone = gone
        self._own = _opened_again(file.fileno())
        self._until: float | None = None
        self._dropping = False

    def hurry(self) -> None:
        """What is not written within a moment is dropped."""
        if self._until is None:
            self._until = time.monotonic() + _LAST_WRITE_S

    def drop(self) -> None:
        """Nobody sees it any more: write nothing."""
        self._dropping = True

    def write(self, text: str) -> int:
        """Write all of ``text``, or drop what nobody takes."""
        try:
            if not self._dropping:
                self._write(text)
        except (OSError, ValueError):
            self.drop()
            self._tell_gone()
        return len(text)

    def flush(self) -> None:
        """Nothing is kept back."""

    def fileno(self) -> int:
        return self._file.fileno()

    def _write(self, text: str) -> None:
        if self._own is None:
            self._file.write(text)
            self._file.flush()
            return
        data = memoryview(text.encode(self._file.encoding, self._file.errors or "replace"))
        while data and not self._dropping:
            try:
                data = data[os.write(self._own, data) :]
            except BlockingIOError:
                select.select((), (self._own,), (), _AGAIN_S)
                if self._until is not None and time.monotonic() > self._until:
                    self.drop()


def _opened_again(number: int) -> int | None:
    """The same terminal, for writes that do not block; the shell's own stays as it is.

    None where it is no terminal, or one of somebody else (after su): it is written to as it is.
    """
    if not os.isatty(number):
        return None
    try:
        return os.open(f"/proc/self/fd/{number}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return None
