"""How tasks, steps and nodes ended, in the words of srun, slurmstepd, slurmd and slurmctld.

Source: SchedMD's slurm, tags 17.02 to 26.05, for example::

    srun: error: node[1-3]: tasks 0-7,9: Exited with exit code 1
    slurmstepd-n1: error: *** STEP 12.0 ON n1 CANCELLED AT 2031-05-05T10:00:00 DUE TO TIME LIMIT ***

The daemon's own prefix tells the host in some set-ups (``slurmstepd-n1:``, ``slurmd[n1]:``).
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from slurmtop.model.events.slurm import (
    Ending,
    LaunchFailed,
    NodeTrouble,
    OomKill,
    StepEnded,
    TaskExit,
)
from slurmtop.model.trace import Event, Where
from slurmtop.parse.logs.line import Message
from slurmtop.parse.logs.plain import PlainReader
from slurmtop.parse.logs.signals import SIGNAL_WORDS
from slurmtop.parse.logs.slurm_ending import CUT, ENDED, ID
from slurmtop.parse.slurm.hostlist import hosts_or_text

_HOSTS = r"(?P<hosts>[^\s:*][^:*\n]{0,2000}?)"
_PREFIX = re.compile(
    r"slurm(?:stepd|d)(?:-(?P<dash>[\w.-]{1,255})|\[(?P<bracket>[\w.-]{1,255})\])?:"
)

_SIGNAL_WORDS = "|".join(re.escape(words) for words in SIGNAL_WORDS)
_HOW = (
    rf"(?P<how>Exited with exit code (?P<code>\d{{1,5}})|Out Of Memory"
    rf"|(?P<signal>(?i:{_SIGNAL_WORDS}))(?: \(core dumped\))?|Real-time signal \d{{1,2}})"
)
_TASK = re.compile(
    rf"(?:(?P<slurm>error: |srun: )|^){_HOSTS}: tasks? (?P<tasks>\[?[\d,\-]{{1,4000}}\]?): {_HOW}"
    r"(?(slurm)|\s*$)"
)
#: Somebody left the hosts out of what they passed on: ``srun: error: ... Aborted (core dumped)``.
_TASK_CUT = re.compile(rf"srun: error: (?:\.\.\.|…)[^:]{{0,20}}? ?{_HOW}\s*$")
_MOST_TASKS = 65_536
_LAST_SIGNAL = 64

#: Without blanks: where a terminal broke the line one may be missing, or be too many.
_ENDINGS = (
    ("TIMELIMIT", Ending.TIME_LIMIT),
    ("PREEMPT", Ending.PREEMPTION),
    ("NODEFAIL", Ending.NODE_FAILURE),
    ("REQUEUE", Ending.REQUEUE),
    ("TASKFAILURE", Ending.TASK_FAILURE),
    ("NOTENDINGWITHSIGNALS", Ending.UNKILLABLE),
    # scancel, and whatever else sent a signal to the step: it gives no reason.
    ("SIGNAL", Ending.CANCELLED),
)

_OOM = re.compile(
    rf"Detected (?P<events>\d{{1,9}}) oom[-_ ]kill event(?:\(s\)|s)? in "
    rf"(?:StepId=|step |job |JobId=)?(?P<step>{ID})"
)
_OOM_OLD = re.compile(
    rf"(?:(?:Step|Job|StepId=|JobId=)\s?(?P<step>{ID}) exceeded memory limit"
    r"|[Ee]xceeded (?:job|step) memory limit)"
)

_BUSY = re.compile(r"step creation temporarily disabled|Retrying|retrying|still waiting")
_LAUNCH = (
    re.compile(
        rf"Task launch for (?:StepId=|step )?{ID} failed on nodes? (?P<node>[^:\n]{{1,255}}): "
        r"(?P<why>.{1,200})"
    ),
    re.compile(r"(?P<why>tasks? [\d,\-\[\]]{1,200} launch failed: .{1,200})"),
    re.compile(r"(?P<why>Application launch failed: .{1,200})"),
    re.compile(
        r"(?:srun|salloc): error: (?P<why>Unable to (?:create step for job|create job step"
        r"|allocate resources|confirm allocation for job|launch|start) ?.{0,200})"
    ),
    re.compile(
        r"(?:sbatch|srun|salloc): error: (?P<why>(?:Batch job submission failed"
        r"|Job submit/allocate failed|Invalid node name specified|Invalid job credential"
        r"|Something is wrong with the boot of the nodes).{0,200})"
    ),
    re.compile(r"srun: error: (?P<why>Nodes (?P<node>\S{1,255}) (?:are )?still not ready)"),
    re.compile(
        r"(?:srun|slurm\w{0,8}[\w.\[\]-]{0,255}|salloc|sbatch): (?:error|fatal): "
        r"(?P<why>(?=.{0,160}(?i:munge|credential))(?=.{0,160}"
        r"(?i:fail|expired|invalid|rewound|replayed|refused|no such file|unable)).{1,200})"
    ),
    re.compile(
        r"slurm\w{0,8}[\w.\[\]-]{0,255}: error: "
        r"(?P<why>(?=.{0,160}(?i:fail|error|could ?n.t|unable|hung)).{0,60}"
        r"(?:pyxis|enroot|[Cc]ontainer|spank|SPANK|[Pp]rolog)\b.{0,200})"
    ),
    re.compile(
        r"slurm\w{0,8}[\w.\[\]-]{0,255}: error: "
        r"(?P<why>(?:execve\(\)|Could not open std(?:in|out|err) file|Unable to open).{1,200})"
    ),
    re.compile(r"error: (?P<why>(?:.{0,60}\b)?[Pp]rolog (?:launch )?(?:fail\w{0,4}|hung).{0,200})"),
)

_NODE_LIST = r"(?P<nodes>[^\s:,\[]{1,255}(?:\[[\d,\-]{1,400}\]\S{0,255})?(?:,\S{1,1000})?)"
_NODES = (
    re.compile(rf"(?:srun|salloc|sbatch): error: (?P<why>Node failure) on {_NODE_LIST}"),
    re.compile(rf"update_node: node {_NODE_LIST} reason set to: (?P<why>.{{1,200}})"),
    re.compile(
        rf"(?:update_node|drain_nodes|set_node_down\w{{0,12}}): node {_NODE_LIST} "
        r"(?P<why>state set to (?:DOWN|DRAIN|FAIL)\w{0,12})"
    ),
    re.compile(rf"[Nn]odes? {_NODE_LIST} (?P<why>not responding(?:, setting DOWN)?)"),
    re.compile(rf"[Nn]ode {_NODE_LIST} (?P<why>unexpectedly rebooted|is not responding)"),
    re.compile(
        rf"(?P<why>[Kk]illing (?:JobId=|job_id |job )\S{{1,40}} on failed node) {_NODE_LIST}"
    ),
    re.compile(
        rf"(?P<why>[Rr]equeue (?:job )?(?:JobId=)?\S{{1,40}} due to failure of node) {_NODE_LIST}"
    ),
    re.compile(rf"(?P<why>Batch JobId=\S{{1,40}} missing from batch node) {_NODE_LIST}"),
)
#: A row of ``sinfo -R``; a node that an administrator took out for some work has not failed.
_LISTED = re.compile(
    r"[\s\"']{0,20}(?P<why>\S.{0,80}?)\s{1,60}[\w.-]{1,40}\s{1,20}\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"
    rf"\s{{1,20}}{_NODE_LIST}[\"',]{{0,3}}\s*$"
)
_FAILED_REASON = re.compile(
    r"(?i:node_fail|not responding|unexpectedly rebooted|kill task failed|resumetimeout)|\bNHC\b"
)
_JOB_STATE = r"NODE_FAIL|BOOT_FAIL|PREEMPTED|TIMEOUT|CANCELLED|OUT_OF_MEMORY"
#: A job's state as scontrol, sacct, Slurm's mails and those who wait for a job print it.
_STATE = re.compile(
    rf"\bJobState=(?P<job>{_JOB_STATE})\b"
    rf"|\b[Jj]ob\b.{{0,80}}?\b(?:[Ss]tatus|[Ss]tate)[=: ]{{1,3}}(?:is )?['\"]?"
    rf"(?P<said>{_JOB_STATE})\b"
    rf"|^\s{{0,8}}{ID}\s.{{0,160}}?\s(?P<row>{_JOB_STATE})(?: by \d{{1,10}}|\+)?"
    rf"\s{{1,20}}\d{{1,3}}:\d{{1,3}}\b"
    rf"|\b[Ss]lurm (?:Array Summary )?Job_id=.{{0,200}}, (?P<mail>{_JOB_STATE})(?:,|\s*$)"
)
_STEP = re.compile(rf"\b{ID}\b")
#: Kubernetes on a container; sacct cuts the state to ten characters: ``OUT_OF_ME+``.
_OOM_KILLED = re.compile(
    rf"\b[Rr]eason\W{{1,20}}OOMKilled\b|^\s{{0,8}}{ID}\s.{{0,160}}?\sOUT_OF_ME\+?\s{{1,20}}\d"
)
_STATES = {
    "NODE_FAIL": Ending.NODE_FAILURE,
    "BOOT_FAIL": Ending.NODE_FAILURE,
    "PREEMPTED": Ending.PREEMPTION,
    "TIMEOUT": Ending.TIME_LIMIT,
    "CANCELLED": Ending.CANCELLED,
}


class SlurmReader(PlainReader):
    """Task exits, step endings, OOM kills, failed launches and failed nodes."""

    words: tuple[bytes, ...] = (
        b": task",
        b"srun: error: ",
        b"*** ",
        b"oom",
        b"exceeded",
        b"xceeded ",
        b"launch failed",
        b"launch for ",
        b": error: ",
        b": fatal: ",
        b"rolog",
        b"update_node",
        b"drain_nodes",
        b"rebooted",
        b"failed node",
        b"failure of node",
        b"batch node",
        b"NODE_FAIL",
        b"BOOT_FAIL",
        b"PREEMPTED",
        b"TIMEOUT",
        b"CANCELLED",
        b"OUT_OF_ME",
        b"OOMKilled",
        b"node_fail",
        b"ot responding",
        b"Kill task failed",
        b"ResumeTimeout",
        b"NHC",
    )

    def read(self, message: Message) -> Iterable[Event]:
        for read in (_task_exit, _step_ended, _oom, _launch, _nodes, _listed, _state):
            event = read(message.text, message.at)
            if event is not None:
                yield event
                return


def _task_exit(text: str, at: Where) -> TaskExit | None:
    found = _TASK.search(text)
    hosts: tuple[str, ...] = ()
    tasks: tuple[int, ...] = ()
    if found is not None:
        hosts = _hosts(found["hosts"])
        tasks = tuple(_numbers(found["tasks"]))
    else:
        found = _TASK_CUT.search(text)
    if found is None:
        return None
    code = int(found["code"]) if found["code"] else None
    if code == 0:
        return None
    return TaskExit(
        at=at,
        hosts=hosts,
        tasks=tasks,
        exit_code=code,
        signal=_signal(found["signal"], code),
        out_of_memory=found["how"] == "Out Of Memory",
    )


def _signal(words: str | None, code: int | None) -> int | None:
    if words:
        return SIGNAL_WORDS[words.lower()]
    # A shell gives the signal of its child as 128 and more.
    if code is not None and 128 < code <= 128 + _LAST_SIGNAL:
        return code - 128
    return None


def _hosts(text: str) -> tuple[str, ...]:
    text = text.strip()
    if text.startswith("<"):
        return (text,)
    return hosts_or_text(text)


def _numbers(text: str) -> Iterator[int]:
    left = _MOST_TASKS
    for piece in text.strip("[]").split(","):
        low, _, high = piece.partition("-")
        if not low.isdigit() or len(low) > 9 or len(high) > 9 or (high and not high.isdigit()):
            continue
        for number in range(int(low), min(int(high or low), int(low) + left) + 1):
            if left <= 0:
                return
            left -= 1
            yield number


def _step_ended(text: str, at: Where) -> StepEnded | None:
    found = ENDED.search(text) if "***" in text else None
    if found is None:
        cut = CUT.search(text) if "***" in text else None
        if cut is None:
            return None
        return StepEnded(
            at=at, step=cut["step"], ending=Ending.CUT, first_host="", text=cut.group()[:400]
        )
    return StepEnded(
        at=at,
        step=found["step"],
        ending=_ending(found),
        first_host=(found["host"] or "").strip(),
        seconds=_seconds(found["at"]),
        text=found.group()[:400],
    )


def _ending(found: re.Match[str]) -> Ending:
    if found["failed"]:
        return Ending.FAILED
    why = "".join((found["why"] or "").upper().split())
    for words, ending in _ENDINGS:
        if words in why:
            return ending
    if not found["closed"]:
        # A line cut inside its reason still tells it where the rest can be one thing only.
        fits = {ending for words, ending in _ENDINGS if len(why) >= 3 and words.startswith(why)}
        return fits.pop() if len(fits) == 1 else Ending.CUT
    if found["stepd"]:
        return Ending.UNKILLABLE
    return Ending.OTHER if why else Ending.CANCELLED


def _seconds(text: str | None) -> float | None:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() if text else None
    except ValueError:
        return None


def _oom(text: str, at: Where) -> OomKill | None:
    found = _OOM.search(text)
    if found is not None and int(found["events"]) == 0:
        return None
    if found is not None:
        return OomKill(
            at=at, step=found["step"], events=int(found["events"]), host=_daemon_host(text, at)
        )
    found = _OOM_OLD.search(text)
    if found is None or "slurm" not in text:
        return None
    return OomKill(at=at, step=found["step"] or "", host=_daemon_host(text, at))


def _daemon_host(text: str, at: Where) -> str | None:
    found = _PREFIX.search(text) or _PREFIX.search(at.text)
    return (found["dash"] or found["bracket"] or at.host) if found else at.host


def _launch(text: str, at: Where) -> LaunchFailed | None:
    if _BUSY.search(text):
        return None
    for pattern in _LAUNCH:
        found = pattern.search(text)
        if found is not None:
            node = found.groupdict().get("node")
            return LaunchFailed(at=at, node=node, why=found["why"].strip()[:200])
    return None


def _nodes(text: str, at: Where) -> NodeTrouble | None:
    for pattern in _NODES:
        found = pattern.search(text)
        if found is not None:
            nodes = hosts_or_text(found["nodes"].rstrip(".,;"))
            return NodeTrouble(at=at, nodes=nodes[:4096], why=found["why"].strip())
    return None


def _listed(text: str, at: Where) -> NodeTrouble | None:
    found = _LISTED.match(text)
    if found is None or _FAILED_REASON.search(found["why"]) is None:
        return None
    nodes = hosts_or_text(found["nodes"].rstrip(".,;\"'"))
    return NodeTrouble(at=at, nodes=nodes[:4096], why=found["why"].strip(), listed=True)


def _state(text: str, at: Where) -> StepEnded | OomKill | None:
    found = _STATE.search(text)
    if found is None:
        return OomKill(at=at, step="") if _OOM_KILLED.search(text) is not None else None
    word = found["job"] or found["said"] or found["row"] or found["mail"]
    step_id = _STEP.search(text)
    step = step_id[0] if step_id is not None else ""
    if word not in _STATES:
        return OomKill(at=at, step=step)
    return StepEnded(
        at=at,
        step=step,
        ending=_STATES[word],
        first_host="",
        text=text[:400],
    )
