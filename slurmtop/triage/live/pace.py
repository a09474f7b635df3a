"""How fast a job makes its steps, and how long its silence has to be before it says anything.

A rank that uses a CPU, and stands at one place of its program each time, may go round and round
there or do one long piece of work. Only the job itself tells which silence is long.
"""

from dataclasses import dataclass
from datetime import datetime

from slurmtop.model.facts import JobFacts, LogFacts, LogStatus
from slurmtop.model.live import LiveFacts
from slurmtop.model.units import ago_text

#: No silence is long that is shorter, nor one that is shorter than so many times its own.
_LEAST_S = 10.0
_TIMES = 3.0
#: Where nobody can tell how fast it is.
UNKNOWN_QUIET_S = 60.0
#: Two lines with a time between them are no pace yet.
_LEAST_LINES = 3
#: Times of lines are mostly told in whole seconds.
_WHOLE_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """``step_s``: seconds a step, on the average; ``line_s``: from one line that tells a new step
    to the next; ``pause_s``: the longest of those that were seen. Rather too long than too short.
    """

    step_s: float
    line_s: float
    pause_s: float = 0.0

    @property
    def long_s(self) -> float:
        """A log that is quiet for longer than this is quieter than it ever was."""
        return max(_LEAST_S, _TIMES * self.line_s, self.pause_s)


def pace_of(facts: JobFacts, began: datetime | None) -> Pace | None:
    """The pace of the newest run, which ``began`` then (by our clock; None: not known), by the log
    that was written last; None where it cannot be told."""
    logs = [
        one
        for one in facts.logs
        if one.status is LogStatus.READ and one.steps is not None and one.mtime is not None
    ]
    if not logs:
        return None
    newest = max(logs, key=lambda one: one.mtime.timestamp() if one.mtime is not None else 0.0)
    again = facts.job is not None and bool(facts.job.restarts)
    return _of_log(newest, began, again=again)


def _of_log(log: LogFacts, began: datetime | None, *, again: bool) -> Pace | None:
    steps = log.steps
    # Of an earlier run nobody has to be as fast as this one.
    if steps is None or (again and not steps.apart):
        return None
    stride = (steps.last - steps.first) / (steps.lines - 1) if steps.lines > 1 else 1.0
    if steps.span_s is not None and steps.pause_s is not None and steps.lines >= _LEAST_LINES:
        span = steps.span_s + _WHOLE_S
        pause = steps.pause_s + _WHOLE_S
        made = max(1, steps.last - steps.first)
        return Pace(step_s=span / made, line_s=span / (steps.lines - 1), pause_s=pause)
    if steps.told_s is not None:
        return Pace(step_s=steps.told_s, line_s=steps.told_s)
    if again or steps.begin is None or began is None or log.mtime is None:
        return None
    # All that it did before its first step counts as well: so it is rather too long.
    used = (log.mtime - began).total_seconds()
    if used <= 0:
        return None
    made = steps.last - steps.begin + 1
    return Pace(step_s=used / made, line_s=used * min(1.0, stride / made))


def is_long(pace: Pace | None, live: LiveFacts) -> bool:
    """Is its log quiet for so long that work at one place is no more a step like the others?"""
    quiet = live.log.quiet_s
    if quiet is None or live.log.grew:
        return False
    return quiet > (pace.long_s if pace is not None else UNKNOWN_QUIET_S)


def wait_text(pace: Pace | None, live: LiveFacts) -> str:
    """What to wait for, where its silence is not long yet."""
    if live.log.quiet_s is None:
        return "no log tells how long it is at this"
    if pace is None:
        return f"nothing tells how long a step takes: {_again(UNKNOWN_QUIET_S)}"
    took = max(1.0, pace.step_s)
    if pace.line_s >= 2 * took:
        return f"a line with a step came about every {ago_text(pace.line_s)}: {_again(pace.long_s)}"
    return f"a step took about {ago_text(took)} so far: {_again(pace.long_s)}"


def _again(seconds: float) -> str:
    return f"look again once its log is quiet for {ago_text(seconds + 1)}"
