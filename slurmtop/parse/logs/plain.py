"""What readers of single lines share: no state, no open block."""

from collections.abc import Iterable, Sequence

from slurmtop.model.trace import Event
from slurmtop.parse.logs.line import Message

#: Of one kind of line that may repeat for ever, this many are told.
MOST_REPEATS = 64


def texts(words: Sequence[bytes]) -> tuple[str, ...]:
    """A reader's words for its own quick look: it is shown other readers' lines as well."""
    return tuple(word.decode() for word in words)


class PlainReader:
    """A reader for which every message stands alone; a subclass gives ``words`` and ``read``."""

    words: tuple[bytes, ...] = ()
    _texts: tuple[str, ...]

    def __init_subclass__(cls) -> None:
        cls._texts = texts(cls.words)

    @property
    def open(self) -> bool:
        return False

    def see(self, message: Message) -> Iterable[Event]:
        text = message.text
        return self.read(message) if any(word in text for word in self._texts) else ()

    def read(self, message: Message) -> Iterable[Event]:
        raise NotImplementedError

    def finish(self) -> Iterable[Event]:
        return ()
