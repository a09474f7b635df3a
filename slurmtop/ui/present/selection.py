"""Which of the jobs under a key are meant, where a choice is needed. Pure."""

from collections.abc import Callable, Sequence

from slurmtop.control.actions import Action, Kind, Refusal
from slurmtop.model.job import Job, Phase, Step
from slurmtop.model.text import visible
from slurmtop.model.units import plural
from slurmtop.ui.present.action_words import whom_text
from slurmtop.ui.present.choose import Option

#: What a kind would reach of some jobs, or why nothing.
Reach = Callable[[Kind, Sequence[Job]], Action | Refusal]
_RUNS = (Phase.RUNNING, Phase.SUSPENDED, Phase.ENDING)

HOLD = "hold:"
TYPED = "typed"
WAITING = "waiting"
RUNNING = "running"
FAILED = "failed"
ALL = "all"


def jobs_text(jobs: Sequence[Job]) -> str:
    """``job 4711``, ``3 jobs``: each waiting task of an array counted."""
    count = sum(job.id.tasks.count if job.id.tasks is not None else 1 for job in jobs)
    if len(jobs) == 1 and count == 1:
        return f"job {visible(jobs[0].key.id)}"
    return plural(count, "job")


def part_of(jobs: Sequence[Job], which: str) -> tuple[Job, ...]:
    """The failed, running or waiting ones among ``jobs``; with :data:`ALL` all of them.

    Those that a person cancelled have not failed: nobody wants them back unasked.
    """
    phases = {
        FAILED: (Phase.FAILED,),
        RUNNING: _RUNS,
        WAITING: (Phase.PENDING,),
    }.get(which)
    if phases is None:
        return tuple(jobs)
    return tuple(job for job in jobs if job.state.phase in phases)


def requeue_options(jobs: Sequence[Job], reach: Reach, *, grouped: bool) -> tuple[Option, ...]:
    """Requeue, or requeue and hold; of an array the failed or the running tasks.

    Completed ones are never among them: they would run again. The value is ``failed``, or
    ``hold:failed``. ``reach`` tells what would be reached, so that no more is offered.
    """
    if not grouped:
        whole = reach(Kind.REQUEUE, jobs)
        what = whom_text(whole) if isinstance(whole, Action) else jobs_text(jobs)
        return (
            Option(ALL, f"requeue {what}", "it starts again when its turn comes"),
            Option(f"{HOLD}{ALL}", f"requeue and hold {what}", "it waits until you release it"),
        )
    out: list[Option] = []
    for which, word in ((FAILED, "failed"), (RUNNING, "running")):
        part = part_of(jobs, which)
        plan = reach(Kind.REQUEUE, part) if part else None
        count = plan.job_count if isinstance(plan, Action) else 0
        why_not = plan.sentence if isinstance(plan, Refusal) else "" if plan else "there are none"
        note = "" if which is FAILED else "ended now, and run again"
        name = plural(count, f"{word} task")
        out.append(Option(which, f"requeue {name}", note, why_not))
        out.append(Option(f"{HOLD}{which}", f"requeue and hold {name}", note, why_not))
    return tuple(out)


def requeue_choice(value: str) -> tuple[Kind, str]:
    """The kind behind a value of :func:`requeue_options`, and which jobs."""
    if value.startswith(HOLD):
        return Kind.REQUEUE_HOLD, value.removeprefix(HOLD)
    return Kind.REQUEUE, value


def array_options(jobs: Sequence[Job]) -> tuple[Option, ...]:
    """Which part of an array is cancelled."""
    out: list[Option] = []
    for which in (WAITING, RUNNING):
        part = part_of(jobs, which)
        count = sum(job.id.tasks.count if job.id.tasks is not None else 1 for job in part)
        why_not = "" if count else "there are none"
        out.append(Option(which, f"the {plural(count, f'{which} task')}", why_not=why_not))
    out.append(Option(TYPED, "some tasks by their numbers …", "3,7-9"))
    return tuple(out)


def step_options(steps: Sequence[Step]) -> tuple[Option, ...]:
    """The running steps of one job; only what srun started can be cancelled alone."""
    return tuple(
        Option(
            step.id,
            f"step {visible(step.id)}",
            step_note(step),
            "" if step.by_srun else _NOT_ALONE.get(step.id, "not started by srun"),
        )
        for step in sorted(steps, key=_step_order)
    )


_NOT_ALONE = {
    "batch": "the batch script itself: cancel the job",
    "extern": "holds what logs in to the nodes: cancel the job",
    "interactive": "the shell of an interactive job: cancel the job",
}


def _step_order(step: Step) -> tuple[int, str]:
    return (int(step.id) if step.by_srun else 1 << 30, step.id)


def step_note(step: Step) -> str:
    """``train.py, 8 tasks, gpu01``."""
    parts = [visible(step.name)]
    if step.tasks:
        parts.append(plural(step.tasks, "task"))
    if step.nodes:
        parts.append(visible(step.nodes))
    return ", ".join(part for part in parts if part)


def same_array(jobs: Sequence[Job]) -> bool:
    """Are they all of one array?"""
    return bool(jobs) and all(
        job.id.base == jobs[0].id.base and (job.id.task is not None or job.id.tasks is not None)
        for job in jobs
    )


def last_nodes(jobs: Sequence[Job], told: str) -> str:
    """The nodes of the last run, where all jobs say the same ones; else nothing."""
    nodes = {job.nodes for job in jobs}
    only = nodes.pop() if len(nodes) == 1 else None
    return visible(told or only or "")
