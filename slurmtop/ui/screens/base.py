"""What every screen of slurmtop shares."""

from typing import TYPE_CHECKING, ClassVar, cast

from textual.screen import Screen

from slurmtop.model.ids import JobKey
from slurmtop.ui.bindings import refused_when_read_only
from slurmtop.ui.services import Services
from slurmtop.ui.widgets.footer import KeyFooter

if TYPE_CHECKING:
    from slurmtop.ui.app import SlurmtopApp


class BaseScreen(Screen[None]):
    """``SCOPES`` names the scopes of ``ui/keys.py`` that are alive here, besides ``app``."""

    SCOPES: ClassVar[tuple[str, ...]] = ()
    ESCAPE_TO_MINIMIZE = False

    @property
    def tool(self) -> "SlurmtopApp":
        """The app with its own type."""
        return cast("SlurmtopApp", self.app)

    @property
    def services(self) -> Services:
        return self.tool.services

    def possible(self, action: str) -> bool:
        """Whether ``action`` makes sense now; what does not is neither offered nor done."""
        return True

    def undo_one(self) -> bool:
        """Escape asks first whether there is something to take back here."""
        return False

    def on_screen_suspend(self) -> None:
        self._refresh_footer()

    def on_screen_resume(self) -> None:
        self._refresh_footer()

    def _refresh_footer(self) -> None:
        for footer in self.query(KeyFooter):
            footer.refresh()

    def recorded_text(self) -> str:
        """When what is shown was recorded, "" where it is live."""
        at = self.services.recorded_at()
        return "" if at is None else f"{at.astimezone(self.services.zone):%Y-%m-%d %H:%M:%S}"

    @property
    def current_job(self) -> JobKey | None:
        """The job that this screen is about, or the one under its cursor."""
        return None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Read-only takes the acting keys away; pressed all the same, the app says why."""
        if self.services.read_only and refused_when_read_only(action):
            return False
        return self.possible(action)
