"""A bench whose executor keeps what it was asked to do, and answers at once."""

from collections.abc import Callable
from typing import Any

from textual.pilot import Pilot

from slurmtop.control.actions import Action, Target
from slurmtop.control.outcome import JobOutcome, Outcome, Result, done_word
from slurmtop.model.text import visible
from slurmtop.ui.screens.asking import AskingScreen
from slurmtop.ui.screens.confirm import ConfirmScreen
from tests.fakes import START
from tests.ui.golden import screen_text
from tests.ui.job_bench import JobBench


class Does:
    """Stands for the executor. ``result`` says what becomes of one target; ``unlogged`` is why
    nothing can be written down."""

    def __init__(self) -> None:
        self.actions: list[Action] = []
        self.without_log: list[bool] = []
        self.without_save: list[bool] = []
        self.same: list[bool] = []
        self.unlogged: str | None = None
        self.unsaved: str | None = None
        self.result: Callable[[Target], Result] = lambda target: Result.DONE

    async def execute(
        self,
        action: Action,
        *,
        still_same: Callable[[Target], bool] | None = None,
        without_log: bool = False,
        without_save: bool = False,
        sent: Callable[[int, int], None] | None = None,
    ) -> Outcome:
        self.actions.append(action)
        self.without_save.append(without_save)
        self.without_log.append(without_log)
        assert still_same is not None
        self.same += [still_same(target) for target in action.targets]
        if self.unlogged is not None and not without_log:
            return Outcome(action=action, unlogged=self.unlogged, started_at=START)
        if self.unsaved is not None and action.saves and not without_save:
            return Outcome(action=action, unsaved=self.unsaved, started_at=START)
        jobs = tuple(
            JobOutcome(target, self.result(target), self._sentence(action, target))
            for target in action.targets
        )
        saved = () if without_save else tuple(one.path for one in action.saves)
        return Outcome(action=action, jobs=jobs, saved=saved, started_at=START, took_s=3.0)

    def _sentence(self, action: Action, target: Target) -> str:
        result = self.result(target)
        word = done_word(action.kind) if result is Result.DONE else str(result)
        return f"job {visible(target.label)}: {word}"


class ActingBench(JobBench):
    """Presses keys on the real screens over a fake world and a fake executor."""

    def __init__(self, **services: Any) -> None:
        self.does = Does()
        super().__init__(executor=self.does, **services)

    def dialog(self, pilot: Pilot[None]) -> ConfirmScreen:
        """The confirm dialog that must be open now."""
        screen = pilot.app.screen
        assert isinstance(screen, ConfirmScreen), (screen, screen_text(pilot.app))
        return screen

    def asking(self, pilot: Pilot[None]) -> AskingScreen:
        """The screen that must be waiting for Slurm now."""
        screen = pilot.app.screen
        assert isinstance(screen, AskingScreen), (screen, screen_text(pilot.app))
        return screen

    def words(self, pilot: Pilot[None]) -> str:
        """All that stands on the screen, lines and frames taken away."""
        return " ".join(screen_text(pilot.app).replace("│", " ").split())

    async def confirm(self, pilot: Pilot[None]) -> None:
        """Say yes in the dialog that is open, however it asks."""
        expected = self.dialog(pilot).action.expected_text
        await self.press(pilot, *([*expected, "enter"] if expected else ["y"]))
