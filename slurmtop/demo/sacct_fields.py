"""Every column of sacct that the demo knows, and its width where it is padded."""

from collections.abc import Callable
from dataclasses import dataclass

from slurmtop.demo.jobs import USERS, DemoJob, Run
from slurmtop.demo.nodes import CLUSTER, GPUS
from slurmtop.demo.specs import scatter
from slurmtop.demo.text import cpu_secs, fold_hosts, padded_secs, short_task_list
from slurmtop.demo.values import (
    View,
    default_stdout,
    derived_code,
    raw_path,
    script_path,
    step_name,
    tasks_per_node,
    tres_by_name,
)


@dataclass(frozen=True, slots=True)
class Row:
    """A job or one of its steps as accounting knows it.

    ``run`` is None for an attempt that never had nodes; ``step`` is "" for the job itself,
    else ``batch`` or ``0``.
    """

    job: DemoJob
    run: Run | None
    step: str
    state: str
    submit_t: int
    end_t: int | None
    exit: tuple[int, int]
    by_uid: int | None

    @property
    def is_job(self) -> bool:
        return not self.step

    @property
    def start_t(self) -> int | None:
        if self.run is None:
            return None
        return self.run.start_t + (1 if self.step == "0" else 0)

    def elapsed_s(self, t: int) -> int:
        start = self.start_t
        if start is None:
            return 0
        return max(0, (t if self.end_t is None else self.end_t) - start)

    @property
    def node_count(self) -> int:
        if self.step == "batch":
            return 1
        return len(self.run.nodes) if self.run else self.job.spec.nodes

    @property
    def cpus(self) -> int:
        return self.job.spec.cpus * self.node_count


Value = Callable[[View, Row], str]


def _base(row: Row) -> str:
    job = row.job
    if job.tasks is not None:
        return f"{job.array_id}_[{short_task_list(job.tasks, job.spec.throttle)}]"
    if job.task is not None:
        return f"{job.array_id}_{job.task}"
    if job.het_ids and row.run is not None:
        return f"{job.het_id}+{job.het_offset}"
    return str(job.id)


def _with_step(base: str, row: Row) -> str:
    return f"{base}.{row.step}" if row.step else base


def _name(view: View, row: Row) -> str:
    if row.step == "batch":
        return "batch"
    if row.step:
        return step_name(row.job.spec)
    return row.job.spec.name.replace('"', "`")


def _code(code: tuple[int, int]) -> str:
    """Up to 24.11 sacct takes 128 off an exit code above 127."""
    return f"{code[0] - 128 if code[0] > 127 else code[0]}:{code[1]}"


def _state(view: View, row: Row) -> str:
    by = f" by {row.by_uid}" if row.is_job and row.by_uid is not None else ""
    return row.state + by


def _start(view: View, row: Row) -> str:
    if row.start_t is None:
        return "None" if row.end_t is not None else "Unknown"
    return view.iso(row.start_t)


def _limit(view: View, row: Row) -> str:
    return padded_secs(row.job.limit_s) if row.is_job else ""


def _alloc_tres(view: View, row: Row) -> str:
    if row.run is None:
        return ""
    spec = row.job.spec
    if row.step != "batch" or len(row.run.nodes) == 1:
        return tres_by_name(row.job, allocated=True, step=not row.is_job)
    gpus = f"gres/gpu:h100={spec.gpus},gres/gpu={spec.gpus}," if spec.gpus else ""
    return f"cpu={spec.cpus},{gpus}mem={spec.mem_mib // 1024}G,node=1"


def _usage(view: View, row: Row) -> tuple[int, int] | None:
    """(CPU seconds, resident KiB) of a step that has ended."""
    if row.is_job or row.end_t is None:
        return None
    busy = row.elapsed_s(view.t) * row.cpus * 3 // 5 if row.step == "0" else 12
    share = row.job.spec.mem_mib * 1_024
    full = row.job.spec.ending == "OUT_OF_MEMORY"
    resident = share if full else share // 5 + scatter(row.job.id, share // 20 + 1)
    return busy, resident if row.step == "0" else 13_296


def _tres_usage(view: View, row: Row) -> str:
    usage = _usage(view, row)
    if usage is None:
        return ""
    disk = 24_490 + scatter(row.job.id, 9_000_000)
    gpu = ""
    if row.step == "0" and row.job.spec.gpus:
        count = row.job.spec.gpus * row.node_count
        gpu = f"gres/gpumem={71 * count}G,gres/gpuutil={91 * count},"
    return (
        f"cpu={padded_secs(usage[0])},energy=0,fs/disk={disk},{gpu}mem={usage[1]}K,pages=0,"
        f"vmem={usage[1] * 2}K"
    )


def _disk(view: View, row: Row) -> str:
    """``12.31M``, never a smaller unit."""
    if _usage(view, row) is None:
        return ""
    hundredths = 1 if row.step == "batch" else 100 + scatter(row.job.id, 9_000)
    return f"{hundredths / 100:.2f}M"


def _max_rss(view: View, row: Row) -> str:
    usage = _usage(view, row)
    return "" if usage is None else f"{usage[1]}K"


def _cpu_time(view: View, row: Row) -> int:
    if not row.is_job or row.run is None or row.end_t is None:
        usage = _usage(view, row)
        return 0 if usage is None else usage[0]
    return row.elapsed_s(view.t) * row.cpus * 3 // 5


def _submit_line(view: View, row: Row) -> str:
    spec = row.job.spec
    if row.step == "batch":
        return ""
    if row.step:
        return f"srun {spec.step_command}"
    return f"sbatch {script_path(spec) or '--wrap ./run.sh -J ' + spec.name}"


def _job_only(value: Value) -> Value:
    return lambda view, row: value(view, row) if row.is_job else ""


def _std(view: View, row: Row, *, error: bool) -> str:
    spec = row.job.spec
    pattern = spec.stderr if error else default_stdout(row.job)
    return "" if pattern is None else raw_path(row.job, pattern)


def _nodes(view: View, row: Row) -> str:
    if row.run is None:
        return "None assigned"
    return row.run.nodes[0] if row.step == "batch" else fold_hosts(row.run.nodes)


def _eligible(view: View, row: Row) -> str:
    job = row.job
    if row.is_job and row.run is job.run and job.eligible_t is not None:
        return view.iso(job.eligible_t)
    return view.iso(row.submit_t if row.is_job else row.start_t)


def _restarts(view: View, row: Row) -> str:
    job = row.job
    return str(job.restarts if row.run is None else job.runs.index(row.run))


def _none(view: View, row: Row) -> str:
    return ""


#: Name as in ``--helpformat``, padded width (negative: left), value.
_TABLE: tuple[tuple[str, int, Value], ...] = (
    ("Account", 10, lambda v, r: r.job.spec.account),
    ("AdminComment", 19, _none),
    ("AllocCPUS", 10, lambda v, r: str(r.cpus if r.run else 0)),
    ("AllocNodes", 10, lambda v, r: str(r.node_count if r.run else 0)),
    ("AllocTRES", 10, _alloc_tres),
    ("AssocID", 7, _job_only(lambda v, r: str(r.job.spec.uid - 990))),
    ("AveCPU", 10, lambda v, r: padded_secs(u[0] // 8) if (u := _usage(v, r)) else ""),
    ("AveDiskRead", 14, _disk),
    ("AveDiskWrite", 14, _disk),
    ("AveRSS", 10, _max_rss),
    ("AveVMSize", 10, _none),
    ("Cluster", 10, lambda v, r: CLUSTER),
    ("Comment", 14, _job_only(lambda v, r: r.job.spec.comment or "")),
    ("Constraints", 14, _none),
    ("ConsumedEnergy", 14, _none),
    ("ConsumedEnergyRaw", 17, _none),
    ("CPUTime", 10, lambda v, r: padded_secs(r.elapsed_s(v.t) * r.cpus)),
    ("CPUTimeRAW", 10, lambda v, r: str(r.elapsed_s(v.t) * r.cpus)),
    ("DerivedExitCode", 15, _job_only(lambda v, r: _code(_derived(r)))),
    ("Elapsed", 10, lambda v, r: padded_secs(r.elapsed_s(v.t))),
    ("ElapsedRaw", 10, lambda v, r: str(r.elapsed_s(v.t))),
    ("Eligible", 19, _eligible),
    ("End", 19, lambda v, r: v.iso(r.end_t, "Unknown")),
    ("ExitCode", 8, lambda v, r: _code(r.exit)),
    ("Extra", 19, _none),
    ("FailedNode", 10, _job_only(lambda v, r: r.run.nodes[0] if _died(r) and r.run else "")),
    ("Flags", 20, _job_only(lambda v, r: "SchedMain")),
    ("GID", 6, _job_only(lambda v, r: str(r.job.spec.uid))),
    ("Group", 9, _job_only(lambda v, r: r.job.spec.user)),
    ("JobID", -12, lambda v, r: _with_step(_base(r), r)),
    ("JobIDRaw", -12, lambda v, r: _with_step(str(r.job.id), r)),
    ("JobName", 10, _name),
    ("Licenses", 20, _none),
    ("MaxRSS", 10, _max_rss),
    ("MaxRSSNode", 10, lambda v, r: r.run.nodes[0] if _usage(v, r) and r.run else ""),
    ("MaxRSSTask", 10, lambda v, r: "0" if _usage(v, r) else ""),
    ("MaxVMSize", 10, _none),
    ("NCPUS", 10, lambda v, r: str(r.cpus)),
    ("NNodes", 8, lambda v, r: str(r.node_count)),
    ("NodeList", 15, _nodes),
    ("NTasks", 8, lambda v, r: _ntasks(r)),
    ("Partition", 10, _job_only(lambda v, r: r.job.spec.partition)),
    ("Planned", 10, _job_only(lambda v, r: padded_secs(_planned(v, r)))),
    ("Priority", 10, _job_only(lambda v, r: str(r.job.priority))),
    ("QOS", 10, _job_only(lambda v, r: r.job.spec.qos)),
    ("Reason", 22, _job_only(lambda v, r: "None")),
    ("ReqCPUS", 8, lambda v, r: str(r.cpus)),
    ("ReqMem", 10, _job_only(lambda v, r: f"{r.job.spec.mem_mib * r.node_count // 1024}G")),
    ("ReqNodes", 8, lambda v, r: str(r.node_count)),
    ("ReqTRES", 10, _job_only(lambda v, r: tres_by_name(r.job, allocated=False))),
    ("Reservation", 20, _none),
    ("Restarts", 8, _job_only(_restarts)),
    ("Start", 19, _start),
    ("State", 10, _state),
    ("StdErr", 20, _job_only(lambda v, r: _std(v, r, error=True))),
    ("StdIn", 20, _job_only(lambda v, r: "/dev/null")),
    ("StdOut", 20, _job_only(lambda v, r: _std(v, r, error=False))),
    ("Submit", 19, lambda v, r: v.iso(r.submit_t if r.is_job else r.start_t)),
    ("SubmitLine", 20, _submit_line),
    ("Suspended", 10, lambda v, r: "00:00:00"),
    ("SystemComment", 14, _none),
    ("SystemCPU", 10, lambda v, r: cpu_secs(_cpu_time(v, r) // 20)),
    ("Timelimit", 10, _limit),
    ("TimelimitRaw", 12, _job_only(lambda v, r: str(r.job.limit_s // 60))),
    ("TotalCPU", 10, lambda v, r: cpu_secs(_cpu_time(v, r))),
    ("TRESUsageInAve", 14, _tres_usage),
    ("TRESUsageInMax", 14, _tres_usage),
    ("TRESUsageInTot", 14, _tres_usage),
    ("TRESUsageOutTot", 15, _none),
    ("UID", 6, _job_only(lambda v, r: str(USERS[r.job.spec.user][0]))),
    ("User", 9, _job_only(lambda v, r: r.job.spec.user)),
    ("UserCPU", 10, lambda v, r: cpu_secs(_cpu_time(v, r) * 19 // 20)),
    ("WCKey", 10, _none),
    ("WorkDir", 20, _job_only(lambda v, r: r.job.spec.workdir)),
)


def _derived(row: Row) -> tuple[int, int]:
    run = row.run
    if run is None or not row.job.spec.steps:
        return 0, 0
    if run.step_exit is not None:
        return run.step_exit
    failed = run.state in ("FAILED", "OUT_OF_MEMORY")
    return derived_code(run.state or "", run.exit) if failed else (0, 0)


def _died(row: Row) -> bool:
    return row.state == "NODE_FAIL"


def _ntasks(row: Row) -> str:
    if row.is_job:
        return ""
    return (
        "1"
        if row.step == "batch"
        else str(min(GPUS, tasks_per_node(row.job.spec)) * row.node_count)
    )


def _planned(view: View, row: Row) -> int:
    until = row.start_t if row.start_t is not None else view.t if row.end_t is None else row.end_t
    return max(0, until - row.submit_t)


#: What this cluster does not measure or does not use: always empty.
_EMPTY = (
    "AveCPUFreq", "AvePages", "BlockID", "Container", "DBIndex", "Layout", "MaxDiskRead",
    "MaxDiskReadNode", "MaxDiskReadTask", "MaxDiskWrite", "MaxDiskWriteNode", "MaxDiskWriteTask",
    "MaxPages", "MaxPagesNode", "MaxPagesTask", "MaxVMSizeNode", "MaxVMSizeTask", "McsLabel",
    "MinCPU", "MinCPUNode", "MinCPUTask", "PlannedCPU", "PlannedCPURAW", "QOSRAW", "QOSREQ",
    "ReqCPUFreq", "ReqCPUFreqGov", "ReqCPUFreqMax", "ReqCPUFreqMin", "ReservationId", "SLUID",
    "TRESUsageInMaxNode", "TRESUsageInMaxTask", "TRESUsageInMin", "TRESUsageInMinNode",
    "TRESUsageInMinTask", "TRESUsageOutAve", "TRESUsageOutMax", "TRESUsageOutMaxNode",
    "TRESUsageOutMaxTask", "TRESUsageOutMin", "TRESUsageOutMinNode", "TRESUsageOutMinTask",
    "WCKeyID",
)  # fmt: skip
_ALL = tuple(
    sorted((*_TABLE, *((name, 10, _none) for name in _EMPTY)), key=lambda entry: entry[0].lower())
)


def find_field(name: str) -> tuple[str, int, Value] | None:
    """A column by its name in any case; the start of a name will do, as with the real one."""
    lower = name.lower()
    for entry in _ALL:
        if entry[0].lower() == lower:
            return entry
    matches = [entry for entry in _ALL if lower and entry[0].lower().startswith(lower)]
    return matches[0] if matches else None


NAMES = tuple(name for name, _, _ in _ALL)
