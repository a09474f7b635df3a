"""What a key would reach by what is known now, before Slurm or the person is asked. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from slurmtop.control.actions import Action, Asker, Kind, Refusal
from slurmtop.control.cancel import plan_cancel
from slurmtop.control.change import plan_exclude, plan_limit
from slurmtop.control.hold import plan_hold, plan_release
from slurmtop.control.requeue import plan_requeue
from slurmtop.control.signals import plan_signal
from slurmtop.model.job import Job, LimitKind, TimeLimit
from slurmtop.model.script import Recipient

_ANY_LIMIT = TimeLimit(LimitKind.UNLIMITED)
_ANY_NODE = "node"


def reach(
    kind: Kind, jobs: Sequence[Job], asker: Asker, known: Iterable[Job] = ()
) -> Action | Refusal:
    """A plan of ``kind`` for ``jobs``, or why none of them can get it.

    Nothing of it is ever run: limit, nodes and signal stand for any that would be taken, and
    what only Slurm can tell (rights, excluded nodes) is left open.
    """
    match kind:
        case Kind.CANCEL:
            return plan_cancel(jobs, asker, known=known)
        case Kind.REQUEUE | Kind.REQUEUE_HOLD:
            return plan_requeue(jobs, asker, hold=kind is Kind.REQUEUE_HOLD, known=known)
        case Kind.HOLD:
            return plan_hold(jobs, asker, known=known)
        case Kind.RELEASE:
            return plan_release(jobs, asker, known=known)
        case Kind.LIMIT:
            free = [replace(job, limit=_ANY_LIMIT) for job in jobs]
            return plan_limit(free, asker, minutes=1, known=known)
        case Kind.EXCLUDE:
            parts = [job for job in known if job.id.het_offset is not None]
            return _with_advice(
                plan_exclude(_bare(jobs), asker, hosts=(_ANY_NODE,), known=_bare(parts)), jobs
            )
        case Kind.SIGNAL:
            return plan_signal(jobs, asker, signal="USR1", recipient=Recipient.STEPS, known=known)


def reached(plan: Action, jobs: Sequence[Job]) -> tuple[Job, ...]:
    """Those of ``jobs`` that ``plan`` reaches."""
    keys = {key for target in plan.targets for key in (target.key, *target.parts)}
    return tuple(job for job in jobs if job.key in keys)


def _bare(jobs: Sequence[Job]) -> list[Job]:
    return [replace(job, excluded_nodes="") for job in jobs]


def _with_advice(plan: Action | Refusal, jobs: Sequence[Job]) -> Action | Refusal:
    if isinstance(plan, Action) or not jobs or not all(job.state.ended for job in jobs):
        return plan
    advice = "to run it again without a node: requeue and hold it, exclude the node, release it"
    return Refusal(f"{plan.sentence}; {advice}")
