"""The one dialog before anything is changed on the cluster. It decides; it does nothing."""

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input

from slurmtop.control.actions import Action, ConfirmLevel
from slurmtop.control.changes import Change, changes_since, nothing_left
from slurmtop.model.ids import JobKey
from slurmtop.model.text import visible
from slurmtop.ui.messages import HealthChanged, QueueChanged, SecondPassed
from slurmtop.ui.present import confirm as present
from slurmtop.ui.present.action_words import ask_text, title_text, yes_label
from slurmtop.ui.present.changes import change_lines
from slurmtop.ui.present.spans import Line, wrap
from slurmtop.ui.widgets.lines import LinesBox, LinesView
from slurmtop.ui.widgets.typed_line import focus_now

if TYPE_CHECKING:
    from slurmtop.ui.app import SlurmtopApp

#: Below this many columns the dialog takes the whole width.
NARROW = 50
BODY_LINES = 15


class TypedConfirmation(Input):
    """Takes typed characters only: what is pasted is not meant for a question like this."""

    def _on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        event.stop()
        cast("ConfirmScreen", self.screen).say("pasted text does not confirm: type it")

    async def _on_key(self, event: events.Key) -> None:
        screen = cast("ConfirmScreen", self.screen)
        if event.key == "s" and screen.can_save:
            # No id and no count holds an s.
            event.prevent_default()
            event.stop()
            screen.action_save()
            return
        await super()._on_key(event)


class ConfirmScreen(ModalScreen[bool]):
    """Dismisses with True only after an explicit yes; anything else is False.

    The screen reads the queue that it was opened over: when a job of ``action`` ends,
    leaves or becomes another run meanwhile, it says so, and once none is left as shown
    there is no yes any more. ``hidden`` are the marked jobs that a filter hides. Where what is
    known is saved first, ``s`` leaves that out: ``action`` is then without it.
    """

    DEFAULT_CSS = """
    ConfirmScreen { align: center middle; }
    ConfirmScreen > #dialog {
        width: 90%; min-width: 30; max-width: 110; height: auto; max-height: 100%;
        border: round $error; border-title-color: $text-error; border-title-style: bold;
        padding: 0 1; background: $surface;
    }
    ConfirmScreen #body { height: auto; max-height: 15; }
    ConfirmScreen #changes { height: auto; }
    ConfirmScreen #ask { height: 1; }
    ConfirmScreen #typed { height: 1; border: none; padding: 0; width: 24; }
    ConfirmScreen #buttons { height: 1; align-horizontal: right; }
    ConfirmScreen #buttons > Button { margin-left: 2; min-width: 10; border: none !important; }
    ConfirmScreen.narrow > #dialog { width: 100%; }
    ConfirmScreen.narrow #buttons > Button { margin-left: 1; min-width: 4; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "no", "no", show=False),
        Binding("n", "no", "no", show=False),
        Binding("y", "yes", "yes", show=False),
        Binding("s", "save", "save first or not", show=False),
        Binding("left,right", "other_button", "other button", show=False),
        Binding("up", "scroll_body('up')", "up", show=False),
        Binding("down", "scroll_body('down')", "down", show=False),
        Binding("pageup", "scroll_body('page_up')", "page up", show=False),
        Binding("pagedown", "scroll_body('page_down')", "page down", show=False),
    ]

    def __init__(self, action: Action, hidden: Collection[JobKey] = ()) -> None:
        super().__init__()
        self.action = action
        self._saves = action.saves
        self._hidden = hidden
        self.changes: tuple[Change, ...] = ()
        self._said = ""
        self._body = LinesView(self._body_lines, id="body")
        self._body.can_focus = False
        self._news = LinesBox(self._news_lines, id="changes")
        self._ask = LinesBox(self._ask_lines, id="ask")

    def compose(self) -> ComposeResult:
        dry_run = self._tool.services.dry_run
        with Vertical(id="dialog") as dialog:
            # As Content: a plain string would be read as markup, and ids hold brackets.
            dialog.border_title = Content(title_text(self.action, dry_run=dry_run))
            yield self._body
            yield self._news
            yield self._ask
            if self._typed_level:
                yield TypedConfirmation(id="typed")
            with Horizontal(id="buttons"):
                yield Button("No", id="no", compact=True)
                yield Button(
                    yes_label(self.action, dry_run=dry_run),
                    id="yes",
                    compact=True,
                    variant="error",
                    disabled=self._typed_level,
                )

    @property
    def _typed_level(self) -> bool:
        return self.action.confirm is not ConfirmLevel.YES

    def on_mount(self) -> None:
        self.query_one("#typed" if self._typed_level else "#no").focus()
        self._look_again()

    def on_queue_changed(self, event: QueueChanged) -> None:
        self._look_again()

    def on_second_passed(self, event: SecondPassed) -> None:
        self._body.rebuild()
        self._fit()

    def on_resize(self) -> None:
        self._fit()

    def on_health_changed(self, event: HealthChanged) -> None:
        self._body.rebuild()
        self._fit()

    def _fit(self) -> None:
        """Share the height out: question, input and buttons first, then news, then the list."""
        width, height = self.size
        self.set_class(width < NARROW, "narrow")
        inner = max(8, min(110, width if width < NARROW else width * 9 // 10) - 4)
        ask = len(self._ask_lines(inner))
        room = height - 3 - ask - (1 if self._typed_level else 0)
        told = min(len(self._news_lines(inner)), max(0, room - 1))
        self._ask.styles.height = ask
        self._news.styles.height = told
        self._body.styles.max_height = max(1, min(BODY_LINES, room - told))
        self._news.refresh()
        self._ask.refresh()

    def _look_again(self) -> None:
        book = self._tool.book
        self.changes = changes_since(self.action, book.get, book.gone, book.sampled_at)
        self._fit()
        self._set_yes()

    @property
    def _tool(self) -> "SlurmtopApp":
        return cast("SlurmtopApp", self.app)

    @property
    def _nothing_left(self) -> bool:
        return nothing_left(self.action, self.changes)

    def _set_yes(self) -> None:
        yes = self.query_one("#yes", Button)
        yes.disabled = self._nothing_left or (
            self._typed_level and not self.action.confirmed_by(self._typed_text)
        )

    @property
    def _typed_text(self) -> str:
        return self.query_one("#typed", Input).value if self._typed_level else ""

    def _body_lines(self, width: int) -> tuple[Line, ...]:
        user, now = self._tool.services.user, self._tool.known_at()
        left_out = self.can_save and not self.action.saves
        return present.body_lines(
            self.action, now, width, user, self._hidden, keys=True, left_out=left_out
        )

    def _news_lines(self, width: int) -> tuple[Line, ...]:
        tool = self._tool
        age = present.age_lines(tool.queue_words(), tool.health, tool.services.data_now(), width)
        return (*age, *change_lines(self.changes, len(self.action.targets), width))

    def _ask_lines(self, width: int) -> tuple[Line, ...]:
        if self._nothing_left:
            text, role = "Nothing is left of what was shown: esc closes", "bad"
        elif self._said:
            text, role = self._said, "bad"
        else:
            text, role = ask_text(self.action), "strong"
        return tuple(((line, role),) for line in wrap(text, width))

    def say(self, sentence: str) -> None:
        """Show why an answer was not taken."""
        self._said = sentence
        self._fit()

    @on(Input.Changed, "#typed")
    def _typing(self) -> None:
        self._said = ""
        self._fit()
        self._set_yes()

    @on(Input.Submitted, "#typed")
    def _typed(self) -> None:
        if not self.action.confirmed_by(self._typed_text):
            self.say(f"that is not {visible(self.action.expected_text)}: nothing is done")
            return
        self._confirm()

    @on(Button.Pressed, "#yes")
    def _pressed_yes(self) -> None:
        if self.action.confirmed_by(self._typed_text):
            self._confirm()

    @on(Button.Pressed, "#no")
    def action_no(self) -> None:
        """Close without doing anything."""
        self.dismiss(False)

    def action_yes(self) -> None:
        """One key is enough only where the action says so."""
        if not self._typed_level:
            self._confirm()

    def _confirm(self) -> None:
        if not self._nothing_left:
            self.dismiss(True)

    @property
    def can_save(self) -> bool:
        """Is there anything that may be saved first, or be left out?"""
        return bool(self._saves)

    def action_save(self) -> None:
        """Leave out what would be saved first, or take it in again."""
        if self.can_save:
            saves = () if self.action.saves else self._saves
            self.action = replace(self.action, saves=saves)
            self._body.rebuild()
            self._fit()

    def action_other_button(self) -> None:
        """Move between No and Yes."""
        no, yes = self.query_one("#no", Button), self.query_one("#yes", Button)
        focus_now(no if yes.has_focus or yes.disabled else yes)

    def action_scroll_body(self, how: str) -> None:
        """Scroll what does not fit."""
        self._body.scroll_by(how)
