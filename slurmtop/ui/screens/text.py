"""A few lines to read, over whatever is shown."""

from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content

from slurmtop.ui.present.spans import Line
from slurmtop.ui.screens.read_box import ReadBox
from slurmtop.ui.widgets.lines import LinesView


class TextScreen(ReadBox):
    """Shows what ``make(width)`` gives; it changes nothing."""

    DEFAULT_CSS = """
    TextScreen { align: center middle; }
    TextScreen > #text {
        width: 90%; min-width: 30; max-width: 100; height: auto; max-height: 100%;
        border: round $primary; padding: 0 1; background: $surface;
    }
    TextScreen #text-body { height: auto; max-height: 20; }
    """

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
