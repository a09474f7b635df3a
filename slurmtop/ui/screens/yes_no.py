"""A plain question over whatever is shown; only an explicit yes is one."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button

from slurmtop.ui.present.spans import Line
from slurmtop.ui.widgets.lines import LinesView
from slurmtop.ui.widgets.typed_line import focus_now


class YesNoScreen(ModalScreen[bool]):
    """Dismisses with True only after an explicit yes; no has the focus.

    A question says its lines in :meth:`question_lines`.
    """

    DEFAULT_CSS = """
    YesNoScreen { align: center middle; }
    YesNoScreen > #question {
        width: 90%; min-width: 30; max-width: 110; height: auto; max-height: 100%;
        border: round $error; border-title-color: $text-error; border-title-style: bold;
        padding: 0 1; background: $surface;
    }
    YesNoScreen #question-body { height: auto; max-height: 15; }
    YesNoScreen #buttons { height: 1; align-horizontal: right; }
    YesNoScreen #buttons > Button { margin-left: 2; min-width: 10; border: none !important; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,n", "no", "no", show=False),
        Binding("y", "yes", "yes", show=False),
        Binding("left,right", "other_button", "other button", show=False),
    ]

    def __init__(self, title: str, *, no: str, yes: str) -> None:
        super().__init__()
        self._heading, self._no, self._yes = title, no, yes
        self.body = LinesView(self.question_lines, id="question-body")
        self.body.can_focus = False

    def question_lines(self, width: int) -> tuple[Line, ...]:
        """What is asked, and what a yes means."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        with Vertical(id="question") as dialog:
            # As Content: a plain string would be read as markup, and ids hold brackets.
            dialog.border_title = Content(self._heading)
            yield self.body
            with Horizontal(id="buttons"):
                yield Button(self._no, id="no", compact=True)
                yield Button(self._yes, id="yes", compact=True, variant="error")

    def on_mount(self) -> None:
        self.query_one("#no").focus()

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
