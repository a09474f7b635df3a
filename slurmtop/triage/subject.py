"""What every rule needs of a job's facts: its records, its id for commands, its raw lines."""

import re
import shlex
from dataclasses import dataclass
from datetime import datetime, timedelta

from slurmtop.model.facts import JobFacts, LogFacts, LogLine, LogStatus
from slurmtop.model.job import AccountingRecord, Job, JobDetail, JobState, LimitKind, job_row
from slurmtop.model.text import visible
from slurmtop.model.units import ago_text
from slurmtop.model.verdict import Evidence, NextStep, State

_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9])?")
#: The clocks of the file server and of the controller may differ by this much.
CLOCKS_APART = timedelta(seconds=60)

_NAMES = frozenset({"Slurm", "Python", "Linux"})
_HET_PART = re.compile(r"[0-9]{1,10}\+[0-9]{1,5}")
_ID = re.compile(r"[0-9]{1,10}(?:_[0-9]{1,10})?")


@dataclass(frozen=True, slots=True)
class Subject:
    """The facts of one job with the questions that the rules ask of them."""

    facts: JobFacts

    @property
    def job(self) -> Job | None:
        """The controller's record, from the queue or else from ``show job``."""
        if self.facts.job is not None:
            return self.facts.job
        return self.facts.detail.job if self.facts.detail is not None else None

    @property
    def detail(self) -> JobDetail | None:
        return self.facts.detail

    @property
    def record(self) -> AccountingRecord | None:
        """The job row of accounting; None where only steps or nothing came."""
        return job_row(self.facts.history)

    @property
    def steps(self) -> tuple[AccountingRecord, ...]:
        return tuple(row for row in self.facts.history if row.id.step is not None)

    @property
    def known(self) -> bool:
        """Does any source know the job?"""
        return self.job is not None or bool(self.facts.history)

    @property
    def state(self) -> JobState | None:
        """The controller's word; accounting's where the controller has none."""
        if self.job is not None:
            return self.job.state
        return self.record.state if self.record is not None else None

    @property
    def id(self) -> str:
        """The id as Slurm's commands take it. A het part or array rest gives the number."""
        source = self.job.id if self.job is not None else None
        if source is None and self.record is not None:
            source = self.record.id
        if source is not None and source.base:
            text = source.base if source.task is None else f"{source.base}_{source.task}"
        else:
            text = self.facts.asked
        found = _ID.match(text)
        return found.group() if found else "JOB"

    @property
    def title(self) -> str:
        """The id as a person typed or reads it."""
        return self.facts.asked

    @property
    def owner(self) -> str | None:
        if self.job is not None and self.job.user:
            return self.job.user
        return self.record.user if self.record is not None else None

    @property
    def may_write(self) -> bool:
        """May the person who asks change this job? True where nobody knows: Slurm decides."""
        facts = self.facts
        if facts.viewer_uid == 0 or facts.viewer is None or self.owner is None:
            return True
        if facts.detail is not None and facts.detail.user_id is not None:
            return facts.detail.user_id == facts.viewer_uid
        return self.owner == facts.viewer

    @property
    def start(self) -> datetime | None:
        if self.job is not None and self.job.start is not None:
            return self.job.start
        return self.record.start if self.record is not None else None

    @property
    def end(self) -> datetime | None:
        if self.record is not None and self.record.end is not None and self.job is None:
            return self.record.end
        return self.job.end if self.job is not None else None

    @property
    def limit_s(self) -> int | None:
        for limit in (
            self.job.limit if self.job is not None else None,
            self.record.limit if self.record is not None else None,
        ):
            if limit is not None and limit.kind is LimitKind.SECONDS:
                return limit.seconds
        return None

    @property
    def node_count(self) -> int | None:
        if self.job is not None:
            return self.job.node_count
        return self.record.node_count if self.record is not None else None

    @property
    def restarts(self) -> int:
        for value in (
            self.job.restarts if self.job is not None else None,
            self.record.restarts if self.record is not None else None,
        ):
            if value:
                return value
        return 0

    @property
    def one_host(self) -> str | None:
        """A node that can be logged in to: the batch host, or the only node."""
        names = (
            self.detail.batch_host if self.detail is not None else None,
            self.job.nodes if self.job is not None else None,
        )
        return next((name for name in names if name and _HOST.fullmatch(name)), None)

    @property
    def only_host(self) -> str | None:
        """The node of a job that has exactly one; None for several, or where it is not told."""
        source = self.job if self.job is not None else self.record
        if source is None or source.node_count != 1 or not source.nodes:
            return None
        return source.nodes if _HOST.fullmatch(source.nodes) else None

    def ran_s(self) -> float | None:
        """How long it ran or has run; never negative."""
        if self.job is None and self.record is not None and self.record.elapsed_s is not None:
            return float(self.record.elapsed_s)
        state = self.state
        end = self.end if state is not None and state.ended else self.facts.now
        if self.start is None or end is None:
            return None
        return max(0.0, (end - self.start).total_seconds())

    def command(self, program: str, rest: str) -> str:
        """``scontrol -M beta show job 4711``: with the cluster where one was named."""
        cluster = self.facts.cluster
        return (
            f"{program} -M {shlex.quote(visible(cluster))} {rest}"
            if cluster
            else f"{program} {rest}"
        )

    def show_job(self) -> str:
        return self.command("scontrol", f"show job {self.id}")

    @property
    def own_id(self) -> str:
        """The id as slurmtop's own commands take it: of a het job the part that was asked for."""
        asked = self.facts.asked.partition("@")[0]
        return asked if _HET_PART.fullmatch(asked) else self.id

    def why(self) -> str:
        return f"slurmtop why {self.own_id}{self._cluster_option()}"

    def save(self) -> str:
        """Keeps what is known of the job, in the current folder."""
        return f"slurmtop triage {self.own_id} --save triage-{self.own_id}{self._cluster_option()}"

    def _cluster_option(self) -> str:
        cluster = self.facts.cluster
        return f" --cluster {shlex.quote(visible(cluster))}" if cluster else ""

    def sacct(self) -> str:
        fields = "JobID,State%20,ExitCode,Elapsed,MaxRSS,NodeList"
        return self.command("sacct", f"-j {self.id} -o {fields}")

    def write(self, label: str, command: str, why: str) -> NextStep:
        """A step that changes something; it names who can do it where that is not the viewer."""
        if self.may_write:
            return NextStep(label, command, "write", why)
        owner = self.owner or "the owner"
        return NextStep(f"ask {owner} or an operator: {label}", command, "write", why)


def as_printed(subject: Subject, names: tuple[str, ...]) -> str | None:
    """The fields ``names`` of ``scontrol show job`` as it printed them, in its order."""
    if subject.detail is None:
        return None
    parts = [
        f"{name}={value}"
        for name, value in subject.detail.fields
        if name in names and value not in ("", "(null)")
    ]
    return " ".join(parts) or None


def slurm_evidence(
    subject: Subject, says: str, names: tuple[str, ...] = ("JobState", "Reason", "ExitCode")
) -> Evidence | None:
    """The line of Slurm that carries a verdict: show job's, else the queue's, else sacct's."""
    printed = as_printed(subject, names)
    if printed is not None:
        # The end of a job that runs is only the latest time it can have.
        over = subject.state is not None and subject.state.ended
        time = subject.end if over else None
        return Evidence(
            family="slurm", source=subject.show_job(), text=printed, says=says, time=time
        )
    job, record = subject.facts.job, subject.record
    if job is not None:
        source, time = queue_source(subject, job)
        text = f"{job.id.text} {job.state.word} {job.reason or 'None'}"
        return Evidence(family="slurm", source=source, text=text, says=says, time=time)
    if record is not None:
        return sacct_evidence(subject, record, says)
    return None


def queue_source(subject: Subject, job: Job) -> tuple[str, datetime | None]:
    """What the record of ``job`` was printed by, and when if that was before the rest.

    A row of the running screen was printed by no command that asked for this job.
    """
    facts = subject.facts
    if facts.detail is not None and facts.detail.job is job:
        return subject.show_job(), None
    if facts.queue_at is not None:
        return "squeue (the screen's last answer)", facts.queue_at
    return subject.command("squeue", f"-t all -j {job.id.base}"), None


def sacct_evidence(subject: Subject, record: AccountingRecord, says: str) -> Evidence:
    """One row of accounting as evidence."""
    word = record.state.word
    if record.state.by_uid is not None:
        word = f"{word} by {record.state.by_uid}"
    code = record.exit_code
    exit_text = f" {code.code}:{code.signal}" if code is not None else ""
    return Evidence(
        family="slurm",
        source=subject.command("sacct", f"-j {subject.id}"),
        text=f"{record.id.text} {word}{exit_text}",
        says=says,
        time=record.end,
    )


def log_evidence(log: LogFacts, line: LogLine, says: str) -> Evidence:
    """A line of a log with its place.

    Without blanks at its end: a recording has some there in place of the letters of a secret.
    """
    return Evidence(
        family="log",
        source=log.path or log.label,
        text=line.text.rstrip(),
        says=says,
        line=line.number,
        offset=line.offset,
    )


def read_logs(subject: Subject) -> tuple[LogFacts, ...]:
    """The logs that were read and that this run wrote, the freshest first.

    A file that was last written before the run started belongs to an earlier attempt.
    """
    job = subject.job
    started = subject.start if job is None or not _waits(job) else None
    found = [
        log
        for log in subject.facts.logs
        if log.status is LogStatus.READ
        and not (
            log.mtime is not None and started is not None and log.mtime < started - CLOCKS_APART
        )
    ]
    return tuple(
        sorted(found, key=lambda log: log.mtime.timestamp() if log.mtime else 0.0, reverse=True)
    )


def _waits(job: Job) -> bool:
    return job.state.base == "PENDING"


def first_error(logs: tuple[LogFacts, ...]) -> tuple[LogFacts, LogLine] | None:
    """The first error line: of stderr where there is one, else of stdout."""
    ordered = sorted(logs, key=lambda log: log.label != "stderr")
    return next(((log, log.first_error) for log in ordered if log.first_error), None)


def got_over(subject: Subject) -> bool:
    """Do the logs, read as a whole, show a run that went on after whatever error they hold?"""
    say = subject.facts.logs_say
    return say is not None and say.only_newest and say.verdict.state is State.HEALTHY


def read_log_step(log: LogFacts, line: LogLine | None) -> NextStep | None:
    """The command that shows the log at a line, or its end; None for a path that no command
    line can hold."""
    if log.path is None or not log.path.startswith("/") or not log.path.isprintable():
        return None
    quoted = shlex.quote(log.path)
    if line is not None and line.number is not None:
        return NextStep("read the log there", f"less +{line.number} {quoted}", "read", "")
    return NextStep("read the end of the log", f"tail -n 50 {quoted}", "read", "")


def clause(sentence: str) -> str:
    """A sentence as part of another one: no full stop, no capital unless it is a name."""
    text = sentence.strip().rstrip(".")
    word = text.split(" ", 1)[0]
    if word[:1].isupper() and (len(word) == 1 or word[1:].islower()) and word not in _NAMES:
        text = text[0].lower() + text[1:]
    return text


def ran_text(subject: Subject) -> str:
    """`` after 3.2 h``, or nothing where it is not known."""
    ran = subject.ran_s()
    return f" after {ago_text(ran)}" if ran is not None else ""
