"""A reader that takes every message: what the line layer shows, for its tests."""

from collections.abc import Iterable

from slurmtop.model.trace import Event, Traces
from slurmtop.parse.logs.line import Message
from slurmtop.parse.logs.reading import SourceReader


class Everything:
    words: tuple[bytes, ...] = ()
    open = True

    def __init__(self, messages: list[Message]) -> None:
        self._messages = messages

    def see(self, message: Message) -> Iterable[Event]:
        self._messages.append(message)
        return ()

    def finish(self) -> Iterable[Event]:
        return ()


def read(*blocks: bytes | int, name: str = "x.log") -> tuple[list[Message], Traces]:
    """All messages and the traces; a number among the blocks is so many bytes left out."""
    messages: list[Message] = []
    reader = SourceReader(name, year=2025, readers=[lambda: Everything(messages)])
    for block in blocks:
        if isinstance(block, int):
            reader.skip(block)
        else:
            reader.feed(block)
    traces = reader.finish()
    return messages, traces


def texts(*blocks: bytes | int) -> list[str]:
    return [message.text for message in read(*blocks)[0]]
