"""The GPU use of a job in one cell of the Jobs screen. Pure."""

from datetime import datetime

from slurmtop.model.units import ago_text
from slurmtop.store.gpu_use import JobUse
from slurmtop.ui.present.gpu_grid import DASH, WAITS
from slurmtop.ui.present.spans import Span
from slurmtop.ui.present.spark import spark

WIDTH = 14
#: Older than this the age takes the place of the trend.
_OLD_S = 90.0


def use_span(use: JobUse | None, now: datetime) -> Span:
    """``97% ▆▇▇█``; ``97% 4 min`` where the last look is old; a dash where nobody looked. Most of
    its GPUs full at low power have the sign ``~``: they may only wait."""
    if use is None:
        return (DASH, "dim")
    mean = "n/a" if use.mean_percent is None else f"{use.mean_percent:.0f}%"
    waits = 2 * use.waits > use.known > 0
    if waits:
        mean += WAITS
    age = (now - use.at).total_seconds()
    if age > _OLD_S:
        return (f"{mean} {ago_text(age)}", "dim")
    return (f"{mean:<5} {spark(use.trend, full=100.0)}".rstrip(), "wait" if waits else "")
