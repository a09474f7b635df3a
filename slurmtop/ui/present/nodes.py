"""A line of the Nodes screen: which columns fit, and what stands in them. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from slurmtop.model.text import cell_width, fit, visible
from slurmtop.store.nodes import NodeRow, trouble_rank
from slurmtop.triage.node_words import (
    free_text,
    lost_text,
    reason_text,
    state_word,
    type_text,
    used_text,
)
from slurmtop.ui.present.spans import Line, Span

GUTTER = 2
_RANK_ROLES = {0: "bad", 1: "warn", 2: "warn", 3: "dim"}
_WORD_ROLES = {"idle": "", "mixed": "good", "allocated": "good", "ending": "busy"}
_NAME_CELLS = (6, 20)


@dataclass(frozen=True, slots=True)
class NodesNow:
    """What a cell may depend on besides its row. ``lost`` is what a look found missing."""

    now: datetime
    all_users: bool = False
    lost: int = 0


def state_role(row: NodeRow) -> str:
    """The role of a node's state word."""
    rank = trouble_rank(row.node)
    return _RANK_ROLES.get(rank) or _WORD_ROLES.get(state_word(row.node)[1], "wait")


def _state(row: NodeRow, at: NodesNow) -> Span:
    return (" ".join(state_word(row.node)), state_role(row))


def _name(row: NodeRow, at: NodesNow) -> Span:
    return (visible(row.name), "strong")


def _used(row: NodeRow, at: NodesNow) -> Span:
    return (used_text(row.node), "")


def _free(row: NodeRow, at: NodesNow) -> Span:
    text = free_text(row.node)
    return (text, "good" if text.isdigit() and text != "0" else "dim")


def _lost(row: NodeRow, at: NodesNow) -> Span:
    return (lost_text(row.node, at.lost), "bad")


def _type(row: NodeRow, at: NodesNow) -> Span:
    return (type_text(row.node), "")


def _cpus(row: NodeRow, at: NodesNow) -> Span:
    node = row.node
    if node.cpus_total is None:
        return ("?", "dim")
    used = "?" if node.cpus_alloc is None else str(node.cpus_alloc)
    return (f"{used}/{node.cpus_total}", "")


def _memory(row: NodeRow, at: NodesNow) -> Span:
    node = row.node
    if node.mem_total_mib is None:
        return ("?", "dim")
    free = "?" if node.mem_free_mib is None else size_text(node.mem_free_mib)
    return (f"{free}/{size_text(node.mem_total_mib)}", "")


def size_text(mib: int) -> str:
    """A size in at most four cells: ``980M``, ``512G``, ``2.0T``."""
    if mib < 1_000:
        return f"{mib}M"
    gib = mib / 1_024
    if gib < 1_000:
        return f"{gib:.0f}G" if gib >= 9.95 else f"{gib:.1f}G"
    tib = gib / 1_024
    return f"{tib:.1f}T" if tib < 99 else f"{tib:.0f}T"


def _partitions(row: NodeRow, at: NodesNow) -> Span:
    return (",".join(visible(name) for name in row.node.partitions), "")


def jobs_text(row: NodeRow, *, all_users: bool) -> str:
    """``4711 llama``, ``3 jobs``; ``others'`` where somebody is there whom nobody asked about."""
    if len(row.jobs) == 1:
        job = row.jobs[0]
        return f"{visible(job.id.text)} {visible(job.name)}"
    if row.jobs:
        return f"{len(row.jobs)} jobs"
    return "others'" if row.node.cpus_alloc and not all_users else ""


def _jobs(row: NodeRow, at: NodesNow) -> Span:
    return (jobs_text(row, all_users=at.all_users), "" if row.jobs else "dim")


def _why(row: NodeRow, at: NodesNow) -> Span:
    return (reason_text(row.node, at.now), "" if row.node.reason is not None else "dim")


@dataclass(frozen=True, slots=True)
class NodeColumn:
    """``rank`` 0 always stays; the highest rank goes first when the screen is narrow.

    ``grow`` cells may be added, in the order of the table.
    """

    name: str
    title: str
    width: int
    rank: int
    cell: Callable[[NodeRow, NodesNow], Span]
    right: bool = False
    grow: int = 0


NODE_COLUMNS: tuple[NodeColumn, ...] = (
    NodeColumn("name", "NODE", 8, 0, _name),
    NodeColumn("state", "STATE", 12, 0, _state),
    NodeColumn("used", "USED", 5, 0, _used, right=True),
    NodeColumn("free", "FREE", 4, 0, _free, right=True),
    NodeColumn("lost", "LOST", 4, 2, _lost, right=True),
    NodeColumn("type", "TYPE", 6, 3, _type, grow=6),
    NodeColumn("cpus", "CPUS", 7, 6, _cpus, right=True),
    NodeColumn("memory", "MEM FREE", 9, 7, _memory, right=True),
    NodeColumn("partition", "PART", 6, 5, _partitions, grow=10),
    NodeColumn("jobs", "JOBS", 10, 4, _jobs, grow=12),
    NodeColumn("why", "WHY", 22, 1, _why, grow=10_000),
)

NodeLayout = tuple[tuple[NodeColumn, int], ...]


def name_width(rows: Sequence[NodeRow]) -> int:
    """Cells for the longest name, within reason."""
    least, most = _NAME_CELLS
    return max(least, min(most, max((cell_width(visible(row.name)) for row in rows), default=0)))


def lay_out_nodes(width: int, *, name_cells: int = 8) -> NodeLayout:
    """The columns that fit ``width`` cells; what has no room is left out, the least needed
    first."""
    chosen = list(NODE_COLUMNS)
    widths = {column.name: column.width for column in chosen}
    widths["name"] = name_cells
    room = width - GUTTER

    def need() -> int:
        return sum(widths[column.name] for column in chosen) + len(chosen) - 1

    while need() > room and any(column.rank for column in chosen):
        chosen.remove(max(chosen, key=lambda column: column.rank))
    while need() > room and len(chosen) > 1:
        chosen.pop()
    if need() > room:
        widths[chosen[0].name] = max(1, room)
    spare = room - need()
    # The reason is wanted readable before anything else is made wider, then the jobs.
    for column in sorted(chosen, key=lambda column: column.name not in ("why", "jobs")):
        wanted = 16 if column.name == "why" else column.grow
        add = max(0, min(spare, wanted))
        widths[column.name] += add
        spare -= add
    if chosen[-1].grow > spare > 0:
        widths[chosen[-1].name] += spare
    return tuple((column, widths[column.name]) for column in chosen)


def _put(text: str, width: int, right: bool) -> str:
    pad = width - cell_width(text)
    return " " * pad + text if right and pad >= 0 else fit(text, width)


_SORTED_COLUMN = {"name": "name", "free": "free", "partition": "partition", "jobs": "jobs"}


def nodes_header_line(layout: NodeLayout, sort: str, reverse: bool) -> Line:
    """The titles; the sorted column has an arrow where there is room for it."""
    spans: list[Span] = [(" " * GUTTER, "label")]
    for index, (column, width) in enumerate(layout):
        title = column.title
        if column.name == _SORTED_COLUMN.get(sort) and len(title) < width:
            title += "▴" if reverse else "▾"
        spans.append(((" " if index else "") + _put(title, width, column.right), "label"))
    return tuple(spans)


def node_line(
    row: NodeRow, layout: NodeLayout, at: NodesNow, *, cursor: bool, fits: bool = False
) -> Line:
    """One row. The first cells say in signs: the cursor, and (``+``) that the wish fits there."""
    signs = (">" if cursor else " ") + ("+" if fits else " ")
    spans: list[Span] = [(signs, "mark" if fits else "")]
    for index, (column, width) in enumerate(layout):
        text, role = column.cell(row, at)
        spans.append(((" " if index else "") + _put(text, width, column.right), role))
    return tuple(spans)


def node_tick(row: NodeRow, at: NodesNow) -> str:
    """Changes exactly when something besides the row changes what it shows."""
    why = reason_text(row.node, at.now) if row.node.reason_at is not None else ""
    return f"{at.lost} {at.all_users} {why}"
