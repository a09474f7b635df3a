"""Trainings that are well, whatever they look like, and jobs that nobody can judge."""

from dataclasses import replace

from tests.triage.live import examined_calls as c
from tests.triage.live.examined import Build, Do, spins, stack, waits
from tests.triage.live.examined_case import Case, case

W = "healthy unknown"
ANY = ("healthy", None, "slow-run", "slow-init")
HOT, COLD = (99.0, 640.0), (100.0, 110.0)
FORWARDS = replace(c.ITEM, then=c.FORWARD.calls)
BUSY_WORKER = c.worker(state="R", wchan="0", cpu=1.0, read=40_000_000)
COPY = Do(
    state="D",
    wchan="folio_wait_bit_common",
    cpu=0.3,
    read=400_000_000,
    write=400_000_000,
    name="cp",
    argv=("cp", "-r"),
)
TAR_WAIT = waits(
    "%subprocess.py:2011 _try_wait",
    "%subprocess.py:1264 wait",
    "data.py:9 stage",
    *c.MAIN,
    wchan="do_wait",
    cpu=0.0,
    below=(COPY,),
)
LOADS = Do(
    calls=stack("@safetensors/torch.py:313 load_file", "model.py:40 load_weights", *c.MAIN),
    state="D",
    wchan="folio_wait_bit_common",
    cpu=0.3,
    read=500_000_000,
)
RL_GEN = spins(
    "@vllm/v1/engine/llm_engine.py:250 step",
    "@vllm/entrypoints/llm.py:1590 _run_engine",
    "@trl/trainer/grpo_trainer.py:1200 _generate",
    *c.MAIN,
)
RL_WAIT = spins(
    f"{c.C10D}:2709 broadcast_object_list",
    c.LOGGER,
    "@trl/trainer/grpo_trainer.py:1230 _generate",
    *c.MAIN,
)
UPLOAD = Do(
    calls=stack(
        "%ssl.py:1196 write", "@boto3/s3/inject.py:170 upload_file", "train.py:295 upload", *c.MAIN
    ),
    wchan="sk_stream_wait_memory",
    cpu=0.1,
    chars=30_000_000,
)


def well() -> list[Case]:
    b, spin = Build, c.ITEM
    return [
        case("steps-8", b(size=8, usual=spin, grew=True, steps=True, quiet=1.0), "healthy", ANY),
        case("long-step-power-8", b(size=8, usual=spin, gpu=HOT, quiet=30.0), W, ANY),
        case("long-step-dark-64", b(size=64, per=8, usual=spin, quiet=60.0), W, ANY),
        case("long-step-dark-bare-8", b(size=8, usual=spin, quiet=60.0, stacks=False), W, ANY),
        case("moves-quiet-64", b(size=64, per=8, usual=FORWARDS, gpu=HOT, quiet=900.0), W, ANY),
        case("hot-quiet-8", b(size=8, usual=spin, gpu=HOT, quiet=700.0), W, ANY),
        case("compile-all-8", b(size=8, usual=c.COMPILE, quiet=600.0, text="starting\n"), W, ANY),
        case("compile-waits-8", b(size=8, usual=c.COMPILE_WAITS, quiet=600.0), W, ANY),
        case(
            "compile-one-8",
            b(size=8, usual=spin, odd={3: c.COMPILE_WAITS}, quiet=300.0),
            W,
            (*ANY, "startup-skew"),
        ),
        case(
            "compile-rank0-8", b(size=8, usual=c.BARRIER, odd={0: c.COMPILE}, quiet=300.0), W, ANY
        ),
        case("compile-bare-8", b(size=8, usual=c.COMPILE_WAITS, quiet=600.0, stacks=False), W, ANY),
        case("save-rank0-8", b(size=8, usual=c.BARRIER, odd={0: c.SAVES}), W, ANY),
        case("save-rank0-gloo-4", b(size=4, usual=c.GLOO_BARRIER, odd={0: c.SAVES}, per=1), W, ANY),
        case(
            "save-rank0-bare-8", b(size=8, usual=c.BARRIER, odd={0: c.SAVES}, stacks=False), W, ANY
        ),
        case("dcp-64", b(size=64, per=8, usual=c.DCP), W, ANY),
        case("dcp-some-done-8", b(size=8, usual=c.BARRIER, odd={2: c.DCP, 6: c.DCP}), W, ANY),
        case("eval-rank0-8", b(size=8, usual=c.BARRIER, odd={0: c.EVAL}, quiet=900.0), W, ANY),
        case(
            "eval-rank0-gloo-4",
            b(size=4, usual=c.GLOO_BARRIER, odd={0: c.EVAL}, per=1, quiet=900.0),
            W,
            ANY,
        ),
        case(
            "eval-same-line-8",
            b(
                size=8,
                usual=c.BARRIER,
                odd={0: c.EVAL_SAME},
                quiet=200.0,
                gpu={0: HOT, **dict.fromkeys(range(1, 8), COLD)},
            ),
            W,
            ANY,
        ),
        case(
            "eval-same-dark-8",
            b(size=8, usual=c.BARRIER, odd={0: c.EVAL_SAME}, quiet=200.0),
            W,
            ANY,
        ),
        case(
            "eval-bare-8",
            b(size=8, usual=c.GLOO_BARRIER, odd={0: c.EVAL}, quiet=200.0, stacks=False),
            W,
            ANY,
        ),
        case(
            "eval-bare-spin-8",
            b(size=8, usual=c.BARRIER, odd={0: c.EVAL}, quiet=200.0, stacks=False),
            W,
            ANY,
        ),
        case("import-64", b(size=64, per=8, usual=c.IMPORT, quiet=80.0, text="", age=90.0), W, ANY),
        case(
            "import-late-16",
            b(
                size=16,
                usual=c.STORE,
                odd=dict.fromkeys(range(12, 16), c.IMPORT),
                quiet=80.0,
                text="",
                age=90.0,
            ),
            W,
            (*ANY, "startup-skew"),
        ),
        case(
            "import-bare-16",
            b(size=16, usual=c.IMPORT, quiet=80.0, text="", age=90.0, stacks=False),
            W,
            ANY,
        ),
        case(
            "first-nccl-512",
            b(size=512, per=8, usual=c.BARRIER, quiet=40.0, text="starting\n", age=60.0),
            W,
            ANY,
        ),
        case(
            "stage-local0-8",
            b(size=8, usual=c.BARRIER, odd={0: TAR_WAIT, 4: TAR_WAIT}, quiet=500.0),
            W,
            ANY,
        ),
        case(
            "stage-rank0-bare-8",
            b(size=8, usual=c.BARRIER, odd={0: TAR_WAIT}, quiet=500.0, stacks=False),
            W,
            ANY,
        ),
        case(
            "tokenise-rank0-8",
            b(size=8, usual=c.BARRIER, odd={0: c.TOKENISE}, quiet=2400.0),
            W,
            ANY,
        ),
        case(
            "tokenise-bare-8",
            b(size=8, usual=c.BARRIER, odd={0: c.TOKENISE}, quiet=2400.0, stacks=False),
            W,
            ANY,
        ),
        case(
            "download-moves-8",
            b(
                size=8,
                usual=c.BARRIER,
                odd={0: replace(c.SSL_READ, chars=20_000_000, cpu=0.2)},
                quiet=500.0,
            ),
            W,
            ANY,
        ),
        case("upload-8", b(size=8, usual=c.BARRIER, odd={0: UPLOAD}, quiet=500.0), W, ANY),
        case(
            "load-weights-64",
            b(size=64, per=8, usual=LOADS, quiet=200.0, text="loading\n", age=240.0),
            W,
            ANY,
        ),
        case(
            "load-some-8",
            b(size=8, usual=c.BARRIER, odd={5: LOADS}, quiet=200.0, text="loading\n", age=240.0),
            W,
            (*ANY, "startup-skew"),
        ),
        case("buffered-8", b(size=8, usual=FORWARDS, quiet=5000.0), W, ANY),
        case(
            "buffered-gloo-4",
            b(size=4, usual=replace(c.REDUCE, then=c.FORWARD.calls, cpu=0.8), quiet=5000.0, per=1),
            W,
            ANY,
        ),
        case("uneven-8", b(size=8, usual=FORWARDS, odd={3: c.BARRIER}, quiet=60.0), W, ANY),
        case("accumulate-8", b(size=8, usual=c.BACKWARD, gpu=HOT, quiet=100.0), W, ANY),
        case(
            "loader-busy-8",
            b(size=8, usual=c.loader(BUSY_WORKER, BUSY_WORKER), quiet=90.0),
            W,
            (*ANY, "data-loader-stuck"),
        ),
        case(
            "loader-busy-one-8",
            b(size=8, usual=spin, odd={6: c.loader(BUSY_WORKER, BUSY_WORKER)}, quiet=90.0),
            "healthy unknown slow",
            ANY,
            {6},
        ),
        case(
            "loader-busy-bare-8",
            b(size=8, usual=c.loader(BUSY_WORKER, BUSY_WORKER), quiet=90.0, stacks=False),
            W,
            ANY,
        ),
        case(
            "slow-rank-8",
            b(size=8, usual=spin, odd={2: FORWARDS}, grew=True, steps=True, quiet=2.0),
            "healthy slow",
            ANY,
            {2},
        ),
        case(
            "pipeline-8",
            b(
                size=8,
                usual=replace(c.RECV_F, then=c.FORWARD.calls),
                odd={0: replace(c.SEND_F_RECV_B, then=c.RECV_B.calls)},
                quiet=60.0,
            ),
            W,
            ANY,
        ),
        case(
            "rl-generate-8",
            b(
                size=8,
                usual=RL_WAIT,
                odd={0: RL_GEN},
                quiet=120.0,
                gpu={0: HOT, **dict.fromkeys(range(1, 8), COLD)},
            ),
            W,
            ANY,
        ),
        case(
            "zero3-steps-64",
            b(size=64, per=8, usual=replace(c.ZERO3_FETCH, then=c.ZERO_NORM.calls), quiet=400.0),
            W,
            ANY,
        ),
    ]
