"""A runner that answers from a recording: a bug report can be looked at anywhere."""

import io
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any

from slurmtop.collect import bounded_json
from slurmtop.collect.bounded_json import TooMuch
from slurmtop.collect.record_form import (
    COMMANDS,
    FILES,
    SCHEMA,
    SESSION,
    Key,
    bytes_of,
    command_key,
    failure_of,
    file_key,
)
from slurmtop.collect.who import Who
from slurmtop.model.ports import (
    Command,
    Completed,
    FileStat,
    FileTimeout,
    NodeUnreachable,
    ReplayMiss,
    RunnerError,
)

#: Scripts whose answers are compared with each other: by their names.
_ONCE = frozenset({"slurmtop-probe", "slurmtop-stacks"})
_MOST_SESSION_BYTES = 1024 * 1024
#: The longest answer of a node is 32 MiB; a recording may come from anybody.
_LONGEST_LINE = 64 * 1024 * 1024
#: Bytes between the texts of all lines: a look at hundreds of thousands of files has so many.
_MOST_BETWEEN = 24 * 1024 * 1024
_NO_QUEUE = (
    "This recording holds no queue: another command made it, such as"
    " `slurmtop why JOB --record DIR`; the same with --replay for --record shows it."
)
_BROKEN = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)


class ReplayRunner:
    """Answers each command and each look at a file as recorded, in order; the last one repeats.
    A look at processes does not: the same answer twice would prove that nothing moves.

    ``folder`` may be given as its files: their names and bytes. What ran out of time then raises
    ``TimeoutError``, as a time limit does. What was never recorded raises :class:`ReplayMiss`. A
    line that cannot be read is skipped and counted: ``torn`` where it is the last of its file (the
    recording was cut off), else ``bad``. ``mark`` is the record mark that the recorded queue was
    asked with, ``who`` the person that was answered (None: the recording does not say). Raises
    ValueError where ``folder`` holds no recording, or one that would fill the memory, ``OSError``
    where it cannot be read.
    """

    def __init__(self, folder: Path | str | Mapping[str, bytes]) -> None:
        self._held = folder if isinstance(folder, Mapping) else None
        self._folder = Path("bundle" if isinstance(folder, Mapping) else folder)
        self._left = _MOST_BETWEEN
        self.torn = 0
        self.bad = 0
        self.mark, self.started_at, self.who = self._session()
        self._answers: dict[Key, list[tuple[datetime | None, Any]]] = {}
        self._next: dict[Key, int] = {}
        self._stdouts: dict[Key, bytes] = {}
        self.hosts: set[str] = set()
        """The nodes of which it holds a command."""
        self.queue_answers: list[tuple[tuple[str, ...], Completed]] = []
        """Every recorded answer of the queue, not of one job: the command and how it ended."""
        self.queue_at: datetime = self.started_at
        """When the newest answer of squeue that was given out had been recorded."""
        self.answered_at: datetime = self.started_at
        """When the newest of all answers that were given out had come."""
        for entry in self._lines(COMMANDS):
            self._take(entry, self._command)
        for entry in self._lines(FILES):
            self._take(entry, self._file)

    async def run(self, command: Command) -> Completed:
        key = command_key(command, stream=False)
        if key not in self._answers and _is_queue(command.argv) and not self.queue_answers:
            raise ReplayMiss(_NO_QUEUE)
        done = self._answer(key, _spoken(command))
        if isinstance(done, Completed):
            if command.argv[0] == "squeue":
                self.queue_at = done.started_at
            return done
        raise _fresh(done)

    async def stream(self, command: Command) -> AsyncIterator[bytes]:
        done = self._answer(command_key(command, stream=True), _spoken(command))
        if not isinstance(done, Completed):
            raise _fresh(done)
        if done.stdout:
            yield done.stdout

    async def read(self, path: str, offset: int, length: int, host: str | None = None) -> bytes:
        key = file_key("read", path, host, offset, length)
        data = self._answer(key, f"bytes {offset} to {offset + length} of {path}")
        if isinstance(data, bytes):
            return data
        raise _fresh(data)

    async def stat(self, path: str, host: str | None = None) -> FileStat:
        stat = self._answer(file_key("stat", path, host), f"the state of {path}")
        if isinstance(stat, FileStat):
            return stat
        raise _fresh(stat)

    async def list(self, path: str, host: str | None = None) -> tuple[str, ...]:
        names = self._answer(file_key("list", path, host), f"the folder {path}")
        if isinstance(names, tuple):
            return names
        raise _fresh(names)

    def _answer(self, key: Key, what: str) -> Any:
        answers = self._answers.get(key)
        if answers is None:
            raise ReplayMiss(f"The recording does not hold {what}.")
        index = self._next.get(key, 0)
        if index >= len(answers):
            raise ReplayMiss(f"The recording holds {what} no more than {len(answers)} times.")
        last = len(answers) if _ONCE.intersection(key) else len(answers) - 1
        self._next[key] = min(index + 1, last)
        at, answer = answers[index]
        if at is not None:
            self.answered_at = max(self.answered_at, at)
        return answer

    def _session(self) -> tuple[bytes, datetime, Who | None]:
        place = self._folder / SESSION
        try:
            with self._open(SESSION) as file:
                session = bounded_json.loads(file.read(_MOST_SESSION_BYTES))
            if session["schema"] == SCHEMA:
                mark, at = session["mark"].encode("ascii"), _time(session["started_at"])
                return mark, at, _who(session.get("uid"), session.get("user"))
        except FileNotFoundError:
            raise ValueError(f"{self._folder} holds no recording: no {SESSION} in it.") from None
        except TooMuch as error:
            raise ValueError(f"{place} holds {error}.") from error
        except _BROKEN as error:
            raise ValueError(f"{place} is torn, or somebody changed it.") from error
        raise ValueError(f"{self._folder} is a recording of another version.")

    def _open(self, name: str) -> IO[bytes]:
        if self._held is None:
            return (self._folder / name).open("rb")
        if name not in self._held:
            raise FileNotFoundError(name)
        return io.BytesIO(self._held[name])

    def _lines(self, name: str) -> Iterator[dict[str, Any]]:
        try:
            file = self._open(name)
        except FileNotFoundError:
            return
        with file:
            while line := file.readline(_LONGEST_LINE + 1):
                self._bounded(name, line)
                try:
                    entry = json.loads(line)
                    if not isinstance(entry, dict):
                        raise ValueError("not an object")
                except (ValueError, RecursionError):
                    if line.endswith(b"\n"):
                        self.bad += 1
                    else:
                        self.torn += 1
                    continue
                yield entry

    def _bounded(self, name: str, line: bytes) -> None:
        if len(line) > _LONGEST_LINE:
            raise TooMuch(f"{name} has a line of more than {_LONGEST_LINE >> 20} MiB")
        try:
            self._left -= bounded_json.between(line, min(self._left, bounded_json.MOST_BETWEEN))
        except TooMuch as error:
            raise TooMuch(f"{name} holds {error}") from error

    def _take(self, entry: dict[str, Any], read: Any) -> None:
        try:
            key, answer = read(entry)
            self._answers.setdefault(key, []).append((_came_at(entry), answer))
        except _BROKEN:
            self.bad += 1

    def _command(self, entry: dict[str, Any]) -> tuple[Key, Any]:
        command = Command(
            tuple(str(word) for word in entry["argv"]),
            host=entry["host"],
            stdin=bytes_of(entry["stdin"]),
        )
        key = command_key(command, stream=entry.get("stream", False))
        if command.host is not None:
            self.hosts.add(command.host)
        if "left_after_s" in entry:
            return key, (TimeoutError, (f"{_spoken(command)} did not answer in time",), None)
        if "error" in entry:
            if "unreachable" in entry:
                failure = failure_of(entry["unreachable"])
                return key, (NodeUnreachable, (str(entry["host"]), failure), None)
            cause = FileNotFoundError() if entry.get("missing") else None
            return key, (RunnerError, (str(entry["error"]),), cause)
        if entry.get("same"):
            stdout = self._stdouts[key]
        else:
            stdout = self._stdouts[key] = bytes_of(entry["stdout"])
        rc = entry["rc"]
        done = Completed(
            rc=None if rc is None else int(rc),
            stdout=stdout,
            stderr=bytes_of(entry["stderr"]),
            started_at=_time(entry["t"]),
            took_s=float(entry["took_s"]),
            truncated=bool(entry["truncated"]),
        )
        argv = command.argv
        if _is_queue(argv) and done.rc == 0:
            self.queue_answers.append((argv, done))
        return key, done

    def _file(self, entry: dict[str, Any]) -> tuple[Key, Any]:
        op, path, host = entry["op"], entry["path"], entry["host"]
        key = file_key(op, path, host, entry.get("offset", 0), entry.get("length", 0))
        if entry.get("left"):
            return key, (TimeoutError, (f"{path} was not read in time",), None)
        if "error" in entry:
            return key, _error_of(entry["error"], path)
        match op:
            case "read":
                return key, bytes_of(entry["data"])
            case "stat":
                stat = entry["stat"]
                return key, FileStat(**{**stat, "mtime": _time(stat["mtime"])})
            case "list":
                return key, tuple(str(name) for name in entry["names"])
            case _:
                raise ValueError(op)


def _error_of(form: dict[str, Any], path: str) -> tuple[type[Exception], tuple[Any, ...], None]:
    match form["kind"]:
        case "os":
            return OSError, (int(form["errno"]), str(form["text"]), path), None
        case "timeout":
            return FileTimeout, (str(form["text"]),), None
        case "runner":
            return RunnerError, (str(form["text"]),), None
        case kind:
            raise ValueError(kind)


def _fresh(error: tuple[type[Exception], tuple[Any, ...], Exception | None]) -> Exception:
    """A new exception each time: one that is raised twice keeps the traces of both."""
    kind, arguments, cause = error
    made = kind(*arguments)
    made.__cause__ = cause
    return made


def _came_at(entry: dict[str, Any]) -> datetime | None:
    try:
        took_s = float(entry.get("took_s", entry.get("left_after_s", 0.0)))
        return _time(entry["t"]) + timedelta(seconds=took_s)
    except _BROKEN:
        return None


def _time(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _who(uid: object, name: object) -> Who | None:
    return Who(uid, name) if isinstance(uid, int) and isinstance(name, str) and name else None


def _is_queue(argv: Sequence[str]) -> bool:
    return argv[0] == "squeue" and "-O" in argv[:-1] and "-j" not in argv


def _spoken(command: Command) -> str:
    """The command in the words of a sentence: a script on a node by its name, not its text."""
    argv, host = command.argv, command.host
    script = argv[:2] == ("/bin/sh", "-c") and len(argv) > 3
    # A format with marks between its fields is nothing to read.
    said = argv[3] if script else " ".join(word if word.isprintable() else "…" for word in argv)
    return said if host is None else f"{said} on {host}"
