"""Plan a requeue: only what Slurm takes back, never a task that has completed among others."""

from collections.abc import Iterable, Mapping, Sequence

from slurmtop.control.actions import Action, Asker, Kind, Refusal, Target
from slurmtop.control.cancel import het_warning
from slurmtop.control.hold import is_held
from slurmtop.control.plan import (
    ending_confirmation,
    first_refusal,
    ids_text,
    left_out_elsewhere,
    loss_warnings,
    make_action,
    make_targets,
    owner_warnings,
    sort_out,
    typed_confirmation,
    why_nothing,
)
from slurmtop.control.save_first import saving_warnings, savings
from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job, Phase

#: Why a completed task is not requeued together with others.
COMPLETED_AMONG_OTHERS = (
    "completed, and a requeue would run it again (requeue it alone if that is meant)"
)
_FORBIDDEN = (
    "was submitted with --no-requeue or the site forbids it (JobRequeue=0): resubmit instead"
)
_WHOLE_ARRAY = "the record of a whole array, whose finished tasks would run again: ask for tasks"
_OUTPUT = (
    "the output file may be overwritten: that is --open-mode=truncate, or append, or what the"
    " site set"
)

#: What a requeue takes at once: a job, a task, or a het job with all of its parts.
_Unit = tuple[str, str]


def plan_requeue(
    jobs: Sequence[Job],
    asker: Asker,
    *,
    hold: bool = False,
    known: Iterable[Job] = (),
    looping: Mapping[JobKey, str] | None = None,
    notes: Sequence[str] = (),
) -> Action | Refusal:
    """What putting ``jobs`` back in the queue means, or why there is nothing to put back.

    ``looping`` has a sentence for each job that keeps failing the same way; it is told first.
    ``notes`` are what is known of the output files; without any it is said that they may be
    overwritten. ``known`` is whatever the queue shows: an array is told from a plain job there.
    """
    kind = Kind.REQUEUE_HOLD if hold else Kind.REQUEUE
    refused = first_refusal(jobs, asker, kind)
    if refused is not None:
        return refused
    shown = [*jobs, *known]
    alone = len({_unit(job) for job in jobs}) == 1
    arrays = {_base(job) for job in shown if job.id.task is not None or job.id.tasks is not None}
    leaders = {_unit(job): job for job in shown if job.id.het_offset == 0}
    completed = {_unit(job) for job in shown if job.state.phase is Phase.COMPLETED}

    def left_out(job: Job) -> str | None:
        plain = job.id.task is None and job.id.tasks is None and job.id.het_offset is None
        if plain and _base(job) in arrays:
            return _WHOLE_ARRAY
        if _unit(job) in completed and not alone:
            return COMPLETED_AMONG_OTHERS
        return _not_taken_back(job, leaders.get(_unit(job)))

    usable, told, reasons = sort_out(jobs, asker, left_out)
    if not usable:
        return why_nothing(jobs, told, reasons, kind)
    targets = make_targets(usable, known, asker, kind)
    if isinstance(targets, Refusal):
        return targets
    loops = [(looping or {})[job.key] for job in usable if job.key in (looping or {})]
    again = [job for job in usable if _unit(job) in completed]
    hard = typed_confirmation(targets) if loops or again else None
    return make_action(
        kind,
        targets,
        asker,
        hard or ending_confirmation(targets, asker.me),
        [
            *loops,
            *told,
            *owner_warnings(targets, asker.me),
            *_warnings(targets, usable, again),
            *(notes or (_OUTPUT,)),
            *_start_warnings(usable, hold),
            *saving_warnings(targets, asker),
        ],
        saves=savings(targets, asker),
    )


def _start_warnings(jobs: Sequence[Job], hold: bool) -> Iterable[str]:
    """When it can start again. A hold that was set while it ran stays through a requeue."""
    if hold:
        yield "it is held then, until it is released"
        return
    held = [job for job in jobs if is_held(job)]
    if held:
        those = "" if len(held) == len(jobs) else f": {ids_text(held)}"
        yield f"it is held, so it will not start until it is released{those}"
    if len(held) < len(jobs):
        yield "it waits about 2 minutes (BeginTime) before it can start again"


def _base(job: Job) -> _Unit:
    return job.key.cluster, job.id.base


def _unit(job: Job) -> _Unit:
    return _base(job) if job.id.het_offset is not None else (job.key.cluster, job.key.id)


def _not_taken_back(job: Job, leader: Job | None) -> str | None:
    """Why Slurm would not take this job back, or None. Of a het job only the leader tells."""
    elsewhere = left_out_elsewhere(job)
    if elsewhere is not None:
        return elsewhere
    if job.state.phase is Phase.PENDING:
        return "already pending: hold it instead"
    if job.state.phase is Phase.ENDING:
        return "still ending: ask again when it is over"
    telling = leader if job.id.het_offset else job
    if telling is not None and telling.batch is False:
        return "interactive jobs cannot be requeued"
    if telling is not None and telling.requeueable is False:
        return _FORBIDDEN
    return None


def _warnings(
    targets: Sequence[Target], jobs: Sequence[Job], again: Sequence[Job]
) -> Iterable[str]:
    if again:
        yield f"it has completed, and runs again from its start: {ids_text(again)}"
    for target in targets:
        if target.parts:
            yield het_warning(target, "are put back in the queue")
    unsure = [job for job in jobs if job.requeueable is None]
    if unsure:
        yield f"not known whether Slurm may requeue it (Requeue=): {ids_text(unsure)}"
    yield from loss_warnings(targets)
