"""Who waits for others, who is away, who works: the part of each rank in a job that stands.

Who is away is so by what is seen of itself alone, never because others are many. What cannot be
told is open, and nobody who is open is named.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from slurmtop.triage.live.doing import PERHAPS_ON_OTHERS, Doing
from slurmtop.triage.live.frames import LONG_WORK, Act, Phase, tries_again
from slurmtop.triage.live.motion import Motion
from slurmtop.triage.live.patience import (
    WATCHING_SHARE,
    ends_by_itself,
    late,
    loading,
    long_silence,
    no_other_end,
    on_files,
    only_watches,
    serving,
    stands_for_ever,
    threads_compute,
    threads_get_on,
    threads_moved,
    threads_work,
)
from slurmtop.triage.live.power import (
    draws_power,
    is_used,
    power_tells,
    shows_through,
    surely_draws,
)
from slurmtop.triage.live.view import ProcessView, RankView, World

#: Waits of a process for itself, by its stack.
_BY_STACK = frozenset({Act.SLEEP, Act.READ, Act.LOCK, Act.CHILD, Act.SOCKET, Act.POLL, Act.GIL})
#: Waits that the kernel alone may tell. A lock may be a collective, and so may a socket.
_BY_KERNEL = frozenset({Act.SLEEP, Act.READ})
#: In these a main thread may wait for its own threads.
_FOR_THREADS = frozenset({Act.LOCK, Act.POLL, Act.CHILD, Act.SOCKET})
#: A step on GPUs takes its time: only a log quiet for so long makes a spinning rank doubtful.
LONG_QUIET_S = 120.0
_STUCK_WORKER = frozenset({Act.SLEEP, Act.READ, Act.DISK, Act.STOPPED})


class Role(StrEnum):
    WAITS = "waits"
    """In a collective, a send or receive or at the meeting point, by its stack."""
    SEEMS = "seems to wait"
    """For its GPU or for a lock, as those do who wait for others."""
    AWAY = "away"
    """Stands still, and waits for nobody else."""
    WORKS = "works"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Parts:
    """The ranks of a world by role."""

    waits: tuple[RankView, ...]
    seems: tuple[RankView, ...]
    away: tuple[RankView, ...]
    works: tuple[RankView, ...]
    open: tuple[RankView, ...]

    @property
    def waiting(self) -> tuple[RankView, ...]:
        return (*self.waits, *self.seems)


def parts_of(world: World) -> Parts:
    """Each rank in its role. With a single look nobody is away."""
    herd, watched = _herd(world), _watched(world)
    roles = [(one, role_of(world, one, watched=watched)) for one in world.ranks]
    away = [one for one, role in roles if role is Role.AWAY]
    ever = any(stands_for_ever(one.view) for one in away)
    plain = any(shows_through(world, one) for one in away)
    found: dict[Role, list[RankView]] = {role: [] for role in Role}
    waiting = sum(role in (Role.WAITS, Role.SEEMS) for _, role in roles)
    for one, told in roles:
        role = told
        if role in (Role.WORKS, Role.OPEN) and plain and is_used(one):
            role = _by_itself(world, one, watched)
            role = Role.OPEN if role is Role.AWAY else role
        if role is Role.WORKS and _only_naps(one) and 2 * waiting > world.count:
            # So does who looks again and again for what does not come.
            role = Role.OPEN
        # All that close down spin at one place for a while, and then are gone.
        ends = one.doing.phase is Phase.TEARDOWN and not late(world)
        used = is_used(one) and not plain
        if role is Role.OPEN and _place(one.doing) in herd and not ends and not used:
            role = Role.SEEMS
        if role is Role.OPEN and ever and one.on_others and one.motion is Motion.POLLS:
            # It waits for one that never comes: nothing has to be awaited to see that.
            role = Role.WAITS
        found[role].append(one)
    alone = _alone(world, found)
    if alone is not None:
        for those in found.values():
            those[:] = [one for one in those if one is not alone]
        found[Role.AWAY].append(alone)
    return Parts(
        waits=tuple(found[Role.WAITS]),
        seems=tuple(found[Role.SEEMS]),
        away=tuple(found[Role.AWAY]),
        works=tuple(found[Role.WORKS]),
        open=tuple(found[Role.OPEN]),
    )


def _alone(world: World, found: Mapping[Role, Collection[RankView]]) -> RankView | None:
    """The only one that waits for a lock below a library that talks in groups, or for the network
    below a line of the program, where all others wait elsewhere: whoever it talks to there would be
    there as well."""
    those = [one for one in found[Role.SEEMS] if _in_framework(one.doing)]
    those += [one for one in found[Role.OPEN] if _asks_by_itself(world, one)]
    others = [one for one in (*found[Role.WAITS], *found[Role.SEEMS]) if one not in those]
    if len(those) != 1 or world.count < 3 or len(others) != world.count - 1 or not late(world):
        return None
    told = all(one.doing.by_stack for one in others)
    # From stage to stage of a pipeline each waits at a place of its own.
    if not told or any(one.doing.act in (Act.P2P, Act.LOCK) for one in others):
        return None
    return None if threads_work(those[0].view) else those[0]


def _asks_by_itself(world: World, one: RankView) -> bool:
    """Does it wait for the network below a line of the program, and does nothing that it started
    work?"""
    doing = one.doing
    waits = doing.by_stack and doing.act in (Act.SOCKET, Act.POLL) and _told_by_kernel_only(doing)
    still = waits and one.motion is Motion.STILL and not is_used(one)
    return still and not _below_unknown(world, one) and _away(world, one) is Role.AWAY


def _in_framework(doing: Doing) -> bool:
    """Does it wait for a lock below a call of a library that talks in groups by itself, of which
    there are more than any table has?"""
    waits = doing.by_stack and doing.act is Act.LOCK and not _told_by_kernel_only(doing)
    return waits and doing.below_library and doing.framework


def role_of(world: World, one: RankView, *, watched: bool = False) -> Role:
    """``watched``: have most ranks a thread that uses a little of a CPU, whatever they do?"""
    role = _by_itself(world, one, watched)
    if role is Role.AWAY and _may_be_left(world, one):
        return Role.OPEN
    if len(one.view.looks) < 2 or not world.two or not is_used(one):
        return role
    # Two looks at a driver that is slow are no proof against a GPU that computes.
    ever = stands_for_ever(one.view) and late(world) and not surely_draws(one)
    if role is Role.WORKS or (role is Role.AWAY and (ever or one.view.always(Act.STOPPED))):
        return role
    # Whatever its main thread waits for: that ends when its GPU has done what it is at.
    return Role.WORKS if power_tells(world, one) else Role.OPEN


def _may_be_left(world: World, one: RankView) -> bool:
    """Is it one of several that may be the same rank? What an earlier attempt left behind is waited
    for by nobody."""
    return one.rank is None and world.size is not None and len(world.ranks) > world.size


def _by_itself(world: World, one: RankView, watched: bool) -> Role:
    """Its role by all but the power of its GPUs."""
    view, motion = one.view, one.motion
    if not world.two or len(view.looks) < 2:
        return Role.OPEN
    if view.always(Act.STOPPED):
        return Role.AWAY
    if motion is Motion.MOVED:
        return Role.OPEN if may_spin(world, one) else Role.WORKS
    if one.on_others:
        # Who polls by a clock may have come by here again and again: only a long silence tells.
        waits = motion is Motion.STILL or (motion is Motion.POLLS and late(world))
        return Role.WAITS if waits else Role.OPEN
    if view.always(Act.DISK):
        waits = on_files(view) and not late(world)
        return Role.AWAY if motion is Motion.STILL and not waits else Role.OPEN
    if motion is Motion.STILL:
        return _of_still(world, one, watched)
    if motion is Motion.POLLS:
        return _of_polling(world, one, watched)
    if motion is Motion.LOOPS:
        # One long piece of work looks like this too: only a long silence tells.
        return Role.AWAY if _loops(view) and long_silence(world) else Role.OPEN
    if view.doing.act in PERHAPS_ON_OTHERS and _same_place(view):
        return Role.SEEMS
    return Role.OPEN


def may_spin(world: World, one: RankView) -> bool:
    """Is a CPU in use all that is known of it? Who waits for a GPU spins on one as well."""
    quiet, changed = world.live.log.quiet_s, one.view.change
    short = quiet is not None and quiet < LONG_QUIET_S and not world.timed_out
    if not world.gpus or world.live.log.grew or short:
        return False
    if any(look.doing.by_stack or look.doing.act is not Act.BUSY for look in one.view.looks):
        return False
    if changed is not None and changed.io_grew:
        return False
    return not _below_works(one) and not power_tells(world, one)


def _of_polling(world: World, one: RankView, watched: bool) -> Role:
    """It wakes up again and again at one place: in short sleeps between pieces of work, or only to
    look whether something has come. A long silence tells that it does not come."""
    doing = one.doing
    again = any(map(tries_again, doing.frames))
    paces = doing.by_stack and doing.act is Act.SLEEP and not again
    if not late(world):
        return Role.WORKS if paces else Role.OPEN
    # NCCL polls as well where its waits block, and only the kernel shows that it does.
    kernel_only = _told_by_kernel_only(doing) or doing.below_library
    told = doing.by_stack and (again or not kernel_only)
    return _of_still(world, one, watched) if told else Role.OPEN


def _only_naps(one: RankView) -> bool:
    """Is it seen to wake up again and again, and to get on by nothing?"""
    gets_on = draws_power(one) or _below_works(one) or threads_work(one.view)
    return one.motion is Motion.POLLS and not gets_on


def _of_still(world: World, one: RankView, watched: bool) -> Role:
    view, doing = one.view, one.doing
    acts = {look.doing.act for look in view.looks}
    if doing.act in PERHAPS_ON_OTHERS:
        return Role.SEEMS
    if not doing.by_stack:
        if acts <= _BY_KERNEL or stuck_workers(one) or acts == {Act.CHILD}:
            return _away(world, one)
        seems = acts == {Act.LOCK} and view.in_group and not _below_works(one)
        return Role.SEEMS if seems and not _threads_matter(view, watched) else Role.OPEN
    if doing.act not in _BY_STACK:
        return Role.OPEN
    if _told_by_kernel_only(doing) and doing.act in (Act.LOCK, Act.SOCKET, Act.POLL):
        # A line of the program below which C code waits: it may be the wait for a collective.
        seems = doing.act is Act.LOCK and view.in_group and not _threads_matter(view, watched)
        return Role.SEEMS if seems else Role.OPEN
    if _in_framework(doing) and late(world):
        return Role.SEEMS if view.in_group else Role.OPEN
    return Role.OPEN if _below_unknown(world, one) else _away(world, one)


def _away(world: World, one: RankView) -> Role:
    """It stands still and waits for nobody else: is that for ever?"""
    if no_other_end(one.view):
        return Role.AWAY
    below = at_work_below(one)
    if below and one.doing.act not in _FOR_THREADS and all(map(only_watches, below)):
        return Role.OPEN
    if below:
        return Role.WORKS
    if one.doing.act is Act.GIL:
        # Its other threads only wake up to see whether they get the interpreter.
        return Role.AWAY
    if one.doing.act in _FOR_THREADS:
        # A main thread that waits for its own threads works where they do.
        if threads_compute(one.view) or threads_get_on(one.view):
            return Role.WORKS
        if threads_moved(one.view):
            return Role.OPEN
    elif threads_compute(one.view, WATCHING_SHARE):
        return Role.OPEN
    return Role.OPEN if ends_by_itself(one) and not late(world) else Role.AWAY


def _threads_matter(view: ProcessView, watched: bool) -> bool:
    """May one that seems to wait for others be waiting for its own threads instead?"""
    if threads_compute(view, WATCHING_SHARE):
        return True
    return threads_moved(view) or (threads_compute(view) and not watched)


def _watched(world: World) -> bool:
    """Does a thread of most ranks use a little of a CPU, as one does that measures and tells?"""
    count = sum(threads_compute(one.view) for one in world.ranks)
    return 2 * count > world.count


def _told_by_kernel_only(doing: Doing) -> bool:
    """Is the program's own code innermost, so that only the kernel tells what it waits for?"""
    return bool(doing.frames) and doing.frames[0] == doing.site


def may_loop(world: World, one: RankView) -> bool:
    """Does it go round at one place, and is the silence too short yet to call that a hang?"""
    loops = one.motion is Motion.LOOPS and _loops(one.view)
    return loops and not long_silence(world)


def _loops(view: ProcessView) -> bool:
    """Is it the interpreter that goes round, at one place that is no long work?"""
    looks = [one.doing for one in view.looks]
    busy = all(one.by_stack and one.act is Act.BUSY and one.gil is not False for one in looks)
    told = any(one.gil for one in looks)
    return busy and told and not any(one.phase in LONG_WORK for one in looks)


def _below_works(one: RankView) -> bool:
    """Does something work that the rank has started: a compiler, a worker of its loader?"""
    return bool(at_work_below(one))


def at_work_below(one: RankView) -> list[ProcessView]:
    """What the rank has started and what works. What only tells of the rank is at work as long as
    the rank is there, and does not count."""
    return [
        child
        for child in serving(one)
        # A new one every few seconds is a compiler, one file after the other.
        if len(child.looks) < 2
        or child.motion in (Motion.MOVED, Motion.LOOPS)
        or (child.change is not None and (child.change.works or child.change.io_grew))
    ]


def _below_unknown(world: World, one: RankView) -> bool:
    """May it have started something of which nobody can say whether it works?"""
    probe = world.probe(one.host)
    look = probe.processes if probe is not None else None
    if look is not None and not look.complete and one.doing.act in (Act.POLL, Act.CHILD):
        return True
    return any(
        child.change is None or (child.change.cpu_share is None and child.change.asleep is None)
        for child in serving(one)
        if len(child.looks) > 1
    )


def stuck_workers(one: RankView) -> tuple[ProcessView, ...]:
    """Processes below a rank that waits to be told something, of which none comes back."""
    if not one.view.always(Act.POLL, Act.READ, Act.LOCK) or one.view.doing.act is Act.LOCK:
        return ()
    return tuple(
        child
        for child in loading(one)
        if len(child.looks) > 1
        and all(look.doing.act in _STUCK_WORKER for look in child.looks)
        and child.motion is Motion.STILL
        and _is_waited_for(child)
    )


def _is_waited_for(child: ProcessView) -> bool:
    """A worker that has nothing to do reads from a pipe or waits for a lock, and so does one that
    waits for work; who sleeps by a clock, or opens a file, has taken work."""
    if child.act is not Act.READ:
        return True
    activity = child.looks[-1].activity
    wchan = (activity.wchan or "") if activity is not None else ""
    return wchan.startswith(("wait_for_partner", "fifo_"))


def _place(doing: Doing) -> tuple[object, ...] | None:
    if not doing.by_stack or doing.gil or not doing.busy:
        return None
    return tuple((one.function, one.file, one.line) for one in doing.frames)


def _same_place(view: ProcessView) -> bool:
    return all(look.doing.frames == view.doing.frames for look in view.looks)


def _herd(world: World) -> frozenset[tuple[object, ...]]:
    """The place at which more than half of all ranks spin in C code, in every look: they wait there
    for their GPUs, and so for one another, whatever the name of the call is. Those that cannot run
    at all are at no place of their own choice."""
    counts: dict[tuple[object, ...], int] = {}
    stand = sum(one.view.always(Act.STOPPED, Act.DISK) for one in world.ranks)
    least = max(2, (world.count - stand) // 2 + 1)
    for one in world.ranks:
        place = _place(one.doing)
        if place is not None and len(one.view.looks) > 1 and _same_place(one.view):
            counts[place] = counts.get(place, 0) + 1
    return frozenset(place for place, count in counts.items() if count >= least)
