"""Colour themes from ``themes/*.yaml``: name, dark, ansi, colors, variables.

A theme that cannot be read is a sentence, never the end of the program. Any theme of
Textual's own works as well: what it does not define is taken from its colours.
"""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.segment import Segment
from textual.color import Color, ColorParseError
from textual.filter import LineFilter
from textual.theme import Theme

from slurmtop.config import DEFAULT_THEME, ConfigError, nearest, parse_yaml, read_text
from slurmtop.model.text import visible

FEW_COLOURS_THEME = "slurmtop-contrast"

#: Our own variables, and the one of Textual that stands in where a theme lacks it.
VARIABLES: dict[str, str] = {
    "state-running": "text-success",
    "state-pending": "text-primary",
    "state-ending": "text-accent",
    "state-warning": "text-warning",
    "state-failed": "text-error",
    "row-mark": "text-warning",
}
_COLORS = (
    "primary",
    "secondary",
    "warning",
    "error",
    "success",
    "accent",
    "foreground",
    "background",
    "surface",
    "panel",
    "boost",
)
_KEYS = ("name", "dark", "ansi", "colors", "variables")


@dataclass(frozen=True, slots=True)
class LoadedThemes:
    """``failures`` are sentences that name the file, the line and the nearest key."""

    themes: tuple[Theme, ...]
    failures: tuple[str, ...]


class NoColours(LineFilter):
    """For ``NO_COLOR``: bold, reverse and the like stay, no colour is sent, greys neither."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            Segment(text, style.without_color if style is not None else None, control)
            for text, style, control in segments
        ]


def chosen_theme(
    wanted: str, available: Collection[str], color_system: str | None, now: str
) -> tuple[str, list[str]]:
    """The theme to start with; where the wanted one is not there it stays as it is ``now``, with
    a sentence."""
    if wanted == DEFAULT_THEME and color_system == "standard":
        wanted = FEW_COLOURS_THEME
    if wanted in available:
        return wanted, []
    near = nearest(visible(wanted), available, few=True)
    return now, [
        f"there is no theme {visible(wanted)!r}{near}"
        " (type : and theme to see them all); the default is used"
    ]


def themes_folder() -> Path:
    """In a wheel the themes lie inside the package, in a checkout beside it."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "themes"
    return inside if inside.is_dir() else package.parent / "themes"


def load_themes(folder: Path | None = None) -> LoadedThemes:
    """Every theme of a folder: the default first, those of the terminal's colours last."""
    themes: list[Theme] = []
    failures: list[str] = []
    for path in sorted((folder or themes_folder()).glob("*.yaml")):
        try:
            themes.append(read_theme(path))
        except ConfigError as error:
            failures.append(str(error))
    themes.sort(key=lambda theme: (theme.name != DEFAULT_THEME, theme.ansi))
    return LoadedThemes(tuple(themes), tuple(failures))


def read_theme(path: Path) -> Theme:
    """One theme file. :class:`ConfigError` says what is wrong with it."""
    value, lines = parse_yaml(read_text(path) or "", path.name)
    if not isinstance(value, dict):
        raise ConfigError(f"{path.name} line 1: a theme has {', '.join(_KEYS)}")
    for key in value:
        if key not in _KEYS:
            raise ConfigError(
                f"{path.name} line {lines.get(str(key), 1)}: no key {key!r}"
                f"{nearest(str(key), _KEYS)}"
            )
    name = value.get("name")
    if not isinstance(name, str) or not name:
        raise ConfigError(f"{path.name} line {lines.get('name', 1)}: a theme needs a name")
    colors = _mapping(value, "colors", path, lines)
    variables = _mapping(value, "variables", path, lines)
    for key in colors:
        if key not in _COLORS:
            line = lines.get(f"colors/{key}", 1)
            raise ConfigError(f"{path.name} line {line}: no colour {key!r}{nearest(key, _COLORS)}")
    if "primary" not in colors:
        raise ConfigError(f"{path.name} line {lines.get('colors', 1)}: colors need primary")
    for group, entries in (("colors", colors), ("variables", variables)):
        for key, color in entries.items():
            if key.endswith("-style"):
                continue
            try:
                Color.parse(color.split(" ")[0])
            except ColorParseError:
                line = lines.get(f"{group}/{key}", 1)
                raise ConfigError(
                    f"{path.name} line {line}: {key}: {color!r} is no colour"
                ) from None
    given: dict[str, Any] = dict(colors)
    return Theme(
        name=name,
        dark=_flag(value, "dark", path, lines, True),
        ansi=_flag(value, "ansi", path, lines, False),
        variables=variables,
        **given,
    )


def variable_defaults(theme: Theme) -> dict[str, str]:
    """What our screens need and ``theme`` may not define."""
    made = theme.to_color_system().generate()
    own = {name: made[stand_in] for name, stand_in in VARIABLES.items()}
    # Textual's own style sheet needs these two in a theme of the terminal's colours.
    return {**own, "ansi-background": "ansi_default", "ansi-foreground": "ansi_default"}


def _mapping(value: dict[str, Any], name: str, path: Path, lines: dict[str, int]) -> dict[str, str]:
    found = value.get(name)
    if found is None:
        return {}
    if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
        line = lines.get(name, 1)
        raise ConfigError(f"{path.name} line {line}: {name}: names with a colour in quotes")
    return {str(key): str(one) for key, one in found.items()}


def _flag(
    value: dict[str, Any], name: str, path: Path, lines: dict[str, int], default: bool
) -> bool:
    found = value.get(name, default)
    if not isinstance(found, bool):
        raise ConfigError(f"{path.name} line {lines.get(name, 1)}: {name}: true or false")
    return found
