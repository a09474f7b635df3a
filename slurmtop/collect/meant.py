"""Which of several records a person meant: of an array, a het job, or an id used again."""

from collections.abc import Sequence

from slurmtop.model.ids import JobId
from slurmtop.model.job import AccountingRecord, Job, Phase
from slurmtop.parse.slurm.sacct import newest_run

#: Which record stands for a whole array: what runs, then what went wrong, then what waits.
_SPEAKER_ORDER = (
    Phase.RUNNING,
    Phase.ENDING,
    Phase.SUSPENDED,
    Phase.FAILED,
    Phase.PENDING,
    Phase.CANCELLED,
    Phase.COMPLETED,
)


def meant(jobs: Sequence[Job], id: JobId) -> Job | None:
    """The record that the typed id names; of a whole array the one that matters most."""
    for job in jobs:
        if job.id.stable == id.stable:
            return job
    if id.task is None and id.het_offset is None:
        same_base = [job for job in jobs if job.id.base == id.base]
        raw = [job for job in jobs if job.raw_id == id.base and job.id.base != id.base]
        if same_base:
            return min(same_base, key=_speaker)
        return raw[0] if raw else None
    # A task that waits has no record of its own: it stands in the list of the rest.
    return next((job for job in jobs if _holds(job.id, id)), None)


def _holds(rest: JobId, id: JobId) -> bool:
    """Is the task ``id`` among those of ``4711_[2-9,12-20:2%4]``?"""
    if id.task is None or rest.tasks is None or rest.base != id.base:
        return False
    for piece in rest.tasks.text.partition("%")[0].split(","):
        span, _, step = piece.partition(":")
        low, _, high = span.partition("-")
        if all(text.isascii() and text.isdecimal() for text in (low, high or low, step or "1")):
            within = int(low) <= id.task <= int(high or low)
            if within and (id.task - int(low)) % max(1, int(step or 1)) == 0:
                return True
    return False


def _speaker(job: Job) -> tuple[int, int]:
    return _phase_place(job.state.phase), job.id.het_offset or 0


def _phase_place(phase: Phase) -> int:
    return _SPEAKER_ORDER.index(phase) if phase in _SPEAKER_ORDER else len(_SPEAKER_ORDER)


def one_run(rows: Sequence[AccountingRecord]) -> tuple[AccountingRecord, ...]:
    """The newest run; of an array or het job that of the part that matters most."""
    newest = newest_run(rows)
    parts = [row for row in newest if row.id.step is None] or newest[:1]
    if not parts:
        return ()
    chosen = min(parts, key=lambda row: (_phase_place(row.state.phase), row.id.het_offset or 0))
    return tuple(
        row for row in newest if (row.id.stable, row.cluster) == (chosen.id.stable, chosen.cluster)
    )


def same_job(one: Job, other: Job) -> bool:
    if one.raw_id is not None and other.raw_id is not None and one.id.tasks is None:
        return one.raw_id == other.raw_id
    return one.key == other.key


def belongs(found: JobId, asked: JobId) -> bool:
    if asked.task is not None or asked.het_offset is not None:
        return found.base == asked.base and (found.task, found.het_offset) == (
            asked.task,
            asked.het_offset,
        )
    return True
