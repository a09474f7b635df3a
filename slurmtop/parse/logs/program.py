"""What the user's program says of itself: progress, phases, its end, its ranks and memory.

Source: any training log; the forms stand in :mod:`steps`, :mod:`phases`, :mod:`closings` and
:mod:`rank_words` beside this file, for example::

    Preparing test set...:  46%|####6     | 31/67 [29:02<35:12, 58.67s/it]
    [rank0] saving checkpoint at iteration 500 to /ckpt

Of the steps of one writer and bar the first and the last are told, the last when the source ends.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import Enum, auto

from slurmtop.model.events.program import Doing, LossLost, Mark, Phase, ProgramSays, RankSeen, Step
from slurmtop.model.events.system import MemoryUse
from slurmtop.model.trace import Event, RankFrom, Where
from slurmtop.parse.logs.closings import closing_of
from slurmtop.parse.logs.line import Message
from slurmtop.parse.logs.phases import bar_phase, phase_of
from slurmtop.parse.logs.plain import MOST_REPEATS, texts
from slurmtop.parse.logs.rank_words import memory_use, rank_seen
from slurmtop.parse.logs.steps import Moved, loss_is_no_number, moved

#: Lines of these speakers tell no progress, whatever words they hold.
_OTHERS = re.compile(
    r"NCCL (?:INFO|WARN|TRACE)|ProcessGroup\w*\.cpp|WorkNCCL|CollectiveFingerPrint|^\s*File \""
    r"|^frame #\d|^#\d{1,3} |slurm(?:stepd|d|ctld)\b|\bsrun: |store[_ ]based[_ ]barrier"
    r"|^wandb: |^COMET "
)
#: ``FloatingPointError: loss is nan at step 5`` is no step.
_EXCEPTION = re.compile(r"\s{0,40}[A-Za-z_][\w.]{0,120}(?:Error|Exception|Interrupt|Iteration): ")
#: A dump of settings: one long line of names and values, or an argument.
_SETTINGS = re.compile(r"(?:[\w.-]{1,60}['\"]?\s?[=:]\s?\S{1,120}?,\s){12}|^\s*--[\w-]{2,60}[ =]")
_METRICS = re.compile(r"(?i)\bloss['\"]?\s?[:=]\s?['\"]?\d")
_FLIGHT = re.compile(r"ranks joining collective|^Collective .{0,40}\berrors")
_FLIGHT_LINES = 12
_KNOWN_WRITERS = 4096
_MOST_PHASES = 512
_MOST_MEMORY = 1024
#: A report of memory is told where it differs from the one told before by this much.
_MEMORY_STEP = 0.05


#: Lines that differ in their numbers, or in how far a bar is drawn, have one shape.
_SHAPE = str.maketrans(dict.fromkeys("123456789", "0") | dict.fromkeys("#█▉▊▋▌▍▎▏", ""))
_KNOWN_SHAPES = 4096
#: Lines of one shape that are held, and changes of one bar that are told.
_HELD_LINES = 6
_RECENT = 12
_FORM_CHARS = 60


class _Kind(Enum):
    """What is known of all lines of one shape, so that they need not be read again."""

    NOTHING = auto()
    STEP = auto()


class ProgramReader:
    """All that one source's program says."""

    words: tuple[bytes, ...] = (
        b"%|",
        b"it/s",
        b"s/it",
        b"eta: ",
        b"examples/s",
        b"tep",
        b"STEP",
        b"iter",
        b"Iter",
        b"ITER",
        b"batch",
        b"Batch",
        b"BATCH",
        b"poch",
        b"loss",
        b"Loss",
        b"LOSS",
        b"pdate",
        b"valuat",
        b"Evaluate",
        b"alidat",
        b"aving",
        b"aved",
        b"oading",
        b"oaded",
        b"esum",
        b"estor",
        b"okeniz",
        b"okenis",
        b"rocessing",
        b"reparing",
        b"Running",
        b"unning ",
        b"ownloading",
        b"apping",
        b"iltering",
        b"aching",
        b"acking",
        b"huffling",
        b"ndexing",
        b"xtracting",
        b"onverting",
        b"rouping",
        b"reating ",
        b"enerating",
        b"ompil",
        b"utotun",
        b"uto-tun",
        b"AUTOTUNE",
        b"apturing",
        b"uilding",
        b"Time to load",
        b"ninja",
        b"raph captur",
        b"DONE (t",
        b"Done (t",
        b"index created",
        b"Average P",
        b"Average R",
        b"inference",
        b"nference",
        b"raining",
        b"rainer",
        b"rain metrics",
        b"train_runtime",
        b"StopIteration",
        b"xhausted",
        b"ran out of",
        b"no more ",
        b"out of data",
        b"ime limit",
        b"reached",
        b"exceeded",
        b"exiting program",
        b"completed",
        b"finished",
        b"distributed init",
        b"initialized host",
        b"GLOBAL_RANK",
        b"lobal_rank",
        b"lobal rank",
        b"world_rank",
        b"rocess index",
        b"world_size",
        b"world size",
        b"World size",
        b"World Size",
        b"WORLD_SIZE",
        b"init_method",
        b"dist_rank",
        b"CPU Virtual Memory",
        b"RSS",
        b"rss",
        b"host mem",
        b"Host mem",
        b"CPU mem",
        b"cpu mem",
        b"joining collective",
        b"Collective ",
        b"\xe2\x94\x81",
    )
    _texts = texts(words)

    def __init__(self) -> None:
        self._kinds: dict[str, _Kind] = {}
        self._held: dict[tuple[object, ...], deque[Message]] = {}
        self._recent: dict[tuple[object, ...], deque[Mark]] = {}
        self._lost: dict[tuple[object, ...], Where] = {}
        self._last_step: dict[tuple[object, ...], tuple[Step, bool]] = {}
        self._doing: dict[tuple[object, ...], tuple[Doing, bool]] = {}
        self._late_phase: dict[tuple[object, ...], Phase] = {}
        self._phases = 0
        self._seen: set[tuple[object, ...]] = set()
        self._says: dict[object, int] = {}
        self._memory: dict[tuple[object, ...], int] = {}
        self._late_memory: dict[tuple[object, ...], MemoryUse] = {}
        self._reports = 0
        self._in_report = 0

    @property
    def open(self) -> bool:
        return False

    def see(self, message: Message) -> Iterable[Event]:
        text = message.text
        if "NCCL" in message.head or not any(word in text for word in self._texts):
            return
        writer = (message.at.attempt, message.stream, message.at.rank)
        shape = text.translate(_SHAPE)
        kind = self._kinds.get(shape)
        if kind is _Kind.STEP:
            self._doing.pop(writer, None)
            key = (*writer, shape)
            held = self._held.get(key)
            if held is None:
                self._held[key] = held = deque(maxlen=_HELD_LINES)
            held.append(message)
            return
        if kind is _Kind.NOTHING:
            return
        if len(self._kinds) >= _KNOWN_SHAPES:
            self._release()
            self._kinds.clear()
        self._kinds[shape] = _Kind.NOTHING
        for event in self._read(writer, message, shape):
            self._kinds.pop(shape, None)
            yield event

    def _read(self, writer: tuple[object, ...], message: Message, shape: str) -> Iterator[Event]:
        text = message.text
        if _OTHERS.search(text) or not (_METRICS.search(text) or not _SETTINGS.search(text)):
            return
        memory = memory_use(text)
        if memory is not None:
            self._kinds.pop(shape, None)
            yield from self._memory_use(writer, message.at, *memory)
        closing = closing_of(text)
        if closing is not None:
            self._kinds.pop(shape, None)
            self._says[closing] = self._says.get(closing, 0) + 1
            if self._says[closing] <= MOST_REPEATS:
                yield ProgramSays(at=message.at, closing=closing[0], rank=closing[1])
            return
        if "%|" not in text:
            # "saving checkpoint at iteration 500" counts no step of its own.
            phase = phase_of(text, self._doing.get(writer, (None, True))[0])
            if text.lstrip()[:4] in ("DONE", "Done"):
                # What is done depends on the lines before.
                self._kinds.pop(shape, None)
            if phase is not None:
                self._kinds.pop(shape, None)
                yield from self._phase(writer, message.at, *phase)
                return
        step = None if _EXCEPTION.match(text) else moved(text)
        if step is not None:
            yield from self._step(writer, message.at, step, text)
            trains = memory is None and bar_phase(step.about) is None
            if trains:
                self._kinds[shape] = _Kind.STEP
            else:
                self._kinds.pop(shape, None)
            return
        # ``world size: 8`` inside a report of the flight recorder is that of one group.
        if _FLIGHT.search(text):
            self._kinds.pop(shape, None)
            self._in_report = _FLIGHT_LINES
        elif self._in_report:
            self._kinds.pop(shape, None)
            self._in_report -= 1
        else:
            yield from self._rank(message.at, text)

    def _release(self) -> None:
        """The newest of the steps that were only held, read."""
        held = [(tuple(key[:-1]), one) for key, some in self._held.items() for one in some]
        self._held.clear()
        held.sort(key=lambda pair: pair[1].at.order)
        for writer, message in held:
            step = moved(message.text)
            if step is not None:
                key = (*writer, _bar(step))
                known = self._last_step.get(key)
                if known is None or known[0].at.order < message.at.order:
                    event = self._event(key, message.at, step, message.text)
                    self._last_step[key] = (event, True)

    def _event(self, key: tuple[object, ...], at: Where, step: Moved, text: str) -> Step:
        """The step, with the changes of its bar before it."""
        if not loss_is_no_number(text):
            self._lost.pop(key, None)
        else:
            self._lost.setdefault(key, at)
        recent = self._recent.setdefault(key, deque(maxlen=_RECENT))
        form = _form(text) if step.done is None else ""
        if not recent or form or recent[-1].done != step.done:
            recent.append(Mark(at.order, step.done, form))
        return Step(at=at, done=step.done, total=step.total, bar=step.about, recent=tuple(recent))

    def _step(
        self, writer: tuple[object, ...], at: Where, step: Moved, text: str
    ) -> Iterator[Event]:
        doing = bar_phase(step.about)
        if doing is None:
            # Training goes on: a phase that begins after this is told anew.
            self._doing.pop(writer, None)
        else:
            over = step.total is not None and step.done is not None and step.done >= step.total
            yield from self._phase(writer, at, doing, over)
        key = (*writer, _bar(step))
        if key not in self._last_step and len(self._last_step) >= _KNOWN_WRITERS:
            return
        event = self._event(key, at, step, text)
        if key not in self._last_step:
            yield event
            self._last_step[key] = (event, False)
        else:
            self._last_step[key] = (event, True)

    def _phase(
        self, writer: tuple[object, ...], at: Where, doing: Doing, over: bool
    ) -> Iterator[Event]:
        if self._doing.get(writer) == (doing, over) or len(self._doing) > _KNOWN_WRITERS:
            return
        self._doing[writer] = (doing, over)
        event = Phase(at=at, doing=doing, over=over)
        self._phases += 1
        if self._phases <= _MOST_PHASES:
            yield event
        elif len(self._late_phase) < _KNOWN_WRITERS:
            self._late_phase[(*writer, doing, over)] = event

    def _memory_use(
        self, writer: tuple[object, ...], at: Where, used: int, rank: int | None
    ) -> Iterator[Event]:
        if rank is not None and at.rank is None:
            at = replace(at, rank=rank, rank_from=RankFrom.WORDS)
        key = (*writer, at.rank)
        event = MemoryUse(at=at, bytes=used)
        told = self._memory.get(key)
        if told is None or abs(used - told) > told * _MEMORY_STEP:
            self._reports += 1
            if self._reports <= _MOST_MEMORY:
                self._memory[key] = used
                self._late_memory.pop(key, None)
                yield event
                return
        if len(self._late_memory) < _KNOWN_WRITERS:
            self._late_memory[key] = event

    def _rank(self, at: Where, text: str) -> Iterator[Event]:
        seen = rank_seen(text)
        if seen is not None:
            self._kinds.pop(text.translate(_SHAPE), None)
        if seen is None or (at.host, at.pid, seen) in self._seen:
            return
        if len(self._seen) < _KNOWN_WRITERS:
            self._seen.add((at.host, at.pid, seen))
            yield RankSeen(
                at=at,
                seen_rank=seen.rank,
                on_host=seen.host,
                world=seen.world,
                method=seen.method,
            )

    def finish(self) -> Iterable[Event]:
        self._release()
        late: list[Event] = [*self._late_phase.values(), *self._late_memory.values()]
        late += [LossLost(at=at) for at in self._lost.values()]
        late += [step for step, later in self._last_step.values() if later]
        yield from sorted(late, key=lambda event: event.at.order)


def _bar(step: Moved) -> str:
    """The bar that a step is of; one an epoch is the same bar."""
    return re.sub(r"\d+", "#", step.about or "")


def _form(text: str) -> str:
    """The words of a line that has no counter: its numbers left away."""
    return re.sub(r"[\d.+-]+(?:e[+-]?\d+)?|nan|inf", "#", text)[:_FORM_CHARS]
