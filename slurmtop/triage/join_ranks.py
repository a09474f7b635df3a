"""Who wrote each line: global ranks of processes, by the ladder of ``RankFrom``.

A stronger rung wins over a weaker one; two ranks on one rung contradict each other, and then the
process has none.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from slurmtop.model.events.launch import ChildEnded, ElasticFailure
from slurmtop.model.events.nccl import CommInit
from slurmtop.model.events.program import RankSeen
from slurmtop.model.events.reports import FlightReport, RasSummary
from slurmtop.model.trace import Event, RankFrom, Traces, Where
from slurmtop.triage.picture import Process

_RUNGS = tuple(RankFrom)
Name = Callable[[str], str]
Key = tuple[str | None, int, int]
"""A process: host by its one name, pid, attempt."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """``written`` maps (source, order) to the rank of that line's writer."""

    processes: tuple[Process, ...]
    written: Mapping[tuple[str, int], int]
    hosts: Mapping[int, str]
    seen: frozenset[int]


def read_ranks(traces: Traces, name_of: Name, is_current: Callable[[Where], bool]) -> Ranks:
    """The ranks of all lines; ``hosts`` and ``seen`` are those of the newest attempt."""
    told: dict[Key, dict[RankFrom, set[int]]] = defaultdict(lambda: defaultdict(set))
    for event in traces.events:
        at = event.at
        key = process_of(at, name_of)
        if key is not None:
            rungs = told[key]
            if at.rank is not None and at.rank_from is not None:
                rungs[at.rank_from].add(at.rank)
    for key, rank in _by_nccl(traces, name_of).items():
        told[key][RankFrom.NCCL].add(rank)
    ranks = {key: _strongest(rungs) for key, rungs in told.items()}
    labels = _task_labels(traces)
    written: dict[tuple[str, int], int] = {}
    hosts: dict[int, set[str]] = defaultdict(set)
    seen: set[int] = set()
    for event in traces.events:
        at = event.at
        found = _rank(at, ranks, process_of(at, name_of), labels)
        if found is None:
            continue
        written[at.source, at.order] = found
        if is_current(at):
            seen.add(found)
            if at.host is not None:
                hosts[found].add(name_of(at.host))
    for rank, host in _told_hosts(event for event in traces.events if is_current(event.at)):
        hosts[rank].add(name_of(host))
    processes = tuple(Process(key[0], key[1], ranks[key], key[2]) for key in told)
    sole = {rank: next(iter(names)) for rank, names in hosts.items() if len(names) == 1}
    return Ranks(processes, written, sole, frozenset(seen))


def process_of(at: Where, name_of: Name) -> Key | None:
    """The process that wrote a line; None where the line has no pid."""
    if at.pid is None:
        return None
    return (None if at.host is None else name_of(at.host), at.pid, at.attempt)


def world_size(traces: Traces, is_current: Callable[[Where], bool]) -> int | None:
    """The number of ranks by words that mean the whole job, None where they differ."""
    sizes: set[int] = set()
    for event in traces.events:
        if not is_current(event.at):
            continue
        if isinstance(event, RankSeen) and event.world:
            sizes.add(event.world)
        if isinstance(event, FlightReport) and event.world and _is_default(event.group):
            sizes.add(event.world)
        if isinstance(event, RasSummary) and event.ranks:
            sizes.add(event.ranks)
    return next(iter(sizes)) if len(sizes) == 1 else None


def _is_default(group: str | None) -> bool:
    return group is not None and "default_pg" in group


def _rank(
    at: Where, ranks: Mapping[Key, int | None], key: Key | None, labels: Mapping[str, set[int]]
) -> int | None:
    strong = at.rank_from in (RankFrom.TAG, RankFrom.MPI)
    if at.rank is not None and strong:
        return at.rank
    if key is not None and key in ranks and (ranks[key] is not None or at.rank_from is None):
        return ranks[key]
    if at.rank is not None:
        return at.rank
    return at.task if at.task in labels.get(at.source, ()) else None


def _strongest(rungs: Mapping[RankFrom, set[int]]) -> int | None:
    for rung in _RUNGS:
        if rungs.get(rung):
            return next(iter(rungs[rung])) if len(rungs[rung]) == 1 else None
    return None


def _by_nccl(traces: Traces, name_of: Name) -> dict[Key, int]:
    """Ranks by the largest communicator, where no two processes claim one rank of it."""
    largest: dict[int, int] = {}
    inits = [e for e in traces.of(CommInit) if e.rank is not None and e.nranks is not None]
    for event in inits:
        attempt = event.at.attempt
        largest[attempt] = max(largest.get(attempt, 0), event.nranks or 0)
    claims: dict[Key, set[int]] = defaultdict(set)
    owners: dict[tuple[int, int], set[Key]] = defaultdict(set)
    for event in inits:
        key = process_of(event.at, name_of)
        if key is None or event.rank is None or event.nranks != largest[event.at.attempt]:
            continue
        if event.nranks > 1:
            claims[key].add(event.rank)
            owners[event.at.attempt, event.rank].add(key)
    clashing = {attempt for (attempt, _), keys in owners.items() if len(keys) > 1}
    return {
        key: next(iter(ranks))
        for key, ranks in claims.items()
        if len(ranks) == 1 and key[2] not in clashing
    }


def _task_labels(traces: Traces) -> dict[str, set[int]]:
    """Per source, srun's labels that are ranks: one label above 0 is, and none is another rank."""
    pairs: dict[str, set[tuple[int, int]]] = defaultdict(set)
    labels: dict[str, set[int]] = defaultdict(set)
    for event in traces.events:
        at = event.at
        if at.task is not None:
            labels[at.source].add(at.task)
            if at.rank is not None and at.rank_from is RankFrom.TAG:
                pairs[at.source].add((at.task, at.rank))
    return {
        source: labels[source]
        for source, found in pairs.items()
        if all(task == rank for task, rank in found) and any(task > 0 for task, _ in found)
    }


def _told_hosts(events: Iterable[Event]) -> Iterable[tuple[int, str]]:
    for event in events:
        if isinstance(event, ElasticFailure) and event.rank is not None and event.host:
            yield event.rank, event.host
        elif isinstance(event, ChildEnded) and event.rank is not None and event.node:
            yield event.rank, event.node
        elif isinstance(event, RankSeen) and event.seen_rank is not None and event.on_host:
            yield event.seen_rank, event.on_host
