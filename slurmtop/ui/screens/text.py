"""A few lines to read, over whatever is shown."""

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from slurmtop.ui.present.spans import Line
from slurmtop.ui.widgets.lines import LinesView


class TextScreen(ModalScreen[None]):
    """Shows what ``make(width)`` gives; it changes nothing."""

    DEFAULT_CSS = """
    TextScreen { align: center middle; }
    TextScreen > #text {
        width: 90%; min-width: 30; max-width: 100; height: auto; max-height: 100%;
        border: round $primary; padding: 0 1; background: $surface;
    }
    TextScreen #text-body { height: auto; max-height: 20; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "close", "close", show=False),
        Binding("up,k", "scroll_body('up')", "up", show=False),
        Binding("down,j", "scroll_body('down')", "down", show=False),
        Binding("pageup", "scroll_body('page_up')", "page up", show=False),
        Binding("pagedown,space", "scroll_body('page_down')", "page down", show=False),
    ]

    def __init__(self, title: str, make: Callable[[int], tuple[Line, ...]]) -> None:
        super().__init__()
        self._title = title
        self._body = LinesView(make, id="text-body")

    def compose(self) -> ComposeResult:
        with Vertical(id="text") as box:
            # As Content: a plain string would be read as markup.
            box.border_title = Content(self._title)
            box.border_subtitle = "esc closes"
            yield self._body

    def on_mount(self) -> None:
        self._body.focus()

    def action_close(self) -> None:
        self.dismiss(None)

    def action_scroll_body(self, how: str) -> None:
        """Scroll what does not fit."""
        self._body.scroll_by(how)
