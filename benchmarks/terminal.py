"""A program in a pseudo-terminal: keys go in, timed bytes come out.

Nothing is interpreted while the program runs, so that reading does not slow what is measured.
Afterwards :func:`replay` plays the bytes through a terminal emulator and tells at which moment
a condition on the screen became true.
"""

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyte

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Terminal:
    """Starts ``argv`` at once; ``started`` is the monotonic time of the fork."""

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], columns: int = 140, rows: int = 40
    ) -> None:
        self.columns, self.rows = columns, rows
        self.chunks: list[tuple[float, bytes]] = []
        self.started = time.monotonic()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.clear()
            os.environ.update(env)
            os.execvp(argv[0], list(argv))
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)

    def pump(self, seconds: float) -> None:
        """Collect output for so long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            ready, _, _ = select.select([self.fd], [], [], left)
            if not ready:
                return
            try:
                data = os.read(self.fd, 65_536)
            except OSError:
                return
            self.chunks.append((time.monotonic(), data))
            self._answer(data)

    def _answer(self, data: bytes) -> None:
        """Programs ask the terminal who it is and wait for the answer."""
        if b"\x1b[6n" in data:
            os.write(self.fd, b"\x1b[1;1R")
        if b"\x1b[c" in data or b"\x1b[0c" in data:
            os.write(self.fd, b"\x1b[?62;22c")

    def key(self, data: bytes) -> float:
        """Send a key; returns the monotonic time of the write."""
        sent = time.monotonic()
        os.write(self.fd, data)
        return sent

    def close(self) -> None:
        for sign in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.kill(self.pid, sign)
            except ProcessLookupError:
                break
            end = time.monotonic() + 3
            while time.monotonic() < end:
                done, _ = os.waitpid(self.pid, os.WNOHANG)
                if done:
                    os.close(self.fd)
                    return
                self.pump(0.05)
        os.close(self.fd)

    def cpu_s(self) -> tuple[float, float]:
        """CPU seconds of the program itself, and of its children that have ended."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        own = (int(fields[11]) + int(fields[12])) / TICKS_PER_S
        children = (int(fields[13]) + int(fields[14])) / TICKS_PER_S
        return own, children

    def rss_mib(self) -> float:
        """Resident memory of the program and its living children."""
        return sum(_rss_mib(pid) for pid in [self.pid, *_children(self.pid)])


def _rss_mib(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    for line in text.splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += [int(child), *_children(int(child))]
    return found


class Screen:
    """What the emulator shows."""

    def __init__(self, columns: int, rows: int) -> None:
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)

    def lines(self) -> list[str]:
        return list(self.screen.display)

    def cursor_row(self, first: int, last: int) -> int | None:
        """The row between ``first`` and ``last`` that looks unlike the others."""
        looks: dict[tuple[str, str, bool], list[int]] = {}
        for y in range(first, last + 1):
            cell = self.screen.buffer[y][3]
            looks.setdefault((cell.bg, "", cell.reverse), []).append(y)
        alone = [rows[0] for rows in looks.values() if len(rows) == 1]
        return alone[0] if len(alone) == 1 else None


def replay(
    terminal: Terminal, conditions: Sequence[tuple[float, Callable[[Screen], bool]]]
) -> list[float | None]:
    """For each (not before this time, condition): when it first held, in order."""
    screen = Screen(terminal.columns, terminal.rows)
    found: list[float | None] = []
    waiting = list(conditions)
    for when, data in terminal.chunks:
        screen.stream.feed(data)
        while waiting and when >= waiting[0][0] and waiting[0][1](screen):
            found.append(when)
            waiting.pop(0)
    found += [None] * len(waiting)
    return found
