"""Every column that squeue knows: its name for ``-O``, its letter for ``-o``, its heading."""

from collections.abc import Callable

from slurmtop.demo.jobs import DemoJob
from slurmtop.demo.nodes import CLUSTER
from slurmtop.demo.text import fold_hosts, mem_text, squeue_secs
from slurmtop.demo.values import (
    LOGIN,
    View,
    default_stdout,
    dependency,
    derived_exit,
    id_text,
    last_look,
    node_list,
    raw_path,
    script_path,
    state_short,
    state_word,
    tasks_per_node,
    tres,
)

Value = Callable[[View, DemoJob], str]
_PRIORITY_SCALE = 4_294_967_295
_REASON_IN_LIST = ("PENDING", "TIMEOUT", "OUT_OF_MEMORY", "FAILED")


def _reason_list(view: View, job: DemoJob) -> str:
    if job.completing or job.state not in _REASON_IN_LIST:
        return node_list(job) or f"({job.reason})"
    return f"({job.reason})"


def _task(view: View, job: DemoJob) -> str:
    if job.tasks is not None:
        return id_text(job).partition("[")[2].rstrip("]")
    return "N/A" if job.task is None else str(job.task)


def _start(view: View, job: DemoJob) -> str:
    return view.iso(job.expected_t if job.pending else job.start_t)


def _end(view: View, job: DemoJob) -> str:
    if job.end_t is not None:
        return view.iso(job.end_t)
    start = job.expected_t if job.pending else job.start_t
    return view.iso(None if start is None else start + job.limit_s)


def _pending_time(view: View, job: DemoJob) -> str:
    until = view.t if job.pending or job.start_t is None else job.start_t
    return str(max(0, until - job.submit_t))


def _tres_per_node(view: View, job: DemoJob) -> str:
    return "N/A" if job.spec.gres is None else f"gres/{job.spec.gres}"


def _status(code: tuple[int, int]) -> str:
    return str(code[0] * 256 + code[1])


def _const(text: str) -> Value:
    return lambda view, job: text


#: Name for -O, heading, letter for -o ("" where there is none), value.
_TABLE: tuple[tuple[str, str, str, Value], ...] = (
    ("account", "ACCOUNT", "a", lambda v, j: j.spec.account),
    ("jobid", "JOBID", "A", lambda v, j: str(j.id)),
    ("tres-per-node", "TRES_PER_NODE", "b", _tres_per_node),
    ("batchhost", "EXEC_HOST", "B", lambda v, j: j.nodes[0] if j.nodes else "n/a"),
    ("mincpus", "MIN_CPUS", "c", lambda v, j: "1"),
    ("numcpus", "CPUS", "C", lambda v, j: str(j.spec.cpus * j.node_count)),
    ("mintmpdisk", "MIN_TMP_DISK", "d", _const("0")),
    ("numnodes", "NODES", "D", lambda v, j: str(j.node_count)),
    ("endtime", "END_TIME", "e", _end),
    ("dependency", "DEPENDENCY", "E", dependency),
    ("feature", "FEATURES", "f", _const("(null)")),
    ("arrayjobid", "ARRAY_JOB_ID", "F", lambda v, j: str(j.array_id or j.id)),
    ("groupname", "GROUP", "g", lambda v, j: j.spec.user),
    ("groupid", "GROUP", "G", lambda v, j: str(j.spec.uid)),
    ("oversubscribe", "OVER_SUBSCRIBE", "h", _const("OK")),
    ("sockets", "SOCKETS_PER_NODE", "H", _const("*")),
    ("jobarrayid", "JOBID", "i", lambda v, j: id_text(j)),
    ("cores", "CORES_PER_SOCKET", "I", _const("*")),
    ("name", "NAME", "j", lambda v, j: j.spec.name),
    ("threads", "THREADS_PER_CORE", "J", _const("*")),
    ("comment", "COMMENT", "k", lambda v, j: j.spec.comment or "(null)"),
    ("arraytaskid", "ARRAY_TASK_ID", "K", _task),
    ("timelimit", "TIME_LIMIT", "l", lambda v, j: squeue_secs(j.limit_s)),
    ("timeleft", "TIME_LEFT", "L", lambda v, j: squeue_secs(j.limit_s - j.used_s(v.t))),
    ("minmemory", "MIN_MEMORY", "m", lambda v, j: mem_text(j.spec.mem_mib)),
    ("timeused", "TIME", "M", lambda v, j: squeue_secs(j.used_s(v.t))),
    ("reqnodes", "REQ_NODES", "n", lambda v, j: ",".join(j.spec.req_nodes)),
    ("nodelist", "NODELIST", "N", lambda v, j: node_list(j)),
    ("command", "COMMAND", "o", lambda v, j: script_path(j.spec) or "(null)"),
    ("contiguous", "CONTIGUOUS", "O", _const("0")),
    ("priority", "PRIORITY", "p", lambda v, j: f"{j.priority / _PRIORITY_SCALE:.14f}"),
    ("partition", "PARTITION", "P", lambda v, j: j.spec.partition),
    ("qos", "QOS", "q", lambda v, j: j.spec.qos),
    ("prioritylong", "PRIORITY", "Q", lambda v, j: str(j.priority)),
    ("reason", "REASON", "r", lambda v, j: j.reason),
    ("reasonlist", "NODELIST(REASON)", "R", _reason_list),
    ("selectjobinfo", "", "s", _const("")),
    ("starttime", "START_TIME", "S", _start),
    ("statecompact", "ST", "t", lambda v, j: state_short(j)),
    ("state", "STATE", "T", lambda v, j: state_word(j)),
    ("username", "USER", "u", lambda v, j: j.spec.user),
    ("userid", "UID", "U", lambda v, j: str(j.spec.uid)),
    ("reservation", "RESERVATION", "v", _const("(null)")),
    ("submittime", "SUBMIT_TIME", "V", lambda v, j: v.iso(j.submit_t)),
    ("wckey", "WCKEY", "w", _const("(null)")),
    ("licenses", "LICENSES", "W", _const("(null)")),
    ("excnodes", "EXC_NODES", "x", lambda v, j: fold_hosts(j.exc_nodes)),
    ("corespec", "CORE_SPEC", "X", _const("N/A")),
    ("nice", "NICE", "y", _const("0")),
    ("schednodes", "SCHEDNODES", "Y", _const("(null)")),
    ("sct", "S:C:T", "z", _const("*:*:*")),
    ("workdir", "WORK_DIR", "Z", lambda v, j: j.spec.workdir),
    ("accruetime", "ACCRUE_TIME", "", lambda v, j: v.iso(j.eligible_t)),
    ("admin_comment", "ADMIN_COMMENT", "", _const("(null)")),
    ("allocnodes", "ALLOC_NODES", "", _const(LOGIN)),
    ("allocsid", "ALLOC_SID", "", _const("1454")),
    ("associd", "ASSOC_ID", "", lambda v, j: str(j.spec.uid - 990)),
    ("batchflag", "BATCH_FLAG", "", _const("1")),
    ("boardspernode", "BOARDS_PER_NODE", "", _const("0")),
    ("burstbuffer", "BURST_BUFFER", "", _const("(null)")),
    ("burstbufferstate", "BURST_BUFFER_STATE", "", _const("(null)")),
    ("cluster", "CLUSTER", "", _const(CLUSTER)),
    ("clusterfeature", "CLUSTER_FEATURES", "", _const("(null)")),
    ("cpus-per-task", "CPUS_PER_TASK", "", _const("1")),
    ("cpus-per-tres", "CPUS_PER_TRES", "", _const("N/A")),
    ("deadline", "DEADLINE", "", _const("N/A")),
    ("delayboot", "DELAY_BOOT", "", _const("0:00")),
    ("derivedec", "DERIVED_EC", "", lambda v, j: _status(derived_exit(j))),
    ("eligibletime", "ELIGIBLE_TIME", "", lambda v, j: v.iso(j.eligible_t)),
    ("exit_code", "EXIT_CODE", "", lambda v, j: _status(j.exit)),
    ("hetjobid", "HET_JOB_ID", "", lambda v, j: str(j.het_id) if j.het_ids else "N/A"),
    ("hetjobidset", "HET_JOB_ID_SET", "", lambda v, j: _het_set(j)),
    ("hetjoboffset", "HET_JOB_OFFSET", "", lambda v, j: str(j.het_offset) if j.het_ids else "N/A"),
    ("lastschedeval", "LAST_SCHED_EVAL", "", lambda v, j: v.iso(last_look(j))),
    ("maxcpus", "MAX_CPUS", "", lambda v, j: str(j.spec.cpus * j.node_count)),
    ("maxnodes", "MAX_NODES", "", lambda v, j: str(j.node_count)),
    ("mcslabel", "MCSLABEL", "", _const("(null)")),
    ("mem-per-tres", "MEM_PER_TRES", "", _const("N/A")),
    ("mintime", "TIME_MIN", "", _const("0:00")),
    ("network", "NETWORK", "", _const("(null)")),
    ("ntperboard", "NTASKS_PER_BOARD", "", _const("0")),
    ("ntpercore", "NTASKS_PER_CORE", "", _const("N/A")),
    ("ntpernode", "NTASKS_PER_NODE", "", lambda v, j: str(tasks_per_node(j.spec))),
    ("ntpersocket", "NTASKS_PER_SOCKET", "", _const("N/A")),
    ("numtasks", "TASKS", "", lambda v, j: str(tasks_per_node(j.spec) * j.node_count)),
    ("origin", "ORIGIN", "", _const("NA")),
    ("originraw", "ORIGIN_RAW", "", _const("NA")),
    ("pendingtime", "PENDING_TIME", "", _pending_time),
    ("preempttime", "PREEMPT_TIME", "", _const("N/A")),
    ("profile", "PROFILE", "", _const("NotSet")),
    ("reboot", "REBOOT", "", _const("0")),
    ("reqswitch", "REQ_SWITCH", "", _const("0")),
    ("requeue", "REQUEUE", "", lambda v, j: "1" if j.spec.requeue else "0"),
    ("resizetime", "RESIZE_TIME", "", _const("N/A")),
    ("restartcnt", "RESTART_COUNT", "", lambda v, j: str(j.restarts)),
    ("siblingsactive", "ACTIVE_SIBLINGS", "", _const("NA")),
    ("siblingsactiveraw", "ACTIVE_SIBLINGS_RAW", "", _const("NA")),
    ("siblingsviable", "VIABLE_SIBLINGS", "", _const("NA")),
    ("siblingsviableraw", "VIALBLE_SIBLINGS_RAW", "", _const("NA")),
    ("sperboard", "SOCKETS_PER_BOARD", "", _const("0")),
    ("stderr", "STDERR", "", lambda v, j: _stderr(j)),
    ("stdin", "STDIN", "", _const("/dev/null")),
    ("stdout", "STDOUT", "", lambda v, j: raw_path(j, default_stdout(j))),
    ("system_comment", "SYSTEM_COMMENT", "", _const("(null)")),
    ("tres-alloc", "TRES_ALLOC", "", lambda v, j: tres(j, allocated=bool(j.nodes))),
    ("tres-bind", "TRES_BIND", "", _const("N/A")),
    ("tres-freq", "TRES_FREQ", "", _const("N/A")),
    ("tres-per-job", "TRES_PER_JOB", "", _const("N/A")),
    ("tres-per-socket", "TRES_PER_SOCKET", "", _const("N/A")),
    ("tres-per-task", "TRES_PER_TASK", "", _const("N/A")),
    ("wait4switch", "WAIT4SWITCH", "", _const("0:00")),
)
_ALIASES = {
    "gres": "tres-per-node",
    "shared": "oversubscribe",
    "cpuspertask": "cpus-per-task",
    "tres": "tres-alloc",
    "packjobid": "hetjobid",
    "packjoboffset": "hetjoboffset",
    "packjobidset": "hetjobidset",
}
_NO_NAME = {"excnodes"}
"""Only a letter leads to these."""


def _het_set(job: DemoJob) -> str:
    return f"{job.het_ids[0]}-{job.het_ids[-1]}" if job.het_ids else "N/A"


def _stderr(job: DemoJob) -> str:
    return "(null)" if job.spec.stderr is None else raw_path(job, job.spec.stderr)


BY_NAME: dict[str, tuple[str, Value]] = {
    name: (heading, value) for name, heading, _, value in _TABLE if name not in _NO_NAME
}
BY_NAME |= {alias: BY_NAME[name] for alias, name in _ALIASES.items()}
BY_LETTER: dict[str, tuple[str, Value]] = {
    letter: (heading, value) for _, heading, letter, value in _TABLE if letter
}
