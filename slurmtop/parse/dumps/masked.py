"""Secrets in what a node tells of a job: names and variables that the job itself has made up.

A search for secrets is dear where a text is made of what looks like their beginnings, and a job may
have threads and variables by the thousand. So a text is searched once however often it is told, and
of one answer no more than :data:`MOST_PLAIN` and :data:`MOST_OTHER` bytes of different ones: what
comes after that is masked as a whole, unseen.
"""

import re

from slurmtop.parse.mask import mask

#: Bytes of different texts of letters, digits and the signs of paths: those of thousands of ranks.
MOST_PLAIN = 1024 * 1024
#: Bytes of all other ones: some hundred of the longest names.
MOST_OTHER = 16 * 1024

_PLAIN = re.compile(
    rb'(?:"(?:name|filename|thread_name)": "|[A-Z0-9_]{1,80}=)?[\w./<> (),\[\]+-]*"?,?'
)


class TextMask:
    """The masks of one answer."""

    def __init__(self) -> None:
        self._known: dict[bytes, bytes] = {}
        self._plain_left = MOST_PLAIN
        self._other_left = MOST_OTHER

    def __call__(self, text: bytes) -> bytes | None:
        """``text`` masked; None where too much was searched already."""
        known = self._known.get(text)
        if known is not None:
            return known
        if _PLAIN.fullmatch(text):
            self._plain_left -= len(text)
            left = self._plain_left
        else:
            self._other_left -= len(text)
            left = self._other_left
        if left < 0:
            return None
        masked = self._known[text] = mask(text)
        return masked
