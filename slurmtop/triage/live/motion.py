"""Whether a process moved between two looks at it.

CPU alone is no progress: who waits for others may burn it (a busy poll, NCCL's proxy threads), and
an endless loop does too. That the main thread was not once put on a CPU is proof that it did not
move; that its stack changed is proof that it did.
"""

from dataclasses import dataclass
from enum import StrEnum

from slurmtop.model.probe import Activity
from slurmtop.model.stacks import Frame
from slurmtop.triage.live.doing import PERHAPS_ON_OTHERS, Doing
from slurmtop.triage.live.frames import Act, is_own, tries_again
from slurmtop.triage.live.kernel_signs import main_thread

#: A thread that was put on a CPU at most so often a second only wakes up to look at a clock.
_SELDOM_A_S = 2.5
#: Up to this share of a CPU is no work.
_IDLE_SHARE = 0.02
#: Fewer bytes than these are a line in a log.
_SOME_BYTES = 65_536
#: Who wakes up by a clock only to look whether something has ended uses no more than this.
_POLLING_SHARE = 0.05
#: Beginnings of the names that torch, gloo, NCCL and UCX give to their threads.
_TRANSPORTS = ("pt_gloo", "pt_nccl", "gloo_", "nccl", "pt_tcpstore", "ucx", "ucs_")
#: What was put on a CPU at most so often did not move at all: somebody looked at it.
_AT_REST = 1


class Motion(StrEnum):
    UNKNOWN = "unknown"
    """There is only one look at it, or too little can be compared."""
    STILL = "still"
    """It did not move: never on a CPU, or stopped, or seldom awake and always at one place."""
    LOOPS = "loops"
    """It works, and stands at one place of the program each time."""
    POLLS = "polls"
    """It wakes up again and again at one place, uses next to nothing, and may only look whether
    something has come."""
    MOVED = "moved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What changed of one process from one look to the next; None: not known.

    ``cpu_share`` is that of one CPU, all its threads together, ``main_share`` its main thread's,
    ``others_share`` that of all others but those that carry data from rank to rank.
    """

    seconds: float
    cpu_share: float | None = None
    main_share: float | None = None
    switches: int | None = None
    read_bytes: int | None = None
    written_bytes: int | None = None
    same_state: bool = False
    others_share: float | None = None

    @property
    def io_grew(self) -> bool:
        return max(self.read_bytes or 0, self.written_bytes or 0) >= _SOME_BYTES

    @property
    def asleep(self) -> bool | None:
        """Was it never, or hardly ever, on a CPU? None: not known."""
        if self.switches is None:
            return None
        if self.switches <= _AT_REST:
            return True
        seldom = self.switches <= _SELDOM_A_S * self.seconds
        share = self.main_share if self.main_share is not None else self.cpu_share
        return seldom and share is not None and share <= _IDLE_SHARE

    @property
    def works(self) -> bool:
        """Did it use a CPU by more than waking up costs?"""
        return self.cpu_share is not None and self.cpu_share > _IDLE_SHARE


def change(
    first: Activity | None, last: Activity | None, seconds: float, ticks_per_s: int
) -> Change | None:
    """What changed of one process between two looks, ``seconds`` apart."""
    if first is None or last is None or first.key != last.key or seconds <= 0:
        return None
    cpu = _counted(first, last, "cpu_ticks")
    before, after = main_thread(first), main_thread(last)
    main = _grown(before.cpu_ticks, after.cpu_ticks) if before and after else None
    unit = seconds * max(1, ticks_per_s)
    switches = _counted(first, last, "switches")
    others, transports = _of_others(first, last)
    if cpu is not None and switches is not None and switches <= _AT_REST and last.state != "R":
        # Its main thread was never on a CPU: the others did all, also those that are not listed.
        others = max(others or 0, cpu - transports)
    return Change(
        seconds=seconds,
        cpu_share=None if cpu is None else cpu / unit,
        main_share=None if main is None else main / unit,
        switches=switches,
        read_bytes=_most(first, last, "read_bytes", "read_chars"),
        written_bytes=_most(first, last, "written_bytes", "written_chars"),
        same_state=(first.state, first.wchan) == (last.state, last.wchan),
        others_share=None if others is None else others / unit,
    )


def is_transport(name: str) -> bool:
    """Does a thread of this name carry data from rank to rank, or watch over that?"""
    return name.lower().startswith(_TRANSPORTS)


def _of_others(first: Activity, last: Activity) -> tuple[int | None, int]:
    """Ticks of the threads beside the main one: of those that do the program's own work (None: not
    told), and of those that carry data."""
    was = {one.tid: one.cpu_ticks for one in first.threads}
    own, carried, told = 0, 0, False
    for one in last.threads:
        ticks = _grown(was.get(one.tid), one.cpu_ticks)
        if one.tid == last.pid or ticks is None:
            continue
        told = True
        if is_transport(one.name):
            carried += ticks
        else:
            own += ticks
    return (own if told else None), carried


def _grown(was: int | None, now: int | None) -> int | None:
    return None if was is None or now is None or now < was else now - was


def _counted(first: Activity, last: Activity, name: str) -> int | None:
    """How much a counter grew: by the later readings of the two looks, or else by the earlier."""
    later = _grown(getattr(first.second, name), getattr(last.second, name))
    return (
        later
        if later is not None
        else _grown(getattr(first.first, name), getattr(last.first, name))
    )


def _most(first: Activity, last: Activity, *names: str) -> int | None:
    known = [grown for one in names if (grown := _counted(first, last, one)) is not None]
    return max(known) if known else None


def motion_of(first: Doing, last: Doing, changed: Change | None) -> Motion:
    """Whether who did ``first`` and then ``last`` moved in between."""
    stopped = (Act.STOPPED,)
    if first.act in stopped and last.act in stopped:
        return Motion.STILL
    asleep = changed.asleep if changed is not None else None
    if changed is not None and changed.io_grew and not last.on_others:
        return Motion.MOVED
    if first.by_stack and last.by_stack:
        if _place(first) == _place(last) or _near(first.frames, last.frames):
            return _at_one_place(first, last, changed, asleep)
        return Motion.POLLS if _tries_again(first, last, changed) else Motion.MOVED
    if asleep and changed is not None and changed.same_state:
        return Motion.STILL
    if asleep is False:
        napping = first.act is last.act is Act.SLEEP and changed is not None and _polls(changed)
        return Motion.POLLS if napping else Motion.MOVED
    return Motion.UNKNOWN


def _at_one_place(first: Doing, last: Doing, changed: Change | None, asleep: bool | None) -> Motion:
    if last.on_others and first.on_others:
        # It may have come by here again and again; only a main thread that slept did not.
        if changed is None or asleep is None:
            return Motion.UNKNOWN
        if asleep or _waits_busily(changed):
            return Motion.STILL
        return Motion.POLLS if _polls(changed) else Motion.MOVED
    if asleep:
        return Motion.STILL
    if asleep is None or last.act in PERHAPS_ON_OTHERS:
        # Who waits for a GPU spins, and stands at the same line in every step.
        return Motion.UNKNOWN
    if last.act in (Act.BUSY, Act.GIL) or first.act in (Act.BUSY, Act.GIL):
        return Motion.LOOPS
    if first.act is last.act and last.act in (Act.SLEEP, Act.LOCK):
        if changed is not None and _polls(changed):
            return Motion.POLLS
        if first.active and last.active:
            # C code spins there: nobody can tell for what.
            return Motion.UNKNOWN
    return Motion.MOVED


def _polls(changed: Change) -> bool:
    """Does it do little more than wake up again and again? So NCCL waits where waits block."""
    share = changed.main_share if changed.main_share is not None else changed.cpu_share
    return share is not None and share <= _POLLING_SHARE


def _tries_again(first: Doing, last: Doing, changed: Change | None) -> bool:
    """Was it in the same call both times that tries something again and again, and used next to
    nothing? Then that it stands elsewhere in it tells nothing."""
    if changed is None or not _polls(changed):
        return False
    for one, other in zip(reversed(first.frames), reversed(last.frames), strict=False):
        if (one.function, one.file) != (other.function, other.file):
            return False
        if tries_again(one):
            return True
        if one != other:
            return False
    return False


def _waits_busily(changed: Change) -> bool:
    """Does it poll without a pause? Then it is never put to sleep, and moves nowhere."""
    share = changed.main_share if changed.main_share is not None else changed.cpu_share
    return share is not None and share > 0.9


def _place(doing: Doing) -> tuple[tuple[str, str, int | None], ...]:
    return tuple((one.function, one.file, one.line) for one in doing.frames)


def _near(first: tuple[Frame, ...], last: tuple[Frame, ...]) -> bool:
    """Two moments of one loop of the program's own: all calls the same up to one function, and in
    that another line, or one call of its own more or less."""
    outer = 0
    for one, other in zip(reversed(first), reversed(last), strict=False):
        if one != other:
            break
        outer += 1
    inner, others = first[: len(first) - outer], last[: len(last) - outer]
    if max(len(inner), len(others)) > 2 or not all(map(is_own, (*inner, *others))):
        return False
    if inner and others:
        return (inner[-1].function, inner[-1].file) == (others[-1].function, others[-1].file)
    return True
