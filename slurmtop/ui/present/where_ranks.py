"""Where the ranks of a running job are, as lines: one row for all that stand at the same place.

Eight ranks or eight thousand make the same few rows. Whom the verdict names stands on top; whether
a row moved between the two looks is told by a word, and by a role besides. Pure.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from slurmtop.model.text import cell_width, fit, visible
from slurmtop.model.units import count_text, plural
from slurmtop.parse.slurm.hostlist import compress_hosts
from slurmtop.triage.next_steps import ranks_text
from slurmtop.ui.present.spans import Line, Span, cut_line, wrap

MOST_ROWS = 8
_GAP = 2
_WHO_SHARE = 0.34
_HOSTS_CELLS = 18
_NAMED = "! named by the verdict"
_MOTION = {True: ("moved", "good"), False: ("stands", "warn"), None: ("?", "dim")}
_MOTION_CELLS = 6
_MOTION_MEANS = {
    True: "moved: its stack, or what it has done, changed between the two looks",
    False: "stands: nothing of it changed between the two looks",
    None: "?: seen once only, or nothing to compare",
}
_INDENT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRow:
    """Processes that do the same at the same place.

    ``ranks`` are global numbers; ``nameless`` counts processes whose rank is not known. ``does``
    is what they do in words, ``site`` the call site in the user's own code (hostile text).
    ``moved`` None: not known. ``pids`` are (host, pid) of those in it, to know whom the verdict
    names.
    """

    ranks: tuple[int, ...] = ()
    nameless: int = 0
    hosts: tuple[str, ...] = ()
    does: str = ""
    site: str = ""
    moved: bool | None = None
    pids: frozenset[tuple[str, int]] = frozenset()

    @property
    def count(self) -> int:
        return len(self.ranks) + self.nameless


def rank_lines(
    rows: Sequence[RankRow],
    culprits: Collection[int],
    pids: Collection[tuple[str, int]],
    width: int,
    *,
    stale: str = "",
) -> tuple[Line, ...]:
    """All rows under one heading, each line at most ``width`` cells; nothing for no row.

    ``culprits`` are the global ranks that the verdict names, ``pids`` the (host, pid) of those of
    which it knows no rank. ``stale``: why this may no longer be so.
    """
    if not rows:
        return ()
    named = [_is_named(row, culprits, pids) for row in rows]
    order = sorted(range(len(rows)), key=lambda at: (not named[at], rows[at].count))
    shown = order[:MOST_ROWS]
    title: Line = (("Where the ranks are", "label"),)
    if stale:
        title = (*title, (f"  as seen then: {stale}", "warn"))
    out: list[Line] = [(), title]
    room = max(10, int(width * _WHO_SHARE))
    whos = {at: _who(rows[at], room) for at in shown}
    hosts = {at: _hosts(rows[at].hosts) for at in shown}
    who_cells = min(room, max(cell_width(text) for text in whos.values()))
    host_cells = max(cell_width(text) for text in hosts.values())
    for at in shown:
        head = _head(rows[at], named[at], whos[at], hosts[at], (who_cells, host_cells))
        out += _with_place(rows[at], head, width)
    left = [rows[at] for at in order[MOST_ROWS:]]
    if left:
        ranks = plural(sum(row.count for row in left), "rank")
        more = f"{plural(len(left), 'more place')} with {ranks}"
        out.append(((" " * _INDENT + more, "dim"),))
    legend = [_NAMED] if any(named[at] for at in shown) else []
    legend += [text for moved, text in _MOTION_MEANS.items() if any(r.moved is moved for r in rows)]
    out += _legend(legend, width)
    return tuple(cut_line(line, width) for line in out)


def _is_named(row: RankRow, culprits: Collection[int], pids: Collection[tuple[str, int]]) -> bool:
    return any(rank in culprits for rank in row.ranks) or any(pid in row.pids for pid in pids)


def _who(row: RankRow, room: int) -> str:
    """``rank 11``, ``15 ranks: 0-10, 12-15``; only how many where that does not fit."""
    if not row.ranks:
        return f"{plural(row.nameless, 'process', 'processes')}, rank unknown"[:room]
    if row.count == 1:
        return f"rank {row.ranks[0]}"
    count = plural(row.count, "rank")
    text = f"{count}: {ranks_text(row.ranks)}"
    if row.nameless:
        text += f", {count_text(row.nameless)} unknown"
    return text if len(text) <= room else count


def _hosts(hosts: Iterable[str]) -> str:
    names = tuple(dict.fromkeys(hosts))
    if not names:
        return ""
    text = visible(compress_hosts(names))
    if cell_width(text) <= _HOSTS_CELLS:
        return text
    return plural(len(names), "node") if len(names) > 1 else fit(text, _HOSTS_CELLS)


def _head(row: RankRow, named: bool, who: str, hosts: str, cells: tuple[int, int]) -> list[Span]:
    word, role = _MOTION[row.moved]
    gap = " " * _GAP
    return [
        ("  ", ""),
        ("! " if named else "  ", "bad"),
        (fit(who, cells[0]), "bad" if named else ""),
        (gap + fit(hosts, cells[1]), "label"),
        (gap, ""),
        (fit(word, _MOTION_CELLS), role),
        (gap, ""),
    ]


def _with_place(row: RankRow, head: list[Span], width: int) -> list[Line]:
    """What they do, and where: on the same line where both fit, else below it."""
    does, site = visible(row.does) or "not known what", visible(row.site)
    used = sum(cell_width(text) for text, _ in head)
    beside = f"{does}  {site}" if site else does
    if used + cell_width(beside) <= width:
        return [(*head, (does, ""), (f"  {site}" if site else "", "strong"))]
    if used + cell_width(does) <= width:
        below = wrap(site, width, first=" " * _INDENT, rest=" " * _INDENT)
        return [(*head, (does, "")), *(((piece, "strong"),) for piece in below[:2])]
    text = f"{does} at {site}" if site else does
    below = wrap(text, width, first=" " * _INDENT, rest=" " * _INDENT)
    return [tuple(head), *(((piece, ""),) for piece in below[:3])]


def _legend(words: Iterable[str], width: int) -> list[Line]:
    return [
        ((piece, "dim"),) for text in words for piece in wrap(text, width, first="  ", rest="    ")
    ]
