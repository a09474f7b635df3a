"""slurmtop's own functions, called on the commands of a case."""

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from slurmtop.collect.facts import gather_job_facts
from slurmtop.collect.sacct import Accounting
from slurmtop.model.facts import JobFacts
from slurmtop.model.job import AccountingRecord, Job, LimitKind, TimeLimit
from slurmtop.model.ports import Command, Completed
from slurmtop.model.snapshot import Parsed
from slurmtop.parse.slurm.hostlist import expand_hosts
from slurmtop.parse.slurm.sacct import parse_sacct
from slurmtop.parse.slurm.sinfo import SINFO_LETTERS
from slurmtop.parse.slurm.squeue import LETTERS, QUEUE_FIELDS, parse_squeue
from slurmtop.store.rows import Row
from slurmtop.triage.why import explain_job
from slurmtop.triage.words import four_lines
from slurmtop.ui.present.jobs import COLUMNS, Now
from slurmtop.ui.present.spans import Span
from tests.cases.support import Step
from tests.fakes import START, FakeClock, FakeRunner, settle

T = TypeVar("T")

GIB = 1024**3


def squeue_fields(step: Step) -> tuple[str, ...]:
    """The fields behind the letters of ``squeue -o``."""
    return tuple(LETTERS[letter] for letter in _letters(step))


def sinfo_fields(step: Step) -> tuple[str, ...]:
    return tuple(SINFO_LETTERS[letter] for letter in _letters(step))


def _letters(step: Step) -> list[str]:
    return re.findall(r"%([A-Za-z])", step.argv[step.argv.index("-o") + 1])


def sacct_fields(step: Step) -> tuple[str, ...]:
    """The names given to ``sacct -o``."""
    return tuple(step.argv[step.argv.index("-o") + 1].split(","))


def sacct(
    step: Step,
    *,
    separator: bytes = b"|",
    stdout: bytes | None = None,
) -> Parsed[AccountingRecord]:
    """The answer of a ``sacct -P -n`` of a case, parsed."""
    return parse_sacct(
        step.stdout if stdout is None else stdout,
        fields=sacct_fields(step),
        separator=separator,
    )


def squeue(
    step: Step,
    *,
    separator: bytes = b"|",
    record_mark: bytes = b"\n",
    stdout: bytes | None = None,
    cluster: str = "",
) -> Parsed[Job]:
    """The answer of a ``squeue -o`` of a case, parsed."""
    return parse_squeue(
        step.stdout if stdout is None else stdout,
        fields=squeue_fields(step),
        separator=separator,
        record_mark=record_mark,
        cluster=cluster,
    )


def by_id(jobs: Sequence[Job]) -> dict[str, Job]:
    """By the printed id; of an array's rest by the array's number."""
    return {job.id.base if job.id.tasks is not None else job.id.text: job for job in jobs}


def limit(value: TimeLimit) -> int | str | None:
    """Seconds, ``unlimited``, or None where Slurm gives no number."""
    if value.kind is LimitKind.UNLIMITED:
        return "unlimited"
    return value.seconds


def hosts(text: str | None) -> list[str]:
    return list(expand_hosts(text or ""))


def cells(job: Job, now: datetime = START, *, row: Row | None = None) -> dict[str, Span]:
    """(text, role) of every column of the Jobs screen for one job."""
    shown = Row(job.key, job) if row is None else row
    return {column.name: column.cell(shown, Now(now, "anna")) for column in COLUMNS}


#: What only a look for an action asks for, beside the queue's own fields.
_NAMES = {**dict(QUEUE_FIELDS), "Requeue": "requeueable", "BatchFlag": "batch"}


def rows_of(step: Step, separator: str = "|") -> list[dict[str, str]]:
    """The plain rows of a ``squeue -o`` of a case, by field."""
    names = squeue_fields(step)
    lines = step.stdout.decode().splitlines()
    return [dict(zip(names, line.split(separator), strict=True)) for line in lines]


def in_asked_form(argv: Sequence[str], rows: Iterable[Mapping[str, str]]) -> bytes:
    """What ``squeue -O FORM`` (or ``-o``) prints for ``rows`` (by field); ``N/A`` for the rest."""
    out = []
    if "-O" not in argv:
        form = argv[argv.index("-o") + 1]
        for row in rows:
            line = form
            for letter, field in LETTERS.items():
                line = line.replace(f"%{letter}", row.get(field, "N/A"))
            out.append(line + "\n")
        return "".join(out).encode()
    form = argv[argv.index("-O") + 1]
    for row in rows:
        for piece in form.split(","):
            name, _, end = piece.partition(":")
            out.append(row.get(_NAMES.get(name, name), "N/A") + end)
        out.append("\n")
    return "".join(out).encode()


def answering(
    rows: Iterable[Mapping[str, str]], took_s: float = 0.1
) -> Callable[[Command], Completed]:
    """Answers ``squeue -h … -O`` with ``rows`` in whatever form is asked for."""
    kept = list(rows)
    return lambda command: Completed(0, in_asked_form(command.argv, kept), b"", START, took_s)


def in_sacct_form(argv: Sequence[str], rows: Iterable[Mapping[str, str]]) -> bytes:
    """What ``sacct -n -P --delimiter=… -o FIELDS`` prints for ``rows`` (by sacct's names)."""
    (delimiter,) = [word.partition("=")[2] for word in argv if word.startswith("--delimiter=")]
    names = argv[argv.index("-o") + 1].split(",")
    whole = ({"JobIDRaw": row["JobID"], **row} for row in rows)
    return "".join(delimiter.join(row.get(n, "") for n in names) + "\n" for row in whole).encode()


def accounting_rows(step: Step) -> list[dict[str, str]]:
    """The plain rows of a ``sacct -P -n`` of a case, by sacct's names."""
    names = step.argv[step.argv.index("-o") + 1].split(",")
    lines = step.stdout.decode().splitlines()
    return [dict(zip(names, line.split("|"), strict=True)) for line in lines]


class CaseRunner(FakeRunner):
    """Answers as a case says, and takes as long as the case says on the fake clock."""

    def __init__(self, clock: FakeClock | None = None) -> None:
        super().__init__(clock)
        self.in_flight = 0
        self.most_in_flight = 0
        self.started_at: list[float] = []

    def says(self, pattern: str, step: Step) -> None:
        """The answer of a command that failed, whatever form was asked for."""
        self.on_call(pattern, lambda _command: step.completed)

    def queue(self, rows: Iterable[Mapping[str, str]], *, took_s: float = 0.1) -> None:
        self.on_call("squeue *", answering(rows, took_s))

    def accounting(self, rows: Iterable[Mapping[str, str]]) -> None:
        kept = list(rows)
        self.on_call(
            "sacct *",
            lambda command: Completed(0, in_sacct_form(command.argv, kept), b"", START, 0.1),
        )

    async def run(self, command: Command) -> Completed:
        self.started_at.append(self.clock.monotonic())
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            done = await super().run(command)
            await self.clock.sleep(done.took_s)
            return done
        finally:
            self.in_flight -= 1

    def asked(self, program: str) -> list[tuple[str, ...]]:
        return [call.argv for call in self.calls if call.argv[0] == program]


async def until_done(clock: FakeClock, coro: Coroutine[Any, Any, T], limit_s: int = 600) -> T:
    """Let the clock run, second by second, until ``coro`` is through."""
    task = asyncio.get_running_loop().create_task(coro)
    try:
        for _ in range(limit_s):
            await settle()
            if task.done():
                break
            await clock.advance(1.0)
        assert task.done(), f"not done after {limit_s} s"
    finally:
        task.cancel()
    return await task


async def gather(
    runner: CaseRunner, asked: str, *, accounting: Accounting | None = None
) -> JobFacts:
    """All that slurmtop learns of one job."""
    told = accounting or Accounting(runner)
    facts = gather_job_facts(runner, runner.clock, asked, accounting=told)
    return await until_done(runner.clock, facts)


def told(facts: JobFacts) -> str:
    """Every word that a person reads of a verdict."""
    verdict = explain_job(facts)
    words = [*four_lines(verdict, 300), *four_lines(verdict, 80), verdict.summary]
    for item in (*verdict.evidence, *verdict.against):
        words.append(item.says)
    for step in verdict.next:
        words += [step.label, step.command, step.why]
    if facts.exit is not None:
        words += [facts.exit.sentence, facts.exit.warning or "", *facts.exit.notes]
    if facts.reason is not None:
        words += [facts.reason.meaning, facts.reason.advice]
    return "\n".join(words)
