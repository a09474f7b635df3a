"""From what the nodes of a job told to the rows of its ranks. Pure.

Ranks that do the same at the same place of the program are one row; where no stack could be read,
what the kernel shows of them has to do.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from slurmtop.model.facts import JobFacts
from slurmtop.model.live import LiveFacts, Sample
from slurmtop.model.probe import Activity
from slurmtop.model.process import NodeProcess, RankProcess
from slurmtop.model.stacks import Frame, ProcessStacks
from slurmtop.triage.live.call_site import normalised
from slurmtop.triage.live.doing import Doing, doing_of, site_text
from slurmtop.triage.live.motion import Motion, change, motion_of
from slurmtop.triage.ranks import rank_processes
from slurmtop.ui.present.where_ranks import RankRow

_MOVED = {Motion.MOVED: True, Motion.STILL: False, Motion.LOOPS: False, Motion.UNKNOWN: None}

Key = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class _Seen:
    """One look, by process."""

    activity: dict[Key, Activity]
    stacks: dict[Key, ProcessStacks]
    ticks: dict[str, int]
    arch: dict[str, str | None]


@dataclass(slots=True)
class _Row:
    ranks: list[int]
    nameless: int
    hosts: dict[str, None]
    pids: set[tuple[str, int]]


def rank_rows(facts: JobFacts) -> tuple[RankRow, ...]:
    """Where the ranks stood at the newest look that told of their processes."""
    live = facts.live
    sample = _newest(live)
    if live is None or sample is None:
        return ()
    looks = [probe.processes for probe in sample.probes if probe.processes is not None]
    before = _seen(live.samples[-2]) if sample is live.samples[-1] and live.two_samples else None
    now = _seen(sample)
    seconds = 0.0
    if before is not None:
        seconds = (live.samples[-1].began_at - live.samples[-2].began_at).total_seconds()
    rows: dict[tuple[object, ...], _Row] = {}
    for rank in rank_processes(looks, live.job):
        for process, number in _processes(rank):
            doing, moved = _of(process, now, before, seconds)
            place = tuple((one.function, one.file, one.line) for one in _frames(doing))
            key = (_does(doing), site_text(doing.site), moved, place)
            row = rows.setdefault(key, _Row([], 0, {}, set()))
            row.hosts[process.host] = None
            row.pids.add((process.host, process.pid))
            if number is None:
                row.nameless += 1
            else:
                row.ranks.append(number)
    return tuple(_row(key, row) for key, row in rows.items())


def _row(key: tuple[object, ...], row: _Row) -> RankRow:
    does, site, moved, _ = key
    return RankRow(
        ranks=tuple(sorted(set(row.ranks))),
        nameless=row.nameless,
        hosts=tuple(row.hosts),
        does=str(does),
        site=str(site),
        moved=moved if isinstance(moved, bool) else None,
        pids=frozenset(row.pids),
    )


def _newest(live: LiveFacts | None) -> Sample | None:
    """The newest whole look; while there is none, what has come of the first one."""
    samples = live.samples if live is not None else ()
    whole = [one for one in samples if one.whole]
    return whole[-1] if whole else samples[-1] if samples else None


def _processes(rank: RankProcess) -> Iterator[tuple[NodeProcess, int | None]]:
    yield rank.process, rank.rank
    for process in rank.perhaps:
        yield process, None


def _seen(sample: Sample) -> _Seen:
    return _Seen(
        {one.key: one for probe in sample.probes for one in probe.activity},
        {one.key: one for one in sample.stacks},
        {probe.host: probe.ticks_per_s for probe in sample.probes},
        {probe.host: probe.arch for probe in sample.probes},
    )


def _of(
    process: NodeProcess, now: _Seen, before: _Seen | None, seconds: float
) -> tuple[Doing, bool | None]:
    doing = _doing(process, now)
    if before is None:
        return doing, None
    changed = change(
        before.activity.get(process.key),
        now.activity.get(process.key),
        seconds,
        now.ticks.get(process.host, 100),
    )
    if process.key not in before.activity and process.key not in before.stacks:
        return doing, None
    return doing, _MOVED[motion_of(_doing(process, before), doing, changed)]


def _doing(process: NodeProcess, seen: _Seen) -> Doing:
    return doing_of(
        process,
        seen.activity.get(process.key),
        seen.stacks.get(process.key),
        seen.arch.get(process.host),
    )


def _frames(doing: Doing) -> tuple[Frame, ...]:
    return normalised(doing.frames)


def _does(doing: Doing) -> str:
    """``waits in a collective (all_reduce), data loading``."""
    text = f"{doing.act} ({doing.op})" if doing.op else str(doing.act)
    return f"{text}, {doing.phase}" if doing.phase is not None else text
