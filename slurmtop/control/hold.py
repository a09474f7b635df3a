"""Plan a hold and a release. Which jobs are held, Slurm says by a reason or by priority 0."""

from collections.abc import Iterable, Sequence

from slurmtop.control.actions import Action, Asker, Kind, Refusal
from slurmtop.control.cancel import het_warning
from slurmtop.control.plan import (
    first_refusal,
    ids_text,
    left_out_when_ending,
    make_action,
    make_targets,
    mild_confirmation,
    owner_warnings,
    sort_out,
    why_nothing,
)
from slurmtop.model.job import Job, Phase
from slurmtop.parse.slurm.reasons import explain_reason

_HELD_FLAGS = ("REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD")
_BY_ADMIN = "JobHeldAdmin"


def plan_hold(jobs: Sequence[Job], asker: Asker, *, known: Iterable[Job] = ()) -> Action | Refusal:
    """What holding ``jobs`` means: those that wait do not start; those that run go on."""

    def left_out(job: Job) -> str | None:
        why = left_out_when_ending(job)
        return why or ("already held" if is_held(job) and not _partly(job) else None)

    refused = first_refusal(jobs, asker, Kind.HOLD)
    if refused is not None:
        return refused
    usable, warnings, reasons = sort_out(jobs, asker, left_out)
    if not usable:
        return why_nothing(jobs, warnings, reasons, Kind.HOLD)
    targets = make_targets(usable, known, asker, Kind.HOLD)
    if isinstance(targets, Refusal):
        return targets
    warnings.extend(owner_warnings(targets, asker.me))
    warnings.extend(het_warning(target, "are held") for target in targets if target.parts)
    going_on = [job for job in usable if job.state.phase is not Phase.PENDING]
    if going_on:
        warnings.append(
            "a hold does not stop a job that runs: it goes on, and is held only if it is"
            f" requeued: {ids_text(going_on)}"
        )
    if asker.rights.operator and any(target.user != asker.me for target in targets):
        warnings.append("what an operator holds, its owner cannot release")
    confirm = mild_confirmation(targets, asker.me)
    return make_action(Kind.HOLD, targets, asker, confirm, warnings)


def plan_release(
    jobs: Sequence[Job], asker: Asker, *, known: Iterable[Job] = ()
) -> Action | Refusal:
    """What releasing ``jobs`` means, or that they are not held, or not by this person."""

    def left_out(job: Job) -> str | None:
        why = left_out_when_ending(job)
        if why is not None:
            return why
        if is_held(job) is False:
            return "it is not held"
        if _words(job) == {_BY_ADMIN} and not asker.rights.operator:
            return "held by an administrator, only they can release it"
        return None

    refused = first_refusal(jobs, asker, Kind.RELEASE)
    if refused is not None:
        return refused
    usable, warnings, reasons = sort_out(jobs, asker, left_out)
    if not usable:
        return why_nothing(jobs, warnings, reasons, Kind.RELEASE)
    targets = make_targets(usable, known, asker, Kind.RELEASE)
    if isinstance(targets, Refusal):
        return targets
    warnings.extend(owner_warnings(targets, asker.me))
    warnings.extend(het_warning(target, "are released") for target in targets if target.parts)
    unsure = [job for job in usable if is_held(job) is None]
    if unsure:
        warnings.append(f"not known whether it is held at all: {ids_text(unsure)}")
    mixed = [job for job in usable if _BY_ADMIN in _words(job) and not asker.rights.operator]
    if mixed:
        warnings.append(
            "some of its tasks are held by an administrator, and only they can release those:"
            f" {ids_text(mixed)}"
        )
    deleted = [job for job in usable if "ReservationDeleted" in _words(job)]
    if deleted:
        warnings.append(f"its reservation was deleted, so it may not start: {ids_text(deleted)}")
    confirm = mild_confirmation(targets, asker.me)
    return make_action(Kind.RELEASE, targets, asker, confirm, warnings)


def is_held(job: Job) -> bool | None:
    """Is a hold on this job (a running one can have one too)? None where nothing tells.

    Of several waiting tasks in one record it is true as soon as one of them is held.
    """
    if any(flag in job.state.flags for flag in _HELD_FLAGS) or job.priority == 0:
        return True
    if job.reason is None:
        return None if job.priority is None and job.state.phase is Phase.PENDING else False
    return explain_reason(job.reason).kind == "held"


def held_by_admin(job: Job) -> bool:
    """Does Slurm say that an administrator holds it, or some of its tasks?"""
    return _BY_ADMIN in _words(job)


def _words(job: Job) -> set[str]:
    return set() if job.reason is None else set(explain_reason(job.reason).word.split(","))


def _partly(job: Job) -> bool:
    """Are only some of the tasks in this record held, or is that not known?"""
    kinds = {explain_reason(word).kind for word in _words(job)}
    return len(kinds) > 1
