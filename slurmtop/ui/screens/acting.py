"""The keys that act on jobs, the same on every screen that shows some."""

from collections.abc import Callable

from slurmtop.control.actions import Kind
from slurmtop.ui import choices_flow
from slurmtop.ui.actions_flow import Selection, act
from slurmtop.ui.screens.base import BaseScreen


class ActingScreen(BaseScreen):
    """A screen says in :meth:`selection` which jobs a key is for."""

    def selection(self) -> Selection:
        """The marked jobs, or the one that the screen or its cursor is about."""
        raise NotImplementedError

    def _choose(self, flow: Callable[..., None]) -> None:
        flow(self.tool, self.selection())

    def action_cancel(self) -> None:
        act(self.tool, self.selection(), Kind.CANCEL)

    def action_cancel_part(self) -> None:
        self._choose(choices_flow.cancel_part)

    def action_signal(self) -> None:
        self._choose(choices_flow.signal)

    def action_requeue(self) -> None:
        self._choose(choices_flow.requeue)

    def action_hold(self) -> None:
        act(self.tool, self.selection(), Kind.HOLD)

    def action_release(self) -> None:
        act(self.tool, self.selection(), Kind.RELEASE)

    def action_limit(self) -> None:
        self._choose(choices_flow.limit)

    def action_exclude(self) -> None:
        self._choose(choices_flow.exclude)
