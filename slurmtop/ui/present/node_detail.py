"""All about the node under the cursor, as lines. Pure.

What Slurm says of it comes first; below it what a look at the node itself found, where this
person may look there.
"""

from slurmtop.model.job import Job
from slurmtop.model.node import GresPool, Node
from slurmtop.model.text import fit, visible
from slurmtop.model.units import ago_text, clock_text, plural
from slurmtop.triage.node_words import free_text, state_meaning, state_word
from slurmtop.ui.present.job import moment_text
from slurmtop.ui.present.node_card import LABEL, NodeCard, labelled, told
from slurmtop.ui.present.node_inside import inside_lines
from slurmtop.ui.present.nodes import size_text, state_role
from slurmtop.ui.present.spans import Line, cut_line, join, join_in_rows


def detail_lines(card: NodeCard, width: int) -> tuple[Line, ...]:
    """The lines of the pane, the most wanted first."""
    out = [_title(card)]
    out += _reason(card, width)
    out.append(labelled("GPUs", ((_gres_text(card.row.node), ""),)))
    out += _has(card.row.node, width)
    out += _jobs(card)
    out += inside_lines(card, width)
    return tuple(cut_line(line, width) for line in out)


def _title(card: NodeCard) -> Line:
    node = card.row.node
    state = ((" ".join(state_word(node)), state_role(card.row)),)
    raw = ((f"Slurm says {visible(node.state.text)}", "dim"),)
    meaning = state_meaning(node) if node.reason is None else ""
    return join(
        [((visible(node.name), "strong"),), state, raw, ((meaning, ""),) if meaning else ()]
    )


def _reason(card: NodeCard, width: int) -> list[Line]:
    node = card.row.node
    if node.reason is None:
        return []
    by = f"by {visible(node.reason_user)}" if node.reason_user else "nobody says by whom"
    since = ""
    if node.reason_at is not None:
        ago = ago_text((card.now - node.reason_at).total_seconds())
        since = f" since {moment_text(node.reason_at, card.now, card.zone)} ({ago})"
    return [
        *told("reason", visible(node.reason), width, "warn"),
        labelled("", ((by + since, "dim"),)),
    ]


def _gres_text(node: Node) -> str:
    if node.gres is None:
        return "Slurm does not say what GPUs it has"
    if not node.gres:
        return "none"
    count = node.gpu_count()
    parts = [_pool_text(pool) for pool in node.gres]
    if count.total:
        free = free_text(node)
        shut = " (no job gets them now)" if free.startswith("(") else ""
        parts.append(f"{free.strip('()')} free{shut}")
    if count.shared:
        how = "by MPS" if any(pool.kind == "mps" for pool in node.gres) else "in shards"
        parts.append(f"{count.shared} shared out {how}")
    if count.lost:
        parts.append(f"{count.lost} lost: Slurm finds fewer than are configured")
    return ", ".join(parts)


def _pool_text(pool: GresPool) -> str:
    kind = {"gpu": "GPU", "slice": "MIG slice", "mps": "MPS share"}.get(pool.kind, pool.kind)
    total = "?" if pool.total is None else str(pool.total)
    used = "use not told" if pool.used is None else f"{pool.used} used"
    return f"{total} {visible(pool.type) + ' ' if pool.type else ''}{kind}s, {used}"


def _has(node: Node, width: int) -> list[Line]:
    def known(value: object) -> str:
        return "?" if value is None else str(value)

    memory = "memory ?"
    if node.mem_total_mib is not None:
        free = "?" if node.mem_free_mib is None else size_text(node.mem_free_mib)
        memory = f"memory {free} of {size_text(node.mem_total_mib)} free"
    load = "?" if node.cpu_load is None else f"{node.cpu_load:.2f}"
    parts = [
        f"CPUs {known(node.cpus_alloc)} of {known(node.cpus_total)} in use",
        f"load {load}",
        memory,
        f"partitions {', '.join(visible(name) for name in node.partitions) or '?'}",
    ]
    lines = join_in_rows([((part, ""),) for part in parts], max(20, width - LABEL))
    return [labelled("" if index else "has", line) for index, line in enumerate(lines)]


def _jobs(card: NodeCard) -> list[Line]:
    out: list[Line] = []
    for index, job in enumerate(card.row.jobs):
        sign = ">" if index == card.chosen else " "
        label = "jobs" if index == 0 else ""
        out.append(((fit(label, LABEL - 2), "label"), (f"{sign} ", "mark"), *_job(card, job)))
    node = card.row.node
    if not card.all_users:
        if node.cpus_alloc and not card.row.jobs:
            says = "none of yours; a shows everybody's"
        else:
            says = "only yours are asked for; a shows everybody's"
        out.append(labelled("" if out else "jobs", ((says, "dim"),)))
    elif not out:
        says = "none that you may see" if node.cpus_alloc else "none"
        out.append(labelled("jobs", ((says, "dim"),)))
    return out


def _job(card: NodeCard, job: Job) -> Line:
    mine = job.user == card.me
    ran = None if job.start is None else clock_text((card.now - job.start).total_seconds())
    parts = [
        ((visible(job.id.text), "strong"), (f" {visible(job.name)}", "")),
        ((visible(job.user), "strong" if mine else ""),),
        ((visible(job.state.word).lower() + (f" {ran}" if ran else ""), ""),),
        ((_share_text(job), "dim"),),
    ]
    return join([part for part in parts if part[0][0]])


def _share_text(job: Job) -> str:
    if not job.tres.gpus or not job.node_count:
        return ""
    return f"{plural(job.tres.gpus, 'GPU')} on {plural(job.node_count, 'node')}"
