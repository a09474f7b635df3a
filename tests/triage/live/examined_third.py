"""A third examination: written once the rules had been mended, and not bent to them."""

from dataclasses import replace

from tests.triage.live import examined_calls as c
from tests.triage.live.examined import Build, spins, stack, waits
from tests.triage.live.examined_case import Case, case
from tests.triage.live.examined_hangs import (
    D_NFS,
    ELSEWHERE,
    GONE,
    HOST_WORK,
    HU,
    LOADER,
    MISSING,
    P2P,
    STOPPED,
    STUCK_WORKER,
    UNSURE,
)
from tests.triage.live.examined_well import ANY, FORWARDS, HOT, W

DDP_INIT = spins(
    "@torch/distributed/utils.py:294 _sync_module_states",
    "@torch/nn/parallel/distributed.py:800 __init__",
    "train.py:315 main",
    "train.py:402 <module>",
)
LIGHT = waits(
    f"{c.C10D}:4159 barrier",
    c.LOGGER,
    "@lightning/fabric/plugins/x.py:10 barrier",
    "@lightning/pytorch/trainer/trainer.py:900 fit",
    *c.MAIN,
)
LSAVE = waits(
    "@torch/serialization.py:943 save",
    "@lightning/fabric/utilities/cloud_io.py:80 _atomic_save",
    "@lightning/pytorch/trainer/connectors/checkpoint_connector.py:400 save_checkpoint",
    "@lightning/pytorch/trainer/trainer.py:1300 save_checkpoint",
    *c.MAIN,
    wchan="cl_sync_io_wait",
    state="D",
    cpu=0.0,
)
HFGATHER = spins(
    "@accelerate/utils/operations.py:380 _gpu_gather_one",
    "@accelerate/utils/operations.py:100 gather",
    "@transformers/trainer.py:4500 evaluation_loop",
    *c.MAIN,
)
HFEVAL = replace(
    HFGATHER,
    calls=stack(
        "metrics.py:10 compute_metrics", "@transformers/trainer.py:4600 evaluation_loop", *c.MAIN
    ),
    then=stack(
        "metrics.py:14 compute_metrics", "@transformers/trainer.py:4600 evaluation_loop", *c.MAIN
    ),
    gil=True,
)
MEGSAVE = spins(
    f"{c.C10D}:4159 barrier",
    c.LOGGER,
    "@megatron/core/dist_checkpointing/strategies/x.py:50 save",
    "@megatron/training/checkpointing.py:500 save_checkpoint",
    "pretrain_gpt.py:300 <module>",
)
GC = replace(FORWARDS, calls=c.FORWARD.calls, then=None)
S3 = waits(
    "%ssl.py:1166 read",
    "@botocore/httpsession.py:464 send",
    "@streaming/base/storage.py:60 download",
    "@streaming/base/dataset.py:900 __iter__",
    "train.py:201 train_step",
    *c.MAIN,
    wchan="wait_woken",
    cpu=0.0,
)
LOGGING = waits(
    "%logging/__init__.py:1110 emit",
    "log.py:9 info",
    "train.py:220 train_step",
    *c.MAIN,
    wchan="pipe_write",
    cpu=0.0,
)
SIGWAIT = waits("train.py:260 wait_signal", *c.MAIN, wchan="do_sigtimedwait", cpu=0.0)
CUDAMALLOC = spins("model.py:77 forward", "train.py:205 train_step", *c.MAIN)


def third() -> list[Case]:
    """All of it."""
    b = Build
    return [
        case("ddp-init-8", b(size=8, usual=DDP_INIT, quiet=100.0, text="", age=110.0), W, ANY),
        case(
            "ddp-init-late-8",
            b(size=8, usual=DDP_INIT, odd={3: c.IMPORT}, quiet=100.0, text="", age=110.0),
            W,
            (*ANY, "startup-skew"),
        ),
        case(
            "lightning-save-d-8",
            b(size=8, usual=LIGHT, odd={0: LSAVE}),
            "hung",
            ("io-stuck", "checkpoint-stuck"),
            {0, "gpu01"},
            True,
        ),
        case(
            "lightning-save-moves-8",
            b(size=8, usual=LIGHT, odd={0: replace(LSAVE, write=90_000_000, cpu=0.2)}),
            W,
            ANY,
        ),
        case("hf-eval-metrics-8", b(size=8, usual=HFGATHER, odd={0: HFEVAL}, quiet=90.0), W, ANY),
        case(
            "hf-gather-stuck-8",
            b(size=8, usual=HFGATHER, quiet=900.0, gpu=(100.0, 115.0)),
            HU,
            UNSURE,
        ),
        case("megatron-save-64", b(size=64, per=8, usual=MEGSAVE, odd={8: c.DCP}), W, ANY),
        case(
            "megatron-save-stuck-64",
            b(size=64, per=8, usual=MEGSAVE, odd={8: replace(c.DCP, write=0, cpu=0.0)}),
            "hung",
            ("io-stuck", "checkpoint-stuck"),
            {8, "gpu02"},
            True,
        ),
        case(
            "same-forward-8",
            b(size=8, usual=spins(*c.STEP), odd={2: GC}, quiet=40.0),
            W,
            ANY,
            set(),
        ),
        case("stream-s3-8", b(size=8, usual=c.REDUCE, odd={5: S3}), "hung", LOADER, {5}, True),
        case(
            "stream-s3-short-8",
            b(size=8, usual=c.REDUCE, odd={5: replace(S3, chars=9_000_000, cpu=0.1)}, quiet=30.0),
            W,
            (*ANY, "data-loader-stuck"),
            {5},
        ),
        case("log-pipe-8", b(size=8, usual=c.CLIP, odd={0: LOGGING}), "hung", ELSEWHERE, {0}, True),
        case("log-pipe-all-8", b(size=8, usual=LOGGING), HU, None, set(range(8))),
        case("sigwait-8", b(size=8, usual=c.REDUCE, odd={7: SIGWAIT}), HU, HOST_WORK, {7}),
        case(
            "malloc-8",
            b(size=8, usual=c.ITEM, odd={6: CUDAMALLOC}, quiet=900.0, gpu=(100.0, 115.0)),
            HU,
            (*UNSURE, *HOST_WORK),
            {6},
        ),
        case(
            "pp-moves-bare-64",
            b(
                size=64,
                per=8,
                usual=c.RECV_F,
                odd=dict.fromkeys(range(0, 64, 8), c.SEND_F_RECV_B),
                stacks=False,
                quiet=50.0,
            ),
            W,
            ANY,
        ),
        case(
            "pp-stopped-64",
            b(
                size=64,
                per=8,
                usual=c.RECV_F,
                odd={**dict.fromkeys(range(0, 64, 8), c.SEND_F_RECV_B), 21: STOPPED},
            ),
            "hung",
            ("process-stopped",),
            {21},
            True,
        ),
        case(
            "pp-dead-64",
            b(
                size=64,
                per=8,
                launcher="srun",
                usual=c.RECV_F,
                odd={**dict.fromkeys(range(0, 64, 8), c.SEND_F_RECV_B), 21: GONE},
            ),
            HU,
            MISSING,
            {21},
            True,
        ),
        case(
            "pp-p2p-all-8",
            b(size=8, usual=c.RECV_F, odd={0: c.SEND_F_RECV_B, 1: c.SEND_F_RECV_B}, quiet=90.0),
            HU + " healthy",
            P2P,
            set(),
        ),
        case(
            "stopped-two-nodes-16",
            b(size=16, usual=c.REDUCE, odd={1: STOPPED, 9: STOPPED}),
            "hung",
            ("process-stopped",),
            {1, 9},
            True,
        ),
        case(
            "stopped-bare-gpu-8",
            b(size=8, usual=c.ITEM, odd={2: STOPPED}, stacks=False, gpu=(100.0, 115.0)),
            HU,
            ("process-stopped", None),
            {2},
            True,
        ),
        case(
            "stopped-but-steps-8",
            b(size=8, usual=FORWARDS, odd={2: STOPPED}, grew=True, steps=True, quiet=1.0),
            "healthy unknown slow",
            None,
            set(),
        ),
        case(
            "sleep-grows-8",
            b(size=8, usual=c.REDUCE, odd={2: c.SLEEPS}, grew=True, quiet=1.0),
            "healthy unknown hung",
            None,
            {2},
        ),
        case(
            "rank0-d-short-8",
            b(size=8, usual=c.BARRIER, odd={0: replace(D_NFS, cpu=0.05, read=900_000)}, quiet=20.0),
            W,
            ANY,
        ),
        case(
            "train-after-eval-8",
            b(size=8, usual=c.GLOO_BARRIER, odd={0: c.TOKENISE, 4: c.TOKENISE}, quiet=200.0),
            W,
            ANY,
        ),
        case(
            "node-slow-import-16",
            b(
                size=16,
                usual=DDP_INIT,
                odd=dict.fromkeys(range(4, 8), c.IMPORT),
                quiet=100.0,
                text="",
                age=110.0,
            ),
            W,
            (*ANY, "startup-skew"),
        ),
        case("fsdp-hot-64", b(size=64, per=8, usual=c.FSDP_LIMIT, gpu=HOT, quiet=500.0), W, ANY),
        case(
            "fsdp-cold-64",
            b(size=64, per=8, usual=c.FSDP_LIMIT, gpu=(100.0, 130.0), quiet=800.0),
            HU,
            UNSURE,
        ),
        case(
            "one-gpu-cold-8",
            b(
                size=8,
                usual=c.ITEM,
                gpu={5: (0.0, 80.0), **dict.fromkeys((0, 1, 2, 3, 4, 6, 7), (100.0, 120.0))},
                quiet=800.0,
            ),
            HU,
            UNSURE,
            {5},
        ),
        case(
            "loader-all-stuck-8",
            b(size=8, usual=c.loader(STUCK_WORKER), quiet=600.0),
            HU,
            None,
            {"gpu01", "gpu02", *range(8)},
        ),
    ]
