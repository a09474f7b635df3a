"""Is there a person at a terminal, and does the screen reach it?"""

import os
import sys


def has_terminal() -> bool:
    """Can a person see a screen and type?"""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def aim_at_terminal() -> None:
    """Textual paints on standard error; where that goes to a file, the screen would be dark."""
    if sys.stderr is None or not sys.stderr.isatty():
        os.dup2(sys.stdout.fileno(), 2)
