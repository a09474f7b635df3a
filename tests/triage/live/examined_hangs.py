"""Hangs of every kind, with stacks, and the same without."""

from dataclasses import fields, replace
from datetime import timedelta  # noqa: F401

from slurmtop.model.facts import JobFacts
from tests.triage.live import examined_calls as c
from tests.triage.live.examined import Build, Do, facts_of, spins, stack, waits
from tests.triage.live.examined_case import Case, case

ELSEWHERE = ("rank-elsewhere",)
HOST_WORK = (*ELSEWHERE, "host-work-exceeds-timeout", None)
LOADER = ("data-loader-stuck", "rank-elsewhere")
DOWN = "[123.4] mlx5_core 0000:5e:00.0 mlx5_0: Port: 1 Link DOWN"
XID79 = "[812.2] NVRM: Xid (PCI:0000:0a:00): 79, pid=20100, GPU has fallen off the bus."
DONE = "step 5000/5000 loss=1.9\nTraining finished, model saved to /ckpt/final\n"


def _gil(cpu: float = 0.0) -> Do:
    held = stack("tokens.py:19 encode", "%threading.py:982 run")
    return waits(*c.STEP, more=(("prefetch", held),), cpu=cpu)


D_NFS = waits(*c.SAVE, state="D", wchan="rpc_wait_bit_killable", cpu=0.0, file="/home/x/step1.pt")
D_DRIVER = spins(*c.STEP, state="D", wchan="os_acquire_rwlock_write", cpu=0.0)
D_LOAD = waits("model.py:40 load_weights", *c.MAIN, state="D", wchan="cl_sync_io_wait", cpu=0.0)
STOPPED = spins(*c.STEP, state="T", wchan="do_signal_stop", cpu=0.0)
TRACED = spins(*c.STEP, state="t", wchan="ptrace_stop", cpu=0.0, tracer=777)
FROZEN = spins(*c.STEP, state="S", wchan="do_freezer_trap", cpu=0.0)
WANDB = Do(name="wandb-core", argv=("wandb-core",), wchan="ep_poll", cpu=0.04, write=40_000)
GONE = Do(gone=True)
ZOMBIE = Do(state="Z", wchan="0", cpu=0.0)
H = "hung"
HU = "hung unknown"
STUCK_WORKER = c.worker(state="D", wchan="rpc_wait_bit_killable", cpu=0.0)
OP = ("collective-op-mismatch", "collective-order-skew", "rank-elsewhere")
UNSURE = (None, "watchdog-timeout-unattributed", "device-stall")
P2P = (*UNSURE, "unmatched-p2p", "collective-op-mismatch", "collective-order-skew")
MISSING = ("missing-rank", "task-exit", "peer-died")
HALF = {r: c.gloo("broadcast", 220) for r in range(4, 8)}
STAGES = {0: c.SEND_F_RECV_B, 1: c.SEND_F_RECV_B, 2: c.RECV_F, 3: c.RECV_F}
PIPE = {0: c.RECV_B, 1: c.RECV_B, 2: c.SEND_F_RECV_B, 3: c.SEND_F_RECV_B, 4: c.SEND_F_RECV_B}


def with_stacks() -> list[Case]:
    b, spin = Build, c.ITEM
    node2 = dict.fromkeys(range(4, 8), FROZEN)
    return [
        case(
            "sleep-gloo-4",
            b(size=4, usual=c.REDUCE, odd={2: c.SLEEPS}, per=1),
            H,
            LOADER,
            {2},
            True,
        ),
        case("pdb-8", b(size=8, usual=spin, odd={0: c.PDB}), H, ELSEWHERE, {0}, True),
        case(
            "download-64",
            b(size=64, per=8, usual=c.BARRIER, odd={17: c.SSL_READ}),
            H,
            HOST_WORK,
            {17},
            True,
        ),
        case("filelock-2", b(size=2, usual=c.BARRIER, odd={1: c.FILELOCK}), HU, HOST_WORK, {1}),
        case("loop-512", b(size=512, per=8, usual=spin, odd={300: c.LOOP}), HU, HOST_WORK, {300}),
        case("loop-gloo-8", b(size=8, usual=c.REDUCE, odd={5: c.LOOP}), H, (*LOADER,), {5}, True),
        case(
            "two-sleep-8",
            b(size=8, usual=c.CLIP, odd={3: c.SLEEPS, 5: c.SLEEPS}),
            H,
            LOADER,
            {3, 5},
            True,
        ),
        case(
            "branch-rank0-8", b(size=8, usual=c.REDUCE, odd={0: c.GLOO_BARRIER}), H, OP, {0}, True
        ),
        case("branch-half-8", b(size=8, usual=c.REDUCE, odd=HALF), H, OP),
        case(
            "branch-2",
            b(size=2, usual=c.REDUCE, odd={1: c.gloo("all_gather", 230)}),
            HU,
            (*OP, *UNSURE),
        ),
        case("pipeline-stuck-4", b(size=4, usual=c.RECV_B, odd=STAGES), HU, P2P),
        case(
            "pipeline-stage-8",
            b(size=8, usual=c.RECV_F, odd={**PIPE, 5: c.SLEEPS}),
            H,
            LOADER,
            {5},
            True,
        ),
        case(
            "subgroups-4",
            b(
                size=4,
                usual=c.gloo("all_reduce", 40),
                odd={2: c.gloo("all_reduce", 44), 3: c.gloo("all_reduce", 44)},
            ),
            HU,
            (*OP, *UNSURE),
        ),
        case(
            "zero3-ahead-8",
            b(size=8, usual=c.ZERO3_FETCH, odd={7: c.ZERO3_REDUCE}),
            HU,
            (*OP, *UNSURE),
            {7},
        ),
        case(
            "dead-srun-8",
            b(size=8, launcher="srun", usual=c.REDUCE, odd={3: GONE}),
            H,
            MISSING,
            {3},
            True,
        ),
        case(
            "dead-oom-8",
            b(size=8, launcher="srun", usual=spin, odd={3: GONE}, oom={"gpu01": 1}),
            H,
            ("host-oom", *MISSING),
            {3},
            True,
        ),
        case(
            "zombie-mpi-8",
            b(size=8, launcher="mpirun", usual=c.BARRIER, odd={6: ZOMBIE}),
            H,
            MISSING,
            {6},
        ),
        case(
            "node-empty-8",
            b(size=8, launcher="srun", usual=c.BARRIER, odd=dict.fromkeys(range(4, 8), GONE)),
            HU,
            (*MISSING, None),
            {4, 5, 6, 7, "gpu02"},
        ),
        case(
            "sigstop-8", b(size=8, usual=spin, odd={2: STOPPED}), H, ("process-stopped",), {2}, True
        ),
        case(
            "traced-64",
            b(size=64, per=8, usual=c.HF_LOG, odd={40: TRACED}),
            H,
            ("process-stopped",),
            {40},
            True,
        ),
        case(
            "freezer-8",
            b(size=8, usual=spin, odd=node2),
            H,
            ("node-frozen", "process-stopped"),
            {4, 5, 6, 7, "gpu02"},
            True,
        ),
        case(
            "gil-4",
            b(size=4, usual=c.REDUCE, odd={1: _gil()}, per=1),
            HU,
            ("gil-held", *HOST_WORK),
            {1},
        ),
        case(
            "regex-8",
            b(size=8, usual=c.BARRIER, odd={6: c.REGEX}),
            HU,
            ("gil-held", *LOADER, None),
            {6},
        ),
        case(
            "d-nfs-8",
            b(size=8, usual=c.BARRIER, odd={6: D_NFS}),
            H,
            ("io-stuck", "checkpoint-stuck"),
            {6, "gpu02"},
            True,
        ),
        case(
            "d-all-16",
            b(size=16, usual=D_LOAD),
            HU,
            ("io-stuck", "checkpoint-stuck", None),
            {"gpu01", "gpu02", "gpu03", "gpu04"},
        ),
        case(
            "d-driver-8",
            b(size=8, usual=spin, odd={5: D_DRIVER}, gpu=(100.0, 120.0), gpu_silent=["gpu02"]),
            H,
            ("io-stuck", "cuda-driver-error", "gpu-hw-fault"),
            {5, "gpu02"},
            True,
        ),
        *_devices_and_ends(),
    ]


def _devices_and_ends() -> list[Case]:
    b, spin = Build, c.ITEM
    return [
        case(
            "device-stall-64",
            b(size=64, per=8, usual=spin, gpu=(100.0, 110.0), quiet=1500.0),
            H,
            ("device-stall", *UNSURE),
        ),
        case(
            "xid79-8",
            b(size=8, usual=spin, gpu=(100.0, 110.0), quiet=900.0, kernel={"gpu02": (XID79,)}),
            HU,
            ("gpu-hw-fault", *UNSURE),
            {4, "gpu02"},
        ),
        case(
            "port-down-16",
            b(
                size=16,
                usual=c.CLIP,
                quiet=900.0,
                ports={"gpu03": "DOWN"},
                kernel={"gpu03": (DOWN,)},
            ),
            HU,
            ("net-link-fault", *UNSURE),
            {"gpu03"},
        ),
        case(
            "node-down-8",
            b(size=8, usual=c.REDUCE, silent=["gpu02"], states=(("gpu02", "DOWN*"),)),
            HU,
            ("node-frozen", "slurm-node-fail"),
            {"gpu02", 4, 5, 6, 7},
            True,
        ),
        case("node-silent-8", b(size=8, usual=c.REDUCE, silent=["gpu02"]), HU, None, {"gpu02"}),
        case(
            "teardown-one-4",
            b(size=4, usual=GONE, odd={1: c.WANDB_FINISH}, text=DONE),
            HU,
            ("teardown-hang", *HOST_WORK),
            {1},
        ),
        case(
            "teardown-atexit-8",
            b(size=8, usual=c.DESTROY, odd={0: c.SHUTDOWN}, text=DONE),
            HU,
            ("teardown-hang", "rank-elsewhere", None),
            {0},
        ),
        case(
            "loader-dead-8",
            b(size=8, usual=c.REDUCE, odd={2: c.loader(STUCK_WORKER, STUCK_WORKER)}),
            H,
            ("data-loader-stuck", "io-stuck"),
            {2, "gpu01"},
            True,
        ),
        case(
            "loader-pinned-64",
            b(size=64, per=8, usual=spin, odd={33: c.loader(c.IDLE_WORKER, pinned=True)}),
            H,
            LOADER,
            {33},
            True,
        ),
        case(
            "checkpoint-8",
            b(size=8, usual=c.BARRIER, odd={0: c.SAVE_STUCK}),
            H,
            ("checkpoint-stuck", "io-stuck"),
            {0},
            True,
        ),
        case(
            "rendezvous-short-8",
            b(size=8, usual=c.STORE, odd={7: GONE}, launcher="srun", text="starting\n", age=900.0),
            HU,
            ("rendezvous-timeout", *MISSING, None),
            {7, "gpu02"},
        ),
        case(
            "first-barrier-64",
            b(size=64, per=8, usual=c.BARRIER, text="starting\n", age=1500.0, quiet=1450.0),
            HU,
            ("first-collective-stuck", *UNSURE),
        ),
        case(
            "fsdp-sleep-64",
            b(size=64, per=8, usual=c.FSDP_LIMIT, odd={9: c.SLEEPS, 12: c.BACKWARD}),
            H,
            LOADER,
            {9},
            True,
        ),
        case(
            "mixed-sync-8",
            b(size=8, usual=spin, odd={6: c.BACKWARD, 7: c.CLIP}, quiet=1200.0),
            HU,
            (*UNSURE, *OP),
        ),
        case(
            "gloo-stuck-gpu-8", b(size=8, usual=c.REDUCE, gpu=(0.0, 95.0), quiet=900.0), HU, UNSURE
        ),
        case(
            "world2-stopped",
            b(size=2, usual=spin, odd={1: STOPPED}),
            HU,
            ("process-stopped", None),
            {1},
        ),
        case(
            "world2-sleep-gloo",
            b(size=2, usual=c.REDUCE, odd={1: c.SLEEPS}),
            HU,
            (*LOADER, None),
            {1},
        ),
        case(
            "sruns-sleep-16",
            Sruns(size=16, usual=c.REDUCE, odd={5: c.SLEEPS}),
            HU,
            LOADER,
            {5},
            True,
        ),
        case(
            "sruns-barrier-8",
            Sruns(size=8, usual=c.GLOO_BARRIER, odd=dict.fromkeys(range(4, 8), c.REDUCE)),
            HU,
            (*OP, *UNSURE),
        ),
        case(
            "sruns-dead-16",
            Sruns(size=16, usual=c.REDUCE, launcher="srun", odd={9: GONE}),
            HU,
            MISSING,
            {9},
        ),
        case(
            "pdb-wandb-8",
            b(size=8, usual=spin, odd={0: replace(c.PDB, below=(WANDB,))}),
            H,
            ELSEWHERE,
            {0},
            True,
        ),
        case(
            "two-steps-one-hung",
            _two(),
            "hung slow healthy unknown",
            (*ELSEWHERE, "data-loader-stuck", "healthy", "slow-run", None),
            {2},
        ),
    ]


class Sruns(Build):
    """One world that a script starts node by node, each with an srun of its own."""

    def facts(self) -> JobFacts:
        each = [
            replace(self, size=4, before=4 * i, world=self.size, step=str(i), odd=odd)
            for i in range(self.size // 4)
            for odd in ({r - 4 * i: d for r, d in self.odd.items() if r // 4 == i},)
        ]
        plain = [Build(**{f.name: getattr(one, f.name) for f in fields(Build)}) for one in each]
        return facts_of(*plain)


class _Steps(Build):
    def facts(self) -> JobFacts:
        well = Build(
            size=4, usual=replace(c.ITEM, then=c.FORWARD.calls), step="1", port=29600, pid0=40_000
        )
        return facts_of(self, well)


def _two() -> Build:
    return _Steps(size=4, usual=c.REDUCE, odd={2: c.SLEEPS}, grew=True, steps=True, quiet=2.0)
