"""The program called NCCL wrongly, by NCCL's own check of its arguments."""

import re
from collections.abc import Iterable, Iterator

from slurmtop.model.events.nccl import NcclWarn, Warn
from slurmtop.model.verdict import State
from slurmtop.triage.finding import Finding, Weight
from slurmtop.triage.picture import Picture
from slurmtop.triage.rules import lines

#: Two threads, or two launches, were in one communicator at once.
_AT_ONCE = re.compile(r"racing to launch|Fatal: host threads")


def find(picture: Picture) -> Iterable[Finding]:
    yield from _calls_differ(picture)
    yield from _wrong_call(picture)


def _calls_differ(picture: Picture) -> Iterator[Finding]:
    """NCCL 2.4 compared the calls of its ranks; whose call is the odd one it does not tell."""
    warns = [one for one in picture.of(NcclWarn) if one.kind is Warn.CALLS_DIFFER]
    if warns:
        yield Finding(
            cls="collective-op-mismatch",
            weight=Weight.CAUSE,
            summary="NCCL found that its ranks made different calls",
            state=State.FAILED,
            at=warns[0].at,
            shown=lines.lines(picture, warns, "the calls of the ranks differ"),
            explains=lines.AFTER_A_DEATH,
        )


def _wrong_call(picture: Picture) -> Iterator[Finding]:
    warns = [one for one in picture.of(NcclWarn) if one.kind is Warn.USAGE]
    if not warns:
        return
    at_once = [one for one in warns if _AT_ONCE.search(one.text)]
    told = at_once or warns
    yield Finding(
        cls="concurrent-use" if at_once else None,
        weight=Weight.PATTERN if at_once else Weight.SYMPTOM,
        summary="one communicator was used at several places at once"
        if at_once
        else "NCCL refused a call of the program: its arguments do not fit",
        state=State.FAILED,
        at=told[0].at,
        shown=lines.lines(picture, told, "NCCL's check of the call"),
        explains=frozenset({"task-exit"}),
    )
