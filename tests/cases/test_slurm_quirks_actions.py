"""047: what ``scancel --ctld`` says, of which exit 0 proves even less. And its other statuses."""

from collections.abc import Mapping, Sequence

import pytest

from slurmtop.control.action_log import Entry
from slurmtop.control.actions import Action, Asker
from slurmtop.control.cancel import plan_cancel
from slurmtop.control.execute import Executor
from slurmtop.control.outcome import Outcome, Result
from slurmtop.control.read_back import QueueReadBack
from slurmtop.model.ports import Command, Completed
from slurmtop.parse.slurm.scancel import ScancelKind, parse_scancel
from tests.build import make_job
from tests.cases.product import CaseRunner, in_asked_form, until_done
from tests.fakes import START

DENIED = b"scancel: error: Kill job error on job id 4711: Access/permission denied\n"
UNKNOWN = b"scancel: error: Kill job error on job id 4711: Invalid job id specified\n"


class _Log:
    def record(self, entry: Entry) -> str | None:
        return None


async def _outcome(rc: int, stderr: bytes, rows: Sequence[Mapping[str, str]]) -> Outcome:
    """A cancel of job 4711: scancel ends so, and squeue shows ``rows`` from then on."""
    runner = CaseRunner()
    runner.on_call("scancel *", lambda _command: Completed(rc, b"", stderr, START, 0.1))

    def look(command: Command) -> Completed:
        shown = rows if runner.asked("scancel") else [_row("RUNNING")]
        if shown:
            return Completed(0, in_asked_form(command.argv, shown), b"", START, 0.1)
        error = b"slurm_load_jobs error: Invalid job id specified\n"
        return Completed(1, b"", error, START, 0.1)

    runner.on_call("squeue *", look)
    action = plan_cancel([make_job("4711")], Asker(me="anna", now=START))
    assert isinstance(action, Action)
    read_back = QueueReadBack(runner)
    executor = Executor(runner, runner.clock, _Log(), read_only=False, read_back=read_back)
    return await until_done(runner.clock, executor.execute(action))


def _row(state: str) -> dict[str, str]:
    return {"id": "4711", "raw_id": "4711", "state": state}


@pytest.mark.parametrize("rc", [0, 210])
async def test_S047_denied_is_denied_whatever_the_exit_status(rc: int) -> None:
    outcome = await _outcome(rc, DENIED, [_row("RUNNING")])
    assert outcome.jobs[0].result is Result.DENIED
    assert not outcome.ok


async def test_S047_silence_and_exit_0_on_an_ended_job() -> None:
    outcome = await _outcome(0, b"", [_row("COMPLETED")])
    assert outcome.jobs[0].result is Result.OVER


@pytest.mark.parametrize(("rc", "stderr"), [(0, b""), (1, UNKNOWN)])
async def test_S047_an_unknown_id_is_unknown_with_and_without_words(rc: int, stderr: bytes) -> None:
    outcome = await _outcome(rc, stderr, [])
    assert outcome.jobs[0].result is Result.NO_SUCH_JOB
    assert not outcome.ok


async def test_S047_silence_on_a_running_job_is_not_final() -> None:
    outcome = await _outcome(0, b"", [_row("RUNNING")])
    assert outcome.jobs[0].result is Result.SENT
    assert not outcome.jobs[0].final


async def test_S047_it_is_never_asked_for() -> None:
    action = plan_cancel([make_job("4711")], Asker(me="anna", now=START))
    assert isinstance(action, Action)
    assert not any("--ctld" in argv for argv in action.argvs)


@pytest.mark.parametrize(
    ("rc", "stderr", "kinds"),
    [
        (0, DENIED, [("4711", ScancelKind.DENIED)]),
        (0, b"", [(None, ScancelKind.SILENT)]),
        (229, b"", [(None, ScancelKind.ALREADY_OVER)]),
        (225, b"", [(None, ScancelKind.UNKNOWN_JOB)]),
        (60, b"", [(None, ScancelKind.HET_COMPONENT)]),
        (228, b"", [(None, ScancelKind.BUSY)]),
        (140, b"", [(None, ScancelKind.CONTROLLER_DOWN)]),
        (8, b"", [(None, ScancelKind.CONTROLLER_DOWN)]),
        (
            0,
            DENIED.replace(b"4711", b"4711_3") + UNKNOWN.replace(b"4711", b"9+1"),
            [("4711_3", ScancelKind.DENIED), ("9+1", ScancelKind.UNKNOWN_JOB)],
        ),
    ],
)
def test_S047_every_answer_has_its_kind(
    rc: int, stderr: bytes, kinds: list[tuple[str | None, ScancelKind]]
) -> None:
    assert [(said.job, said.kind) for said in parse_scancel(rc, stderr)] == kinds
