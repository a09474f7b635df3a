"""Asked where somebody leaves while an action is on its way."""

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button

from slurmtop.ui.messages import SecondPassed
from slurmtop.ui.present.leaving import Underway, leaving_lines
from slurmtop.ui.present.spans import Line
from slurmtop.ui.widgets.lines import LinesView
from slurmtop.ui.widgets.typed_line import focus_now


class LeaveScreen(ModalScreen[bool]):
    """Dismisses with True where the person wants to leave all the same.

    ``underway`` is the app's own list: what is done meanwhile is no longer named.
    """

    DEFAULT_CSS = """
    LeaveScreen { align: center middle; }
    LeaveScreen > #leave {
        width: 90%; min-width: 30; max-width: 80; height: auto; max-height: 100%;
        border: round $error; border-title-color: $text-error; border-title-style: bold;
        padding: 0 1; background: $surface;
    }
    LeaveScreen #leave-body { height: auto; max-height: 15; }
    LeaveScreen #buttons { height: 1; align-horizontal: right; }
    LeaveScreen #buttons > Button { margin-left: 2; min-width: 10; border: none !important; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,n", "stay", "stay", show=False),
        Binding("y", "leave", "leave", show=False),
        Binding("left,right", "other_button", "other button", show=False),
    ]

    def __init__(self, underway: Sequence[Underway]) -> None:
        super().__init__()
        self._underway = underway
        self._body = LinesView(self._lines, id="leave-body")
        self._body.can_focus = False

    def compose(self) -> ComposeResult:
        with Vertical(id="leave") as dialog:
            dialog.border_title = "Not finished"
            yield self._body
            with Horizontal(id="buttons"):
                yield Button("No, stay", id="no", compact=True)
                yield Button("Yes, leave", id="yes", compact=True, variant="error")

    def on_mount(self) -> None:
        self.query_one("#no").focus()

    def on_second_passed(self, event: SecondPassed) -> None:
        self._body.rebuild()

    def _lines(self, width: int) -> tuple[Line, ...]:
        return leaving_lines(self._underway, width)

    @on(Button.Pressed, "#no")
    def action_stay(self) -> None:
        """Go on."""
        self.dismiss(False)

    @on(Button.Pressed, "#yes")
    def action_leave(self) -> None:
        """Leave; what is not sent is not done."""
        self.dismiss(True)

    def action_other_button(self) -> None:
        """Move between No and Yes."""
        no, yes = self.query_one("#no", Button), self.query_one("#yes", Button)
        focus_now(no if yes.has_focus else yes)
