"""Cancelling, and what scancel keeps to itself: case 046."""

from collections.abc import Mapping
from typing import Any

import pytest

from slurmtop.control.action_log import Entry
from slurmtop.control.actions import Action, Asker, Kind
from slurmtop.control.cancel import plan_cancel
from slurmtop.control.execute import Executor
from slurmtop.control.outcome import Outcome, Result, done_word
from slurmtop.control.read_back import QueueReadBack
from slurmtop.model.job import Job
from slurmtop.model.ports import Command, Completed
from slurmtop.parse.slurm.scancel import ScancelKind, parse_scancel
from tests.build import make_job
from tests.cases.product import CaseRunner, in_asked_form, until_done
from tests.cases.support import load, prose, sentence
from tests.fakes import START


class _Log:
    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def record(self, entry: Entry) -> str | None:
        self.entries.append(entry)
        return None


def _row(job: str, state: str, **more: str) -> dict[str, str]:
    return {"id": job, "raw_id": job, "state": state, **more}


class _Cancel:
    """A cancel of one job: what scancel says, and what squeue shows one look after another."""

    def __init__(self, n: int, job: str, looks: list[list[Mapping[str, str]] | None]) -> None:
        """Of ``looks`` the last one stays; None is a controller that does not answer."""
        self.runner = CaseRunner()
        self.runner.says("scancel *", load("046")[n])
        self.looks = list(looks)
        self.runner.on_call("squeue *", self._look)
        self.job = job
        self.log = _Log()

    def _look(self, command: Command) -> Completed:
        if not self.runner.asked("scancel"):
            return Completed(
                0, in_asked_form(command.argv, [_row(self.job, "RUNNING")]), b"", START, 0.1
            )
        rows = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        if rows is None:
            error = b"slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"
            return Completed(1, b"", error, START, 0.1)
        if not rows:
            error = b"slurm_load_jobs error: Invalid job id specified\n"
            return Completed(1, b"", error, START, 0.1)
        return Completed(0, in_asked_form(command.argv, rows), b"", START, 0.1)

    async def outcome(self, job: Job | None = None) -> Outcome:
        action = plan_cancel([job or make_job(self.job)], Asker(me="anna", now=START))
        assert isinstance(action, Action)
        executor = Executor(
            self.runner,
            self.runner.clock,
            self.log,
            read_only=False,
            read_back=QueueReadBack(self.runner),
        )
        return await until_done(self.runner.clock, executor.execute(action))


@prose("046/results/1")
async def test_case_046_silence_proves_nothing() -> None:
    cancel = _Cancel(1, "99999999", [[]])
    outcome = await cancel.outcome()
    assert cancel.runner.asked("scancel") == [("scancel", "99999999")]
    assert len(cancel.runner.asked("squeue")) >= 1
    assert outcome.jobs[0].result is Result.NO_SUCH_JOB
    assert not outcome.ok
    assert [said.kind for said in parse_scancel(0, b"")] == [ScancelKind.SILENT]


@prose("046/results/2")
async def test_case_046_no_such_job() -> None:
    step = load("046")[2]
    (said,) = parse_scancel(step.exit, step.stderr)
    assert (said.job, said.kind) == ("99999999", ScancelKind.UNKNOWN_JOB)
    outcome = await _Cancel(2, "99999999", [[]]).outcome()
    assert outcome.jobs[0].result is Result.NO_SUCH_JOB
    assert "no such job" in outcome.sentence


@prose("046/results/3")
async def test_case_046_no_such_job_with_exit_0() -> None:
    step = load("046")[3]
    assert step.exit == 0
    (said,) = parse_scancel(step.exit, step.stderr)
    assert (said.job, said.kind) == ("99999999", ScancelKind.UNKNOWN_JOB)
    outcome = await _Cancel(3, "99999999", [[]]).outcome()
    assert outcome.jobs[0].result is Result.NO_SUCH_JOB


@prose("046/results/4")
async def test_case_046_denied() -> None:
    step = load("046")[4]
    (said,) = parse_scancel(step.exit, step.stderr)
    assert (said.job, said.kind) == ("8601", ScancelKind.DENIED)
    outcome = await _Cancel(4, "8601", [[_row("8601", "RUNNING")]]).outcome()
    (job,) = outcome.jobs
    assert job.result is Result.DENIED
    assert "owner" in job.sentence or "not your" in job.sentence
    assert not outcome.ok


@prose("046/results/5")
async def test_case_046_accepted_is_final_when_the_queue_says_so() -> None:
    running, ending = _row("8602", "RUNNING"), _row("8602", "COMPLETING")
    over = _row("8602", "CANCELLED")
    cancel = _Cancel(5, "8602", [[running], [ending], [over]])
    outcome = await cancel.outcome()
    assert len(cancel.runner.asked("squeue")) == 4
    assert outcome.jobs[0].result is Result.DONE
    assert outcome.jobs[0].final
    (job,) = (await _Cancel(5, "8602", [[running]]).outcome()).jobs
    assert job.result is Result.SENT
    assert not job.final
    assert "cancel sent" in job.sentence


@sentence("046", '"cancelled" shown on exit 0 alone')
@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize(
    "looks",
    [
        [None],
        [[]],
        [[_row("8602", "RUNNING")]],
        [[_row("8602", "PENDING")]],
        [[_row("8602", "COMPLETING")]],
        [[_row("8602", "RUNNING")], None],
        [[_row("8602", "COMPLETED")]],
    ],
)
async def test_case_046_must_not_say_cancelled_on_exit_0_alone(n: int, looks: list[Any]) -> None:
    cancel = _Cancel(n, "8602", looks)
    outcome = await cancel.outcome()
    assert outcome.jobs[0].result is not Result.DONE
    assert "cancelled" not in outcome.sentence
    _, entry = cancel.log.entries
    assert all(result != done_word(Kind.CANCEL) for result, _ in entry.outcomes.values())


# Other ids, users and words of the same kind


@pytest.mark.parametrize("job", ["1", "57829110", "4711_3", "134222439"])
@pytest.mark.parametrize(
    ("words", "result"),
    [
        (b"", Result.DONE),
        (b"scancel: error: Kill job error on job id %s: Access/permission denied\n", Result.DENIED),
    ],
)
async def test_kind_046_any_job(job: str, words: bytes, result: Result) -> None:
    state = "CANCELLED" if result is Result.DONE else "RUNNING"
    cancel = _Cancel(5, job, [[_row(job, state)]])
    rc = 1 if words else 0
    cancel.runner.on("scancel *", rc=rc, stderr=words.replace(b"%s", job.encode()))
    outcome = await cancel.outcome()
    assert [item.result for item in outcome.jobs] == [result]


@pytest.mark.parametrize("looks", [[None], [[_row("8602", "RUNNING")], None]])
async def test_kind_046_an_outage_while_reading_back_is_not_known(looks: list[Any]) -> None:
    (job,) = (await _Cancel(5, "8602", looks).outcome()).jobs
    assert job.result is Result.NOT_KNOWN
    assert not job.final
    assert "not known" in job.sentence
