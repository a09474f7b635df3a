"""One message of a log, its prefixes peeled off: what the format readers of this wing see."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from slurmtop.model.trace import Event, Where


@dataclass(frozen=True, slots=True)
class Message:
    """``text`` is the message alone: no launcher's tags, times or colours, wrapped parts joined.

    ``stream`` is the same for lines of one writer (the tags as written, without times): a
    traceback of one rank goes on in the next message of the same stream. ``at.text`` is the raw
    form. A raw line that holds several messages (a bar glued to an error, two ranks torn into
    one line) comes as several.
    """

    text: str
    stream: str
    at: Where
    indented: bool = False
    """Blanks stood between the prefixes and ``text``; ``text`` keeps them."""


class Reader(Protocol):
    """Reads one speaker's lines. One object a source; it may keep a few lines, never the file.

    ``words`` are byte strings of which a line must hold one to be shown; while ``open`` is true
    every line is shown (a table, a report, a traceback goes on). ``see`` and ``finish`` give the
    events that became whole, in order; they never raise, whatever the text is.
    """

    words: tuple[bytes, ...]

    @property
    def open(self) -> bool: ...

    def see(self, message: Message) -> Iterable[Event]: ...

    def finish(self) -> Iterable[Event]: ...
