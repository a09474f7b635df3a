"""How fast the newest step counters of a training log follow each other.

Source: whatever a trainer prints, with or without the time in front of it, for example::

    [2026-12-01 09:44:03] [rank0] step 4/100000 loss 0.71
    [2026-12-01 09:44:04] [rank0] step 5/100000 loss 0.69

Lines are read from the end: what counts is the pace of now. Of ranks that all print their steps the
first one tells each. Where an earlier run ends, or an epoch counts from its start again, it ends.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from slurmtop.model.facts import LogLine, StepLines
from slurmtop.model.trace import Clock
from slurmtop.parse.logs.progress import find_progress
from slurmtop.parse.logs.stamps import late_stamp, stamp_at

#: Later steps than these make the pace no surer.
_MOST_STEPS = 32
_MOST_LINES = 4_000
#: A step that is so much later than the one behind it is of an epoch, or a run, before.
_TIMES_BACK = 2
_RUN_ENDS = re.compile(r"slurmstepd: error: \*\*\* |will restart worker group")
#: ``3: `` of srun, ``[rank2]: ``: what stands in front of a time.
_LABELS = re.compile(r"(?:\d{1,6}: ?|\[[a-zA-Z]{1,6}[ =:_]?\d{1,6}\]:? ?){1,2}")
#: ``[00:10<00:12, 44.9it/s``, ``[29:02<35:12, 58.67s/it``.
_RATE = re.compile(
    r"\[\s{0,4}(?:(?P<h>\d{1,4}):)?(?P<m>\d{1,3}):(?P<s>\d\d)<[^,\]\n]{1,20},"
    r"\s{0,4}(?P<rate>\d{1,9}(?:\.\d{1,6})?)(?P<unit>s/it|it/s)"
)


def step_lines(newest: Sequence[LogLine], head: Iterable[LogLine] = ()) -> StepLines | None:
    """Of ``newest``, the end of a log, and ``head``, its beginning (of a short log both are the
    same). None where no line tells a step."""
    row: list[tuple[int, float | None]] = []
    told = None
    apart = False
    for line in newest[: -_MOST_LINES - 1 : -1]:
        if _RUN_ENDS.search(line.text):
            apart = True
            break
        progress = find_progress((line,))
        if progress is None:
            continue
        if not row:
            told = _told(line.text, progress.step)
        elif progress.step > _TIMES_BACK * row[-1][0]:
            break
        _put(row, progress.step, _seconds(line.text))
        if len(row) > _MOST_STEPS:
            break
    if not row:
        return None
    times = [at for _, at in reversed(row)]
    gaps = _gaps(times)
    return StepLines(
        lines=len(row),
        first=row[-1][0],
        last=row[0][0],
        span_s=sum(gaps) if gaps else None,
        pause_s=max(gaps) if gaps else None,
        told_s=told,
        begin=_begin(head, row[0][0]),
        apart=apart,
    )


def _put(row: list[tuple[int, float | None]], step: int, at: float | None) -> None:
    """``row`` is the newest first. What a line in front of it tells later again is the same."""
    if not row or step < row[-1][0]:
        row.append((step, at))
    elif step == row[-1][0]:
        row[-1] = (step, at)


def _gaps(times: Sequence[float | None]) -> list[float]:
    """Seconds between them; empty where one has none, or where they run backwards."""
    known = [at for at in times if at is not None]
    if len(known) < len(times):
        return []
    gaps = [later - earlier for earlier, later in pairwise(known)]
    return gaps if all(gap >= 0 for gap in gaps) else []


def _begin(head: Iterable[LogLine], last: int) -> int | None:
    for line in head:
        progress = find_progress((line,))
        if progress is not None:
            return progress.step if progress.step <= last else None
    return None


def _seconds(text: str) -> float | None:
    label = _LABELS.match(text)
    at = label.end() if label is not None else 0
    found = stamp_at(text, at)
    stamp = found[0] if found is not None else late_stamp(text, at)
    return stamp.seconds if stamp is not None and stamp.clock is Clock.WALL else None


def _told(text: str, step: int) -> float | None:
    """Seconds a step by a bar's own words: of late or since it began, whichever is longer."""
    # A bar that was drawn over stands there once, and behind its words.
    bars = list(_RATE.finditer(text))
    found = bars[-1] if bars else None
    if found is None or (rate := float(found["rate"])) <= 0:
        return None
    used = int(found["h"] or 0) * 3_600 + int(found["m"]) * 60 + int(found["s"])
    return max(rate if found["unit"] == "s/it" else 1 / rate, used / max(1, step))
