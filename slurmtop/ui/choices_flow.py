"""From a key to a wish: where a key leaves something open, it is asked first."""

from dataclasses import replace
from typing import TYPE_CHECKING

from slurmtop.control.actions import Action, Details, Kind, Refusal
from slurmtop.control.prepare import StepsSeen
from slurmtop.control.signals import runs_in
from slurmtop.control.tasks import chosen_tasks, parse_tasks
from slurmtop.model.job import Job, Phase
from slurmtop.model.text import visible
from slurmtop.ui.actions_flow import (
    Selection,
    act,
    ask_slurm,
    asker_of,
    known_jobs,
    refuse,
    refused,
)
from slurmtop.ui.present import selection as parts
from slurmtop.ui.present import typed
from slurmtop.ui.present.action_words import whom_text
from slurmtop.ui.present.reach import reach, reached
from slurmtop.ui.present.signal import Choice, SignalFacts
from slurmtop.ui.screens.ask_line import AskLineScreen
from slurmtop.ui.screens.choose import ChooseScreen
from slurmtop.ui.screens.signal import SignalScreen

if TYPE_CHECKING:
    from slurmtop.ui.app import SlurmtopApp


def _part(selection: Selection, jobs: tuple[Job, ...]) -> Selection:
    return replace(selection, jobs=jobs)


def _reach(
    app: "SlurmtopApp", selection: Selection, kind: Kind, title: str, verb: str
) -> Action | None:
    """What ``kind`` would reach, or None after it was said why that is nothing.

    Whoever cannot get what they ask for must not have to choose or type something first.
    """
    if refused(app, selection, title, verb):
        return None
    plan = reach(kind, selection.jobs, asker_of(app, selection), known_jobs(app, selection))
    if isinstance(plan, Refusal):
        refuse(app, f"{title} {parts.jobs_text(selection.jobs)}", plan)
        return None
    return plan


def requeue(app: "SlurmtopApp", selection: Selection) -> None:
    """Requeue or requeue and hold; of an array the failed or the running tasks."""
    if selection.left and not app.services.read_only:
        sentence = f"{selection.left}: Slurm takes back only what it still knows, so resubmit it"
        refuse(app, "Requeue", Refusal(sentence))
        return
    plan = _reach(app, selection, Kind.REQUEUE, "Requeue", "requeue")
    if plan is None:
        return
    asker, known = asker_of(app, selection), known_jobs(app, selection)
    options = parts.requeue_options(
        selection.jobs,
        lambda kind, jobs: reach(kind, jobs, asker, known),
        grouped=selection.grouped,
    )

    def chosen(value: str | None) -> None:
        if value is not None:
            kind, which = parts.requeue_choice(value)
            act(app, _part(selection, parts.part_of(selection.jobs, which)), kind)

    title = f"Requeue {_array_text(selection) or whom_text(plan)}"
    app.push_screen(ChooseScreen(title, "", options), chosen)


def _array_text(selection: Selection) -> str | None:
    jobs = selection.jobs
    if selection.grouped and len({job.id.base for job in jobs}) == 1:
        return f"array {visible(jobs[0].id.base)}"
    return None


def limit(app: "SlurmtopApp", selection: Selection) -> None:
    """Type a time limit."""
    plan = _reach(app, selection, Kind.LIMIT, "Time limit of", "change")
    if plan is None:
        return
    jobs = reached(plan, selection.jobs)

    def typed_it(text: str | None) -> None:
        minutes = typed.minutes_of(text) if text is not None else None
        if minutes is not None:
            act(app, selection, Kind.LIMIT, details=Details(limit_minutes=minutes))

    app.push_screen(
        AskLineScreen(
            f"Time limit of {whom_text(plan)}",
            typed.LIMIT_QUESTION,
            lambda text: typed.judge_limit(text, jobs),
        ),
        typed_it,
    )


def exclude(app: "SlurmtopApp", selection: Selection) -> None:
    """Type the nodes to keep the jobs off; the nodes of the last run are offered."""
    plan = _reach(app, selection, Kind.EXCLUDE, "Exclude nodes from", "change")
    if plan is None:
        return

    def typed_it(text: str | None) -> None:
        hosts = typed.hosts_of(text) if text is not None else None
        if hosts is not None:
            act(app, selection, Kind.EXCLUDE, details=Details(exclude=hosts))

    app.push_screen(
        AskLineScreen(
            f"Exclude nodes from {whom_text(plan)}",
            typed.EXCLUDE_QUESTION,
            typed.judge_hosts,
            parts.last_nodes(reached(plan, selection.jobs), selection.last_nodes),
        ),
        typed_it,
    )


def cancel_part(app: "SlurmtopApp", selection: Selection) -> None:
    """Some tasks of an array, or one step of a running job."""
    if _reach(app, selection, Kind.CANCEL, "Cancel a part of", "cancel") is None:
        return
    jobs = tuple(job for job in selection.jobs if not job.state.ended)
    if len(jobs) == 1 and jobs[0].id.tasks is None:
        _cancel_step(app, selection, jobs[0])
    elif parts.same_array(jobs):
        _cancel_tasks(app, selection, jobs)
    else:
        sentence = "a part can be cancelled of one job or one array at a time: nothing was done"
        refuse(app, "Cancel a part", Refusal(sentence))


def _cancel_tasks(app: "SlurmtopApp", selection: Selection, jobs: tuple[Job, ...]) -> None:
    base = visible(jobs[0].id.base)

    def typed_it(text: str | None) -> None:
        ranges = parse_tasks(text) if text is not None else None
        if ranges is not None:
            found, _ = chosen_tasks(jobs, ranges)
            act(app, _part(selection, found), Kind.CANCEL)

    def chosen(which: str | None) -> None:
        if which == parts.TYPED:
            question = (f"Tasks of array {base}, running or waiting ones, like 3,7-9:",)
            app.push_screen(
                AskLineScreen(
                    f"Cancel tasks of array {base}",
                    question,
                    lambda text: typed.judge_tasks(text, jobs),
                ),
                typed_it,
            )
        elif which is not None:
            act(app, _part(selection, parts.part_of(jobs, which)), Kind.CANCEL)

    app.push_screen(
        ChooseScreen(f"Cancel a part of array {base}", "", parts.array_options(jobs)), chosen
    )


def _cancel_step(app: "SlurmtopApp", selection: Selection, job: Job) -> None:
    name = visible(job.key.id)
    title = f"Cancel a step of job {name}"
    if job.state.phase is Phase.PENDING:
        refuse(app, title, Refusal(f"job {name} waits in the queue: it has no steps"))
        return

    def seen(steps: StepsSeen) -> None:
        if not steps.steps:
            why = steps.failure.sentence if steps.failure is not None else "it has none"
            refuse(app, title, Refusal(f"the steps of job {name} cannot be listed: {why}"))
            return

        def chosen(step_id: str | None) -> None:
            step = next((one for one in steps.steps if one.id == step_id), None)
            if step is not None:
                act(app, _part(selection, (job,)), Kind.CANCEL, step=step)

        app.push_screen(ChooseScreen(title, "", parts.step_options(steps.steps)), chosen)

    ask_slurm(app, title, steps_of(app, job), seen)


async def steps_of(app: "SlurmtopApp", job: Job) -> StepsSeen:
    """The running steps of one job or one task; of the others of its array none."""
    seen = await app.services.world.steps((job.id.base,), job.key.cluster)
    own = tuple(step for step in seen.steps if runs_in(step, job))
    return StepsSeen(own, seen.failure)


def signal(app: "SlurmtopApp", selection: Selection) -> None:
    """Choose a signal and who gets it, with a look at what it does to them."""
    # Whether any of the jobs can get a signal at all does not depend on which one.
    plan = _reach(app, selection, Kind.SIGNAL, "Signal", "signal")
    if plan is None:
        return
    title = f"Signal {whom_text(plan)}"
    jobs = reached(plan, selection.jobs)

    def choose(facts: SignalFacts) -> None:
        app.push_screen(SignalScreen(title, facts), chosen)

    def chosen(choice: Choice | None) -> None:
        if choice is not None and choice.signal is not None:
            receiver = choice.receiver
            details = Details(signal=choice.signal, recipient=receiver.recipient)
            act(app, selection, Kind.SIGNAL, details=details, step=receiver.step)

    ask_slurm(app, title, _look(app, _part(selection, jobs)), choose)


async def _look(app: "SlurmtopApp", selection: Selection) -> SignalFacts:
    """What the chooser shows: of one job its steps and its script, of several neither."""
    world, jobs = app.services.world, selection.jobs
    one = len(jobs) == 1
    return SignalFacts(
        jobs=jobs,
        asker=asker_of(app, selection),
        known=known_jobs(app, selection),
        steps=await steps_of(app, jobs[0]) if one else None,
        script=await world.script(jobs[0]) if one else None,
        react=world.reactions,
    )
