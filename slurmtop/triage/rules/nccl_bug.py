"""Faults of NCCL itself: only where a line proves it."""

import re
from collections.abc import Iterable

from slurmtop.model.events.launch import Crash
from slurmtop.model.events.reports import RasComm
from slurmtop.model.verdict import State
from slurmtop.triage.finding import Finding, Shown, Weight
from slurmtop.triage.picture import Picture

#: Functions of NCCL's RAS thread (``src/ras/``), which no program calls: a crash in them is its.
_RAS_FRAME = re.compile(r"\bras[A-Z]\w{2,60}|\bncclRas\w{2,60}|\bras/\w{1,40}\.cc")
#: No job has as many ranks: a number beyond it, or below zero, is memory that was never filled.
_MOST_RANKS = 1 << 20


def damaged(picture: Picture) -> tuple[RasComm, ...]:
    """Findings of RAS that list ranks no communicator can have: nothing in that report holds."""
    return tuple(
        comm
        for comm in picture.of(RasComm)
        if any(not 0 <= one.rank < _MOST_RANKS for one in (*comm.ranks, *comm.missing))
    )


def find(picture: Picture) -> Iterable[Finding]:
    yield from _crashed(picture)
    yield from _nonsense(picture)


def _nonsense(picture: Picture) -> Iterable[Finding]:
    bad = damaged(picture)
    if bad:
        yield Finding(
            cls="nccl-bug",
            weight=Weight.PATTERN,
            summary="NCCL's RAS reports ranks that cannot exist: its report is damaged",
            state=State.UNKNOWN,
            at=bad[0].at,
            shown=tuple(Shown(one.at, "no job has such a rank", "ras") for one in bad[:4]),
        )


def _crashed(picture: Picture) -> Iterable[Finding]:
    for crash in picture.of(Crash):
        if _RAS_FRAME.search(f"{crash.text}\n{crash.at.text}") is None:
            continue
        yield Finding(
            cls="nccl-bug",
            weight=Weight.CAUSE,
            summary="NCCL's own RAS thread crashed the process",
            state=State.FAILED,
            at=crash.at,
            shown=(Shown(crash.at, "the crash stands in the RAS thread"),),
            explains=frozenset({"task-exit", "peer-died", "socket-reset", "shm-exhausted"}),
        )
        return
