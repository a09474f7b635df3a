"""Every reader of log lines, in the order in which a message is shown to them.

Each entry makes a fresh reader for one source.
"""

from collections.abc import Callable

from slurmtop.parse.logs.line import Reader

READERS: tuple[Callable[[], Reader], ...] = ()
