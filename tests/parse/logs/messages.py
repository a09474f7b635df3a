"""Messages made by hand and shown to one reader, for the tests of readers."""

from collections.abc import Iterable

from slurmtop.model.trace import Event, Where
from slurmtop.parse.logs.line import Message, Reader


def message(text: str, order: int = 0, **where: object) -> Message:
    """A message as if its line had no prefix but what ``where`` says."""
    fields: dict[str, object] = {
        "source": "job.log",
        "line": order + 1,
        "offset": order * 100,
        "order": order,
        "text": text[:400],
        **where,
    }
    at = Where(**fields)  # type: ignore[arg-type]  # the tests name the fields they need
    return Message(text=text, stream="", at=at, indented=text[:1] == " ")


def read(reader: Reader, lines: str | Iterable[str], **where: object) -> list[Event]:
    """What ``reader`` says of these lines; a line without its words is not shown to it."""
    events: list[Event] = []
    lines = lines.split("\n") if isinstance(lines, str) else lines
    for order, line in enumerate(lines):
        if reader.open or any(word in line.encode() for word in reader.words):
            events.extend(reader.see(message(line, order, **where)))
    events.extend(reader.finish())
    return events
