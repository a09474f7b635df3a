"""Asked once more where an action cannot be written to the log of actions, or where what is known
cannot be saved first."""

from slurmtop.control.actions import Action
from slurmtop.ui.present.action_words import title_text
from slurmtop.ui.present.outcome import unlogged_lines, unsaved_lines
from slurmtop.ui.present.spans import Line
from slurmtop.ui.screens.yes_no import YesNoScreen


class UnloggedScreen(YesNoScreen):
    """Dismisses with True only where the action is to be done without a trail."""

    def __init__(self, action: Action, why: str) -> None:
        self.action = action
        self._why = why
        super().__init__(f"Not logged: {title_text(action)}", no="No", yes="Yes, without log")

    def question_lines(self, width: int) -> tuple[Line, ...]:
        """Why it cannot be written down, and what would run."""
        return unlogged_lines(self.action, self._why, width)


class UnsavedScreen(YesNoScreen):
    """Dismisses with True only where the action is to be done although nothing was saved."""

    def __init__(self, action: Action, why: str) -> None:
        self.action = action
        self._why = why
        super().__init__(f"Not saved: {title_text(action)}", no="No", yes="Yes, without saving")

    def question_lines(self, width: int) -> tuple[Line, ...]:
        """Why it cannot be saved, and what would run."""
        return unsaved_lines(self.action, self._why, width)
