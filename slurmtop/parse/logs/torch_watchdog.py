"""What the watchdog of PyTorch's NCCL groups says, in the shapes of torch 1.10 to 2.13.

Sources: ``ProcessGroupNCCL.cpp`` of these versions, for example::

    [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=6, OpType=ALLREDUCE, …
    [PG 0 Rank 1] Timeout at NCCL work: 6, last enqueued NCCL work: 9, last completed NCCL work: 5.

Lines may be cut anywhere: what is not there, or may be torn, is None.
"""

import re
from collections.abc import Iterable, Iterator

from slurmtop.model.events.torch import (
    DumpSignal,
    FailedStack,
    GroupStatus,
    Heartbeat,
    TakenDown,
    WatchdogTimeout,
)
from slurmtop.model.trace import Event
from slurmtop.parse.logs.line import Message
from slurmtop.parse.logs.torch_words import Begun, group_of, in_order, number, operation, shown

_TIMEOUT = "Watchdog caught collective operation timeout"
#: A timeout line that ends before these words are whole still tells a timeout.
_SHORTEST_TIMEOUT = len("Watchdog caught coll")
_OTHER_TIMEOUT = re.compile(
    r"(?<!Watchdog )[Cc]aught collective operation timeout"
    r"|Work[A-Z]{2,10}\([^\n]{0,400}\) timed out in blocking wait"
)
_WORK = re.compile(r"Work[A-Z]{2,10}\((?P<fields>.{0,3000})", re.DOTALL)
_SEQ = re.compile(r"SeqNum=(?P<seq>\d{1,19})\s?,")
_NUMEL = re.compile(r"Numel(?P<side>In|Out)\s?=\s?(?P<n>\d{1,19})\s?,")
_SHAPE = re.compile(r"TensorShape=\[(?P<shape>[\d, ]{0,200})\]")
_LIMIT = re.compile(r"Timeout\(ms\)=(?P<ms>\d{1,15})\s?\)")
_RAN = re.compile(r"\bran\s+for\s+(?P<ms>\d{1,15})\s+milli")

_STATUS = re.compile(
    r"(?:Timeout at NCCL work"
    r"|detected by watchdog at work(?: sequence id)?)\s?:\s?(?P<seq>\d{1,19})"
    r"|NCCL Work update periodically:"
)
_ENQUEUED = re.compile(r"[Ll]ast enqueued (?:NCCL )?work: (?P<n>-?\d{1,19})(?=\D)")
_COMPLETED = re.compile(r"[Ll]ast completed (?:NCCL )?work: (?P<n>-?\d{1,19})")

_DUMP = re.compile(
    r"Received a (?:dump signal|timeout signal|global timeout|global dump signal)\b"
    r"(?:(?!\. )[^\n]){0,80}? from {1,3}(?:(?P<own>this local rank)|rank {1,3}(?P<rank>\d{1,9})"
    r"|another)"
    r"|from rank: \[?(?P<aborted>\d{1,9})\]?\. This means that rank has aborted"
    r"|remote error detected from rank: (?P<remote>\d{1,9})"
    r"|Observed flight recorder dump signal from another rank|First PG on this rank to signal dump"
)
_STUCK = re.compile(
    r"watchdog got stuck for (?P<s>\d{1,9}) seconds|Heartbeat monitor timed out"
    r"|due to ProcessGroupNCCL watchdog hang"
)
_PENDING = re.compile(r"workMetaList_\.size\(\) ?= ?(?P<n>\d{1,9})")
_DOWN = re.compile(
    r"taking the entire process down|watchdog thread terminated with exception"
    r"|Some NCCL operations have failed or timed out"
    r"|due to ProcessGroupNCCL (?:collective timeout|watchdog timeout|exception)"
)
_STACK = "Stack trace of the failed collective"
_FRAME = re.compile(r"\s{0,8}#(?P<n>\d{1,4}) (?P<name>\S{1,200}) (?:from|at) (?P<place>\S.{0,300})")

#: Messages that a wrapped timeout, or a stack between other lines, may go on for.
_WRAP_REACH = 3
_STACK_REACH = 64
_MOST_FRAMES = 32
_MOST_OPEN = 64
_MOST_SEEN = 50_000


class _Stack:
    def __init__(self, message: Message) -> None:
        self.begun = Begun(message)
        self.frames: list[str] = []
        self.last_order = message.at.order

    def event(self) -> FailedStack:
        message = self.begun.message
        rank, group = group_of(message.text)
        at = shown(message, message.text.find(_STACK))
        return FailedStack(at=at, group_rank=rank, group=group, frames=tuple(self.frames))


class WatchdogReader:
    """Reads the watchdog's lines; see :class:`~slurmtop.parse.logs.line.Reader`."""

    words: tuple[bytes, ...] = (
        b"Watchdog caught",
        b"atchdog",
        b"NCCL work",
        b"enqueued work",
        b"dump signal",
        b"timeout signal",
        b"global timeout",
        b"to signal dump",
        b"Heartbeat monitor",
        b"entire process down",
        b"operations have failed or timed out",
        b"Stack trace of the failed",
        b"NCCL Work update",
        b"aught collective",
        b"timed out in blocking wait",
        b"This means that rank has aborted",
        b"remote error detected",
    )

    def __init__(self) -> None:
        self._wrapped: tuple[Begun, str] | None = None
        self._stacks: list[_Stack] = []
        self._seen: set[object] = set()

    @property
    def open(self) -> bool:
        return self._wrapped is not None or bool(self._stacks)

    def see(self, message: Message) -> Iterable[Event]:
        out: list[Event] = []
        if self._wrapped is not None:
            out += self._unwrap(message)
        out += self._frames(message)
        out += self._timeout(message)
        out += self._others(message)
        return out

    def finish(self) -> Iterable[Event]:
        out: list[Event] = []
        if self._wrapped is not None:
            begun, text = self._wrapped
            self._wrapped = None
            out += self._whole(begun.message, text)
        out += [stack.event() for stack in self._stacks]
        self._stacks = []
        return in_order(out)

    # Timeouts

    def _timeout(self, message: Message) -> Iterator[Event]:
        text = message.text
        start = text.find(_TIMEOUT[:_SHORTEST_TIMEOUT])
        if start < 0:
            if _OTHER_TIMEOUT.search(text) is not None:
                yield from self._whole(message, text)
            return
        said = text[start : start + len(_TIMEOUT)]
        if said != _TIMEOUT and not _TIMEOUT.startswith(said.rstrip()):
            return
        if said == _TIMEOUT and _WORK.search(text, start) is None:
            # Pasted text breaks the line behind the colon and in front of "ran for".
            if self._wrapped is not None:
                begun, held = self._wrapped
                yield from self._whole(begun.message, held)
            self._wrapped = (Begun(message), text)
            return
        if _RAN.search(text, start) is None and said == _TIMEOUT and not text.endswith("..."):
            self._wrapped = (Begun(message), text)
            return
        yield from self._whole(message, text)

    def _unwrap(self, message: Message) -> Iterator[Event]:
        assert self._wrapped is not None
        begun, held = self._wrapped
        text = message.text
        begins = _WORK.search(held) is None and _WORK.match(text.lstrip()) is not None
        goes_on = begun.goes_on(message, reach=_WRAP_REACH) and (
            begins or _RAN.match(text.lstrip()) is not None
        )
        if goes_on:
            held = f"{held} {text.strip()}"
            self._wrapped = (begun, held)
        if not goes_on or _RAN.search(held) is not None:
            self._wrapped = None
            yield from self._whole(begun.message, held)

    def _whole(self, message: Message, text: str) -> Iterator[Event]:
        start = max(text.find(_TIMEOUT[:_SHORTEST_TIMEOUT]), 0)
        rank, group = group_of(text)
        key: tuple[object, ...]
        work = _WORK.search(text, start)
        fields = work["fields"] if work is not None else ""
        seq = _SEQ.search(fields)
        shape, limit, ran = _SHAPE.search(fields), _LIMIT.search(fields), _RAN.search(text, start)
        numel = {found["side"]: number(found["n"]) for found in _NUMEL.finditer(fields)}
        op = operation(fields)
        ran_ms = number(ran["ms"]) if ran is not None else None
        position = number(seq["seq"]) if seq is not None else None
        key = (message.at.attempt, message.at.rank, message.at.task, rank, op, position)
        if position is None:
            key += (ran_ms,)
        if key in self._seen:
            return
        if len(self._seen) < _MOST_SEEN:
            self._seen.add(key)
        yield WatchdogTimeout(
            at=shown(message, max(message.text.find(_TIMEOUT[:_SHORTEST_TIMEOUT]), 0)),
            group_rank=rank,
            group=group,
            seq=position,
            op=op,
            numel_in=numel.get("In"),
            numel_out=numel.get("Out"),
            shape=shape["shape"] if shape is not None else None,
            timeout_ms=number(limit["ms"]) if limit is not None else None,
            ran_ms=ran_ms,
        )

    # Everything that stands in one line

    def _others(self, message: Message) -> Iterator[Event]:
        text = message.text
        if (found := _STATUS.search(text)) is not None:
            yield _status(message, found)
        elif (found := _DUMP.search(text)) is not None:
            yield _dump(message, found)
        if (found := _STUCK.search(text)) is not None:
            rank, group = group_of(text)
            pending = _PENDING.search(text)
            yield Heartbeat(
                at=shown(message, found.start()),
                group_rank=rank,
                group=group,
                seconds=number(found["s"]),
                pending=number(pending["n"]) if pending is not None else None,
            )
        elif (found := _DOWN.search(text)) is not None:
            rank, group = group_of(text)
            yield TakenDown(at=shown(message, found.start()), group_rank=rank, group=group)

    # The stack behind a timeout

    def _frames(self, message: Message) -> Iterator[Event]:
        text = message.text
        if self._stacks:
            order = message.at.order
            frame = _FRAME.match(text)
            if frame is not None:
                self._add_frame(message, frame)
            over = [
                stack
                for stack in self._stacks
                if order - stack.last_order > _STACK_REACH
                or (frame is None and stack.frames and stack.begun.message.stream == message.stream)
            ]
            if over:
                self._stacks = [stack for stack in self._stacks if stack not in over]
                yield from (stack.event() for stack in over)
        if _STACK in text:
            stack = _Stack(message)
            if "not found" in text or len(self._stacks) >= _MOST_OPEN:
                yield stack.event()
            else:
                self._stacks.append(stack)

    def _add_frame(self, message: Message, frame: re.Match[str]) -> None:
        at = number(frame["n"])
        if at is None or at >= _MOST_FRAMES:
            return
        named = [stack for stack in self._stacks if stack.begun.message.stream == message.stream]
        for stack in reversed(named or self._stacks):
            if len(stack.frames) == at:
                stack.frames.append(f"{frame['name']} at {frame['place'].strip()}")
                stack.last_order = message.at.order
                return


def _status(message: Message, found: re.Match[str]) -> GroupStatus:
    rank, group = group_of(message.text)
    enqueued, completed = _positions(message.text, found.start())
    return GroupStatus(
        at=shown(message, found.start()),
        group_rank=rank,
        group=group,
        seq=number(found["seq"]),
        enqueued=enqueued,
        completed=completed,
    )


def _dump(message: Message, found: re.Match[str]) -> DumpSignal:
    rank, group = group_of(message.text)
    enqueued, completed = _positions(message.text, found.start())
    return DumpSignal(
        at=shown(message, found.start()),
        group_rank=rank,
        group=group,
        from_rank=number(found["rank"] or found["aborted"] or found["remote"]),
        own=found["own"] is not None or found.group().startswith("First PG"),
        enqueued=enqueued,
        completed=completed,
    )


def _positions(text: str, start: int) -> tuple[int | None, int | None]:
    """Last enqueued and last completed work; -1 (nothing yet) as 0, impossible ones as None."""
    enqueued, completed = _ENQUEUED.search(text, start), _COMPLETED.search(text, start)
    sent = number(enqueued["n"]) if enqueued is not None else None
    done = number(completed["n"]) if completed is not None else None
    sent = None if sent is None else max(sent, 0)
    done = None if done is None else max(done, 0)
    if sent is not None and done is not None and done > sent:
        done = None
    return sent, done
