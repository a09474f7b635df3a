"""Ending a child and all that it started on this machine, whatever groups that made."""

import contextlib
import os
import signal
from pathlib import Path

_PROC = Path("/proc")


def members(session: int, proc: Path = _PROC) -> tuple[int, ...]:
    """The processes of a session: ``timeout`` leaves the group of its parent, not the session."""
    found: list[int] = []
    for folder in proc.glob("[0-9]*"):
        try:
            text = (folder / "stat").read_bytes()
        except OSError:
            continue
        # The name stands in brackets and may hold any of them itself.
        fields = text.rpartition(b")")[2].split()
        if len(fields) > 3 and fields[0] != b"Z" and fields[3] == b"%d" % session:
            found.append(int(folder.name))
    return tuple(found)


def signal_session(session: int, number: signal.Signals) -> int:
    """Signal each process of ``session``; how many there were."""
    pids = members(session)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
    return len(pids)
