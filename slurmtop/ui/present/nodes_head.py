"""The lines above the table of nodes, and what stands there when there are no rows. Pure."""

from dataclasses import dataclass
from datetime import datetime, tzinfo

from slurmtop.model.text import visible
from slurmtop.model.units import count_text, plural
from slurmtop.store.nodes import NodeTotals
from slurmtop.ui.present.header import head_block, mark_line, text_block, unknown_texts
from slurmtop.ui.present.health import Condition, HealthWords
from slurmtop.ui.present.job import moment_text
from slurmtop.ui.present.spans import Line, Span, join, line_width


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesHead:
    """What the header says. ``totals`` is None until the nodes have answered once."""

    cluster: str
    totals: NodeTotals | None
    health: HealthWords
    calls: int
    all_users: bool = False
    jobs_old: bool = False
    """The jobs beside the nodes are older than they should be, or not known yet."""
    sort: str = "trouble"
    reverse: bool = False
    problems_only: bool = False
    read_only: bool = False
    dry_run: bool = False
    demo: str = ""
    replay: str = ""
    idle: bool = False
    way: str = ""
    """How slurmtop gets onto nodes, "" while that is not known."""


def nodes_header_lines(head: NodesHead, width: int) -> tuple[Line, ...]:
    """Two lines of at most ``width`` cells; more where the health needs more words."""
    marks = mark_line(
        demo=head.demo, replay=head.replay, read_only=head.read_only, dry_run=head.dry_run
    )
    name: Line = ((visible(head.cluster) or "slurmtop", "strong"),)
    left = join([name, *_totals(head.totals, short=False)])
    if line_width(left) > width - line_width(marks) - 1:
        left = join([name, *_totals(head.totals, short=True)])
    return head_block(left, marks, head.health, join(_modes(head)), width)


def _totals(totals: NodeTotals | None, *, short: bool) -> list[Line]:
    if totals is None:
        return [(("no count yet", "dim"),)]
    trouble = [(totals.broken, "broken", "bad"), (totals.drained, "drained", "warn")]
    if not short:
        trouble.append((totals.away, "away", "dim"))
    nodes: Line = ((plural(totals.nodes, "node"), "strong"),)
    counted: list[Line] = [((f"{count_text(n)} {word}", role),) for n, word, role in trouble if n]
    out = [join([nodes, *counted], ", ")]
    if totals.gpus:
        used, gpus = count_text(totals.used), count_text(totals.gpus)
        text = f"GPUs {used}/{gpus}{'' if short else ' used'}, {count_text(totals.free)} free"
        if totals.idle and not short:
            text += f", {count_text(totals.idle)} idle not to be had"
        if totals.lost:
            text += f", {count_text(totals.lost)} lost"
        out.append(((text, ""),))
    if totals.untold:
        what = "untold" if short else "told no count of GPUs"
        out.append(((f"{count_text(totals.untold)} {what}", "warn"),))
    return out


def _modes(head: NodesHead) -> list[Line]:
    out: list[Line] = []
    if head.problems_only:
        out.append((("only problems", "warn"),))
    if head.idle:
        out.append((("idle, asking less often", "dim"),))
    if head.sort != "trouble" or head.reverse:
        out.append(((f"by {head.sort}{', reversed' if head.reverse else ''}", "label"),))
    if head.way:
        out.append(((f"nodes by {head.way}", "dim"),))
    whose = "everybody's jobs" if head.all_users else "your jobs"
    old = " are old" if head.jobs_old else ""
    out.append(((whose + old, "warn" if old else "dim"),))
    out.append(((f"{head.calls} calls/min", "dim"),))
    return out


@dataclass(frozen=True, slots=True, kw_only=True)
class NoNodes:
    """Why the table may be empty. ``hidden`` counts nodes that the filter takes out."""

    health: HealthWords
    good_at: datetime | None
    hidden: int = 0
    filter_text: str = ""
    filter_error: str | None = None
    problems_only: bool = False


def no_nodes_lines(
    why: NoNodes, now: datetime, width: int, zone: tzinfo | None = None
) -> tuple[Line, ...]:
    """What stands in the place of rows. An outage never looks like a cluster without nodes."""
    not_empty = "This is not an empty cluster: nothing is known about its nodes."
    texts = unknown_texts(why.health, not_empty)
    if not texts and why.hidden:
        texts = [_hidden(why)]
        if why.filter_error:
            texts.append((why.filter_error, "warn"))
    return text_block(texts or _no_nodes(why, now, zone), width)


def _hidden(why: NoNodes) -> Span:
    nodes = plural(why.hidden, "node")
    if why.problems_only and not why.filter_text:
        return (f"No node is in trouble: {nodes} shown again with !", "good")
    return (f"No node matches {visible(why.filter_text)!r}: esc shows {nodes} again", "")


def _no_nodes(why: NoNodes, now: datetime, zone: tzinfo | None) -> list[Span]:
    at = moment_text(why.good_at, now, zone) if why.good_at is not None else "?"
    texts = [(f"Slurm names no nodes; last answer {at}", "")]
    if why.health.condition is Condition.STALE:
        texts.append((f"That may have changed: {why.health.body}", "bad"))
    return texts
