"""Actions by what Slurm says at that moment: nothing is offered that it would refuse."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from slurmtop.control.actions import Action, Details, Kind, Recipient, Refusal
from slurmtop.control.outcome import Seen
from slurmtop.control.prepare import Request, ScriptSeen, StepsSeen, prepare
from slurmtop.control.read_back import QueueReadBack
from slurmtop.model.job import Job, Step
from slurmtop.model.ports import Command, Completed
from slurmtop.model.process import NodeProcesses
from slurmtop.model.rights import UNKNOWN_RIGHTS, Rights
from slurmtop.model.script import Reaction, ScriptReading
from tests.build import make_job
from tests.cases.acting import ASKER, row, said
from tests.cases.product import CaseRunner, in_asked_form, until_done
from tests.fakes import START

DOWN = said("slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n")


class _World:
    """The real look at the queue over given rows; scripts, rights and histories are silent."""

    def __init__(self, rows: Sequence[Mapping[str, str]], lists: Completed | None = None) -> None:
        self.runner = CaseRunner()
        self._rows = rows
        self._lists = lists
        self.runner.on_call("squeue *", self._look)
        self._read_back = QueueReadBack(self.runner)

    def _look(self, command: Command) -> Completed:
        if "-o" in command.argv and self._lists is not None:
            return self._lists
        rows = () if "-s" in command.argv else self._rows
        return Completed(0, in_asked_form(command.argv, rows), b"", START, 0.1)

    async def jobs(self, numbers: Sequence[str], cluster: str, **how: Any) -> Seen:
        return await self._read_back.read(numbers, cluster, excluded=True)

    async def steps(self, numbers: Sequence[str], cluster: str) -> StepsSeen:
        return await self._read_back.read_steps(numbers, cluster)

    async def script(self, job: Job) -> ScriptSeen:
        return ScriptSeen(None, "the script was not read")

    async def looping(self, job: Job) -> str | None:
        return None

    async def processes(self, job: str, hosts: Sequence[str]) -> tuple[NodeProcesses, ...]:
        return ()

    def doing(self) -> str:
        return ""

    async def rights(self) -> Rights:
        return UNKNOWN_RIGHTS

    def reactions(
        self, reading: ScriptReading, signal: str, recipient: Recipient, step: Step | None
    ) -> tuple[Reaction, ...]:
        raise AssertionError("there is no script to ask about")


async def prepared(
    world: _World, kind: Kind, *jobs: Job, details: Details | None = None
) -> Action | Refusal:
    request = Request(kind=kind, jobs=jobs, details=details or Details())
    return await until_done(world.runner.clock, prepare(request, world, ASKER))


def _refused(made: Action | Refusal) -> str:
    assert isinstance(made, Refusal), made
    return made.sentence


@pytest.mark.parametrize("kind", [Kind.REQUEUE, Kind.REQUEUE_HOLD])
@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"requeueable": "0", "batch": "1"}, "--no-requeue"),
        ({"requeueable": "1", "batch": "0"}, "interactive"),
    ],
)
async def test_kind_053_what_may_not_be_requeued_is_read_before(
    kind: Kind, more: dict[str, str], says: str
) -> None:
    world = _World([row("8901", "RUNNING", **more)])
    assert says in _refused(await prepared(world, kind, make_job("8901")))
    assert not world.runner.asked("scontrol")


async def test_kind_053_a_job_that_is_gone_is_not_requeued() -> None:
    assert "resubmit" in _refused(await prepared(_World([]), Kind.REQUEUE, make_job("8904")))


async def test_kind_049_tasks_that_ended_meanwhile_are_not_run_again() -> None:
    jobs = [make_job(f"4711_{n}", "RUNNING") for n in range(4)]
    states = ("COMPLETED", "FAILED", "RUNNING", "TIMEOUT")
    rows = [row(f"4711_{n}", state) for n, state in enumerate(states)]
    made = await prepared(_World(rows), Kind.REQUEUE, *jobs)
    assert isinstance(made, Action)
    assert made.argvs == (("scontrol", "requeue", "4711_[1-3]"),)
    assert any("4711_0" in warning for warning in made.warnings)


@pytest.mark.parametrize("recipient", [Recipient.STEPS, Recipient.BATCH, Recipient.EVERYTHING])
async def test_kind_066_a_job_that_waits_by_now_is_not_signalled(recipient: Recipient) -> None:
    details = Details(signal="USR1", recipient=recipient)
    world = _World([row("9801", "PENDING", reason="BeginTime")])
    made = await prepared(world, Kind.SIGNAL, make_job("9801"), details=details)
    assert "not started" in _refused(made)
    assert not world.runner.asked("scancel")


async def test_kind_066_no_batch_shell_in_an_interactive_job() -> None:
    details = Details(signal="USR1", recipient=Recipient.BATCH)
    world = _World([row("9802", "RUNNING", batch="0")])
    made = await prepared(world, Kind.SIGNAL, make_job("9802"), details=details)
    assert "no batch script in an interactive job" in _refused(made)


@pytest.mark.parametrize(
    ("lists", "hosts"),
    [("", "gpu03"), ("(null)", "gpu03"), ("gpu[01-02]", "gpu[01-03]"), ("cpu9", "cpu9,gpu03")],
)
async def test_S049_what_is_excluded_already_stays_excluded(lists: str, hosts: str) -> None:
    world = _World([row("4711", "PENDING", excluded_nodes=lists)])
    details = Details(exclude=("gpu03",))
    made = await prepared(world, Kind.EXCLUDE, make_job("4711", "PENDING"), details=details)
    assert isinstance(made, Action)
    assert made.argvs == (("scontrol", "update", "JobId=4711", f"ExcNodeList={hosts}"),)


@pytest.mark.parametrize(
    "lists",
    [DOWN, said(rc=0), said("squeue: error: Invalid job format specification: x\n"), said(rc=None)],
)
async def test_S049_a_list_that_cannot_be_read_is_not_replaced(lists: Completed) -> None:
    world = _World([row("4711", "PENDING", excluded_nodes="gpu01")], lists)
    details = Details(exclude=("gpu03",))
    for before in (None, "", "gpu02"):
        job = make_job("4711", "PENDING", excluded_nodes=before)
        sentence = _refused(await prepared(world, Kind.EXCLUDE, job, details=details))
        assert "4711" in sentence


@pytest.mark.parametrize("kind", [Kind.REQUEUE, Kind.HOLD, Kind.SIGNAL, Kind.LIMIT])
async def test_kind_049_another_run_under_the_same_id_is_left_alone(kind: Kind) -> None:
    details: dict[Kind, Any] = {
        Kind.SIGNAL: Details(signal="USR1"),
        Kind.LIMIT: Details(limit_minutes=10),
    }
    world = _World([row("4711", "RUNNING", submit="2031-05-05T11:59:00", restarts="0")])
    made = await prepared(world, kind, make_job("4711"), details=details.get(kind))
    assert "4711" in _refused(made)
