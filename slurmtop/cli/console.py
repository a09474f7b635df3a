"""The person behind a command that prints and leaves: told on standard error, asked in between.

Standard output belongs to the answer: a script may read it while a person is asked.
"""

import asyncio
import contextlib
import os
import sys
import termios
from collections.abc import Iterator

#: How long a person looks at an empty line before being told why; then how often.
PATIENCE_S = 3.0
AGAIN_S = 15.0
_WIDTH = 80


class Console:
    """``can_ask`` is false where nobody can answer: a script, a cron job, a pipe."""

    def __init__(self) -> None:
        self.can_ask = _is_terminal(sys.stdin) and _is_terminal(sys.stderr)
        self._watched = _is_terminal(sys.stderr)

    @property
    def width(self) -> int:
        """Columns of the terminal; 80 where there is none, never less than 40."""
        try:
            return max(40, os.get_terminal_size(2).columns)
        except OSError:
            return _WIDTH

    def tell(self, line: str) -> None:
        """One line. A closed standard error costs the line, never the action."""
        if sys.stderr is not None:
            with contextlib.suppress(OSError, ValueError):
                print(line, file=sys.stderr, flush=True)

    async def ask(self, question: str) -> str | None:
        """The line that was typed, or None at the end of the input (ctrl-d).

        What was typed before the question stood there answers nothing: it is thrown away.
        """
        handle = sys.stdin.fileno()
        with contextlib.suppress(OSError, termios.error):
            termios.tcflush(handle, termios.TCIFLUSH)
        with contextlib.suppress(OSError, ValueError):
            print(question, end=" ", file=sys.stderr, flush=True)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[bytes] = loop.create_future()

        def readable() -> None:
            if not answer.done():
                try:
                    answer.set_result(os.read(handle, 4_096))
                except OSError:
                    answer.set_result(b"")

        # Read by the loop and not by input(): that would hold up a ctrl-c until the next key.
        loop.add_reader(handle, readable)
        try:
            data = await answer
        finally:
            loop.remove_reader(handle)
            if not answer.done() or answer.cancelled() or not answer.result().endswith(b"\n"):
                self.tell("")
        return data.decode("utf-8", "replace").strip() if data else None

    @contextlib.contextmanager
    def patience(self, text: str) -> Iterator[None]:
        """Tell a person who waits what is waited for; a script's log needs no such line."""
        loop = asyncio.get_running_loop()
        timer: asyncio.TimerHandle | None = None
        began = loop.time()

        def still() -> None:
            nonlocal timer
            self.tell(f"slurmtop: {text} ({loop.time() - began:.0f} s)")
            timer = loop.call_later(AGAIN_S, still)

        if self._watched:
            timer = loop.call_later(PATIENCE_S, still)
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()


def _is_terminal(stream: object) -> bool:
    try:
        return stream is not None and bool(stream.isatty())  # type: ignore[attr-defined]
    except ValueError:
        return False
