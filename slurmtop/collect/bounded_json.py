"""JSON that somebody sends: what becomes of a few bytes of it must not fill the memory.

A text stays about as long as it is. Everything else grows: ``[],`` are three bytes and sixty in
memory. So what stands between the texts of a document is bounded before it is read.
"""

import json
import re
from typing import Any

#: Bytes between the texts of one document: brackets, names' quotes, numbers, blanks.
MOST_BETWEEN = 2 * 1024 * 1024
#: Never to be tried again with less, and an end that is missing is none.
_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_QUOTES = 2


class TooMuch(ValueError):
    """It would become much larger in memory than what is read here ever is; ``str()`` is what it
    holds."""


def between(data: bytes, most: int = MOST_BETWEEN) -> int:
    """How many bytes stand between the texts of ``data``, the quotes of each counted. Raises
    :class:`TooMuch` where they are more than ``most``."""
    found, at = 0, 0
    for text in _TEXT.finditer(data):
        found += text.start() - at + _QUOTES
        at = text.end()
        if found > most:
            break
    else:
        found += len(data) - at
    if found > most:
        raise TooMuch("more names, numbers and brackets than there ever are")
    return found


def loads(data: bytes, most: int = MOST_BETWEEN) -> Any:
    """``json.loads``. Raises :class:`TooMuch` as well, which is a ValueError."""
    between(data, most)
    return json.loads(data)
