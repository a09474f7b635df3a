"""Every key there is, the filter language and the letters of states."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from slurmtop.ui.present.help import help_lines
from slurmtop.ui.present.spans import Line
from slurmtop.ui.widgets.lines import LinesView


class HelpScreen(ModalScreen[None]):
    """Made from the key table, with the person's own keys."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > Vertical {
        width: 90%; max-width: 100; height: 90%; border: round $primary; padding: 0 1;
        background: $surface;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark", "close", "close", show=False),
        Binding("j", "scroll('down')", "down", show=False),
        Binding("k", "scroll('up')", "up", show=False),
        Binding("g", "scroll('home')", "top", show=False),
        Binding("G", "scroll('end')", "bottom", show=False),
    ]

    def __init__(self, scopes: tuple[str, ...], keymap: dict[str, str], read_only: bool) -> None:
        super().__init__()
        self._scopes = scopes
        self._keymap = keymap
        self._read_only = read_only
        self._view = LinesView(self._lines, id="help")

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = "Keys: esc closes"
            yield self._view

    def on_mount(self) -> None:
        self._view.focus()

    def _lines(self, width: int) -> tuple[Line, ...]:
        return help_lines(self._scopes, self._keymap, width, read_only=self._read_only)

    def action_close(self) -> None:
        self.dismiss(None)

    def action_scroll(self, where: str) -> None:
        """Scroll by ``up``, ``down``, ``home`` or ``end``."""
        getattr(self._view, f"scroll_{where}")(animate=False)
