"""The palette: every command that is possible now, and every theme, by name."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider

from slurmtop.ui.bindings import keys_of
from slurmtop.ui.keys import KEYS, key_sign
from slurmtop.ui.screens.base import BaseScreen

if TYPE_CHECKING:
    from slurmtop.ui.app import SlurmtopApp

_NEVER = frozenset({"app.palette", "app.back"})
#: Moving about is for keys; in the palette it would be noise.
_MOVES = ("cursor_", "page_", "scroll_tab", "step_back")


class SlurmtopCommands(Provider):
    """``jobs: filter``, ``app: refresh``, ``theme: slurmtop-light``."""

    def _offers(self) -> Iterator[tuple[str, str, Callable[[], object]]]:
        app = cast("SlurmtopApp", self.app)
        screen = self.screen
        keymap = app.own_keys
        for key, active in screen.active_bindings.items():
            entry = next((one for one in KEYS if one.id == active.binding.id), None)
            if entry is None or not active.enabled or entry.id in _NEVER:
                continue
            if entry.action.startswith(_MOVES) or key != keys_of(entry, keymap)[0]:
                continue
            scope = entry.id.partition(".")[0]
            run = partial(app.run_action, entry.action, active.node)
            yield f"{scope}: {entry.label}", f"{entry.help}  ({key_sign(key)})", run
        if isinstance(screen, BaseScreen):
            for name in sorted(app.available_themes):
                yield f"theme: {name}", "Use this colour theme", partial(app.use_theme, name)

    async def discover(self) -> Hits:
        for name, text, run in self._offers():
            yield DiscoveryHit(name, run, help=text)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for name, text, run in self._offers():
            # A command that is called so stands before one whose help only speaks of it.
            by_name = matcher.match(name)
            score = 1 + by_name if by_name > 0 else matcher.match(f"{name} {text}") / 2
            if score > 0:
                yield Hit(score, matcher.highlight(name), run, help=text)
