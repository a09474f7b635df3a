"""Nodes as lines of plain text and as JSON. Pure."""

from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Any

from slurmtop.cli.columns import column_lines, short_cell
from slurmtop.cli.masked import masked, masked_or_none
from slurmtop.model.job import Job
from slurmtop.model.node import GresPool
from slurmtop.model.text import visible
from slurmtop.model.units import ago_text, count_text, plural
from slurmtop.store.nodes import NodeRow, count_nodes, needs_admin
from slurmtop.triage.fits import Chance, Fit, NodeChance, PartitionFit
from slurmtop.triage.node_words import (
    free_text,
    lost_text,
    reason_text,
    state_word,
    type_text,
    used_text,
)
from slurmtop.ui.present.fits import fit_lines
from slurmtop.ui.present.spans import plain, wrap

NODES_SCHEMA = "slurmtop.nodes/1"
_HEADS = ("NODE", "STATE", "USED", "FREE", "LOST", "TYPE", "PART", "JOBS")
_RIGHT = frozenset({"USED", "FREE", "LOST"})
_MOST_CELLS = {"TYPE": 12, "PART": 14, "JOBS": 16}
_INDENT = "    "


def node_table(
    rows: Sequence[NodeRow], now: datetime, width: int, *, jobs_known: bool
) -> list[str]:
    """The nodes as columns, the titles first; a reason stands below its node, never cut.

    ``width`` is what the reasons are broken at, and the table without long names, too.
    """
    cells = [_HEADS, *(_cells(row, jobs_known=jobs_known) for row in rows)]
    heads, *lines = column_lines(cells, _RIGHT)
    out = [heads]
    for row, line in zip(rows, lines, strict=True):
        out.append(line)
        why = reason_text(row.node, now)
        if why:
            out.extend(wrap(why, max(40, width), first=_INDENT, rest=_INDENT))
    return out


def _cells(row: NodeRow, *, jobs_known: bool) -> tuple[str, ...]:
    node = row.node
    if not jobs_known:
        jobs = "?"
    elif len(row.jobs) > 1:
        jobs = f"{row.jobs[0].id.text} +{len(row.jobs) - 1}"
    else:
        jobs = row.jobs[0].id.text if row.jobs else ""
    cells = (
        node.name,
        " ".join(state_word(node)),
        used_text(node),
        free_text(node),
        lost_text(node),
        type_text(node),
        ",".join(node.partitions),
        jobs,
    )
    return tuple(
        short_cell(visible(text), _MOST_CELLS.get(head)) or "-"
        for head, text in zip(_HEADS, cells, strict=True)
    )


def nodes_summary(
    rows: Sequence[NodeRow], whole: int, sampled_at: datetime, now: datetime, age: str = ""
) -> str:
    """``8 nodes: 1 broken, 1 drained; 48 of 64 GPUs used, 0 free (0 s old)``.

    ``whole`` is how many there are without the filter; ``age`` stands in the place of an age.
    """
    totals = count_nodes([row.node for row in rows])
    parts = [(totals.broken, "broken"), (totals.drained, "drained"), (totals.away, "away")]
    trouble = ", ".join(f"{count_text(count)} {word}" for count, word in parts if count)
    of = f" of {count_text(whole)}" if whole != len(rows) else ""
    text = f"{count_text(len(rows))}{of} {plural(whole, 'node').split()[-1]}"
    text += f": {trouble}" if trouble else ""
    if totals.gpus:
        used = f"{count_text(totals.used)} of {plural(totals.gpus, 'GPU')} used"
        text += f"; {used}, {count_text(totals.free)} free"
        text += f", {count_text(totals.idle)} idle not to be had" if totals.idle else ""
        text += f", {count_text(totals.lost)} lost" if totals.lost else ""
    if totals.untold:
        text += f"; {plural(totals.untold, 'node')} told no count"
    return f"{text} ({age or ago_text((now - sampled_at).total_seconds()) + ' old'})"


def fit_text(fit: Fit, now: datetime, width: int, zone: tzinfo) -> list[str]:
    """Where the wish fits, line by line."""
    return [plain(line) for line in fit_lines(fit, now, width, zone)]


def node_dict(row: NodeRow, *, jobs_known: bool) -> dict[str, Any]:
    """One node for ``--json``: null for what Slurm did not say, ISO 8601 times with offset.

    ``gpus.free`` are neither used, lost nor shared; whether a job may have them says ``usable``.
    """
    node = row.node
    count = node.gpu_count()
    return {
        "name": node.name,
        "cluster": node.cluster or None,
        "state": node.state.text,
        "base": node.state.base,
        "flags": list(node.state.flags),
        "word": state_word(node)[1],
        "usable": str(node.state.usable),
        "in_trouble": needs_admin(node),
        "partitions": list(node.partitions),
        "default_partition": node.default_partition,
        "gpus": {
            "total": count.total,
            "used": count.used,
            "free": count.free,
            "lost": count.lost,
            "shared": count.shared,
            "types": list(dict.fromkeys(node.gpu_types)),
        },
        "gres": None if node.gres is None else [_pool_dict(pool) for pool in node.gres],
        "cpus": {"used": node.cpus_alloc, "idle": node.cpus_idle, "total": node.cpus_total},
        "cpu_load": node.cpu_load,
        "memory_mib": {"free": node.mem_free_mib, "total": node.mem_total_mib},
        "reason": masked_or_none(node.reason),
        "reason_user": node.reason_user,
        "reason_at": None if node.reason_at is None else node.reason_at.isoformat(),
        "jobs": [_job_dict(job) for job in row.jobs] if jobs_known else None,
    }


def _pool_dict(pool: GresPool) -> dict[str, Any]:
    return {"kind": pool.kind, "type": pool.type, "total": pool.total, "used": pool.used}


def _job_dict(job: Job) -> dict[str, Any]:
    return {"id": job.id.text, "name": masked(job.name), "user": job.user, "state": job.state.word}


def fit_dict(fit: Fit) -> dict[str, Any]:
    """The answer to ``--fit``, the best partition first."""
    wish = fit.wish
    return {
        "wish": {
            "nodes": wish.nodes,
            "gpus": wish.gpus,
            "type": wish.type,
            "partition": wish.partition,
        },
        "fits_now": fit.fits_now,
        "says": fit.says,
        "partitions": [_partition_dict(one) for one in fit.partitions],
    }


def _partition_dict(one: PartitionFit) -> dict[str, Any]:
    return {
        "partition": one.partition,
        "chosen": [node.name for node in one.chosen],
        "by_at_latest": None if one.by is None else one.by.isoformat(),
        "now": [chance.node.name for chance in one.now],
        "later": [_chance_dict(chance) for chance in one.later],
        "no": [_chance_dict(chance) for chance in one.no if chance.chance is Chance.NO],
        "unknown": [_chance_dict(chance) for chance in one.no if chance.chance is Chance.UNKNOWN],
    }


def _chance_dict(chance: NodeChance) -> dict[str, Any]:
    return {"node": chance.node.name, "free": chance.free, "why": chance.says}
