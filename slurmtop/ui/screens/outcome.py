"""What became of an action: stays until a person closes it."""

from datetime import datetime
from typing import TYPE_CHECKING, cast

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content

from slurmtop.ui.messages import SecondPassed
from slurmtop.ui.present.outcome import Progress, close_text, progress_lines
from slurmtop.ui.present.spans import Line
from slurmtop.ui.screens.read_box import ReadBox
from slurmtop.ui.widgets.lines import LinesView

if TYPE_CHECKING:
    from slurmtop.ui.app import SlurmtopApp


class OutcomeScreen(ReadBox):
    """Shows an action while it runs and then its result. Closing it stops nothing."""

    DEFAULT_CSS = """
    OutcomeScreen { align: center middle; }
    OutcomeScreen > #outcome {
        width: 90%; min-width: 40; max-width: 110; height: auto; max-height: 100%;
        border: round $primary; padding: 0 1; background: $surface;
    }
    OutcomeScreen #outcome-body { height: auto; max-height: 20; }
    """

    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self.progress = progress
        self.closed = False
        """A person has closed it, perhaps before the result was there."""
        self._box = Vertical(id="outcome")
        self._body = LinesView(self._lines, id="outcome-body")

    def compose(self) -> ComposeResult:
        with self._box:
            yield self._body

    def on_mount(self) -> None:
        # As Content: a plain string would be read as markup, and ids hold brackets.
        self._box.border_title = Content(self.progress.title)
        self._box.border_subtitle = close_text(self.progress)
        self._body.focus()

    def show(self, progress: Progress) -> None:
        """Show how far it is now."""
        self.progress = progress
        if self.is_attached:
            self._box.border_subtitle = close_text(progress)
            self._body.rebuild()

    def on_second_passed(self, event: SecondPassed) -> None:
        self._body.rebuild()

    def _lines(self, width: int) -> tuple[Line, ...]:
        return progress_lines(self.progress, self._now(), width)

    def _now(self) -> datetime:
        return cast("SlurmtopApp", self.app).services.clock.now()

    def action_close(self) -> None:
        """Close the screen; what runs goes on and is shown when it is done."""
        self.closed = True
        self.dismiss(None)
