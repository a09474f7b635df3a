"""GPUs of jobs as lines of plain text and as JSON. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from slurmtop.cli.columns import column_lines
from slurmtop.cli.masked import masked
from slurmtop.model.gpu import Answer, GpuSample, Level, NodeGpus, util_text
from slurmtop.model.job import Job, Tres
from slurmtop.model.look import HostLook
from slurmtop.model.process import RankProcess, Rung
from slurmtop.model.text import visible
from slurmtop.model.units import ago_text, plural
from slurmtop.store.gpu_metrics import METRICS, GpuMetric
from slurmtop.store.gpus import gpu_key
from slurmtop.triage.gpu_share import held_text
from slurmtop.triage.gpu_work import GpuRef, Work, odd_ones, ref_of, summarise, work_of
from slurmtop.triage.gpus import judge_gpu, judge_node, measured

GPUS_SCHEMA = "slurmtop.gpus/1"
_HEADS = ("NODE", "GPU", "RANK", "PID", "UTIL", "SM", "POWER", "MEMORY", "TEMP", "CLOCK", "STATE")
#: Columns of numbers stand at the right.
_RIGHT = frozenset({"GPU", "RANK", "UTIL", "SM", "POWER", "MEMORY", "TEMP", "CLOCK"})
#: Left out where no GPU has a value: of old drivers, and without DCGM.
_OPTIONAL = frozenset({"RANK", "PID", "SM", "CLOCK", "TEMP"})
_UNKNOWN = "-"
_WORK_WORDS = {
    Work.WAITS: "waits: a kernel is resident and does nothing",
    Work.PERHAPS_WAITS: "full but at low power: it may wait",
    Work.IDLE: "idle",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HostGpus:
    """One node of a job: the look at it and the GPUs there that are the job's.

    ``gpus`` is None where they cannot be seen or told from others; ``says`` tells why, or what
    else is to be said. ``held`` is how many Slurm gave the job there, None where that is not
    known. ``by_uuid`` are the ranks on each GPU, ``pids`` all processes on it.
    """

    look: HostLook
    gpus: tuple[GpuSample, ...] | None
    says: str = ""
    held: int | None = None
    by_uuid: Mapping[str, tuple[RankProcess, ...]] = field(default_factory=dict)
    age_s: float | None = None
    """Of the values; None where there are none."""

    @property
    def node(self) -> NodeGpus:
        """The answer of the node; a failed look is one that did not come."""
        look = self.look
        if look.gpus is not None:
            return look.gpus
        return NodeGpus(host=look.host, answer=Answer.UNREACHABLE, failure=look.failure)

    def ranks(self, gpu: GpuSample) -> tuple[RankProcess, ...]:
        return self.by_uuid.get(gpu.uuid or "", ())

    def pids(self, gpu: GpuSample) -> tuple[int, ...]:
        """Of the ranks on it, or else of whatever runs there."""
        ranks = tuple(rank.process.pid for rank in self.ranks(gpu))
        if ranks or self.look.gpus is None or gpu.uuid is None:
            return ranks
        processes = self.look.gpus.processes or ()
        return tuple(one.pid for one in processes if one.gpu_uuid == gpu.uuid)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobGpus:
    """The GPUs of one job; ``job`` None: nodes looked at by themselves.

    ``not_asked`` are nodes of the job that this look was not to go to. Without any node in either,
    Slurm's list of its nodes could not be read.
    """

    job: Job | None
    hosts: tuple[HostGpus, ...]
    not_asked: tuple[str, ...] = ()

    @property
    def id(self) -> str | None:
        return None if self.job is None else self.job.id.text

    @property
    def nodes_unknown(self) -> bool:
        """Is it not known which nodes the job holds?"""
        return self.job is not None and not self.hosts and not self.not_asked


def odd_words(one: JobGpus) -> dict[GpuRef, tuple[str, ...]]:
    """GPUs that stand out among those of the job, and in what: suspects, not culprits."""
    known = [(ref_of(host.look.host, gpu), gpu) for host in one.hosts for gpu in host.gpus or ()]
    found: dict[GpuRef, tuple[str, ...]] = {}
    # Among GPUs of one limit the power itself says the same as its share.
    for metric in (one for one in METRICS if one.id != "watts"):
        for odd in odd_ones(known, metric.pick, least=metric.least):
            says = f"{metric.label} {metric.format(odd.value)}, others {metric.format(odd.usual)}"
            found[odd.gpu] = (*found.get(odd.gpu, ()), says)
    return found


def job_lines(one: JobGpus, now: datetime) -> list[str]:
    """A line for the job, the table, and what each node that lacks something says."""
    out = [_title(one), *_notes(one)]
    odd = odd_words(one)
    rows = [
        _cells(host, gpu, odd.get(ref_of(host.look.host, gpu), ()))
        for host in one.hosts
        for gpu in host.gpus or ()
    ]
    if rows:
        out.extend(_table(rows))
    return out


def _title(one: JobGpus) -> str:
    summary = summarise([host.node for host in one.hosts])
    parts = ["its nodes are not known" if one.nodes_unknown else summary.says]
    job = one.job
    parts.append(_seen_text(seen_gpus(one), None if job is None else job.tres))
    if one.not_asked:
        parts.append(f"{plural(len(one.not_asked), 'node')} not asked")
    mean = _mean(one)
    if mean is not None:
        parts.append(f"mean utilisation {mean:.0f} %")
    name = "nodes" if job is None else f"{job.id.text} {visible(job.name)}".strip()
    return f"{name}: {', '.join(parts)}"


def _seen_text(seen: int, tres: Tres | None) -> str:
    """``7 of 8 GPUs seen``; what a job without a whole GPU holds is told by its own name."""
    if tres is not None and tres.gpus == 0 and not seen:
        return f"holds {held_text(tres)}, no whole GPU"
    held = None if tres is None else tres.gpus or None
    of = f" of {held}" if held is not None else ""
    return f"{seen}{of} {'GPU' if (held or seen) == 1 else 'GPUs'} seen"


def seen_gpus(one: JobGpus) -> int:
    """How many of its GPUs gave a value: a card that gives none is not seen."""
    return sum(measured(gpu) for host in one.hosts for gpu in host.gpus or ())


def _mean(one: JobGpus) -> float | None:
    """Of a whole job only: what is not known is never averaged over."""
    if one.job is None or one.not_asked or not one.hosts:
        return None
    values: list[float] = []
    for host in one.hosts:
        if host.gpus is None or not host.gpus or host.node.bad or host.node.lost:
            return None
        values.extend(gpu.util_percent for gpu in host.gpus if gpu.util_percent is not None)
    held = one.job.tres.gpus
    if not values or len(values) != sum(len(host.gpus or ()) for host in one.hosts):
        return None
    return sum(values) / len(values) if held is None or held == len(values) else None


def _notes(one: JobGpus) -> list[str]:
    out: list[str] = []
    if one.nodes_unknown and one.job is not None:
        out.append(
            f"  Slurm's list of its nodes cannot be read: {visible(one.job.nodes or '')[:60]}"
        )
    for host in one.hosts:
        name = visible(host.look.host)
        for text in host_words(host):
            # Many a sentence begins with its node.
            out.append(f"  {text}" if text.startswith(f"{name} ") else f"  {name}: {text}")
    return out


def host_words(host: HostGpus) -> list[str]:
    """What is to be said of a node beside its values, each as one sentence."""
    out: list[str] = []
    look, node = host.look, host.node
    if look.failure is not None:
        out.append(visible(look.failure.sentence))
    elif node.failure is not None:
        out.append(visible(node.failure.sentence))
    out.extend(
        one.says
        for one in judge_node(node).findings
        if one.level is not Level.OK
        and not one.says.startswith("GPU ")
        and (node.failure is None or one.says != node.failure.sentence)
    )
    if host.says:
        out.append(visible(host.says))
    elif host.gpus is not None and host.held is not None and len(host.gpus) < host.held:
        out.append(f"{len(host.gpus)} of {host.held} allocated GPUs seen: the rest is not known")
    if node.bad:
        out.append(f"{plural(node.bad, 'row')} could not be read")
    processes = look.processes
    if processes is not None and processes.failure is not None and look.failure is None:
        out.append(f"ranks are not known: {visible(processes.failure.sentence)}")
    if host.age_s is not None and host.age_s >= 2 and look.failure is not None:
        out.append(f"values are {ago_text(host.age_s)} old")
    out.extend(map(visible, look.hints))
    return list(dict.fromkeys(out))


def state_words(host: HostGpus, gpu: GpuSample, odd: Sequence[str]) -> list[str]:
    """What is to be said of one GPU, worst first; empty where all is well."""
    findings = judge_gpu(gpu, host.node.samples).findings
    out = [one.says for one in findings if one.level is not Level.OK]
    if odd:
        out.append(f"odd one: {'; '.join(odd)}")
    work = _WORK_WORDS.get(work_of(gpu))
    if work is not None:
        out.append(work)
    rungs = {rank.rung for rank in host.ranks(gpu)} - {Rung.ENVIRONMENT}
    out.extend(f"rank by {rung}" for rung in sorted(rungs) if rung is not Rung.UNKNOWN)
    return out


def _cells(host: HostGpus, gpu: GpuSample, odd: Sequence[str]) -> tuple[str, ...]:
    index = gpu.dcgm_id if gpu.index is None else gpu.index
    number = _UNKNOWN if index is None else str(index)
    return (
        visible(host.look.host),
        number if gpu.slice_id is None else f"{number}/{visible(gpu.slice_id)}",
        _joined([rank.rank for rank in host.ranks(gpu)]),
        _joined(host.pids(gpu)),
        util_text(gpu) if gpu.util_percent is not None or gpu.mig else _UNKNOWN,
        _text("sm", gpu),
        _power(gpu),
        _memory(gpu),
        _text("temperature", gpu),
        _text("clock", gpu),
        "; ".join(state_words(host, gpu, odd)) or "ok",
    )


def _joined(values: Sequence[int | None]) -> str:
    known = [str(value) for value in values if value is not None]
    most = 2
    rest = f"+{len(known) - most}" if len(known) > most else ""
    return ",".join(known[:most]) + rest or _UNKNOWN


def _metric(id: str) -> GpuMetric:
    return next(metric for metric in METRICS if metric.id == id)


def _text(id: str, gpu: GpuSample) -> str:
    metric = _metric(id)
    value = metric.pick(gpu)
    return _UNKNOWN if value is None else metric.format(value)


def _power(gpu: GpuSample) -> str:
    if gpu.power_w is None:
        return _UNKNOWN
    limit = f"/{gpu.power_limit_w:.0f}" if gpu.power_limit_w is not None else ""
    return f"{gpu.power_w:.0f}{limit} W"


def _memory(gpu: GpuSample) -> str:
    if gpu.mem_used_mib is None:
        return _UNKNOWN
    total = f"/{gpu.mem_total_mib / 1024:.0f}" if gpu.mem_total_mib is not None else ""
    return f"{gpu.mem_used_mib / 1024:.0f}{total} GiB"


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    kept = [
        place
        for place, head in enumerate(_HEADS)
        if head not in _OPTIONAL or any(row[place] != _UNKNOWN for row in rows)
    ]
    return ["  " + line for line in column_lines([_HEADS, *rows], _RIGHT, kept)]


def job_dict(one: JobGpus) -> dict[str, Any]:
    """One job for ``--json``: null for what is not known, words kept, ages in seconds."""
    job = one.job
    odd = odd_words(one)
    summary = summarise([host.node for host in one.hosts])
    return {
        "job": one.id,
        "name": masked(job.name) if job is not None else None,
        "user": job.user if job is not None else None,
        "gpus_allocated": job.tres.gpus if job is not None else None,
        "slices_allocated": dict(job.tres.slices_by_type) if job is not None else None,
        "shards_allocated": job.tres.shards if job is not None else None,
        "mps_allocated": job.tres.mps if job is not None else None,
        "hosts_answered": summary.answered,
        "hosts_asked": summary.hosts,
        "hosts_not_asked": list(one.not_asked),
        "mean_util_percent": _mean(one),
        "hosts": [host_dict(host) for host in one.hosts],
        "gpus": [
            gpu_dict(host, gpu, odd.get(ref_of(host.look.host, gpu), ()))
            for host in one.hosts
            for gpu in host.gpus or ()
        ],
    }


def host_dict(host: HostGpus) -> dict[str, Any]:
    """One node: how it was reached, how old its values are, what is missing."""
    look = host.look
    failure = look.failure or host.node.failure
    return {
        "host": look.host,
        "answered": host.node.answered,
        "way": None if look.way is None else str(look.way),
        "sources": list(look.sources),
        "sampled_at": look.gpus_at.isoformat() if look.gpus_at is not None else None,
        "age_s": None if host.age_s is None else round(host.age_s, 3),
        "gpus_allocated": host.held,
        "gpus_seen": None if host.gpus is None else sum(map(measured, host.gpus)),
        "inside_job": look.inside,
        "failure": None if failure is None else failure.sentence,
        "says": host_words(host),
    }


def gpu_dict(host: HostGpus, gpu: GpuSample, odd: Sequence[str]) -> dict[str, Any]:
    """One GPU with every number that a metric has, each in the unit of its name."""
    judged = judge_gpu(gpu, host.node.samples)
    return {
        "host": host.look.host,
        "index": gpu.index,
        "uuid": gpu.uuid,
        "bus_id": gpu.bus_id,
        "key": gpu_key(gpu),
        "model": gpu.name,
        "driver": gpu.driver,
        "slice": gpu.slice_id,
        "mig": gpu.mig,
        "ranks": [_rank_dict(rank) for rank in host.ranks(gpu)],
        "pids": list(host.pids(gpu)),
        "util_percent": gpu.util_percent,
        "sm_active": gpu.sm_active,
        "tensor_active": gpu.tensor_active,
        "dram_active": gpu.dram_active,
        "power_w": gpu.power_w,
        "power_limit_w": gpu.power_limit_w,
        "mem_used_mib": gpu.mem_used_mib,
        "mem_total_mib": gpu.mem_total_mib,
        "temp_c": gpu.temp_c,
        "sm_clock_mhz": gpu.sm_clock_mhz,
        "nvlink_tx_bytes_s": gpu.nvlink_tx_bytes_s,
        "nvlink_rx_bytes_s": gpu.nvlink_rx_bytes_s,
        "pcie_tx_bytes_s": gpu.pcie_tx_bytes_s,
        "pcie_rx_bytes_s": gpu.pcie_rx_bytes_s,
        "xid": gpu.xid,
        "words": dict(gpu.words),
        "work": str(work_of(gpu)),
        "level": str(judged.level),
        "findings": [{"level": str(one.level), "says": one.says} for one in judged.findings],
        "odd": list(odd),
        "state": "; ".join(state_words(host, gpu, odd)) or "ok",
    }


def _rank_dict(rank: RankProcess) -> dict[str, Any]:
    return {
        "rank": rank.rank,
        "local_rank": rank.local_rank,
        "world_size": rank.world_size,
        "rung": str(rank.rung),
        "pid": rank.process.pid,
    }
