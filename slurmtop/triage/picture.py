"""All traces joined: who is who, what belongs together, what came first, how each log ends.

The rules read this and nothing else. Everything here is told by lines; where they do not tell,
it is None or missing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from slurmtop.model.events.nccl import Call
from slurmtop.model.trace import Clock, E, Source, Traces, Where


@dataclass(frozen=True, slots=True)
class Place:
    """Where one rank stands in its group.

    Positions are ordinals of the group's collectives: SeqNum of PyTorch, or the number of the
    line for NCCL's calls (then ``from_calls``). ``timed_out`` is the operation whose wait ended.
    ``at`` is the line that tells most.
    """

    rank: int
    """In the group."""
    at: Where
    enqueued: int | None = None
    completed: int | None = None
    timed_out: int | None = None
    op: str | None = None
    """In one spelling: ``allreduce``, ``allgather_base`` …; of ``timed_out`` or the last call."""
    numel_in: int | None = None
    numel_out: int | None = None
    calls: tuple[Call, ...] = ()
    """The newest collectives, where they were logged; the last one is ``enqueued``."""
    global_rank: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """A communicator or process group, with what is known of each of its ranks.

    ``key`` is comparable across ranks (commId, GUID, or the parent's key with split and color).
    ``size`` None: not told. ``world`` is true where its ranks are the global ones. Ranks of two
    attempts, or of groups that only share a name, are never in one view.
    """

    key: str
    kind: str
    """``nccl`` or ``torch``."""
    attempt: int = 0
    size: int | None = None
    world: bool = False
    desc: str | None = None
    places: tuple[Place, ...] = ()
    started: tuple[int, ...] = ()
    """Ranks with ``Init START``."""
    complete: tuple[int, ...] = ()
    """Ranks with ``Init COMPLETE``."""
    from_calls: bool = False


@dataclass(frozen=True, slots=True)
class Process:
    """A process as its lines name it. ``rank`` is its global rank where anything tells it."""

    host: str | None
    pid: int | None
    rank: int | None
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Restart:
    """``order`` is that of the first message of the newest run of a source; ``end`` is how the
    run before it ended."""

    order: int
    end: Where


def is_history(at: Where, newest: Mapping[str, Restart]) -> bool:
    """Does a line stand in front of the newest run of its source?"""
    restart = newest.get(at.source)
    return restart is not None and at.order < restart.order


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Picture:
    """The joined traces.

    ``aliases`` maps every name and address of a host that was tied to another by a line to the
    one name it is called by (its launcher's name for it, else its own). ``offsets_s`` are what
    to add to the stamps of a source so that all show one clock. ``world_size`` is that of the
    newest attempt, None where it is not told or told in two ways. Two pictures are never equal:
    what is told of one is remembered for it alone.
    """

    traces: Traces
    aliases: Mapping[str, str]
    ranks: Mapping[tuple[str, int], int]
    """(source, order) of a message to the global rank of its writer, where one is known."""
    processes: tuple[Process, ...] = ()
    groups: tuple[GroupView, ...] = ()
    offsets_s: Mapping[str, float]
    attempt: int = 0
    """The newest attempt: what an earlier one left is history."""
    source_attempts: Mapping[str, int] = field(default_factory=dict)
    """The newest attempt that each source itself tells of. A source that never tells of restarts
    stays at 0 while others count them."""
    restarts: Mapping[str, Restart] = field(default_factory=dict)
    """Sources in which a run began behind the end of another one: what stands before is history."""
    other_times: frozenset[tuple[str, int]] = frozenset()
    """(source, order) of lines of a kernel that were written at another time than the run."""
    world_size: int | None = None
    rank_hosts: Mapping[int, str]
    """Global rank to host, of the newest attempt."""
    seen_ranks: frozenset[int] = frozenset()
    """Global ranks of which at least one line was read."""

    def of(self, *kinds: type[E]) -> tuple[E, ...]:
        """The events of these kinds in the newest attempt, in reading order."""
        return tuple(event for event in self.traces.of(*kinds) if self.is_current(event.at))

    def is_current(self, at: Where) -> bool:
        """Does a line belong to this run, and to the newest attempt that its source tells of?"""
        if is_history(at, self.restarts) or (at.source, at.order) in self.other_times:
            return False
        return at.attempt >= self.source_attempts.get(at.source, 0)

    def rank_of(self, at: Where) -> int | None:
        """The global rank of the writer of a line; None where nothing tells it for sure."""
        return self.ranks.get((at.source, at.order), at.rank)

    def host_of(self, at: Where) -> str | None:
        """The host of the writer of a line, by the name it is called by."""
        return None if at.host is None else self.name_of(at.host)

    def name_of(self, host: str) -> str:
        """One name for a host, whichever of its names or addresses is given."""
        return self.aliases.get(host.lower(), host)

    def moment(self, at: Where) -> float | None:
        """When a line was written, on the clock all sources share; None where not comparable."""
        stamp = at.stamp
        if stamp is None or stamp.clock is not Clock.WALL:
            return None
        return stamp.seconds + self.offsets_s.get(at.source, 0.0)

    def time_of(self, at: Where) -> datetime | None:
        """The moment as aware UTC, where the line itself tells its zone."""
        stamp, moment = at.stamp, self.moment(at)
        if stamp is None or moment is None or not stamp.zoned:
            return None
        try:
            return datetime.fromtimestamp(moment, UTC)
        except (OverflowError, ValueError, OSError):
            return None

    def before(self, first: Where, second: Where) -> bool | None:
        """Was ``first`` written before ``second``? None where nothing tells."""
        if first.source == second.source:
            return first.order < second.order
        a, b = self.moment(first), self.moment(second)
        if a is None or b is None or a == b or not self._one_zone(first, second):
            return None
        return a < b

    def _one_zone(self, first: Where, second: Where) -> bool:
        """Stamps with a zone and stamps without one may be hours apart for the same moment."""
        if first.stamp is None or second.stamp is None:
            return False
        if first.stamp.zoned == second.stamp.zoned:
            return True
        return any(self.offsets_s.get(at.source, 0.0) != 0.0 for at in (first, second))

    def earliest(self, events: Iterable[E]) -> E | None:
        """The event that came first: by the clock where all have one, else by reading order."""
        firsts: dict[str, E] = {}
        for event in events:
            known = firsts.get(event.at.source)
            if known is None or event.at.order < known.at.order:
                firsts[event.at.source] = event
        if not firsts:
            return None
        places = {source.name: n for n, source in enumerate(self.traces.sources)}
        found, *others = sorted(
            firsts.values(), key=lambda e: (places.get(e.at.source, len(places)), e.at.source)
        )
        moments = {one.at.source: self.moment(one.at) for one in firsts.values()}
        zones = {one.at.stamp.zoned for one in firsts.values() if one.at.stamp is not None}
        if len(zones) > 1 or any(moment is None for moment in moments.values()):
            return found
        for one in others:
            if (moments[one.at.source] or 0.0) < (moments[found.at.source] or 0.0):
                found = one
        return found

    def source_of(self, at: Where) -> Source | None:
        return next((one for one in self.traces.sources if one.name == at.source), None)
