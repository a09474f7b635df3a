"""A line in which a person types, entered and left between one key and the next."""

from collections.abc import Callable, Mapping

from textual import events
from textual.widget import Widget
from textual.widgets import Input


def focus_now(widget: Widget) -> None:
    """Move the focus before the next key is looked at.

    ``Widget.focus`` waits for the widget's turn; in a burst the keys in between would act on
    what had the focus before.
    """
    widget.screen.set_focus(widget)


class TypedLine(Input):
    """Printable keys are text here; the keys of ``leaving`` leave at once.

    Not by bindings: those are looked up after the keys that were typed behind them. ``leave``
    is called with the value of the key in ``leaving``: whether the text stays. It must move
    the focus with :func:`focus_now`.
    """

    def __init__(
        self,
        leave: Callable[[bool], None],
        leaving: Mapping[str, bool],
        *,
        placeholder: str = "",
        compact: bool = True,
        id: str | None = None,
    ) -> None:
        super().__init__(placeholder=placeholder, compact=compact, select_on_focus=False, id=id)
        self.cursor_blink = False
        self._leave = leave
        self._leaving = leaving

    def enter(self) -> None:
        """Put the focus into this line, before the next key is looked at."""
        focus_now(self)

    async def _on_key(self, event: events.Key) -> None:
        if self.screen.focused is not self:
            # Typed in one burst with the key that left this line: no text any more.
            self.app.post_message(events.Key(event.key, event.character))
        elif event.key in self._leaving:
            self._leave(self._leaving[event.key])
        else:
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()
