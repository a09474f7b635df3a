"""The rows of the Nodes screen: nodes with the jobs on them, filtered and sorted, cursor by name.

An answer that changed nothing costs a comparison a node; a row object is kept as long as what it
shows stays the same, so that only what changed is painted again.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any

from slurmtop.model.job import Job, Phase
from slurmtop.model.node import Node, Usable
from slurmtop.store.node_query import EVERY_NODE, NodeQuery, NodeSeen, free_gpus, node_text
from slurmtop.store.query_keys import Expand, no_expand

#: Names of the orders, as the ``s`` key goes through them.
NODE_SORTS = ("trouble", "name", "free", "partition", "jobs")

_BROKEN = frozenset({"NOT_RESPONDING", "FAIL", "INVALID_REG"})
_AWAY = frozenset(
    {
        "MAINTENANCE",
        "REBOOT_REQUESTED",
        "REBOOT_ISSUED",
        "POWERING_DOWN",
        "POWER_DOWN",
        "POWER_DRAIN",
        "RESERVED",
        "BLOCKED",
        "EXTERNAL",
    }
)
_HELD_BY = (Phase.RUNNING, Phase.SUSPENDED, Phase.ENDING)
_DIGITS = re.compile(r"(\d+)")


def trouble_rank(node: Node) -> int:
    """0 broken or GPUs lost, 1 drained, 2 not known, 3 away for a while, 4 in order."""
    flags = set(node.state.flags)
    if node.state.base in ("DOWN", "ERROR") or flags & _BROKEN or node.gpus_lost:
        return 0
    if "DRAIN" in flags:
        return 1
    if flags & _AWAY or node.state.base == "FUTURE":
        return 3
    return 2 if node.state.usable is Usable.UNKNOWN else 4


def needs_admin(node: Node) -> bool:
    """True for a node that somebody has to bring back: broken, drained, or in a strange state."""
    return trouble_rank(node) <= 2


@lru_cache(maxsize=16_384)
def natural_name(name: str) -> tuple[tuple[str, int], ...]:
    """An order in which gpu2 stands before gpu10."""
    parts = _DIGITS.split(name)
    return tuple(
        (text, int(digits[:18]) if digits else -1)
        for text, digits in zip(parts[::2], [*parts[1::2], ""], strict=True)
    )


@dataclass(frozen=True, slots=True, eq=False)
class NodeRow:
    """One line: a node, and the jobs that are known to be on it."""

    node: Node
    jobs: tuple[Job, ...] = ()

    @property
    def name(self) -> str:
        return self.node.name


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTotals:
    """What there is in all. Sums are of what Slurm told; ``untold`` nodes told no count of GPUs.

    ``free`` GPUs may be had now; ``idle`` are neither used nor lost, but on a node that takes no
    job now.
    """

    nodes: int = 0
    broken: int = 0
    drained: int = 0
    away: int = 0
    gpus: int = 0
    used: int = 0
    free: int = 0
    idle: int = 0
    lost: int = 0
    untold: int = 0


def count_nodes(nodes: Sequence[Node]) -> NodeTotals:
    """Each node counted once, whatever partitions it is in."""
    ranks = [trouble_rank(node) for node in nodes]
    gpus = used = free = idle = lost = untold = 0
    for node in nodes:
        count = node.gpu_count()
        untold += count.total is None or count.used is None
        gpus += count.total or 0
        used += count.used or 0
        lost += count.lost or 0
        now = free_gpus(node)
        free += now or 0
        idle += 0 if now is None else (count.free or 0) - now
    return NodeTotals(
        nodes=len(nodes),
        broken=ranks.count(0),
        drained=ranks.count(1),
        away=ranks.count(3),
        gpus=gpus,
        used=used,
        free=free,
        idle=idle,
        lost=lost,
        untold=untold,
    )


def _negative(value: float | None) -> float | None:
    return None if value is None else -value


#: None sorts last, whichever way round the order is.
_SORT_KEYS: dict[str, Callable[[NodeRow], Any]] = {
    "trouble": lambda row: (trouble_rank(row.node), natural_name(row.name)),
    "name": lambda row: natural_name(row.name),
    "free": lambda row: (
        None
        if free_gpus(row.node) is None
        else (_negative(free_gpus(row.node)), natural_name(row.name))
    ),
    "partition": lambda row: (row.node.partitions, natural_name(row.name)),
    "jobs": lambda row: (-len(row.jobs), natural_name(row.name)),
}


class NodeView:
    """``set_nodes`` and ``set_jobs`` take in what Slurm said; ``rows`` are ready to be painted.

    ``expand`` reads host lists.
    """

    def __init__(self, *, expand: Expand = no_expand) -> None:
        self._expand = expand
        self._nodes: tuple[Node, ...] = ()
        self._jobs_on: dict[str, tuple[Job, ...]] = {}
        self._jobs_version: object = None
        self._kept: dict[str, NodeRow] = {}
        self._texts: dict[int, str] = {}
        self._order: list[NodeRow] | None = None
        self._rows: list[NodeRow] | None = []
        self._totals = NodeTotals()
        self._cursor: str | None = None
        self._cursor_index = 0
        self.query: NodeQuery = EVERY_NODE
        self.sort = "trouble"
        self.reverse = False
        self.problems_only = False
        self.rebuilds = 0
        """How often rows were put in order: what the budget tests count."""

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Every node, whatever the filter says."""
        return self._nodes

    def set_nodes(self, nodes: Sequence[Node]) -> bool:
        """Take in an answer. False where the rows stay as they are."""
        if tuple(nodes) == self._nodes:
            return False
        kept = self._kept
        self._nodes = tuple(
            old.node if (old := kept.get(node.name)) is not None and old.node == node else node
            for node in nodes
        )
        self._totals = count_nodes(self._nodes)
        self._changed()
        return True

    def set_jobs(self, jobs: Sequence[Job], version: object) -> bool:
        """Take in the queue; ``version`` changes exactly when it does. False as above."""
        if version == self._jobs_version:
            return False
        self._jobs_version = version
        on: dict[str, list[Job]] = {}
        for job in jobs:
            if job.nodes and job.state.phase in _HELD_BY:
                for host in self._expand(job.nodes):
                    on.setdefault(host, []).append(job)
        found = {host: tuple(there) for host, there in on.items()}
        if found == self._jobs_on:
            return False
        self._jobs_on = found
        self._changed()
        return True

    def jobs_on(self, name: str) -> tuple[Job, ...]:
        """The jobs that are known to be on a node."""
        return self._jobs_on.get(name, ())

    def _changed(self) -> None:
        old, fresh = self._kept, {}
        for node in self._nodes:
            jobs = self._jobs_on.get(node.name, ())
            row = old.get(node.name)
            if row is None or row.node is not node or row.jobs != jobs:
                row = NodeRow(node, jobs)
            fresh[node.name] = row
        self._kept = fresh
        self._texts = {}
        self._order = None
        self._rows = None

    @property
    def rows(self) -> Sequence[NodeRow]:
        if self._rows is None:
            self._rows = self._build()
            self._follow_cursor()
        return self._rows

    @property
    def totals(self) -> NodeTotals:
        """What there is in all, whatever the filter says."""
        return self._totals

    def set_query(self, query: NodeQuery) -> None:
        self.query = query
        self._rows = None

    def set_problems_only(self, yes: bool) -> None:
        self.problems_only = yes
        self._rows = None

    def set_sort(self, sort: str, *, reverse: bool = False) -> None:
        """``sort`` is one of :data:`NODE_SORTS`; ValueError otherwise."""
        if sort not in _SORT_KEYS:
            raise ValueError(f"no sort order {sort!r}")
        self.sort, self.reverse = sort, reverse
        self._order = None
        self._rows = None

    @property
    def cursor_index(self) -> int:
        self.rows  # noqa: B018 - the index follows the rows
        return self._cursor_index

    @property
    def cursor_row(self) -> NodeRow | None:
        rows = self.rows
        return rows[self._cursor_index] if rows else None

    def move_to(self, index: int) -> None:
        rows = self.rows
        if rows:
            self._cursor_index = max(0, min(index, len(rows) - 1))
            self._cursor = rows[self._cursor_index].name

    def _build(self) -> list[NodeRow]:
        rows = self._ordered()
        if self.problems_only:
            rows = [row for row in rows if needs_admin(row.node)]
        if self.query:
            query, text = self.query, self._text
            rows = [row for row in rows if query.matches(NodeSeen(row.node, row.jobs, text(row)))]
        return rows

    def _text(self, row: NodeRow) -> str:
        found = self._texts.get(id(row))
        if found is None:
            found = self._texts[id(row)] = node_text(row.node, row.jobs)
        return found

    def _ordered(self) -> list[NodeRow]:
        if self._order is None:
            self.rebuilds += 1
            key = _SORT_KEYS[self.sort]
            known: list[tuple[Any, NodeRow]] = []
            unknown: list[NodeRow] = []
            for row in self._kept.values():
                value = key(row)
                if value is None:
                    unknown.append(row)
                else:
                    known.append((value, row))
            known.sort(key=itemgetter(0), reverse=self.reverse)
            self._order = [row for _, row in known] + unknown
        return self._order

    def _follow_cursor(self) -> None:
        rows = self._rows
        if not rows:
            return
        if self._cursor is not None:
            for index, row in enumerate(rows):
                if row.name == self._cursor:
                    self._cursor_index = index
                    return
        # Gone or hidden by a filter: the place stays, and the name is remembered.
        self._cursor_index = max(0, min(self._cursor_index, len(rows) - 1))
