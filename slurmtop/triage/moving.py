"""Whether a writer made new steps behind a line of its log.

A bar is drawn once more when its program dies, and a summary quotes the last step: neither is
a step. Two counts above all that was counted before are, or three that rise from anywhere.
"""

from bisect import bisect_left
from collections.abc import Sequence

from slurmtop.model.events.program import Mark, Step
from slurmtop.model.trace import Where
from slurmtop.triage.picture import Picture

#: New counts, and lines without one, that prove that the work went on.
_NEW = 2
#: The same where it is not known how far it was before.
_RISING = 3


def moved_on(picture: Picture, at: Where) -> bool:
    """Did any writer tell a step behind this line? False where nothing tells."""
    return any(picture.before(at, step.at) for step in picture.of(Step))


class Moves:
    """The steps of each source and rank (None: of unknown writers) in the newest attempt."""

    def __init__(self, picture: Picture) -> None:
        self._bars: dict[tuple[str, int | None], dict[str, list[Sequence[Mark]]]] = {}
        self._last: dict[tuple[str, int | None], Step] = {}
        self._whole: dict[str, int] = {}
        for step in sorted(picture.of(Step), key=lambda event: event.at.order):
            key = step.at.source, picture.rank_of(step.at)
            bars = self._bars.setdefault(key, {}).setdefault(step.bar or "", [])
            alone = (*(bars[-1] if bars else ()), Mark(step.at.order, step.done))
            bars.append(step.recent or alone)
            if step.done == 0:
                continue  # a bar that was only drawn
            self._last[key] = step
            if key[1] is None and step.done == step.total is not None:
                self._whole[step.at.source] = step.at.order

    def sources(self) -> frozenset[str]:
        """The sources that tell steps."""
        return frozenset(source for source, _ in self._last)

    def last(self, source: str, rank: int | None) -> Step | None:
        """The newest step of a writer."""
        return self._last.get((source, rank))

    def made_whole(self, source: str, order: int) -> bool:
        """Did unknown writers come to the end of a bar behind this place?"""
        return self._whole.get(source, -1) > order

    def anybody_went_on(self, source: str, order: int, *, new: int = _NEW) -> bool:
        """Are there so many new steps of any one writer behind this place?"""
        ranks = [rank for of, rank in self._bars if of == source]
        return any(self.went_on(source, rank, order, new=new) for rank in ranks)

    def went_on(self, source: str, rank: int | None, order: int, *, new: int = _NEW) -> bool:
        """Are there so many new steps behind this place?"""
        for told in self._bars.get((source, rank), {}).values():
            begun = told[0][0].order <= order
            if any(_made(marks, order, begun=begun) >= new for marks in told):
                return True
        return False


def _made(marks: Sequence[Mark], order: int, *, begun: bool) -> int:
    """How many new steps these changes of one bar, the newest ones, tell behind a place."""
    behind = [mark for mark in marks if mark.order > order]
    forms = [mark.form for mark in behind if mark.done is None]
    alike = max(map(forms.count, forms), default=0)
    counts = [mark.done for mark in behind if mark.done]
    rising = _longest_rise(counts)
    if rising >= _RISING or not begun:
        return max(alike, rising)
    before = [mark.done for mark in marks if mark.order <= order and mark.done is not None]
    higher = {count for count in counts if before and count > max(before)}
    return max(alike, len(higher))


def _longest_rise(counts: Sequence[int]) -> int:
    """The most of these counts that rise from one to the next, in order."""
    ends: list[int] = []
    for count in counts:
        at = bisect_left(ends, count)
        ends[at : at + 1] = [count]
    return len(ends)
