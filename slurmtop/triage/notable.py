"""Lines to show where no rule explains a run: a person sees what made somebody look at the log."""

from collections.abc import Iterator

from slurmtop.model.events.nccl import NcclNetwork, NcclRetry, NcclWarn
from slurmtop.model.events.program import Phase, ProgramSays, Step
from slurmtop.model.events.reports import BenchRow
from slurmtop.model.trace import Event
from slurmtop.triage.finding import Shown
from slurmtop.triage.picture import Picture

#: Sources of which lines are shown, errors and warnings of each, and its last lines.
_SOURCES = 8
_MARKED = 4
_LAST = 2


def notable(picture: Picture) -> Iterator[Shown]:
    """The most notable lines first: errors and warnings, the last progress, then how logs end.

    A log of a few lines is shown whole: somebody chose them.
    """
    sources = picture.traces.sources[-_SOURCES:]
    for source in sources:
        for at in source.notable[: max(_MARKED // len(sources), 1)]:
            yield Shown(at, "it calls itself a warning or an error")
    yield from _newest(picture)
    for source in sources:
        for at in source.tail[-max(_LAST, _MARKED // len(sources)) :]:
            yield Shown(at, "among its last lines")
    for source in sources:
        for at in (*source.notable, *source.tail[::-1]):
            yield Shown(at, "a line of it")


def _newest(picture: Picture) -> Iterator[Shown]:
    """The newest line of each kind that tells how far it came."""
    kinds: tuple[tuple[type[Event], str], ...] = (
        (NcclWarn, "a warning of NCCL"),
        (NcclRetry, "it tries to connect"),
        (BenchRow, "the last row of the test"),
        (Step, "the last step"),
        (Phase, "what it was doing last"),
        (ProgramSays, "the program's own words on its end"),
        (NcclNetwork, "the network that NCCL chose"),
    )
    for kind, says in kinds:
        events = picture.of(kind)
        if events:
            yield Shown(events[-1].at, says)
