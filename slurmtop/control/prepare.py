"""From a wish to a plan: asks Slurm what the jobs are now, then plans. For screen and scripts."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from typing import Protocol

from slurmtop.control.actions import (
    NO_DETAILS,
    Action,
    Asker,
    Details,
    Kind,
    Refusal,
    differ_by_task,
)
from slurmtop.control.cancel import plan_cancel, plan_cancel_step
from slurmtop.control.change import plan_exclude, plan_limit, raises_limit
from slurmtop.control.commands import id_allowed
from slurmtop.control.fates import with_processes
from slurmtop.control.fresh import Look, fresh_look
from slurmtop.control.hold import held_by_admin, plan_hold, plan_release
from slurmtop.control.outcome import Seen, StepsSeen
from slurmtop.control.plan import first_refusal, ids_text
from slurmtop.control.rank_signal import not_looked_at, raw_number
from slurmtop.control.requeue import plan_requeue
from slurmtop.control.signals import Looks, parse_signal, plan_signal, runs_in, with_step
from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job, Step
from slurmtop.model.process import NodeProcesses
from slurmtop.model.rights import UNKNOWN_RIGHTS, Rights
from slurmtop.model.script import Fate, Reaction, Recipient, ScriptReading
from slurmtop.model.snapshot import Failure
from slurmtop.model.text import visible
from slurmtop.parse.slurm.hostlist import hosts_in

__all__ = ["Request", "ScriptSeen", "StepsSeen", "World", "prepare"]

#: Scripts that are read for one action at most: each is a call.
READ_AT_MOST = 10
#: Histories of jobs: each may take some seconds.
LOOPS_AT_MOST = 5
#: Nodes that are looked at beside the script of a job, before a signal that scancel sends.
LOOK_AT_MOST = 32
#: Nodes that are looked at for the rank processes: their pids stand nowhere else.
LOOK_FOR_RANKS = 4_096
_REQUEUES = (Kind.REQUEUE, Kind.REQUEUE_HOLD)


@dataclass(frozen=True, slots=True)
class ScriptSeen:
    """What the batch script of a job says, or in ``why`` why nobody can tell (all of it)."""

    reading: ScriptReading | None = None
    why: str = ""


class World(Protocol):
    """What a plan may ask before it is shown. Nothing here raises; silence is told as such."""

    async def jobs(
        self,
        numbers: Sequence[str],
        cluster: str,
        *,
        owners: Collection[str] = (),
        excluded: bool = False,
        apart: bool = False,
    ) -> Seen:
        """All records of these jobs, ended ones too, with ``requeueable`` and ``batch``.

        ``excluded`` asks for ``excluded_nodes`` too ("" where a job excludes none, None where
        that is not known), ``apart`` for waiting tasks of an array that differ one by one.
        ``owners`` are the users whose jobs they are: many jobs are then one question.
        """
        ...

    async def steps(self, numbers: Sequence[str], cluster: str) -> StepsSeen: ...

    async def script(self, job: Job) -> ScriptSeen: ...

    async def looping(self, job: Job) -> str | None:
        """A sentence where this job keeps failing the same way, else None."""
        ...

    async def rights(self) -> Rights: ...

    async def processes(self, job: str, hosts: Sequence[str]) -> tuple[NodeProcesses, ...]:
        """One fresh look at each of ``hosts``: what runs there of ``job`` (its plain number).

        A node that cannot be looked at is a look with a failure. () where no node is looked at.
        """
        ...

    def doing(self) -> str:
        """What it waits for where that is not Slurm: ``looked at 3 of 64 nodes``; else ""."""
        ...

    def reactions(
        self, reading: ScriptReading, signal: str, recipient: Recipient, step: Step | None
    ) -> tuple[Reaction, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a person wants done to ``jobs``. ``step`` narrows a cancel or a signal to one step;
    ``known`` is what else the queue shows."""

    kind: Kind
    jobs: tuple[Job, ...]
    details: Details = NO_DETAILS
    step: Step | None = None
    known: tuple[Job, ...] = ()


@dataclass(frozen=True, slots=True)
class _Learnt:
    """What was asked beside the state of the jobs; ``unasked`` tells what was not."""

    looping: dict[JobKey, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    steps: Sequence[Step] | None = None
    reactions: tuple[Reaction, ...] = ()
    unasked: tuple[str, ...] = ()
    looks: Looks | None = None


_NOTHING_LEARNT = _Learnt()
_WHO = {
    Recipient.STEPS: "what srun started",
    Recipient.STEP: "the step",
    Recipient.BATCH: "the batch shell",
    Recipient.EVERYTHING: "the whole job",
    Recipient.RANKS: "the ranks",
}


async def prepare(request: Request, world: World, asker: Asker) -> Action | Refusal:
    """The plan for ``request`` by what Slurm says of its jobs now. Never raises for Slurm.

    A cancel of jobs asks nothing but the rights to jobs of others: it must be quick. Where
    Slurm does not answer, the plan is made of what was given and says from when that is.
    """
    refused = first_refusal(request.jobs, asker, request.kind)
    if refused is not None:
        return refused
    if request.kind is Kind.CANCEL and request.step is None:
        return _plan(request, await _with_rights(request, world, asker))
    numbers = list(dict.fromkeys(job.id.base for job in request.jobs))
    seen = await world.jobs(
        numbers,
        asker.cluster,
        owners={job.user for job in request.jobs},
        excluded=request.kind is Kind.EXCLUDE,
        apart=differ_by_task(request.kind)
        and any(job.id.tasks is not None or job.id.task is not None for job in request.jobs),
    )
    look = fresh_look(request.kind, request.jobs, request.known, seen)
    told = look.told
    if seen.failure is not None:
        told = (_stale(seen.failure, asker, look), *told)
    if not look.jobs:
        return Refusal(_nothing_left(request, look))
    request = replace(request, jobs=look.jobs, known=look.known)
    asker = await _with_rights(request, world, asker)
    first = _plan(request, asker)
    if isinstance(first, Refusal):
        return Refusal("; ".join((first.sentence, *told)))
    learnt = await _learn(request, first, world, asker)
    plan = learnt if isinstance(learnt, Refusal) else _plan(request, asker, learnt)
    if isinstance(plan, Refusal) or isinstance(learnt, Refusal):
        return plan
    loops = set(learnt.looping.values())
    leading = [text for text in plan.warnings if text in loops]
    others = [text for text in plan.warnings if text not in loops]
    return replace(plan, warnings=(*leading, *told, *others, *learnt.unasked))


def _plan(request: Request, asker: Asker, learnt: _Learnt = _NOTHING_LEARNT) -> Action | Refusal:
    jobs, known, details = request.jobs, request.known, request.details
    match request.kind:
        case Kind.CANCEL if request.step is not None:
            if len(jobs) != 1:
                return Refusal("choose the one step of one job that is to be cancelled")
            return plan_cancel_step(jobs[0], request.step, asker)
        case Kind.CANCEL:
            return plan_cancel(jobs, asker, known=known)
        case Kind.REQUEUE | Kind.REQUEUE_HOLD:
            return plan_requeue(
                jobs,
                asker,
                hold=request.kind is Kind.REQUEUE_HOLD,
                known=known,
                looping=learnt.looping,
                notes=learnt.notes,
            )
        case Kind.HOLD:
            return plan_hold(jobs, asker, known=known)
        case Kind.RELEASE:
            return plan_release(jobs, asker, known=known)
        case Kind.LIMIT:
            return plan_limit(jobs, asker, minutes=details.limit_minutes or 0, known=known)
        case Kind.EXCLUDE:
            return plan_exclude(jobs, asker, hosts=details.exclude, known=known)
        case Kind.SIGNAL:
            return plan_signal(
                jobs,
                asker,
                signal=details.signal,
                recipient=details.recipient,
                step=request.step,
                steps=learnt.steps,
                reactions=learnt.reactions,
                known=known,
                looks=learnt.looks,
            )


async def _with_rights(request: Request, world: World, asker: Asker) -> Asker:
    """``asker`` with what may be done, where that decides anything."""
    minutes = request.details.limit_minutes or 0
    needed = any(
        job.user != asker.me
        or (request.kind is Kind.RELEASE and held_by_admin(job))
        or (request.kind is Kind.LIMIT and raises_limit(job, minutes))
        for job in request.jobs
    )
    if not needed or asker.rights != UNKNOWN_RIGHTS:
        return asker
    return replace(asker, rights=await world.rights())


def _stale(failure: Failure, asker: Asker, look: Look) -> str:
    which = f" of {ids_text(look.stale)}" if len(look.stale) < len(look.jobs) else ""
    when = f"{asker.now.astimezone(UTC):%H:%M:%S} UTC"
    return (
        f"Slurm did not say what is true now ({visible(failure.sentence)}):"
        f" this is what was known{which} at {when}"
    )


def _nothing_left(request: Request, look: Look) -> str:
    if len({job.key for job in request.jobs}) == 1:
        return f"job {visible(request.jobs[0].key.id)}: {next(iter(look.left_out))}"
    return f"nothing to {request.kind} among {len(request.jobs)} jobs: {'; '.join(look.told)}"


async def _learn(request: Request, first: Action, world: World, asker: Asker) -> _Learnt | Refusal:
    """What else ``request`` needs to know of the jobs that ``first`` reaches."""
    keys = {key for target in first.targets for key in (target.key, *target.parts)}
    jobs = [job for job in request.jobs if job.key in keys]
    if request.kind in _REQUEUES:
        looping, unasked = await _loops(jobs, world)
        return _Learnt(looping, await _output_notes(jobs, world), unasked=unasked)
    steps: Sequence[Step] | None = None
    if request.step is not None or (
        request.kind is Kind.SIGNAL and request.details.recipient is Recipient.STEPS
    ):
        numbers = [number for job in jobs for number in _numbers(job)]
        answer = await world.steps(list(dict.fromkeys(numbers)), asker.cluster)
        steps = None if answer.failure is not None else answer.steps
    step = request.step
    if step is not None and steps is not None:
        same = [one for one in steps if one.id == step.id and runs_in(one, jobs[0])]
        if not same:
            return Refusal(
                f"step {visible(step.id)} of job {visible(jobs[0].key.id)} runs no longer"
            )
    if request.kind is not Kind.SIGNAL:
        return _NOTHING_LEARNT
    if request.details.recipient is Recipient.RANKS and request.step is None:
        wanted = [job for job in (*request.known, *request.jobs) if job.key in keys]
        return _Learnt(looks=await _looks(wanted, world, LOOK_FOR_RANKS))
    by_script = await _reactions(request, jobs, steps, world)
    if len(jobs) != 1 or jobs[0].user not in ("", asker.me):
        return _Learnt(steps=steps, reactions=by_script)
    signal = parse_signal(request.details.signal) or ""
    deaf = steps is not None and request.step is None and not with_step(jobs, steps)
    if signal == "KILL" or deaf:
        return _Learnt(steps=steps, reactions=by_script)
    looks = (await _looks(jobs, world, LOOK_AT_MOST)).get(jobs[0].key, ())
    recipient = Recipient.STEP if request.step is not None else request.details.recipient
    exact = with_processes(by_script, looks, raw_number(jobs[0]), signal, recipient, request.step)
    unasked = not_looked_at(looks, "not looked at what runs on {hosts}: {why}")
    return _Learnt(steps=steps, reactions=exact, unasked=unasked)


async def _looks(jobs: Sequence[Job], world: World, most: int) -> Looks:
    """Looks at the nodes of each of ``jobs``; at none where those are more than ``most``."""
    hosts = {job.key: hosts_in(job.nodes) for job in jobs}
    if sum(map(len, hosts.values())) > most:
        return {}
    numbers = {job.key: raw_number(job) for job in jobs}
    return {
        key: await world.processes(numbers[key], own)
        for key, own in hosts.items()
        if own and numbers[key].isdigit()
    }


def _numbers(job: Job) -> tuple[str, ...]:
    """What a query of steps names: of a part of a het job its own number, too."""
    own = job.raw_id if job.id.het_offset is not None else None
    return (job.id.base,) if own is None or not id_allowed(own) else (job.id.base, own)


async def _loops(jobs: Sequence[Job], world: World) -> tuple[dict[JobKey, str], tuple[str, ...]]:
    """What keeps failing, and a word where not all were looked at.

    Only a job that was restarted can; the most restarted ones come first.
    """
    again = [job for job in jobs if job.restarts != 0]
    again.sort(key=lambda job: -(job.restarts or 0))
    found = {job.key: await world.looping(job) for job in again[:LOOPS_AT_MOST]}
    rest = again[LOOPS_AT_MOST:]
    unasked = (
        (f"not looked at whether these fail in the same way each time: {ids_text(rest)}",)
        if rest
        else ()
    )
    return {key: text for key, text in found.items() if text is not None}, unasked


def _by_script(jobs: Sequence[Job]) -> list[list[Job]]:
    """The tasks of an array and the parts of a het job share one script."""
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        groups.setdefault(job.id.base, []).append(job)
    return list(groups.values())


async def _output_notes(jobs: Sequence[Job], world: World) -> tuple[str, ...]:
    """What happens to the output files, as far as the scripts say it; () for nothing said."""
    modes: dict[str | None, list[Job]] = {}
    for place, group in enumerate(_by_script(jobs)):
        reading = (await world.script(group[0])).reading if place < READ_AT_MOST else None
        mode = reading.open_mode if reading is not None else None
        modes.setdefault(mode, []).extend(group)
    if set(modes) <= {None}:
        return ()
    said = {
        "append": "its script says --open-mode=append, so the output file goes on",
        "truncate": "its script says --open-mode=truncate: the output file is overwritten",
    }
    unknown = "the output file may be overwritten (--open-mode is not known)"
    return tuple(
        f"{said.get(mode or '', unknown)}: {ids_text(those)}" for mode, those in modes.items()
    )


async def _reactions(
    request: Request, jobs: Sequence[Job], steps: Sequence[Step] | None, world: World
) -> tuple[Reaction, ...]:
    """Who gets the signal, script by script; with several, each is told by its job."""
    signal = parse_signal(request.details.signal) or ""
    recipient = Recipient.STEP if request.step is not None else request.details.recipient
    if signal == "KILL":
        return ()
    if recipient is Recipient.STEPS and steps is not None:
        jobs = with_step(jobs, steps)
    found: dict[tuple[Reaction, ...], list[Job]] = {}
    groups = _by_script(jobs)
    for place, group in enumerate(groups):
        seen = (
            await world.script(group[0])
            if place < READ_AT_MOST
            else ScriptSeen(None, f"only {READ_AT_MOST} scripts are read for one action")
        )
        what = [Reaction(_WHO[recipient], Fate.UNKNOWN, seen.why)] if seen.why else []
        if seen.reading is not None:
            what.extend(world.reactions(seen.reading, signal, recipient, request.step))
        found.setdefault(tuple(what), []).extend(group)
    if len(groups) == 1:
        return next(iter(found))
    return tuple(
        replace(item, who=f"{ids_text(those)}: {item.who}")
        for items, those in found.items()
        for item in items
    )
