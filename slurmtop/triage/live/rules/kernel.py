"""What the kernel logs of the nodes add to a finding: how a rank ended, which GPU broke, and, as a
possibility only, servers and links of the whole node.

A line counts where it names a process of the job by its pid, or the job's own cgroup, and is newer
than the job. A line on anybody else's process is nobody's, and so is one whose time is not known.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from slurmtop.model.probe import KernelLine, KernelSays, NodeProbe
from slurmtop.model.text import visible
from slurmtop.model.verdict import EVIDENCE_CHARS, Culprit, Evidence, State
from slurmtop.triage.live.finding import LiveFinding, Weight
from slurmtop.triage.live.frames import Act
from slurmtop.triage.live.view import RankView, World
from slurmtop.triage.xid import XidClass, xid_meaning

#: ``dmesg`` tells whole seconds, and clocks differ by some.
_SLACK = timedelta(seconds=5)
#: A job goes on for a moment after what ends it; a log is written later than what it tells.
_BEFORE_QUIET = timedelta(seconds=120)
#: Codes of the driver with which a GPU is lost to the job.
_LOST = frozenset({109, 119, 120, 143})
#: Hardware codes that a job outlives.
_MILD = frozenset({63, 92, 93, 121, 160, 161, 168})
_ENDS = frozenset({KernelSays.MEMORY, KernelSays.CRASH})
_SHOWN = 2


@dataclass(frozen=True, slots=True)
class Told:
    """A line that counts, and whose process it names: ``rank`` where it is that of a rank."""

    host: str
    line: KernelLine
    rank: int | None = None


def with_kernel(world: World, finding: LiveFinding) -> LiveFinding:
    """``finding`` with what the kernel logs say of it. Nobody is taken off, and somebody is added
    only where the driver names the process of one rank and its broken GPU."""
    if finding.collective is not None and finding.collective.missing_ranks:
        finding = _with_ends(world, finding)
    if any(one.doing.act is Act.DISK for one in _named(world, finding)):
        finding = _with_storage(world, finding)
    if finding.weight is Weight.ALIKE and not finding.culprits:
        finding = _with_gpus(world, finding)
        finding = replace(finding, perhaps=(*finding.perhaps, *_links(world)))
    return finding


def killed_for_memory(world: World, host: str) -> bool:
    """Does the kernel log of ``host`` tell that a process of the job was killed for memory?"""
    return any(one.line.says is KernelSays.MEMORY for one in _ends(world, host))


# Whose lines count


def of_job(world: World, host: str) -> Iterator[Told]:
    """The lines on processes of the job, those that are there and those of the look before."""
    probe = world.probe(host)
    if probe is None or probe.failure is not None:
        return
    pids = _pids(world, host) if probe.kernel_pids else {}
    for line in probe.kernel:
        if not _since(world, line.at):
            continue
        names, rank = pids.get(line.pid or 0, (frozenset[str](), None))
        if names and (line.name is None or line.name[:15] in names):
            yield Told(host, line, rank)
        elif f"/job_{world.live.job}/" in f"{line.cgroup}/":
            yield Told(host, line)


def _pids(world: World, host: str) -> dict[int, tuple[frozenset[str], int | None]]:
    """By pid, and by the number of each thread, the names that the kernel may have for it, and
    the rank."""
    ranks = {one.process.key: one.rank for one in world.first_ranks}
    ranks |= {one.view.process.key: one.rank for one in world.ranks}
    out: dict[int, tuple[frozenset[str], int | None]] = {}
    for sample in world.live.samples[-2:]:
        probe = sample.probe_of(host)
        look = probe.processes if probe is not None else None
        for process in look.processes if look is not None else ():
            if probe is None or process.job != world.live.job:
                continue
            rank = ranks.get(process.key)
            out[process.pid] = (frozenset({process.name[:15]}), rank)
            activity = probe.activity_of(process)
            for thread in activity.threads if activity is not None else ():
                names = frozenset({thread.name[:15] or process.name[:15], process.name[:15]})
                out.setdefault(thread.tid, (names, rank))
    return out


def _since(world: World, at: datetime | None) -> bool:
    return at is not None and world.started_at is not None and at >= world.started_at - _SLACK


def _fits(world: World, at: datetime | None) -> bool:
    """Is it no older than the silence?"""
    quiet = world.live.log.quiet_s
    if at is None or not _since(world, at) or quiet is None or not world.live.samples:
        return False
    last = world.live.samples[-1].began_at - timedelta(seconds=quiet)
    return at >= last - _BEFORE_QUIET


# Ranks without a process


def _ends(world: World, host: str) -> list[Told]:
    """How processes of the job ended there. Of who is still there it tells no end."""
    there = {one.process.pid for one in world.others.get(host, ())}
    return [
        one
        for one in of_job(world, host)
        if one.line.says in _ENDS and one.line.pid not in there and _of_this_launch(world, one)
    ]


def _of_this_launch(world: World, told: Told) -> bool:
    """Not that of an earlier attempt: the ranks of now had been started."""
    starts = [one.view.process.started_at for one in world.ranks]
    known = [one for one in starts if one is not None]
    at = told.line.at
    return not known or (at is not None and at >= min(known) - _SLACK)


def _with_ends(world: World, finding: LiveFinding) -> LiveFinding:
    unseen = finding.collective.missing_ranks if finding.collective is not None else ()
    hosts = {one.host for one in finding.culprits if one.host is not None}
    found = [one for host in sorted(hosts) for one in _ends(world, host)]
    # What another process of the job came to (a worker of a loader) is no end of a rank.
    ours = [one for one in found if one.rank in unseen or (one.rank is None and one.line.cgroup)]
    if not ours or finding.state is not State.HUNG:
        return finding
    shown = tuple(_evidence(one.host, one.line, _end_words(one)) for one in ours[:_SHOWN])
    finding = replace(finding, shown=(*shown, *finding.shown))
    first = ours[0]
    if len(unseen) == 1 and finding.cls == "missing-rank":
        memory = first.line.says is KernelSays.MEMORY
        cls = "host-oom" if memory else "task-exit" if first.rank is not None else finding.cls
        how = "memory ran out there" if memory else "it crashed"
        reason = "the kernel killed it for lack of memory" if memory else "it crashed"
        finding = replace(
            finding,
            cls=cls,
            summary=f"{finding.summary} ({how}, by the kernel log)",
            culprits=tuple(
                replace(one, reason=f"{one.reason}: {reason}") for one in finding.culprits
            ),
        )
    return finding


def _end_words(told: Told) -> str:
    who = f"rank {told.rank}" if told.rank is not None else "a process of the job"
    if told.line.says is KernelSays.MEMORY:
        return f"the kernel killed {who} for lack of memory"
    return f"{who} crashed"


# GPUs


def _with_gpus(world: World, finding: LiveFinding) -> LiveFinding:
    """Xids on processes of the job. One rank is named by them: where the hardware is broken, and
    of no other rank there is any."""
    told = [
        one
        for host in world.answered
        for one in of_job(world, host)
        if one.line.says is KernelSays.XID and _fits(world, one.line.at)
    ]
    heavy = [one for one in told if _broken(one.line.code)]
    seen = tuple(_evidence(one.host, one.line, _xid_words(one)) for one in (heavy or told))
    ranks = {(one.host, one.rank) for one in heavy}
    host, rank = next(iter(ranks)) if len(ranks) == 1 else ("", None)
    if rank is None or finding.state is not State.HUNG:
        cards = () if told else _cards(world)
        return replace(finding, perhaps=(*finding.perhaps, *seen[:_SHOWN], *cards))
    first = heavy[0].line
    says = xid_meaning(first.code or 0).says
    gpu = first.bus_id or "its GPU"
    pid = next((one.view.pid for one in world.ranks if (one.host, one.rank) == (host, rank)), None)
    return replace(
        finding,
        cls="gpu-hw-fault",
        summary=f"rank {rank} on {visible(host)}: Xid {first.code} ({says}); {finding.summary}",
        culprits=(
            Culprit(rank=rank, host=host, gpu=gpu, pid=pid, reason=f"Xid {first.code}: {says}"),
        ),
        shown=(*seen[:_SHOWN], *finding.shown),
        confidence=None,
    )


def _broken(code: int | None) -> bool:
    if code is None or code in _MILD:
        return False
    return code in _LOST or xid_meaning(code).cls is XidClass.HARDWARE


def _xid_words(told: Told) -> str:
    who = f"rank {told.rank}" if told.rank is not None else "a process of the job"
    return f"{who}: {xid_meaning(told.line.code or 0).says}"


def _cards(world: World) -> tuple[Evidence, ...]:
    """Xids that name no process: the cards of a node may be those of another job."""
    found = [
        _evidence(host, line, f"on a GPU of that node: {xid_meaning(line.code or 0).says}")
        for host in world.answered
        for line in _lines(world.probe(host), KernelSays.XID)
        if line.pid is None and _fits(world, line.at) and _broken(line.code)
    ]
    return tuple(found[:_SHOWN])


# What is the node's and not the job's


def _named(world: World, finding: LiveFinding) -> list[RankView]:
    pids = {(one.host, one.pid) for one in finding.culprits if one.pid is not None}
    if finding.cls == "io-stuck" and not pids:
        return list(world.ranks)
    return [one for one in world.ranks if (one.host, one.view.pid) in pids]


def _with_storage(world: World, finding: LiveFinding) -> LiveFinding:
    disk = [one for one in _named(world, finding) if one.doing.act is Act.DISK]
    pids = {(one.host, one.view.pid) for one in disk}
    blocked = [
        _evidence(one.host, one.line, "the kernel finds that it does not come back")
        for host in sorted({one.host for one in disk})
        for one in of_job(world, host)
        if one.line.says is KernelSays.BLOCKED and (host, one.line.pid) in pids
    ]
    servers = [
        _evidence(host, line, "it may be what it waits for")
        for host in sorted({one.host for one in disk})
        for line in _unmended(world, host, KernelSays.STORAGE)
    ]
    return replace(
        finding,
        shown=(*finding.shown, *blocked[:_SHOWN]),
        perhaps=(*finding.perhaps, *servers[:_SHOWN]),
    )


def _links(world: World) -> tuple[Evidence, ...]:
    """Links that went down on some nodes and not on most: whether the job talks through them
    nobody tells."""
    found = {
        host: lines for host in world.answered if (lines := _unmended(world, host, KernelSays.LINK))
    }
    if not found or 2 * len(found) >= max(2, len(world.answered)):
        return ()
    return tuple(
        _evidence(host, lines[-1], "it may be the way that the job talks")
        for host, lines in list(found.items())[:_SHOWN]
    )


def _unmended(world: World, host: str, says: KernelSays) -> list[KernelLine]:
    """The last line on each subject, where it does not say that all is well again."""
    last: dict[str | None, KernelLine] = {}
    for line in _lines(world.probe(host), says):
        last[line.subject] = line
    return [one for one in last.values() if not one.mended and _fits(world, one.at)]


def _lines(probe: NodeProbe | None, says: KernelSays) -> Iterable[KernelLine]:
    if probe is None or probe.failure is not None:
        return ()
    return (one for one in probe.kernel if one.says is says)


def _evidence(host: str, line: KernelLine, says: str) -> Evidence:
    return Evidence(
        family="kernel",
        host=host,
        source=f"kernel log of {host}",
        text=line.text[:EVIDENCE_CHARS],
        says=says,
        time=line.at,
    )
