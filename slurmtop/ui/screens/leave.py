"""Asked where somebody leaves while an action is on its way."""

from collections.abc import Sequence

from slurmtop.ui.messages import SecondPassed
from slurmtop.ui.present.leaving import Underway, leaving_lines
from slurmtop.ui.present.spans import Line
from slurmtop.ui.screens.yes_no import YesNoScreen


class LeaveScreen(YesNoScreen):
    """Dismisses with True where the person wants to leave all the same.

    ``underway`` is the app's own list: what is done meanwhile is no longer named.
    """

    DEFAULT_CSS = "LeaveScreen > #question { max-width: 80; }"

    def __init__(self, underway: Sequence[Underway]) -> None:
        self._underway = underway
        super().__init__("Not finished", no="No, stay", yes="Yes, leave")

    def question_lines(self, width: int) -> tuple[Line, ...]:
        """What is not sent or not read back yet."""
        return leaving_lines(self._underway, width)

    def on_second_passed(self, event: SecondPassed) -> None:
        self.body.rebuild()
