"""From ids to plans: one look at the jobs, then the very plans that the screen makes."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from slurmtop.cli.action_report import JobLine
from slurmtop.cli.named import Absent, Chosen, Named, choose
from slurmtop.control.actions import Action, Asker, Details, Kind, Refusal
from slurmtop.control.outcome import Result, Seen
from slurmtop.control.prepare import Request, ScriptSeen, StepsSeen, World, prepare
from slurmtop.control.signals import runs_in
from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job, Step
from slurmtop.model.process import NodeProcesses
from slurmtop.model.rights import Rights
from slurmtop.model.script import Reaction, Recipient, ScriptReading
from slurmtop.model.text import visible


@dataclass(slots=True)
class Plans:
    """What is to be done, and a line for each id to which nothing can be done."""

    actions: list[Action] = field(default_factory=list)
    refused: list[JobLine] = field(default_factory=list)
    absent: list[Absent] = field(default_factory=list)
    notes: tuple[str, ...] = ()


class OneLook:
    """A world that is asked once about the same jobs: several plans come from one look."""

    def __init__(self, inner: World) -> None:
        self._inner = inner
        self._jobs: dict[str, Seen] = {}
        self._steps: dict[str, StepsSeen] = {}
        self._looping: dict[JobKey, str | None] = {}
        self._processes: dict[tuple[str, str], NodeProcesses] = {}

    async def jobs(
        self,
        numbers: Sequence[str],
        cluster: str,
        *,
        owners: Collection[str] = (),
        excluded: bool = False,
        apart: bool = False,
    ) -> Seen:
        """As the inner world, which is asked for what is not known yet."""
        fresh = [number for number in numbers if number not in self._jobs]
        if fresh:
            seen = await self._inner.jobs(
                fresh, cluster, owners=owners, excluded=excluded, apart=apart
            )
            for number in fresh:
                own = tuple(job for job in seen.jobs if number in (job.id.base, job.raw_id))
                self._jobs[number] = Seen(own, seen.failure)
        found = [self._jobs[number] for number in numbers]
        rows = {job.key: job for seen in found for job in seen.jobs}
        failure = next((seen.failure for seen in found if seen.failure is not None), None)
        return Seen(tuple(rows.values()), failure)

    async def steps(self, numbers: Sequence[str], cluster: str) -> StepsSeen:
        """As :meth:`jobs`."""
        fresh = [number for number in numbers if number not in self._steps]
        if fresh:
            seen = await self._inner.steps(fresh, cluster)
            for number in fresh:
                own = tuple(step for step in seen.steps if step.job.base == number)
                self._steps[number] = StepsSeen(own, seen.failure)
        found = [self._steps[number] for number in numbers]
        steps = {(step.job.text, step.id): step for seen in found for step in seen.steps}
        failure = next((seen.failure for seen in found if seen.failure is not None), None)
        return StepsSeen(tuple(steps.values()), failure)

    async def script(self, job: Job) -> ScriptSeen:
        return await self._inner.script(job)

    async def looping(self, job: Job) -> str | None:
        if job.key not in self._looping:
            self._looping[job.key] = await self._inner.looping(job)
        return self._looping[job.key]

    async def processes(self, job: str, hosts: Sequence[str]) -> tuple[NodeProcesses, ...]:
        """As :meth:`jobs`."""
        found = [(job, host) for host in hosts]
        fresh = [host for host in hosts if (job, host) not in self._processes]
        if fresh:
            for look in await self._inner.processes(job, fresh):
                self._processes[job, look.host] = look
        return tuple(self._processes[key] for key in found if key in self._processes)

    def doing(self) -> str:
        return self._inner.doing()

    async def rights(self) -> Rights:
        return await self._inner.rights()

    def reactions(
        self, reading: ScriptReading, signal: str, recipient: Recipient, step: Step | None
    ) -> tuple[Reaction, ...]:
        return self._inner.reactions(reading, signal, recipient, step)


class Planner:
    """Plans one wish for all that a command line names."""

    def __init__(self, kind: Kind, details: Details, world: World, asker: Asker) -> None:
        self._kind = kind
        self._details = details
        self._world = OneLook(world)
        self._asker = asker
        self._known: tuple[Job, ...] = ()

    async def plan(self, named: Sequence[Named], rows: Sequence[Job]) -> Plans:
        """The actions: one for all jobs, one for each step."""
        self._known = tuple(rows)
        chosen = choose(named, rows, self._kind)
        plans = Plans(absent=list(chosen.absent), notes=chosen.notes)
        if chosen.all_jobs:
            await self._plan_jobs(chosen, plans)
        if chosen.steps:
            await self._plan_steps(chosen, plans)
        return plans

    async def _prepare(self, jobs: Sequence[Job], step: Step | None = None) -> Action | Refusal:
        details = self._details
        request = Request(
            kind=self._kind, jobs=tuple(jobs), details=details, step=step, known=self._known
        )
        return await prepare(request, self._world, self._asker)

    async def _plan_jobs(self, chosen: Chosen, plans: Plans) -> None:
        jobs = chosen.all_jobs
        made = await self._prepare(jobs)
        left = [job for job in jobs if not (isinstance(made, Action) and _reached(job, made))]
        why = await self._why_each(left, made if isinstance(made, Refusal) else None)
        if isinstance(made, Refusal) and len(why) < len(jobs):
            # Some could be meant if the others were not among them.
            made = await self._prepare([job for job in jobs if job.key not in why])
            if isinstance(made, Refusal):
                why = {job.key: made.sentence for job in jobs}
        if isinstance(made, Action):
            plans.actions.append(made)
        for job in chosen.jobs:
            if job.key in why:
                plans.refused.append(_refused(job.key.id, why[job.key]))
        for number, those in chosen.swept:
            if all(job.key in why for job in those):
                together = await self._prepare(those)
                text = together.sentence if isinstance(together, Refusal) else why[those[0].key]
                plans.refused.append(_refused(number, f"array {number}: {text}"))

    async def _why_each(
        self, jobs: Sequence[Job], all_of_them: Refusal | None
    ) -> dict[JobKey, str]:
        """Why each of ``jobs`` is left out; not those that alone would not be."""
        if all_of_them is not None and len(jobs) == 1:
            return {jobs[0].key: all_of_them.sentence}
        why: dict[JobKey, str] = {}
        for job in jobs:
            alone = await self._prepare([job])
            if isinstance(alone, Refusal):
                why[job.key] = alone.sentence
            elif all_of_them is None:
                why[job.key] = f"job {visible(job.key.id)}: left out"
        return why

    async def _plan_steps(self, chosen: Chosen, plans: Plans) -> None:
        numbers = list(dict.fromkeys(job.id.base for job, _, _ in chosen.steps))
        seen = await self._world.steps(numbers, self._asker.cluster)
        done: set[tuple[JobKey, str]] = set()
        for job, wanted, text in chosen.steps:
            if (job.key, wanted) in done:
                continue
            done.add((job.key, wanted))
            step = next((one for one in seen.steps if one.id == wanted and runs_in(one, job)), None)
            if step is None:
                plans.absent.append(_no_step(job, wanted, text, seen))
                continue
            made = await self._prepare([job], step)
            if isinstance(made, Action):
                plans.actions.append(made)
            else:
                plans.refused.append(_refused(text, made.sentence))


def _reached(job: Job, action: Action) -> bool:
    keys = {key for target in action.targets for key in (target.key, *target.parts)}
    return job.key in keys


def _refused(id: str, sentence: str) -> JobLine:
    name = Result.REFUSED.name.lower()
    text = sentence if visible(id) in sentence else f"job {visible(id)}: {sentence}"
    return JobLine(id=id, outcome=name, sentence=text)


def _no_step(job: Job, wanted: str, text: str, seen: StepsSeen) -> Absent:
    if seen.failure is not None:
        why = f"its steps are not known: {visible(seen.failure.sentence)}"
        return Absent(text, f"step {visible(text)}: {why}", known=True)
    own = [step.id for step in seen.steps if runs_in(step, job)]
    there = f"its steps are {visible(', '.join(own))}" if own else "no step of it is running"
    return Absent(text, f"step {visible(text)}: there is no step {wanted} now; {there}")
