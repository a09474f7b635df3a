"""The line in which a filter is typed, with what it leaves or what is wrong with it."""

from collections.abc import Callable
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Input, Static

from slurmtop.ui.present.spans import Line
from slurmtop.ui.widgets.lines import LinesBox

#: Keys that end the typing, and whether the filter stays.
_LEAVING = {"enter": True, "down": True, "tab": True, "escape": False}


class FilterInput(Input):
    """Printable keys are text here; enter, escape and the arrow down leave at once.

    Not by bindings: those are looked up after the keys that were typed behind them.
    """

    FOOTER: ClassVar[tuple[tuple[str, str], ...]] = (
        ("enter", "keep"),
        ("down", "to the list"),
        ("esc", "clear"),
    )

    def __init__(self, leave: Callable[[bool], None]) -> None:
        super().__init__(compact=True, select_on_focus=False)
        self.cursor_blink = False
        self._leave = leave

    async def _on_key(self, event: events.Key) -> None:
        if self.screen.focused is not self:
            # Typed in one burst with the key that left this line: no text any more.
            self.app.post_message(events.Key(event.key, event.character))
        elif event.key in _LEAVING:
            self._leave(_LEAVING[event.key])
        else:
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()


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

    def __init__(self, apply: Callable[[str], None], back_to: Widget) -> None:
        super().__init__()
        self._apply = apply
        self._back_to = back_to
        self._message: Line = ()
        self._input = FilterInput(self._leave)
        self._box = LinesBox(lambda _width: (self._message,))

    def compose(self) -> ComposeResult:
        yield Static("filter:", markup=False)
        yield self._input
        yield self._box

    def open(self) -> None:
        """Show the line and put the focus into it, before the next key is looked at."""
        self.display = True
        self.screen.set_focus(self._input)

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
        self.screen.set_focus(self._back_to)
