"""What to add to the stamps of each source so that all show one clock.

An offset is only told by a moment that several sources share for certain: a communicator is
complete on all of its ranks at once, because its set-up ends with a barrier. Everything else
(two timeouts, two exits) may lie minutes apart, and without a shared moment the offset is 0:
clocks of one cluster usually agree to the millisecond.
"""

from collections.abc import Mapping
from statistics import median

from slurmtop.model.events.nccl import CommInit, InitPhase
from slurmtop.model.trace import Clock, Traces

#: Differences of the shared moments of two sources must agree within this, or they are no clock's.
_AGREE_S = 2.0
#: A smaller offset than this cannot be told from the time between two lines.
_LEAST_S = 2.0
#: Zones lie a multiple of this apart; one shared moment is enough to tell such an offset.
_ZONE_STEP_S = 900.0


def clock_offsets(traces: Traces) -> dict[str, float]:
    """Seconds to add to each source's stamps, for the sources whose clock is off."""
    moments: dict[str, dict[str, float]] = {}
    for event in traces.of(CommInit):
        stamp = event.at.stamp
        if event.phase is not InitPhase.COMPLETE or event.comm_id is None or stamp is None:
            continue
        if stamp.clock is Clock.WALL:
            # The last rank's line of a source is the one nearest to the common end.
            of_source = moments.setdefault(event.at.source, {})
            of_source[event.comm_id] = max(of_source.get(event.comm_id, 0.0), stamp.seconds)
    out: dict[str, float] = {}
    reference: dict[str, float] = {}
    for source, told in moments.items():
        offset = _offset(reference, told) if reference else 0.0
        if offset:
            out[source] = offset
        for comm_id, seconds in told.items():
            reference.setdefault(comm_id, seconds + offset)
    return out


def _offset(reference: Mapping[str, float], told: Mapping[str, float]) -> float:
    gaps = sorted(reference[one] - told[one] for one in told.keys() & reference.keys())
    if not gaps or gaps[-1] - gaps[0] > _AGREE_S:
        return 0.0
    middle = median(gaps)
    if abs(middle) < _LEAST_S:
        return 0.0
    if len(gaps) > 1:
        return middle
    zones = round(middle / _ZONE_STEP_S)
    return middle if zones and abs(middle - zones * _ZONE_STEP_S) <= _AGREE_S else 0.0
