"""What slurmtop ran of late: to look at, nothing can be done here."""

from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from slurmtop.ui.messages import SecondPassed
from slurmtop.ui.present.command_log import command_log_lines
from slurmtop.ui.present.spans import Line
from slurmtop.ui.widgets.lines import LinesView

if TYPE_CHECKING:
    from slurmtop.ui.app import SlurmtopApp


class CommandLogScreen(ModalScreen[None]):
    """A pane at the lower edge, the newest command first; it follows what runs."""

    DEFAULT_CSS = """
    CommandLogScreen { align: center bottom; }
    CommandLogScreen > #command-log {
        width: 100%; height: 60%; border: round $primary; padding: 0 1; background: $surface;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,c", "close", "close", show=False),
        *(
            Binding(keys, f"scroll_body('{how}')", how, show=False)
            for keys, how in (
                ("up,k", "up"),
                ("down,j", "down"),
                ("left,h", "left"),
                ("right,l", "right"),
                ("pageup", "page_up"),
                ("pagedown,space", "page_down"),
                ("g,home", "home"),
                ("G,end", "end"),
            )
        ),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._body = LinesView(self._lines, id="command-log-body")
        self._body.can_focus = False

    def compose(self) -> ComposeResult:
        with Vertical(id="command-log") as box:
            box.border_title = "What slurmtop ran, the newest first"
            box.border_subtitle = "ACT changes something · arrows scroll · esc closes"
            yield self._body

    def on_second_passed(self, event: SecondPassed) -> None:
        self._body.rebuild()

    def _lines(self, _width: int) -> tuple[Line, ...]:
        services = cast("SlurmtopApp", self.app).services
        return command_log_lines(services.commands_run(), services.zone)

    def action_close(self) -> None:
        self.dismiss(None)

    def action_scroll_body(self, how: str) -> None:
        """Scroll what does not fit."""
        self._body.scroll_by(how)
