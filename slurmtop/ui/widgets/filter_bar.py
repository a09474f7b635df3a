"""The line in which a filter is typed, with what it leaves or what is wrong with it."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from slurmtop.ui.present.spans import Line
from slurmtop.ui.widgets.lines import LinesBox


class FilterInput(Input):
    """Printable keys are text here; escape and the arrows leave."""

    FOOTER: ClassVar[tuple[tuple[str, str], ...]] = (
        ("enter", "keep"),
        ("down", "to the list"),
        ("esc", "clear"),
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave(False)", "clear", show=False),
        Binding("down,tab", "leave(True)", "to the list", show=False),
    ]

    class Left(Message):
        """``keep`` is false where the filter is to be forgotten."""

        def __init__(self, keep: bool) -> None:
            super().__init__()
            self.keep = keep

    def action_leave(self, keep: bool) -> None:
        self.post_message(self.Left(keep))


class FilterBar(Horizontal):
    """Hidden while there is no filter and none is typed."""

    DEFAULT_CSS = """
    FilterBar { height: 1; display: none; background: $panel; }
    FilterBar > Static { width: 8; color: $text-muted; }
    FilterBar > FilterInput { width: 2fr; }
    FilterBar > LinesBox { width: 3fr; height: 1; margin-left: 1; }
    """

    class Changed(Message):
        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Closed(Message):
        """Typing is over; an empty filter is none."""

    def __init__(self) -> None:
        super().__init__()
        self._message: Line = ()
        self._input = FilterInput(compact=True, select_on_focus=False)
        self._input.cursor_blink = False
        self._box = LinesBox(lambda _width: (self._message,))

    def compose(self) -> ComposeResult:
        yield Static("filter:", markup=False)
        yield self._input
        yield self._box

    @property
    def typing(self) -> bool:
        return self._input.has_focus

    def open(self) -> None:
        """Show the line and put the focus into it."""
        self.display = True
        self._input.focus()

    def clear(self) -> None:
        """Forget the filter and hide."""
        self._input.value = ""
        self.display = False

    def say(self, message: Line) -> None:
        if message != self._message:
            self._message = message
            self._box.refresh()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Changed(event.value))

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        self._close(keep=True)

    @on(FilterInput.Left)
    def _left(self, event: FilterInput.Left) -> None:
        event.stop()
        self._close(keep=event.keep)

    def _close(self, *, keep: bool) -> None:
        if not keep or not self._input.value.strip():
            self.clear()
        self.post_message(self.Closed())
