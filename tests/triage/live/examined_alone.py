"""Who waits for nobody beside those that do; and ranks that all wait, for long or not."""

from dataclasses import replace

from tests.triage.live import examined_calls as c
from tests.triage.live.examined import Build
from tests.triage.live.examined_beside import hot, with_thread
from tests.triage.live.examined_case import Case, at_pace, case
from tests.triage.live.examined_hangs import HU, STOPPED, H
from tests.triage.live.examined_patience import GAVE_UP, REWARD
from tests.triage.live.examined_power import BLOCKS, FIFO, OWN_LOCK

_SHORT, _LONG = 25.0, 2_400.0
_COLD = hot(range(8), 8)
_DRIVER = replace(STOPPED, state="D", wchan="os_acquire_rwlock_write")
#: Threads of NCCL or gloo that use a CPU.
_SENDS = replace(c.REDUCE, cpu=0.5, wakes=0.0)
_ON_ITS_WAY = ("data may be on its way",)
_ITS_TURN = ("it may be its turn",)


def alone() -> list[Case]:
    """All of it."""
    return [*_away(), *_all_wait(), *_told_by_the_log()]


def _away() -> list[Case]:
    reduce = Build(size=8, usual=c.REDUCE, quiet=_SHORT)
    unread = replace(c.SSL_READ, no_stack=True)
    barrier = Build(size=8, usual=c.BARRIER, gpu=_COLD, quiet=_SHORT)
    blocks = Build(size=8, usual=BLOCKS, launcher="srun", quiet=_SHORT)
    locked = Build(size=8, usual=c.REDUCE, odd={3: replace(OWN_LOCK, cpu=0.04)}, quiet=_LONG)
    behind = ("may be what is waited for",)
    vague = ("cannot be told",)
    return [
        case(
            "fifo-beside-one-unread-8",
            at_pace(replace(reduce, odd={3: FIFO, 5: unread})),
            H,
            unsaid=behind,
        ),
        case(
            "fifo-beside-a-silent-node-8",
            at_pace(replace(reduce, per=2, odd={3: FIFO}, silent=["gpu04"])),
            H,
            unsaid=behind,
        ),
        # What it sleeps or locks for may be what another one is at.
        case(
            "sleeps-beside-one-unread-8",
            at_pace(replace(reduce, odd={3: c.SLEEPS, 5: unread})),
            "unknown",
        ),
        case(
            "first-sleeps-barrier-8",
            at_pace(replace(barrier, odd={0: c.SLEEPS})),
            H,
            None,
            {0},
            True,
            unsaid=_ITS_TURN,
        ),
        case(
            "first-locked-barrier-8",
            at_pace(replace(barrier, odd={0: OWN_LOCK})),
            H,
            None,
            {0},
            True,
            unsaid=_ITS_TURN,
        ),
        case(
            "first-awaits-its-thread-barrier-8",
            at_pace(replace(barrier, odd={0: REWARD})),
            "healthy unknown",
        ),
        case(
            "first-computes-barrier-8",
            at_pace(replace(barrier, odd={0: c.LOOP})),
            "healthy unknown",
        ),
        case(
            "stopped-blocking-wait-8",
            at_pace(replace(blocks, odd={3: STOPPED})),
            H,
            ("process-stopped",),
            {3},
            True,
            unsaid=vague,
        ),
        case(
            "driver-blocking-wait-8",
            at_pace(replace(blocks, odd={3: _DRIVER})),
            H,
            ("io-stuck",),
            {3},
            True,
            unsaid=vague,
        ),
        case("blocking-wait-short-8", at_pace(blocks), "healthy unknown"),
        case(
            "stopped-one-of-those-at-work-8",
            at_pace(Build(size=8, usual=c.LOOP, odd={3: STOPPED}, quiet=_SHORT)),
            HU,
            None,
            {3},
            unsaid=("gets anywhere",),
        ),
        case(
            "locked-thread-of-little-8",
            at_pace(with_thread(locked, [3], ticks=18)),
            HU,
            unsaid=("wakes up again and again",),
        ),
    ]


def _all_wait() -> list[Case]:
    meets = Build(size=8, usual=c.STORE, launcher="srun", text="starting\n", age=2_420.0)
    ends = ("does not end",)
    out = []
    for name, usual in {"barrier": c.BARRIER, "zero3": c.ZERO3_FETCH, "sends": _SENDS}.items():
        build = Build(size=8, usual=usual, quiet=_LONG)
        out += [
            case(f"all-{name}-late-8", at_pace(build), H, unsaid=_ON_ITS_WAY),
            case(
                f"all-{name}-short-8", at_pace(replace(build, quiet=_SHORT)), "unknown", unsaid=ends
            ),
            # Nothing tells how long its steps are.
            case(f"all-{name}-unpaced-8", replace(build, quiet=500.0), "unknown", unsaid=ends),
        ]
    return [
        *out,
        case("all-meet-late-8", replace(meets, quiet=_LONG), H),
        case("all-meet-short-8", replace(meets, quiet=400.0, age=420.0), "unknown", unsaid=ends),
        case(
            "all-meet-again-8",
            replace(meets, quiet=_LONG, age=60.0, attempt=1),
            "unknown",
            unsaid=ends,
        ),
        case(
            "sweep-cold-8",
            Build(size=8, usual=c.ITEM, launcher="tasks", sweep=True, gpu=_COLD, quiet=_LONG),
            "unknown",
        ),
    ]


def _told_by_the_log() -> list[Case]:
    build = Build(size=8, usual=c.ITEM, gpu=_COLD, quiet=20.0, text=GAVE_UP)
    few = Build(size=8, per=2, usual=c.REDUCE, silent=["gpu04"], quiet=20.0, text=GAVE_UP)
    return [
        case(
            "stopped-bare-told-8",
            at_pace(replace(build, odd={3: STOPPED}, stacks=False)),
            H,
            None,
            {3},
            True,
        ),
        case("all-on-gpus-told-8", at_pace(build), H, ("device-stall",)),
        case("silent-node-told-8", at_pace(few), H),
    ]
