"""What the GPUs of a rank tell of it: whether they compute, or only wait for others."""

from slurmtop.triage.live.frames import LONG_WORK, Act
from slurmtop.triage.live.patience import far_too_long, late, stands_for_ever
from slurmtop.triage.live.view import RankView, World

#: GPUs that only wait for each other draw a fifth of their limit or less, whatever their use.
WORKING_POWER = 0.4
#: One with a low limit may draw more than that while it waits, though not so much.
SURE_POWER = 0.6
#: Per cent. A kernel that waits for others is there all the time, and one at rest has none: in
#: between kernels come and go.
_NONE, _ALL_THE_TIME = 10.0, 95.0


def draws_power(one: RankView) -> bool:
    """Do its GPUs draw what they only draw at work, in every look?"""
    return one.gpu_power is not None and one.gpu_power >= WORKING_POWER


def surely_draws(one: RankView) -> bool:
    """Do they draw more than any does that waits, in every look?"""
    return one.gpu_power is not None and one.gpu_power >= SURE_POWER


def is_used(one: RankView) -> bool:
    """May its GPUs be at work, by their power, or by kernels that come and go?"""
    some = one.gpu_busy is not None and _NONE <= one.gpu_busy < _ALL_THE_TIME
    return some or draws_power(one)


def power_tells(world: World, one: RankView) -> bool:
    """Is that power a sign of work still? A card with a low limit may draw it at a wait that never
    ends."""
    return draws_power(one) and (surely_draws(one) or not far_too_long(world))


def shows_through(world: World, away: RankView) -> bool:
    """Is it plain that the others wait for ``away``, though GPUs of some may be at work? Who is
    stopped never comes, whatever they have still to compute, nor does who stands by the kernel's
    word, or waits for a person, for long. Whom all else keeps may wait for just these GPUs: until
    they can have nothing to do any more, by the job's own pace or log, and none surely computes.
    """
    if away.view.always(Act.STOPPED):
        return True
    if not late(world) or stands_for_ever(away.view) or _asks_a_person(away):
        return late(world)
    if not far_too_long(world) or (world.pace is None and not world.timed_out):
        return False
    used = [one for one in world.ranks if is_used(one)]
    return not any(surely_draws(one) or one.doing.phase in LONG_WORK for one in used)


def _asks_a_person(one: RankView) -> bool:
    """Does it read from a terminal, as a debugger does?"""
    activity = one.view.looks[-1].activity
    tty = activity is not None and "tty_read" in (activity.wchan or "")
    return tty and one.view.always(Act.READ)
