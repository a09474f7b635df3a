"""What readers of single lines share: no state, no open block."""

import re
from collections.abc import Iterable, Sequence

from slurmtop.model.trace import Event
from slurmtop.parse.logs.line import Message

#: Of one kind of line that may repeat for ever, this many are told.
MOST_REPEATS = 64


def hint(words: Sequence[bytes]) -> re.Pattern[str]:
    """One quick look for any of a reader's words: it is shown other readers' lines as well."""
    return re.compile("|".join(re.escape(word.decode()) for word in words))


class PlainReader:
    """A reader for which every message stands alone; a subclass gives ``words`` and ``read``."""

    words: tuple[bytes, ...] = ()
    _hint: re.Pattern[str]

    def __init_subclass__(cls) -> None:
        cls._hint = hint(cls.words)

    @property
    def open(self) -> bool:
        return False

    def see(self, message: Message) -> Iterable[Event]:
        return self.read(message) if self._hint.search(message.text) else ()

    def read(self, message: Message) -> Iterable[Event]:
        raise NotImplementedError

    def finish(self) -> Iterable[Event]:
        return ()
