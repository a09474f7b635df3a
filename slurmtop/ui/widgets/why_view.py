"""The Why tab: the verdict in four lines, then what stands behind it."""

from collections.abc import Callable
from datetime import datetime, tzinfo

from slurmtop.ui.present.spans import Line
from slurmtop.ui.present.why import WhyState, why_lines
from slurmtop.ui.widgets.lines import LinesView


class WhyView(LinesView, inherit_bindings=False):
    """Shows :attr:`state`; set it through :meth:`show_state`."""

    def __init__(
        self,
        now: Callable[[], datetime],
        zone: tzinfo | None,
        seen_at: Callable[[datetime], datetime],
        *,
        id: str,
    ) -> None:
        super().__init__(self._why_lines, id=id)
        self._now, self._zone, self._seen_at = now, zone, seen_at
        self.state = WhyState()

    def show_state(self, state: WhyState) -> None:
        """Show another verdict, or that one is awaited."""
        self.state = state
        self.rebuild()

    def _why_lines(self, width: int) -> tuple[Line, ...]:
        now, verdict = self._now(), self.state.verdict
        age_s = None
        if verdict is not None and verdict.made_at is not None:
            age_s = (now - self._seen_at(verdict.made_at)).total_seconds()
        return why_lines(self.state, now, width, self._zone, age_s=age_s)
