"""From a wish to an outcome: plan, ask, do, read back, show. The same from every screen."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from textual.screen import ModalScreen

from slurmtop.control.actions import NO_DETAILS, Action, Asker, Details, Kind, Refusal, Target
from slurmtop.control.cancel import plan_cancel
from slurmtop.control.changes import changes_since
from slurmtop.control.outcome import Outcome
from slurmtop.control.plan import read_only_text
from slurmtop.control.prepare import Request, prepare
from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job, Phase, Step
from slurmtop.ui.present.action_words import doing_text, whom_text
from slurmtop.ui.present.leaving import Underway
from slurmtop.ui.present.outcome import Progress, begun
from slurmtop.ui.present.reach import reach
from slurmtop.ui.present.selection import jobs_text
from slurmtop.ui.screens.asking import AskingScreen
from slurmtop.ui.screens.confirm import ConfirmScreen
from slurmtop.ui.screens.outcome import OutcomeScreen
from slurmtop.ui.screens.unlogged import UnloggedScreen, UnsavedScreen

if TYPE_CHECKING:
    from slurmtop.ui.app import SlurmtopApp

OnOutcome = Callable[[Outcome], None]
T = TypeVar("T")

#: Between two looks whether another dialog is still open.
_WAIT_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The jobs that a key is pressed for.

    ``grouped`` says that an array stands among them as one row. ``siblings`` are
    parts of the same jobs that the queue may not show; ``verdict`` is the line that the person
    acts on. ``on_outcome`` is called with what was read back. ``last_nodes`` is where the job
    ran last, as a host list, "" where that is not known. ``hidden`` are those of ``jobs`` that
    are marked and that a filter hides. ``left`` says of jobs that are not among ``jobs`` why
    not, as a sentence without an end: "job 4711 has left the queue". ``suspects`` are those that
    hang, fail or crawl as far as the last verdict on them goes.
    """

    jobs: tuple[Job, ...]
    grouped: bool = False
    siblings: tuple[Job, ...] = ()
    verdict: str | None = None
    on_outcome: OnOutcome | None = None
    last_nodes: str = ""
    hidden: frozenset[JobKey] = frozenset()
    left: str = ""
    suspects: frozenset[JobKey] = frozenset()


@dataclass(frozen=True, slots=True)
class _Without:
    """What a person has said that an action may be done without."""

    log: bool = False
    save: bool = False


_WITH_ALL = _Without()


def asker_of(app: "SlurmtopApp", selection: Selection) -> Asker:
    """Who asks, and by what is known now."""
    services = app.services
    return Asker(
        me=services.user,
        now=app.known_at(),
        cluster=services.cluster,
        read_only=services.read_only,
        read_only_from=services.config.read_only_from,
        one_call=services.one_call,
        verdict=selection.verdict,
        suspects=frozenset(
            job.key for job in selection.jobs if job.key in app.suspects or _failed(job)
        )
        | selection.suspects,
        save_folder=services.save_folder,
    )


def _failed(job: Job) -> bool:
    """Slurm's own word that something went wrong: its log may be overwritten by the next run."""
    return job.state.phase is Phase.FAILED


def known_jobs(app: "SlurmtopApp", selection: Selection) -> tuple[Job, ...]:
    """Whatever else is known of the same jobs."""
    return (*app.book.jobs, *selection.siblings)


def act(
    app: "SlurmtopApp",
    selection: Selection,
    kind: Kind,
    *,
    details: Details = NO_DETAILS,
    step: Step | None = None,
) -> None:
    """Ask Slurm what the jobs are now, then the person, and do it after a yes.

    Returns at once. Why nothing can be done is shown as a sentence. A cancel of one's own jobs
    asks Slurm nothing first: it must be quick.
    """
    doing = doing_text(kind, details)
    if refused(app, selection, doing, f"{kind}"):
        return
    asker = asker_of(app, selection)
    known = known_jobs(app, selection)
    mine = all(job.user == app.services.user for job in selection.jobs)
    if kind is Kind.CANCEL and step is None and mine:
        plan = plan_cancel(selection.jobs, asker, known=known)
        show_plan(app, plan, f"{doing} {jobs_text(selection.jobs)}", selection)
        return
    title = f"{doing} {reach_text(kind, selection.jobs, asker, known)}"
    request = Request(kind=kind, jobs=selection.jobs, details=details, step=step, known=known)
    ask_slurm(
        app,
        title,
        prepare(request, app.services.world, asker),
        lambda plan: show_plan(app, plan, title, selection),
    )


def refused(app: "SlurmtopApp", selection: Selection, title: str, verb: str) -> bool:
    """Say at once what no choice would change: read-only, or no job at all."""
    services = app.services
    if services.read_only:
        refuse(app, title, Refusal(read_only_text(services.config.read_only_from, verb)))
        return True
    if selection.jobs:
        return False
    nothing = f"there is no job under the cursor to {verb}"
    if selection.left:
        nothing = f"{selection.left}, so nothing was done"
    refuse(app, title, Refusal(nothing))
    return True


def reach_text(kind: Kind, jobs: tuple[Job, ...], asker: Asker, known: tuple[Job, ...]) -> str:
    """What the commands would reach by what is known now, counted as the dialog will."""
    plan = reach(kind, jobs, asker, known)
    return whom_text(plan) if isinstance(plan, Action) else jobs_text(jobs)


def ask_slurm(
    app: "SlurmtopApp", title: str, work: Coroutine[Any, Any, T], then: Callable[[T], None]
) -> None:
    """Wait for ``work`` behind a small screen that can be left, then go on with ``then``."""
    screen = AskingScreen(title, app.services.clock.now(), app.services.world.doing)

    async def run() -> None:
        try:
            answer = await work
        except Exception as error:
            screen.leave(Refusal(f"slurmtop failed, so nothing was done: {error!r}"))
        else:
            screen.leave(answer)

    worker = app.run_worker(run(), group="ask", name=title, exit_on_error=False)

    def left(answer: Any) -> None:
        if screen.given_up:
            worker.cancel()
        elif isinstance(answer, Refusal):
            refuse(app, title, answer)
        else:
            then(answer)

    app.push_screen(screen, left)


def refuse(app: "SlurmtopApp", title: str, refusal: Refusal) -> None:
    """Say why nothing can be done."""
    app.push_screen(OutcomeScreen(Progress(title=title, refusal=refusal.sentence)))


def show_plan(app: "SlurmtopApp", plan: Action | Refusal, title: str, selection: Selection) -> None:
    """The dialog, or why there is none."""
    if isinstance(plan, Refusal):
        refuse(app, title, plan)
    else:
        confirm_and_do(app, plan, selection.on_outcome, selection.hidden)


def confirm_and_do(
    app: "SlurmtopApp",
    action: Action,
    on_outcome: OnOutcome | None,
    hidden: frozenset[JobKey] = frozenset(),
) -> None:
    """Show the dialog; only an explicit yes goes on."""

    screen = ConfirmScreen(action, hidden)

    def decided(yes: bool | None) -> None:
        if yes is True:
            # The person may have left out what is saved first.
            _start(app, screen.action, on_outcome, _WITH_ALL)

    app.push_screen(screen, decided)


def _start(
    app: "SlurmtopApp", action: Action, on_outcome: OnOutcome | None, without: _Without
) -> None:
    now, dry_run = app.services.clock.now(), app.services.dry_run
    screen = OutcomeScreen(begun(action, now, dry_run=dry_run))
    app.push_screen(screen)
    app.run_worker(
        _do(app, action, screen, on_outcome, without),
        group="act",
        name=f"{action.kind}",
        exit_on_error=False,
    )


async def _do(
    app: "SlurmtopApp",
    action: Action,
    screen: OutcomeScreen,
    on_outcome: OnOutcome | None,
    without: _Without,
) -> None:
    def same(target: Target) -> bool:
        book = app.book
        only = replace(action, targets=(target,))
        changes = changes_since(only, book.get, book.gone, book.sampled_at)
        return not any(change.lost for change in changes)

    underway = Underway(action, len(action.argvs))
    app.underway.append(underway)
    try:
        done = await app.services.executor.execute(
            action,
            still_same=same,
            without_log=without.log,
            without_save=without.save,
            sent=underway.heard,
        )
    except Exception as error:
        failure = f"slurmtop failed, so what became of it is not known: {error!r}"
        screen.show(replace(screen.progress, failure=failure))
    else:
        screen.show(replace(screen.progress, outcome=done))
    finally:
        app.underway.remove(underway)
    outcome = screen.progress.outcome
    if outcome is not None:
        if outcome.unlogged is not None and not without.log:
            unlogged = UnloggedScreen(action, outcome.unlogged)
            await _ask_again(app, screen, unlogged, on_outcome, replace(without, log=True))
            return
        if outcome.unsaved is not None and not without.save:
            unsaved = UnsavedScreen(action, outcome.unsaved)
            await _ask_again(app, screen, unsaved, on_outcome, replace(without, save=True))
            return
        if on_outcome is not None:
            on_outcome(outcome)
    app.feed.refresh_now()
    await _show_again(app, screen)


async def _ask_again(
    app: "SlurmtopApp",
    screen: OutcomeScreen,
    question: UnloggedScreen | UnsavedScreen,
    on_outcome: OnOutcome | None,
    without: _Without,
) -> None:
    """Nothing was done, because it could not be written down, or what is known not be saved: does
    the person want it still?"""

    def decided(yes: bool | None) -> None:
        if yes is True:
            _start(app, question.action, on_outcome, without)

    if screen.closed:
        await _no_dialog(app)
    else:
        screen.action_close()
    app.push_screen(question, decided)


async def _show_again(app: "SlurmtopApp", screen: OutcomeScreen) -> None:
    """Whoever closed the screen before the result gets to see it, after any other dialog."""
    if not screen.closed:
        return
    await _no_dialog(app)
    app.push_screen(OutcomeScreen(screen.progress))


async def _no_dialog(app: "SlurmtopApp") -> None:
    while isinstance(app.screen, ModalScreen):
        await app.services.clock.sleep(_WAIT_S)
