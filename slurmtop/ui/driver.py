"""Textual's driver of the terminal: a stop that was not asked for (SIGSTOP) is survived, the loss
of the terminal is not."""

import os
import select
import signal
import termios
from threading import Thread
from typing import Any, cast

from textual.drivers.linux_driver import LinuxDriver

from slurmtop.ui.painted import PaintedOn

#: How long the thread that reads the keys may take to notice that the screen is left.
_LAST_KEY_S = 1.0


class SteadyDriver(LinuxDriver):
    """After SIGSTOP and SIGCONT the screen was never left: it is only put right again.

    Textual would start it a second time, with a second thread that reads the keys. Two of them
    take each other's keys away, and one blocks in its read for ever.

    A terminal that is gone ends the process by SIGHUP, which a parent like make keeps to itself:
    Textual would spin in its reads, or wait for ever for a writer that has died.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._running = False
        self._raw: list[Any] | None = None
        self._gone = False
        # Where standard error was closed, it is only a number (see cli/terminal.py).
        file = self._file or os.fdopen(2, "w", closefd=False)
        self._painted = PaintedOn(file, self._terminal_gone)
        self._file = cast(Any, self._painted)
        self._watch: Thread | None = None

    def hurry(self) -> None:
        """The screen is to end: a terminal that takes nothing is waited for no longer."""
        self._painted.hurry()

    def start_application_mode(self) -> None:
        """Enter the screen, or put it right where it was never left."""
        if self._running:
            self._put_right()
            return
        super().start_application_mode()  # type: ignore[no-untyped-call]
        if self._key_thread is None or not self._key_thread.is_alive():
            # In the background: Textual stops again, and comes back here.
            return
        if self._watch is None:
            self._watch = Thread(target=self._await_hangup, name="terminal-watch", daemon=True)
            self._watch.start()
        self._running = True
        try:
            self._raw = termios.tcgetattr(self.fileno)
        except termios.error:
            self._raw = None

    def stop_application_mode(self) -> None:
        """Leave the screen."""
        self._running = False
        super().stop_application_mode()

    def disable_input(self) -> None:
        """End the thread that reads the keys; one that is stuck in a read is left behind."""
        thread = self._key_thread
        if thread is not None and not self.exit_event.is_set():
            self.exit_event.set()
            thread.join(_LAST_KEY_S)
            if thread.is_alive():
                self._key_thread = None
            self.exit_event.clear()
        super().disable_input()

    def run_input_thread(self) -> None:
        """Textual's, with a read that fails told from a bug of ours."""
        try:
            super().run_input_thread()
        except OSError:
            self._terminal_gone()

    def _await_hangup(self) -> None:
        """Until the terminal is gone: no read tells it while nothing is asked to be read."""
        hangup = select.poll()
        hangup.register(self.fileno, 0)
        try:
            hangup.poll()
        except OSError:
            return
        self._terminal_gone()

    def _terminal_gone(self) -> None:
        """In any thread: what a shell would have said."""
        self._painted.drop()
        self.exit_event.set()
        if not self._gone:
            self._gone = True
            os.kill(os.getpid(), signal.SIGHUP)

    def _put_right(self) -> None:
        """The shell had the terminal meanwhile: its modes, its text, perhaps its size."""
        if self._raw is not None:
            try:
                termios.tcsetattr(self.fileno, termios.TCSANOW, self._raw)
            except termios.error:
                return
        self.write("\x1b[?1049h\x1b[?25l\x1b[?1004h")
        self._enable_mouse_support()
        self._enable_bracketed_paste()
        self._disable_line_wrap()
        self.flush()
        signal.raise_signal(signal.SIGWINCH)
        self._app.call_later(self._app.refresh, repaint=True, layout=True)


def is_reading(thread: Thread) -> bool:
    """Is it a thread of Textual that would keep the process from ending?"""
    return thread.name == "textual-input" and thread.is_alive()
