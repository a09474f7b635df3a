"""Where would 4 nodes of 8 GPUs fit? Pure: nodes, known jobs and a wish in, an answer out.

It looks at what is free and at the state of the nodes. Priorities, limits, reservations and what
the scheduler holds free for others decide as well, and nobody but Slurm knows them.
"""

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from slurmtop.model.job import Job, LimitKind
from slurmtop.model.node import GpuCount, Node, Usable
from slurmtop.model.units import plural

_SHAPE = re.compile(r"\s*(\d{1,5})\s*[xX×*]\s*(\d{1,3})(?=\s|$)(.*)", re.DOTALL)
_NEEDS = "nodes x GPUs a node is wanted, e.g. 4x8, then a GPU type or a partition"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """``gpus`` is the number on each node; ``type`` and ``partition`` None where any will do."""

    nodes: int
    gpus: int
    type: str | None = None
    partition: str | None = None

    @property
    def text(self) -> str:
        more = "".join(f" {word}" for word in (self.type, self.partition) if word)
        return f"{self.nodes}x{self.gpus}{more}"


class Chance(StrEnum):
    NOW = "now"
    POWER_UP = "after power-up"
    LATER = "when jobs end"
    UNKNOWN = "unknown"
    NO = "no"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChance:
    """What one node has for a wish. ``says`` is why it has nothing now, "" where it has.

    ``free`` are GPUs that fit the wish. ``by`` is when enough of the known jobs there have ended
    at the latest; None where that is not known.
    """

    node: Node
    chance: Chance
    says: str = ""
    free: int | None = None
    by: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFit:
    """One partition: a job runs in one, so nodes of several do not add up.

    ``chosen`` are the nodes that would be taken now, ``by`` when there are enough at the latest,
    as far as the jobs are known. ``types`` counts the GPU types of the nodes that fit now.
    """

    partition: str
    now: tuple[NodeChance, ...]
    later: tuple[NodeChance, ...]
    no: tuple[NodeChance, ...]
    chosen: tuple[Node, ...] = ()
    by: datetime | None = None
    types: tuple[tuple[str, int], ...] = ()

    def enough_now(self, wish: Wish) -> bool:
        return len(self.now) >= wish.nodes

    def enough_later(self, wish: Wish) -> bool:
        return len(self.now) + len(self.later) >= wish.nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """``partitions``: the best first. ``says`` is the answer as one sentence."""

    wish: Wish
    partitions: tuple[PartitionFit, ...]
    says: str

    @property
    def best(self) -> PartitionFit | None:
        return self.partitions[0] if self.partitions else None

    @property
    def fits_now(self) -> bool:
        return self.best is not None and self.best.enough_now(self.wish)


def parse_wish(text: str, nodes: Iterable[Node]) -> Wish | str:
    """``4x8 h100 gpu-large`` as a wish; a sentence where it cannot be understood.

    What follows the numbers is a GPU type or a partition of ``nodes``; ``type:`` or ``part:`` in
    front says which, where both are called the same.
    """
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        return _NEEDS
    count, gpus = int(shape[1]), int(shape[2])
    if not count or not gpus:
        return "at least one node with one GPU is wanted"
    listed = tuple(nodes)
    types = {type.casefold(): type for node in listed for type in node.gpu_types}
    partitions = {name.casefold(): name for node in listed for name in node.partitions}
    found: dict[str, str] = {}
    for word in shape[3].split():
        kind, _, name = word.rpartition(":")
        kind = {"gpu": "type", "type": "type", "part": "part", "partition": "part"}.get(kind, kind)
        name = name.casefold()
        if kind in ("", "part") and name in partitions and not (not kind and name in types):
            kind, value = "part", partitions[name]
        elif kind in ("", "type") and name in types:
            kind, value = "type", types[name]
        else:
            return _unknown_word(word, types, partitions)
        if kind in found:
            return f"one {'partition' if kind == 'part' else 'GPU type'} is enough"
        found[kind] = value
    return Wish(nodes=count, gpus=gpus, type=found.get("type"), partition=found.get("part"))


def _unknown_word(word: str, types: dict[str, str], partitions: dict[str, str]) -> str:
    known = {**partitions, **types}
    near = difflib.get_close_matches(word.casefold(), known, n=1, cutoff=0.5)
    if near:
        return f"no GPU type or partition {word!r}; did you mean {known[near[0]]!r}?"
    there = ", ".join(known.values()) or "none is known"
    return f"no GPU type or partition {word!r}; there are: {there}"


def find_fit(
    wish: Wish,
    nodes: Iterable[Node],
    jobs_on: Callable[[str], Sequence[Job]] = lambda _name: (),
    *,
    all_jobs_known: bool = False,
) -> Fit:
    """Where ``wish`` fits. ``jobs_on`` gives the jobs that are known to be on a node;
    ``all_jobs_known`` says that these are everybody's."""
    listed = tuple(nodes)
    partitions: dict[str, list[NodeChance]] = {}
    totals = [node.gpu_count().total for node in listed]
    largest = max((one or 0 for one in totals), default=0) if None not in totals else None
    for node in listed:
        chance = node_chance(node, wish, jobs_on(node.name), largest=largest)
        for name in node.partitions:
            if wish.partition in (None, name):
                partitions.setdefault(name, []).append(chance)
    fits = [_partition_fit(name, found, wish) for name, found in partitions.items()]
    fits.sort(
        key=lambda fit: (
            not fit.enough_now(wish),
            not fit.enough_later(wish),
            -min(len(fit.now), wish.nodes),
            -len(fit.later),
        )
    )
    return Fit(
        wish=wish,
        partitions=tuple(fits),
        says=_sentence(wish, fits, all_jobs_known=all_jobs_known),
    )


def _partition_fit(name: str, found: Sequence[NodeChance], wish: Wish) -> PartitionFit:
    now = tuple(one for one in found if one.chance is Chance.NOW)
    later = tuple(one for one in found if one.chance in (Chance.LATER, Chance.POWER_UP))
    missing = wish.nodes - len(now)
    by = None
    if 0 < missing <= len(later):
        ends = sorted(one.by for one in later if one.by is not None)
        by = ends[missing - 1] if len(ends) >= missing else None
    return PartitionFit(
        partition=name,
        now=now,
        later=later,
        no=tuple(one for one in found if one.chance in (Chance.NO, Chance.UNKNOWN)),
        chosen=_choose(now, wish),
        by=by,
        types=_types(now),
    )


def _choose(now: Sequence[NodeChance], wish: Wish) -> tuple[Node, ...]:
    """The nodes that would be taken: of one type where there are enough of one."""
    if len(now) < wish.nodes:
        return ()
    by_type: dict[tuple[str, ...], list[Node]] = {}
    for one in now:
        by_type.setdefault(one.node.gpu_types, []).append(one.node)
    most = max(by_type.values(), key=len)
    chosen = most if len(most) >= wish.nodes else [one.node for one in now]
    return tuple(chosen[: wish.nodes])


def _types(found: Sequence[NodeChance]) -> tuple[tuple[str, int], ...]:
    counts = Counter("+".join(one.node.gpu_types) or "no type" for one in found)
    return tuple(counts.most_common())


def node_chance(
    node: Node, wish: Wish, jobs: Sequence[Job] = (), *, largest: int | None = None
) -> NodeChance:
    """What one node has for its share of ``wish``, whatever its partitions.

    ``largest`` is how many GPUs the largest node has, None where that is not known.
    """
    count = node.gpu_count(wish.type)
    fixed = _never(node, wish, count)
    if fixed is not None:
        return fixed
    free = count.free
    if (away := _away(node)) is not None:
        return NodeChance(node=node, chance=Chance.NO, says=away, free=free)
    if free is None:
        says = "Slurm does not say how many of its GPUs are free"
        return NodeChance(node=node, chance=Chance.UNKNOWN, says=says)
    usable = node.state.usable
    cpus = node.cpus_idle != 0 and node.state.base != "ALLOCATED"
    if free >= wish.gpus and cpus:
        return _free_now(node, usable, free)
    if free < wish.gpus:
        says = f"{free} of {_gpus_text(count.total, wish)} free"
    else:
        says = f"{plural(free, 'GPU')} free, but no CPU"
    return NodeChance(
        node=node,
        chance=Chance.LATER,
        says=says,
        free=free,
        by=_free_by(jobs, wish.gpus - free, largest) if free < wish.gpus else None,
    )


def _free_now(node: Node, usable: Usable, free: int) -> NodeChance:
    if usable is Usable.YES:
        return NodeChance(node=node, chance=Chance.NOW, free=free)
    if usable is Usable.AFTER_POWER_UP:
        says = "powered down: it starts when a job needs it"
        return NodeChance(node=node, chance=Chance.POWER_UP, says=says, free=free)
    if usable is Usable.SPOKEN_FOR:
        says = "free, but Slurm keeps it for a waiting job"
        return NodeChance(node=node, chance=Chance.LATER, says=says, free=free)
    if "COMPLETING" in node.state.flags:
        says = "being cleaned up after a job"
        return NodeChance(node=node, chance=Chance.LATER, says=says, free=free)
    says = "in a state that slurmtop does not know"
    return NodeChance(node=node, chance=Chance.UNKNOWN, says=says, free=free)


def _never(node: Node, wish: Wish, count: GpuCount) -> NodeChance | None:
    """What is no question of time: the wrong GPUs, or too few of them."""

    def no(says: str, chance: Chance = Chance.NO) -> NodeChance:
        return NodeChance(node=node, chance=chance, says=says)

    if node.gres is None:
        return no("Slurm does not say what GPUs it has", Chance.UNKNOWN)
    whole = node.gpu_count()
    if whole.total == 0:
        kinds = {pool.kind for pool in node.gres}
        if "slice" in kinds:
            return no("its GPUs are cut into MIG slices: none is whole")
        return no("only shares of GPUs" if kinds & {"shard", "mps"} else "no GPUs")
    if wish.type is not None and count.total == 0:
        if not node.gpu_types:
            return no("Slurm does not say what type its GPUs are", Chance.UNKNOWN)
        return no(f"{', '.join(node.gpu_types)}, not {wish.type}")
    if count.total is None:
        return no("Slurm does not say how many GPUs it has", Chance.UNKNOWN)
    whole_left = count.total - (count.lost or 0)
    if whole_left < wish.gpus:
        lost = f", {count.lost} of them lost" if count.lost else ""
        return no(f"has {_gpus_text(count.total, wish)}{lost}")
    return None


def _gpus_text(total: int | None, wish: Wish) -> str:
    kind = f"{wish.type} GPU" if wish.type else "GPU"
    return plural(total or 0, kind)


def _away(node: Node) -> str | None:
    """Why the state of a node keeps every new job off; None where it does not."""
    state = node.state
    flags = set(state.flags)
    for flag, says in _AWAY_WORDS:
        if flag in flags:
            return says
    if state.base in ("DOWN", "ERROR", "FUTURE"):
        return "down" if state.base != "FUTURE" else "not there yet"
    return None


_AWAY_WORDS = (
    ("NOT_RESPONDING", "does not respond"),
    ("INVALID_REG", "registered with less than is configured"),
    ("FAIL", "failing"),
    ("DRAIN", "drained"),
    ("MAINTENANCE", "in maintenance"),
    ("REBOOT_ISSUED", "rebooting"),
    ("REBOOT_REQUESTED", "about to reboot"),
    ("POWERING_DOWN", "powering down"),
    ("POWER_DOWN", "powering down"),
    ("POWER_DRAIN", "powering down"),
    ("RESERVED", "reserved"),
    ("BLOCKED", "blocked"),
    ("EXTERNAL", "not under Slurm's control"),
    ("DYNAMIC_FUTURE", "not there yet"),
)


def _free_by(jobs: Sequence[Job], missing: int, largest: int | None) -> datetime | None:
    """When jobs give back ``missing`` GPUs of a node at the latest: by their limits."""
    shares: list[tuple[datetime, int]] = []
    for job in jobs:
        share = _surely_here(job, largest)
        if job.limit.kind is LimitKind.SECONDS and job.end is not None and share:
            shares.append((job.end, share))
    given = 0
    for end, share in sorted(shares):
        given += share
        if given >= missing:
            return end
    return None


def _surely_here(job: Job, largest: int | None) -> int:
    """GPUs that a job holds at least on each of its nodes.

    Slurm may spread 4 GPUs on 2 nodes as 3 and 1. What is sure is only what no other node has
    room for: 16 on 2 nodes of 8 are 8 on each.
    """
    gpus, nodes = job.tres.gpus, job.node_count
    if gpus is None or not nodes:
        return 0
    if nodes == 1:
        return gpus
    return 0 if largest is None else max(0, gpus - (nodes - 1) * largest)


def _sentence(wish: Wish, fits: Sequence[PartitionFit], *, all_jobs_known: bool) -> str:
    what = f"{plural(wish.nodes, 'node')} of {_gpus_text(wish.gpus, wish)}"
    if not fits:
        where = f" in {wish.partition}" if wish.partition else ""
        return f"{what}: no node is known{where}"
    best = fits[0]
    if best.enough_now(wish):
        return f"{what} would fit now in {best.partition}, {len(best.now)} could take a share"
    have = f"{len(best.now)} of {wish.nodes} now in {best.partition}"
    if not best.enough_later(wish):
        could = len(best.now) + len(best.later)
        if any(one.chance is Chance.UNKNOWN for one in best.no):
            return f"{what}: {have}; of some nodes it is not known"
        if not could:
            return f"{what} fit nowhere: no node can give {wish.gpus} GPUs each"
        return f"{what} do not fit: {have}, at most {could} once other jobs end"
    powered = sum(1 for one in best.later if one.chance is Chance.POWER_UP)
    if len(best.now) + powered >= wish.nodes:
        return f"{what}: {have}; enough once nodes that are switched off have been started"
    if best.by is not None:
        return f"{what}: {have}; enough when jobs there have ended"
    known = "" if all_jobs_known else ", and not all of those are known"
    return f"{what}: {have}; the rest when jobs there end{known}"
