"""Faults of NCCL itself: only where a line proves it."""

import re
from collections.abc import Iterable

from slurmtop.model.events.launch import Crash
from slurmtop.model.verdict import State
from slurmtop.triage.finding import Finding, Shown, Weight
from slurmtop.triage.picture import Picture

#: Functions of NCCL's RAS thread (``src/ras/``), which no program calls: a crash in them is its.
_RAS_FRAME = re.compile(r"\bras[A-Z]\w{2,60}|\bncclRas\w{2,60}|\bras/\w{1,40}\.cc")


def find(picture: Picture) -> Iterable[Finding]:
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
