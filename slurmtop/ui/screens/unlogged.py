"""Asked once more where an action cannot be written to the log of actions."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button

from slurmtop.control.actions import Action
from slurmtop.ui.present.action_words import title_text
from slurmtop.ui.present.outcome import unlogged_lines
from slurmtop.ui.present.spans import Line
from slurmtop.ui.widgets.lines import LinesView
from slurmtop.ui.widgets.typed_line import focus_now


class UnloggedScreen(ModalScreen[bool]):
    """Dismisses with True only after an explicit yes."""

    DEFAULT_CSS = """
    UnloggedScreen { align: center middle; }
    UnloggedScreen > #unlogged {
        width: 90%; min-width: 30; max-width: 110; height: auto; max-height: 100%;
        border: round $error; border-title-color: $text-error; border-title-style: bold;
        padding: 0 1; background: $surface;
    }
    UnloggedScreen #unlogged-body { height: auto; max-height: 15; }
    UnloggedScreen #buttons { height: 1; align-horizontal: right; }
    UnloggedScreen #buttons > Button { margin-left: 2; min-width: 10; border: none !important; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,n", "no", "no", show=False),
        Binding("y", "yes", "yes", show=False),
        Binding("left,right", "other_button", "other button", show=False),
    ]

    def __init__(self, action: Action, why: str) -> None:
        super().__init__()
        self.action = action
        self._why = why
        self._body = LinesView(self._lines, id="unlogged-body")
        self._body.can_focus = False

    def compose(self) -> ComposeResult:
        with Vertical(id="unlogged") as dialog:
            dialog.border_title = Content(f"Not logged: {title_text(self.action)}")
            yield self._body
            with Horizontal(id="buttons"):
                yield Button("No", id="no", compact=True)
                yield Button("Yes, without log", id="yes", compact=True, variant="error")

    def on_mount(self) -> None:
        self.query_one("#no").focus()

    def _lines(self, width: int) -> tuple[Line, ...]:
        return unlogged_lines(self.action, self._why, width)

    @on(Button.Pressed, "#no")
    def action_no(self) -> None:
        """Nothing is done."""
        self.dismiss(False)

    @on(Button.Pressed, "#yes")
    def action_yes(self) -> None:
        """Do it all the same."""
        self.dismiss(True)

    def action_other_button(self) -> None:
        """Move between No and Yes."""
        no, yes = self.query_one("#no", Button), self.query_one("#yes", Button)
        focus_now(no if yes.has_focus else yes)
