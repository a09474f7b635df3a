"""Where a wish fits, as lines: the same on the Nodes screen and in plain output. Pure.

A line is made of spans; plain output takes their text.
"""

from collections.abc import Iterable
from datetime import datetime, tzinfo

from slurmtop.model.text import visible
from slurmtop.model.units import plural
from slurmtop.parse.slurm.hostlist import compress_hosts
from slurmtop.triage.fits import Chance, Fit, NodeChance, PartitionFit, Wish
from slurmtop.ui.present.job import moment_text
from slurmtop.ui.present.spans import Line, wrap

_NOT_LOOKED_AT = "priorities, limits, reservations and waiting jobs are Slurm's to weigh"
_WHYS = 6
_PARTITIONS = 3


def fit_lines(fit: Fit, now: datetime, width: int, zone: tzinfo | None = None) -> tuple[Line, ...]:
    """The answer first, then the nodes by partition, then why the others cannot."""
    best = fit.best
    role = "good" if fit.fits_now else "warn"
    out = _wrapped(visible(fit.says), width, role, first="", rest="  ")
    if best is None:
        return tuple(out)
    if best.chosen:
        names = compress_hosts([node.name for node in best.chosen])
        out += _wrapped(f"for example {visible(names)}", width, "strong")
    if len(best.types) > 1:
        kinds = ", ".join(f"{visible(kind)} on {count}" for kind, count in best.types)
        out += _wrapped(f"GPU types differ: {kinds}; name one in the wish", width, "warn")
    if best.by is not None:
        at = moment_text(best.by, now, zone)
        out += _wrapped(f"by {at} at the latest, if every job there ends by its limit", width, "")
    others = [other for other in fit.partitions[1:] if other.now or other.later]
    for other in others[:_PARTITIONS]:
        text = f"{visible(other.partition)}: {len(other.now)} now, {len(other.later)} later"
        out += _wrapped(text, width, "dim")
    if (more := len(others) - _PARTITIONS) > 0:
        out += _wrapped(f"and {plural(more, 'partition')} more", width, "dim")
    out += _wrapped(_NOT_LOOKED_AT, width, "dim")
    for text, names in _whys(best, fit.wish):
        out += _wrapped(f"{text}: {names}", width, "dim")
    return tuple(out)


def _whys(fit: PartitionFit, wish: Wish) -> list[tuple[str, str]]:
    """Why each of the others has nothing now, nodes with the same answer together."""
    groups = _grouped([*fit.later, *fit.no], wish)
    out = [(text, visible(compress_hosts(names))) for text, names in groups[:_WHYS]]
    left = sum(len(names) for _, names in groups[_WHYS:])
    return [*out, ("for other reasons", plural(left, "node"))] if left else out


def _grouped(chances: Iterable[NodeChance], wish: Wish) -> list[tuple[str, list[str]]]:
    """(why not now, names), the largest group first."""
    groups: dict[str, list[str]] = {}
    for one in chances:
        text = visible(one.says)
        if one.chance is Chance.LATER and one.free is not None and one.free < wish.gpus:
            text = f"fewer than {wish.gpus} free now"
        elif one.chance is Chance.UNKNOWN:
            text = f"not known: {text}"
        groups.setdefault(text, []).append(one.node.name)
    return sorted(groups.items(), key=lambda group: -len(group[1]))


def _wrapped(
    text: str, width: int, role: str, *, first: str = "  ", rest: str = "    "
) -> list[Line]:
    return [((line, role),) for line in wrap(text, max(20, width), first=first, rest=rest)]
