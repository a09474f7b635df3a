"""What PyTorch's own checks say: fingerprints, monitored barriers, desync reports, DDP.

Sources: ``ProcessGroupWrapper.cpp``, ``ProcessGroupGloo.cpp``, ``TraceUtils.h`` and ``reducer.cpp``
of torch 1.9 to 2.13, for example::

    RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: …
    RuntimeError: [Rank 0]: Ranks 1, 3 failed to pass monitoredBarrier in 10000 ms
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator

from slurmtop.model.events.torch import (
    Desync,
    Fingerprint,
    FingerprintMismatch,
    MonitoredBarrier,
    ParamsDiffer,
    RunningCollective,
    UnusedParameters,
)
from slurmtop.model.trace import Event, Where
from slurmtop.parse.logs.line import Message
from slurmtop.parse.logs.torch_words import (
    Begun,
    group_of,
    in_order,
    number,
    shown,
)

_SIDE = re.compile(r"Rank (?P<rank>\d{1,9}) is running (?:inconsistent )?collective: ?")
_RUNNING = re.compile(r"Running (?:inconsistent )?collective: ?(?=CollectiveFingerPrint)")
_ASPECTS = re.compile(r"Collectives differ in the following aspects|Op type: ?[A-Z_]{2,40} ?vs")
_OLD_MISMATCH = re.compile(
    r"Mismatch between collective operation types|Error when verifying shape tensors for "
    r"collective "
    r"(?P<op>[A-Z_]{2,40}) on rank (?P<rank>\d{1,9})"
)
_PRINT_SEQ = re.compile(r"SequenceNumber=(?P<seq>\d{1,19})(?=\D)")
_PRINT_OP = re.compile(r"OpType=(?P<op>[A-Z_]{2,40})(?=[,)\s])")
_PRINT_SHAPE = re.compile(r"TensorShape=\[(?P<shape>[^\]]{0,400})\]")
_PRINT_TYPE = re.compile(r"TensorDtypes?=(?P<dtype>[^,)]{1,80})[,)]")

_FAILED = re.compile(
    r"(?:\[Rank (?P<own>\d{1,9})\]:? ?:? ?)?Ranks? (?P<late>\d{1,9}(?:, ?\d{1,9}){0,9999}) failed "
    r"to "
    r"pass monitored ?[Bb]arrier"
)
_REACHED = re.compile(r"Rank (?P<rank>\d{1,9}) successfully reached monitoredBarrier")
_TIMED_OUT = re.compile(r"Rank (?P<rank>\d{1,9}) timed out in monitoredBarrier")

_DESYNC = re.compile(
    r"To our best knowledge,|Timeout at collective: [A-Z_]{2,40}, #\d"
    r"|Snapshot of ranks' latest states"
)
#: The report itself failed: torch 2.0 to 2.13, after a timeout. The check that it ran into names
#: a rank which only has no trace of its own.
_NO_REPORT = re.compile(r"Failed to retrieve (?:\w{0,12}NCCL_DESYNC_DEBUG|NCCL desync) report")
_LAGGING = re.compile(r"ranks \[(?P<ranks>[\d, ]{1,20000})\] are the lagging ranks")
_STATE = re.compile(
    r"[\s-]{0,40}\[(?P<ranks>[\d, ]{1,20000})\] (?P<state>(?:joined|finished|started"
    r"|scheduled)\b.{0,200})"
)
_STATE_HEAD = re.compile(r"\s{0,20}#(?P<seq>\d{1,19}) (?:started|finished) ranks")
_TIMED_OUT_AT = re.compile(r"\[(?P<rank>\d{1,9})\] Timeout at collective: ")

_PARAMS = re.compile(
    r"Rank (?P<rank>\d{1,9}) has \d{1,12} params, while rank (?P<other>\d{1,9}) has "
    r"(?:inconsistent )?(?P<n>\d{1,12}) param"
)
_SIZES = re.compile(
    r"\[(?P<rank>\d{1,9})\]: params\[\d{1,9}\] in this process with sizes .{0,400}? appears not to "
    r"match (?:sizes|strides) of the same param in process (?P<other>\d{1,9})"
)
_UNUSED = re.compile(
    r"Expected to have finished reduction in the prior iteration"
    r"|Parameters? (?:indices )?which did not receive grad for rank"
)

#: Messages a desync report may be apart from its head.
_REACH = 200
_MOST_STATES = 4_096
#: Collectives kept of each rank that prints all it runs.
_KEPT = 16
_MOST_RANKS = 10_000


class CheckReader:
    """Reads the reports of PyTorch's checks; see :class:`~slurmtop.parse.logs.line.Reader`."""

    words: tuple[bytes, ...] = (
        b"CollectiveFingerPrint",
        b"is running collective",
        b"mismatch between collectives",
        b"Mismatch between collective",
        b"verifying shape tensors",
        b"onitoredBarrier",
        b"To our best knowledge",
        b"Timeout at collective",
        b"latest states",
        b"Failed to retrieve",
        b"same model across all ranks",
        b"same param in process",
        b"finished reduction in the prior",
        b"did not receive grad",
    )

    def __init__(self) -> None:
        self._report: _Report | None = None
        self._running: dict[tuple[int | None, int | None, int], deque[RunningCollective]] = {}

    @property
    def open(self) -> bool:
        return self._report is not None

    def see(self, message: Message) -> Iterable[Event]:
        yield from self._desync(message)
        if (broken := _NO_REPORT.search(message.text)) is not None:
            yield Desync(at=shown(message, broken.start()), broken=True)
        yield from _mismatch(message)
        yield from _barrier(message)
        yield from _ddp(message)
        self._keep_running(message)

    def finish(self) -> Iterable[Event]:
        out: list[Event] = [event for kept in self._running.values() for event in kept]
        self._running = {}
        if self._report is not None:
            out.append(self._report.event())
            self._report = None
        return in_order(out)

    def _keep_running(self, message: Message) -> None:
        found = _RUNNING.search(message.text)
        if found is None:
            return
        rank, group = group_of(message.text)
        key = (message.at.rank, rank, message.at.attempt)
        if key not in self._running and len(self._running) >= _MOST_RANKS:
            return
        event = RunningCollective(
            at=shown(message, found.start()),
            group_rank=rank,
            group=group,
            print=_fingerprint(rank, message.text[found.end() :]),
        )
        self._running.setdefault(key, deque(maxlen=_KEPT)).append(event)

    def _desync(self, message: Message) -> Iterator[Event]:
        begins = _DESYNC.search(message.text) is not None
        report = self._report
        if report is not None and not report.takes(message, begins=begins):
            self._report = None
            yield report.event()
            report = None
        if begins and report is None:
            self._report = _Report(message)
            self._report.takes(message, begins=True)


class _Report:
    def __init__(self, message: Message) -> None:
        self.begun = Begun(message)
        self.lagging: list[int] = []
        self.states: list[tuple[int, str]] = []
        self.timed_out: set[int] = set()
        self.seq: str | None = None

    def takes(self, message: Message, *, begins: bool) -> bool:
        """Read one message of the report; false where it does not belong to it."""
        if not self.begun.goes_on(message, reach=_REACH):
            return False
        if not message.text.strip():
            return True
        read = False
        for line in message.text.split("\n"):
            read = self._line(line) or read
        return read or begins

    def _line(self, line: str) -> bool:
        if (timed_out := _TIMED_OUT_AT.search(line)) is not None:
            rank = int(timed_out["rank"])
            if rank in self.timed_out:
                return False
            self.timed_out.add(rank)
            return True
        if (lagging := _LAGGING.search(line)) is not None:
            self._add_lagging(_ranks(lagging["ranks"]))
            return True
        if (head := _STATE_HEAD.match(line)) is not None:
            self.seq = head["seq"]
            return True
        if (state := _STATE.match(line)) is not None:
            text = state["state"].strip()
            if self.seq is not None and "#" not in text:
                text = f"{text} #{self.seq}"
            for rank in _ranks(state["ranks"]):
                if len(self.states) < _MOST_STATES:
                    self.states.append((rank, text))
            if "didn't join" in text:
                self._add_lagging(_ranks(state["ranks"]))
            return True
        return _DESYNC.search(line) is not None

    def _add_lagging(self, ranks: Iterable[int]) -> None:
        self.lagging += [rank for rank in ranks if rank not in self.lagging][:_MOST_STATES]

    def event(self) -> Desync:
        message = self.begun.message
        rank, group = group_of(message.text)
        return Desync(
            at=message.at,
            group_rank=rank,
            group=group,
            lagging=tuple(self.lagging[:_MOST_STATES]),
            states=tuple(self.states),
        )


def _ranks(text: str) -> tuple[int, ...]:
    found = (number(part) for part in text.split(","))
    return tuple(rank for rank in found if rank is not None)


def _mismatch(message: Message) -> Iterator[Event]:
    text = message.text
    here = _SIDE.search(text)
    rank, group = group_of(text)
    if here is not None:
        there = _SIDE.search(text, here.end())
        end = there.start() if there is not None else len(text)
        yield FingerprintMismatch(
            at=shown(message, here.start()),
            group_rank=rank,
            group=group,
            here=_fingerprint(number(here["rank"]), text[here.end() : end]),
            there=_fingerprint(number(there["rank"]), text[there.end() :]) if there else None,
            aspects=_aspects(message),
        )
        return
    old = _OLD_MISMATCH.search(text)
    if old is not None:
        yield FingerprintMismatch(
            at=shown(message, old.start()),
            group_rank=rank,
            group=group,
            here=Fingerprint(number(old["rank"]), op=old["op"]),
        )


def _aspects(message: Message) -> Where | None:
    """The end of a line that is longer than what is shown of it; None where it has none."""
    found = _ASPECTS.search(message.text)
    return None if found is None else shown(message, found.start())


def _fingerprint(rank: int | None, text: str) -> Fingerprint:
    """One side. A value that stands where the text is cut off is not believed."""
    inside, whole = _inside(text)
    seq, op = _PRINT_SEQ.search(inside), _PRINT_OP.search(inside)
    shape, dtype = _PRINT_SHAPE.search(inside), _PRINT_TYPE.search(inside)
    return Fingerprint(
        rank,
        seq=number(seq["seq"]) if seq is not None else None,
        op=op["op"] if op is not None else None,
        shape=shape["shape"] if shape is not None else None,
        dtype=dtype["dtype"].strip() if dtype is not None else None,
        empty=whole and "Tensor" not in inside,
    )


def _inside(text: str) -> tuple[str, bool]:
    """What stands in the first pair of brackets of ``text``, and whether the pair is closed."""
    depth = 0
    for place, letter in enumerate(text):
        if letter == "(":
            depth += 1
        elif letter == ")":
            depth -= 1
            if depth <= 0:
                return text[: place + 1], True
    return text, False


def _barrier(message: Message) -> Iterator[Event]:
    text = message.text
    if (failed := _FAILED.search(text)) is not None:
        yield MonitoredBarrier(
            at=shown(message, failed.start()),
            group_rank=number(failed["own"]),
            late=_ranks(failed["late"]),
        )
    elif (reached := _REACHED.search(text)) is not None:
        rank = number(reached["rank"])
        yield MonitoredBarrier(at=shown(message, reached.start()), group_rank=rank, reached=rank)
    elif (timed_out := _TIMED_OUT.search(text)) is not None:
        yield MonitoredBarrier(
            at=shown(message, timed_out.start()), group_rank=number(timed_out["rank"])
        )


def _ddp(message: Message) -> Iterator[Event]:
    text = message.text
    found = _PARAMS.search(text) or _SIZES.search(text)
    if found is not None:
        yield ParamsDiffer(
            at=shown(message, found.start()),
            rank=int(found["rank"]),
            other=int(found["other"]),
            none_there=found.groupdict().get("n") == "0",
        )
    if (unused := _UNUSED.search(text)) is not None:
        yield UnusedParameters(at=shown(message, unused.start()))
