"""A pseudo-terminal with slurmtop in it, read and typed into like by a person."""

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping
from types import TracebackType


class Terminal:
    """Starts ``slurmtop`` in a terminal of its own. ``text`` is all that it has printed."""

    def __init__(
        self,
        environ: Mapping[str, str],
        *arguments: str,
        columns: int = 100,
        lines: int = 30,
        stderr: int | None = None,
        term: str = "xterm-256color",
    ) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.before = termios.tcgetattr(slave)
        self._slave = slave
        self._ends = [self._master, slave]
        self.text = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "slurmtop", *arguments],
            env={**environ, "TERM": term},
            stdin=slave,
            stdout=slave,
            stderr=slave if stderr is None else stderr,
            start_new_session=True,
        )

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(10)
        self.hang_up()

    def wait_for(self, text: str, seconds: float = 30.0) -> None:
        """Until ``text`` was printed; fails with what was printed instead."""
        deadline = time.monotonic() + seconds
        while text not in self.text:
            left = deadline - time.monotonic()
            assert left > 0, f"{text!r} did not come; got {self.text[-2_000:]!r}"
            self._read(min(left, 1.0))
            if self.process.poll() is not None and text not in self.text:
                self._read(0.2)
                assert text in self.text, f"it ended before {text!r}: {self.text[-2_000:]!r}"

    def until(self, condition: Callable[[], bool], seconds: float = 30.0) -> None:
        """Read on until ``condition`` holds."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"it did not come: {self.text[-500:]!r}"
            self._read(0.1)

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def fill(self, key: str = "t", seconds: float = 30.0) -> None:
        """Type ``key``, which paints, and read nothing until no more fits: a window that is frozen,
        a link that is down."""
        deadline = time.monotonic() + seconds
        stuck, before = 0, -1
        while stuck < 10:
            assert time.monotonic() < deadline, "it still paints"
            self.type(key)
            time.sleep(0.05)
            told = fcntl.ioctl(self._master, termios.FIONREAD, struct.pack("i", 0))
            unread = struct.unpack("i", told)[0]
            stuck = stuck + 1 if unread == before else 0
            before = unread

    def leave(self, seconds: float = 15.0) -> int:
        """Read on until the process has ended; its exit status."""
        deadline = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"it did not end: {self.text[-500:]!r}"
            self._read(0.2)
        self._read(0.1)
        return self.process.wait()

    def hang_up(self) -> None:
        """The terminal is gone (a window was closed), and nobody sends SIGHUP."""
        while self._ends:
            os.close(self._ends.pop())

    @property
    def restored(self) -> bool:
        """Is the line discipline as it was (echo on, lines, signals)?"""
        return termios.tcgetattr(self._slave)[:4] == self.before[:4]

    def drain(self) -> None:
        """Read what a stopped process has printed, and forget all of it."""
        before = None
        while before != self.text:
            before = self.text
            self._read(0.05)
        self.text = ""

    def restore(self) -> None:
        """Set the line discipline as it was, as a shell does whose job is stopped."""
        termios.tcsetattr(self._slave, termios.TCSANOW, self.before)

    def _read(self, seconds: float) -> None:
        ready, _, _ = select.select([self._master], [], [], seconds)
        if ready:
            with contextlib.suppress(OSError):
                self.text += os.read(self._master, 65_536).decode("utf-8", "replace")
