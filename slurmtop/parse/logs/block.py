"""A report of several lines inside a log: its lines are held until it is over."""

from dataclasses import replace

from slurmtop.model.trace import Where
from slurmtop.parse.logs.line import Message

_SHOWN_CHARS = 400


def shown(messages: list[Message]) -> Where:
    """The place of the first message, with the raw text of all of them."""
    text = "\n".join(message.at.text for message in messages)
    return replace(messages[0].at, text=text[:_SHOWN_CHARS])
