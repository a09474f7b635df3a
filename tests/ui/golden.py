"""Screens as text, compared with ``tests/golden/NAME.txt``.

``pytest --update-golden`` writes them anew; refused where CI is set, so that a wrong screen
cannot approve itself.
"""

from pathlib import Path
from typing import Any

from textual.app import App

FOLDER = Path(__file__).resolve().parents[1] / "golden"


def screen_text(app: App[Any]) -> str:
    """What stands on the screen, without style and without blanks at line ends."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips) + "\n"


class Golden:
    """The ``golden`` fixture: call it with a name and an app (or a text)."""

    def __init__(self, update: bool) -> None:
        self._update = update

    def __call__(self, name: str, shown: App[Any] | str) -> None:
        text = shown if isinstance(shown, str) else screen_text(shown)
        path = FOLDER / f"{name}.txt"
        if self._update:
            path.write_text(text, encoding="utf-8")
            return
        assert path.exists(), f"no golden {path.name}: look at it with pytest --update-golden"
        assert text == path.read_text(encoding="utf-8"), f"{name} looks different\n{text}"
