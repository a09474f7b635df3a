"""A runner that also writes down what it saw: for a bug report, a demo or a test.

What is written is masked first (:mod:`slurmtop.parse.mask`) and readable by its owner alone.
"""

import asyncio
import hashlib
import queue
import threading
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from slurmtop.collect.log_content import A_SCRIPT, NO_TEXT, PACKED, Content, content_of
from slurmtop.collect.private_files import PrivateFolder, UnsafeFolder
from slurmtop.collect.record_form import (
    COMMANDS,
    FILES,
    NOT_KEPT,
    SCHEMA,
    SESSION,
    Key,
    bytes_form,
    command_key,
    failure_form,
    json_line,
    kept_argv,
    mask_block,
    mask_output,
    mask_text,
)
from slurmtop.collect.streams import closing
from slurmtop.collect.told_paths import ToldPaths
from slurmtop.collect.who import Who
from slurmtop.model.ports import (
    Clock,
    Command,
    Completed,
    FileStat,
    FileTimeout,
    NodeUnreachable,
    Runner,
    RunnerError,
)

#: Read beside every block of a file, so that a secret on its edge is still seen whole: the longest
#: that the mask knows are private keys, of 20,000 bytes at the most.
_CONTEXT_BYTES = 24 * 1024
#: A recording that somebody forgot must not fill a home folder that jobs write to.
_MOST_BYTES = 1024 * 1024 * 1024
_MOST_WAITING = 256
_STREAM_KEPT_BYTES = 4 * 1024 * 1024
_CLOSE_S = 2.0
_PATIENT_CLOSE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _CommandSeen:
    command: Command
    stream: bool
    started_at: datetime
    done: Completed | None = None
    error: RunnerError | None = None
    left_after_s: float | None = None
    """It was not waited for any longer: whoever asked ran out of time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileSeen:
    at: datetime
    op: str
    path: str
    host: str | None
    offset: int = 0
    length: int = 0
    around: tuple[bytes, int] = (b"", 0)
    """The block with its surroundings, and where in it the block starts."""
    stat: FileStat | None = None
    names: tuple[str, ...] = ()
    error: OSError | RunnerError | None = None
    left: bool = False
    """As ``left_after_s`` of a command."""


class RecordingExists(Exception):
    """There is a recording in that folder; ``str()`` is a sentence."""


class RecordingRunner:
    """Any runner, written down into ``folder``, which must not hold a recording yet.

    Masking and writing happen on a thread of their own: neither a large answer nor a slow disk
    costs the screen a moment. ``trouble`` says why writing stopped (a full disk, the size
    limit of ``most_bytes``); ``lost`` counts what came faster than it could be written. With
    ``patient`` nothing is lost: an answer is held back until there is room for it. With
    ``only_logs`` nobody reads a script or a program's source for what stands in it, so that is not
    kept. Close it, or the last lines may be missing.
    """

    def __init__(
        self,
        inner: Runner,
        folder: PrivateFolder,
        *,
        clock: Clock,
        mark: bytes,
        who: Who | None = None,
        patient: bool = False,
        only_logs: bool = False,
        most_bytes: int = _MOST_BYTES,
    ) -> None:
        if folder.read(SESSION) is not None:
            raise RecordingExists(f"{folder.path} holds a recording already: name a new folder.")
        if folder.names():
            # A home or a project is no place for it: it is read, copied and deleted whole.
            raise RecordingExists(f"{folder.path} holds other files already: name a new folder.")
        session: dict[str, Any] = {
            "schema": SCHEMA,
            "started_at": clock.now().isoformat(),
            "mark": mark.decode("ascii"),
        }
        if who is not None:
            session |= {"uid": who.uid, "user": who.name}
        folder.write(SESSION, json_line(session))
        self.mark = mark
        self.lost = 0
        self._inner = inner
        self._clock = clock
        self._patient = patient
        self._writer = _Writer(folder, most_bytes, only_logs=only_logs)

    @property
    def trouble(self) -> str | None:
        return self._writer.trouble

    @property
    def not_kept(self) -> Mapping[str, Content]:
        """Files whose bytes were not kept, because what stands in them cannot be masked."""
        return dict(self._writer.not_kept)

    def told(self, path: str) -> str:
        """The path as the recording tells it."""
        return self._writer.told(path)

    async def aclose(self) -> None:
        """Write what is waiting; gives up after two seconds on a disk that does not answer (half
        a minute where it is patient)."""
        limit_s = _PATIENT_CLOSE_S if self._patient else _CLOSE_S
        await asyncio.to_thread(self._writer.close, limit_s)

    async def run(self, command: Command) -> Completed:
        started_at, started = self._clock.now(), self._clock.monotonic()
        seen = _CommandSeen(command=command, stream=False, started_at=started_at)
        try:
            done = await self._inner.run(command)
        except RunnerError as error:
            await self._kept(replace(seen, error=error))
            raise
        except asyncio.CancelledError:
            self._keep(replace(seen, left_after_s=self._clock.monotonic() - started))
            raise
        await self._kept(replace(seen, done=done))
        return done

    async def stream(self, command: Command) -> AsyncIterator[bytes]:
        started_at = self._clock.now()
        started = self._clock.monotonic()
        kept = bytearray()
        total = 0
        error: RunnerError | None = None
        try:
            async with closing(self._inner.stream(command)) as inner:
                async for chunk in inner:
                    kept += chunk[: _STREAM_KEPT_BYTES - len(kept)]
                    total += len(chunk)
                    yield chunk
        except RunnerError as caught:
            error = caught
            raise
        finally:
            done = Completed(
                rc=0,
                stdout=bytes(kept),
                stderr=b"",
                started_at=started_at,
                took_s=self._clock.monotonic() - started,
                truncated=total > len(kept),
            )
            self._keep(
                _CommandSeen(
                    command=command,
                    stream=True,
                    started_at=started_at,
                    done=done if error is None else None,
                    error=error,
                )
            )

    async def read(self, path: str, offset: int, length: int, host: str | None = None) -> bytes:
        begin = max(0, offset - _CONTEXT_BYTES)
        front = offset - begin
        seen = _FileSeen(
            at=self._clock.now(), op="read", path=path, host=host, offset=offset, length=length
        )
        try:
            around = await self._inner.read(path, begin, front + length + _CONTEXT_BYTES, host)
        except (OSError, RunnerError) as error:
            await self._kept(replace(seen, error=error))
            raise
        except asyncio.CancelledError:
            self._keep(replace(seen, left=True))
            raise
        await self._kept(replace(seen, around=(around, front)))
        return around[front : front + length]

    async def stat(self, path: str, host: str | None = None) -> FileStat:
        seen = _FileSeen(at=self._clock.now(), op="stat", path=path, host=host)
        try:
            stat = await self._inner.stat(path, host)
        except (OSError, RunnerError) as error:
            await self._kept(replace(seen, error=error))
            raise
        except asyncio.CancelledError:
            self._keep(replace(seen, left=True))
            raise
        await self._kept(replace(seen, stat=stat))
        return stat

    async def list(self, path: str, host: str | None = None) -> tuple[str, ...]:
        seen = _FileSeen(at=self._clock.now(), op="list", path=path, host=host)
        try:
            names = await self._inner.list(path, host)
        except (OSError, RunnerError) as error:
            await self._kept(replace(seen, error=error))
            raise
        except asyncio.CancelledError:
            self._keep(replace(seen, left=True))
            raise
        await self._kept(replace(seen, names=names))
        return names

    async def _kept(self, seen: "_CommandSeen | _FileSeen") -> None:
        if self._writer.put(seen):
            return
        if not (self._patient and await asyncio.to_thread(self._writer.put_in_time, seen)):
            self.lost += 1

    def _keep(self, seen: "_CommandSeen | _FileSeen") -> None:
        if not self._writer.put(seen):
            self.lost += 1


class _Writer:
    """The thread that masks and appends. It is a daemon: a stuck disk never holds up leaving."""

    def __init__(self, folder: PrivateFolder, most_bytes: int, *, only_logs: bool) -> None:
        self.trouble: str | None = None
        self._folder = folder
        self._most = most_bytes
        self._left = most_bytes
        self._last: dict[Key, bytes] = {}
        self.not_kept: dict[str, Content] = {}
        self._stand_ins = {Content.BINARY: NO_TEXT}
        if only_logs:
            self._stand_ins[Content.CODE] = A_SCRIPT
        self._starts: dict[str, Content] = {}
        self.told = ToldPaths()
        self._waiting: queue.Queue[_CommandSeen | _FileSeen | None] = queue.Queue(_MOST_WAITING)
        self._thread = threading.Thread(target=self._work, name="recording", daemon=True)
        self._thread.start()

    def put(self, seen: "_CommandSeen | _FileSeen") -> bool:
        try:
            self._waiting.put_nowait(seen)
        except queue.Full:
            return False
        return True

    def put_in_time(self, seen: "_CommandSeen | _FileSeen") -> bool:
        """As :meth:`put`, but waits for room. Not for the event loop."""
        try:
            self._waiting.put(seen, timeout=_PATIENT_CLOSE_S)
        except queue.Full:
            return False
        return True

    def close(self, within_s: float) -> None:
        try:
            self._waiting.put(None, timeout=within_s)
        except queue.Full:
            return
        self._thread.join(within_s)

    def _work(self) -> None:
        while (seen := self._waiting.get()) is not None:
            if self.trouble is not None:
                continue
            try:
                self._write(seen)
            except (OSError, UnsafeFolder) as error:
                self.trouble = f"The recording stopped: {error}"

    def _write(self, seen: "_CommandSeen | _FileSeen") -> None:
        if isinstance(seen, _CommandSeen):
            name, line = COMMANDS, json_line(self._command_entry(seen))
        else:
            name, line = FILES, json_line(_file_entry(self._without_unmaskable(seen), self.told))
        if len(line) > self._left:
            self.trouble = f"The recording stopped at its size limit of {self._most >> 20} MiB."
            return
        self._left -= len(line)
        self._folder.append(name, line)

    def _without_unmaskable(self, seen: _FileSeen) -> _FileSeen:
        """What is packed or no text is masked by no rule; of what it was the replay is told."""
        if seen.op != "read" or seen.error is not None or seen.left:
            return seen
        around, front = seen.around
        block = around[front : front + seen.length]
        if seen.offset == 0:
            content = content_of(block)
            self._starts[seen.path] = content
        else:
            # Letters of two bytes and holes in a log have zeros, and nothing says so here.
            content = self._starts.get(seen.path) or content_of(block.translate(None, b"\0"))
        if content in PACKED or content in self._stand_ins:
            self.not_kept.setdefault(seen.path, content)
        if seen.path not in self.not_kept:
            return seen
        stand_in = self._stand_ins.get(self.not_kept[seen.path])
        if stand_in is not None and seen.offset == 0:
            return replace(seen, around=(stand_in, 0))
        return replace(seen, around=(b"", 0), error=RunnerError(NOT_KEPT))

    def _command_entry(self, seen: _CommandSeen) -> dict[str, Any]:
        command = seen.command
        entry: dict[str, Any] = {
            "t": seen.started_at.isoformat(),
            "argv": kept_argv(command),
            "host": command.host,
            "stdin": bytes_form(mask_output(command.stdin)),
        }
        if seen.stream:
            entry["stream"] = True
        if seen.error is not None:
            entry["error"] = mask_text(str(seen.error))
            entry["missing"] = isinstance(seen.error.__cause__, FileNotFoundError)
            if isinstance(seen.error, NodeUnreachable):
                entry["unreachable"] = failure_form(seen.error.failure)
        if seen.left_after_s is not None:
            entry["left_after_s"] = seen.left_after_s
        if seen.done is not None:
            done = seen.done
            entry |= {"t": done.started_at.isoformat(), "rc": done.rc, "took_s": done.took_s}
            key = command_key(command, stream=seen.stream)
            digest = hashlib.sha256(done.stdout).digest()
            if self._last.get(key) == digest:
                entry["same"] = True
            else:
                entry["stdout"] = bytes_form(mask_output(done.stdout))
                self._last[key] = digest
            entry["stderr"] = bytes_form(mask_output(done.stderr))
            entry["truncated"] = done.truncated
        return entry


def _file_entry(seen: _FileSeen, told: ToldPaths) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "t": seen.at.isoformat(),
        "op": seen.op,
        "path": told(seen.path),
        "host": seen.host,
    }
    if seen.op == "read":
        entry |= {"offset": seen.offset, "length": seen.length}
    if seen.left:
        entry["left"] = True
    elif seen.error is not None:
        entry["error"] = _error_form(seen.error)
    elif seen.stat is not None:
        stat = seen.stat
        entry["stat"] = {
            "size": stat.size,
            "mtime": stat.mtime.isoformat(),
            "device": stat.device,
            "inode": stat.inode,
            "is_dir": stat.is_dir,
            "is_regular": stat.is_regular,
        }
    elif seen.op == "list":
        entry["names"] = [told.name(seen.path, name) for name in seen.names]
    else:
        around, front = seen.around
        entry["data"] = bytes_form(mask_block(around, front, seen.length))
    return entry


def _error_form(error: OSError | RunnerError) -> dict[str, Any]:
    if isinstance(error, RunnerError):
        kind = "timeout" if isinstance(error, FileTimeout) else "runner"
        return {"kind": kind, "text": mask_text(str(error))}
    return {"kind": "os", "errno": error.errno or 0, "text": error.strerror or str(error)}
