"""Lines of a kernel that were written at another time than the run, or on nodes it does not name.

The kernel log of a node tells of all that ever ran there, a run's own log only of the run: where
both show the time, a kernel line of another day says nothing about the run, e.g.::

    2031-05-01T09:00:10 gpu05 kernel: NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus.
    2031-05-05 15:59:00 INFO Training finished.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from slurmtop.model.events.launch import ElasticFailure
from slurmtop.model.events.slurm import TaskExit
from slurmtop.model.events.system import HostHardware, KernelLink, KernelOom, PcieFatal, Xid
from slurmtop.model.trace import Clock, Where
from slurmtop.triage.finding import Finding, Weight
from slurmtop.triage.picture import Picture

KERNEL = (HostHardware, KernelLink, KernelOom, PcieFatal, Xid)
#: Two clocks of which one at least does not tell its zone may show hours apart.
_ZONES_S = 15 * 3_600.0
#: Clocks that tell their zones; what the kernel sees may be noticed by the run a while later.
_SLACK_S = 3_600.0
#: The times of a log reach from its beginning to its end where its first and last lines have one.
_NEAR_LINES = 40
#: A stamp without a year has that of its file, which may be the next one.
_YEAR_S = 365.25 * 86_400.0
_YEAR_SLACK_S = 2 * 86_400.0


def of_other_times(picture: Picture) -> frozenset[tuple[str, int]]:
    """(source, order) of the kernel's lines that are known to be of another time."""
    kernel = [event for event in picture.traces.events if isinstance(event, KERNEL)]
    if not kernel:
        return frozenset()
    begin, end = _window(picture, [event.at for event in kernel])
    out = set()
    for event in kernel:
        moment = picture.moment(event.at)
        if moment is None or event.at.stamp is None:
            continue
        before = 0.0 if begin is None else _beyond(picture, event.at, begin)
        behind = 0.0 if end is None else _beyond(picture, end, event.at)
        if _is_far(max(before, behind)):
            out.add((event.at.source, event.at.order))
    return frozenset(out)


def _beyond(picture: Picture, first: Where, second: Where) -> float:
    """Seconds by which the first line is older, less what the zones of two clocks may hide."""
    earlier, later = picture.moment(first), picture.moment(second)
    if earlier is None or later is None or first.stamp is None or second.stamp is None:
        return 0.0
    zoned = first.stamp.zoned and second.stamp.zoned
    return later - earlier - (_SLACK_S if zoned else _ZONES_S)


def _is_far(beyond_s: float) -> bool:
    """Is that more than nothing, and no whole years, as between stamps of which one has none?"""
    if beyond_s <= _YEAR_S - _YEAR_SLACK_S:
        return beyond_s > 0
    return min(beyond_s % _YEAR_S, -beyond_s % _YEAR_S) > _YEAR_SLACK_S


def _window(picture: Picture, kernel: Sequence[Where]) -> tuple[Where | None, Where | None]:
    """The first and the last line with a time of the run; None where it may reach further."""
    kernels = {at.source for at in kernel}
    # One line may tell several things: that memory ran out, and whom the kernel killed for it.
    lines = {(at.source, at.order) for at in kernel}
    own: dict[str, list[Where]] = {}
    for event in picture.traces.events:
        if (event.at.source, event.at.order) not in lines and "kernel:" not in event.at.text:
            own.setdefault(event.at.source, []).append(event.at)
    begins: list[Where | None] = []
    ends: list[Where | None] = []
    for source in picture.traces.sources:
        told = own.get(source.name, [])
        if not told or source.first is None or source.last is None:
            continue
        edges = () if source.name in kernels else (source.first, source.last_stamped)
        timed = [at for at in (*told, *edges) if at is not None and _is_timed(at)]
        begins.append(_near(source.first, timed))
        ends.append(None if source.cut else _near(source.last, timed))
    return _extreme(picture, begins, -1.0), _extreme(picture, ends, 1.0)


def _is_timed(at: Where) -> bool:
    return at.stamp is not None and at.stamp.clock is Clock.WALL


def _near(edge: Where, timed: Sequence[Where]) -> Where | None:
    near = min(timed, key=lambda at: abs(at.order - edge.order), default=None)
    return near if near is not None and abs(near.order - edge.order) <= _NEAR_LINES else None


def _extreme(picture: Picture, edges: Sequence[Where | None], sign: float) -> Where | None:
    """The outermost edge; None where one of them is not known."""
    known = [edge for edge in edges if edge is not None]
    if not known or len(known) < len(edges):
        return None
    return max(known, key=lambda at: sign * (picture.moment(at) or 0.0))


def without_strangers(picture: Picture, findings: Iterable[Finding]) -> list[Finding]:
    """The same findings; what only the kernel of a node tells that no line of the run names
    blames nobody and gives way to what the run itself tells.

    Who looks for the reason of one job often has the kernel logs of more nodes than it had.
    """
    known = _hosts_of_the_run(picture)
    return [_unless_known(one, known) for one in findings]


def _unless_known(finding: Finding, known: frozenset[str]) -> Finding:
    hosts = {culprit.host for culprit in finding.culprits if culprit.host is not None}
    if not known or not hosts or hosts & known or any(s.family != "kernel" for s in finding.shown):
        return finding
    return replace(
        finding,
        weight=min(finding.weight, Weight.PATTERN),
        summary=f"{finding.summary}; no line of the run names that node",
        culprits=(),
        next=(),
        explains=frozenset(),
    )


def _hosts_of_the_run(picture: Picture) -> frozenset[str]:
    hosts: set[str] = set(picture.rank_hosts.values())
    for event in picture.traces.events:
        if isinstance(event, KERNEL) or "kernel:" in event.at.text:
            continue
        told: tuple[str | None, ...] = (event.at.host, event.at.label)
        if isinstance(event, TaskExit):
            told = event.hosts
        elif isinstance(event, ElasticFailure):
            told = (*told, event.host)
        hosts |= {picture.name_of(host) for host in told if host is not None}
    return frozenset(hosts)
