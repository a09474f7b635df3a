"""What Slurm says of jobs after something was done to them. Exit status 0 proves nothing."""

from collections.abc import Sequence
from typing import Protocol

from slurmtop.control.commands import IDS_PER_CALL
from slurmtop.control.outcome import Seen
from slurmtop.model.job import Job
from slurmtop.model.ports import Command, Runner, RunnerError
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.parse.slurm.failures import explain_failure
from slurmtop.parse.slurm.squeue import parse_squeue

#: Plain values only, so that nothing a person wrote can forge a field. No value ticks.
_FIELDS = (
    ("JobArrayID", "id"),
    ("JobID", "raw_id"),
    ("State", "state"),
    ("SubmitTime", "submit"),
    ("StartTime", "start"),
    ("EndTime", "end"),
    ("NumNodes", "node_count"),
    ("NodeList", "nodes"),
    ("Reason", "reason"),
)
_SEPARATOR = b"\x1f"
_MARK = b"\x1e"
#: Longer than a busy controller keeps a client waiting: ending it earlier only asks again.
_TIMEOUT_S = 120.0


class ReadBack(Protocol):
    """Asks for the present state of jobs by their plain numbers; never raises."""

    async def read(self, numbers: Sequence[str], cluster: str) -> Seen: ...


class QueueReadBack:
    """Reads back with ``squeue -t all``, which shows ended jobs while Slurm remembers them."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    async def read(self, numbers: Sequence[str], cluster: str) -> Seen:
        """All records of the jobs ``numbers``: the tasks of an array, the parts of a het job.

        A job that Slurm no longer knows is simply not among them.
        """
        jobs: list[Job] = []
        failure: Failure | None = None
        wanted = list(dict.fromkeys(numbers))
        for start in range(0, len(wanted), IDS_PER_CALL):
            seen = await self._ask(wanted[start : start + IDS_PER_CALL], cluster)
            jobs.extend(seen.jobs)
            failure = failure or seen.failure
        return Seen(tuple(jobs), failure)

    async def _ask(self, numbers: Sequence[str], cluster: str) -> Seen:
        argv = read_back_argv(numbers, cluster)
        try:
            done = await self._runner.run(Command(argv, timeout_s=_TIMEOUT_S))
        except RunnerError as error:
            return Seen((), Failure(Trouble.LOCAL, str(error)))
        silent = not done.stdout.strip() and b"error" in done.stderr.lower()
        if done.rc == 0 and not done.truncated and not silent:
            parsed = parse_squeue(
                done.stdout,
                fields=tuple(name for _, name in _FIELDS),
                separator=_SEPARATOR,
                record_mark=_MARK,
                cluster=cluster,
            )
            if parsed.bad:
                return Seen(parsed.rows, Failure(Trouble.OTHER, "squeue answered unreadably"))
            return Seen(parsed.rows)
        failure = explain_failure(
            "squeue", done.rc, done.stderr.decode("utf-8", "replace"), elapsed_s=done.took_s
        )
        # Of one unknown id squeue says so and exits 1; of several it says nothing and exits 0.
        return Seen() if failure.trouble is Trouble.UNKNOWN_JOB else Seen((), failure)


def read_back_argv(numbers: Sequence[str], cluster: str) -> tuple[str, ...]:
    """``squeue -h -a -t all -j 4711,4712 -O …``."""
    between, end = _SEPARATOR.decode(), _MARK.decode()
    names = [name for name, _ in _FIELDS]
    form = "".join(f"{name}:{between}," for name in names[:-1]) + f"{names[-1]}:{end}"
    where = ("-M", cluster) if cluster else ()
    return ("squeue", *where, "-h", "-a", "-t", "all", "-j", ",".join(numbers), "-O", form)
