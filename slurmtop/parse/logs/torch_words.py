"""Words that many lines of PyTorch share: the group in brackets, messages over several lines.

Source: ``ProcessGroupNCCL.cpp`` of torch 1.10 to 2.13, for example::

    [PG ID 4 PG GUID 20(mesh_tp) Rank 1]  failure detected by watchdog at work sequence id: 3 …
    [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, OpType=BROADCAST, …
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from slurmtop.model.events.torch import Group
from slurmtop.model.trace import Event, Where
from slurmtop.parse.logs.line import Message

#: Digits of a number that can mean something; more are garbage.
_MOST_DIGITS = 19
#: Characters of ``Where.text``.
_SHOWN = 400

_GROUP = re.compile(
    r"\[(?:PG (?:ID (?P<id>\d{1,9}) PG GUID (?P<guid>[^\s(\]]{0,80})(?:\((?P<desc>[^)\]]{0,80})\))?"
    r"|(?P<uid>[^\s(\]]{1,80})(?: \((?P<uid_desc>[^)\]]{0,80})\))?) )?Rank (?P<rank>\d{1,9})\]"
)
#: ``E1003 18:37:01.83 …`` and ``E ProcessGroupNCCL.cpp:607``.
_LEVEL = re.compile(r"\[?(?P<level>[EWIFD])(?:\d{3,4} \d\d:| \w)")
_OPERATION = re.compile(r"OpType=(?P<op>[A-Z_]{2,40})\s?(?P<end>[,)])")


def number(text: str | None) -> int | None:
    """The number that ``text`` spells; None for no text, no number, or too many digits."""
    if text is None:
        return None
    text = text.strip()
    if len(text) > _MOST_DIGITS or not text.lstrip("-").isdecimal() or not text.isascii():
        return None
    try:
        return int(text)
    except ValueError:
        return None


def operation(text: str) -> str | None:
    """The OpType in ``text``; None where none is told, or where it is torn or cut."""
    found = _OPERATION.search(text)
    return None if found is None else found["op"]


def group_of(text: str) -> tuple[int | None, Group | None]:
    """The rank of a group and the group that brackets in ``text`` name; the fullest one wins.

    Up to torch 2.3 the number behind ``PG`` counts groups of one process (an id); 2.4 prints
    the group's name there, with its description behind it.
    """
    rank: int | None = None
    for found in _GROUP.finditer(text):
        if found["id"] is not None:
            return number(found["rank"]), Group(
                id=number(found["id"]), guid=found["guid"] or None, desc=found["desc"] or None
            )
        if found["uid"] is not None:
            if found["uid_desc"] is not None:
                group = Group(guid=found["uid"], desc=found["uid_desc"] or None)
            else:
                group = Group(id=number(found["uid"]))
            return number(found["rank"]), group
        if rank is None:
            rank = number(found["rank"])
    return rank, None


def shown(message: Message, start: int) -> Where:
    """``message.at`` with a text that surely holds what stands at ``start`` of the message."""
    telling = "".join(message.text[start : start + 60].split())
    if telling in "".join(message.at.text.split()):
        return message.at
    return replace(message.at, text=message.text[start : start + _SHOWN])


def level(message: Message) -> str:
    """``E``, ``W``, ``I``, ``F`` or ``D`` of c10's head; empty where there is none."""
    found = _LEVEL.match(message.head)
    return found["level"] if found is not None else ""


@dataclass(frozen=True, slots=True)
class Begun:
    """A message whose end stands in later lines.

    c10's log lines put their tag on the first line only; Python's tags stand on every line.
    """

    message: Message

    def goes_on(self, later: Message, *, reach: int = 1) -> bool:
        """Is ``later`` of the same writer, or a line without a writer right behind this one?"""
        if later.stream == self.message.stream:
            return True
        ahead = later.at.order - self.message.at.order
        return 0 < ahead <= reach and later.at.rank is None and not later.head

    def at(self, later: Message) -> Where:
        """``later.at`` with what the first line tells of the writer."""
        first, at = self.message.at, later.at
        if at.rank is not None or first.rank is None:
            return at
        return replace(
            at,
            rank=first.rank,
            rank_from=first.rank_from,
            local_rank=first.local_rank if at.local_rank is None else at.local_rank,
            task=first.task if at.task is None else at.task,
            host=first.host if at.host is None else at.host,
        )


def in_order(events: Iterable[Event]) -> list[Event]:
    """Events by the place of their lines."""
    return sorted(events, key=lambda event: event.at.order)
