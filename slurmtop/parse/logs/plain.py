"""What readers of single lines share: no state, no open block."""

from collections.abc import Iterable

from slurmtop.model.trace import Event
from slurmtop.parse.logs.line import Message

#: Of one kind of line that may repeat for ever, this many are told.
MOST_REPEATS = 64


class PlainReader:
    """A reader for which every message stands alone; a subclass gives ``words`` and ``see``."""

    words: tuple[bytes, ...] = ()

    @property
    def open(self) -> bool:
        return False

    def see(self, message: Message) -> Iterable[Event]:
        raise NotImplementedError

    def finish(self) -> Iterable[Event]:
        return ()
