"""scontrol: what it shows. What it does stands in :mod:`slurmtop.demo.scontrol_do`."""

from slurmtop.demo import scontrol_do
from slurmtop.demo.answers_squeue import VERSION
from slurmtop.demo.find import find
from slurmtop.demo.forms import UP_SINCE, config_text, partition_text
from slurmtop.demo.jobs import DemoJob
from slurmtop.demo.node_words import complete_state
from slurmtop.demo.nodes import CPUS, GPUS, MEMORY_MIB, NODE_NAMES, PARTITIONS, DemoNode
from slurmtop.demo.options import Answer, Options, Table, said
from slurmtop.demo.scripts import batch_script
from slurmtop.demo.text import (
    expand_hosts,
    fold_hosts,
    fold_numbers,
    mem_text,
    padded_secs,
    short_task_list,
)
from slurmtop.demo.values import (
    LOGIN,
    View,
    default_stdout,
    dependency,
    derived_exit,
    last_look,
    node_list,
    path_of,
    script_path,
    state_word,
    tasks_per_node,
    tres,
)

_OPTIONS = Table(
    "scontrol",
    flags={
        "all": "a", "details": "d", "future": "F", "help": "h", "hide": "", "local": "",
        "oneliner": "o", "quiet": "Q", "sibling": "", "usage": "", "verbose": "v", "version": "V",
    },
    values={"clusters": "M", "uid": "u"},
)  # fmt: skip
_NO_JOB = "slurm_load_jobs error: Invalid job id specified\n"


def answer(view: View, argv: tuple[str, ...]) -> Answer:
    """What scontrol prints for this command line; some of them change the cluster."""
    options = _OPTIONS.parse(argv)
    if options.has("version"):
        return said(VERSION)
    if options.has("help") or options.has("usage"):
        return said("scontrol [<OPTION>] [<COMMAND>]\n")
    words = options.words
    if not words:
        return said("scontrol: \n")
    verb, rest = words[0].lower(), words[1:]
    if verb == "ping":
        return said(f"Slurmctld(primary) at {LOGIN} is UP\n")
    if verb == "version":
        return said(VERSION)
    if verb == "show":
        return _show(view, options, rest)
    if verb == "write":
        return _write(view, rest)
    if verb in scontrol_do.VERBS:
        if not rest:
            return said(err=f"too few arguments for keyword:{verb}\n", rc=1)
        return scontrol_do.do(view, verb, rest)
    return said(err=f"invalid keyword: {words[0]}\n", rc=1)


def _show(view: View, options: Options, words: tuple[str, ...]) -> Answer:
    if not words:
        return said(err="too few arguments for keyword:show\n", rc=1)
    what, names = words[0].lower(), words[1:]
    one_line = options.has("oneliner")
    if what in ("job", "jobs"):
        return _show_jobs(view, options, names[0] if names else None)
    if what in ("node", "nodes"):
        return _show_nodes(view, names[0] if names else None, one_line=one_line)
    if what in ("partition", "partitions"):
        wanted = names[:1] or tuple(PARTITIONS)
        if wanted[0] not in PARTITIONS:
            return said(f"Partition {wanted[0]} not found\n", rc=1)
        return said("".join(partition_text(view, name, one_line=one_line) for name in wanted))
    if what == "config":
        return said(config_text(view))
    if what in ("hostnames", "hostname"):
        return _hostnames(names)
    return said(err=f"invalid entity:{words[0]} for keyword:show \n", rc=1)


def _hostnames(names: tuple[str, ...]) -> Answer:
    if not names:
        return said(err="scontrol: error: host list is empty\n", rc=0)
    return said("".join(f"{host}\n" for host in expand_hosts(names[0])))


def _show_jobs(view: View, options: Options, name: str | None) -> Answer:
    if name is None:
        jobs = list(view.world.remembered())
        if not jobs:
            return said("No jobs in the system\n")
    else:
        found = find(view, name)
        if found is None:
            return said(err="scontrol_print_job error: Invalid job id specified\n", rc=1)
        if not found:
            base, mark, _ = name.partition("_")
            if mark and find(view, base):
                return said(f"Job {name} not found\n", rc=1)
            return said(err=_NO_JOB, rc=1)
        jobs = found
    details, one_line = options.has("details"), options.has("oneliner")
    blocks = (job_lines(view, job, details=details) for job in jobs)
    return said("".join(_block(lines, one_line) for lines in blocks))


def _block(lines: list[str], one_line: bool) -> str:
    return " ".join(lines) + "\n" if one_line else "\n   ".join(lines) + "\n\n"


def _head(job: DemoJob) -> list[str]:
    name = f"JobName={job.spec.name}"
    if job.array_id is not None:
        throttle = job.spec.throttle
        task = str(job.task) if job.tasks is None else short_task_list(job.tasks, throttle)
        limit = f" ArrayTaskThrottle={throttle}" if throttle else ""
        return [f"JobId={job.id} ArrayJobId={job.array_id} ArrayTaskId={task}{limit} {name}"]
    if job.het_ids:
        return [
            f"JobId={job.id} HetJobId={job.het_id} HetJobOffset={job.het_offset} {name}",
            f"HetJobIdSet={job.het_ids[0]}-{job.het_ids[-1]}",
        ]
    return [f"JobId={job.id} {name}"]


def job_lines(view: View, job: DemoJob, *, details: bool) -> list[str]:
    """The lines of one block, without their indent."""
    spec = job.spec
    user = f"{spec.user}({spec.uid})"
    start = job.expected_t if job.pending else job.start_t
    end = job.end_t if job.end_t is not None else None if start is None else start + job.limit_s
    cpus = spec.cpus * job.node_count
    per_node = tasks_per_node(spec)
    nodes = f"{job.node_count}-{job.node_count}" if job.pending else str(job.node_count)
    derived = derived_exit(job)
    code = f"{job.exit[0]}:{job.exit[1]}"
    stdout = path_of(job, default_stdout(job))
    return [
        *_head(job),
        f"UserId={user} GroupId={user} MCS_label=N/A",
        f"Priority={job.priority} Nice=0 Account={spec.account} QOS={spec.qos}",
        f"JobState={state_word(job)} Reason={job.reason.replace(' ', '_')}"
        f" Dependency={dependency(view, job)}",
        f"Requeue={int(spec.requeue)} Restarts={job.restarts} BatchFlag=1 Reboot=0 ExitCode={code}",
        *([f"DerivedExitCode={derived[0]}:{derived[1]}"] if details else []),
        f"RunTime={padded_secs(job.used_s(view.t))} TimeLimit={padded_secs(job.limit_s)}"
        " TimeMin=N/A",
        f"SubmitTime={view.iso(job.submit_t)} EligibleTime={view.iso(job.eligible_t, 'Unknown')}",
        f"AccrueTime={view.iso(job.eligible_t, 'Unknown')}",
        f"StartTime={view.iso(start, 'Unknown')} EndTime={view.iso(end, 'Unknown')} Deadline=N/A",
        "SuspendTime=None SecsPreSuspend=0"
        f" LastSchedEval={view.iso(last_look(job))}"
        " Scheduler=Main",
        f"Partition={spec.partition} AllocNode:Sid={LOGIN}:1454",
        f"ReqNodeList={','.join(spec.req_nodes) or '(null)'}"
        f" ExcNodeList={fold_hosts(job.exc_nodes) or '(null)'}",
        f"NodeList={node_list(job)}",
        *([f"BatchHost={job.nodes[0]}"] if job.nodes else []),
        f"NumNodes={nodes} NumCPUs={cpus} NumTasks={per_node * job.node_count} CPUs/Task=1"
        " ReqB:S:C:T=0:0:*:*",
        f"ReqTRES={tres(job, allocated=False)}",
        f"AllocTRES={tres(job, allocated=True) if job.nodes else '(null)'}",
        f"Socks/Node=* NtasksPerN:B:S:C={per_node}:0:*:* CoreSpec=*",
        *(_gres_lines(job) if details and job.nodes else []),
        f"MinCPUsNode={per_node} MinMemoryNode={mem_text(spec.mem_mib)} MinTmpDiskNode=0",
        "Features=(null) DelayBoot=00:00:00",
        "OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null)",
        f"Command={script_path(spec) or '(null)'}",
        f"WorkDir={spec.workdir}",
        *([f"Comment={spec.comment} "] if spec.comment is not None else []),
        f"StdErr={stdout if spec.stderr is None else path_of(job, spec.stderr)}",
        "StdIn=/dev/null",
        f"StdOut={stdout}",
        *([f"TresPerNode=gres/{spec.gres}"] if spec.gres else []),
        "",
    ]


def _gres_lines(job: DemoJob) -> list[str]:
    spec = job.spec
    lines = [f"JOB_GRES=gpu:h100:{spec.gpus * len(job.nodes)}"] if spec.gpus else []
    for node in job.nodes:
        index = fold_numbers(job.gpu_ids.get(node, ()))
        gres = f"gpu:h100:{spec.gpus}(IDX:{index})" if spec.gpus else ""
        lines.append(f"  Nodes={node} CPU_IDs=0-{spec.cpus - 1} Mem={spec.mem_mib} GRES={gres}")
    return lines


def _show_nodes(view: View, names: str | None, *, one_line: bool) -> Answer:
    wanted = list(NODE_NAMES) if names is None else expand_hosts(names)
    for name in wanted:
        if name not in view.world.nodes:
            return said(f"Node {name} not found\n", rc=1)
    return said(
        "".join(_block(_node_lines(view, view.world.nodes[name]), one_line) for name in wanted)
    )


def _node_lines(view: View, node: DemoNode) -> list[str]:
    down = node.trouble == "down"
    used, gpus = node.cpus_used, len(node.gpus_used)
    load = "0.00" if down else f"{used * 0.62 + 0.05:.2f}"
    free = MEMORY_MIB - node.memory_used * 3 // 5 - 21_000
    arch = "" if down else "Arch=x86_64 "
    where = f"NodeAddr={node.name} NodeHostName={node.name}"
    busy = view.t if used else node.last_busy_t
    boot = view.iso(UP_SINCE + 3_000)
    alloc = [f"cpu={used}", f"mem={node.memory_used // 1024}G"] if used else []
    if gpus:
        alloc += [f"gres/gpu={gpus}", f"gres/gpu:h100={gpus}"]
    partitions = ",".join(name for name, nodes in PARTITIONS.items() if node.name in nodes)
    lines = [
        f"NodeName={node.name} {arch}CoresPerSocket=64 ",
        f"CPUAlloc={used} CPUEfctv={CPUS} CPUTot={CPUS} CPULoad={load}",
        "AvailableFeatures=(null)",
        "ActiveFeatures=(null)",
        f"Gres=gpu:h100:{GPUS}",
        f"{where} Port=6818 " if down else f"{where} Version=24.11.5",
        *([] if down else ["OS=Linux 6.1.0-35-amd64 #1 SMP PREEMPT_DYNAMIC "]),
        f"RealMemory={MEMORY_MIB} AllocMem={node.memory_used}"
        f" FreeMem={'N/A' if down else free} Sockets=2 Boards=1",
        f"State={complete_state(view, node)} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A"
        " MCS_label=N/A",
        f"Partitions={partitions} ",
        "BootTime=None SlurmdStartTime=None"
        if down
        else f"BootTime={boot} SlurmdStartTime={view.iso(UP_SINCE + 3_060)}",
        f"LastBusyTime={'Unknown' if down else view.iso(busy)} ResumeAfterTime=None",
        f"CfgTRES=cpu={CPUS},mem={MEMORY_MIB // 1024}G,billing={CPUS},gres/gpu={GPUS},"
        f"gres/gpu:h100={GPUS}",
        f"AllocTRES={','.join(alloc)}",
        "CurrentWatts=0 AveWatts=0",
        "",
    ]
    if node.reason:
        lines.append(f"Reason={node.reason} [root@{view.iso(node.reason_t)}]")
    return lines


def _write(view: View, words: tuple[str, ...]) -> Answer:
    if not words or words[0] not in ("batch_script", "config"):
        return said(err=f"invalid entity:{words[0] if words else ''} for keyword:write \n", rc=1)
    if words[0] == "config" or len(words) < 2:
        return said(err=f"too few arguments for keyword:write {words[0]}\n", rc=1)
    jobs = find(view, words[1])
    if not jobs:
        return said(err="job script retrieval failed: Invalid job id specified\n", rc=1)
    if not view.mine(jobs[0]):
        return said(err="job script retrieval failed: Access/permission denied\n", rc=1)
    target = words[2] if len(words) > 2 else f"slurm-{jobs[0].id}.sh"
    if target != "-":
        return said(err=f"failed to open file `{target}`: Read-only file system\n", rc=1)
    return said(batch_script(jobs[0].spec))
