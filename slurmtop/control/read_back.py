"""What Slurm says of jobs after something was done to them. Exit status 0 proves nothing."""

import re
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from slurmtop.control.commands import IDS_PER_CALL
from slurmtop.control.outcome import Seen, StepsSeen
from slurmtop.control.rows import join_alike
from slurmtop.model.job import Job, Step
from slurmtop.model.ports import Command, Completed, Runner, RunnerError
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.parse.slurm.failures import explain_failure
from slurmtop.parse.slurm.squeue import parse_squeue
from slurmtop.parse.slurm.steps import parse_steps, steps_format

#: Plain values only, so that nothing a person wrote can forge a field. No value ticks.
_FIELDS = (
    ("JobArrayID", "id"),
    ("JobID", "raw_id"),
    ("State", "state"),
    ("UserName", "user"),
    ("Account", "account"),
    ("SubmitTime", "submit"),
    ("EligibleTime", "eligible"),
    ("StartTime", "start"),
    ("EndTime", "end"),
    ("TimeLimit", "limit"),
    ("NumNodes", "node_count"),
    ("NodeList", "nodes"),
    ("tres-alloc", "tres"),
    ("PriorityLong", "priority"),
    ("RestartCnt", "restarts"),
    ("Requeue", "requeueable"),
    ("BatchFlag", "batch"),
    ("HetJobID", "het_leader"),
    ("exit_code", "exit_status"),
    ("DerivedEC", "derived_status"),
    ("Reason", "reason"),
)
_SEPARATOR = b"\x1f"
_MARK = b"\x1e"
#: Longer than a busy controller keeps a client waiting: ending it earlier only asks again.
_TIMEOUT_S = 120.0
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@\\-]{0,63}")
#: More users than this have more jobs than are wanted.
_OWNERS = 20
#: Nobody answered: what is true now is not known, and asking again later may tell.
SILENCE = (Trouble.DOWN, Trouble.BUSY, Trouble.TIMEOUT, Trouble.AUTH, Trouble.RATE_LIMITED)


@dataclass(frozen=True, slots=True)
class _Form:
    """One form of an answer: how it is asked for, and the fields that it has."""

    option: str
    text: str
    fields: tuple[str, ...]


_LONG = _Form(
    "-O",
    "".join(f"{name}:{_SEPARATOR.decode()}," for name, _ in _FIELDS[:-1])
    + f"{_FIELDS[-1][0]}:{_MARK.decode()}",
    tuple(field for _, field in _FIELDS),
)
#: What a job excludes has a letter and no name.
_EXCLUDED = _Form(
    "-o",
    _SEPARATOR.decode().join(("%i", "%A", "%x")) + _MARK.decode(),
    ("id", "raw_id", "excluded_nodes"),
)


class ReadBack(Protocol):
    """Asks for the present state of jobs by their plain numbers; never raises."""

    async def read(
        self,
        numbers: Sequence[str],
        cluster: str,
        *,
        owners: Collection[str] = (),
        excluded: bool = False,
        apart: bool = False,
    ) -> Seen: ...

    async def read_steps(self, numbers: Sequence[str], cluster: str) -> StepsSeen: ...


class QueueReadBack:
    """Reads back with ``squeue -t all``, which shows ended jobs while Slurm remembers them."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._local = True
        # Step names are written by people: the mark is one that they cannot know.
        self._steps_mark = _MARK + secrets.token_hex(4).encode("ascii")

    async def read(
        self,
        numbers: Sequence[str],
        cluster: str,
        *,
        owners: Collection[str] = (),
        excluded: bool = False,
        apart: bool = False,
    ) -> Seen:
        """All records of the jobs ``numbers``: the tasks of an array, the parts of a het job.

        A job that Slurm no longer knows is simply not among them. Names and paths are not asked
        for. More jobs than one call names are asked for by their ``owners``, where these are
        given: one call instead of many. ``excluded`` costs a second call, for the nodes that
        each job excludes. squeue prints the waiting tasks of an array in one row also where they
        differ; ``apart`` tells them apart, and joins again those that are alike.
        """
        wanted = list(dict.fromkeys(numbers))
        seen = await self._jobs(wanted, cluster, owners, _LONG, apart)
        if excluded and seen.jobs:
            seen = await self._with_lists(seen, wanted, cluster, owners, apart)
        return Seen(join_alike(seen.jobs), seen.failure) if apart else seen

    async def _with_lists(
        self,
        seen: Seen,
        wanted: Sequence[str],
        cluster: str,
        owners: Collection[str],
        apart: bool,
    ) -> Seen:
        lists = await self._jobs(wanted, cluster, owners, _EXCLUDED, apart)
        found = {(job.raw_id, job.id.text): job.excluded_nodes for job in lists.jobs}
        # One that came or went between the two calls keeps None, which is not known.
        jobs = tuple(
            replace(job, excluded_nodes=found.get((job.raw_id, job.id.text))) for job in seen.jobs
        )
        return Seen(jobs, seen.failure or lists.failure)

    async def read_steps(self, numbers: Sequence[str], cluster: str) -> StepsSeen:
        """The running steps of the jobs ``numbers``; a job that does not run has none."""
        steps: list[Step] = []
        failure: Failure | None = None
        wanted = list(dict.fromkeys(numbers))
        form = ("-O", steps_format(self._steps_mark))
        for start in range(0, len(wanted), IDS_PER_CALL):
            named = ("-s", "-j", ",".join(wanted[start : start + IDS_PER_CALL]))
            done = await self._squeue(cluster, named, form)
            if isinstance(done, Failure):
                failure = failure or done
                continue
            parsed = parse_steps(done, record_mark=self._steps_mark)
            steps.extend(parsed.rows)
            if parsed.bad:
                failure = failure or _UNREADABLE
        return StepsSeen(tuple(steps), failure)

    async def _jobs(
        self,
        wanted: Sequence[str],
        cluster: str,
        owners: Collection[str],
        form: _Form,
        apart: bool,
    ) -> Seen:
        each = ("-r",) if apart else ()
        names = sorted(set(owners))
        if len(wanted) > IDS_PER_CALL and 0 < len(names) <= _OWNERS and all(map(_is_user, names)):
            seen = await self._rows(cluster, (*each, "-u", ",".join(names)), form)
            if seen.failure is None or seen.failure.trouble in SILENCE:
                numbers = set(wanted)
                return Seen(tuple(job for job in seen.jobs if job.id.base in numbers), seen.failure)
        jobs: list[Job] = []
        failure: Failure | None = None
        for start in range(0, len(wanted), IDS_PER_CALL):
            named = ",".join(wanted[start : start + IDS_PER_CALL])
            seen = await self._rows(cluster, (*each, "-j", named), form)
            jobs.extend(seen.jobs)
            failure = failure or seen.failure
            if failure is not None and failure.trouble in SILENCE:
                break
        return Seen(tuple(jobs), failure)

    async def _rows(self, cluster: str, which: tuple[str, ...], form: _Form) -> Seen:
        answer = await self._squeue(cluster, ("-t", "all", *which), (form.option, form.text))
        if isinstance(answer, Failure):
            # Of one unknown id squeue says so and exits 1; of several it says nothing, exits 0.
            unknown = answer.trouble is Trouble.UNKNOWN_JOB
            return Seen() if unknown else Seen((), answer)
        parsed = parse_squeue(
            answer,
            fields=form.fields,
            separator=_SEPARATOR,
            record_mark=_MARK,
            cluster=cluster,
        )
        return Seen(parsed.rows, _UNREADABLE if parsed.bad else None)

    async def _squeue(
        self, cluster: str, which: tuple[str, ...], form: tuple[str, str]
    ) -> bytes | Failure:
        """One answer. Jobs of this cluster alone (``--local``) cost one request less."""
        where = ("-M", cluster) if cluster else ("--local",) if self._local else ()
        argv = ("squeue", *where, "-h", "-a", *which, *form)
        try:
            done = await self._runner.run(Command(argv, timeout_s=_TIMEOUT_S))
        except RunnerError as error:
            return Failure(Trouble.LOCAL, str(error))
        if where == ("--local",) and b"unrecognized option '--local'" in done.stderr:
            self._local = False
            return await self._squeue(cluster, which, form)
        silent = not done.stdout.strip() and b"error" in done.stderr.lower()
        # Of several users one that is not known is left out, with exit status 0.
        silent = silent or b"Invalid user" in done.stderr
        if done.rc == 0 and not done.truncated and not silent:
            return done.stdout
        return _failure(done)


_UNREADABLE = Failure(Trouble.OTHER, "squeue answered unreadably")


def _failure(done: Completed) -> Failure:
    words = done.stderr.decode("utf-8", "replace")
    return explain_failure("squeue", done.rc, words, elapsed_s=done.took_s)


def _is_user(name: str) -> bool:
    return _USER.fullmatch(name) is not None
