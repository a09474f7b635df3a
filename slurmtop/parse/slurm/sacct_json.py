"""``sacct --json`` in all its dialects. slurmtop itself asks for text; recordings hold both.

22.05 prints bare numbers and one state word, 23.11 and later number objects and lists. Sample
(24.11)::

    {"jobs": [{"job_id": 20, "state": {"current": ["FAILED"], "reason": "None"}, "exit_code":
     {"status": ["ERROR"], "return_code": {"set": true, "infinite": false, "number": 3}, …}, …}]}

Up to 23.02 ``exit_code`` says SUCCESS and 0 for every exit that was no signal, exit 1 as well:
there the state alone tells how a job ended.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from slurmtop.model.job import (
    NO_TRES,
    UNKNOWN_LIMIT,
    AccountingRecord,
    ExitCode,
    JobState,
    LimitKind,
    TimeLimit,
    Tres,
)
from slurmtop.model.snapshot import BadRecord, Parsed
from slurmtop.parse.slurm.ids import parse_job_id
from slurmtop.parse.slurm.squeue_json import exit_code_of, number_of, time_of, whole_of
from slurmtop.parse.slurm.states import parse_state, parse_state_list
from slurmtop.parse.slurm.tres import parse_tres
from slurmtop.parse.slurm.words import user_text_or_none, value_or_none

_EXCERPT = 200
#: Where slurmdbd prints a start that never was.
_NEVER = 0xFFFFFFFE
_BITS = re.compile(r"0x[0-9A-Fa-f]{1,100000}")

Record = dict[str, Any]


def _map(record: Record, name: str) -> Record:
    value = record.get(name)
    return value if isinstance(value, dict) else {}


def _text(record: Record, name: str) -> str:
    value = record.get(name)
    return value if isinstance(value, str) else ""


def _state(value: object) -> JobState:
    if isinstance(value, dict):
        value = value.get("current")
    if isinstance(value, str):
        return parse_state(value)
    words = value if isinstance(value, list) else []
    return parse_state_list(word for word in words if isinstance(word, str))


def _exit_code(record: Record, name: str, state: JobState, old: bool) -> ExitCode | None:
    """None before the end, and where the old dialect says success of what did not succeed."""
    code = exit_code_of(record.get(name)) if state.ended else None
    if old and state.base == "FAILED" and code == ExitCode(0, 0) and name == "exit_code":
        return None
    return code


def _tres(value: object) -> Tres:
    """A list of ``{"type": "gres", "name": "gpu", "count": 8}`` as one text, memory in MiB."""
    pairs = []
    for item in value if isinstance(value, list) else []:
        if isinstance(item, dict):
            name = "/".join(filter(None, (_text(item, "type"), _text(item, "name"))))
            pairs.append(f"{name}={whole_of(item.get('count'))}")
    return parse_tres(",".join(pairs)) if pairs else NO_TRES


def _limit(value: object) -> TimeLimit:
    minutes = number_of(value)
    if minutes is None:
        return UNKNOWN_LIMIT
    if minutes == float("inf"):
        return TimeLimit(LimitKind.UNLIMITED)
    return TimeLimit(LimitKind.SECONDS, int(minutes) * 60)


def _clock(times: Record, name: str) -> float | None:
    spent = _map(times, name)
    seconds, micro = whole_of(spent.get("seconds")), whole_of(spent.get("microseconds"))
    return None if seconds is None else seconds + (micro or 0) / 1_000_000


def _spans(bits: str) -> str:
    """Where sacct prints the tasks that wait as a bit map: ``0xFFFFE`` is ``1-19``."""
    if not _BITS.fullmatch(bits):
        return bits
    digits = f"{int(bits, 16):b}"[::-1]
    spans = (match.span() for match in re.finditer("1+", digits))
    return ",".join(f"{low}-{end - 1}" if end - low > 1 else str(low) for low, end in spans)


def _throttle(array: Record) -> str:
    most = whole_of(_map(_map(_map(array, "limits"), "max"), "running").get("tasks"))
    return f"%{most}" if most else ""


def _id_text(record: Record, raw_id: int) -> str:
    array, het = _map(record, "array"), _map(record, "het")
    base, task = whole_of(array.get("job_id")), whole_of(array.get("task_id"))
    if base and task is not None:
        return f"{base}_{task}"
    if base and _text(array, "task"):
        return f"{base}_[{_spans(_text(array, 'task'))}{_throttle(array)}]"
    leader, offset = whole_of(het.get("job_id")), whole_of(het.get("job_offset"))
    return f"{leader}+{offset}" if leader and offset is not None else str(raw_id)


def _job(record: Record) -> list[AccountingRecord] | str:
    raw_id = whole_of(record.get("job_id"))
    if not raw_id:
        return "no job id"
    text = _id_text(record, raw_id)
    times, tres = _map(record, "time"), _map(record, "tres")
    state = _state(record.get("state"))
    old = isinstance(_map(record, "state").get("current"), str)
    requested = _tres(tres.get("requested"))
    job = AccountingRecord(
        id=parse_job_id(text),
        raw_id=str(raw_id),
        cluster=value_or_none(_text(record, "cluster")),
        name=_text(record, "name"),
        user=value_or_none(_text(record, "user") or _text(_map(record, "association"), "user")),
        account=value_or_none(_text(record, "account")),
        partition=value_or_none(_text(record, "partition")),
        state=state,
        exit_code=_exit_code(record, "exit_code", state, old),
        derived_exit_code=_exit_code(record, "derived_exit_code", state, old),
        submit=time_of(times.get("submission")),
        eligible=time_of(times.get("eligible")),
        start=time_of(times.get("start")),
        end=time_of(times.get("end")),
        never_started=times.get("start") == _NEVER,
        elapsed_s=whole_of(times.get("elapsed")),
        limit=_limit(times.get("limit")),
        node_count=whole_of(record.get("allocation_nodes")),
        nodes=value_or_none(_text(record, "nodes")),
        allocated=_tres(tres.get("allocated")),
        requested=requested,
        req_mem_bytes=requested.mem_bytes,
        total_cpu_s=_clock(times, "total"),
        user_cpu_s=_clock(times, "user"),
        reason=value_or_none(_text(_map(record, "state"), "reason")),
        workdir=user_text_or_none(_text(record, "working_directory")),
        comment=user_text_or_none(_text(_map(record, "comment"), "job")),
        submit_line=user_text_or_none(_text(record, "submit_line")),
        stdout=user_text_or_none(_text(record, "stdout")),
        stderr=user_text_or_none(_text(record, "stderr")),
        restarts=whole_of(record.get("restart_cnt")),
    )
    steps = record.get("steps")
    found = [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
    return [job, *(_step(step, text, old) for step in found)]


def _step(record: Record, job: str, old: bool) -> AccountingRecord:
    times, tres = _map(record, "time"), _map(record, "tres")
    step = _map(record, "step")
    # "17.batch" since 23.11, "batch" or a number before, and an object since 25.11.
    number = step.get("id")
    if isinstance(number, dict):
        number = number.get("step_id")
    if isinstance(number, dict):
        number = whole_of(number)
    name = str(number if number is not None else "").rpartition(".")[2]
    state = _state(record.get("state"))
    nodes = _map(record, "nodes")
    return AccountingRecord(
        id=parse_job_id(f"{job}.{name}"),
        name=_text(step, "name"),
        state=state,
        exit_code=_exit_code(record, "exit_code", state, old),
        start=time_of(times.get("start")),
        end=time_of(times.get("end")),
        elapsed_s=whole_of(times.get("elapsed")),
        node_count=whole_of(nodes.get("count")),
        nodes=value_or_none(_text(nodes, "range")),
        allocated=_tres(tres.get("allocated")),
        total_cpu_s=_clock(times, "total"),
        user_cpu_s=_clock(times, "user"),
    )


def _rows(records: list[object]) -> Iterator[AccountingRecord | BadRecord]:
    for index, record in enumerate(records):
        made = _job(record) if isinstance(record, dict) else "not an object"
        if isinstance(made, str):
            yield BadRecord(index, made, repr(record)[:_EXCERPT])
        else:
            yield from made


def parse_sacct_json(data: bytes) -> Parsed[AccountingRecord]:
    """A whole answer of ``sacct --json``: each job row, then its steps. Never raises.

    What is no JSON, or holds errors and no jobs, is one bad record and no empty history.
    """
    text = data.decode("utf-8", "replace")
    try:
        document = json.loads(text, strict=False)
    except (ValueError, RecursionError) as error:
        return Parsed((), 1, BadRecord(0, f"no JSON: {error}"[:_EXCERPT], text[:_EXCERPT]))
    jobs = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(jobs, list) or (not jobs and document.get("errors")):
        why = "sacct reports an error" if isinstance(document, dict) else "no list of jobs"
        return Parsed((), 1, BadRecord(0, why, text[:_EXCERPT]))
    return Parsed.of(_rows(jobs))
