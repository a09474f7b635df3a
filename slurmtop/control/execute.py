"""Does a confirmed action, then asks Slurm what became of it.

What scancel and scontrol print is never taken as the outcome: scancel says nothing and exits 0
for a job that does not exist. Only the read-back makes a job "cancelled" or "held"; where that
fails it is not known, and asked again until it is or the time is up.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Protocol

from slurmtop.control.action_log import Entry
from slurmtop.control.actions import Action, Kind, differ_by_task
from slurmtop.control.after_signal import SETTLED_S, Steps
from slurmtop.control.commands import IDS_PER_CALL, Call, calls_for, check_argv
from slurmtop.control.judge import Look
from slurmtop.control.node_kill import TIMEOUT_S as NODE_TIMEOUT_S
from slurmtop.control.outcome import JobOutcome, Outcome, Result, Seen, StepsSeen
from slurmtop.control.progress import NOT_ASKED, Running, StillSame
from slurmtop.control.read_back import ReadBack
from slurmtop.control.rows import numbers_of
from slurmtop.control.save_first import SaveFirst, save_nothing
from slurmtop.model.ports import Clock, Command, Runner, RunnerError
from slurmtop.model.process import NodeProcesses
from slurmtop.model.text import visible

__all__ = ["Executor", "JobOutcome", "Log", "Outcome", "Result", "StillSame"]

#: scancel itself waits and retries; it is given this long for one call.
CALL_TIMEOUT_S = 150.0
#: Between two calls, so that 500 jobs do not reach the controller at once.
PAUSE_S = 1.0
#: How long the end of a job is awaited before it is called "not final yet".
READ_BACK_S = 90.0
#: Pauses between looks; the last one repeats.
_WAITS_S = (1.0, 2.0, 4.0, 8.0, 15.0)
#: Of many jobs each look is a big answer, and some of them always take long.
_WAITS_MANY_S = (3.0, 12.0, 30.0, 60.0)
#: A signal is looked at twice: at once, and when a job that dies of it has had time to.
_WAITS_SIGNAL_S = (1.0, SETTLED_S - 1.0, *_WAITS_S[2:])

#: Looks at nodes: the plain number of a job, and hosts. Never raises.
LookAtNodes = Callable[[str, Sequence[str]], Awaitable[Sequence[NodeProcesses]]]
#: Hears how many commands were handed over and how many there are, as they go out.
Sent = Callable[[int, int], None]


class Log(Protocol):
    """Where actions are written down: None, or a sentence that says why that failed."""

    def record(self, entry: Entry) -> str | None: ...


class Executor:
    """Runs actions through ``runner`` and reads back through ``read_back``.

    ``read_only`` is checked here as well as in the dialog. Right before anything runs Slurm is
    asked once more what the jobs are: what is no longer as it was confirmed is left out. So is
    a job for which ``still_same`` (here or at a call) is false, which alone has to do where the
    controller is silent. With ``dry_run`` nothing is run, read or logged. ``look_at_nodes`` tells
    which processes are still there after a signal to them. ``save_first`` saves what is known of
    a suspect before it is ended; where that fails nothing is done.
    """

    def __init__(
        self,
        runner: Runner,
        clock: Clock,
        action_log: Log,
        *,
        read_only: bool,
        read_back: ReadBack,
        dry_run: bool = False,
        still_same: StillSame | None = None,
        look_at_nodes: LookAtNodes | None = None,
        save_first: SaveFirst = save_nothing,
    ) -> None:
        self._runner = runner
        self._save_first = save_first
        self._kept: set[str] = set()
        self._look_at_nodes = look_at_nodes
        self._clock = clock
        self._log = action_log
        self._read_only = read_only
        self._read_back = read_back
        self._dry_run = dry_run
        self._still_same = still_same

    async def execute(
        self,
        action: Action,
        *,
        still_same: StillSame | None = None,
        without_log: bool = False,
        without_save: bool = False,
        sent: Sent | None = None,
    ) -> Outcome:
        """Do ``action``, which the person has confirmed. Never raises for what Slurm says.

        Where it cannot be written down first, nothing is done (``Outcome.unlogged``) unless
        ``without_log``; nor where what is known cannot be saved first (``Outcome.unsaved``), unless
        ``without_save``. Takes up to 90 s past the last command. Cancelling the task stops the
        waiting, not the action; the log then says what was known by then. ``sent`` is told how
        far it is, for whoever wants to leave meanwhile.
        """
        started_at, started = self._clock.now(), self._clock.monotonic()
        refused = self._refusal(action)
        if refused is not None:
            return Outcome(
                action=action, refused=refused, dry_run=self._dry_run, started_at=started_at
            )
        still_same = still_same or self._still_same
        if self._dry_run:
            return Running(action, NOT_ASKED, still_same).would(started_at)
        unsaved = None if without_save else await self._save(action)
        saved = tuple(one.path for one in action.saves if one.path in self._kept)
        if unsaved is not None:
            return Outcome(action=action, unsaved=unsaved, saved=saved, started_at=started_at)
        run = Running(action, await self._look_again(action), still_same, saved)
        # Before anything runs: whoever kills slurmtop now still finds what it was doing.
        trouble = self._log.record(run.asked(started_at))
        if trouble is not None and not without_log:
            return Outcome(action=action, unlogged=trouble, saved=saved, started_at=started_at)
        try:
            await self._do(run, sent or _nobody)
        finally:
            trouble = self._log.record(run.ended(self._clock.now())) or trouble
        return Outcome(
            action=replace(
                action, argvs=tuple(run.argvs), hosts=tuple(run.hosts) if run.by_pid else ()
            ),
            jobs=run.outcomes(),
            saved=saved,
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
            hosts = action.hosts or (None,) * len(action.argvs)
            for argv, host in zip(action.argvs, hosts, strict=True):
                check_argv(argv, host)
            meant = calls_for(action.kind, action.targets, action.cluster, action.details)
        except ValueError as error:
            return f"nothing was done: {visible(str(error))}"
        if [(call.argv, call.host) for call in meant] != [*zip(action.argvs, hosts, strict=True)]:
            return "nothing was done: the commands are not those of the jobs that were shown"
        return None

    async def _save(self, action: Action) -> str | None:
        """Save what is known of its suspects; a sentence where that failed. What was saved before
        the person was asked once more is not saved again."""
        wanted = [one for one in action.saves if one.path not in self._kept]
        if not wanted:
            return None
        kept = await self._save_first(wanted)
        self._kept.update(kept.paths)
        return kept.trouble

    async def _look_again(self, action: Action) -> Seen:
        """What the jobs are now: the person may have thought for long, and the queue is old."""
        return await self._read_back.read(
            [number for target in action.targets for number in numbers_of(target)],
            action.cluster,
            owners={target.user for target in action.targets},
        )

    async def _do(self, run: Running, sent: Sent) -> None:
        before: StepsSeen | None = None
        if run.targets and _needs_steps(run.action) and not run.by_pid:
            before = await self._steps(run)
        await self._send(run, sent)
        await self._await_end(run, before)

    async def _steps(self, run: Running) -> StepsSeen:
        numbers = [number for target in run.open() for number in numbers_of(target)]
        return await self._read_back.read_steps(numbers, run.action.cluster)

    async def _send(self, run: Running, sent: Sent) -> None:
        calls = run.calls()
        sent(0, len(calls))
        for place, call in enumerate(calls, 1):
            if place > 1 and call.host is None:
                await self._clock.sleep(PAUSE_S)
            run.begins(call)
            sent(place, len(calls))
            try:
                done = await self._runner.run(_command(call))
            except RunnerError as error:
                run.could_not_start(call, str(error))
                continue
            run.heard(call, done)

    async def _await_end(self, run: Running, before: StepsSeen | None) -> None:
        """Ask until every job is final or the time is up, with longer and longer pauses."""
        sent = self._clock.monotonic()
        waits = list(_waits(run))
        while run.open():
            left = sent + READ_BACK_S - self._clock.monotonic()
            if left <= 0:
                return
            await self._clock.sleep(min(waits[0], left))
            if len(waits) > 1:
                waits.pop(0)
            seen = await self._read_back.read(
                [number for target in run.open() for number in numbers_of(target)],
                run.action.cluster,
                owners={target.user for target in run.open()},
                excluded=run.action.kind is Kind.EXCLUDE,
                apart=differ_by_task(run.action.kind) and any(t.tasks for t in run.open()),
            )
            now = None if before is None else await self._steps(run)
            since = self._clock.monotonic() - sent
            if run.by_pid:
                nodes = await self._nodes(run) if since >= SETTLED_S else None
                run.looked_at_nodes(Look(seen=seen, since_s=since), nodes)
                continue
            run.looked(Look(seen=seen, steps=Steps(before, now), since_s=since))

    async def _nodes(self, run: Running) -> list[NodeProcesses]:
        """The processes that are there now, on every node where one got the signal."""
        out: list[NodeProcesses] = []
        if self._look_at_nodes is not None:
            for target in run.open():
                for number, hosts in run.hosts_of(target).items():
                    out += await self._look_at_nodes(number, hosts)
        return out


def _command(call: Call) -> Command:
    if call.host is None:
        return Command(call.argv, timeout_s=CALL_TIMEOUT_S)
    return Command(call.argv, host=call.host, timeout_s=NODE_TIMEOUT_S)


def _nobody(_done: int, _of: int) -> None:
    return None


def _needs_steps(action: Action) -> bool:
    """Only of a step and of a signal do the steps tell more than the job itself."""
    return action.kind is Kind.SIGNAL or any(target.step for target in action.targets)


def _waits(run: Running) -> tuple[float, ...]:
    if len(run.targets) > IDS_PER_CALL:
        return _WAITS_MANY_S
    return _WAITS_SIGNAL_S if run.action.kind is Kind.SIGNAL else _WAITS_S
