"""One line of keys, made from the bindings that are alive now."""

from slurmtop.ui.keys import KEYS, key_sign
from slurmtop.ui.present.header import footer_line
from slurmtop.ui.present.spans import Line
from slurmtop.ui.widgets.lines import LinesBox

#: Never left out, however narrow the screen.
_KEEP = frozenset({"app.help", "app.quit"})


class KeyFooter(LinesBox):
    """Follows the focus, the person's own keymap and what is possible now.

    A focused widget that takes keys as text says in ``FOOTER`` which ones still act.
    """

    DEFAULT_CSS = "KeyFooter { dock: bottom; height: 1; background: $panel; }"

    def __init__(self) -> None:
        super().__init__(self._line)

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, lambda _screen: self.refresh())

    def _line(self, width: int) -> tuple[Line, ...]:
        if self.app.screen is not self.screen:
            # A dialog is on top: these keys do nothing now.
            return ()
        own = getattr(self.screen.focused, "FOOTER", None)
        if own is not None:
            return (footer_line([(key, label, True, True) for key, label in own], width),)
        alive: dict[str, tuple[str, bool]] = {}
        for key, active in self.screen.active_bindings.items():
            name = active.binding.id
            if name is not None and name not in alive:
                alive[name] = (key_sign(key), active.enabled)
        entries = [
            (alive[entry.id][0], entry.label, alive[entry.id][1], entry.id in _KEEP)
            for entry in sorted(KEYS, key=lambda entry: entry.scope == "app")
            if entry.footer and entry.id in alive
        ]
        return (footer_line(entries, width),)
