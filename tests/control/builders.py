"""Jobs to plan actions for."""

from datetime import UTC, datetime, timedelta

from slurmtop.control.actions import Action, Asker, Refusal
from slurmtop.control.cancel import plan_cancel
from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job, Tres
from slurmtop.parse.slurm.ids import parse_job_id
from slurmtop.parse.slurm.states import parse_state

NOW = datetime(2031, 5, 5, 12, 0, tzinfo=UTC)


def job(id: str, word: str = "RUNNING", *, cluster: str = "", **changes: object) -> Job:
    parsed = parse_job_id(id)
    running = word in ("RUNNING", "SUSPENDED", "COMPLETING")
    values: dict[str, object] = {
        "key": JobKey(cluster, parsed.stable),
        "id": parsed,
        "name": "train",
        "user": "anna",
        "state": parse_state(word),
        "submit": NOW - timedelta(hours=4),
        "start": NOW - timedelta(hours=3) if running else None,
        "node_count": 1,
        "nodes": "gpu01" if running else None,
        "tres": Tres(gpus=8),
    }
    values.update(changes)
    return Job(**values)  # type: ignore[arg-type]


def plan(*jobs: Job, me: str = "anna", cluster: str = "", read_only: bool = False) -> Action:
    made = plan_cancel(jobs, Asker(me=me, now=NOW, cluster=cluster, read_only=read_only))
    assert isinstance(made, Action), made
    return made


def refusal(*jobs: Job, me: str = "anna", cluster: str = "", read_only: bool = False) -> str:
    made = plan_cancel(jobs, Asker(me=me, now=NOW, cluster=cluster, read_only=read_only))
    assert isinstance(made, Refusal), made
    return made.sentence
