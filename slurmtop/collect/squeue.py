"""The queue: all jobs of a user or of everybody, and the few questions about one job.

Asked as text with a separator and a record mark, never as JSON: for 20,000 jobs that is 0.3 s
and 2.5 MB instead of ten seconds and 64 MB, and unchanged records are known before parsing.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from slurmtop.collect.asking import (
    SEPARATOR,
    check,
    long_format,
    new_record_mark,
    on_cluster,
    readable,
    refusal,
    run_slurm,
    unknown_fields,
)
from slurmtop.collect.who import Who, current_user
from slurmtop.model.job import Job
from slurmtop.model.ports import Clock, Completed, Runner
from slurmtop.model.snapshot import BadRecord, Parsed
from slurmtop.parse.slurm.squeue import (
    QUEUE_FIELDS,
    merge_partitions,
    parse_record,
    parse_squeue,
    split_records,
)

INTERVAL_S = 20.0
#: One for ``--me``, one for ``--local`` and a few for fields: all fail at once, without a call.
_MOST_TRIES = 6
_SLICE_S = 0.008
_RECORDS_A_LOOK = 32
_PIECE_BYTES = 128 * 1024


@dataclass(frozen=True, slots=True)
class QueueAnswer(Parsed[Job]):
    """The jobs of one answer. ``reused`` of them are the very objects of the answer before."""

    raw_bytes: int = 0
    reused: int = 0


class QueueSource:
    """``squeue`` for one's own jobs (default), one ``user``'s, everybody's, or one ``job_id``.

    Own, a user's and one job's recently ended records stay visible (``-t all``); for everybody
    Slurm's default states are asked. With ``federation`` false only jobs of this cluster are
    asked for (``--local``): that saves one of three requests. What this Slurm does not know
    (``--me`` before 20.02, a field) is left out from then on.
    """

    name = "queue"

    def __init__(
        self,
        runner: Runner,
        clock: Clock,
        *,
        cluster: str = "",
        user: str | None = None,
        all_users: bool = False,
        job_id: str | None = None,
        me: Who | None = None,
        mark: bytes | None = None,
        federation: bool = False,
        interval_s: float = INTERVAL_S,
    ) -> None:
        self.interval_s = interval_s
        self._runner = runner
        self._clock = clock
        self._cluster = cluster
        self._user = user
        self._all_users = all_users
        self._job_id = job_id
        self._me = me
        self._mark = mark or new_record_mark()
        self._local = not federation
        self._me_option = True
        self._fields = QUEUE_FIELDS
        self._jobs: dict[bytes, Job] = {}

    async def fetch(self) -> QueueAnswer:
        """One answer. Raises :class:`~slurmtop.collect.poller.SourceFailed`."""
        for _ in range(_MOST_TRIES):
            argv = self._argv()
            done = await run_slurm(self._runner, argv)
            if not self._learnt_from(done):
                return await self._parsed(check(argv, done))
        raise refusal(argv, done)

    def _argv(self) -> tuple[str, ...]:
        names = [name for name, _ in self._fields]
        return (
            "squeue",
            "-h",
            "-a",
            *on_cluster(self._cluster),
            *(("--local",) if self._local else ()),
            *self._whose(),
            "-O",
            long_format(names, self._mark),
        )

    def _whose(self) -> tuple[str, ...]:
        if self._job_id is not None:
            return ("-t", "all", "-j", self._job_id)
        if self._user is not None:
            return ("-t", "all", "-u", self._user)
        if self._all_users:
            return ()
        if self._me_option:
            return ("-t", "all", "--me")
        self._me = self._me or current_user()
        return ("-t", "all", "-u", self._me.name)

    def _learnt_from(self, done: Completed) -> bool:
        """True where this Slurm is older than the question, and the question is changed now."""
        if self._me_option and b"unrecognized option '--me'" in done.stderr:
            self._me_option = False
            return True
        if self._local and b"unrecognized option '--local'" in done.stderr:
            self._local = False
            return True
        unknown = unknown_fields(done, [name for name, _ in self._fields])
        left = tuple(pair for pair in self._fields if pair[0] not in unknown)
        if not unknown or not any(field in ("id", "raw_id") for _, field in left):
            return False
        self._fields = left
        self._jobs = {}
        return True

    async def _parsed(self, data: bytes) -> QueueAnswer:
        names = tuple(field for _, field in self._fields)
        before = self._jobs
        jobs: dict[bytes, Job] = {}
        rows: list[Job] = []
        keys = set()
        bad = reused = 0
        first_bad: BadRecord | None = None
        breath = Breath(self._clock)
        for index, raw in enumerate(_records(data, self._mark)):
            job: Job | BadRecord | None = before.get(raw)
            if job is None:
                job = parse_record(
                    raw, fields=names, separator=SEPARATOR, cluster=self._cluster, index=index
                )
            else:
                reused += 1
            if isinstance(job, BadRecord):
                bad += 1
                first_bad = first_bad or job
            else:
                jobs[raw] = job
                rows.append(job)
                keys.add(job.key)
            if index % _RECORDS_A_LOOK == 0:
                await breath.take()
        self._jobs = jobs
        if len(keys) != len(rows):
            rows = list(merge_partitions(rows))
        return readable("squeue", QueueAnswer(tuple(rows), bad, first_bad, len(data), reused))


class Breath:
    """Lets other tasks run once 8 ms of work have passed, so that a long answer holds up no key."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until = clock.monotonic() + _SLICE_S

    async def take(self) -> None:
        if self._clock.monotonic() >= self._until:
            await asyncio.sleep(0)
            self._until = self._clock.monotonic() + _SLICE_S


def _records(data: bytes, mark: bytes) -> Iterator[bytes]:
    """The records of an answer, split piece by piece: all at once takes too long."""
    begin = 0
    while begin < len(data):
        end = data.find(mark, begin + _PIECE_BYTES)
        end = len(data) if end < 0 else end + len(mark)
        yield from split_records(data[begin:end], mark)
        begin = end


async def fetch_expected_start(
    runner: Runner, job_id: str, *, cluster: str = "", mark: bytes | None = None
) -> datetime | None:
    """When the scheduler means to start a pending job; None where it has not said so yet.

    The earliest of its records, where it is an array. Raises
    :class:`~slurmtop.collect.poller.SourceFailed`.
    """
    mark = mark or new_record_mark()
    options = ("-h", "-a", *on_cluster(cluster), "--local", "--start", "-j", job_id)
    # With --start, squeue 22.05 ignores -O and prints a table of its own.
    argv = ("squeue", *options, "-o", f"%i{SEPARATOR.decode()}%S{mark.decode('ascii')}")
    data = check(argv, await run_slurm(runner, argv))
    fields = ("id", "start")
    jobs = readable("squeue", parse_squeue(data, fields=fields, record_mark=mark, cluster=cluster))
    return min((job.start for job in jobs.rows if job.start is not None), default=None)
