"""Builders: a job with the few facts a test is about, everything else plain."""

from datetime import datetime, timedelta
from typing import Any

from slurmtop.control.actions import Action
from slurmtop.model.ids import JobId, JobKey, TaskSet
from slurmtop.model.job import ENDED_STATES, Job, JobState, LimitKind, TimeLimit, Tres
from slurmtop.model.node import Node
from slurmtop.parse.slurm.node_reasons import lost_gpus
from slurmtop.parse.slurm.states import parse_node_state
from slurmtop.parse.slurm.tres import parse_gres
from slurmtop.store.view import JobView
from tests.fakes import START

_BASES = {"PENDING", "RUNNING", "SUSPENDED", *ENDED_STATES}


def make_state(word: str) -> JobState:
    """The state behind one word of squeue; a flag leaves the base unknown."""
    base = word if word in _BASES else None
    if word == "CONFIGURING":
        base = "RUNNING"
    return JobState(word, base, () if word in _BASES else (word,))


def make_id(text: str) -> JobId:
    """``4711``, ``4711_3``, ``4711+1``, ``4711_[0-499%4]``."""
    if "_[" in text:
        base, _, rest = text.partition("_[")
        spans, _, throttle = rest.rstrip("]").partition("%")
        count = 0
        for span in spans.split(","):
            low, _, high = span.partition("-")
            count += int(high or low) - int(low) + 1
        tasks = TaskSet(rest.rstrip("]"), count, throttle=int(throttle) if throttle else None)
        return JobId(text, base, tasks=tasks)
    if "_" in text:
        base, _, task = text.partition("_")
        return JobId(text, base, task=int(task))
    if "+" in text:
        base, _, part = text.partition("+")
        return JobId(text, base, het_offset=int(part))
    return JobId(text, text)


def make_job(text: str = "4711", state: str = "RUNNING", **fields: Any) -> Job:
    """One queue record. ``ran_s`` and ``waits_s`` set start and submit; ``limit_s`` a limit."""
    job_id = make_id(text)
    now: datetime = fields.pop("now", START)
    ran_s = fields.pop("ran_s", 600 if state != "PENDING" else None)
    waits_s = fields.pop("waits_s", 3_600)
    limit_s = fields.pop("limit_s", 86_400)
    gpus = fields.pop("gpus", None)
    given: dict[str, Any] = {
        "key": JobKey(fields.pop("cluster", ""), job_id.stable),
        "id": job_id,
        "raw_id": job_id.base,
        "name": "train",
        "user": "anna",
        "account": "ml",
        "partitions": ("gpu",),
        "qos": "normal",
        "state": make_state(state),
        "reason": "Priority" if state == "PENDING" else None,
        "submit": now - timedelta(seconds=waits_s),
        "start": None if ran_s is None else now - timedelta(seconds=ran_s),
        "limit": TimeLimit(LimitKind.SECONDS, limit_s),
        "node_count": 1,
        "nodes": None if state == "PENDING" else "gpu01",
        "tres": Tres(gpus=gpus),
        "restarts": 0,
    }
    return Job(**{**given, **fields})


def make_node(name: str = "gpu01", state: str = "idle", **fields: Any) -> Node:
    """One node as sinfo tells it. ``gres`` and ``used`` are its texts, ``used`` also a number of
    h100 in use; ``ago_s`` is how old the reason is."""
    gres = fields.pop("gres", "gpu:h100:8")
    used = fields.pop("used", 0)
    if isinstance(used, int):
        used = f"gpu:h100:{used}"
    ago_s = fields.pop("ago_s", 7_500)
    reason = fields.get("reason")
    alloc = fields.pop("cpus_alloc", 128 if state.startswith("alloc") else 0)
    if state.startswith(("mix", "drng", "draining")):
        alloc = alloc or 32
    given: dict[str, Any] = {
        "name": name,
        "state": parse_node_state(state),
        "partitions": ("gpu",),
        "default_partition": "gpu",
        "gres": parse_gres(gres, used) if gres is not None else None,
        "cpus_alloc": alloc,
        "cpus_idle": 128 - alloc,
        "cpus_other": 0,
        "cpus_total": 128,
        "mem_total_mib": 2_063_360,
        "mem_free_mib": 1_500_000,
        "cpu_load": 1.5,
        "reason_user": "root" if reason else None,
        "reason_at": START - timedelta(seconds=ago_s) if reason else None,
        "gpus_lost": lost_gpus(reason),
    }
    return Node(**{**given, **fields})


def as_planned(action: Action) -> dict[str, str]:
    """The jobs of an action by id, in the state that it was planned for."""
    rows: dict[str, str] = {}
    for target in action.targets:
        if target.parts:
            ids = [part.id for part in target.parts]
        else:
            ids = list(target.ids) if target.tasks and target.step is None else [target.key.id]
        rows.update(dict.fromkeys(ids, target.state_word))
    return rows


def move_to_key(view: JobView, key: JobKey) -> None:
    """Put the cursor of a view on a job that is in it."""
    view.move_to([row.key for row in view.rows].index(key))
