"""How much of a log stands behind its newest step, where that is more than is usual in it.

Source: a training that stands still while a thread of it goes on to print, for example::

    step 10/1000 loss 0.71
    heartbeat: alive
    heartbeat: alive
    heartbeat: alive

Bytes are no progress where a log tells steps. That other lines come, as in an evaluation, is no
hang either: what is found here is worth a look, and no more.
"""

from collections.abc import Iterable, Sequence
from statistics import median

from slurmtop.model.facts import LogLine, Progress
from slurmtop.parse.logs.progress import find_progress

#: Fewer lines than these behind a step say nothing.
_LEAST = 3
#: More than so many times the usual are many.
_TIMES = 3
#: What is many where there is one step alone, and nobody knows what is usual.
_MANY = 10
#: Steps, and lines, that are looked at to know what is usual.
_MOST_GAPS = 16
_MOST_LINES = 2_000


def left_behind(
    progress: Progress | None, newest: Sequence[LogLine], head: Iterable[LogLine] = ()
) -> int | None:
    """Lines behind ``progress``, the newest step of ``newest`` (the end of a log), where those are
    more than mostly stand between two of its steps; else None.

    ``head`` is the beginning of a log that is longer: where it tells steps and the end none, all
    lines of the end are behind them.
    """
    told = [line for line in newest if line.text.strip()]
    if progress is None:
        return (len(told) or None) if find_progress(head) is not None else None
    behind = sum(1 for line in told if line.offset > progress.line.offset)
    if behind < _LEAST:
        return None
    gaps = _gaps(told[: len(told) - behind], progress.step)
    many = _TIMES * median(gaps) if gaps else _MANY
    return behind if behind > many else None


def _gaps(lines: Sequence[LogLine], step: int) -> list[int]:
    """Lines from one step to the next, the newest first. ``lines`` end with the newest."""
    gaps: list[int] = []
    since = 0
    for line in lines[: -_MOST_LINES - 1 : -1]:
        found = find_progress((line,))
        if found is not None and found.step != step:
            gaps.append(max(1, since))
            step, since = found.step, 0
            if len(gaps) == _MOST_GAPS:
                break
        since += 1
    return gaps
