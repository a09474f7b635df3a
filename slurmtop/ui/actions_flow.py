"""From a key to an outcome: plan, ask, do, read back, show. The same from every screen."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from textual.screen import ModalScreen

from slurmtop.control.actions import Action, Asker, Refusal, Target
from slurmtop.control.cancel import plan_cancel
from slurmtop.control.outcome import Outcome
from slurmtop.model.job import Job
from slurmtop.ui.present.confirm import LOST, changes_since
from slurmtop.ui.present.outcome import Progress, begun
from slurmtop.ui.screens.confirm import ConfirmScreen
from slurmtop.ui.screens.outcome import OutcomeScreen

if TYPE_CHECKING:
    from slurmtop.ui.app import SlurmtopApp

OnOutcome = Callable[[Outcome], None]

#: Between two looks whether another dialog is still open.
_WAIT_S = 1.0


def cancel_jobs(
    app: "SlurmtopApp",
    jobs: Sequence[Job],
    on_outcome: OnOutcome | None = None,
    *,
    siblings: Sequence[Job] = (),
) -> None:
    """Ask about cancelling ``jobs`` and do it after a yes.

    Returns at once. Why nothing can be cancelled is shown as a sentence. ``on_outcome`` is
    called with what was read back, so that the caller can clear the marks of what is over.
    ``siblings`` are parts of the same jobs that the queue may not show.
    """
    services = app.services
    plan = plan_cancel(
        jobs,
        Asker(
            me=services.user,
            now=app.known_at(),
            cluster=services.cluster,
            read_only=services.read_only,
        ),
        known=(*app.book.jobs, *siblings),
    )
    if isinstance(plan, Refusal):
        app.push_screen(OutcomeScreen(Progress(title="Cancel", refusal=plan.sentence)))
        return
    confirm_and_do(app, plan, on_outcome)


def confirm_and_do(app: "SlurmtopApp", action: Action, on_outcome: OnOutcome | None) -> None:
    """Show the dialog; only an explicit yes goes on."""

    def decided(yes: bool | None) -> None:
        if yes is True:
            screen = OutcomeScreen(begun(action, app.services.clock.now()))
            app.push_screen(screen)
            app.run_worker(
                _do(app, action, screen, on_outcome),
                group="act",
                name=f"{action.kind}",
                exit_on_error=False,
            )

    app.push_screen(ConfirmScreen(action), decided)


async def _do(
    app: "SlurmtopApp", action: Action, screen: OutcomeScreen, on_outcome: OnOutcome | None
) -> None:
    def same(target: Target) -> bool:
        changes = changes_since(replace(action, targets=(target,)), app.book.get, app.book.gone)
        return not any(change.kind in LOST for change in changes)

    try:
        outcome = await app.services.executor.execute(action, still_same=same)
    except Exception as error:
        failure = f"slurmtop failed, so what became of it is not known: {error!r}"
        screen.show(replace(screen.progress, failure=failure))
    else:
        screen.show(replace(screen.progress, outcome=outcome))
        if on_outcome is not None:
            on_outcome(outcome)
    app.feed.refresh_now()
    await _show_again(app, screen)


async def _show_again(app: "SlurmtopApp", screen: OutcomeScreen) -> None:
    """Whoever closed the screen before the result gets to see it, after any other dialog."""
    if not screen.closed:
        return
    while isinstance(app.screen, ModalScreen):
        await app.services.clock.sleep(_WAIT_S)
    app.push_screen(OutcomeScreen(screen.progress))
