"""What torchrun's agents write: failure tables, worker ends, signals, restarts.

Source: ``torch/distributed/elastic`` of torch 1.9 to 2.13, for example::

    [E api.py:874] failed (exitcode: -9) local_rank: 3 (pid: 4242) of binary: /usr/bin/python
    [default] Worker group FAILED. 2/3 attempts left; will restart worker group

A table is printed by each node's agent for its own workers::

    Root Cause (first observed failure):
    [0]:
      time      : 2026-01-02_03:04:05
      host      : node7.cluster
      rank      : 13 (local_rank: 5)
      exitcode  : -6 (pid: 4242)
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from slurmtop.model.events.launch import (
    ClosingSignal,
    DeathSignal,
    ElasticFailure,
    Unkillable,
    WorkersRestart,
)
from slurmtop.model.events.program import Closing, ProgramSays
from slurmtop.model.trace import Event
from slurmtop.parse.logs.line import Message
from slurmtop.parse.logs.signals import signal_name, signal_number
from slurmtop.parse.logs.torch_words import in_order, number, shown

_FIELD = re.compile(
    r"\s{0,12}(?P<name>time|host|rank|exitcode|error_file|traceback|msg)\s{0,8}:(?:\s(?P<value>.*))?$",
    re.DOTALL,
)
#: As torchrun aligns it; a program's own ``host: x`` is none.
_HOST = re.compile(r"\s{0,4}host {6}: \S")
_ENTRY = re.compile(r"\s{0,8}\[\d{1,6}\]:\s*$")
_ROOT = re.compile(r"\s{0,8}Root Cause\b.{0,40}:\s*$")
_OTHERS = re.compile(r"\s{0,8}(?:Other )?Failures:\s*$")
_RULE = re.compile(r"\s{0,8}[-=*]{10,}\s*$")
_RANK = re.compile(r"(?P<rank>\d{1,9})\s?\(local_rank:\s?(?P<local>\d{1,9})\)")
_EXIT = re.compile(r"(?P<code>-?\d{1,5})\s?\(pid:\s?(?P<pid>\d{1,10})\)")
_TIME = re.compile(r"(?P<day>\d{4}-\d\d-\d\d)[_T ](?P<time>\d\d:\d\d:\d\d)")
_EXCEPTION = re.compile(
    r"\s{0,3}(?P<line>[A-Za-z_][\w.]{2,120}: .*|[\w.]{2,120}(?:Error|Exception))$"
)

_FAILED = re.compile(
    r"failed \(exitcode: (?P<code>-?\d{1,5})\),? local_rank: (?P<local>\d{1,9})"
    r"(?: \(pid: (?P<pid>\d{1,10})\))?"
)
_CLOSING = re.compile(
    r"Sending process (?P<pid>\d{1,10}) closing signal "
    r"(?P<signal>(?:Signals\.)?SIG(?:TERM|INT|KILL|HUP|QUIT|USR[12]|ABRT)|\d{1,2})"
)
_FORCED = re.compile(
    r"Unable to shutdown process (?P<pid>\d{1,10}) via .{1,30}, forcefully exiting via "
    r"(?P<signal>(?:Signals\.)?SIG[A-Z]{3,4}|\d{1,2})"
)
_DEATH = re.compile(
    r"Received (?P<signal>[\w.]{1,20}) death signal|SignalException: .{0,40}got signal: "
    r"(?P<got>[\w.]{1,20})"
    r"|Process \d{1,10} got signal: (?P<got2>[\w.]{1,20})"
)
_RESTART = re.compile(
    r"[Ww]orker group FAILED\. (?P<left>\d{1,6})/\d{1,6} attempts left|will restart worker group"
)
_UNKILLABLE = re.compile(
    r"(?:Process|Worker pid=|process) ?(?P<pid>\d{1,10}) (?:did not exit after SIGKILL|stuck in "
    r"uninterruptible)|D-state.{0,80}uninterruptible"
)

#: The agent's own lines of torch 1.8 to 2.13, and its events in JSON.
_SUCCEEDED = re.compile(
    r"[Ww]orker group (?:successfully finished|finished \((?:WorkerState\.)?SUCCEEDED\))"
    r"|\"torchelastic\.worker\.status\.SUCCEEDED\""
)

#: Messages that an entry's traceback may go on for.
_ENTRY_REACH = 300
#: One a node, where they come through one srun.
_MOST_TABLES = 256
_MESSAGE_CHARS = 400


class ElasticReader:
    """Reads torchrun's own lines; see :class:`~slurmtop.parse.logs.line.Reader`."""

    words: tuple[bytes, ...] = (
        b"Root Cause",
        b"Failures:",
        b"time      :",
        b"host      :",
        b"(local_rank: ",
        b"exitcode",
        b"closing signal",
        b"Unable to shutdown process",
        b"death signal",
        b"got signal:",
        b"Worker group FAILED",
        b"worker group FAILED",
        b"will restart worker group",
        b"SIGKILL within",
        b"uninterruptible",
        b"successfully finished",
        b"SUCCEEDED",
    )

    def __init__(self) -> None:
        self._tables: dict[str, _Table] = {}

    @property
    def open(self) -> bool:
        return bool(self._tables)

    def see(self, message: Message) -> Iterable[Event]:
        yield from self._expire(message.at.order)
        table = self._tables.get(message.stream)
        if table is None and len(self._tables) < _MOST_TABLES and _Table.begins(message.text):
            table = self._tables[message.stream] = _Table(message)
        if table is not None:
            yield from table.see(message)
            if table.over:
                del self._tables[message.stream]
        yield from _line(message)

    def finish(self) -> Iterable[Event]:
        tables, self._tables = self._tables, {}
        return in_order(event for table in tables.values() for event in table.finish())

    def _expire(self, order: int) -> Iterator[Event]:
        for stream in [one for one, table in self._tables.items() if table.stale(order)]:
            yield from self._tables.pop(stream).finish()


class _Table:
    """The failure table of one stream; it may begin or end anywhere."""

    def __init__(self, message: Message) -> None:
        self._last_order = message.at.order
        self._fields: dict[str, str] = {}
        self._at: Message | None = None
        self._traceback = False
        self._exception = ""
        self._root = False
        self.over = False

    @staticmethod
    def begins(text: str) -> bool:
        field = _FIELD.match(text)
        return (
            _ROOT.match(text) is not None
            or _OTHERS.match(text) is not None
            or _HOST.match(text) is not None
            or (field is not None and _tells(field["name"], field["value"] or ""))
        )

    def see(self, message: Message) -> Iterator[Event]:
        text = message.text
        field = _FIELD.match(text)
        if (root := _ROOT.match(text)) is not None or _OTHERS.match(text) is not None:
            yield from self._entry()
            self._root = root is not None
        elif _ENTRY.match(text) is not None or _RULE.match(text) is not None:
            yield from self._entry()
        elif field is not None and not (
            self._traceback and field["name"] in ("msg", "host", "rank")
        ):
            if field["name"] in self._fields:
                yield from self._entry()
            self._take(message, field["name"], (field["value"] or "").strip())
        elif self._traceback:
            self._trace(text)
        elif text.strip() and "NO_OTHER_FAILURES" not in text:
            yield from self._entry()
            self.over = True
            return
        if not self._traceback:
            self._last_order = message.at.order

    def stale(self, order: int) -> bool:
        """Is its last line so far behind that it has no end?"""
        return order - self._last_order > _ENTRY_REACH

    def _take(self, message: Message, name: str, value: str) -> None:
        self._fields[name] = value
        if self._at is None or name == "exitcode":
            self._at = message
        if name in ("traceback", "msg"):
            self._traceback = not value or value.startswith("Traceback")

    def _trace(self, text: str) -> None:
        found = _EXCEPTION.match(text)
        if found is not None:
            self._exception = found["line"]

    def _entry(self) -> Iterator[Event]:
        fields, at = self._fields, self._at
        exception = self._exception
        self._fields, self._at, self._exception, self._traceback = {}, None, "", False
        if at is None or not ({"exitcode", "rank"} & set(fields)):
            return
        rank, code = _RANK.match(fields.get("rank", "")), _EXIT.match(fields.get("exitcode", ""))
        exit_code = number(code["code"]) if code is not None else None
        said = exception or fields.get("traceback", "") or fields.get("msg", "")
        yield ElasticFailure(
            at=at.at,
            rank=number(rank["rank"]) if rank is not None else None,
            local_rank=number(rank["local"]) if rank is not None else None,
            host=fields.get("host") or None,
            pid=number(code["pid"]) if code is not None else None,
            exit_code=exit_code,
            signal=-exit_code if exit_code is not None and exit_code < 0 else None,
            first=self._root,
            seconds=_seconds(fields.get("time", "")),
            message=said.strip().strip('"')[:_MESSAGE_CHARS],
        )

    def finish(self) -> Iterable[Event]:
        return tuple(self._entry())


def _tells(name: str, value: str) -> bool:
    """Is this surely a line of such a table, and not some setting of the program?"""
    if name == "rank":
        return _RANK.match(value) is not None
    if name == "exitcode":
        return _EXIT.match(value) is not None
    return name == "time" and _TIME.match(value) is not None


def _seconds(text: str) -> float | None:
    found = _TIME.search(text)
    if found is None:
        return None
    try:
        at = datetime.fromisoformat(f"{found['day']}T{found['time']}")
    except ValueError:
        return None
    return at.replace(tzinfo=UTC).timestamp()


def _line(message: Message) -> Iterator[Event]:
    text = message.text
    if (failed := _FAILED.search(text)) is not None:
        code = number(failed["code"])
        yield ElasticFailure(
            at=shown(message, failed.start()),
            local_rank=number(failed["local"]),
            pid=number(failed["pid"]),
            exit_code=code,
            signal=-code if code is not None and code < 0 else None,
            first=True,
        )
    if (closing := _CLOSING.search(text) or _FORCED.search(text)) is not None:
        yield ClosingSignal(
            at=shown(message, closing.start()),
            pid=int(closing["pid"]),
            signal=signal_name(closing["signal"]),
        )
    if (death := _DEATH.search(text)) is not None:
        signal = signal_number(death["signal"] or death["got"] or death["got2"])
        if signal is not None:
            yield DeathSignal(at=shown(message, death.start()), signal=signal)
    if (restart := _RESTART.search(text)) is not None:
        yield WorkersRestart(at=shown(message, restart.start()), left=number(restart["left"]))
    if (done := _SUCCEEDED.search(text)) is not None:
        yield ProgramSays(at=shown(message, done.start()), closing=Closing.FINISHED)
    if (stuck := _UNKILLABLE.search(text)) is not None:
        yield Unkillable(at=shown(message, stuck.start()), pid=number(stuck["pid"]))
