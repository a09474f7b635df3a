"""All about the node under the cursor, as lines. Pure.

What Slurm says of it comes first; below it what a look at the node itself found, where this
person may look there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, tzinfo

from slurmtop.model.gpu import (
    GpuSample,
    KernelEvent,
    KernelLog,
    Level,
    NodeGpus,
    ratio_text,
    util_text,
)
from slurmtop.model.job import Job
from slurmtop.model.look import HostLook
from slurmtop.model.nic import NicPort
from slurmtop.model.node import GresPool, Node
from slurmtop.model.snapshot import Trouble
from slurmtop.model.text import fit, visible
from slurmtop.model.units import ago_text, bytes_text, clock_text, plural
from slurmtop.store.nodes import NodeRow
from slurmtop.triage.gpu_work import Work, work_of
from slurmtop.triage.gpus import judge_gpu, judge_node
from slurmtop.triage.node_words import free_text, state_meaning, state_word
from slurmtop.triage.xid import event_meaning, fold_events, xid_meaning
from slurmtop.ui.present.job import moment_text
from slurmtop.ui.present.nodes import size_text, state_role
from slurmtop.ui.present.spans import Line, cut_line, join, join_in_rows, wrap

LABEL = 9
_EVENTS = 3
_LEVEL_ROLES = {
    Level.OK: "dim",
    Level.UNKNOWN: "warn",
    Level.WARNING: "warn",
    Level.CRITICAL: "bad",
}
#: Full use at little power is no work: so looks a collective that waits for a peer.
_WAITS = {
    Work.WAITS: "WAITS, computes nothing: ",
    Work.PERHAPS_WAITS: "perhaps WAITS (full use at little power): ",
}
_OPENS_KERNEL = (
    "An admin opens it with kernel.dmesg_restrict=0 or by the group systemd-journal; "
    "root reads it there with: dmesg -T | grep Xid"
)


@dataclass(frozen=True, slots=True)
class Admission:
    """May this person look inside a node? ``allowed`` None: nobody has said yet. ``job`` is their
    own running job there."""

    allowed: bool | None
    job: Job | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCard:
    """What is known of one node. ``chosen`` is the job under the inner cursor, None outside.

    ``why_not`` is a sentence where nobody can look inside at all.
    """

    row: NodeRow
    now: datetime
    data_now: datetime
    zone: tzinfo | None
    me: str
    all_users: bool
    admission: Admission
    why_not: str = ""
    chosen: int | None = None
    look: HostLook | None = None
    kernel: KernelLog | None = None
    mine: frozenset[str] = frozenset()
    """What names the GPUs of this person's job there (UUIDs), as far as it is known."""


def detail_lines(card: NodeCard, width: int) -> tuple[Line, ...]:
    """The lines of the pane, the most wanted first."""
    out = [_title(card)]
    out += _reason(card, width)
    out.append(_labelled("GPUs", ((_gres_text(card.row.node), ""),)))
    out += _has(card.row.node, width)
    out += _jobs(card)
    out += _inside(card, width)
    return tuple(cut_line(line, width) for line in out)


def _labelled(label: str, line: Line) -> Line:
    return ((fit(label, LABEL), "label"), *line)


def _told(label: str, text: str, width: int, role: str) -> list[Line]:
    """Safe ``text`` on as many lines as it needs."""
    lines = wrap(text, max(20, width - LABEL))
    return [
        _labelled(label if index == 0 else "", ((line, role),)) for index, line in enumerate(lines)
    ]


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
        *_told("reason", visible(node.reason), width, "warn"),
        _labelled("", ((by + since, "dim"),)),
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
        parts.append(f"{count.shared} shared out in shards")
    if count.lost:
        parts.append(f"{count.lost} lost: Slurm finds fewer than are configured")
    return ", ".join(parts)


def _pool_text(pool: GresPool) -> str:
    kind = {"gpu": "GPU", "slice": "MIG slice", "shard": "shard"}.get(pool.kind, pool.kind)
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
    return [_labelled("" if index else "has", line) for index, line in enumerate(lines)]


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
        out.append(_labelled("" if out else "jobs", ((says, "dim"),)))
    elif not out:
        says = "none that you may see" if node.cpus_alloc else "none"
        out.append(_labelled("jobs", ((says, "dim"),)))
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


# What a look at the node found


def _inside(card: NodeCard, width: int) -> list[Line]:
    if card.why_not:
        return _told("inside", card.why_not, width, "dim")
    if card.admission.allowed is None:
        return _told("inside", "asking Slurm what you may do …", width, "busy")
    if not card.admission.allowed:
        says = (
            "you have no job running here: only who has one, an operator or root may look at its "
            "GPUs, with slurmtop or: ssh NODE nvidia-smi"
        )
        return _told("inside", says, width, "dim")
    look = card.look
    if look is None:
        return _told("inside", "looking at the node …", width, "busy")
    out: list[Line] = []
    if look.failure is not None:
        out += _told("inside", f"{visible(look.failure.sentence)}{_again(card)}", width, "bad")
    if look.gpus is not None:
        out.append(_source(card, look))
        out += _findings(look.gpus, width)
        out += _events(card, width)
        out += [_gpu_line(gpu, look.gpus, card.mine) for gpu in look.gpus.samples]
    elif look.failure is None:
        out += _told("inside", "no answer about GPUs yet", width, "dim")
    out += _nics(look.nics, width)
    out += _no_events(card, width)
    for hint in look.hints:
        out += _told("", visible(hint), width, "dim")
    return out


def _again(card: NodeCard) -> str:
    look = card.look
    if look is None or look.next_at is None:
        return ""
    return f" (next try in {ago_text((look.next_at - card.data_now).total_seconds())})"


def _source(card: NodeCard, look: HostLook) -> Line:
    by = "+".join(look.sources)
    way = f" over {look.way}" if look.way is not None else ""
    age = ""
    if look.gpus_at is not None:
        age = f", {ago_text((card.data_now - look.gpus_at).total_seconds())} old"
    old = look.failure is not None
    line: Line = ((f"{visible(by) or 'values'}{way}{age}", "warn" if old else "dim"),)
    return _labelled("inside", join([line, (("* of your job", "dim"),) if card.mine else ()]))


def _findings(gpus: NodeGpus, width: int) -> list[Line]:
    """What is wrong, worst first: it stands before the values."""
    out: list[Line] = []
    for finding in judge_node(gpus).findings:
        out += _told("", visible(finding.says), width, _LEVEL_ROLES[finding.level])
    for gpu in gpus.samples:
        if gpu.xid:
            out += _told("", _xid_text(gpu, gpu.xid), width, "warn")
    return out


def _xid_text(gpu: GpuSample, code: int) -> str:
    """The code that DCGM holds: the last one since its engine was started, whenever that was."""
    meaning = xid_meaning(code)
    name = "GPU ?" if gpu.index is None else f"GPU {gpu.index}"
    return f"{name}: last Xid {code}, time unknown: {meaning.says}; do: {meaning.action}"


def _gpu_line(gpu: GpuSample, gpus: NodeGpus, mine: frozenset[str]) -> Line:
    name = f"GPU {'?' if gpu.index is None else gpu.index}"
    if gpu.slice_id is not None:
        name += f" slice {visible(gpu.slice_id)}"
    own = "*" if gpu.uuid is not None and gpu.uuid in mine else " "
    judged = judge_gpu(gpu, gpus.samples)
    level = "" if judged.level is Level.OK else f"{judged.level.upper()} "
    return _labelled(
        name + own,
        (
            (f"{util_text(gpu):>7} ", ""),
            (f"{_power(gpu):>11} ", ""),
            (f"{_memory(gpu):>12} ", ""),
            (f"{_number(gpu.temp_c, 'C'):>5} ", ""),
            (f"{_number(gpu.sm_clock_mhz, 'MHz'):>8} ", "dim"),
            (f"SM {ratio_text(gpu.sm_active)} " if gpu.sm_active is not None else "", "dim"),
            (level, _LEVEL_ROLES[judged.level]),
            (_WAITS.get(work_of(gpu), ""), "warn"),
            (", ".join(_marks(gpu)), "dim"),
        ),
    )


def _power(gpu: GpuSample) -> str:
    limit = f"/{gpu.power_limit_w:.0f}" if gpu.power_limit_w is not None else ""
    return "n/a W" if gpu.power_w is None else f"{gpu.power_w:.0f}{limit} W"


def _memory(gpu: GpuSample) -> str:
    if gpu.mem_used_mib is None:
        return "n/a GiB"
    total = f"/{gpu.mem_total_mib / 1_024:.0f}" if gpu.mem_total_mib is not None else ""
    return f"{gpu.mem_used_mib / 1_024:.0f}{total} GiB"


def _number(value: float | None, unit: str) -> str:
    return f"n/a {unit}" if value is None else f"{value:.0f} {unit}"


def _marks(gpu: GpuSample) -> Iterator[str]:
    """Counters that a person looks for, also where they are in order."""
    if gpu.ecc_uncorrected is not None:
        yield f"ECC {gpu.ecc_uncorrected:.0f}"
    if gpu.remapped_uncorrectable is not None:
        yield f"remapped {gpu.remapped_uncorrectable:.0f}"
    notes = [one.says for one in judge_gpu(gpu).findings if one.level is Level.OK]
    yield from (visible(says) for says in notes if says not in ("not known", "no NVSwitch"))


def _events(card: NodeCard, width: int) -> list[Line]:
    """The newest events of the kernel log, the newest first."""
    out: list[Line] = []
    for event in reversed(fold_events(card.kernel.events if card.kernel else ())[-_EVENTS:]):
        out += _told("" if out else "Xid", _event_text(event), width, "warn")
    return out


def _no_events(card: NodeCard, width: int) -> list[Line]:
    """Why the kernel log tells nothing."""
    log = card.kernel
    if log is None or log.events:
        return []
    if log.failure is None:
        return _told("Xid", "none in the kernel log since the node started", width, "dim")
    opens = f" {_OPENS_KERNEL}" if log.failure.trouble is Trouble.DENIED else ""
    return _told("Xid", f"{visible(log.failure.sentence)}{opens}", width, "dim")


def _event_text(event: KernelEvent) -> str:
    meaning = event_meaning(event)
    code = "" if event.code is None else f"{event.kind.value.capitalize()} {event.code} "
    who = f" by {visible(event.process)}" if event.process else ""
    at = f"{visible(event.time_text)}: " if event.time_text else ""
    return (
        f"{at}{code}on {visible(event.bus_id)}{who}: {visible(meaning.says)};"
        f" do: {visible(meaning.action)}"
    )


def _nics(ports: tuple[NicPort, ...] | None, width: int) -> list[Line]:
    """A line for each port that has trouble; those that are alike and well in one."""
    out: list[Line] = []
    alike: dict[tuple[str, ...], list[NicPort]] = {}
    for port in ports or ():
        state = "state unknown" if port.state is None else visible(port.state)
        speed = visible(port.speed or "")
        if port.errors or port.works is not True:
            errors = f", {plural(port.errors, 'error')}" if port.errors else ""
            text = f"{visible(port.name)} {port.kind} {state} {speed}".rstrip() + errors
            role = "bad" if port.works is False else "warn" if port.errors else "dim"
            out += _told("" if out else "network", text + _rates([port]), width, role)
        else:
            alike.setdefault((port.kind, state, speed), []).append(port)
    for (kind, state, speed), found in alike.items():
        first, last = visible(found[0].name), visible(found[-1].name)
        names = first if len(found) == 1 else f"{first} … {last}"
        count = plural(len(found), f"{kind} port")
        text = f"{count} {state} {speed}".rstrip() + f" ({names}){_rates(found)}"
        out += _told("" if out else "network", text, width, "")
    return out


def _rates(ports: list[NicPort]) -> str:
    """What they carry together; "" until that is known of each."""
    into = [port.rx_bytes_s for port in ports if port.rx_bytes_s is not None]
    out = [port.tx_bytes_s for port in ports if port.tx_bytes_s is not None]
    if len(into) < len(ports) or len(out) < len(ports):
        return ""
    return f", in {bytes_text(sum(into))}/s, out {bytes_text(sum(out))}/s"
