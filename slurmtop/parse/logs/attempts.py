"""The runs of one job in a log that each of them appended to (``--open-mode=append``).

Source: Slurm's own word when it ends a batch job, for example::

    slurmstepd-n1: error: *** JOB 30 ON n1 CANCELLED AT 2026-11-30T16:06:14 DUE TO JOB REQUEUE ***
    srun: error: n1: task 0: Terminated

A run that ended by itself leaves no such line, so that what stands between two of them may be
of several runs. Which it is, only the times of accounting tell: :func:`match_ends`.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from slurmtop.model.facts import LogLine

_END = re.compile(
    r"slurmstepd[\w.-]{0,80}: (?:error: )?\*\*\* JOB (?P<job>\d{1,10}(?:_\d{1,10})?) ON \S{1,255} "
    r"CANCELLED AT (?P<at>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)"
    r"(?: DUE [Tt][Oo] (?P<why>[^*]{1,80}?))? \*\*\*"
)
#: What Slurm's programs still say after that line, of the same run.
_SLURM_SAYS = re.compile(r"(?:slurmstepd[\w.-]{0,80}|srun|slurmd[\w.-]{0,80}): ")
#: Zones of the world are whole quarters of an hour apart.
_ZONE_STEP_S = 900
_MOST_ZONE_S = 15 * 3_600
#: Between slurmstepd's word and the end that slurmctld notes.
_END_SLACK_S = 10


@dataclass(frozen=True, slots=True)
class Attempt:
    """Lines up to the word that a run was ended from outside, and what Slurm still said then.

    ``ended_at`` is the time in that word, by the clock on the wall of the node (no zone); None
    for what stands after the last of them. ``why`` is e.g. ``JOB REQUEUE``. ``whole`` is false
    where its beginning was not read.
    """

    lines: tuple[LogLine, ...]
    ended_at: datetime | None = None
    why: str = ""
    whole: bool = True


def split_attempts(
    lines: Sequence[LogLine], ids: Collection[str], *, from_start: bool
) -> tuple[Attempt, ...]:
    """``lines`` parted where Slurm says that job ``ids`` (its number, its id as typed) was ended.

    ``from_start`` says that ``lines`` begin where the job's first run began to write. Nothing is
    parted by guess: without such words all is one attempt. Every line is in exactly one.
    """
    out: list[Attempt] = []
    held: list[LogLine] = []
    end: tuple[datetime, str] | None = None
    for line in lines:
        found = _end(line.text, ids)
        goes_on = not line.text.strip() or _SLURM_SAYS.match(line.text) is not None
        if end is not None and (not goes_on or (found is not None and found != end)):
            out.append(Attempt(tuple(held), *end, whole=bool(out) or from_start))
            held, end = [], None
        held.append(line)
        end = found or end
    if end is not None:
        out.append(Attempt(tuple(held), *end, whole=bool(out) or from_start))
    elif held:
        out.append(Attempt(tuple(held), whole=bool(out) or from_start))
    return tuple(out)


def _end(text: str, ids: Collection[str]) -> tuple[datetime, str] | None:
    match = _END.search(text)
    if match is None or match["job"] not in ids:
        return None
    try:
        return datetime.fromisoformat(match["at"]), (match["why"] or "").strip()
    except ValueError:
        return None


def match_ends(
    attempts: Sequence[Attempt], runs: Sequence[tuple[datetime, datetime | None]]
) -> tuple[int | None, ...]:
    """For each attempt the place in ``runs`` of the one run that it holds; None where unsure.

    ``runs`` are (start, end) of all runs that started, oldest first; the end of one that still
    runs is None. The words of Slurm are matched with the ends by time, whatever the zone of the
    nodes, as long as it is the same for all; where more than one way fits, nothing is matched.
    """
    ends = [attempt.ended_at for attempt in attempts if attempt.ended_at is not None]
    ways = {way for shift in _shifts(ends, runs) if (way := _places(ends, runs, shift)) is not None}
    if len(ways) != 1 or not ends:
        return (None,) * len(attempts)
    places = list(ways.pop())
    out: list[int | None] = []
    before: int | None = None
    for at, attempt in enumerate(attempts):
        place = len(runs) - 1 if attempt.ended_at is None else places.pop(0)
        first = (0 if at == 0 else None) if before is None else before + 1
        out.append(place if attempt.whole and first == place else None)
        before = place
    return tuple(out)


def _shifts(ends: Sequence[datetime], runs: Sequence[tuple[datetime, datetime | None]]) -> set[int]:
    """Seconds that the clock on the nodes' wall may be ahead of UTC."""
    found: set[int] = set()
    for _, end in runs:
        if end is None or not ends:
            continue
        ahead = (ends[-1] - end.replace(tzinfo=None)).total_seconds()
        near = round(ahead / _ZONE_STEP_S) * _ZONE_STEP_S
        if abs(ahead - near) <= _END_SLACK_S and abs(near) <= _MOST_ZONE_S:
            found.add(near)
    return found


def _places(
    ends: Sequence[datetime], runs: Sequence[tuple[datetime, datetime | None]], shift: int
) -> tuple[int, ...] | None:
    """The run behind each word, in order; None where one of them fits no run, or two."""
    places: list[int] = []
    for at in ends:
        utc = at - timedelta(seconds=shift)
        fits = [
            place
            for place, (_, end) in enumerate(runs)
            if end is not None
            and abs((end.replace(tzinfo=None) - utc).total_seconds()) <= _END_SLACK_S
        ]
        if len(fits) != 1 or (places and fits[0] <= places[-1]):
            return None
        places.append(fits[0])
    return tuple(places)
