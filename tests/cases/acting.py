"""One action from its plan to what a person is told, over the raw answers of a case."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from slurmtop.control.action_log import Entry
from slurmtop.control.actions import Action, Asker, Refusal
from slurmtop.control.execute import Executor
from slurmtop.control.outcome import JobOutcome, Outcome
from slurmtop.control.read_back import QueueReadBack
from slurmtop.model.job import Job
from slurmtop.model.ports import Command, Completed
from slurmtop.ui.present.action_words import title_text
from slurmtop.ui.present.confirm import body_lines
from slurmtop.ui.present.outcome import Progress, progress_lines
from slurmtop.ui.present.spans import plain
from tests.build import as_planned
from tests.cases.product import CaseRunner, in_asked_form, until_done
from tests.cases.support import Step
from tests.fakes import START, FakeClock

ME = "anna"
ASKER = Asker(me=ME, now=START)
Rows = Sequence[Mapping[str, str]]
#: What squeue says where a look is None.
_DOWN = b"slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"
_UNKNOWN = b"slurm_load_jobs error: Invalid job id specified\n"


def row(job: str, state: str, **more: str) -> dict[str, str]:
    """One record of the queue by field; ``raw_id`` is the number where nothing else is said."""
    return {"id": job, "raw_id": job.partition("_")[0], "state": state, **more}


def as_action(planned: Action | Refusal) -> Action:
    assert isinstance(planned, Action), planned
    return planned


def refusal(planned: Action | Refusal) -> str:
    """The sentence that stands where no dialog opens."""
    assert isinstance(planned, Refusal), planned
    return planned.sentence


class Log:
    """Keeps what would be written down."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def record(self, entry: Entry) -> str | None:
        self.entries.append(entry)
        return None


class Acting:
    """A confirmed action: what its command says, and what squeue shows, look after look.

    Right before the command squeue shows the jobs as they were planned, then ``looks``, of which
    the last one stays; None is a controller that does not answer. ``ran`` are the
    steps that ``squeue -s`` shows before the command (the batch shell and one srun step of the
    job, where it is not given); afterwards it shows those of the jobs that still run.
    """

    def __init__(
        self,
        said: Step | Completed,
        looks: Sequence[Rows | None],
        clock: FakeClock | None = None,
        *,
        ran: Sequence[str] | None = None,
    ) -> None:
        self.runner = CaseRunner(clock)
        self._ran = ran
        self.log = Log()
        done = said.completed if isinstance(said, Step) else said
        for program in ("scancel *", "scontrol *"):
            self.runner.on_call(program, lambda _command: done)
        self._looks = list(looks)
        self._before: Rows | None = None
        self.runner.on_call("squeue *", self._look)

    def _steps(self, command: Command) -> Completed:
        began = not any(call.argv[0] in ("scancel", "scontrol") for call in self.runner.calls)
        rows = self._looks[0]
        if rows is None and not began:
            return Completed(1, b"", _DOWN, START, 0.1)
        if began:
            numbers = command.argv[command.argv.index("-j") + 1].split(",")
            jobs = [each["id"] for each in rows or ()] or numbers
            ran = self._ran
        else:
            jobs = [each["id"] for each in rows or () if each["state"] == "RUNNING"]
            ran = None if self._ran is None else [id for id in self._ran if jobs]
        ids = [f"{job}.{step}" for job in jobs for step in ("batch", "0")] if ran is None else ran
        shown = [{"StepID": id, "StepState": "RUNNING", "StepName": "python"} for id in ids]
        return Completed(0, in_asked_form(command.argv, shown), b"", START, 0.1)

    def _look(self, command: Command) -> Completed:
        if "-s" in command.argv:
            return self._steps(command)
        if self._before is not None:
            before, self._before = self._before, None
            return Completed(0, in_asked_form(command.argv, before), b"", START, 0.1)
        rows = self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]
        if rows is None:
            return Completed(1, b"", _DOWN, START, 0.1)
        if not rows:
            return Completed(1, b"", _UNKNOWN, START, 0.1)
        return Completed(0, in_asked_form(command.argv, rows), b"", START, 0.1)

    @property
    def executor(self) -> Executor:
        return Executor(
            self.runner,
            self.runner.clock,
            self.log,
            read_only=False,
            read_back=QueueReadBack(self.runner),
        )

    def expects(self, action: Action) -> None:
        """The next look is the one right before its command."""
        self._before = [row(id, state) for id, state in as_planned(action).items()]

    async def outcome(self, planned: Action | Refusal) -> Outcome:
        action = as_action(planned)
        self.expects(action)
        return await until_done(self.runner.clock, self.executor.execute(action))

    async def only(self, planned: Action | Refusal) -> JobOutcome:
        (job,) = (await self.outcome(planned)).jobs
        return job


def said(stderr: str | bytes = b"", rc: int | None = 1) -> Completed:
    return Completed(rc, b"", stderr.encode() if isinstance(stderr, str) else stderr, START, 0.1)


def told(outcome: Outcome) -> str:
    """Every word of the outcome as a person and the log get it."""
    progress = Progress(title="", action=outcome.action, outcome=outcome)
    lines = [plain(line) for line in progress_lines(progress, START, 400)]
    return "\n".join([*lines, outcome.sentence, *(job.sentence for job in outcome.jobs)])


def dialog(planned: Action | Refusal, user: str = ME) -> str:
    """The whole confirm dialog, line by line, scrolled through."""
    action = as_action(planned)
    lines = [plain(line) for line in body_lines(action, START, 400, user)]
    return "\n".join([title_text(action), *lines])


Planner = Callable[..., Action | Refusal]


def planned(plan: Planner, jobs: Sequence[Job], **how: Any) -> Action | Refusal:
    """``plan`` asked by the owner of everything here."""
    return plan(jobs, ASKER, **how)
