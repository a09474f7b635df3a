"""The two ends of broken connections: who complains of whom, and which end is common to all.

One pair has two ends and its log shows one of them, so it names nobody. An end is worth naming
when hosts that have nothing else in common all complain of it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from slurmtop.model.events.nccl import NcclWarn
from slurmtop.model.events.torch import GlooError
from slurmtop.model.trace import Event
from slurmtop.model.verdict import Culprit
from slurmtop.triage.picture import Picture
from slurmtop.triage.rules import lines

#: A line that tells of a connection that ended, with its other end where that is told.
Ended = NcclWarn | GlooError


@dataclass(frozen=True, slots=True)
class Pair:
    """``near`` complains of ``far``; hosts by the picture's name, an address as it was written."""

    near: str | None
    far: str


def pairs_of(picture: Picture, warns: Iterable[Ended]) -> tuple[Pair, ...]:
    """The distinct pairs of hosts, in the order of their lines."""
    found: dict[Pair, None] = {}
    for one in warns:
        if one.peer:
            found.setdefault(Pair(lines.host_of(picture, one.at), picture.name_of(one.peer)))
    return tuple(found)


def common_end(pairs: Sequence[Pair]) -> str | None:
    """The far end of which at least two other hosts complain, if every pair has it.

    A host that complains itself may still be it (both ends of a broken link do); one whose own
    complaints concern hosts outside the pairs with it may not, as then they are not all its own.
    """
    blamed: Counter[str] = Counter()
    for far in {pair.far for pair in pairs}:
        blamed[far] = len({pair.near for pair in pairs if pair.far == far and pair.near} - {far})
    named = [
        far
        for far, reporters in blamed.items()
        if reporters > 1 and all(far in (pair.near, pair.far) for pair in pairs)
    ]
    return named[0] if len(named) == 1 else None


def at_common_end(picture: Picture, warns: Sequence[Ended], reason: str) -> tuple[Culprit, ...]:
    end = common_end(pairs_of(picture, warns))
    return () if end is None else (Culprit(host=end, reason=reason),)


def link_of(picture: Picture, warns: Sequence[Ended]) -> tuple[Culprit, ...]:
    """A connection as such, when all lines concern one pair: it names neither end."""
    ends = {frozenset((p.near, p.far)) for p in pairs_of(picture, warns) if p.near}
    if len(ends) != 1:
        return ()
    two = sorted(one for one in next(iter(ends)) if one)
    reason = "the connection that failed; either end or the way between"
    return (Culprit(link=" - ".join(two), reason=reason),) if len(two) > 1 else ()


def between(picture: Picture, warns: Sequence[Ended]) -> str:
    """`` between node-a and 10.0.0.59``, `` towards 10.0.0.236`` or nothing, for a summary."""
    pairs = pairs_of(picture, warns)
    if len(pairs) == 1:
        near, far = pairs[0].near, pairs[0].far
        return f" between {near} and {far}" if near else f" towards {far}"
    ends = {pair.far for pair in pairs}
    return f" towards {ends.pop()}" if len(ends) == 1 else ""


def reporters(picture: Picture, events: Iterable[Event]) -> int:
    """How many processes wrote these lines."""
    return len({(*lines.writer(picture, one.at), one.at.source) for one in events})
