"""Jobs, nodes, configuration and controllers as ``scontrol show`` prints them.

Source: ``scontrol show job ID``, in blocks or with ``-o`` on one line; ``-d`` adds detail::

    JobId=2 JobName=llm-pretrain
       UserId=alice(1001) GroupId=alice(1001) MCS_label=N/A
       JobState=RUNNING Reason=None Dependency=(null)
       …
       Command=/w/train.sh

and ``scontrol show node``, whose reason may go on over several lines::

    NodeName=gpu02 CoresPerSocket=64
       State=DOWN+NOT_RESPONDING ThreadsPerCore=1 …
       Reason=xid 79 fallen off the bus [root@2031-05-05T10:00:00]
              see ticket 12
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from slurmtop.model.job import ExitCode, Job, JobDetail, JobState, Tres
from slurmtop.model.node import GresPool, Node
from slurmtop.model.snapshot import BadRecord, Parsed
from slurmtop.parse.slurm.ids import key_of, parse_job_id
from slurmtop.parse.slurm.node_reasons import lost_gpus
from slurmtop.parse.slurm.reasons import spelled_out
from slurmtop.parse.slurm.scontrol_text import JobText, key_values, split_jobs
from slurmtop.parse.slurm.states import parse_node_state, parse_state
from slurmtop.parse.slurm.times import parse_limit, parse_seconds, parse_time
from slurmtop.parse.slurm.tres import parse_gres, parse_tres
from slurmtop.parse.slurm.words import NONE_WORDS, user_text_or_none, value_or_none

_EXCERPT = 200
_MIB = re.compile(r"\d{1,12}\Z")
_EXIT = re.compile(r"(\d{1,9}):(\d{1,9})\Z")
_USER = re.compile(r"(.*)\((\d{1,10})\)\Z", re.DOTALL)
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?\Z")
#: Slurm 22.05 prints its marker for "no task" into the path of an array that waits.
_NO_TASK = "4294967294"


def parse_exit_code(text: str) -> ExitCode | None:
    """``137:0``; None for anything else, as for an empty field."""
    match = _EXIT.match(text)
    return ExitCode(int(match[1]), int(match[2])) if match else None


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else None


def _flag(text: str) -> bool | None:
    number = _whole(text)
    return None if number is None else number > 0


def _id_text(get: Mapping[str, str]) -> str:
    """The id as squeue spells it: ``3_2``, ``3_[4-19%4]``, ``11+1``."""
    array, task = get.get("ArrayJobId"), get.get("ArrayTaskId")
    if array and task:
        return f"{array}_{task}" if task.isdecimal() else f"{array}_[{task}]"
    leader, offset = get.get("HetJobId"), get.get("HetJobOffset")
    if leader and offset:
        return f"{leader}+{offset}"
    return get["JobId"]


def _detail(record: JobText, cluster: str) -> JobDetail | str:
    """The model of one record, or why there is none."""
    get = dict(reversed(record.fields))
    if record.sure and "JobState" not in get:
        return "no JobState"
    id = parse_job_id(_id_text(get))
    if not id.base:
        return "no job id"
    user = _USER.match(get.get("UserId", ""))
    state = parse_state(get["JobState"]) if "JobState" in get else JobState("?", None)
    nodes = value_or_none(get.get("NodeList", ""))
    requested, allocated = parse_tres(get.get("ReqTRES", "")), parse_tres(get.get("AllocTRES", ""))
    if "TRES" in get:
        # Up to 22.05 one field: what was asked for, and what is held once there are nodes.
        both = parse_tres(get["TRES"])
        requested, allocated = (requested, both) if nodes else (both, allocated)
    count = _RANGE.match(get.get("NumNodes", ""))
    most = int(count[2]) if count and count[2] else None
    stdout = _path(get.get("StdOut"), id.tasks is not None)
    # Since 26.05 an empty StdErr means that it goes where stdout goes.
    stderr = _path(get.get("StdErr"), id.tasks is not None) or (stdout if "StdErr" in get else None)
    partitions = value_or_none(get.get("Partition", ""))
    job = Job(
        key=key_of(id, cluster),
        id=id,
        raw_id=record.raw_id,
        name=record.name,
        user=user[1] if user else get.get("UserId", ""),
        account=value_or_none(get.get("Account", "")),
        partitions=() if partitions is None else tuple(filter(None, partitions.split(","))),
        qos=value_or_none(get.get("QOS", "")),
        state=state,
        reason=value_or_none(spelled_out(get.get("Reason", ""))),
        submit=parse_time(get.get("SubmitTime", "")),
        eligible=parse_time(get.get("EligibleTime", "")),
        start=parse_time(get.get("StartTime", "")),
        end=parse_time(get.get("EndTime", "")),
        limit=parse_limit(get.get("TimeLimit", "")),
        node_count=int(count[1]) if count else None,
        nodes=nodes,
        tres=requested if allocated == Tres() else allocated,
        priority=_whole(get.get("Priority", "")),
        restarts=_whole(get.get("Restarts", "")),
        dependency=value_or_none(get.get("Dependency", "")),
        workdir=user_text_or_none(get.get("WorkDir", "")),
        command=user_text_or_none(get.get("Command", "")),
        stdout=stdout,
        stderr=stderr,
        comment=user_text_or_none(get.get("Comment", "")),
        het_leader=get.get("HetJobId"),
        array_id=get.get("ArrayJobId"),
        name_unsure=not record.sure,
    )
    return JobDetail(
        job=job,
        user_id=int(user[2]) if user else None,
        exit_code=parse_exit_code(get.get("ExitCode", "")),
        derived_exit_code=parse_exit_code(get.get("DerivedExitCode", "")),
        run_time_s=parse_seconds(get.get("RunTime", "")),
        requeueable=_flag(get.get("Requeue", "")),
        batch=_flag(get.get("BatchFlag", "")),
        batch_host=value_or_none(get.get("BatchHost", "")),
        excluded_nodes=value_or_none(get.get("ExcNodeList", "")),
        requested_nodes=value_or_none(get.get("ReqNodeList", "")),
        nodes_max=most if count and most != int(count[1]) else None,
        requested=requested,
        allocated=allocated,
        submit_line=user_text_or_none(get.get("SubmitLine", "")),
        fields=record.fields,
    )


def _path(text: str | None, waits_as_array: bool) -> str | None:
    path = user_text_or_none(text or "")
    return path.replace(_NO_TASK, "%a") if path and waits_as_array else path


def parse_scontrol_jobs(
    data: bytes, *, names: Mapping[str, str] | None = None, cluster: str = ""
) -> Parsed[JobDetail]:
    """An answer of ``scontrol show job``, in blocks or with ``-o``. Never raises.

    ``names`` maps a raw job id to its raw name as squeue gave it. With it no name can forge a
    field; without it a field that a name may have forged is unknown where it cannot be told
    (:mod:`slurmtop.parse.slurm.scontrol_text` has the rules). A reason has its blanks back.
    """
    return Parsed.of(_details(data.decode("utf-8", "replace"), names or {}, cluster))


def _details(text: str, names: Mapping[str, str], cluster: str) -> Iterator[JobDetail | BadRecord]:
    for index, record in enumerate(split_jobs(text, names)):
        found = "no fields" if isinstance(record, str) else _detail(record, cluster)
        if isinstance(found, JobDetail):
            yield found
            continue
        excerpt = record if isinstance(record, str) else f"JobId={record.raw_id} {record.name}"
        yield BadRecord(index, found, excerpt[:_EXCERPT])


_NODE = re.compile(r"^NodeName=", re.MULTILINE)
_NODE_KEY = re.compile(r"(?<=[ \n])([A-Za-z][A-Za-z0-9_]{0,40})=")
#: What administrators write, and what may stand behind it.
_NODE_TEXT = re.compile(r"(?<=[ \n])(Reason|Comment|Extra|InstanceId|InstanceType|ResvName)=")
_REASON_BY = re.compile(r"[ ]*\[([^\[\]@]{1,100})@([^\[\]@]{1,40})\]\Z")


def _node_fields(text: str) -> list[tuple[str, str]]:
    """Fields of one node; each key once, because Slurm's own stand before any text."""
    texts = list(_NODE_TEXT.finditer(text))
    plain_end = texts[0].start() if texts else len(text)
    keys = list(_NODE_KEY.finditer(text, 0, plain_end))
    name_end = keys[0].start() if keys else plain_end
    return [
        ("NodeName", text[len("NodeName=") : name_end].strip()),
        *((key, value.strip()) for key, value in key_values(text, keys, plain_end)),
        *key_values(text, texts, len(text)),
    ]


def _reason(text: str) -> tuple[str | None, str | None, str | None]:
    """(reason, who, when); who and when stand at the end of its first line."""
    first, *more = text.split("\n")
    by = _REASON_BY.search(first, max(0, len(first) - 200))
    if by is not None:
        first = first[: by.start()]
    reason = "\n".join([first.strip(), *(line.strip() for line in more)]).strip()
    who = value_or_none(by[1]) if by else None
    return value_or_none(reason), who, by[2] if by else None


def _with_use(pools: tuple[GresPool, ...], get: Mapping[str, str]) -> tuple[GresPool, ...]:
    """GPUs in use from AllocTRES, where ``-d`` was not asked for and Slurm counts GPUs."""
    if "GresUsed" in get or "gres/gpu" not in get.get("CfgTRES", "") or "AllocTRES" not in get:
        return pools
    used = parse_tres(get["AllocTRES"])
    typed = {**dict(used.gpus_by_type), **dict(used.slices_by_type)}
    alone = sum(1 for pool in pools if pool.kind == "gpu") == 1
    return tuple(
        replace(pool, used=(used.gpus or 0) if alone else typed.get(pool.type or "", 0))
        if pool.kind == "gpu"
        else pool
        for pool in pools
    )


def _node(fields: list[tuple[str, str]]) -> Node | None:
    get = dict(reversed(fields))
    if not get["NodeName"] or "State" not in get:
        return None
    partitions = value_or_none(get.get("Partitions", ""))
    reason, who, when = _reason(get.get("Reason", ""))
    free = _whole(get.get("FreeMem", ""))
    load = get.get("CPULoad", "")
    return Node(
        name=get["NodeName"],
        state=parse_node_state(get["State"]),
        partitions=() if partitions is None else tuple(filter(None, partitions.split(","))),
        gres=_with_use(parse_gres(get["Gres"], get.get("GresUsed", "")), get)
        if "Gres" in get
        else None,
        cpus_alloc=_whole(get.get("CPUAlloc", "")),
        cpus_total=_whole(get.get("CPUTot", "")),
        mem_total_mib=_whole(get.get("RealMemory", "")),
        mem_free_mib=free,
        # A node that never reported shows a load of 0.00 and no free memory.
        cpu_load=None if load in NONE_WORDS or (free is None and load == "0.00") else _float(load),
        reason=reason,
        reason_user=who,
        reason_at=parse_time(when or ""),
        gpus_lost=lost_gpus(reason),
        fields=tuple(fields),
    )


def _float(text: str) -> float | None:
    whole, _, decimals = text.partition(".")
    plain = f"{whole}{decimals or '0'}"
    return float(text) if plain.isascii() and plain.isdecimal() and len(plain) < 16 else None


def parse_scontrol_nodes(data: bytes) -> Parsed[Node]:
    """An answer of ``scontrol show node``, in blocks or with ``-o``. Never raises."""
    return Parsed.of(_nodes(data.decode("utf-8", "replace")))


def _nodes(text: str) -> Iterator[Node | BadRecord]:
    starts = [match.start() for match in _NODE.finditer(text)]
    bounds = [*starts[1:], len(text)]
    for index, (start, end) in enumerate(zip(starts, bounds, strict=False)):
        node = _node(_node_fields(text[start:end]))
        bad = BadRecord(index, "no State", text[start : start + _EXCERPT])
        yield bad if node is None else node


_SETTING = re.compile(r"^([A-Za-z][A-Za-z0-9_()/-]{0,80})[ ]{0,40}= ?(.*)$", re.MULTILINE)


def parse_scontrol_config(data: bytes) -> dict[str, str]:
    """``scontrol show config`` as names and values, as printed (``(null)`` stays).

    Sample: ``MessageTimeout          = 10 sec``. The first of equal names is kept.
    """
    found: dict[str, str] = {}
    for name, value in _SETTING.findall(data.decode("utf-8", "replace")):
        found.setdefault(name, value.strip())
    return found


_PING = re.compile(r"^Slurmctld\(([^)\n]*)\) at (\S+) (?:is|are) (\S+)", re.MULTILINE)


def parse_ping(data: bytes) -> tuple[tuple[str, str, bool], ...]:
    """``scontrol ping``: (role, host, up) of each controller; empty where it said nothing.

    Samples: ``Slurmctld(primary) at ctl1 is UP``, and of old releases both in one line:
    ``Slurmctld(primary/backup) at ctl1/ctl2 are UP/DOWN``. DOWN may only mean that this
    machine cannot prove who it is: look at stderr too.
    """
    found: list[tuple[str, str, bool]] = []
    for roles, hosts, states in _PING.findall(data.decode("utf-8", "replace")):
        parts = [roles.split("/"), hosts.split("/"), states.split("/")]
        if len({len(part) for part in parts}) != 1:
            parts = [[roles], [hosts], [states]]
        found += [(role, host, state == "UP") for role, host, state in zip(*parts, strict=True)]
    return tuple(found)
