"""Everything that can be learnt about one job within a few seconds.

Each source may be silent: then it stands in ``missing`` with the command that would tell, and
the others speak all the same.
"""

import asyncio
import shlex
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from datetime import datetime
from posixpath import dirname
from typing import Any, TypeVar

from slurmtop.collect.asking import slurm_id
from slurmtop.collect.clock import cancel_and_wait, spawn, within
from slurmtop.collect.judging import Judging
from slurmtop.collect.log_facts import Span, log_paths, recorded_log
from slurmtop.collect.log_pool import ReaderLost
from slurmtop.collect.log_verdict import JudgeLogs
from slurmtop.collect.meant import belongs, meant, one_run, same_job
from slurmtop.collect.poller import SourceFailed
from slurmtop.collect.sacct import Accounting
from slurmtop.collect.scontrol import show_job
from slurmtop.collect.squeue import QueueSource, fetch_expected_start
from slurmtop.collect.who import Who
from slurmtop.model.facts import JobFacts, LogFacts, LogsSay, LogStatus
from slurmtop.model.job import (
    AccountingRecord,
    ExitMeaning,
    Job,
    JobDetail,
    Phase,
    ReasonInfo,
    job_row,
)
from slurmtop.model.ports import Clock, Runner
from slurmtop.model.snapshot import Trouble
from slurmtop.model.verdict import Missing
from slurmtop.parse.slurm.exit_codes import explain_exit
from slurmtop.parse.slurm.ids import parse_job_id
from slurmtop.parse.slurm.reasons import explain_reason
from slurmtop.parse.slurm.scontrol import parse_scontrol_jobs

T = TypeVar("T")

BUDGET_S = 8.0
#: Of the budget, what the controller and then accounting may use up; the logs get the rest.
_CONTROLLER_PART = 0.6
_ACCOUNTING_PART = 0.85
#: A file system that does not answer must not hold up the first word on a job.
_LOGS_MAY_TAKE_S = 1.5


async def gather_job_facts(
    runner: Runner,
    clock: Clock,
    asked: str,
    *,
    cluster: str = "",
    mark: bytes | None = None,
    accounting: Accounting | None = None,
    job: Job | None = None,
    siblings: tuple[Job, ...] = (),
    budget_s: float = BUDGET_S,
    want_expected_start: bool = False,
    me: Who | None = None,
    judge_logs: JudgeLogs | None = None,
    on_read: Callable[[JobFacts], None] | None = None,
) -> JobFacts:
    """What is known of the job ``asked`` for, after ``budget_s`` seconds at the latest.

    ``job`` and ``siblings`` are what the queue said before: then it is not asked again, and
    whether the controller answers now is for ``scontrol`` to tell. ``accounting`` None means
    that it must not be asked. It is asked where the controller has forgotten the job, does not
    answer, or has seen it end. ``judge_logs`` None: the logs are looked at, but not judged.
    ``on_read`` hears of all that is known before the logs are judged; of a job that runs also
    before its logs are read, where they let wait for their file system.
    """
    gathering = _Gathering(runner, clock, asked, cluster, mark, budget_s, judge_logs)
    known = None if job is None else (job, *siblings)
    rows, detail_bytes = await asyncio.gather(gathering.queue(known), gathering.detail())
    found, others, detail = gathering.join(rows, detail_bytes)
    answered = (known is None and rows is not None) or detail_bytes is not None

    facts = JobFacts(
        asked=asked,
        cluster=cluster,
        now=clock.now(),
        job=found,
        detail=detail,
        siblings=others,
        controller_answered=answered,
        reason=_reason(found),
        viewer=None if me is None else me.name,
        viewer_uid=None if me is None else me.uid,
    )
    expected_start: datetime | None = None
    if found is None:
        accounting_answered, history = await gathering.history(accounting, None)
        logs = await gathering.recorded_logs(history)
    else:
        over = found.state.ended
        early = spawn(gathering.tell_early(on_read, facts), name="the logs let wait")
        try:
            (accounting_answered, history), expected_start, logs = await asyncio.gather(
                gathering.history(accounting if over else None, found),
                gathering.expected_start(found if want_expected_start else None),
                gathering.logs(found, detail),
            )
        finally:
            await cancel_and_wait(early)
    facts = replace(
        facts,
        now=clock.now(),
        history=history,
        accounting_answered=accounting_answered,
        exit=_exit(found, detail, history, _stdout_path(found, detail, logs)),
        expected_start=expected_start,
        logs=logs,
        missing=tuple(gathering.missing),
    )
    if on_read is not None:
        on_read(facts)
    logs_say = await gathering.logs_say(found, history)
    missing = tuple(gathering.missing)
    return replace(facts, now=clock.now(), logs_say=logs_say, missing=missing)


class _Gathering:
    """One go at one job: what is left of the time, and what could not be read."""

    def __init__(
        self,
        runner: Runner,
        clock: Clock,
        asked: str,
        cluster: str,
        mark: bytes | None,
        budget_s: float,
        judge_logs: JudgeLogs | None,
    ) -> None:
        self.missing: list[Missing] = []
        self._runner = runner
        self._clock = clock
        self._id = parse_job_id(asked)
        self._name = slurm_id(self._id)
        self._cluster = cluster
        self._mark = mark
        self._budget_s = budget_s
        self._judging = Judging(runner, judge_logs)
        self._began = clock.monotonic()

    def _left(self, part: float) -> float:
        """Seconds until ``part`` of the budget is used up; a moment at least."""
        used = self._clock.monotonic() - self._began
        return max(0.05, self._budget_s * part - used)

    def command(self, *words: str) -> str:
        """A command as a person types it."""
        program, *rest = words
        option = ("-M", self._cluster) if self._cluster else ()
        return shlex.join((program, *option, *rest))

    async def _answer(
        self, part: float, family: str, command: str, coro: Coroutine[Any, Any, T]
    ) -> T | None:
        """What a source says; None, and an entry in ``missing``, where it says nothing.

        That the job is unknown is an answer too: it is raised on as it came.
        """
        seconds = self._left(part)
        try:
            return await within(self._clock, coro, seconds, name=command)
        except SourceFailed as error:
            if error.failure.trouble is Trouble.UNKNOWN_JOB:
                raise
            self.missing.append(Missing(family, error.failure.sentence, command))
        except TimeoutError:
            why = f"{command.split()[0]} did not answer within {seconds:.0f} s."
            self.missing.append(Missing(family, why, command))
        return None

    async def queue(self, known: tuple[Job, ...] | None) -> tuple[Job, ...] | None:
        """The job's records in the queue; ``()`` where it is unknown, None without an answer."""
        if known is not None:
            return known
        source = QueueSource(
            self._runner, self._clock, cluster=self._cluster, job_id=self._name, mark=self._mark
        )
        command = self.command("squeue", "-t", "all", "-j", self._name)
        try:
            answer = await self._answer(_CONTROLLER_PART, "slurm", command, source.fetch())
        except SourceFailed:
            return ()
        return None if answer is None else answer.rows

    async def detail(self) -> bytes | None:
        """The blocks of scontrol; empty where the job is unknown, None without an answer."""
        command = self.command("scontrol", "show", "job", self._name)
        asking = show_job(self._runner, self._name, cluster=self._cluster)
        try:
            return await self._answer(_CONTROLLER_PART, "slurm", command, asking)
        except SourceFailed:
            return b""

    def join(
        self, rows: tuple[Job, ...] | None, detail_bytes: bytes | None
    ) -> tuple[Job | None, tuple[Job, ...], JobDetail | None]:
        """The record that was meant, the others of its array or het job, and its details."""
        names = {row.raw_id: row.name for row in rows or () if row.raw_id is not None}
        details = parse_scontrol_jobs(detail_bytes or b"", names=names, cluster=self._cluster).rows
        # Only where squeue is silent: a job's name can forge fields of scontrol.
        jobs = rows if rows else tuple(detail.job for detail in details)
        job = meant(jobs, self._id)
        if job is None:
            return None, (), None
        detail = next((one for one in details if same_job(one.job, job)), None)
        return job, tuple(one for one in jobs if one is not job), detail

    async def history(
        self, accounting: Accounting | None, job: Job | None
    ) -> tuple[bool | None, tuple[AccountingRecord, ...]]:
        """Whether accounting answered (None: not asked), and the rows of the newest run."""
        if accounting is None:
            return None, ()
        command = self.command("sacct", "-j", self._name)
        if accounting.disabled is not None:
            self.missing.append(Missing("slurm", accounting.disabled.sentence))
            return None, ()
        # Of an array the one task that is looked at, not all of them.
        id = self._id if job is None else job.id
        since = None if job is None else job.submit
        asking = accounting.history(slurm_id(id), since=since)
        try:
            found = await self._answer(_ACCOUNTING_PART, "slurm", command, asking)
        except SourceFailed:
            return True, ()
        if found is None:
            return False, ()
        return True, one_run([row for row in found.rows if belongs(row.id, id)])

    async def expected_start(self, job: Job | None) -> datetime | None:
        """When the scheduler means to start a waiting job, where that is wanted."""
        if job is None or job.state.phase is not Phase.PENDING:
            return None
        command = self.command("squeue", "--start", "-j", self._name)
        asking = fetch_expected_start(
            self._runner, self._name, cluster=self._cluster, mark=self._mark
        )
        try:
            return await self._answer(_ACCOUNTING_PART, "slurm", command, asking)
        except SourceFailed:
            return None

    async def logs(self, job: Job, detail: JobDetail | None) -> tuple[LogFacts, ...]:
        """The logs of a job that has begun to write any."""
        never_began = job.state.phase is Phase.PENDING or (job.state.ended and not job.nodes)
        if never_began and not job.restarts:
            return ()
        found = []
        for label, path in log_paths(job, detail):
            if path is None:
                why = "neither squeue nor scontrol says where it is"
                found.append(
                    LogFacts(label=label, path=None, status=LogStatus.UNKNOWN_PATH, why=why)
                )
                command = self.command("scontrol", "show", "job", self._name)
                self.missing.append(Missing("log", f"The {label} of the job: {why}.", command))
            else:
                found.append(await self._log(label, path, job.user))
        return tuple(found)

    async def tell_early(self, on_read: Callable[[JobFacts], None] | None, facts: JobFacts) -> None:
        """What Slurm says of a job that runs, unless its logs are read within a moment."""
        job = facts.job
        if on_read is None or job is None or job.state.phase is not Phase.RUNNING:
            return
        await self._clock.sleep(_LOGS_MAY_TAKE_S)
        logs = tuple(
            LogFacts(label=label, path=path, status=LogStatus.HANGS, why="not read yet")
            for label, path in log_paths(job, facts.detail)
        )
        on_read(replace(facts, now=self._clock.now(), logs=logs))

    async def recorded_logs(self, history: Sequence[AccountingRecord]) -> tuple[LogFacts, ...]:
        """The log of a job that only accounting remembers."""
        record = job_row(history)
        if record is None or record.never_started:
            return ()
        path, written = recorded_log(record, history, self._cluster)
        if path is not None:
            guessed = "" if written is None else "the path is Slurm's default, not recorded"
            log = await self._log("stdout", path, record.user or "", guessed, written)
            if written is None or log.status is LogStatus.READ:
                return (log,)
        why = "accounting does not say where it is"
        command = self.command("sacct", "-j", self._name, "-o", "WorkDir,SubmitLine")
        self.missing.append(Missing("log", f"The log of the job: {why}.", command))
        return (LogFacts(label="stdout", path=None, status=LogStatus.UNKNOWN_PATH, why=why),)

    async def _log(
        self, label: str, path: str, owner: str, why: str = "", written: Span | None = None
    ) -> LogFacts:
        try:
            reading = self._judging.read(label, path, why, written)
            log = await within(self._clock, reading, self._left(1.0), name=path)
        except TimeoutError:
            log = LogFacts(
                label=label, path=path, status=LogStatus.HANGS, why="reading it took too long"
            )
        if written is None:
            self.missing.extend(_missing_log(log, path, owner))
        return log

    async def logs_say(
        self, job: Job | None, history: Sequence[AccountingRecord]
    ) -> LogsSay | None:
        """What the logs of the newest run tell; None where there is nothing to judge."""
        source = job or job_row(history)
        judging = self._judging.say(source)
        try:
            return await within(self._clock, judging, self._left(1.0), name="judging the logs")
        except TimeoutError:
            why = "Its logs were not judged: that took too long."
        except ReaderLost as error:
            why = f"Its logs were not judged: {error}."
        paths = (log.path for log in self._judging.of_run(source))
        self.missing.append(Missing("log", why, shlex.join(("slurmtop", "triage", *paths))))
        return None


def _missing_log(log: LogFacts, path: str, owner: str) -> tuple[Missing, ...]:
    """What a log kept to itself, and the command that shows it."""
    quoted = shlex.quote(path)
    if log.status is LogStatus.READ:
        if log.complete:
            return ()
        why = f"The middle of {path} was not read."
        return (Missing("log", why, f"grep -n -i -m 20 error -- {quoted}"),)
    why = f"{path}: {log.why}"
    if log.status is LogStatus.DENIED:
        whom = f" {owner}" if owner else ""
        return (Missing("log", f"{why}; its owner{whom} may.", f"tail -n 100 -- {quoted}"),)
    folder = shlex.quote(dirname(path) or ".")
    return (Missing("log", f"{why}.", f"ls -l -- {folder}"),)


def _reason(job: Job | None) -> ReasonInfo | None:
    if job is None or job.reason is None:
        return None
    return explain_reason(job.reason)


def _stdout_path(job: Job | None, detail: JobDetail | None, logs: Sequence[LogFacts]) -> str | None:
    """Where its output should be; a job that could not open it has no log to be read."""
    paths = [(log.label, log.path) for log in logs] or log_paths(job, detail)
    return next((path for label, path in paths if label == "stdout"), None)


def _exit(
    job: Job | None,
    detail: JobDetail | None,
    history: Sequence[AccountingRecord],
    path: str | None,
) -> ExitMeaning | None:
    """How it ended. The controller first: sacct prints some codes too small."""
    record = job_row(history)
    if job is not None and not job.state.ended:
        return None
    if job is not None:
        code, derived = job.exit_code, job.derived_exit_code
        if detail is not None and detail.exit_code is not None:
            code, derived = detail.exit_code, detail.derived_exit_code
        if code is not None or record is None or not record.state.ended:
            return explain_exit(
                job.state, code, derived, stdout_path=path, reason=job.reason, limit=job.limit
            )
    if record is None or not record.state.ended:
        return None
    return explain_exit(
        record.state,
        record.exit_code,
        record.derived_exit_code,
        from_sacct=True,
        stdout_path=path,
        reason=record.reason if job is None else job.reason,
        limit=record.limit if job is None else job.limit,
    )
