"""Files as a process that parses logs reads them, without being stopped by a mount that hangs.

A ``read`` on a dead file server never returns. So a thread does it, and when that does not answer
in time it is left where it is and another one takes its place. The process itself is killed when
slurmtop has what it wants, and not waited for where the kernel holds such a thread.
"""

import os
import queue
import threading
from typing import NamedTuple

from slurmtop.collect.file_child import read_block

TIMEOUT_S = 5.0
#: Threads that are stuck; more help nobody.
MOST_ABANDONED = 4


class Hangs(Exception):
    """A file system does not answer; ``str()`` says so for people."""


class _Request(NamedTuple):
    path: bytes
    offset: int
    length: int


class _Reader:
    """One thread that reads, one request after the other."""

    def __init__(self) -> None:
        self._requests: queue.SimpleQueue[_Request] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[bytes | Exception] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="file reads", daemon=True).start()

    def _work(self) -> None:
        while True:
            request = self._requests.get()
            try:
                self._answers.put(read_block(*request))
            except (OSError, ValueError, OverflowError) as error:
                self._answers.put(error)

    def read(self, request: _Request, timeout_s: float) -> bytes:
        """Raises what the read raised, and :class:`queue.Empty` where it does not end in time."""
        self._requests.put(request)
        answer = self._answers.get(timeout=timeout_s)
        if isinstance(answer, Exception):
            raise answer
        return answer


class LogDoor:
    """``read`` within ``timeout_s``. What hung is left alone: its folder, and in the end all."""

    def __init__(self, timeout_s: float = TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._reader: _Reader | None = None
        self._abandoned = 0
        self._hung: set[bytes] = set()

    def read(self, path: bytes, offset: int, count: int) -> bytes:
        """At most ``count`` bytes of a regular file. Raises OSError, and :class:`Hangs`."""
        folder = os.path.dirname(path)  # noqa: PTH120 - the text only; the file is not touched
        if folder in self._hung:
            raise Hangs(f"{os.fsdecode(path)}: not read, because its folder did not answer before.")
        if self._abandoned >= MOST_ABANDONED:
            raise Hangs(
                f"{os.fsdecode(path)}: not read, because {self._abandoned} earlier reads still hang"
                " in file systems that do not answer."
            )
        if self._reader is None:
            self._reader = _Reader()
        try:
            return self._reader.read(_Request(path, offset, count), self._timeout_s)
        except queue.Empty:
            self._reader = None
            self._abandoned += 1
            self._hung.add(folder)
            raise Hangs(
                f"{os.fsdecode(path)}: the file system did not answer within {self._timeout_s:g} s."
            ) from None
