"""A small dialog in which one line is typed. It changes nothing."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input

from slurmtop.ui.present.spans import Line, wrap
from slurmtop.ui.widgets.lines import LinesBox

#: Either what was typed means, as a sentence, or (with True) what is wrong with it.
Judge = Callable[[str], tuple[str, bool]]


class AskLineScreen(ModalScreen[str | None]):
    """Dismisses with the text that was typed, or None.

    ``judge`` is asked about every text: a sentence, and whether it cannot be taken.
    """

    DEFAULT_CSS = """
    AskLineScreen { align: center middle; }
    AskLineScreen > #ask-line {
        width: 90%; min-width: 30; max-width: 100; height: auto; max-height: 100%;
        border: round $primary; padding: 0 1; background: $surface;
    }
    AskLineScreen Input { height: 1; border: none; padding: 0; }
    """
    BINDINGS: ClassVar = [("escape", "leave", "no")]

    def __init__(self, title: str, question: Sequence[str], judge: Judge, value: str = "") -> None:
        super().__init__()
        self._title = title
        self._question = tuple(question)
        self._judge = judge
        self._value = value
        self._above = LinesBox(self._question_lines)
        self._below = LinesBox(self._judged_lines)
        self._input = Input(value=value, compact=True, select_on_focus=False)

    def compose(self) -> ComposeResult:
        with Vertical(id="ask-line") as box:
            # As Content: a plain string would be read as markup, and ids hold brackets.
            box.border_title = Content(self._title)
            yield self._above
            yield self._input
            yield self._below

    def on_mount(self) -> None:
        self.set_focus(self._input)

    def on_resize(self) -> None:
        self._fit()

    def _fit(self) -> None:
        width = max(8, min(100, self.size.width * 9 // 10) - 4)
        room = max(1, self.size.height - 4)
        below = min(len(self._judged_lines(width)), room)
        self._below.styles.height = below
        self._above.styles.height = max(0, min(len(self._question_lines(width)), room - below))
        self._above.refresh()
        self._below.refresh()

    def _question_lines(self, width: int) -> tuple[Line, ...]:
        return tuple(((line, ""),) for text in self._question for line in wrap(text, width))

    def _judged_lines(self, width: int) -> tuple[Line, ...]:
        sentence, wrong = self._judge(self._input.value)
        out: list[Line] = [
            ((line, "bad" if wrong else "strong"),) for line in wrap(sentence, width)
        ]
        help_text = "esc = no" if wrong else "enter goes on, it is asked once more. esc = no"
        out.extend(((line, "dim"),) for line in wrap(help_text, width))
        return tuple(out)

    @on(Input.Changed)
    def _typing(self) -> None:
        self._fit()

    @on(Input.Submitted)
    def _typed(self) -> None:
        if not self._judge(self._input.value)[1]:
            self.dismiss(self._input.value)

    def action_leave(self) -> None:
        """Close without an answer."""
        self.dismiss(None)
