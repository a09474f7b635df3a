"""The chooser of a signal and of who gets it. It sends nothing: the dialog comes after it."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input

from slurmtop.control.actions import Action
from slurmtop.control.signals import parse_signal
from slurmtop.ui.present.signal import (
    ROWS,
    Choice,
    SignalFacts,
    effect_lines,
    first_choice,
    list_lines,
    moved_choice,
    other_side,
    plan_of,
    with_signal,
)
from slurmtop.ui.present.spans import Line, wrap
from slurmtop.ui.widgets.lines import LinesBox, LinesView
from slurmtop.ui.widgets.typed_line import TypedLine

#: Of each list, also on a screen of 12 lines.
_LEAST_ROWS = 5
_HELP = "tab other list · enter goes on · esc no"
_TYPING = "a name or number (USR1, SIGTERM, 10), then enter; esc goes back"
_UNKNOWN = "there is no such signal; esc goes back"


class SignalScreen(ModalScreen[Choice | None]):
    """Dismisses with what was chosen, or None. Who would get it is shown for every choice."""

    DEFAULT_CSS = """
    SignalScreen { align: center middle; }
    SignalScreen > #signal {
        width: 90%; min-width: 30; max-width: 110; height: auto; max-height: 100%;
        border: round $primary; padding: 0 1; background: $surface;
    }
    SignalScreen #effect { height: auto; }
    SignalScreen #help { height: 1; }
    SignalScreen #other { height: 1; border: none; padding: 0; display: none; }
    """
    AUTO_FOCUS: ClassVar[str | None] = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,n", "leave", "no", show=False),
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("down,j", "move(1)", "down", show=False),
        Binding("tab,left,right,h,l", "other_list", "other list", show=False),
        Binding("enter", "take", "take", show=False),
        Binding("pageup", "scroll_effect('page_up')", "page up", show=False),
        Binding("pagedown", "scroll_effect('page_down')", "page down", show=False),
    ]

    def __init__(self, title: str, facts: SignalFacts) -> None:
        super().__init__()
        self._title = title
        self.facts = facts
        self.choice = first_choice(facts)
        self._help = _HELP
        self._lists = LinesBox(self._list_lines, id="lists")
        self._effect = LinesView(self._effect_lines, id="effect")
        self._effect.can_focus = False
        self._foot = LinesBox(self._help_lines, id="help")
        self._other = TypedLine(self._typed, {"enter": True, "escape": False}, id="other")

    def compose(self) -> ComposeResult:
        with Vertical(id="signal") as box:
            # As Content: a plain string would be read as markup, and ids hold brackets.
            box.border_title = Content(self._title)
            yield self._lists
            yield self._effect
            yield self._other
            yield self._foot

    def on_mount(self) -> None:
        self._fit()

    def on_resize(self) -> None:
        self._fit()

    @property
    def _rows(self) -> int:
        most = max(len(self.choice.signals), len(self.choice.receivers), ROWS)
        # Command, sum and the worst fate need some lines of their own; but who can get it is
        # what is chosen here.
        room = max(self.size.height - 11, min(_LEAST_ROWS, self.size.height - 8))
        return max(1, min(most, ROWS + 2, room))

    def _fit(self) -> None:
        self._lists.styles.height = self._rows + 1
        typing = 1 if self._other.display else 0
        self._effect.styles.max_height = max(1, self.size.height - 4 - self._rows - typing)
        self._lists.refresh()
        self._effect.rebuild()
        self._foot.refresh()

    def _list_lines(self, width: int) -> tuple[Line, ...]:
        return list_lines(self.choice, self._rows, width)

    def _effect_lines(self, width: int) -> tuple[Line, ...]:
        return effect_lines(self.facts, self.choice, width)

    def _help_lines(self, width: int) -> tuple[Line, ...]:
        return tuple(((line, "dim"),) for line in wrap(self._help, width))[:1]

    def _set(self, choice: Choice) -> None:
        self.choice = choice
        self._effect.scroll_by("home")
        self._fit()

    def action_move(self, by: int) -> None:
        """One up or down in the list that has the keys."""
        self._set(moved_choice(self.choice, by))

    def action_other_list(self) -> None:
        """Give the keys to the other list."""
        self._set(other_side(self.choice))

    def action_take(self) -> None:
        """Go on with what is chosen, where it can be sent at all."""
        if self.choice.signal is None:
            self._open_typing()
        elif isinstance(plan_of(self.facts, self.choice), Action):
            self.dismiss(self.choice)

    def action_leave(self) -> None:
        """Close without a choice."""
        self.dismiss(None)

    def action_scroll_effect(self, how: str) -> None:
        """Scroll what does not fit."""
        self._effect.scroll_by(how)

    def _open_typing(self) -> None:
        self._other.display = True
        self._help = _TYPING
        self._other.enter()
        self._fit()

    def _typed(self, keep: bool) -> None:
        name = parse_signal(self._other.value) if keep else None
        if keep and name is None:
            self._help = _UNKNOWN
            self._foot.refresh()
            return
        self._other.value = ""
        self._other.display = False
        self._help = _HELP
        self.set_focus(None)
        self._set(self.choice if name is None else with_signal(self.choice, name))

    @on(Input.Changed, "#other")
    def _typing(self) -> None:
        if self._other.display:
            self._help = _TYPING
            self._foot.refresh()
