"""What became of an action: stays until a person closes it."""

from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from slurmtop.ui.messages import SecondPassed
from slurmtop.ui.present.outcome import Progress, progress_lines
from slurmtop.ui.present.spans import Line
from slurmtop.ui.widgets.lines import LinesView

if TYPE_CHECKING:
    from slurmtop.ui.app import SlurmtopApp


class OutcomeScreen(ModalScreen[None]):
    """Shows an action while it runs and then its result. Closing it stops nothing."""

    DEFAULT_CSS = """
    OutcomeScreen { align: center middle; }
    OutcomeScreen > #outcome {
        width: 90%; min-width: 40; max-width: 110; height: auto; max-height: 100%;
        border: round $primary; padding: 0 1; background: $surface;
    }
    OutcomeScreen #outcome-body { height: auto; max-height: 20; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "close", "close", show=False),
    ]

    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self.progress = progress
        self.closed = False
        """A person has closed it, perhaps before the result was there."""
        self._body = LinesView(self._lines, id="outcome-body")

    def compose(self) -> ComposeResult:
        with Vertical(id="outcome") as box:
            box.border_title = self.progress.title
            yield self._body

    def on_mount(self) -> None:
        self._body.focus()

    def show(self, progress: Progress) -> None:
        """Show how far it is now."""
        self.progress = progress
        if self.is_attached:
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
