"""The keys of a box of lines to read, over whatever is shown."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from slurmtop.ui.widgets.lines import LinesView


class ReadBox(ModalScreen[None]):
    """Lines to read: scrolled by the usual keys, closed by esc. A subclass composes ``_body``."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "close", "close", show=False),
        Binding("up,k", "scroll_body('up')", "up", show=False),
        Binding("down,j", "scroll_body('down')", "down", show=False),
        Binding("pageup", "scroll_body('page_up')", "page up", show=False),
        Binding("pagedown,space", "scroll_body('page_down')", "page down", show=False),
    ]
    _body: LinesView

    def action_close(self) -> None:
        """Close the box."""
        self.dismiss(None)

    def action_scroll_body(self, how: str) -> None:
        """Scroll what does not fit."""
        self._body.scroll_by(how)
