"""A second examination: who is away, or may be, and what hides it."""

from dataclasses import replace

from tests.triage.live import examined_calls as c
from tests.triage.live.examined import Build, Do, spins, waits
from tests.triage.live.examined_case import Case, case
from tests.triage.live.examined_hangs import HU, LOADER, MISSING, OP, STUCK_WORKER, UNSURE

ELSEWHERE = ("rank-elsewhere", "host-work-exceeds-timeout", None)
GONE = Do(gone=True)
BARRIERS = c.GLOO_BARRIER
END = waits(f"{c.C10D}:4159 barrier", c.LOGGER, "train.py:391 main", "train.py:402 <module>")
GATHER = c.gloo("gather_object", 250)
BCAST = c.gloo("broadcast", 251)
POLLED = waits(
    f"{c.C10D}:4159 barrier",
    c.LOGGER,
    "train.py:233 evaluate",
    *c.MAIN,
    wchan="hrtimer_nanosleep",
    cpu=0.01,
    wakes=100.0,
)
BATON = waits(
    "@torch/utils/file_baton.py:42 wait",
    "@torch/utils/cpp_extension.py:1900 _jit_compile",
    "kernels.py:8 load",
    *c.MAIN,
    **c.NAP,
)
MPI_RECV = spins("halo.py:50 exchange", "halo.py:90 <module>")
MPI_NAP = waits("halo.py:30 read_input", "halo.py:80 main", "halo.py:90 <module>", **c.NAP)
DEBUGPY = waits(
    "%threading.py:324 wait",
    "@debugpy/server/api.py:200 wait_for_client",
    "train.py:305 main",
    "train.py:402 <module>",
    cpu=0.0,
)
EXTENSION = waits("ops.py:14 dispatch", *c.STEP)
RAY = replace(c.SLEEPS, name="ray::RayTrainWo", argv=("ray::RayTrainWorker.execute",))
RAYS = replace(c.REDUCE, name="ray::RayTrainWo", argv=("ray::RayTrainWorker.execute",))
D_HERE = waits(*c.SAVE, state="D", wchan="rpc_wait_bit_killable", cpu=0.0)


def elsewhere() -> list[Case]:
    """Somebody is away, or may be."""
    b, spin = Build, c.ITEM
    most = {r: c.loader(c.IDLE_WORKER) for r in range(5)}
    dark = {r: replace(c.REDUCE, no_stack=True) for r in range(4, 8)}
    node = dict.fromkeys(range(8, 12), c.SLEEPS)
    return [
        case("loader-most-8", b(size=8, usual=spin, odd=most), HU, None, set(range(5))),
        case("gather-root-8", b(size=8, usual=BARRIERS, odd={0: GATHER}), HU, (*OP, *UNSURE)),
        case(
            "gather-root-away-8",
            b(size=8, usual=BARRIERS, odd={0: GATHER, 6: c.SLEEPS}),
            "hung",
            LOADER,
            {6},
            True,
        ),
        case(
            "broadcast-source-ahead-8",
            b(size=8, usual=BCAST, odd={0: c.REDUCE}),
            HU,
            (*OP, *UNSURE),
        ),
        case(
            "reduce-root-16",
            b(size=16, usual=c.REDUCE, odd={3: c.gloo("reduce", 252)}),
            HU,
            (*OP, *UNSURE),
        ),
        case(
            "data-exhausted-8",
            b(size=8, usual=c.REDUCE, odd={3: END}),
            "hung",
            (*OP, "data-exhausted"),
            {3},
        ),
        case(
            "one-more-batch-8",
            b(size=8, usual=END, odd={3: c.REDUCE}),
            "hung",
            (*OP, "data-exhausted"),
            {3},
        ),
        case(
            "half-stacks-8",
            b(size=8, usual=c.REDUCE, odd={**dark, 6: replace(c.SLEEPS, no_stack=True)}),
            HU,
            (*LOADER, *UNSURE),
            {6},
        ),
        case(
            "half-stacks-futex-8",
            b(size=8, usual=c.REDUCE, odd={**dark, 6: EXTENSION}),
            HU,
            (*ELSEWHERE, *UNSURE, *OP),
            {6},
        ),
        case(
            "blocking-wait-8", b(size=8, usual=POLLED, odd={5: c.SLEEPS}), HU, (*LOADER, None), {5}
        ),
        case(
            "blocking-wait-bare-8",
            b(size=8, usual=POLLED, odd={5: EXTENSION}, stacks=False),
            HU,
            (*ELSEWHERE, *UNSURE),
            {5},
        ),
        case("blocking-wait-all-bare-8", b(size=8, usual=POLLED, stacks=False), HU, UNSURE),
        case("blocking-wait-all-8", b(size=8, usual=POLLED), HU, UNSURE),
        case("baton-stale-8", b(size=8, usual=BATON, text="starting\n"), HU, None, set(range(8))),
        case(
            "mpi-spin-8",
            b(
                size=8,
                launcher="mpirun",
                usual=MPI_RECV,
                odd={3: MPI_NAP},
                argv=("python", "halo.py"),
            ),
            HU,
            ELSEWHERE,
            {3},
        ),
        case(
            "mpi-spin-bare-8",
            b(size=8, launcher="mpirun", usual=MPI_RECV, odd={3: MPI_NAP}, stacks=False),
            HU,
            ELSEWHERE,
            {3},
        ),
        case(
            "debugpy-8",
            b(size=8, usual=c.STORE, odd={0: DEBUGPY}, text="", age=700.0, quiet=650.0),
            HU,
            ELSEWHERE,
            {0},
        ),
        case(
            "extension-8", b(size=8, usual=c.REDUCE, odd={4: EXTENSION}), HU, (*ELSEWHERE, *OP), {4}
        ),
        case(
            "loader-no-workers-8",
            b(size=8, usual=c.REDUCE, odd={2: c.loader()}),
            "hung",
            LOADER,
            {2},
            True,
        ),
        case(
            "loader-d-512",
            b(size=512, per=8, usual=c.REDUCE, odd={411: c.loader(STUCK_WORKER)}),
            "hung",
            (*LOADER, "io-stuck"),
            {411},
            True,
        ),
        case(
            "unseen-nodes-512",
            b(
                size=512,
                per=8,
                usual=c.REDUCE,
                odd={300: c.SLEEPS},
                silent=["gpu02", "gpu03", "gpu64"],
            ),
            HU,
            (*LOADER, None),
            {300},
        ),
        case(
            "two-nodes-down-16",
            b(
                size=16,
                usual=c.REDUCE,
                silent=["gpu02", "gpu03"],
                states=(("gpu02", "DOWN*"), ("gpu03", "DOWN*")),
            ),
            HU,
            ("slurm-node-fail", "node-frozen", None),
            {"gpu02", "gpu03"},
        ),
        case(
            "our-side-16",
            b(size=16, usual=c.REDUCE, silent=["gpu02", "gpu03", "gpu04"]),
            HU,
            UNSURE,
        ),
        case(
            "d-two-of-a-node-16",
            b(size=16, usual=c.REDUCE, odd={8: D_HERE, 9: D_HERE}),
            "hung",
            ("io-stuck", "checkpoint-stuck"),
            {8, 9, "gpu03"},
            True,
        ),
        case(
            "sleep-one-node-16",
            b(size=16, usual=c.REDUCE, odd=node),
            "hung",
            LOADER,
            {8, 9, 10, 11, "gpu03"},
        ),
        case(
            "ray-8",
            b(size=8, launcher="none", usual=RAYS, odd={3: RAY}),
            "hung unknown healthy",
            None,
            {3, "gpu01"},
        ),
        case(
            "no-log-sleep-4",
            b(size=4, usual=c.REDUCE, odd={2: c.SLEEPS}, quiet=None),
            HU,
            LOADER,
            {2},
        ),
        case("no-log-bare-8", b(size=8, usual=spin, quiet=None, stacks=False), HU, UNSURE),
        case(
            "sleep-odd-gpu-8",
            b(
                size=8,
                usual=spin,
                odd={2: c.SLEEPS},
                gpu={2: (0.0, 90.0), **dict.fromkeys((0, 1, 3, 4, 5, 6, 7), (100.0, 115.0))},
            ),
            "hung",
            LOADER,
            {2},
            True,
        ),
        case(
            "fork-lock-64",
            b(
                size=64,
                per=8,
                usual=c.CLIP,
                odd={
                    50: waits(
                        "%threading.py:324 wait",
                        "%queue.py:140 put",
                        "log.py:12 emit",
                        *c.MAIN,
                        cpu=0.0,
                    )
                },
            ),
            "hung",
            ELSEWHERE,
            {50},
            True,
        ),
        case(
            "old-left-dead-8",
            b(size=8, launcher="srun", usual=c.REDUCE, odd={1: GONE, 6: GONE}),
            HU,
            MISSING,
            {1, 6},
        ),
    ]
