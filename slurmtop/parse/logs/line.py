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

    Peeled as well is what the speaker's own library puts in front, as far as it tells who and
    when: c10's and glog's head up to its ``] ``, NCCL's ``host:pid:tid [dev] ``. They are kept in
    ``head``. So ``text`` begins with ``[Rank 1] Watchdog caught``, ``NCCL INFO comm 0x5f rank``,
    ``misc/socket.cc:484 NCCL WARN wrong magic``, ``Sending process 42 closing signal``. The rank
    of a group (``[Rank 1]``, ``[PG 0 Rank 3]``), levels and names of loggers stay in ``text``.
    """

    text: str
    stream: str
    at: Where
    indented: bool = False
    """Blanks stood between the prefixes and ``text``; ``text`` keeps them."""
    head: str = ""
    """``E1003 18:37:01.83 ProcessGroupNCCL.cpp:607`` or ``node-a:815:864 [0]``, where one was."""


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
