"""``slurmtop cancel | requeue | hold | release | signal JOB…``: what the screen does, for scripts.

The same plans, the same executor, the same log of actions. Standard output has what became of
each job; everything a person is told or asked before that goes to standard error.
"""

import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from slurmtop.cli.action_report import (
    Report,
    absent_line,
    job_lines,
    not_confirmed,
    not_saved,
    report_dict,
    report_lines,
)
from slurmtop.cli.console import Console
from slurmtop.cli.errors import UsageError
from slurmtop.cli.headless import run_to_end
from slurmtop.cli.named import Named, choose, parse_named
from slurmtop.cli.options import Options
from slurmtop.cli.planning import Planner
from slurmtop.cli.save_first import make_save_first, not_looked_at, save_folder, suspects_of
from slurmtop.cli.wiring import Wiring, load_settings, make_executor, open_wiring
from slurmtop.cli.world import make_world
from slurmtop.collect.cluster_info import scancel_sends_many
from slurmtop.collect.poller import SourceFailed
from slurmtop.collect.squeue import QueueSource
from slurmtop.control.actions import NO_DETAILS, Action, Asker, ConfirmLevel, Details, Kind
from slurmtop.control.commands import IDS_PER_CALL
from slurmtop.control.execute import Executor
from slurmtop.control.outcome import Outcome, done_word
from slurmtop.control.plan import first_refusal
from slurmtop.control.prepare import World
from slurmtop.control.save_first import saving_lines
from slurmtop.control.signals import SIGNALS, parse_signal
from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job
from slurmtop.model.ports import RunnerError
from slurmtop.model.script import Recipient
from slurmtop.model.snapshot import Trouble
from slurmtop.model.text import visible
from slurmtop.ui.present.action_words import title_text
from slurmtop.ui.present.confirm import body_lines
from slurmtop.ui.present.reactions import reaction_lines, sum_text
from slurmtop.ui.present.spans import plain

_SAVE_FIRST = (Kind.CANCEL, Kind.REQUEUE, Kind.REQUEUE_HOLD)
_NO_LINE = "a line in the log"
_RECIPIENTS = {
    "steps": Recipient.STEPS,
    "batch": Recipient.BATCH,
    "everything": Recipient.EVERYTHING,
    "ranks": Recipient.RANKS,
}
_KINDS = {
    "cancel": Kind.CANCEL,
    "requeue": Kind.REQUEUE,
    "hold": Kind.HOLD,
    "release": Kind.RELEASE,
    "signal": Kind.SIGNAL,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the command line asks for."""

    kind: Kind
    named: tuple[Named, ...]
    details: Details = NO_DETAILS
    yes: bool = False
    dry_run: bool = False
    without_log: bool = False
    save: bool = True
    """What is known of a suspect is saved before it is ended."""


def run(options: Options) -> int:
    """Do it, and print what became of each job. 0 all done, 1 not all, 64 usage."""
    wish, cluster = read_wish(options)
    options = replace(options, cluster=cluster)
    config = load_settings(options, os.environ)
    read_only_from = config.read_only_from if config.read_only else ""
    if options.replay is not None:
        read_only_from = "--replay"
    console = Console()
    if not (console.can_ask or wish.yes or wish.dry_run or read_only_from):
        raise UsageError(
            "nothing was done: there is no terminal to ask at;"
            f" see what it would do with --dry-run, then give --yes to {options.command}"
        )
    wiring = open_wiring(options, os.environ)
    executor = make_executor(
        wiring,
        os.environ,
        config=config,
        read_only=bool(read_only_from),
        dry_run=wish.dry_run,
        save_first=make_save_first(wiring, config),
    )
    doing = Doing(wiring, make_world(wiring, os.environ), executor, console, wish, read_only_from)
    report = run_to_end(_to_end(wiring, doing))
    for line in config.notes:
        console.tell(f"slurmtop: {line}")
    if options.json:
        print(json.dumps(report_dict(report), indent=1))
    else:
        for line in report_lines(report):
            print(line)
    if report.log_trouble is not None:
        console.tell(f"slurmtop: {visible(report.log_trouble)}")
    if report.refused is not None:
        console.tell(f"slurmtop: {visible(report.refused)}")
    return report.status


def read_wish(options: Options) -> tuple[Wish, str | None]:
    """The wish, and the cluster it is about. :class:`UsageError` for what cannot be meant."""
    named, cluster = parse_named(options.job_ids, options.cluster)
    kind, details = _KINDS[options.command], NO_DETAILS
    if kind is Kind.REQUEUE and options.hold:
        kind = Kind.REQUEUE_HOLD
    if kind is Kind.SIGNAL:
        named, details = _signal(options, named)
    elif kind is not Kind.CANCEL:
        step = next((one for one in named if one.step is not None), None)
        if step is not None:
            job = step.text.rpartition(".")[0]
            raise UsageError(
                f"{step.text!r} is a step, and a step cannot be {done_word(kind)}:"
                f" name its job, {job}"
            )
    return (
        Wish(
            kind=kind,
            named=named,
            details=details,
            yes=options.yes,
            dry_run=options.dry_run,
            without_log=options.without_log,
            save=not options.no_save,
        ),
        cluster,
    )


def _signal(options: Options, named: tuple[Named, ...]) -> tuple[tuple[Named, ...], Details]:
    name = parse_signal(options.signal)
    if name is None:
        known = ", ".join(SIGNALS)
        raise UsageError(f"--signal: there is no signal {options.signal!r}; known are {known}")
    recipient = _RECIPIENTS.get(options.to)
    steps = [one for one in named if one.step is not None]
    if recipient is None:
        number = options.to.rpartition(".")[2]
        if not (number.isascii() and number.isdigit()) or len(number) > 9:
            known = ", ".join(_RECIPIENTS)
            raise UsageError(
                f"--to: {options.to!r} is none of {known}, and not the number of a step"
            )
        whole = next((one for one in named if one.several), None)
        if whole is not None:
            raise UsageError(f"--to {options.to}: {whole.text!r} has no step: name one job or task")
        named = tuple(replace(one, step=one.step or number) for one in named)
    elif steps and recipient is not Recipient.STEPS:
        raise UsageError(f"--to {options.to}: {steps[0].text!r} is a step already")
    return named, Details(signal=name, recipient=recipient or Recipient.STEP)


def _stopped(sent: int, commands: int) -> str:
    if not sent:
        return "stopped before anything was sent to Slurm: nothing was done"
    how_far, others = "the waiting was stopped", ""
    if sent < commands:
        how_far = f"stopped after {sent} of {commands} commands"
        others = ", and the other jobs were left alone"
    return (
        f"{how_far}: what was already sent to Slurm is not undone{others};"
        " the log of actions says of each job what is known"
    )


async def _to_end(wiring: Wiring, doing: "Doing") -> Report:
    try:
        return await doing.run()
    finally:
        await wiring.aclose()


class Doing:
    """One wish, from the first look to the outcomes."""

    def __init__(
        self,
        wiring: Wiring,
        world: World,
        executor: Executor,
        console: Console,
        wish: Wish,
        read_only_from: str = "",
    ) -> None:
        self._wiring = wiring
        self._world = world
        self._executor = executor
        self._console = console
        self._wish = wish
        self._read_only_from = read_only_from
        self._began = wiring.clock.monotonic()
        self._report = Report(
            kind=wish.kind,
            cluster=wiring.cluster,
            dry_run=wish.dry_run,
            started_at=wiring.clock.now(),
        )

    async def run(self) -> Report:
        """All of it. What Slurm says never raises; the report tells it."""
        asker = Asker(
            me=self._wiring.who.name,
            now=self._wiring.clock.now(),
            cluster=self._wiring.cluster,
            read_only=bool(self._read_only_from),
            read_only_from=self._read_only_from,
            one_call=await self._one_call(),
        )
        if asker.read_only:
            # The word of the plan, before anybody is asked about jobs.
            refused = first_refusal((), asker, str(self._wish.kind))
            if refused is not None:
                return self._refused(f"nothing was done: {refused.sentence}")
        try:
            with self._console.patience("waiting for squeue"):
                rows = await self._look()
        except SourceFailed as failed:
            return self._refused(f"nothing was done: {failed.failure.sentence}")
        except RunnerError as error:
            return self._refused(f"nothing was done: {error}")
        asker = replace(asker, now=self._wiring.clock.now(), **await self._to_save(rows))
        planner = Planner(self._wish.kind, self._wish.details, self._world, asker)
        with self._console.patience("waiting for Slurm"):
            plans = await planner.plan(self._wish.named, rows)
        self._tell(plans.notes)
        self._with(warnings=plans.notes)
        for action in plans.actions:
            await self._act(action)
        absent = tuple(absent_line(one) for one in plans.absent)
        jobs = (*self._report.jobs, *plans.refused, *absent)
        return self._with(jobs=jobs, took_s=self._wiring.clock.monotonic() - self._began)

    async def _to_save(self, rows: Sequence[Job]) -> dict[str, Any]:
        """Which of the jobs are suspects, and where what is known of them goes."""
        if not self._wish.save or self._wish.kind not in _SAVE_FIRST:
            return {}
        named = choose(self._wish.named, rows, self._wish.kind).all_jobs
        with self._console.patience("looking at the logs"):
            suspects = await suspects_of(self._wiring, self._wish.kind, named)
        self._tell(not_looked_at(named))
        return {"suspects": suspects, "save_folder": save_folder(self._wiring)}

    async def _one_call(self) -> bool:
        many = self._wish.kind is Kind.CANCEL and (
            len(self._wish.named) > 1 or any(one.several for one in self._wish.named)
        )
        return many and not self._read_only_from and await scancel_sends_many(self._wiring.runner)

    async def _look(self) -> tuple[Job, ...]:
        """All records of the jobs that were named, by one ``squeue`` for fifty of them."""
        numbers = list(dict.fromkeys(one.base for one in self._wish.named))
        rows: dict[JobKey, Job] = {}
        if len(numbers) > IDS_PER_CALL:
            # Most of so many are one's own: all of those cost no more than fifty by number.
            own = await self._wiring.queue_source(all_users=False).fetch()
            rows = {job.key: job for job in own.rows if job.id.base in numbers}
            found = {job.id.base for job in rows.values()}
            numbers = [number for number in numbers if number not in found]
        for start in range(0, len(numbers), IDS_PER_CALL):
            source = QueueSource(
                self._wiring.runner,
                self._wiring.clock,
                cluster=self._wiring.cluster,
                job_id=",".join(numbers[start : start + IDS_PER_CALL]),
                mark=self._wiring.mark,
            )
            try:
                rows |= {job.key: job for job in (await source.fetch()).rows}
            except SourceFailed as failed:
                if failed.failure.trouble is not Trouble.UNKNOWN_JOB:
                    raise
        return tuple(rows.values())

    async def _act(self, action: Action) -> None:
        self._with(
            commands=(*self._report.commands, *action.argvs),
            hosts=(*self._report.hosts, *(action.hosts or (None,) * len(action.argvs))),
            command_lines=(*self._report.command_lines, *action.command_lines),
            warnings=(*self._report.warnings, *action.warnings),
            reactions=(*self._report.reactions, *action.reactions),
        )
        if self._wish.dry_run or self._wish.yes:
            self._warn(action)
        elif not await self._confirmed(action):
            self._with(jobs=(*self._report.jobs, *not_confirmed(action)))
            return
        outcome = await self._execute(action)
        self._with(saved=(*self._report.saved, *outcome.saved))
        if outcome.begun_not is not None:
            left = not_saved if outcome.unsaved and self._wish.yes else not_confirmed
            lines = left(action) if outcome.refused is None else ()
            self._with(
                jobs=(*self._report.jobs, *lines),
                refused=outcome.refused or self._not_begun_text(outcome),
                log_trouble=outcome.unlogged,
            )
            return
        self._with(
            jobs=(*self._report.jobs, *job_lines(outcome)),
            log_trouble=self._report.log_trouble or outcome.trouble,
        )

    async def _execute(self, action: Action) -> Outcome:
        without_log, without_save = self._wish.without_log, False
        while True:
            outcome = await self._run(action, without_log, without_save)
            why, without = (
                (outcome.unsaved, "saving it") if outcome.unsaved else (outcome.unlogged, _NO_LINE)
            )
            if why is None or self._wish.yes or not self._console.can_ask:
                return outcome
            self._console.tell(f"Nothing was done yet: {visible(why)}")
            if not await self._agreed(f"Do it all the same, without {without}? [y/N]"):
                return outcome
            if outcome.unsaved:
                without_save = True
            else:
                without_log = True

    async def _run(self, action: Action, without_log: bool, without_save: bool) -> Outcome:
        text = "waiting until Slurm shows the end of it; ctrl-c stops the waiting, not the action"
        out = [(0, len(action.argvs))]
        try:
            with self._console.patience(text):
                return await self._executor.execute(
                    action,
                    without_log=without_log,
                    without_save=without_save,
                    sent=lambda *now: out.append(now),
                )
        except asyncio.CancelledError:
            self._tell([_stopped(*out[-1])])
            raise

    def _not_begun_text(self, outcome: Outcome) -> str:
        if outcome.unsaved is not None:
            more = "; to do it without: --no-save" if self._wish.yes else ""
            return f"nothing was done: {outcome.unsaved}{more}"
        more = "; make that folder writable, or add --without-log" if self._wish.yes else ""
        return f"nothing was done: {outcome.unlogged}{more}"

    async def _confirmed(self, action: Action) -> bool:
        """Show what the dialog of the screen shows, and ask as it does."""
        console, now = self._console, self._wiring.clock.now()
        console.tell(title_text(action))
        for line in body_lines(action, now, console.width, self._wiring.who.name):
            console.tell(plain(line))
        if action.confirm is ConfirmLevel.YES:
            return await self._agreed("Do it? [y/N]")
        what = "the count" if action.confirm is ConfirmLevel.TYPE_COUNT else "the id"
        typed = await console.ask(f"Type {what}, {visible(action.expected_text)}, to do it:")
        return typed is not None and action.confirmed_by(typed)

    async def _agreed(self, question: str) -> bool:
        return (await self._console.ask(question) or "").lower() in ("y", "yes")

    def _warn(self, action: Action) -> None:
        """All that the dialog warns of, for whoever is not asked."""
        self._tell(action.warnings)
        self._tell(saving_lines(action))
        if action.reactions:
            self._tell([sum_text(action.reactions)])
        for line in reaction_lines(action.reactions, self._console.width):
            self._console.tell(plain(line))

    def _tell(self, sentences: Sequence[str]) -> None:
        for sentence in sentences:
            self._console.tell(f"slurmtop: {visible(sentence)}")

    def _with(self, **changes: Any) -> Report:
        self._report = replace(self._report, **changes)
        return self._report

    def _refused(self, sentence: str) -> Report:
        return self._with(refused=sentence)
