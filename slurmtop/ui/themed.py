"""An app in the colours of our themes, or without any."""

from collections.abc import Sequence

from textual.app import App
from textual.filter import LineFilter

from slurmtop.ui.themes import NoColours, chosen_theme, load_themes, variable_defaults


class ThemedApp(App[None]):
    """Knows the themes shipped with slurmtop and those of Textual's own."""

    def __init__(self) -> None:
        super().__init__()
        loaded = load_themes()
        self._own_themes = tuple(theme.name for theme in loaded.themes)
        self.theme_troubles = list(loaded.failures)
        """Sentences about themes that cannot be read or are not there."""
        for theme in loaded.themes:
            self.register_theme(theme)

    def start_theme(self, wanted: str) -> None:
        """Put on the wanted theme, if it is there."""
        self.theme, trouble = chosen_theme(
            wanted, self.available_themes, self.console.color_system, self.theme
        )
        self.theme_troubles += trouble

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variable_defaults(self.current_theme)

    def get_line_filters(self) -> Sequence[LineFilter]:
        filters = super().get_line_filters()
        return [*filters, NoColours()] if self.no_color else filters

    def action_next_theme(self) -> None:
        names = self._own_themes or tuple(self.available_themes)
        later = names.index(self.theme) + 1 if self.theme in names else 0
        self.use_theme(names[later % len(names)])

    def use_theme(self, name: str) -> None:
        """Change the colours now; the settings file is left as it is."""
        self.theme = name
        self.notify(f"theme {name}", markup=False, timeout=2)
