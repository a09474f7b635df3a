"""Is there a person at a terminal, and does the screen reach it?"""

import os
import sys

#: What TERM says where nothing can be painted: an editor's shell, ``M-x shell``, a serial line.
_NO_SCREEN = ("", "dumb", "unknown")


def can_paint(term: str) -> bool:
    """Does a terminal that calls itself ``term`` take more than lines of text?"""
    return term not in _NO_SCREEN


def has_terminal() -> bool:
    """Can a person see a screen and type?"""
    ends = (sys.stdin, sys.stdout)
    return can_paint(os.environ.get("TERM", "")) and all(
        stream is not None and stream.isatty() for stream in ends
    )


def aim_at_terminal() -> None:
    """Textual paints on standard error; where that goes to a file, the screen would be dark."""
    if sys.stderr is None or not sys.stderr.isatty():
        os.dup2(sys.stdout.fileno(), 2)
