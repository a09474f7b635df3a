"""A small dialog in which one of a few things is chosen. It changes nothing."""

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from slurmtop.ui.present.choose import Option, choice_lines, first_open, moved
from slurmtop.ui.present.spans import Line, wrap
from slurmtop.ui.widgets.lines import LinesBox

ROWS = 12
_ASKED = "up, down, enter, or a number: asked once more. esc = no"


class ChooseScreen(ModalScreen[str | None]):
    """Dismisses with the ``value`` of an option, or None."""

    DEFAULT_CSS = """
    ChooseScreen { align: center middle; }
    ChooseScreen > #choose {
        width: 90%; min-width: 30; max-width: 100; height: auto; max-height: 100%;
        border: round $primary; padding: 0 1; background: $surface;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,n", "leave", "no", show=False),
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("down,j,tab", "move(1)", "down", show=False),
        Binding("enter", "take", "take", show=False),
    ]

    def __init__(
        self, title: str, intro: str, options: Sequence[Option], help: str = _ASKED
    ) -> None:
        super().__init__()
        self._title, self._help = title, help
        self._intro = intro
        self.options = tuple(options)
        self.at = first_open(self.options)
        self._list = LinesBox(self._lines)

    def compose(self) -> ComposeResult:
        with Vertical(id="choose") as box:
            # As Content: a plain string would be read as markup, and ids hold brackets.
            box.border_title = Content(self._title)
            yield self._list

    def on_resize(self) -> None:
        width = max(8, min(100, self.size.width * 9 // 10) - 4)
        self._list.styles.height = min(len(self._lines(width)), max(1, self.size.height - 2))
        self._list.refresh()

    def _lines(self, width: int) -> tuple[Line, ...]:
        rows = max(1, min(ROWS, self.size.height - 6))
        lines = choice_lines(self._intro, self.options, self.at, rows, width)
        return (*lines, *(((text, "dim"),) for text in wrap(self._help, width)))

    def on_key(self, event: events.Key) -> None:
        """A number takes its option at once."""
        if event.key.isdigit() and 0 < int(event.key) <= min(9, len(self.options)):
            event.stop()
            self.at = int(event.key) - 1
            self.action_take()

    def action_move(self, by: int) -> None:
        """One up or down, past what cannot be chosen."""
        self.at = moved(self.options, self.at, by)
        self._list.refresh()

    def action_take(self) -> None:
        """Take what is under the cursor, where that is possible."""
        option = self.options[self.at]
        if option.why_not:
            self._list.refresh()
        else:
            self.dismiss(option.value)

    def action_leave(self) -> None:
        """Close without a choice."""
        self.dismiss(None)
