"""Joins the traces of all sources into one picture: who is who, and what belongs together."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from slurmtop.model.events.launch import ClosingSignal, DeathSignal, ElasticFailure, WorkersRestart
from slurmtop.model.events.slurm import SlurmNote
from slurmtop.model.trace import Traces, Where
from slurmtop.triage.clocks import clock_offsets
from slurmtop.triage.join_groups import read_groups
from slurmtop.triage.join_hosts import host_aliases
from slurmtop.triage.join_ranks import read_ranks, world_size
from slurmtop.triage.other_times import of_other_times
from slurmtop.triage.picture import GroupView, Picture, is_history
from slurmtop.triage.restarts import restarts

#: What a launcher still says of the attempt that is over, after it told of the new one.
_AFTERWORDS = (ClosingSignal, DeathSignal, ElasticFailure, WorkersRestart, SlurmNote)


def join(traces: Traces) -> Picture:
    """The picture of these traces. Total: any events in any order, no error."""
    aliases = host_aliases(traces)
    newest = _newest_attempts(traces)
    restarted = restarts(traces)

    def name_of(host: str) -> str:
        return aliases.get(host.lower(), host)

    def is_current(at: Where) -> bool:
        return at.attempt >= newest.get(at.source, 0) and not is_history(at, restarted)

    ranks = read_ranks(traces, name_of, is_current)
    groups = read_groups(traces, name_of, is_current, ranks.written)
    world = world_size(traces, is_current) or _world_by_groups(traces, groups, ranks.seen)
    picture = Picture(
        traces=traces,
        aliases=aliases,
        ranks=ranks.written,
        processes=ranks.processes,
        groups=groups,
        offsets_s=clock_offsets(traces),
        attempt=max(newest.values(), default=0),
        source_attempts=newest,
        restarts=restarted,
        world_size=world,
        rank_hosts=ranks.hosts,
        seen_ranks=ranks.seen,
    )
    return replace(picture, other_times=of_other_times(picture))


def _world_by_groups(
    traces: Traces, groups: Sequence[GroupView], seen: frozenset[int]
) -> int | None:
    """The size of the largest communicator, where ranks that log their set-up whole have called
    on the default group: its communicator is then among those that were logged."""
    if any(source.unread for source in traces.sources):
        return None
    sizes = {group.size for group in groups if group.kind == "nccl" and group.world}
    default = any(group.kind == "torch" and group.world and group.places for group in groups)
    size = next(iter(sizes)) if len(sizes) == 1 else None
    if size is None or not default or any(rank >= size for rank in seen):
        return None
    return size


def _newest_attempts(traces: Traces) -> dict[str, int]:
    """The newest attempt of each source that left more than the launcher's words on the old one."""
    newest: dict[str, int] = defaultdict(int)
    for event in traces.events:
        if not isinstance(event, _AFTERWORDS):
            newest[event.at.source] = max(newest[event.at.source], event.at.attempt)
    return dict(newest)
