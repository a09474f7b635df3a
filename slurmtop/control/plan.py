"""What every plan of an action shares: which jobs may be meant, as targets, and at what cost.

Pure. The plans themselves stand in ``cancel``, ``requeue``, ``hold``, ``change``, ``signals``.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from slurmtop.control.actions import (
    NO_DETAILS,
    Action,
    Asker,
    ConfirmLevel,
    Details,
    Kind,
    Refusal,
    Saving,
    Target,
)
from slurmtop.control.commands import calls_for, cluster_allowed, id_allowed, task_ids
from slurmtop.model.ids import JobKey, TaskSet
from slurmtop.model.job import Job, LimitKind, Phase
from slurmtop.model.script import Reaction
from slurmtop.model.text import visible
from slurmtop.parse.slurm.hostlist import compress_hosts, together

#: A strided task list is written out for Slurm; past this it would not fit a command line.
_EXPANDED_TASKS = 100_000
DONE = (Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED)
#: Why one job cannot be meant, as half a sentence ("already over"), or None.
LeftOut = Callable[[Job], str | None]


def make_action(
    kind: Kind,
    targets: Sequence[Target],
    asker: Asker,
    confirm: tuple[ConfirmLevel, str],
    warnings: Iterable[str],
    *,
    details: Details = NO_DETAILS,
    reactions: Iterable[Reaction] = (),
    saves: tuple[Saving, ...] = (),
) -> Action | Refusal:
    """The finished plan with its commands, or why no command can be made of it."""
    try:
        calls = calls_for(kind, targets, asker.cluster, details)
    except ValueError as error:
        return Refusal(f"nothing is done: {visible(str(error))}")
    return Action(
        kind=kind,
        cluster=asker.cluster,
        targets=tuple(targets),
        argvs=tuple(call.argv for call in calls),
        hosts=tuple(call.host for call in calls) if any(call.host for call in calls) else (),
        confirm=confirm[0],
        expected_text=confirm[1],
        details=details,
        warnings=tuple(dict.fromkeys(warnings)),
        reactions=tuple(reactions),
        planned_at=asker.now,
        verdict=asker.verdict,
        saves=saves,
    )


def read_only_text(where: str, verb: str) -> str:
    """That nothing may be done, what says so (an option, a file), and how to change that."""
    if where and not where.startswith("--"):
        return (
            f"slurmtop runs read-only, as {visible(where)} says: set read_only: false in your own"
            f" settings to {verb} jobs"
        )
    return f"slurmtop runs read-only: start it without {where or '--read-only'} to {verb} jobs"


def first_refusal(jobs: Sequence[Job], asker: Asker, verb: str) -> Refusal | None:
    """Why nothing can be planned for ``jobs`` at all; ``verb`` is ``cancel``, ``requeue`` …"""
    if asker.read_only:
        return Refusal(read_only_text(asker.read_only_from, verb))
    if not jobs:
        return Refusal(f"there is no job under the cursor to {verb}")
    if asker.cluster and not cluster_allowed(asker.cluster):
        return Refusal(
            f"{visible(asker.cluster)} is not the name of one cluster, so nothing is done"
        )
    elsewhere = [job for job in jobs if job.key.cluster != asker.cluster]
    if elsewhere:
        return Refusal(
            f"job {visible(str(elsewhere[0].key))} belongs to another cluster"
            f" than {visible(asker.cluster) or 'this one'}: {verb} it from there"
        )
    return None


def sort_out(
    jobs: Sequence[Job], asker: Asker, left_out: LeftOut
) -> tuple[list[Job], list[str], dict[str, list[Job]]]:
    """The jobs that can be meant, a sentence for each kind that was left out, and those kinds.

    A job that ``asker`` is known to have no right to is left out as well.
    """
    usable: list[Job] = []
    out: dict[str, list[Job]] = {}
    for job in {job.key: job for job in jobs}.values():
        why = left_out(job) or no_right(job, asker)
        if why is None:
            usable.append(job)
        else:
            out.setdefault(why, []).append(job)
    return usable, [f"left out, {why}: {ids_text(those)}" for why, those in out.items()], out


def no_right(job: Job, asker: Asker) -> str | None:
    """Half a sentence where this person is known not to be allowed, and who is."""
    if asker.rights.may_change(job.user, job.account, asker.me) is not False:
        return None
    owner, account = visible(job.user), visible(job.account or "")
    return f"not yours; {owner}, an operator or a coordinator of account {account} may do it"


def left_out_when_over(job: Job) -> str | None:
    """For what only a job that has not ended can get."""
    phase = job.state.phase
    if phase in DONE:
        return "already over"
    return left_out_elsewhere(job)


def left_out_when_ending(job: Job) -> str | None:
    """For what a job that is just ending cannot get either."""
    if job.state.phase is Phase.ENDING:
        return "already ending"
    return left_out_when_over(job)


def left_out_elsewhere(job: Job) -> str | None:
    """For what can be done in any state, as long as the job is here and its state is known."""
    if job.state.phase is Phase.ELSEWHERE:
        return "runs on another cluster"
    if job.state.phase is Phase.UNKNOWN:
        return "in a state slurmtop does not know"
    return None


def why_nothing(
    jobs: Sequence[Job], left_out: Sequence[str], reasons: dict[str, list[Job]], verb: str
) -> Refusal:
    """The refusal where every job was left out."""
    job = jobs[0]
    word = visible(job.state.word)
    if len({job.key for job in jobs}) > 1:
        return Refusal(f"nothing to {verb} among {len(jobs)} jobs: {'; '.join(left_out)}")
    if job.state.phase is Phase.ELSEWHERE:
        return Refusal(
            f"job {id_text(job)} was started on another cluster of the federation: {verb} it there"
        )
    if job.state.phase is Phase.UNKNOWN:
        return Refusal(
            f"job {id_text(job)} is in state {word}, which slurmtop does not know:"
            f" look at it with scontrol show job {id_text(job)}"
        )
    why = next(iter(reasons), "already over")
    if why == "already over":
        why = f"already over ({word}): there is nothing to {verb}"
        return Refusal(f"job {id_text(job)} is {why}")
    return Refusal(f"job {id_text(job)}: {why}")


def all_parts(jobs: Sequence[Job], known: Iterable[Job]) -> list[Job]:
    """``jobs``, and what ``known`` has of the het jobs among them and is not over."""
    leaders = {(job.key.cluster, job.id.base) for job in jobs if job.id.het_offset is not None}
    have = {job.key: job for job in jobs}
    for other in known if leaders else ():
        mine = other.id.het_offset is not None and ((other.key.cluster, other.id.base) in leaders)
        if mine and other.state.phase not in DONE:
            have.setdefault(other.key, other)
    return list(have.values())


def id_text(job: Job) -> str:
    return visible(job.key.id)


def ids_text(jobs: Sequence[Job]) -> str:
    """The first five ids."""
    names = ", ".join(id_text(job) for job in jobs[:5])
    return names if len(jobs) <= 5 else f"{names} and {len(jobs) - 5} more"


def make_targets(
    jobs: Sequence[Job], known: Iterable[Job], asker: Asker, verb: str
) -> list[Target] | Refusal:
    """The targets behind ``jobs``: a part of a het job stands for all of it. ``known`` is
    whatever the queue shows: the other parts are looked for there, so that reach and cost
    count all."""
    parts = all_parts(jobs, known)
    targets: dict[JobKey, Target] = {}
    for job in jobs:
        target = _target(job, parts, asker.now, verb)
        if isinstance(target, Refusal):
            return target
        targets.setdefault(target.key, target)
    return list(targets.values())


def _target(job: Job, jobs: Sequence[Job], now: datetime, verb: str) -> Target | Refusal:
    if job.id.cut or not id_allowed(job.id.base):
        return Refusal(
            f"Slurm printed only part of the id {visible(job.id.text)}, so nothing is done:"
            f" refresh, or {verb} it by its full id"
        )
    base = job.id.base
    if job.id.het_offset is not None:
        return _het_target(job, jobs, now)
    if job.id.tasks is not None:
        ranges = task_ranges(job.id.tasks)
        if ranges is None:
            return Refusal(
                f"Slurm cut the task list of {base}, so the waiting tasks cannot be named:"
                f" {base} alone would mean the whole array, its running tasks too"
            )
        ids = tuple(task_ids(base, ranges))
        return make_target(job, now, ids, tasks=ranges, covers=job.id.tasks.count)
    if job.id.task is not None:
        number = job.id.task
        if not id_allowed(f"{base}_{number}"):
            return Refusal(f"{visible(job.id.text)} is not a job id that a command takes")
        return make_target(job, now, (f"{base}_{number}",), tasks=((number, number),))
    return make_target(job, now, (base,))


def _het_target(job: Job, jobs: Sequence[Job], now: datetime) -> Target | Refusal:
    leader = job.id.base
    if job.het_leader is not None and job.het_leader != leader:
        return Refusal(
            f"the leader of the het job {visible(job.id.text)} is not clear"
            f" ({visible(job.het_leader)}), so nothing is done"
        )
    parts = sorted(
        (other for other in jobs if other.id.base == leader and other.id.het_offset is not None),
        key=lambda other: other.id.het_offset or 0,
    )
    hosts = together(part.nodes for part in parts)
    target = make_target(parts[0], now, (leader,), parts=tuple(part.key for part in parts))
    return replace(
        target,
        nodes=compress_hosts(hosts) or None if hosts is not None else None,
        # Parts may share a node; where nodes are only asked for, they are simply added.
        node_count=len(hosts) if hosts else total([part.node_count for part in parts]),
        gpus=total([part.tres.gpus for part in parts]),
        gpu_hours_spent=total([gpu_hours(part, now) for part in parts]),
    )


def make_target(
    job: Job,
    now: datetime,
    ids: tuple[str, ...],
    *,
    tasks: tuple[tuple[int, int], ...] = (),
    covers: int = 1,
    parts: tuple[JobKey, ...] = (),
) -> Target:
    """One record of the queue as a target, named by ``ids``."""
    running = job.state.phase in (Phase.RUNNING, Phase.SUSPENDED, Phase.ENDING)
    return Target(
        key=job.key,
        ids=ids,
        name=job.name,
        user=job.user,
        state_word=job.state.word,
        submit=job.submit,
        tasks=tasks,
        covers=covers,
        parts=parts,
        nodes=job.nodes,
        node_count=job.node_count,
        gpus=job.tres.gpus,
        started_at=job.start if running else None,
        gpu_hours_spent=gpu_hours(job, now),
        restarts=job.restarts,
        limit_s=job.limit.seconds if job.limit.kind is LimitKind.SECONDS else None,
        excluded_nodes=job.excluded_nodes,
    )


def gpu_hours(job: Job, now: datetime) -> float | None:
    """GPU-hours of this run, so far or in all; None where they are not known."""
    if job.state.phase is Phase.PENDING:
        return 0.0
    until = job.end if job.state.phase in DONE else now
    if job.tres.gpus is None or job.start is None or until is None:
        return None
    return job.tres.gpus * max(0.0, (until - job.start).total_seconds()) / 3_600


Number = TypeVar("Number", int, float)


def total(values: Iterable[Number | None]) -> Number | None:
    """The sum; None as soon as one of them is not known."""
    out: Number | None = None
    for value in values:
        if value is None:
            return None
        out = value if out is None else out + value
    return out


def owner_warnings(targets: Sequence[Target], me: str) -> list[str]:
    """Whose jobs they are, where they are not all of ``me``."""
    others = sorted({target.user for target in targets if target.user != me})
    if not others:
        return []
    names = ", ".join(visible(name) or "somebody unknown" for name in others[:3])
    more = f" and {len(others) - 3} more" if len(others) > 3 else ""
    return [f"not your jobs: they belong to {names}{more}"]


def loss_warnings(targets: Iterable[Target]) -> list[str]:
    """What ending those of these jobs that run costs."""
    targets = [target for target in targets if target.started_at is not None]
    spent = total(target.gpu_hours_spent for target in targets)
    if spent is not None and spent >= 0.05:
        return [f"{spent:,.1f} GPU-hours run so far; what was not saved in a checkpoint is lost"]
    if any(target.started_at is not None for target in targets):
        return ["what running jobs did not save in a checkpoint is lost"]
    return []


def ending_confirmation(targets: Sequence[Target], me: str) -> tuple[ConfirmLevel, str]:
    """How an action is confirmed that ends what runs."""
    only = targets[0]
    several = len(targets) > 1 or only.covers != 1
    several_nodes = only.started_at is not None and (only.node_count or 0) > 1
    if several or only.user != me or several_nodes or only.parts:
        return typed_confirmation(targets)
    return ConfirmLevel.YES, ""


def typed_confirmation(targets: Sequence[Target]) -> tuple[ConfirmLevel, str]:
    """How an action is confirmed that a single key must never do."""
    count = sum(target.covers for target in targets)
    if len(targets) > 1 or count != 1:
        return ConfirmLevel.TYPE_COUNT, str(count)
    return ConfirmLevel.TYPE_ID, targets[0].ids[0]


def mild_confirmation(targets: Sequence[Target], me: str) -> tuple[ConfirmLevel, str]:
    """How an action is confirmed that ends nothing and can be taken back."""
    if all(target.user == me for target in targets):
        return ConfirmLevel.YES, ""
    return ending_confirmation(targets, me)


def task_ranges(tasks: TaskSet) -> tuple[tuple[int, int], ...] | None:
    """The inclusive ranges behind ``0-9,12``, ``0-998:2%10``; None where the text is cut."""
    if not tasks.exact or (":" in tasks.text and tasks.count > _EXPANDED_TASKS):
        return None
    out: list[tuple[int, int]] = []
    for piece in tasks.text.partition("]")[0].partition("%")[0].split(","):
        span, colon, stride = piece.partition(":")
        low_text, _, high_text = span.partition("-")
        numbers = (low_text, high_text or low_text, stride if colon else "1")
        if not all(text.isascii() and text.isdigit() and len(text) <= 9 for text in numbers):
            return None
        low, high, step = (int(text) for text in numbers)
        if high < low or step < 1:
            return None
        if step == 1:
            out.append((low, high))
        else:
            out.extend((number, number) for number in range(low, high + 1, step))
    return tuple(out) or None
