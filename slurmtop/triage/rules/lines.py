"""What the rules share: lines as evidence, who wrote them, what follows from a dead process."""

import re
from collections.abc import Iterable, Sequence

from slurmtop.model.events.nccl import CommCalls, CommInit, Connected, InitPhase
from slurmtop.model.events.program import Step
from slurmtop.model.events.reports import BenchRow
from slurmtop.model.events.slurm import Ending, StepEnded
from slurmtop.model.events.torch import GroupStatus, WatchdogTimeout
from slurmtop.model.trace import Event, Where
from slurmtop.model.verdict import Culprit, NextStep
from slurmtop.triage.finding import Shown
from slurmtop.triage.picture import Picture

#: What other processes report once one of a job has gone, whatever ended it.
AFTER_A_DEATH = frozenset(
    {
        "peer-died",
        "socket-reset",
        "net-timeout",
        "task-exit",
        "missing-rank",
        "watchdog-timeout-unattributed",
        "heartbeat-unattributed",
        "first-collective-stuck",
        "startup-skew",
        "rendezvous-timeout",
        "bootstrap-unreachable",
        "python-exception",
        "user-interrupt",
    }
)
#: What ranks report that wait for data which a broken transport never brings.
AFTER_A_STALL = frozenset(
    {
        "peer-died",
        "socket-reset",
        "missing-rank",
        "watchdog-timeout-unattributed",
        "heartbeat-unattributed",
        "first-collective-stuck",
        "startup-skew",
        "task-exit",
        "python-exception",
    }
)

_LINES = 4
#: Slurm's own reasons.
SLURMS = (Ending.TIME_LIMIT, Ending.PREEMPTION, Ending.NODE_FAILURE, Ending.REQUEUE)
#: What is seen so shortly before Slurm's line is an effect of it.
_GRACE_S = 60.0
#: What may stand in a command that people paste.
_HOST_NAME = re.compile(r"[A-Za-z0-9][\w.:-]{0,252}")


def host_of(picture: Picture, at: Where) -> str | None:
    """The host of a line's writer: by its own prefix, else by what its collector calls it."""
    own = picture.host_of(at)
    if own is not None or at.label is None:
        return own
    return picture.name_of(at.label)


def writer(picture: Picture, at: Where) -> tuple[str | None, int | None, int | None]:
    """(host, pid, rank) of a line's writer, as far as they are known."""
    return host_of(picture, at), at.pid, picture.rank_of(at)


def in_time(picture: Picture, events: Sequence[Event]) -> list[Event]:
    """The events by the common clock where all have one, else as they were read."""
    moments = [picture.moment(event.at) for event in events]
    if any(moment is None for moment in moments):
        return list(events)
    order = sorted(range(len(events)), key=lambda place: moments[place] or 0.0)
    return [events[place] for place in order]


def lines(
    picture: Picture, events: Iterable[Event], says: str, family: str = "log", limit: int = _LINES
) -> tuple[Shown, ...]:
    """One line of each writer, at most ``limit``, as evidence."""
    seen: dict[tuple[str | None, int | None, int | None, str], Shown] = {}
    for event in events:
        seen.setdefault(
            (*writer(picture, event.at), event.at.source), Shown(event.at, says, family)
        )
        if len(seen) >= limit:
            break
    return tuple(seen.values())


def hosts_seen(picture: Picture) -> frozenset[str]:
    """Every host that wrote at least one of the statements read."""
    named = (host_of(picture, event.at) for event in picture.traces.events)
    return frozenset(host for host in named if host is not None)


def failing(picture: Picture, events: Sequence[Event], reason: str) -> tuple[Culprit, ...]:
    """Whoever wrote lines that tell of **their own** fault.

    A fault that every rank reports, or every one of several hosts, is one of the program or the
    set-up: then nobody is named (on a single host, the host). Of several ranks without a host
    the first one is named, of several hosts each with its first rank.
    """
    told = in_time(picture, events)
    ranks = list(dict.fromkeys(r for e in told if (r := picture.rank_of(e.at)) is not None))
    everybody = len(ranks) > 1 and picture.seen_ranks <= set(ranks)
    hosts = list(dict.fromkeys(h for e in told if (h := host_of(picture, e.at)) is not None))
    if len(hosts) > 1 and hosts_seen(picture) <= set(hosts):
        return ()
    if not hosts:
        if not ranks or everybody:
            return ()
        return (Culprit(rank=ranks[0], host=picture.rank_hosts.get(ranks[0]), reason=reason),)
    named = []
    for host in hosts:
        own = [picture.rank_of(e.at) for e in told if host_of(picture, e.at) == host]
        rank = None if everybody else next((one for one in own if one is not None), None)
        named.append(Culprit(host=host, rank=rank, reason=reason))
    return tuple(named)


def everybody_speaks(picture: Picture) -> bool:
    """Is it one log of all ranks, or was at least one line of every rank read?

    What one log tells may be put right by another one, which has to be there.
    """
    logs = {e.at.source for e in picture.traces.events if picture.rank_of(e.at) is not None}
    logs |= {source.name for source in picture.traces.sources if source.rank is not None}
    if len(picture.traces.sources) <= 1 or (len(logs) == 1 and not _of_one_rank(picture)):
        return True
    world = picture.world_size
    return world is not None and len(picture.seen_ranks) >= world


def _of_one_rank(picture: Picture) -> bool:
    return any(source.rank is not None for source in picture.traces.sources)


def largest_group(picture: Picture) -> int | None:
    """How many ranks there are at least: the world's size, or that of the largest communicator."""
    sizes = [one.nranks for one in picture.of(CommInit) if one.nranks is not None]
    return max((picture.world_size or 0, *sizes)) or None


class Began:
    """Tells whether set-up came to its end: a communicator was ready, or the program moved on."""

    def __init__(self, picture: Picture) -> None:
        self._picture = picture
        self._orders: dict[str, int] = {}
        self._moments: dict[str, float] = {}
        self._unstamped: set[str] = set()
        kinds = (Connected, CommCalls, Step, BenchRow, WatchdogTimeout, GroupStatus)
        signs = [one.at for one in picture.of(*kinds)]
        signs += [one.at for one in picture.of(CommInit) if one.phase is not InitPhase.START]
        for at in signs:
            self._orders[at.source] = max(at.order, self._orders.get(at.source, at.order))
            moment = picture.moment(at)
            if moment is None:
                self._unstamped.add(at.source)
            else:
                self._moments[at.source] = max(moment, self._moments.get(at.source, moment))

    def __bool__(self) -> bool:
        return bool(self._orders)

    def after(self, at: Where, *, surely: bool = False) -> bool:
        """Did it so after this line? False where all that shows it is known to be older; with
        ``surely`` only what is known to be newer counts."""
        if self._orders.get(at.source, at.order) > at.order:
            return True
        others = self._orders.keys() - {at.source}
        moment = self._picture.moment(at)
        if moment is None:
            return bool(others) and not surely
        if any(self._moments.get(source, moment) > moment for source in others):
            return True
        return not surely and bool(others & self._unstamped)


def by_slurm(picture: Picture, at: Where, *endings: Ending) -> bool:
    """Did Slurm end it for a reason of its own, and not known to be long after this line?

    Ranks that are stopped close their connections, and their lines may stand before Slurm's.
    """
    for one in picture.of(StepEnded):
        if one.ending in endings:
            line, end = picture.moment(at), picture.moment(one.at)
            if line is None or end is None or end - line <= _GRACE_S:
                return True
    return False


def on_host(host: str, label: str, command: str, why: str) -> tuple[NextStep, ...]:
    """A command that reads something on a node of the job; none where the name is odd."""
    if _HOST_NAME.fullmatch(host) is None:
        return ()
    return (NextStep(label, f"ssh {host} {command}", "read", why),)
