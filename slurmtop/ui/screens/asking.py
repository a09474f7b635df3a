"""While Slurm is asked what a plan needs: a small screen that can be left at any time."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from slurmtop.model.units import ago_text
from slurmtop.ui.messages import SecondPassed
from slurmtop.ui.present.spans import Line, wrap
from slurmtop.ui.widgets.lines import LinesBox

if TYPE_CHECKING:
    from slurmtop.ui.app import SlurmtopApp


class AskingScreen(ModalScreen[Any]):
    """Dismissed with the answer by :meth:`leave`, or by a person with nothing.

    ``doing`` says what is waited for where that is not Slurm: nodes that are looked at.
    """

    DEFAULT_CSS = """
    AskingScreen { align: center middle; }
    AskingScreen > #asking {
        width: 60; max-width: 100%; height: auto; border: round $primary; padding: 0 1;
        background: $surface;
    }
    AskingScreen LinesBox { height: 2; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,n", "give_up", "leave", show=False),
    ]

    def __init__(self, title: str, since: datetime, doing: Callable[[], str]) -> None:
        super().__init__()
        self._doing = doing
        self._title = title
        self._since = since
        self.given_up = False
        """A person has left before the answer came."""
        self._lines = LinesBox(self._make)

    def compose(self) -> ComposeResult:
        with Vertical(id="asking") as box:
            # As Content: a plain string would be read as markup, and nodes hold brackets.
            box.border_title = Content(self._title)
            yield self._lines

    def on_second_passed(self, event: SecondPassed) -> None:
        self._lines.refresh()

    def _make(self, width: int) -> tuple[Line, ...]:
        now = cast("SlurmtopApp", self.app).services.clock.now()
        since = ago_text((now - self._since).total_seconds())
        what = self._doing() or "asking Slurm …"
        out: list[Line] = [((f"{what} for {since}", "busy"),)]
        out.extend(((line, "dim"),) for line in wrap("esc leaves, nothing was done", width))
        return tuple(out)

    def leave(self, answer: object) -> None:
        """The answer is there. Nothing happens where a person has left already."""
        if not self.given_up:
            self.dismiss(answer)

    def action_give_up(self) -> None:
        """Leave; whatever comes is dropped."""
        self.given_up = True
        self.dismiss(None)
