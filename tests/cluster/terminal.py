"""slurmtop as a whole program in a terminal of its own: typed at, ended, killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


class Terminal:
    """The person's side of a terminal in which one program runs."""

    def __init__(self, mine: int, child: subprocess.Popen[bytes]) -> None:
        self._mine, self.child = mine, child
        self._pieces: list[bytes] = []
        # A terminal that nobody reads would stop the program.
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while piece := os.read(self._mine, 65_536):
                self._pieces.append(piece)

    @property
    def text(self) -> str:
        """All that was ever written to it, with its escapes."""
        return b"".join(self._pieces).decode(errors="replace")

    def type(self, keys: str) -> None:
        os.write(self._mine, keys.encode())

    def send(self, number: signal.Signals) -> None:
        self.child.send_signal(number)

    def wait(self, deadline_s: float = 30) -> int:
        return self.child.wait(deadline_s)


@contextmanager
def in_terminal(
    *arguments: str,
    environ: Mapping[str, str] | None = None,
    size: tuple[int, int] = (140, 40),
) -> Iterator[Terminal]:
    """Run slurmtop in a terminal; whatever is left of it is killed afterwards."""
    mine, theirs = pty.openpty()
    width, height = size
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    child = subprocess.Popen(
        [sys.executable, "-m", "slurmtop", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm-256color", **(environ or {})},
    )
    os.close(theirs)
    terminal = Terminal(mine, child)
    try:
        yield terminal
    finally:
        if child.poll() is None:
            child.kill()
        child.wait(30)
        os.close(mine)
