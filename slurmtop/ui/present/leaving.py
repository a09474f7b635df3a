"""What stands in the way of leaving: actions whose commands or outcome are still open. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from slurmtop.control.actions import Action
from slurmtop.model.units import plural
from slurmtop.ui.present.action_words import title_text
from slurmtop.ui.present.spans import Line, wrap


@dataclass(slots=True, eq=False)
class Underway:
    """An action between the yes and its outcome; ``sent`` of ``commands`` are handed over."""

    action: Action
    commands: int
    sent: int = 0

    def heard(self, sent: int, commands: int) -> None:
        """How far it is now."""
        self.sent, self.commands = sent, commands


def leaving_lines(underway: Sequence[Underway], width: int) -> tuple[Line, ...]:
    """What leaving now would cut off, action by action, and the question."""
    if not underway:
        texts = [("It is all done and read back by now.", "good"), ("Leave?", "strong")]
    else:
        texts = [(f"{title_text(one.action)}: {_open_text(one)}", "warn") for one in underway]
        unsent = any(one.sent < one.commands for one in underway)
        what = " What is not sent is not done." if unsent else ""
        texts.append((f"Leave anyway?{what}", "strong"))
    texts.append(("y = leave, n or esc = stay", "strong"))
    return tuple(((line, role),) for text, role in texts for line in wrap(text, width))


def _open_text(one: Underway) -> str:
    left = one.commands - one.sent
    if left > 0:
        verb = "is" if left == 1 else "are"
        return f"{left} of {plural(one.commands, 'command')} {verb} not sent yet"
    return "sent, but not read back: what became of it goes to the log as not known"
