"""What Slurm's own reason of a node says: so far, how many of its GPUs are missing.

slurmctld writes it when a node registers with fewer than configured (``gres.c``, the first form
since 21.08, the second before)::

    gres/gpu count reported lower than configured (7 < 8)
    gres/gpu count too low (7 < 8)
"""

import re

_FEWER = re.compile(
    r"gres/gpu(?::[\w.-]{1,64})? count (?:reported lower than configured|too low)"
    r" \((?P<found>\d{1,5}) < (?P<configured>\d{1,5})\)"
)


def lost_gpus(reason: str | None) -> int | None:
    """GPUs that are configured and not there. None where the reason does not speak of it."""
    found = [] if reason is None else list(_FEWER.finditer(reason))
    missing = [int(one["configured"]) - int(one["found"]) for one in found]
    return sum(missing) if missing and min(missing) > 0 else None
