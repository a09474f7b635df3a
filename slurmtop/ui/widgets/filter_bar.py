"""The line in which a filter is typed, with what it leaves or what is wrong with it."""

from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Input, Static

from slurmtop.ui.present.spans import Line
from slurmtop.ui.widgets.lines import LinesBox
from slurmtop.ui.widgets.typed_line import TypedLine, focus_now

#: Keys that end the typing, and whether the filter stays.
_LEAVING = {"enter": True, "down": True, "tab": True, "escape": False}


class FilterInput(TypedLine):
    """The line of the filter, with its keys in the footer."""

    FOOTER: ClassVar[tuple[tuple[str, str], ...]] = (
        ("enter", "keep"),
        ("down", "to the list"),
        ("esc", "clear"),
    )

    def __init__(self, leave: Callable[[bool], None]) -> None:
        super().__init__(leave, _LEAVING)


class FilterBar(Horizontal):
    """Hidden while there is no filter and none is typed.

    ``apply`` is called with every new text; leaving the line focuses ``back_to``.
    """

    DEFAULT_CSS = """
    FilterBar { height: 1; display: none; background: $panel; }
    FilterBar > Static { width: 8; color: $text-muted; }
    FilterBar > FilterInput { width: 2fr; }
    FilterBar > LinesBox { width: 3fr; height: 1; margin-left: 1; }
    """

    def __init__(
        self, apply: Callable[[str], None], back_to: Widget, *, label: str = "filter:"
    ) -> None:
        super().__init__()
        self._label = label
        self._apply = apply
        self._back_to = back_to
        self._message: Line = ()
        self._input = FilterInput(self._leave)
        self._box = LinesBox(lambda _width: (self._message,))

    def compose(self) -> ComposeResult:
        yield Static(self._label, markup=False)
        yield self._input
        yield self._box

    def open(self) -> None:
        """Show the line and put the focus into it, before the next key is looked at."""
        self.display = True
        self._input.enter()

    def restore(self, text: str) -> None:
        """Show a filter that holds already; the focus stays where it is."""
        self.display = True
        self._input.value = text

    def clear(self) -> None:
        """Forget the filter and hide."""
        self._input.value = ""
        self.display = False
        self._apply("")

    def say(self, message: Line) -> None:
        """Show ``message`` beside the text."""
        if message != self._message:
            self._message = message
            self._box.refresh()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._apply(event.value)

    def _leave(self, keep: bool) -> None:
        if not keep or not self._input.value.strip():
            self.clear()
        # Now, and not when the news of the last letter has gone round: the next key waits.
        self._apply(self._input.value)
        focus_now(self._back_to)
