"""Files through a child process that may be left behind when a mount hangs.

A ``read`` on a dead NFS server never returns and cannot be interrupted. So no file is touched
in this process: one small child does it, and when that does not answer in time it is killed,
not waited for, and replaced.
"""

import asyncio
import errno
import os
import signal
import socket
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from slurmtop.collect.file_child import (
    HEAD,
    LIST,
    MOST_BYTES,
    READ,
    REQUEST,
    STAT,
    STAT_ANSWER,
)
from slurmtop.model.ports import Clock, FileStat, FileTimeout, RunnerError

#: A child that was killed and is still there is stuck in the kernel; more help nobody.
MOST_ABANDONED = 4
_HUNG_FOR_S = 60.0
_SCRIPT = Path(__file__).with_name("file_child.py")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Child:
    """One process of ``file_child.py`` and our end of the socket to it."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair()
        try:
            handle = theirs.fileno()
            self.pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-I", "-S", str(_SCRIPT)],
                dict(environ),
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, handle, 0),
                    (os.POSIX_SPAWN_DUP2, handle, 1),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                ],
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.setblocking(False)
        self._socket = ours
        self._gone = False

    async def ask(self, request: bytes) -> bytes:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self._socket, HEAD.pack(len(request)) + request)
        return await self._receive(HEAD.unpack(await self._receive(HEAD.size))[0])

    async def _receive(self, count: int) -> bytes:
        loop = asyncio.get_running_loop()
        parts = []
        while count:
            part = await loop.sock_recv(self._socket, min(count, 1024 * 1024))
            if not part:
                raise EOFError
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def kill(self) -> None:
        """End it without waiting; :meth:`gone` tells later whether it has ended."""
        self._socket.close()
        if not self.gone():
            os.kill(self.pid, signal.SIGKILL)

    def gone(self) -> bool:
        """True once the process has ended; this is also what takes it off the process table."""
        if not self._gone:
            try:
                self._gone = os.waitpid(self.pid, os.WNOHANG)[0] != 0
            except ChildProcessError:
                self._gone = True
        return self._gone


class FileDoor:
    """``read``, ``stat`` and ``list`` of this machine's files, each within ``timeout_s``.

    Raises the usual ``OSError`` kinds, and :class:`FileTimeout` where a file system does not
    answer. What hung is left alone for a minute: first its folder, and the whole mount once a
    second folder of it hangs too.
    """

    def __init__(self, clock: Clock, environ: Mapping[str, str], timeout_s: float = 5.0) -> None:
        self._clock = clock
        self._environ = environ
        self._timeout_s = timeout_s
        self._lock = asyncio.Lock()
        self._child: _Child | None = None
        self._abandoned: list[_Child] = []
        self._hung: dict[str, float] = {}

    @property
    def child_pid(self) -> int | None:
        """The process that answers at present, if one has been started."""
        return None if self._child is None else self._child.pid

    async def read(self, path: str, offset: int, length: int) -> bytes:
        parts = []
        while length > 0:
            count = min(length, MOST_BYTES)
            part = await self._ask(READ, path, offset, count)
            parts.append(part)
            if len(part) < count:
                break
            offset += count
            length -= count
        return b"".join(parts)

    async def stat(self, path: str) -> FileStat:
        size, mtime_ns, device, inode, is_dir, is_regular = STAT_ANSWER.unpack(
            await self._ask(STAT, path)
        )
        return FileStat(
            size=size,
            mtime=_time(mtime_ns),
            device=device,
            inode=inode,
            is_dir=bool(is_dir),
            is_regular=bool(is_regular),
        )

    async def list(self, path: str) -> tuple[str, ...]:
        names = (await self._ask(LIST, path)).split(b"\0")[:-1]
        return tuple(os.fsdecode(name) for name in names)

    async def aclose(self) -> None:
        """End every child; one that is stuck in the kernel is left after a second."""
        children = [*self._abandoned, *([] if self._child is None else [self._child])]
        self._child = None
        for child in children:
            child.kill()
        for _ in range(100):
            children = [child for child in children if not child.gone()]
            if not children:
                break
            await asyncio.sleep(0.01)
        self._abandoned.clear()

    async def _ask(self, op: int, path: str, offset: int = 0, count: int = 0) -> bytes:
        raw = path_bytes(path)
        request = REQUEST.pack(op, offset, count) + raw
        async with self._lock:
            self._refuse_hung(path)
            for attempt in (1, 2):
                child = await self._living_child(path)
                try:
                    async with asyncio.timeout(self._timeout_s):
                        reply = await child.ask(request)
                    break
                except TimeoutError:
                    self._abandon(child)
                    self._remember(path)
                    raise FileTimeout(
                        f"{path}: the file system did not answer within {self._timeout_s:g} s."
                    ) from None
                except (EOFError, OSError):
                    # Somebody ended the child (the OOM killer, an admin): once more, anew.
                    self._abandon(child)
                    if attempt == 2:
                        raise RunnerError(
                            f"{path}: the process that reads files ended twice; not read."
                        ) from None
                except asyncio.CancelledError:
                    # Its answer would be taken for the answer to the next request.
                    self._abandon(child)
                    raise
        if reply[0] == 0:
            return reply[1:]
        number = HEAD.unpack_from(reply, 1)[0]
        raise OSError(number, reply[1 + HEAD.size :].decode("utf-8", "replace"), path)

    async def _living_child(self, path: str) -> _Child:
        if self._child is None:
            await self._reap(within_s=0.2)
            if len(self._abandoned) >= MOST_ABANDONED:
                raise FileTimeout(
                    f"{path}: not read, because {len(self._abandoned)} earlier reads still hang "
                    "in file systems that do not answer."
                )
            try:
                self._child = _Child(self._environ)
            except OSError as error:
                raise RunnerError(
                    f"{path}: the process that reads files could not be started: {error.strerror}."
                ) from error
        return self._child

    async def _reap(self, within_s: float) -> None:
        """Forget the abandoned that have ended; wait a moment only when there are too many."""
        for _ in range(max(1, int(within_s / 0.01))):
            self._abandoned = [child for child in self._abandoned if not child.gone()]
            if len(self._abandoned) < MOST_ABANDONED:
                return
            await asyncio.sleep(0.01)

    def _abandon(self, child: _Child) -> None:
        child.kill()
        self._abandoned.append(child)
        self._child = None

    def _remember(self, path: str) -> None:
        until = self._clock.monotonic() + _HUNG_FOR_S
        folder = os.path.dirname(path)  # noqa: PTH120 - the text only; the file is not touched
        mount = mount_of(path)
        if mount != "/" and any(other != folder and _below(other, mount) for other in self._hung):
            self._hung[mount] = until
        self._hung[folder] = until

    def _refuse_hung(self, path: str) -> None:
        now = self._clock.monotonic()
        self._hung = {prefix: until for prefix, until in self._hung.items() if until > now}
        for prefix in self._hung:
            if _below(path, prefix):
                raise FileTimeout(
                    f"{path}: not read, because {prefix} did not answer in the last minute."
                )


def mount_of(path: str, table: Path = Path("/proc/self/mountinfo")) -> str:
    """The mount point that ``path`` lies under, from the kernel's table: the mount is not asked.

    Source: ``/proc/self/mountinfo``; the fifth field is the mount point, blanks as ``\\040``::

        36 25 0:32 / /shared rw,relatime - nfs4 filer:/shared rw
        41 25 0:35 / /scratch rw - lustre mds:/scratch rw
    """
    best = "/"
    try:
        rows = table.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return best
    for row in rows:
        fields = row.split(" ", 5)
        if len(fields) < 5:
            continue
        point = fields[4].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
        if len(point) > len(best) and _below(path, point):
            best = point
    return best


def _below(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(prefix.rstrip("/") + "/")


def path_bytes(path: str) -> bytes:
    """The whole path as the kernel wants it, for a child that stands elsewhere. Raises OSError."""
    try:
        raw = os.fsencode(path)
    except UnicodeEncodeError:
        raise OSError(errno.EINVAL, "Not a possible file name", path) from None
    if b"\0" in raw or not raw:
        raise OSError(errno.EINVAL, "Not a possible file name", path)
    # The child stands in "/", so a relative path is made whole here.
    return raw if raw.startswith(b"/") else os.path.join(os.getcwdb(), raw)  # noqa: PTH109, PTH118


def _time(ns: int) -> datetime:
    # File systems hold any number; datetime does not.
    try:
        return _EPOCH + timedelta(microseconds=ns // 1000)
    except OverflowError:
        return _EPOCH
