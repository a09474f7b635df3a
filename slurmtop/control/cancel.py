"""Plan a cancel: which of the marked jobs it reaches, by which ids, confirmed how hard."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from slurmtop.control.actions import Action, Asker, Details, Kind, Refusal, Target
from slurmtop.control.plan import (
    ending_confirmation,
    first_refusal,
    ids_text,
    left_out_when_over,
    loss_warnings,
    make_action,
    make_target,
    make_targets,
    owner_warnings,
    sort_out,
    why_nothing,
)
from slurmtop.control.save_first import saving_warnings, savings
from slurmtop.model.job import Job, Phase, Step
from slurmtop.model.text import visible


def plan_cancel(
    jobs: Sequence[Job], asker: Asker, *, known: Iterable[Job] = ()
) -> Action | Refusal:
    """What cancelling ``jobs`` means, or why there is nothing to cancel.

    Jobs that have ended are left out and said so. A part of a het job stands for all of it:
    Slurm refuses the cancel of one waiting part. ``known`` is whatever the queue shows: the
    other parts of a het job are looked for there, so that reach and cost count all that ends.
    Nothing is read or run.
    """
    refused = first_refusal(jobs, asker, "cancel")
    if refused is not None:
        return refused
    usable, warnings, reasons = sort_out(jobs, asker, left_out_when_over)
    if not usable:
        return why_nothing(jobs, warnings, reasons, "cancel")
    targets = make_targets(usable, known, asker, "cancel")
    if isinstance(targets, Refusal):
        return targets
    warnings.extend(_warnings(targets, usable, asker.me))
    warnings.extend(saving_warnings(targets, asker))
    details = Details(one_call=asker.one_call and len(targets) > 1)
    confirm = ending_confirmation(targets, asker.me)
    saves = savings(targets, asker)
    return make_action(Kind.CANCEL, targets, asker, confirm, warnings, details=details, saves=saves)


def plan_cancel_step(job: Job, step: Step, asker: Asker) -> Action | Refusal:
    """What cancelling one step of a running job means; the job itself goes on."""
    refused = first_refusal([job], asker, "cancel")
    if refused is not None:
        return refused
    usable, warnings, reasons = sort_out([job], asker, left_out_when_over)
    if not usable:
        return why_nothing([job], warnings, reasons, "cancel")
    name = f"step {visible(step.id)} of job {visible(job.key.id)}"
    if not step.by_srun:
        return Refusal(f"{name} was not started by srun: cancel the job instead")
    made = step_target(job, step, asker)
    if isinstance(made, Refusal):
        return made
    warnings.extend(owner_warnings([made], asker.me))
    warnings.append(
        f"{name} ends ({visible(step.name) or 'no name'}); the job goes on with what its script"
        " does when a step fails"
    )
    confirm = ending_confirmation([made], asker.me)
    return make_action(Kind.CANCEL, [made], asker, confirm, warnings)


def step_target(job: Job, step: Step, asker: Asker) -> Target | Refusal:
    """One step as a target: its own nodes; of a het part only its raw id names the step."""
    if job.id.tasks is not None:
        return Refusal(f"the waiting tasks of {visible(job.id.base)} have no steps")
    if job.id.het_offset is not None:
        if job.raw_id is None:
            return Refusal(f"the own number of {visible(job.id.text)} is not known: refresh")
        named = job.raw_id
    else:
        named = job.id.stable
    return replace(
        make_target(job, asker.now, (f"{named}.{step.id}",)),
        step=step.id,
        nodes=step.nodes or job.nodes,
        node_count=step.node_count or job.node_count,
    )


def _warnings(targets: Sequence[Target], jobs: Sequence[Job], me: str) -> list[str]:
    out = owner_warnings(targets, me)
    out.extend(het_warning(target) for target in targets if target.parts)
    ending = [job for job in jobs if job.state.phase is Phase.ENDING]
    if ending:
        out.append(f"already ending, so a cancel may change nothing: {ids_text(ending)}")
    return [*out, *loss_warnings(targets)]


def het_warning(target: Target, what: str = "end") -> str:
    """That all parts of a het job are meant, and whether all of them are known."""
    offsets = [int(key.id.rpartition("+")[2]) for key in target.parts]
    start = f"job {target.base} is a het job: all of its parts {what}"
    if offsets == list(range(max(2, len(offsets)))):
        return f"{start}; the {len(offsets)} that are known are counted here"
    shown = ", ".join(visible(key.id) for key in target.parts)
    return f"{start}; only {shown} is known, so nodes and GPUs of the others are not counted"
