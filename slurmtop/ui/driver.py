"""Textual's driver of the terminal, with a stop that was not asked for (SIGSTOP) survived."""

import signal
import termios
from threading import Thread
from typing import Any

from textual.drivers.linux_driver import LinuxDriver

#: How long the thread that reads the keys may take to notice that the screen is left.
_LAST_KEY_S = 1.0


class SteadyDriver(LinuxDriver):
    """After SIGSTOP and SIGCONT the screen was never left: it is only put right again.

    Textual would start it a second time, with a second thread that reads the keys. Two of them
    take each other's keys away, and one blocks in its read for ever.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._running = False
        self._raw: list[Any] | None = None

    def start_application_mode(self) -> None:
        """Enter the screen, or put it right where it was never left."""
        if self._running:
            self._put_right()
            return
        super().start_application_mode()  # type: ignore[no-untyped-call]
        if self._key_thread is None or not self._key_thread.is_alive():
            # In the background: Textual stops again, and comes back here.
            return
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
