"""Where the ranks of a job stand, by their stacks, as lines for the long report."""

from collections.abc import Iterator

from slurmtop.model.live import LiveFacts, Sample
from slurmtop.model.text import visible
from slurmtop.model.units import plural
from slurmtop.triage.live.call_site import StackClass, group_stacks
from slurmtop.triage.live.doing import site_text
from slurmtop.triage.next_steps import ranks_text
from slurmtop.triage.ranks import rank_processes
from slurmtop.triage.report import wrapped

#: More rows than these would be no summary.
MOST_CLASSES = 8
_MOST_HOSTS = 4
_MOST_FRAMES = 6
_INDENT = "  "
_MOTION = {True: "moved since the look before", False: "same place as before", None: ""}


def class_lines(live: LiveFacts | None, *, width: int = 80) -> tuple[str, ...]:
    """The classes of the newest look in which stacks were read, the largest first, each with the
    innermost calls of its main thread; empty where none were read. Safe to print."""
    samples = live.samples if live is not None else ()
    at = next((n for n in range(len(samples) - 1, -1, -1) if samples[n].stacks), None)
    if live is None or at is None:
        return ()
    classes = classes_of(samples[at], live.job, samples[at - 1] if at else None)
    if not classes:
        return ()
    out = [f"where the ranks stand ({plural(sum(one.count for one in classes), 'stack')} read)"]
    for one in classes[:MOST_CLASSES]:
        out += _rows(one, width)
    left = len(classes) - MOST_CLASSES
    if left > 0:
        out.append(f"{_INDENT}and {plural(left, 'more place')}")
    return tuple(line.rstrip() for line in out)


def classes_of(sample: Sample, job: str, before: Sample | None = None) -> tuple[StackClass, ...]:
    """The classes of one look at the nodes of ``job``."""
    looks = [probe.processes for probe in sample.probes if probe.processes is not None]
    was = before.stacks if before is not None else ()
    return group_stacks(sample.stacks, rank_processes(looks, job), was)


def _rows(one: StackClass, width: int) -> Iterator[str]:
    facts = [
        f"{_who(one)} on {_hosts(one.hosts)}",
        visible(site_text(one.site)),
        _MOTION[one.moved],
    ]
    yield from wrapped("; ".join(fact for fact in facts if fact), width, _INDENT)
    for frame in one.frames[:_MOST_FRAMES]:
        name = frame.file.rsplit("/", 1)[-1]
        line = f":{frame.line}" if frame.line is not None else ""
        yield from wrapped(visible(f"{frame.function} ({name}{line})"), width, _INDENT * 3)
    if not one.frames:
        yield f"{_INDENT * 3}no Python call"


def _who(one: StackClass) -> str:
    known = f"rank {ranks_text(one.ranks)}" if len(one.ranks) == 1 else ""
    if len(one.ranks) > 1:
        known = f"{len(one.ranks)} ranks ({ranks_text(one.ranks)})"
    others = (
        f"{plural(one.nameless, 'process', 'processes')} of unknown rank" if one.nameless else ""
    )
    return " and ".join(part for part in (known, others) if part)


def _hosts(hosts: tuple[str, ...]) -> str:
    shown = ", ".join(map(visible, hosts[:_MOST_HOSTS]))
    left = len(hosts) - _MOST_HOSTS
    return f"{shown} and {left} more" if left > 0 else shown
