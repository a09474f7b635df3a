"""When the looks of one verdict were made, and the wait between two of them.

A recording that is judged again waits for nothing: its looks lie as far apart as they did.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from slurmtop.model.ports import Clock


class Pace:
    """Moments by name, and pauses.

    ``moments`` are those that were told, for whoever keeps them beside a recording. ``recorded``
    are those of a recording: they are told again, and nothing waits; a pause that is not made
    moves what is told after it on all the same.
    """

    def __init__(self, clock: Clock, recorded: Mapping[str, datetime] | None = None) -> None:
        self.moments: dict[str, datetime] = {}
        self._clock = clock
        self._recorded = recorded
        self._skipped = timedelta()

    @property
    def waits(self) -> bool:
        return self._recorded is None

    def moment(self, name: str) -> datetime:
        """Now, under that ``name``; in a recording when that was."""
        at = self._clock.now() + self._skipped
        if self._recorded is not None:
            at = self._recorded.get(name, at)
        self.moments[name] = at
        return at

    async def pause(self, seconds: float) -> None:
        if seconds <= 0:
            return
        if self.waits:
            await self._clock.sleep(seconds)
        else:
            self._skipped += timedelta(seconds=seconds)
