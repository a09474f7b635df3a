"""A second examination: what only looks like a fault of somebody."""

from dataclasses import fields, replace

from slurmtop.model.facts import JobFacts
from tests.triage.live import examined_calls as c
from tests.triage.live.examined import Build, Do, facts_of, stack, waits
from tests.triage.live.examined_case import Case, case
from tests.triage.live.examined_hangs import LOADER
from tests.triage.live.examined_well import ANY, FORWARDS, HOT, W

GONE = Do(gone=True)
BARRIERS = c.GLOO_BARRIER
HUB = replace(c.SSL_READ, calls=c.SSL_READ.calls)
WANDB_INIT = waits(
    "%threading.py:324 wait",
    "@wandb/sdk/lib/mailbox.py:131 wait",
    "@wandb/sdk/wandb_init.py:900 init",
    "train.py:320 main",
    "train.py:402 <module>",
    cpu=0.0,
)
PLOTS = Do(
    calls=stack("plots.py:31 ngrams", "plots.py:50 corpus_bleu", "train.py:240 report", *c.MAIN),
    then=stack("plots.py:33 ngrams", "plots.py:50 corpus_bleu", "train.py:240 report", *c.MAIN),
    state="R",
    wchan="0",
    cpu=1.0,
    gil=True,
)
JSON = Do(
    calls=stack(
        "%json/decoder.py:353 raw_decode", "%json/__init__.py:293 load", "data.py:12 index", *c.MAIN
    ),
    state="R",
    wchan="0",
    cpu=1.0,
    gil=True,
)
INDEX = replace(
    JSON, calls=stack("data.py:19 index", *c.MAIN), then=stack("data.py:20 index", *c.MAIN)
)
BATON = waits(
    "@torch/utils/file_baton.py:42 wait",
    "@torch/utils/cpp_extension.py:1900 _jit_compile",
    "kernels.py:8 load",
    *c.MAIN,
    **c.NAP,
)
NVCC = Do(state="R", wchan="0", cpu=1.0, name="cicc", argv=("cicc", "--c++17"))
NINJA = waits(
    "%subprocess.py:2011 _try_wait",
    "%subprocess.py:1264 wait",
    "@torch/utils/cpp_extension.py:2100 _run_ninja_build",
    "kernels.py:8 load",
    *c.MAIN,
    wchan="do_wait",
    cpu=0.0,
    below=(NVCC,),
)
SLOW_NFS = c.worker(state="D", wchan="rpc_wait_bit_killable", cpu=0.01, read=2_000_000)
D_HERE = waits(*c.SAVE, state="D", wchan="rpc_wait_bit_killable", cpu=0.0)
XID13 = "[12.2] NVRM: Xid (PCI:0000:0a:00): 13, pid=11, Graphics SM Warp Exception"


class Beside(Build):
    """Two launches of one script at once, the second one at work."""

    def facts(self) -> JobFacts:
        well = Build(size=4, usual=FORWARDS, step=self.step, port=29777, pid0=60_000)
        return facts_of(_plain(self), well)


class After(Build):
    """What is left of an attempt beside the newer one, which is at work."""

    def facts(self) -> JobFacts:
        new = Build(size=self.size, usual=FORWARDS, attempt=1, pid0=60_000)
        return facts_of(_plain(self), new)


def _plain(one: Build) -> Build:
    return Build(**{f.name: getattr(one, f.name) for f in fields(Build)})


def _late(build: Build) -> Build:
    """The same, a minute after it was started."""
    return replace(build, text="", age=60.0, quiet=50.0)


def not_a_fault() -> list[Case]:
    """Nobody is to blame."""
    b, spin = Build, c.ITEM
    return [
        case(
            "hub-slow-8",
            b(size=8, usual=BARRIERS, odd={0: HUB}, quiet=25.0, text="", age=40.0),
            W,
            ANY,
        ),
        case(
            "hub-slow-rank5-8",
            _late(b(size=8, usual=c.STORE, odd={5: HUB})),
            W,
            (*ANY, "startup-skew"),
        ),
        case(
            "wandb-init-8",
            _late(b(size=8, usual=c.STORE, odd={0: WANDB_INIT})),
            W,
            (*ANY, "startup-skew"),
        ),
        case(
            "wandb-init-barrier-8",
            _late(b(size=8, usual=c.BARRIER, odd={0: WANDB_INIT})),
            W,
            (*ANY, "startup-skew"),
        ),
        case("report-rank0-8", b(size=8, usual=BARRIERS, odd={0: PLOTS}, quiet=60.0), W, ANY),
        case(
            "report-rank0-nccl-64",
            b(size=64, per=8, usual=c.BARRIER, odd={0: PLOTS}, quiet=60.0),
            W,
            ANY,
        ),
        case(
            "json-rank0-8",
            _late(b(size=8, usual=c.BARRIER, odd={0: JSON})),
            W,
            (*ANY, "startup-skew"),
        ),
        case(
            "index-rank5-8",
            _late(b(size=8, usual=c.STORE, odd={5: INDEX})),
            W,
            (*ANY, "startup-skew"),
        ),
        case(
            "pickle-rank0-8",
            b(size=8, usual=BARRIERS, odd={0: replace(JSON, calls=stack(*c.SAVE))}, quiet=60.0),
            W,
            ANY,
        ),
        case(
            "ninja-8",
            b(size=8, usual=BATON, odd={0: NINJA}, text="", age=100.0, quiet=90.0),
            W,
            (*ANY, "startup-skew"),
        ),
        case("two-launches-8", Beside(size=4, usual=FORWARDS, step="batch", quiet=90.0), W, ANY),
        case(
            "two-launches-log-8",
            Beside(
                size=4,
                usual=c.REDUCE,
                odd={2: c.SLEEPS},
                step="batch",
                grew=True,
                steps=True,
                quiet=2.0,
            ),
            "healthy unknown slow hung",
            (*ANY, *LOADER),
            {2},
        ),
        case("old-attempt-8", After(size=8, usual=GONE, odd={2: D_HERE}, quiet=90.0), W, ANY),
        case(
            "sweep-4",
            b(size=4, launcher="none", usual=FORWARDS, odd={2: c.SLEEPS}, quiet=60.0),
            W,
            ANY,
        ),
        case(
            "actors-8",
            b(
                size=8,
                usual=FORWARDS,
                odd={r: c.loader(pinned=True) for r in range(4, 8)},
                quiet=60.0,
            ),
            W,
            ANY,
        ),
        case(
            "loader-slow-nfs-8",
            b(size=8, usual=c.REDUCE, odd={4: c.loader(SLOW_NFS, SLOW_NFS)}, quiet=60.0),
            "healthy unknown slow",
            (*ANY, "data-loader-stuck"),
            {4},
        ),
        case("old-oom-8", b(size=8, usual=FORWARDS, oom={"gpu01": 2}, quiet=60.0), W, ANY),
        case(
            "old-xid-8",
            b(size=8, usual=FORWARDS, gpu=HOT, kernel={"gpu01": (XID13,)}, quiet=60.0),
            W,
            ANY,
        ),
        case(
            "port-down-steps-8",
            b(size=8, usual=spin, ports={"gpu02": "DOWN"}, grew=True, steps=True, quiet=1.0),
            "healthy",
            ANY,
        ),
        case(
            "drain-steps-8",
            b(
                size=8,
                usual=spin,
                states=(("gpu02", "DRAINING"),),
                grew=True,
                steps=True,
                quiet=1.0,
            ),
            "healthy",
            ANY,
        ),
        case(
            "down-word-moves-8",
            b(size=8, usual=FORWARDS, states=(("gpu02", "DOWN*"),), quiet=60.0),
            W,
            ANY,
        ),
        case("no-log-moves-8", b(size=8, usual=FORWARDS, quiet=None), W, ANY),
        case(
            "eval-512", b(size=512, per=8, usual=c.BARRIER, odd={0: c.EVAL}, quiet=1200.0), W, ANY
        ),
        case(
            "async-save-8",
            b(
                size=8,
                usual=replace(spin, then=c.BACKWARD.calls),
                odd={0: replace(FORWARDS, more=(("ckpt", c.DCP.calls),))},
                quiet=60.0,
            ),
            W,
            ANY,
        ),
        case("bare-hot-8", b(size=8, usual=spin, gpu=HOT, quiet=900.0, stacks=False), W, ANY),
        case(
            "bare-compile-gloo-4",
            b(size=4, usual=c.COMPILE_WAITS, per=1, quiet=60.0, stacks=False),
            W,
            ANY,
        ),
    ]
