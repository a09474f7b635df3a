"""Does a confirmed action, then asks Slurm what became of it.

What scancel prints is never taken as the outcome: it says nothing and exits 0 for a job that
does not exist. Only the read-back makes a job "cancelled"; where that fails it is not known.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from slurmtop.control.action_log import Entry
from slurmtop.control.actions import Action, Target
from slurmtop.control.commands import argvs_for, check_argv
from slurmtop.control.outcome import JobOutcome, Outcome, Result, Said, judge, matching, result_word
from slurmtop.control.read_back import ReadBack
from slurmtop.control.replies import said_of
from slurmtop.model.ports import Clock, Command, Completed, Runner, RunnerError
from slurmtop.model.text import visible

__all__ = ["Executor", "JobOutcome", "Log", "Outcome", "Result", "StillSame"]

#: scancel itself waits and retries; it is given this long for one call.
CALL_TIMEOUT_S = 150.0
#: Between two calls of scancel, so that 500 jobs do not reach the controller at once.
PAUSE_S = 1.0
#: How long the end of a job is awaited before it is called "not final yet".
READ_BACK_S = 90.0
_WAITS_S = (1.0, 2.0, 4.0, 8.0, 15.0)

StillSame = Callable[[Target], bool]


class Log(Protocol):
    """Where actions are written down: None, or a sentence that says why that failed."""

    def record(self, entry: Entry) -> str | None: ...


class Executor:
    """Runs actions through ``runner`` and reads back through ``read_back``.

    ``read_only`` is checked here as well as in the dialog. ``still_same`` (here or at a call)
    is asked about every job right before anything runs; a job for which it is false is left
    out: its id may have been used again.
    """

    def __init__(
        self,
        runner: Runner,
        clock: Clock,
        action_log: Log,
        *,
        read_only: bool,
        read_back: ReadBack,
        still_same: StillSame | None = None,
    ) -> None:
        self._runner = runner
        self._clock = clock
        self._log = action_log
        self._read_only = read_only
        self._read_back = read_back
        self._still_same = still_same

    async def execute(self, action: Action, *, still_same: StillSame | None = None) -> Outcome:
        """Do ``action``, which the person has confirmed. Never raises for what Slurm says.

        Takes up to 90 s past the last command. Cancelling the task stops the waiting, not
        the action; the log then says what was known by then.
        """
        started_at, started = self._clock.now(), self._clock.monotonic()
        refused = self._refusal(action)
        if refused is not None:
            return Outcome(action=action, refused=refused, started_at=started_at)
        run = _Run(action, still_same or self._still_same)
        # Before anything runs: whoever kills slurmtop now still finds what it was doing.
        trouble = self._log.record(run.asked(started_at))
        try:
            await self._send(run)
            await self._await_end(run)
        finally:
            trouble = self._log.record(run.ended(self._clock.now())) or trouble
        return Outcome(
            action=action,
            jobs=run.outcomes(),
            trouble=trouble,
            started_at=started_at,
            took_s=self._clock.monotonic() - started,
        )

    def _refusal(self, action: Action) -> str | None:
        if self._read_only:
            return "slurmtop runs read-only: nothing was done"
        if not action.targets or not action.argvs:
            return "there is no job to do this to: nothing was done"
        try:
            for argv in action.argvs:
                check_argv(argv)
            meant = argvs_for(action.kind, action.targets, action.cluster, action.details)
        except ValueError as error:
            return f"nothing was done: {visible(str(error))}"
        if meant != action.argvs:
            return "nothing was done: the commands are not those of the jobs that were shown"
        return None

    async def _send(self, run: "_Run") -> None:
        for place, argv in enumerate(
            argvs_for(run.action.kind, run.targets, run.action.cluster, run.action.details)
        ):
            if place:
                await self._clock.sleep(PAUSE_S)
            run.argvs.append(argv)
            try:
                done = await self._runner.run(Command(argv, timeout_s=CALL_TIMEOUT_S))
            except RunnerError as error:
                run.could_not_start(argv, str(error))
                continue
            run.heard(argv, done)

    async def _await_end(self, run: "_Run") -> None:
        """Ask until every job is final or the time is up, with longer and longer pauses."""
        deadline = self._clock.monotonic() + READ_BACK_S
        waits = list(_WAITS_S)
        while run.open():
            left = deadline - self._clock.monotonic()
            if left <= 0:
                return
            await self._clock.sleep(min(waits[0], left))
            if len(waits) > 1:
                waits.pop(0)
            numbers = [target.base for target in run.open()]
            seen = await self._read_back.read(numbers, run.action.cluster)
            for target in run.open():
                run.judged(judge(target, run.said(target), seen, seen_before=target in run.shown))
                if matching(target, seen.jobs):
                    run.shown.add(target)


class _Run:
    """The state of one execution: what was sent, what was said, what is known."""

    def __init__(self, action: Action, still_same: StillSame | None) -> None:
        self.action = action
        self._log_id = secrets.token_hex(8)
        self.argvs: list[tuple[str, ...]] = []
        self.shown: set[Target] = set()
        self._known: dict[Target, JobOutcome] = {}
        self._said: dict[Target, Said] = {}
        self.targets: list[Target] = []
        for target in action.targets:
            if still_same is None or still_same(target):
                self.targets.append(target)
                continue
            text = f"job {visible(target.key.id)}: not sent, it is not the job you confirmed"
            self._known[target] = JobOutcome(target, Result.NOT_SENT, text)

    def open(self) -> list[Target]:
        """The jobs whose outcome is not final."""
        return [
            target
            for target in self.targets
            if target not in self._known or not self._known[target].final
        ]

    def judged(self, outcome: JobOutcome) -> None:
        self._known[outcome.target] = outcome

    def said(self, target: Target) -> Said:
        return self._said.get(target, Said())

    def could_not_start(self, argv: tuple[str, ...], why: str) -> None:
        for target in self._named_in(argv):
            text = f"job {visible(target.key.id)}: not sent: {visible(why)}"
            self._known[target] = JobOutcome(target, Result.NOT_SENT, text)

    def heard(self, argv: tuple[str, ...], done: Completed) -> None:
        named = self._named_in(argv)
        for target in named:
            self._said[target] = said_of(target, done, alone=len(named) == 1)

    def _named_in(self, argv: tuple[str, ...]) -> list[Target]:
        # Tasks of one array share arguments, so the number is what tells.
        ids = argv[3:] if argv[1:2] == ("-M",) else argv[1:]
        numbers = {word.split("_", 1)[0] for word in ids}
        return [target for target in self.targets if target.base in numbers]

    def outcomes(self) -> tuple[JobOutcome, ...]:
        return tuple(self._known.get(target) or _unknown(target) for target in self.action.targets)

    def asked(self, when: datetime) -> Entry:
        """What is about to be done, to the jobs that are still those that were confirmed."""
        outcomes = {
            str(target.key): ("asked", "") for target in self.targets if target not in self._known
        }
        meant = argvs_for(self.action.kind, self.targets, self.action.cluster, self.action.details)
        return self._entry("asked", when, meant, outcomes)

    def ended(self, when: datetime) -> Entry:
        """What was done, and what is known of each job by now."""
        outcomes = {
            str(item.target.key): (result_word(self.action.kind, item.result), item.sentence)
            for item in self.outcomes()
        }
        return self._entry("outcome", when, self.argvs, outcomes)

    def _entry(
        self,
        event: str,
        when: datetime,
        argvs: Sequence[Sequence[str]],
        outcomes: Mapping[str, tuple[str, str]],
    ) -> Entry:
        return Entry(
            id=self._log_id,
            event=event,
            when=when,
            kind=str(self.action.kind),
            cluster=self.action.cluster,
            argvs=tuple(argvs),
            outcomes=outcomes,
            verdict=self.action.verdict,
        )


def _unknown(target: Target) -> JobOutcome:
    text = f"job {visible(target.key.id)}: not known: the read-back did not come to an end"
    return JobOutcome(target, Result.NOT_KNOWN, text)
