"""Waiting for conditions, never for time."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

DEADLINE_S = 20.0


async def until(condition: Callable[[], bool], what: str) -> None:
    """Return once ``condition`` holds; fail with ``what`` when it does not within the deadline."""
    limit = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < limit, f"never came true: {what}"
        await asyncio.sleep(0.005)


def alive(pid: int) -> bool:
    """True while ``pid`` runs: a zombie that nobody has waited for does not count."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in ("Z", "X")
