"""What is going on in the simulated cluster when somebody first looks at it.

Minutes are counted from the start of the demo; what happened before is negative. GPUs are
given out by hand, so that every node's use adds up.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from slurmtop.demo.jobs import DemoJob, Ending, Prepared, Spec
from slurmtop.demo.scheduler import schedule
from slurmtop.demo.specs import scatter, task_spec
from slurmtop.demo.world import World

MINUTE = 60
HOUR = 3_600
DAY = 86_400
ALL8 = tuple(range(8))
HUGE_PENDING = 20_000
#: A name and a comment that try to change the screen, forge a record and a colour.
HOSTILE_NAME = '[bold red]we|rd, "ünï" [/] $(x)\x1b[2J\x1b[31m'
HOSTILE_COMMENT = "multi\nline | comment"

SWEEP = Spec(
    name="hparam-sweep",
    gpus=1,
    typed_gpus=False,
    cpus=12,
    mem_mib=204_800,
    limit_s=4 * HOUR,
    array=(0, 1_000),
    throttle=8,
    story="epochs",
    workdir="/shared/alice/sweep",
    stdout="logs/%A_%a.out",
    script="sweep.sbatch",
)


def _spec(name: str, gpus: int = 8, **given: Any) -> Spec:
    """A job with the CPUs and the memory that go with ``gpus`` GPUs of a node."""
    share: dict[str, Any] = {"gpus": gpus, "cpus": 16 * gpus, "mem_mib": 240_640 * gpus}
    return Spec(name=name, **(share | given))


def _ended(
    world: World,
    id: int,
    spec: Spec,
    start_min: int,
    end_min: int,
    gpus: dict[str, tuple[int, ...]],
    state: str | None = None,
) -> None:
    job = world.submit(spec, start_min * MINUTE - 400, id=id, priority=12_000)
    world.place(job, start_min * MINUTE, gpus, end_t=end_min * MINUTE, state=state)


def _running(
    world: World, id: int, spec: Spec, start_min: int, gpus: dict[str, tuple[int, ...]]
) -> DemoJob:
    job = world.submit(spec, start_min * MINUTE - 700, id=id, priority=12_000)
    world.place(job, start_min * MINUTE, gpus)
    return job


def _waiting(world: World, id: int, spec: Spec, submit_min: int, priority: int) -> DemoJob:
    return world.submit(spec, submit_min * MINUTE, id=id, priority=priority)


def _pretrain(**given: Any) -> Spec:
    return _spec(
        "llm-pretrain-7b",
        partition="long",
        nodes=2,
        limit_s=2 * DAY,
        run_s=30 * HOUR,
        workdir="/shared/alice/pretrain",
        stdout="logs/pretrain_%j.log",
        step_command="torchrun --nproc-per-node=8 train.py",
        prepared=Prepared.RANKS,
        **given,
    )


def _history(world: World) -> None:
    forgotten = _spec(
        "tokenize-c4", 0, cpus=64, mem_mib=262_144, run_s=95 * MINUTE, story="tokens",
        workdir="/shared/alice/data", script="tokenize.sbatch",
    )  # fmt: skip
    _ended(world, 4702, forgotten, -3 * 1_440, -3 * 1_440 + 95, {"gpu06": ()})
    stopped = {"gpu01": ALL8, "gpu02": ALL8}
    _ended(world, 4788, _pretrain(), -900, -545, stopped, state="CANCELLED")
    died = _spec(
        "segment-3d", user="carol", ending=Ending.NODE_FAIL, run_s=HOUR, story="epochs",
        workdir="/shared/carol",
    )  # fmt: skip
    _ended(world, 4795, died, -700, -432, {"gpu08": ALL8})
    failed = _spec(
        "vit-finetune", 2, ending=Ending.FAILED, exit_code=1, run_s=39 * MINUTE, requeue=False,
        story="traceback", workdir="/shared/alice/vit", stdout="logs/vit_%j.out",
        script="finetune.sbatch",
    )  # fmt: skip
    _ended(world, 4801, failed, -70, -31, {"gpu05": (5, 6)})
    killed = _spec(
        "preprocess-laion", 0, cpus=16, mem_mib=131_072, ending=Ending.OUT_OF_MEMORY,
        run_s=22 * MINUTE, story="shards", workdir="/shared/alice/data",
        stdout="logs/laion_%j.out", stderr="logs/laion_%j.err", script="laion.sbatch",
    )  # fmt: skip
    _ended(world, 4803, killed, -140, -118, {"gpu06": ()})
    late = _spec(
        "eval-longctx", 1, ending=Ending.TIMEOUT, limit_s=HOUR, story="epochs",
        workdir="/shared/alice/eval", stdout="eval_%j.out", script="eval.sbatch",
    )  # fmt: skip
    _ended(world, 4805, late, -140, -80, {"gpu05": (4,)})
    fine = _spec(
        "smoke-test", 1, limit_s=HOUR, run_s=4 * MINUTE, story="epochs",
        workdir="/shared/alice/pretrain", script="smoke.sbatch",
    )  # fmt: skip
    _ended(world, 4809, fine, -79, -75, {"gpu05": (4,)})


def _looping(world: World) -> None:
    """A job whose script has put it back three times: it fails in the same way each time."""
    spec = _spec(
        "reward-model", 2, limit_s=8 * HOUR, run_s=4 * MINUTE, ending=Ending.FAILED, exit_code=1,
        append=True, retries=3, story="epochs", workdir="/shared/alice/rlhf",
        stdout="logs/reward_%j.log", script="reward.sbatch", prepared=Prepared.NOTHING,
        error="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.31 GiB."
        " GPU 0 has a total capacity of 79.11 GiB of which 1.94 GiB is free.",
    )  # fmt: skip
    job = world.submit(spec, -115 * MINUTE, id=4807, priority=12_000)
    for attempt in range(4):
        start = (-112 + 7 * attempt) * MINUTE
        end = start + 4 * MINUTE
        world.place(job, start, {"gpu05": (5, 6)}, end_t=end)
        if attempt < spec.retries:
            run = job.runs[-1]
            run.state, run.exit, run.step_exit = "REQUEUED", (0, 0), (1, 0)
            job.restarts, job.submit_t, job.eligible_t = attempt + 1, end, end + 121


def _running_now(world: World) -> None:
    _running(world, 4811, _pretrain(), -312, {"gpu01": ALL8, "gpu02": ALL8})
    het = _spec(
        "rl-selfplay", 1, limit_s=12 * HOUR, run_s=5 * HOUR, story="epochs",
        workdir="/shared/alice/rl", stdout="logs/rl_%j.log", script="rl.sbatch",
        step_command="python learner.py",
    )  # fmt: skip
    actors = replace(het, gpus=2, cpus=32, mem_mib=481_280, step_command="python actor.py")
    learner = _running(world, 4815, het, -26, {"gpu05": (4,)})
    world.join([learner, _running(world, 4816, actors, -26, {"gpu05": (5, 6)})])
    hung = _spec(
        "moe-8x7b", nodes=2, limit_s=DAY, hang_s=112 * MINUTE, workdir="/shared/alice/moe",
        stdout="logs/moe_%j.log", step_command="torchrun --nproc-per-node=8 train.py",
        prepared=Prepared.NOTHING,
    )  # fmt: skip
    _running(world, 4817, hung, -123, {"gpu03": ALL8, "gpu04": ALL8})
    _requeued(world)
    notebook = _spec(
        "jupyter", 1, user="bob", cpus=8, limit_s=12 * HOUR, run_s=8 * HOUR, story="quiet",
        workdir="/shared/bob", script="jupyter.sbatch", steps=False,
    )  # fmt: skip
    _running(world, 4824, notebook, -118, {"gpu05": (7,)})
    hostile = _spec(
        HOSTILE_NAME, 0, user="carol", cpus=16, mem_mib=65_536, limit_s=2 * DAY, run_s=30 * HOUR,
        comment=HOSTILE_COMMENT, story="quiet", workdir="/shared/carol", script=None,
        steps=False,
    )  # fmt: skip
    _running(world, 4826, hostile, -181, {"gpu06": ()})


def _requeued(world: World) -> None:
    """A job that was requeued once and goes on from its checkpoint."""
    sft = _spec(
        "sft-llama", 4, limit_s=8 * HOUR, run_s=51 * MINUTE, append=True, story="bar",
        workdir="/shared/alice/sft", stdout="logs/sft_%j.log", script="sft.sbatch",
    )  # fmt: skip
    job = world.submit(sft, -186 * MINUTE, id=4822, priority=12_000)
    world.place(job, -175 * MINUTE, {"gpu05": (0, 1, 2, 3)}, end_t=-52 * MINUTE)
    first = job.runs[-1]
    first.state, first.exit, first.by_uid = "REQUEUED", (0, 0), None
    job.restarts, job.exit, job.submit_t = 1, (0, 0), -52 * MINUTE
    job.end_t, job.by_uid, job.eligible_t = None, None, -50 * MINUTE + 1
    world.place(job, -48 * MINUTE, {"gpu05": (0, 1, 2, 3)})


def _sweep(world: World) -> None:
    """An array that has been going for hours: eight tasks at a time on gpu06."""
    rest = world.submit(SWEEP, -482 * MINUTE, id=4830, priority=15_000)
    free_at = [-480 * MINUTE - 350] * 8
    tasks = list(rest.tasks or ())
    while tasks and min(free_at) <= 0:
        slot = free_at.index(min(free_at))
        start, task = free_at[slot], tasks.pop(0)
        spec = task_spec(SWEEP, task)
        end = start + (spec.run_s or 0)
        free_at[slot] = end + 4
        one = world.copy(rest)
        one.spec, one.task = spec, task
        world.place(one, start, {"gpu06": (slot,)}, end_t=end if end <= 0 else None)
    rest.tasks = tasks


def _pending(world: World) -> None:
    big = replace(_pretrain(), name="llm-pretrain-70b", partition="gpu", nodes=4, limit_s=DAY)
    _waiting(world, 4910, big, -24, 14_880)
    _waiting(
        world, 4911, _spec("eval-7b", 1, limit_s=HOUR, depends_on=4811, run_s=1_800), -23, 9_990
    )
    _waiting(world, 4912, _spec("vit-eval", 1, limit_s=HOUR, depends_on=4801), -22, 9_980)
    later = _spec("nightly-eval", 1, limit_s=HOUR, run_s=1_500, begin_at=6 * HOUR)
    _waiting(world, 4913, later, -21, 9_970)
    _waiting(world, 4914, _spec("ablation-lr", 4, held=True, requeue=False), -20, 9_960)
    _waiting(world, 4915, _spec("dpo-llama", qos="burst", fixed_reason="QOSGrpGRES"), -19, 9_950)
    tied = _spec("ckpt-convert", 0, cpus=16, mem_mib=65_536, req_nodes=("gpu07",))
    _waiting(world, 4916, tied, -17, 9_940)
    bob = _spec(
        "diffusion-xl", user="bob", nodes=2, limit_s=10 * HOUR, run_s=7 * HOUR,
        story="epochs", workdir="/shared/bob",
    )  # fmt: skip
    _waiting(world, 4917, bob, -15, 9_900)
    lead = _spec("rl-selfplay-xl", limit_s=20 * HOUR, workdir="/shared/alice/rl", run_s=9 * HOUR)
    parts = (lead, replace(lead, nodes=2))
    world.join([_waiting(world, 4918 + at, part, -12, 9_800) for at, part in enumerate(parts)])
    folding: dict[str, Any] = {
        "user": "dave",
        "limit_s": 6 * HOUR,
        "run_s": 2 * HOUR,
        "story": "epochs",
        "workdir": "/shared/dave",
    }
    _waiting(world, 4920, _spec("alphafold", 1, **folding), -8, 9_700)
    _waiting(world, 4921, _spec("alphafold-big", 4, **folding), -8, 9_690)
    mmlu = _spec("eval-mmlu", 4, limit_s=2 * HOUR, run_s=70 * MINUTE, story="epochs")
    _waiting(world, 4922, mmlu, -3, 9_650)


def _broken_nodes(world: World) -> None:
    drained, down = world.nodes["gpu07"], world.nodes["gpu08"]
    drained.trouble, drained.reason, drained.reason_t = "drain", "Xid 79 on gpu 3", -9 * HOUR
    down.trouble, down.reason, down.reason_t = "down", "Not responding", -432 * MINUTE


def fill_busy(world: World) -> None:
    _broken_nodes(world)
    _history(world)
    _looping(world)
    _running_now(world)
    _sweep(world)
    _pending(world)
    world.has_arrivals()
    schedule(world)


def fill_quiet(world: World) -> None:
    _running(world, 4811, _pretrain(), -312, {"gpu01": ALL8, "gpu02": ALL8})
    _waiting(
        world, 4911, _spec("eval-7b", 1, limit_s=HOUR, depends_on=4811, run_s=1_800), -23, 9_990
    )
    schedule(world)


def fill_empty(world: World) -> None:
    world.next_id = 4_923


def fill_huge(world: World) -> None:
    fill_busy(world)
    users = ("bob", "carol", "dave")
    base = _spec("batch", limit_s=6 * HOUR, run_s=3 * HOUR, story="epochs")
    specs = [
        replace(
            base,
            name=f"screen-{kind}",
            user=users[kind % 3],
            gpus=1 + kind % 8,
            workdir=f"/shared/{users[kind % 3]}",
        )
        for kind in range(24)
    ]
    for number in range(HUGE_PENDING):
        spec = specs[scatter(number, len(specs))]
        world.submit(spec, -scatter(number, 3 * DAY) - 600, priority=1_000 + scatter(number, 7_000))
    schedule(world)


SCENARIOS: dict[str, str] = {
    "busy": "Eight nodes in full use: one job hangs, some failed, an array, and much that waits",
    "quiet": "One healthy training job, and one that waits for it",
    "outage": "As busy, but the controller does not answer for three of every ten minutes",
    "huge": "As busy, with 20,000 waiting jobs of other people",
    "empty": "Nobody has a job",
}
FILL: dict[str, Callable[[World], None]] = {
    "busy": fill_busy,
    "quiet": fill_quiet,
    "outage": fill_busy,
    "huge": fill_huge,
    "empty": fill_empty,
}
