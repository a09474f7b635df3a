"""What accounting remembers of a job that the controller may have forgotten."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from slurmtop.collect.asking import (
    check,
    never_again,
    new_record_mark,
    on_cluster,
    readable,
    refusal,
    run_slurm,
    text_separator,
    unknown_fields,
)
from slurmtop.collect.poller import SourceFailed
from slurmtop.model.job import AccountingRecord
from slurmtop.model.ports import Completed, Runner
from slurmtop.model.snapshot import Failure, Parsed
from slurmtop.parse.slurm.sacct import SACCT_FIELDS, parse_sacct

_MOST_TRIES = 8
#: slurmdbd notes the submit time in whole seconds, and clocks differ a little.
_BEFORE_SUBMIT = timedelta(seconds=60)


class Accounting:
    """``sacct`` on demand: never polled, always for named jobs.

    Where the cluster keeps no accounting, it is asked once and never again (``disabled`` says
    why). Fields that this Slurm does not know are left out from then on. ``mark`` is that of the
    queue: from its letters the separator is made, so that no job's name can forge a row.
    """

    def __init__(self, runner: Runner, *, cluster: str = "", mark: bytes | None = None) -> None:
        self.disabled: Failure | None = None
        self._runner = runner
        self._cluster = cluster
        self._separator = text_separator(mark or new_record_mark())
        self._fields = SACCT_FIELDS

    async def history(
        self,
        job_ids: str | Sequence[str],
        *,
        since: datetime | None = None,
        duplicates: bool = False,
        timeout_s: float = 60.0,
    ) -> Parsed[AccountingRecord]:
        """The rows of the jobs and their steps, in sacct's order.

        ``since`` is the submit time where it is known: ids are used again after MaxJobId, and
        only the time tells two jobs apart. ``duplicates`` adds the earlier runs of a requeued
        job (or of an earlier job with that id). No rows: accounting does not know it (yet).
        Raises :class:`~slurmtop.collect.poller.SourceFailed`.
        """
        if self.disabled is not None:
            raise SourceFailed(self.disabled)
        ids = job_ids if isinstance(job_ids, str) else ",".join(job_ids)
        for _ in range(_MOST_TRIES):
            names = [name for name, _ in self._fields]
            argv = self._argv(ids, names, since, duplicates)
            done = await run_slurm(self._runner, argv, timeout_s=timeout_s)
            if not self._learnt_from(done, names):
                return self._parsed(argv, done)
        raise refusal(argv, done)

    def _argv(
        self, ids: str, names: Sequence[str], since: datetime | None, duplicates: bool
    ) -> tuple[str, ...]:
        start: tuple[str, ...] = ()
        if since is not None:
            # Children run with TZ=UTC, so a time without a zone is UTC.
            at = (since.astimezone(UTC) - _BEFORE_SUBMIT).strftime("%Y-%m-%dT%H:%M:%S")
            start = ("-S", at)
        return (
            "sacct",
            "-n",
            "-P",
            f"--delimiter={self._separator.decode('ascii')}",
            *on_cluster(self._cluster),
            *(("-D",) if duplicates else ()),
            *start,
            "-j",
            ids,
            "-o",
            ",".join(names),
        )

    def _parsed(self, argv: tuple[str, ...], done: Completed) -> Parsed[AccountingRecord]:
        try:
            data = check(argv, done)
        except SourceFailed as error:
            if never_again(error.failure):
                self.disabled = error.failure
            raise
        names = tuple(field for _, field in self._fields)
        return readable("sacct", parse_sacct(data, fields=names, separator=self._separator))

    def _learnt_from(self, done: Completed, names: Sequence[str]) -> bool:
        unknown = unknown_fields(done, names)
        left = tuple(pair for pair in self._fields if pair[0] not in unknown)
        if not unknown or not any(name == "JobID" for name, _ in left):
            return False
        self._fields = left
        return True
