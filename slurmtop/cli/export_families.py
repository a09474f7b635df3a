"""What ``slurmtop export`` tells, as metrics. Pure.

Names carry their unit: seconds, bytes, watts, ratio (0 to 1). What is not known is no series.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from slurmtop import __version__
from slurmtop.cli.gpu_rows import HostGpus, JobGpus, seen_gpus
from slurmtop.cli.job_rows import elapsed_s, in_order
from slurmtop.cli.prometheus_text import Family
from slurmtop.model.facts import LogFacts
from slurmtop.model.gpu import GpuSample, Level
from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job, LimitKind, Phase
from slurmtop.triage.gpus import judge_gpu, measured

#: Series of single jobs, the newest running ones first: one person's array may have thousands.
MOST_JOBS = 500
OLDEST_S = 120.0
_MIB = 1024.0 * 1024.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """All that one run found out. ``jobs`` None: the queue did not answer.

    ``everybody`` are the jobs of all users, None where nobody asked for them. ``logs`` are those
    of running own jobs, by key. ``gpus_left_out`` and ``logs_left_out`` count the running own jobs
    whose nodes or logs nobody looked at, because there are too many.
    """

    now: datetime
    jobs: Sequence[Job] | None
    everybody: Sequence[Job] | None = None
    gpus: Sequence[JobGpus] = ()
    gpus_left_out: int = 0
    logs: Mapping[JobKey, LogFacts] = field(default_factory=dict)
    logs_left_out: int = 0


def families(found: Exported) -> list[Family]:
    """Every metric, in a fixed order."""
    out = [_up(found), _info(), _run_at(found)]
    if found.everybody is not None:
        out.extend(_queue(found.everybody, "all"))
    elif found.jobs is not None:
        out.extend(_queue(found.jobs, "own"))
    if found.jobs is not None:
        out.extend(_jobs(found))
    out.extend(_nodes(found))
    out.extend(_gpus(found))
    return out


def _up(found: Exported) -> Family:
    family = Family("slurmtop_up", "1 where the queue could be read, else 0.")
    family.add(0.0 if found.jobs is None else 1.0, {})
    return family


def _info() -> Family:
    family = Family("slurmtop_build_info", "The version of slurmtop; always 1.")
    family.add(1.0, {"version": __version__})
    return family


def _run_at(found: Exported) -> Family:
    family = Family(
        "slurmtop_run_timestamp_seconds", "When this was written, in seconds since 1970 (UTC)."
    )
    family.add(found.now.timestamp(), {})
    return family


def _queue(jobs: Sequence[Job], scope: str) -> list[Family]:
    count = Family("slurmtop_queue_jobs", "Jobs and array tasks in the queue by phase.")
    gpus = Family("slurmtop_queue_gpus", "GPUs of the jobs that run or wait, as far as Slurm says.")
    counted = Counter({Phase.RUNNING: 0, Phase.PENDING: 0})
    held = Counter({Phase.RUNNING: 0, Phase.PENDING: 0})
    for job in jobs:
        tasks = job.id.tasks.count if job.id.tasks is not None else 1
        counted[job.state.phase] += tasks
        if job.state.phase in held:
            held[job.state.phase] += (job.tres.gpus or 0) * tasks
    for phase, number in counted.items():
        count.add(number, {"scope": scope, "phase": str(phase)})
    for phase, number in held.items():
        gpus.add(number, {"scope": scope, "phase": str(phase)})
    return [count, gpus]


def _jobs(found: Exported) -> list[Family]:
    jobs = in_order(found.jobs or ())
    info = Family("slurmtop_job_info", "What a job is; always 1.")
    state = Family("slurmtop_job_state", "The state of a job in Slurm's word; always 1.")
    gpus = Family("slurmtop_job_gpus", "GPUs that a job holds, or asks for while it waits.")
    nodes = Family("slurmtop_job_nodes", "Nodes that a job holds, or asks for while it waits.")
    elapsed = Family("slurmtop_job_elapsed_seconds", "How long a job has run, or ran.")
    limit = Family("slurmtop_job_limit_seconds", "The time limit of a job, where it has one.")
    restarts = Family("slurmtop_job_restarts", "How often Slurm put a job back in the queue.")
    step = Family("slurmtop_job_progress_step", "The last step that the log of a job tells.")
    total = Family("slurmtop_job_progress_steps", "How many steps it will be, as the log tells.")
    output = Family(
        "slurmtop_job_output_timestamp_seconds",
        "When the log of a job last grew, in seconds since 1970 (UTC).",
    )
    for job in jobs[:MOST_JOBS]:
        label = {"job": job.key.id}
        info.add(
            1.0,
            {
                **label,
                "name": job.name,
                "user": job.user,
                "account": job.account or "",
                "partition": ",".join(job.partitions),
                "qos": job.qos or "",
                "nodes": job.nodes or "",
            },
        )
        state.add(1.0, {**label, "state": job.state.word})
        # The queue shows an ended job for some minutes more, with what it once held.
        if not job.state.ended and job.state.phase is not Phase.ELSEWHERE:
            gpus.add(job.tres.gpus, label)
            nodes.add(job.node_count, label)
        elapsed.add(elapsed_s(job, found.now), label)
        if job.limit.kind is LimitKind.SECONDS:
            limit.add(job.limit.seconds, label)
        restarts.add(job.restarts, label)
        log = found.logs.get(job.key)
        if log is not None:
            output.add(log.mtime.timestamp() if log.mtime is not None else None, label)
            if log.progress is not None:
                step.add(log.progress.step, label)
                total.add(log.progress.total, label)
    left = Family("slurmtop_jobs_left_out", "Own jobs without series here: there are too many.")
    left.add(max(0, len(jobs) - MOST_JOBS), {})
    unseen = Family(
        "slurmtop_jobs_not_looked_at",
        "Own running jobs whose GPUs or logs this run did not look at: there are too many.",
    )
    unseen.add(found.gpus_left_out, {"what": "gpus"})
    unseen.add(found.logs_left_out, {"what": "logs"})
    return [info, state, gpus, nodes, elapsed, limit, restarts, step, total, output, left, unseen]


def _nodes(found: Exported) -> list[Family]:
    reach = Family("slurmtop_node_reachable", "1 where a node told its GPUs, 0 where it did not.")
    at = Family(
        "slurmtop_gpu_sample_timestamp_seconds",
        "When the values of a node's GPUs were true, in seconds since 1970 (UTC).",
    )
    asked = Family(
        "slurmtop_job_nodes_asked", "Nodes of a job that were asked about its GPUs, at most 1024."
    )
    seen = Family("slurmtop_job_gpus_seen", "GPUs of a job whose values are known.")
    for one in found.gpus:
        for host in one.hosts:
            label = {"host": host.look.host}
            reach.add(1.0 if _fresh(host) else 0.0, label)
            if host.look.gpus_at is not None and host.node.answered:
                at.add(host.look.gpus_at.timestamp(), label)
        if one.job is not None:
            asked.add(len(one.hosts), {"job": one.job.key.id})
        if one.job is not None and one.hosts:
            seen.add(seen_gpus(one), {"job": one.job.key.id})
    return [reach, at, asked, seen]


def _fresh(host: HostGpus) -> bool:
    """Did it answer, and lately?"""
    return host.node.answered and _lately(host)


def _lately(host: HostGpus) -> bool:
    """What is kept of an earlier look is no value of now."""
    return host.age_s is not None and host.age_s <= OLDEST_S


@dataclass(frozen=True, slots=True)
class _Value:
    name: str
    help: str
    pick: Callable[[GpuSample], float | None]


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


_VALUES = (
    _Value(
        "slurmtop_gpu_utilization_ratio",
        "Share of the last moment in which any kernel ran: not how much of the GPU.",
        lambda gpu: _times(gpu.util_percent, 0.01),
    ),
    _Value("slurmtop_gpu_sm_active_ratio", "SM activity by DCGM.", lambda gpu: gpu.sm_active),
    _Value(
        "slurmtop_gpu_tensor_active_ratio",
        "Activity of the tensor cores by DCGM.",
        lambda gpu: gpu.tensor_active,
    ),
    _Value(
        "slurmtop_gpu_dram_active_ratio",
        "Activity of the GPU's memory by DCGM.",
        lambda gpu: gpu.dram_active,
    ),
    _Value("slurmtop_gpu_power_watts", "Power that the GPU draws.", lambda gpu: gpu.power_w),
    _Value("slurmtop_gpu_power_limit_watts", "Its power limit.", lambda gpu: gpu.power_limit_w),
    _Value(
        "slurmtop_gpu_memory_used_bytes",
        "Memory of the GPU in use.",
        lambda gpu: _times(gpu.mem_used_mib, _MIB),
    ),
    _Value(
        "slurmtop_gpu_memory_total_bytes",
        "Memory of the GPU.",
        lambda gpu: _times(gpu.mem_total_mib, _MIB),
    ),
    _Value("slurmtop_gpu_temperature_celsius", "Its temperature.", lambda gpu: gpu.temp_c),
    _Value(
        "slurmtop_gpu_sm_clock_hertz",
        "The clock of its SMs.",
        lambda gpu: _times(gpu.sm_clock_mhz, 1e6),
    ),
    _Value(
        "slurmtop_gpu_nvlink_transmit_bytes_per_second",
        "Sent over NVLink, by DCGM.",
        lambda gpu: gpu.nvlink_tx_bytes_s,
    ),
    _Value(
        "slurmtop_gpu_nvlink_receive_bytes_per_second",
        "Received over NVLink, by DCGM.",
        lambda gpu: gpu.nvlink_rx_bytes_s,
    ),
    _Value(
        "slurmtop_gpu_pcie_transmit_bytes_per_second",
        "Sent over PCIe, by DCGM.",
        lambda gpu: gpu.pcie_tx_bytes_s,
    ),
    _Value(
        "slurmtop_gpu_pcie_receive_bytes_per_second",
        "Received over PCIe, by DCGM.",
        lambda gpu: gpu.pcie_rx_bytes_s,
    ),
    _Value(
        "slurmtop_gpu_last_xid",
        "The last Xid that DCGM saw since it started; 0: none.",
        lambda gpu: gpu.xid,
    ),
)


def _gpus(found: Exported) -> list[Family]:
    out = {value: Family(value.name, value.help) for value in _VALUES}
    healthy = Family(
        "slurmtop_gpu_healthy",
        "0 where a GPU is lost or gives no value, or its memory, heat, power supply or fabric"
        " need somebody, else 1.",
    )
    for one in found.gpus:
        for host in one.hosts:
            if not _fresh(host):
                continue
            for gpu in host.gpus or ():
                label = _labels(one, host, gpu)
                for value, family in out.items():
                    family.add(value.pick(gpu), label)
                level = judge_gpu(gpu, host.node.samples).level
                if level is Level.CRITICAL or (measured(gpu) and level is not Level.UNKNOWN):
                    healthy.add(0.0 if level is Level.CRITICAL else 1.0, label)
    for (host_name, card), job in _lost(found.gpus).items():
        healthy.add(0.0, {"job": job, "host": host_name, "gpu": "", "uuid": "", "bus_id": card})
    return [*out.values(), healthy]


def _lost(gpus: Sequence[JobGpus]) -> dict[tuple[str, str], str]:
    """(host, card) of each card that a driver cannot reach, and the job that must have held it;
    "" where it may have been another's."""
    out: dict[tuple[str, str], str] = {}
    for one in gpus:
        cards = [(host, card) for host in one.hosts if _lately(host) for card in host.node.lost]
        job = one.job
        seen = sum(len(host.gpus or ()) for host in one.hosts)
        all_its = job is not None and not one.not_asked and job.tres.gpus == seen + len(cards)
        for host, card in cards:
            its = all_its or (host.held and host.held == len(host.gpus or ()) + len(host.node.lost))
            key = (host.look.host, card)
            name = "" if job is None or not its else job.key.id
            out[key] = out.get(key) or name
    return out


def _labels(one: JobGpus, host: HostGpus, gpu: GpuSample) -> dict[str, str | None]:
    """``rank`` only where one single rank is known to be on it."""
    index = gpu.dcgm_id if gpu.index is None else gpu.index
    ranks = {rank.rank for rank in host.ranks(gpu)}
    return {
        "job": "" if one.job is None else one.job.key.id,
        "host": host.look.host,
        "gpu": "" if index is None else str(index),
        "uuid": gpu.uuid or "",
        "slice": gpu.slice_id,
        "rank": str(ranks.pop()) if len(ranks) == 1 and None not in ranks else "",
    }
