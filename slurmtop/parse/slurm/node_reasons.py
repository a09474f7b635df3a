"""What Slurm's own reason of a node says: so far, how many of its GPUs are missing.

slurmctld writes it when a node registers with fewer than configured (``gres.c``, the first form
since 21.08, the second before)::

    gres/gpu count reported lower than configured (7 < 8)
    gres/gpu count too low (7 < 8)

With typed GPUs it may say both, the sum and each type: the same cards twice.
"""

import re

_FEWER = re.compile(
    r"gres/gpu(?::(?P<type>[\w.-]{1,64}))? count (?:reported lower than configured|too low)"
    r" \((?P<found>\d{1,5}) < (?P<configured>\d{1,5})\)"
)


def lost_gpus(reason: str | None) -> int | None:
    """GPUs that are configured and not there. None where the reason does not speak of it."""
    missing: dict[str, int] = {}
    for one in _FEWER.finditer(reason or ""):
        fewer = int(one["configured"]) - int(one["found"])
        if fewer <= 0:
            return None
        missing[one["type"] or ""] = max(fewer, missing.get(one["type"] or "", 0))
    in_all = missing.pop("", 0)
    return max(in_all, sum(missing.values())) or None
