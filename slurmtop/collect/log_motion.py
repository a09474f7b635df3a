"""Whether the logs of a job went on between two looks at them. Pure."""

from collections.abc import Sequence
from datetime import datetime

from slurmtop.model.facts import LogFacts, LogStatus, Progress
from slurmtop.model.live import LogMotion

#: A log that is not there yet may be made by the job meanwhile.
_KNOWN = (LogStatus.READ, LogStatus.ABSENT)


def motion(first: Sequence[LogFacts], newest: Sequence[LogFacts], now: datetime) -> LogMotion:
    """From the ``first`` look at the logs of a job to the ``newest`` one, which was at ``now``.

    The logs stand in the same order. A log that was cut meanwhile was written to as well.
    """
    pairs = [
        (old, new)
        for old, new in zip(first, newest, strict=False)
        if old.status in _KNOWN and new.status is LogStatus.READ
    ]
    written = [new.mtime for _, new in pairs if new.mtime is not None]
    quiet_s = max(0.0, (now - max(written)).total_seconds()) if written else None
    return LogMotion(
        grew=any((old.size or 0) != new.size for old, new in pairs) if pairs else None,
        new_steps=any(_newer(old.progress, new.progress) for old, new in pairs),
        quiet_s=quiet_s,
    )


def _newer(old: Progress | None, new: Progress | None) -> bool:
    if new is None:
        return False
    return old is None or new.step != old.step or new.line.offset > old.line.offset
