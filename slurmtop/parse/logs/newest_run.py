"""The part of a log that the newest run of a restarted job wrote.

Runs that append to one log are told apart by Slurm's own word (see :mod:`.attempts`)::

    slurmstepd: error: *** JOB 30 ON n1 CANCELLED AT 2026-11-30T16:06:14 DUE TO JOB REQUEUE ***
"""

from collections.abc import Collection, Sequence
from datetime import datetime

from slurmtop.parse.logs.attempts import split_attempts
from slurmtop.parse.logs.lines import split_lines

#: Zones of the world are whole quarters of an hour apart.
_ZONE_STEP_S = 900.0
#: Between slurmstepd's word and the end that Slurm notes.
_END_SLACK_S = 15.0

#: (offset, bytes) of what was read of a file.
Part = tuple[int, bytes]


def newest_run(
    parts: Sequence[Part], ids: Collection[str], end: datetime | None
) -> tuple[tuple[Part, ...], bool]:
    """The bytes of the newest run, and whether none of them can be of an earlier one.

    ``end`` is when that run ended; None while it goes on. Without Slurm's word all bytes are
    given, and that is not sure. ``()`` where the newest run has not written anything.
    """
    sure = False
    out: list[Part] = []
    for offset, data in parts:
        lines = split_lines(data, offset=offset, number=None, starts_inside=offset > 0)
        attempts = split_attempts(lines, ids, from_start=offset == 0)
        newest = attempts[-1] if attempts else None
        ended_at = None if newest is None else newest.ended_at
        if ended_at is not None and not _is_end(ended_at, end):
            # That word ended an earlier run; nothing stands behind it.
            out, sure = [], True
            continue
        if newest is not None and len(attempts) > 1:
            begin = newest.lines[0].offset
            out, sure = [(begin, data[begin - offset :])], True
            continue
        out.append((offset, data))
    return tuple(out), sure


def _is_end(said: datetime, end: datetime | None) -> bool:
    """Is the time in Slurm's word that of this end, whatever the zone of the node?"""
    if end is None:
        return False
    apart = abs((said - end.replace(tzinfo=None)).total_seconds())
    return min(apart % _ZONE_STEP_S, -apart % _ZONE_STEP_S) <= _END_SLACK_S
