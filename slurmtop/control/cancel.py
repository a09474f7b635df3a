"""Plan a cancel: which of the marked jobs it reaches, by which ids, confirmed how hard."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from slurmtop.control.actions import (
    Action,
    ConfirmLevel,
    Kind,
    Refusal,
    Target,
    argvs_for,
    cluster_allowed,
    id_allowed,
    task_ids,
)
from slurmtop.model.ids import JobKey, TaskSet
from slurmtop.model.job import Job, Phase
from slurmtop.model.text import visible
from slurmtop.parse.slurm.hostlist import compress_hosts, together

#: A strided task list is written out for scancel; past this it would not fit a command line.
_EXPANDED_TASKS = 100_000
_DONE = (Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED)


def plan_cancel(
    jobs: Sequence[Job],
    *,
    me: str,
    now: datetime,
    cluster: str,
    read_only: bool = False,
    known: Iterable[Job] = (),
) -> Action | Refusal:
    """What cancelling ``jobs`` means, or why there is nothing to cancel.

    ``me`` is the name of the person who asks. ``cluster`` is the name for ``-M``, or "".
    Jobs that have ended are left out and said so. A part of a het job stands for all of it:
    Slurm refuses the cancel of one waiting part. ``known`` is whatever the queue shows: the
    other parts of a het job are looked for there, so that reach and cost count all that ends.
    Nothing is read or run.
    """
    if read_only:
        return Refusal("slurmtop runs read-only: start it without --read-only to cancel jobs")
    if not jobs:
        return Refusal("there is no job under the cursor to cancel")
    if cluster and not cluster_allowed(cluster):
        return Refusal(
            f"{visible(cluster)} is not the name of one cluster, so nothing is cancelled"
        )
    distinct = list({job.key: job for job in jobs}.values())
    elsewhere = [job for job in distinct if job.key.cluster != cluster]
    if elsewhere:
        return Refusal(
            f"job {visible(str(elsewhere[0].key))} belongs to another cluster"
            f" than {visible(cluster) or 'this one'}: cancel it from there"
        )
    usable, warnings = _usable(distinct)
    if not usable:
        return Refusal(_why_nothing(distinct, warnings))
    parts = _all_parts(usable, known)
    targets: list[Target] = []
    for job in usable:
        target = _target(job, parts, now)
        if isinstance(target, Refusal):
            return target
        if all(target.key != other.key for other in targets):
            targets.append(target)
    warnings.extend(_warnings(targets, usable, me))
    confirm, expected = _confirmation(targets, me)
    return Action(
        kind=Kind.CANCEL,
        cluster=cluster,
        targets=tuple(targets),
        argvs=argvs_for(Kind.CANCEL, targets, cluster),
        confirm=confirm,
        expected_text=expected,
        warnings=tuple(warnings),
        planned_at=now,
    )


def _usable(jobs: Sequence[Job]) -> tuple[list[Job], list[str]]:
    left: list[Job] = []
    out: dict[str, list[Job]] = {}
    for job in jobs:
        phase = job.state.phase
        if phase in _DONE:
            out.setdefault("already over", []).append(job)
        elif phase is Phase.ELSEWHERE:
            out.setdefault("runs on another cluster", []).append(job)
        elif phase is Phase.UNKNOWN:
            out.setdefault("in a state slurmtop does not know", []).append(job)
        else:
            left.append(job)
    return left, [f"left out, {why}: {_ids(those)}" for why, those in out.items()]


def _all_parts(jobs: Sequence[Job], known: Iterable[Job]) -> list[Job]:
    """``jobs``, and what ``known`` has of the het jobs among them and is not over."""
    leaders = {(job.key.cluster, job.id.base) for job in jobs if job.id.het_offset is not None}
    have = {job.key: job for job in jobs}
    for other in known if leaders else ():
        mine = other.id.het_offset is not None and ((other.key.cluster, other.id.base) in leaders)
        if mine and other.state.phase not in _DONE:
            have.setdefault(other.key, other)
    return list(have.values())


def _why_nothing(jobs: Sequence[Job], left_out: Sequence[str]) -> str:
    job = jobs[0]
    word = visible(job.state.word)
    if len(jobs) > 1:
        return f"nothing to cancel among {len(jobs)} jobs: {'; '.join(left_out)}"
    if job.state.phase is Phase.ELSEWHERE:
        return f"job {_id(job)} was started on another cluster of the federation: cancel it there"
    if job.state.phase is Phase.UNKNOWN:
        return (
            f"job {_id(job)} is in state {word}, which slurmtop does not know:"
            f" look at it with scontrol show job {_id(job)}"
        )
    return f"job {_id(job)} is already over ({word}): there is nothing to cancel"


def _id(job: Job) -> str:
    return visible(job.key.id)


def _ids(jobs: Sequence[Job]) -> str:
    names = ", ".join(_id(job) for job in jobs[:5])
    return names if len(jobs) <= 5 else f"{names} and {len(jobs) - 5} more"


def _target(job: Job, jobs: Sequence[Job], now: datetime) -> Target | Refusal:
    if job.id.cut or not id_allowed(job.id.base):
        return Refusal(
            f"Slurm printed only part of the id {visible(job.id.text)}, so nothing is cancelled:"
            " refresh, or cancel it by its full id"
        )
    base = job.id.base
    if job.id.het_offset is not None:
        return _het_target(job, jobs, now)
    if job.id.tasks is not None:
        ranges = task_ranges(job.id.tasks)
        if ranges is None:
            return Refusal(
                f"Slurm cut the task list of {base}, so the waiting tasks cannot be named:"
                f" scancel {base} would end the whole array, its running tasks too"
            )
        return _make(
            job, now, tuple(task_ids(base, ranges)), tasks=ranges, covers=job.id.tasks.count
        )
    if job.id.task is not None:
        number = job.id.task
        if not id_allowed(f"{base}_{number}"):
            return Refusal(f"{visible(job.id.text)} is not a job id that can be cancelled")
        return _make(job, now, (f"{base}_{number}",), tasks=((number, number),))
    return _make(job, now, (base,))


def _het_target(job: Job, jobs: Sequence[Job], now: datetime) -> Target | Refusal:
    leader = job.id.base
    if job.het_leader is not None and job.het_leader != leader:
        return Refusal(
            f"the leader of the het job {visible(job.id.text)} is not clear"
            f" ({visible(job.het_leader)}), so nothing is cancelled"
        )
    parts = sorted(
        (other for other in jobs if other.id.base == leader and other.id.het_offset is not None),
        key=lambda other: other.id.het_offset or 0,
    )
    first = parts[0]
    gpus = [part.tres.gpus for part in parts]
    hosts = together(part.nodes for part in parts)
    spent = [_gpu_hours(part, now) for part in parts]
    target = _make(first, now, (leader,), parts=tuple(part.key for part in parts))
    return Target(
        key=target.key,
        ids=target.ids,
        name=target.name,
        user=target.user,
        state_word=target.state_word,
        submit=target.submit,
        parts=target.parts,
        nodes=compress_hosts(hosts) or None if hosts is not None else None,
        # Parts may share a node; where nodes are only asked for, they are simply added.
        node_count=len(hosts) if hosts else _sum([part.node_count for part in parts]),
        gpus=_sum(gpus),
        started_at=target.started_at,
        gpu_hours_spent=_total(spent),
    )


def _make(
    job: Job,
    now: datetime,
    ids: tuple[str, ...],
    *,
    tasks: tuple[tuple[int, int], ...] = (),
    covers: int = 1,
    parts: tuple[JobKey, ...] = (),
) -> Target:
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
        gpu_hours_spent=_gpu_hours(job, now),
    )


def _gpu_hours(job: Job, now: datetime) -> float | None:
    if job.state.phase is Phase.PENDING:
        return 0.0
    if job.tres.gpus is None or job.start is None:
        return None
    return job.tres.gpus * max(0.0, (now - job.start).total_seconds()) / 3_600


def _sum(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)


def _total(values: Iterable[float | None]) -> float | None:
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)


def _warnings(targets: Sequence[Target], jobs: Sequence[Job], me: str) -> list[str]:
    out = []
    others = sorted({target.user for target in targets if target.user != me})
    if others:
        names = ", ".join(visible(name) or "somebody unknown" for name in others[:3])
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        out.append(f"not your jobs: they belong to {names}{more}")
    for target in targets:
        if target.parts:
            out.append(_het_warning(target))
    ending = [job for job in jobs if job.state.phase is Phase.ENDING]
    if ending:
        out.append(f"already ending, so a cancel may change nothing: {_ids(ending)}")
    spent = _total(target.gpu_hours_spent for target in targets)
    if spent:
        out.append(f"{spent:,.1f} GPU-hours run so far; what was not saved in a checkpoint is lost")
    elif any(target.started_at is not None for target in targets):
        out.append("what running jobs did not save in a checkpoint is lost")
    return out


def _het_warning(target: Target) -> str:
    offsets = [int(key.id.rpartition("+")[2]) for key in target.parts]
    start = f"job {target.base} is a het job: all of its parts end"
    if offsets == list(range(max(2, len(offsets)))):
        return f"{start}; the {len(offsets)} that are known are counted here"
    shown = ", ".join(visible(key.id) for key in target.parts)
    return f"{start}; only {shown} is known, so nodes and GPUs of the others are not counted"


def _confirmation(targets: Sequence[Target], me: str) -> tuple[ConfirmLevel, str]:
    total = sum(target.covers for target in targets)
    if len(targets) > 1 or total != 1:
        return ConfirmLevel.TYPE_COUNT, str(total)
    only = targets[0]
    several_nodes = only.started_at is not None and (only.node_count or 0) > 1
    if only.user != me or several_nodes or only.parts:
        return ConfirmLevel.TYPE_ID, only.ids[0]
    return ConfirmLevel.YES, ""


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
