"""What is kept while a log is read: its events, its ends, its attempts, the order of messages.

All of it is bounded, however long the log is. An attempt is told by lines such as::

    slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2031-05-05T10:00:00 DUE TO JOB REQUEUE ***
    [default] Worker group FAILED. 2/3 attempts left; will restart worker group
"""

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from itertools import islice

from slurmtop.model.events.launch import WorkersRestart
from slurmtop.model.events.slurm import Ending, StepEnded
from slurmtop.model.trace import Event, Where
from slurmtop.parse.logs.forms import form_of
from slurmtop.parse.logs.line import Message
from slurmtop.parse.logs.notable import notable_of
from slurmtop.parse.logs.peel import Prefix
from slurmtop.parse.logs.raws import Block, Raw

#: Lines at either end of a log whose times are looked at, whatever they say.
_ENDS = 24
#: Lines at the end among which notable ones are looked for.
_LATE = 200
#: So many at the end may be shown to a person.
_SHOWN = 8
_FIRST_EVENTS = 3_000
_LAST_EVENTS = 1_000
#: Slurm says of every step that it ends it: one requeue.
_SAME_REQUEUE_S = 60.0
#: What of the old run may still come after Slurm said that it requeues the job.
_DYING = re.compile(
    r"srun: |slurmstepd|slurmd|submitit |Bypassing|Received SIG|Terminated|Killed|Traceback|\s"
    r"|\w*Error"
)


class Orders:
    """The order of messages: the place of their lines, and what torn and wrapped ones add."""

    _MOST = 20_000

    def __init__(self) -> None:
        self._places: list[int] = []
        self._totals: list[int] = []
        self._place = -1
        self._total = 0

    def begin(self, place: int) -> None:
        """A line is shown; a further state of a bar in the same line counts, too."""
        if place == self._place:
            self.more(1)
        self._place = place

    def more(self, count: int) -> None:
        """So many messages more, or less, than lines from here on."""
        if count:
            self._total += count
            if len(self._places) < self._MOST:
                self._places.append(self._place)
                self._totals.append(self._total)

    def of(self, place: int) -> int:
        """The order of what is said at this place."""
        if place >= self._place:
            return place + self._total
        found = bisect_right(self._places, place)
        return place + (self._totals[found - 1] if found else 0)


class Hosts:
    """Hosts that stand at the beginning of a line: one glued to other words must be among them."""

    _MOST = 10_000

    def __init__(self) -> None:
        self._known: set[str] = set()

    def seen(self, host: str | None) -> None:
        """A host at the beginning of a line."""
        if host is not None and len(self._known) < self._MOST:
            self._known.add(host)

    def glued(self, prefix: Prefix) -> None:
        """Take from the prefix of a message inside a line a host that may hold other words."""
        host = prefix.host
        if host is None or host in self._known:
            return
        fits = [one for one in self._known if host.endswith(one)]
        prefix.host = max(fits, key=len, default=None)
        if prefix.host is None:
            prefix.pid = None


class Attempts:
    """Counts restarts: of torchrun's workers at once, of the job when its new run speaks."""

    def __init__(self) -> None:
        self._begun: list[int] = []
        self._requeued = False
        self._requeued_at: float | None = None

    def of(self, order: int) -> int:
        """The attempt of a message."""
        return bisect_right(self._begun, order)

    def seen(self, message: Message) -> Message:
        """The message in its attempt; one that no dying run writes begins the new one."""
        if not self._requeued or _DYING.match(message.text):
            return message
        self._requeued = False
        self._begun.append(message.at.order)
        return replace(message, at=replace(message.at, attempt=len(self._begun)))

    def told(self, event: Event) -> None:
        if isinstance(event, WorkersRestart):
            self._begun.append(event.at.order + 1)
        elif isinstance(event, StepEnded) and event.ending is Ending.REQUEUE:
            same = (
                self._requeued_at is not None
                and event.seconds is not None
                and abs(event.seconds - self._requeued_at) < _SAME_REQUEUE_S
            )
            self._requeued = self._requeued or not same
            self._requeued_at = event.seconds


class Events:
    """Events in order; of each kind the first and the last, once there are thousands."""

    def __init__(self) -> None:
        self._first: dict[type[Event], list[tuple[int, Event]]] = {}
        self._last: dict[type[Event], list[tuple[int, Event]]] = {}
        self._count = 0
        self.dropped = 0

    def add(self, event: Event) -> None:
        self._count += 1
        kept = self._first.setdefault(type(event), [])
        if len(kept) >= _FIRST_EVENTS:
            kept = self._last.setdefault(type(event), [])
            if len(kept) >= 2 * _LAST_EVENTS:
                del kept[:_LAST_EVENTS]
                self.dropped += _LAST_EVENTS
        kept.append((self._count, event))

    def all(self) -> tuple[Event, ...]:
        kept = [pair for part in (self._first, self._last) for one in part.values() for pair in one]
        kept.sort(key=lambda pair: (pair[1].at.order, pair[0]))
        return tuple(event for _, event in kept)


class Ends:
    """The first and last lines of a source, and the last time among them."""

    def __init__(self) -> None:
        self._head: list[Raw] = []
        self._long: Block | None = None
        self._late: list[Raw] = []
        self._stamped: Where | None = None

    def see(self, block: Block) -> None:
        """All lines of a block."""
        if len(self._head) < _ENDS:
            missing = _ENDS - len(self._head)
            self._head += _first_words(block, missing)
        if block.end_place - block.place >= _LATE:
            # Nothing in front of it counts; its own last lines are looked for once, at the end.
            self._late, self._long = [], block
        else:
            self._late = [*self._late, *_last_words(block, _LATE)][-_LATE:]
            if len(self._late) == _LATE:
                self._long = None

    def _last_lines(self, most: int) -> list[Raw]:
        missing = most - len(self._late)
        if self._long is None or missing <= 0:
            return self._late[-most:]
        return [*_last_words(self._long, missing), *self._late]

    def stamped(self, at: Where) -> None:
        if at.stamp is not None:
            self._stamped = at

    def notable(self, where: Callable[[Raw], Where]) -> tuple[Where, ...]:
        """Errors and warnings among the first lines and the last ones."""
        # Of lines that are alike up to their numbers the first is told.
        ends: dict[bytes, Raw] = {}
        for raw in self._head:
            ends.setdefault(form_of(raw.data), raw)
        if (block := self._long) is not None:
            for at in _last_places(block, _LATE - len(self._late)):
                form = form_of(block.last_state(at))
                if form not in ends:
                    ends[form] = block.states(at)[-1]
        for raw in self._late:
            ends.setdefault(form_of(raw.data), raw)
        return tuple(where(raw) for raw in notable_of((raw.text(), raw) for raw in ends.values()))

    def tail(self, where: Callable[[Raw], Where]) -> tuple[Where, ...]:
        """The last few lines."""
        return tuple(where(raw) for raw in self._last_lines(_SHOWN))

    def told(
        self, where: Callable[[Raw], Where]
    ) -> tuple[Where | None, Where | None, Where | None]:
        """First, last and last stamped line."""
        last = self._last_lines(_ENDS)
        if not last:
            return None, None, None
        ending = where(last[-1])
        newest = ending
        for raw in reversed(last[:-1]):
            if newest.stamp is not None:
                break
            newest = where(raw)
        return where(self._head[0]), ending, newest if newest.stamp is not None else self._stamped


def _last_places(block: Block, most: int) -> list[int]:
    """The last of its lines that hold words, in order."""
    last = (at for at in range(len(block.lines) - 1, -1, -1) if block.lines[at].strip())
    return list(islice(last, most))[::-1]


def _last_words(block: Block, most: int) -> list[Raw]:
    """The same, of a bar its last state."""
    return [block.states(at)[-1] for at in _last_places(block, most)]


def _first_words(block: Block, most: int) -> list[Raw]:
    first = (at for at, line in enumerate(block.lines) if line.strip())
    return [block.states(at)[-1] for at in islice(first, most)]
