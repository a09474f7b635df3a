"""``squeue --json`` in all its dialects. For the polled queue, text is far cheaper.

22.05 prints bare numbers and one state word; 23.02 number objects; from 23.11 on the state
is a list. Sample (24.11)::

    {"jobs": [{"job_id": 18, "job_state": ["RUNNING"], "time_limit":
     {"set": true, "infinite": false, "number": 60}, "user_name": "alice", …}], "errors": []}
"""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from slurmtop.model.job import (
    ENDED_STATES,
    NO_TRES,
    UNKNOWN_LIMIT,
    ExitCode,
    Job,
    JobState,
    LimitKind,
    Phase,
    TimeLimit,
    Tres,
)
from slurmtop.model.snapshot import BadRecord, Parsed
from slurmtop.parse.slurm.ids import key_of, parse_job_id
from slurmtop.parse.slurm.squeue import collect_rows, wait_status
from slurmtop.parse.slurm.states import parse_state, parse_state_list
from slurmtop.parse.slurm.tres import parse_tres, times_nodes
from slurmtop.parse.slurm.words import user_text_or_none, value_or_none

#: Slurm's markers for infinite and for not set. Those of 16 bits count only in fields that
#: are so narrow (``restart_cnt``): elsewhere both are good job ids and task numbers.
_INFINITE = frozenset({0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF})
_UNSET = frozenset({0xFFFFFFFE, 0xFFFFFFFFFFFFFFFE})
_NARROW = frozenset({0xFFFF, 0xFFFE})
_LAST_SECOND = 253_402_300_799
_EXCERPT = 200

Record = dict[str, Any]


def number_of(value: object) -> float | None:
    """A bare number or a number object; None where nothing is set, infinity where unlimited.

    ``{"set": false, "infinite": false, "number": 0}`` is no value, and "infinite" wins over
    "set", which Slurm leaves false then.
    """
    if isinstance(value, dict):
        if value.get("infinite") is True:
            return math.inf
        if value.get("set") is not True:
            return None
        value = value.get("number")
    if isinstance(value, str):
        return math.inf if value in ("Infinity", "infinite", "INFINITE", "UNLIMITED") else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    if value in _INFINITE or value == math.inf:
        return math.inf
    if value in _UNSET or value < 0:
        return None
    return value


def whole_of(value: object) -> int | None:
    """As :func:`number_of`, a whole number; None where it is unlimited."""
    number = number_of(value)
    return None if number is None or math.isinf(number) else int(number)


def time_of(value: object) -> datetime | None:
    """Seconds since 1970 as aware UTC; 0 means that there is no such time."""
    seconds = whole_of(value)
    if not seconds or seconds > _LAST_SECOND:
        return None
    return datetime.fromtimestamp(seconds, UTC)


def _text(record: Record, name: str) -> str:
    value = record.get(name)
    return value if isinstance(value, str) else ""


def _state(record: Record) -> JobState:
    value = record.get("job_state")
    if isinstance(value, str):
        return parse_state(value)
    if isinstance(value, list):
        return parse_state_list(word for word in value if isinstance(word, str))
    return JobState("?", None)


def _limit(record: Record) -> TimeLimit:
    if "time_limit" not in record:
        return UNKNOWN_LIMIT
    value = record["time_limit"]
    if value is None:
        # The dialect with one state word prints null for unlimited; the later ones in
        # "+complex" mode for not set.
        unlimited = isinstance(record.get("job_state"), str)
        return TimeLimit(LimitKind.UNLIMITED if unlimited else LimitKind.PARTITION_DEFAULT)
    minutes = number_of(value)
    if minutes is None:
        return UNKNOWN_LIMIT
    if math.isinf(minutes):
        return TimeLimit(LimitKind.UNLIMITED)
    return TimeLimit(LimitKind.SECONDS, int(minutes) * 60)


def _id_text(record: Record, raw_id: int) -> str:
    """The id as squeue prints it: ``19_0``, ``19_[4-19%4]``, ``27+1``."""
    array = whole_of(record.get("array_job_id"))
    if array:
        task = whole_of(record.get("array_task_id"))
        if task is not None:
            return f"{array}_{task}"
        tasks = _text(record, "array_task_string")
        if tasks:
            return f"{array}_[{tasks}]"
    leader = whole_of(record.get("het_job_id"))
    offset = whole_of(record.get("het_job_offset"))
    if leader and offset is not None:
        return f"{leader}+{offset}"
    return str(raw_id)


def _tres(record: Record, node_count: int | None) -> Tres:
    for name in ("tres_alloc_str", "tres_req_str"):
        tres = parse_tres(_text(record, name))
        if tres is not NO_TRES:
            return tres
    tres = times_nodes(parse_tres(_text(record, "tres_per_node")), node_count)
    cpus = whole_of(record.get("cpus"))
    return replace(
        tres, cpus=cpus, nodes=node_count, mem_bytes=_mem_bytes(record, node_count, cpus)
    )


def _mem_bytes(record: Record, node_count: int | None, cpus: int | None) -> int | None:
    """Memory of the whole job, from MiB a node or a CPU; 0 a node means all that it has."""
    for name, count in (("memory_per_node", node_count), ("memory_per_cpu", cpus)):
        each = whole_of(record.get(name))
        if each and count:
            return each * count * 1024 * 1024
    return None


def exit_code_of(value: object) -> ExitCode | None:
    """A raw wait status (up to 23.02) or the object with code and signal; None for no value."""
    if not isinstance(value, dict) or "return_code" not in value:
        status = whole_of(value)
        return None if status is None else wait_status(str(status))
    signal = value.get("signal")
    if isinstance(signal, dict):
        signal = signal.get("id", signal.get("signal_id"))
    code, number = whole_of(value["return_code"]), whole_of(signal)
    return None if code is None and number is None else ExitCode(code or 0, number or 0)


def _restarts(record: Record) -> int | None:
    count = whole_of(record.get("restart_cnt"))
    return None if count in _NARROW else count


def _job(record: Record, cluster: str) -> Job | str:
    raw_id = whole_of(record.get("job_id"))
    if not raw_id:
        return "no job id"
    id = parse_job_id(_id_text(record, raw_id))
    if not id.base:
        return "no job id"
    node_count = whole_of(record.get("node_count"))
    reason = value_or_none(_text(record, "state_reason"))
    described = value_or_none(_text(record, "state_description"))
    leader = whole_of(record.get("het_job_id"))
    state = _state(record)
    # SUCCESS is printed for every job that waits or runs.
    over = state.base in ENDED_STATES and state.phase is not Phase.PENDING
    return Job(
        key=key_of(id, cluster),
        id=id,
        raw_id=str(raw_id),
        name=_text(record, "name"),
        user=_text(record, "user_name"),
        account=value_or_none(_text(record, "account")),
        partitions=tuple(name for name in _text(record, "partition").split(",") if name),
        qos=value_or_none(_text(record, "qos")),
        state=state,
        reason=described or reason,
        exit_code=exit_code_of(record.get("exit_code")) if over else None,
        derived_exit_code=exit_code_of(record.get("derived_exit_code")) if over else None,
        submit=time_of(record.get("submit_time")),
        eligible=time_of(record.get("eligible_time")),
        start=time_of(record.get("start_time")),
        end=time_of(record.get("end_time")),
        limit=_limit(record),
        node_count=node_count,
        nodes=value_or_none(_text(record, "nodes")),
        tres=_tres(record, node_count),
        priority=whole_of(record.get("priority")),
        restarts=_restarts(record),
        dependency=value_or_none(_text(record, "dependency")),
        workdir=user_text_or_none(_text(record, "current_working_directory")),
        command=user_text_or_none(_text(record, "command")),
        stdout=user_text_or_none(_text(record, "standard_output")),
        stderr=user_text_or_none(_text(record, "standard_error")),
        comment=_comment(record.get("comment")),
        het_leader=str(leader) if leader else None,
        array_id=id.base if id.task is not None or id.tasks is not None else None,
    )


def _comment(value: object) -> str | None:
    if isinstance(value, dict):
        value = value.get("job")
    return user_text_or_none(value) if isinstance(value, str) else None


def _rows(records: list[object], cluster: str) -> Iterator[Job | BadRecord]:
    for index, record in enumerate(records):
        made = _job(record, cluster) if isinstance(record, dict) else "not an object"
        yield BadRecord(index, made, repr(record)[:_EXCERPT]) if isinstance(made, str) else made


def _failure(why: str, text: str) -> Parsed[Job]:
    return Parsed((), 1, BadRecord(0, why, text[:_EXCERPT]))


def _errors(document: Record) -> str:
    errors = document.get("errors")
    if not isinstance(errors, list) or not errors:
        return ""
    first = errors[0]
    if isinstance(first, dict):
        first = first.get("error") or first.get("description") or first
    return f"squeue reports an error: {str(first)[:_EXCERPT]}"


def parse_squeue_json(data: bytes, cluster: str = "") -> Parsed[Job]:
    """A whole answer of ``squeue --json``. Never raises.

    Bytes that are no UTF-8 (Slurm prints names raw) are replaced. An answer without jobs but
    with errors, which 22.05 gives with exit status 0 while the controller is away, counts as
    one bad record and so does one that is no JSON: neither is an empty queue.
    """
    text = data.decode("utf-8", "replace")
    try:
        # Not strict: one raw control character in a name must not cost all the others.
        document = json.loads(text, strict=False)
    except (ValueError, RecursionError) as error:
        return _failure(f"no JSON: {error}"[:_EXCERPT], text)
    if not isinstance(document, dict) or not isinstance(document.get("jobs"), list):
        why = _errors(document) if isinstance(document, dict) else ""
        return _failure(why or "no list of jobs", text)
    why = _errors(document)
    if why and not document["jobs"]:
        return _failure(why, text)
    return collect_rows(_rows(document["jobs"], cluster))
