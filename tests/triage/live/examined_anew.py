"""Whose silence it is: ranks that an earlier attempt's lines do not concern, that srun alone has
started, that another launch runs beside, and those that have ended."""

from collections.abc import Callable
from dataclasses import replace

from slurmtop.model.facts import JobFacts
from tests.triage.live import examined_calls as c
from tests.triage.live.examined import Build, Do, facts_of, spins, waits
from tests.triage.live.examined_beside import two
from tests.triage.live.examined_case import Case, at_pace, case
from tests.triage.live.examined_hangs import DONE, HU, STOPPED, H
from tests.triage.live.examined_patience import GAVE_UP
from tests.triage.live.examined_power import D_DRIVER, FIFO, OWN_LOCK
from tests.triage.live.examined_well import FORWARDS, HOT, W

_GONE = Do(gone=True)
_COLD = dict.fromkeys(range(8), (100.0, 110.0))
_GIL = waits("tok.py:19 encode", *c.STEP, wchan="hrtimer_nanosleep", cpu=0.0, gil=True)
_LIGHTNING = spins(
    "@lightning/fabric/utilities/apply.py:30 f",
    "@lightning/pytorch/loops/training_epoch_loop.py:150 advance",
    "@lightning/pytorch/trainer/trainer.py:580 fit",
    *c.MAIN,
)
_FSDP2 = spins("@torch/distributed/_composable/fsdp/_fsdp_param_group.py:300 unshard", *c.STEP)
_ENGINE = spins("@deepspeed/runtime/engine.py:2100 step", *c.STEP)
#: What torchrun prints at its usual level, and what its program prints when it begins anew.
_ANEW = (
    "W0401 22:01:01.100000 700 torch/distributed/elastic/multiprocessing/api.py:897] Sending"
    " process 776 closing signal SIGTERM\n"
    "[E401 22:01:02 elastic/multiprocessing/api.py:869] failed (exitcode: -6) local_rank: 1"
    " (pid: 777) of binary: /usr/bin/python\n"
    "Loading dataset\n"
)


def anew() -> tuple[Case, ...]:
    """All of it."""
    return (*_restarted(), *_by_srun(), *_beside(), *_ended())


def _with_env(build: Build, **more: str) -> Callable[[], JobFacts]:
    """Tasks below an sbatch that exports these names."""

    def made() -> JobFacts:
        facts = facts_of(replace(build, launcher="tasks"))
        assert facts.live is not None
        samples = []
        for sample in facts.live.samples:
            probes = []
            for probe in sample.probes:
                look = probe.processes
                assert look is not None
                those = tuple(
                    replace(one, env=(*one.env, *more.items())) if one.env else one
                    for one in look.processes
                )
                probes.append(replace(probe, processes=replace(look, processes=those)))
            samples.append(replace(sample, probes=tuple(probes)))
        return replace(facts, live=replace(facts.live, samples=tuple(samples)))

    return at_pace(made)


def _restarted() -> list[Case]:
    """A watchdog ended the attempt before, torchrun has started it anew, and it loads."""
    cast = c.gloo("broadcast_object_list", 40, "load")
    nfs = waits(
        "ckpt.py:31 load",
        *c.MAIN,
        state="D",
        wchan="nfs_wait_bit_killable",
        cpu=0.0,
        wakes=0.1,
    )
    new = Build(
        size=8,
        usual=c.STORE,
        odd={3: c.SSL_READ},
        attempt=1,
        age=40.0,
        quiet=20.0,
        text=GAVE_UP + _ANEW,
    )
    well = "healthy unknown recovering"
    return [
        case("restarted-downloads", new, well),
        case("restarted-downloads-long", replace(new, age=1200.0), f"{well} hung"),
        case("restarted-by-a-loop", replace(new, attempt=0, launcher="srun"), well),
        case(
            "restarted-first-downloads",
            replace(new, usual=cast, odd={0: c.SSL_READ}),
            well,
        ),
        case("restarted-reads-nfs", replace(new, odd={5: nfs}), well),
        case("restarted-packs", replace(new, odd={5: c.LOOP}), well),
    ]


def _by_srun() -> list[Case]:
    """srun without torchrun: every rank is at a synchronisation, and no stack shows a group."""
    out = []
    told = {"MASTER_ADDR": "gpu01", "MASTER_PORT": "29500", "WORLD_SIZE": "8"}
    usual = {
        "item": c.ITEM,
        "clip": c.CLIP,
        "backward": c.BACKWARD,
        "trainer": c.HF_LOG,
        "lightning": _LIGHTNING,
        "fsdp2": _FSDP2,
        "deepspeed": _ENGINE,
    }
    for name, do in usual.items():
        b = Build(size=8, usual=do, odd={3: STOPPED}, gpu=_COLD, quiet=25.0)
        unsaid = ("cannot be told",)
        out.append(
            case(
                f"sbatch-{name}-stopped",
                _with_env(b, **told),
                H,
                ("process-stopped",),
                {3},
                True,
                unsaid=unsaid,
            )
        )
        # Threads that carry data, and one that keeps the meeting point of all, tell the same.
        bare = at_pace(replace(b, launcher="tasks", stacks=False, quiet=400.0))
        out.append(case(f"tasks-{name}-stopped-bare", bare, HU, None, {3}))
    faults = {
        "fifo": FIFO,
        "sleeps": c.SLEEPS,
        "driver": D_DRIVER,
        "gil": _GIL,
        "gone": _GONE,
        "save": c.SAVE_STUCK,
        "lock": OWN_LOCK,
    }
    for name, do in faults.items():
        one = Build(size=8, usual=_LIGHTNING, odd={3: do}, gpu=_COLD, quiet=400.0, launcher="tasks")
        all_said = ("all 7 ranks", "cannot be told")
        out.append(case(f"tasks-{name}", at_pace(one), H, None, {3}, True, unsaid=all_said))
        sizes = _with_env(replace(one, sweep=True, usual=c.ITEM), **told)
        out.append(case(f"sbatch-{name}", sizes, H, None, {3}, True, unsaid=all_said))
    dead = Build(size=8, usual=c.ITEM, odd={3: _GONE}, quiet=25.0, stacks=False)
    alone = Build(size=8, usual=c.ITEM, odd={3: STOPPED}, gpu=_COLD, quiet=400.0)
    return [
        *out,
        case("sbatch-gone-bare", _with_env(dead, **told), HU, None, {3}),
        # Each task of a sweep may have a group of its own.
        case("sweep-of-groups-of-one", _with_env(replace(alone, alone=True), WORLD_SIZE="1"), W),
    ]


def _beside() -> list[Case]:
    """Another launch in the job: it ends no hang for ever, and hides none."""
    side = Build(
        size=2, usual=FORWARDS, step="1", launcher="srun", port=1234, pid0=70_000, quiet=2400.0
    )
    larger = replace(side, size=8)
    spin = replace(larger, usual=replace(c.ITEM, cpu=0.3))
    half = {rank: c.gloo("broadcast", 220) for rank in range(4, 8)}
    hang = Build(size=8, usual=c.REDUCE, quiet=2400.0)
    four = replace(hang, size=4)
    cold = replace(hang, usual=c.ITEM, gpu=_COLD)

    def beside(first: Build, other: Build) -> Callable[[], JobFacts]:
        return at_pace(two(first, other))

    return [
        case("all-reduce-beside-two-late", beside(hang, side), H),
        case("gpus-cold-beside-two-late", beside(cold, side), H),
        case("half-beside-two-late", beside(replace(hang, odd=half), side), H),
        case(
            "network-beside-two-late",
            beside(replace(hang, odd={3: c.SSL_READ}), side),
            H,
            None,
            {3},
            True,
        ),
        case("all-reduce-beside-two", beside(replace(hang, quiet=60.0), side), W),
        case(
            "stopped-of-four-beside-eight-at-work",
            beside(replace(four, odd={1: STOPPED}, quiet=60.0), larger),
            "unknown",
        ),
        case(
            "stopped-of-four-beside-eight-at-work-late",
            beside(replace(four, odd={1: STOPPED}), larger),
            H,
            ("process-stopped",),
            {1},
            True,
        ),
        case(
            "asleep-of-four-beside-eight-at-work-late",
            beside(replace(four, odd={1: c.SLEEPS}, quiet=400.0), larger),
            "unknown",
        ),
        case("all-four-wait-beside-eight-that-spin-late", beside(four, spin), H),
        case("all-four-wait-beside-eight-at-work-late", beside(four, larger), "unknown"),
        case("all-four-wait-beside-eight-at-work", beside(replace(four, quiet=60.0), larger), W),
    ]


def _ended() -> list[Case]:
    """Ranks without a process, by srun."""
    young = Build(size=8, usual=c.REDUCE, odd={3: _GONE}, launcher="srun", age=250.0, quiet=200.0)
    left = Build(size=4, usual=_GONE, odd={1: c.SHUTDOWN}, launcher="srun", text=DONE, quiet=2400.0)
    loads = "Loading checkpoint shards:  50%|#####     | 2/4 [00:10<00:10,  5.0s/it]\n"
    sweep = Build(
        size=8,
        usual=FORWARDS,
        odd={3: _GONE},
        launcher="tasks",
        sweep=True,
        stacks=False,
        gpu=HOT,
        quiet=25.0,
    )
    return [
        case(
            "dead-after-steps-young",
            at_pace(young),
            H,
            ("missing-rank",),
            {3},
            True,
            unsaid=("has not come yet",),
        ),
        case("late-before-steps-young", replace(young, text=loads), W),
        case(
            "late-in-a-new-attempt",
            replace(young, launcher="torchrun", attempt=1, age=250.0),
            "unknown recovering",
        ),
        case("left-closing-down-by-srun", at_pace(left), H, ("teardown-hang",), {1}, True),
        case("left-closing-down-by-srun-early", at_pace(replace(left, quiet=60.0)), W),
        case("sweep-one-task-done-at-work", sweep, W, unsaid=("all 7 ranks",)),
    ]
