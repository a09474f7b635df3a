"""Warm GPUs, naps, and calls of libraries: what they hide, and what they do not."""

from dataclasses import replace

from tests.triage.live import examined_calls as c
from tests.triage.live.examined import Build, Do, spins, waits
from tests.triage.live.examined_beside import hot
from tests.triage.live.examined_case import Case, at_pace, case
from tests.triage.live.examined_hangs import HU, STOPPED, H
from tests.triage.live.examined_patience import FSYNC, GAVE_UP, SWAP
from tests.triage.live.examined_well import COLD, HOT, W

#: What a card with a low limit may draw at a wait, and what a program may that is bound by memory.
WARM = (100.0, 315.0)
LONG, HOURS = 2_400.0, 24_000.0
FIFO = waits(
    "data.py:31 open_pipe",
    *c.STEP,
    wchan="wait_for_partner",
    cpu=0.0,
    wakes=0.0,
    file="/tmp/ctl.fifo",
)
D_DRIVER = spins(*c.STEP, state="D", wchan="os_acquire_rwlock_write", cpu=0.0)
OWN_LOCK = waits("%threading.py:324 wait", "own.py:3 f", *c.MAIN, cpu=0.0, wakes=0.0)
NAPS = waits("data.py:41 get_batch", *c.STEP, wchan="hrtimer_nanosleep", cpu=0.01, wakes=10.0)
#: A barrier of NCCL where waits block: it looks by a clock whether it is over.
BLOCKS = waits(
    f"{c.C10D}:4159 barrier",
    c.LOGGER,
    "train.py:233 evaluate",
    *c.MAIN,
    wchan="hrtimer_nanosleep",
    cpu=0.015,
    wakes=100.0,
)
RECV = c.gloo("recv", 220)


def power() -> list[Case]:
    return [*_hangs(), *_not_hung(), *_naps(), *_in_libraries()]


def _warm(odd: dict[int, Do] | None = None, quiet: float = LONG, *, own: bool = False) -> Build:
    """Where ``own``, the GPUs of those that are odd are warm as well."""
    those = odd or {}
    gpu = {rank: (0.0, 90.0) if rank in those and not own else WARM for rank in range(8)}
    return Build(size=8, usual=c.ITEM, odd=those, gpu=gpu, quiet=quiet)


def _hangs() -> list[Case]:
    stopped, fifo, driver = ({3: one} for one in (STOPPED, FIFO, D_DRIVER))
    one_hot = {**dict.fromkeys(range(8), COLD), 5: HOT}
    pdb = replace(_warm({3: c.PDB}), gpu=one_hot)
    bare = replace(_warm(stopped, HOURS), stacks=False)
    told = replace(_warm(stopped, 25.0), text=GAVE_UP)
    burns = Build(size=8, usual=c.REDUCE, odd=stopped, gpu=HOT, quiet=17.0)
    dark = Build(size=8, usual=c.ITEM, odd=stopped, gpu=COLD, stacks=False, quiet=20.0)
    return [
        case("warm-stopped-8", at_pace(_warm(stopped)), H, ("process-stopped",), {3}, True),
        case("hot-stopped-8", burns, H, ("process-stopped",), {3}, True),
        case("warm-fifo-8", at_pace(_warm(fifo)), H, None, {3}, True),
        case("warm-driver-8", at_pace(_warm(driver)), H, ("io-stuck",), {3}, True),
        case("warm-own-driver-8", at_pace(_warm(driver, own=True)), H, None, {3}, True),
        case("warm-asleep-8", at_pace(_warm({3: c.SLEEPS}, HOURS)), H, None, {3}, True),
        case("one-hot-pdb-8", at_pace(pdb), H, None, {3}, True),
        case("warm-stopped-hours-8-bare", at_pace(bare), H, None, {3}, True),
        case("warm-stopped-told-8", at_pace(told), H, None, {3}, True),
        case("stopped-told-8-bare", at_pace(replace(dark, text=GAVE_UP)), H, None, {3}, True),
    ]


def _not_hung() -> list[Case]:
    """GPUs that may compute: who waits for what may come is no hang beside them."""
    moves = ("its processes move",)
    busy = replace(_warm(quiet=HOURS), gpu=HOT)
    waiting = {name: {0: one} for name, one in (("asks", c.SSL_READ), ("sleeps", c.SLEEPS))}
    hours = "unknown"
    return [
        case("warm-hours-8", at_pace(_warm(quiet=HOURS)), hours),
        case("warm-hours-no-pace-8", _warm(quiet=HOURS), hours),
        case("warm-hours-8-bare", replace(_warm(quiet=HOURS), stacks=False), hours),
        case("warm-gave-up-8", at_pace(replace(_warm(quiet=25.0), text=GAVE_UP)), HU, unsaid=moves),
        case("hot-gave-up-8", replace(busy, quiet=25.0, text=GAVE_UP), HU, unsaid=moves),
        case("warm-quiet-8", at_pace(_warm(quiet=900.0)), W),
        case("hot-hours-8", at_pace(busy), W),
        case("warm-one-asks-8", _warm({0: c.SSL_READ}, 900.0), W),
        case("warm-one-sleeps-8", at_pace(_warm({0: c.SLEEPS}, 900.0)), W),
        *(
            case(f"hot-one-{name}-hours-8", at_pace(replace(busy, odd=odd, gpu=hot({0}, 8))), W)
            for name, odd in waiting.items()
        ),
    ]


def _naps() -> list[Case]:
    def b(usual: Do, odd: dict[int, Do], quiet: float) -> Build:
        return Build(size=8, usual=usual, odd=odd, quiet=quiet, launcher="srun")

    stopped, driver, sync, asleep = (
        at_pace(b(BLOCKS, {3: one}, 25.0)) for one in (STOPPED, D_DRIVER, FSYNC, c.SLEEPS)
    )
    words = ("cannot be told",)
    return [
        case("blocking-stopped-8", stopped, H, ("process-stopped",), {3}, True, unsaid=words),
        case("blocking-driver-8", driver, H, ("io-stuck",), {3}, True, unsaid=words),
        case("blocking-fsync-8", sync, W),
        case("blocking-asleep-8", asleep, HU, None, {3}),
        case("naps-get-batch-8", at_pace(b(c.REDUCE, {3: NAPS}, 240.0)), "unknown"),
        case("naps-get-batch-late-8", at_pace(b(c.REDUCE, {3: NAPS}, LONG)), HU, None, {3}),
        case("all-nap-8", at_pace(b(NAPS, {}, 15.0)), W),
    ]


def _in_libraries() -> list[Case]:
    def b(usual: Do, odd: dict[int, Do], quiet: float = LONG) -> Build:
        return Build(size=8, usual=usual, odd=odd, gpu=COLD, quiet=quiet)

    all_wait = ("all 8 ranks wait for their GPUs",)
    zero = replace(b(c.ZERO3_FETCH, {3: SWAP}), gpu=None)
    return [
        case("swap-25s-8", at_pace(b(c.ITEM, {3: SWAP}, 25.0)), W),
        case("swap-late-8", at_pace(b(c.ITEM, {3: SWAP})), H, None, {3}, True, unsaid=all_wait),
        case("swap-late-zero3-8", at_pace(zero), H, None, {3}, True),
        # They may talk to each other there, or from stage to stage.
        case("swap-of-two-8", at_pace(b(c.ITEM, {3: SWAP, 6: SWAP})), HU),
        case("swap-of-stages-8", at_pace(b(RECV, {3: SWAP})), HU),
        case("swap-and-asleep-8", at_pace(b(c.ITEM, {3: SWAP, 6: c.SLEEPS})), HU, None, {6}),
    ]
