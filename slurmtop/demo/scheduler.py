"""Who may start now, and why the others wait: one pass, most important first.

Strict order with backfill: a job that does not fit is promised a time, and a less important
one may start only if its limit ends before that.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from slurmtop.demo.jobs import DemoJob, Run
from slurmtop.demo.nodes import choose
from slurmtop.demo.specs import task_spec

if TYPE_CHECKING:
    from slurmtop.demo.world import World

DEPTH = 150
"""Jobs looked at in one pass; the others keep the reason they have."""


def schedule(world: "World") -> None:
    promised: int | None = None
    blocked = False
    for _, ident in world.queue[:DEPTH]:
        job = world.jobs[ident]
        if job.het_id is not None and job.het_offset:
            continue
        parts = [part for part in world.parts_of(job) if part.pending]
        reason = _why_not(world, job)
        if any(part.completing for part in parts):
            reason = "Cleaning"
        if reason is None:
            started, left = _start_what_fits(world, parts, promised if blocked else None)
            if started and not left:
                continue
            reason = "JobArrayTaskLimit" if _throttled(world, job) else None
        expected = job.begin_t if reason == "BeginTime" else None
        if reason is None:
            reason = "Priority" if blocked else "Resources"
            if not blocked:
                blocked, promised = True, _expected_start(world, parts)
                expected = promised
        for part in parts:
            part.reason, part.expected_t = reason, expected


def _throttled(world: "World", job: DemoJob) -> bool:
    if job.array_id is None or job.spec.throttle is None:
        return False
    running = sum(1 for other in world.busy.values() if other.array_id == job.array_id)
    return running >= job.spec.throttle


def _why_not(world: "World", job: DemoJob) -> str | None:
    spec = job.spec
    if job.requeue_held:
        return "job requeued in held state"
    if job.held:
        return "JobHeldUser"
    if job.begin_t is not None and job.begin_t > world.t:
        return "BeginTime"
    waits = world.dependency_word(job)
    if waits is not None:
        return "Dependency" if waits == "unfulfilled" else "DependencyNeverSatisfied"
    if spec.fixed_reason is not None:
        return spec.fixed_reason
    away = [name for name in spec.req_nodes if not world.nodes[name].usable]
    if away:
        return f"ReqNodeNotAvail, UnavailableNodes:{','.join(away)}"
    return "JobArrayTaskLimit" if _throttled(world, job) else None


def _start_what_fits(
    world: "World", parts: list[DemoJob], promised: int | None
) -> tuple[bool, bool]:
    """(something was started, something is left that could not be)."""
    job = parts[0]
    late = promised is not None and world.t + job.limit_s > promised
    if late and all(node.kept_for != job.id for node in world.nodes.values()):
        return False, True
    if job.tasks is None:
        started = _start(world, parts)
        return started, not started
    started = False
    while job.tasks and not _throttled(world, job):
        if not _start_task(world, job, job.tasks):
            return started, True
        started = True
    return started, bool(job.tasks)


def _start_task(world: "World", rest: DemoJob, tasks: list[int]) -> bool:
    """Start the first of ``tasks``; the last one takes over the record of the rest."""
    spec = rest.spec
    one = rest if len(tasks) == 1 else world.copy(rest)
    one.spec, one.task, one.tasks = task_spec(spec, tasks[0]), tasks[0], None
    if _start(world, [one]):
        if one is not rest:
            rest.tasks = tasks[1:]
        return True
    if one is rest:
        one.spec, one.task, one.tasks = spec, None, tasks
    else:
        world.forget(one)
    return False


def _start(world: "World", parts: Sequence[DemoJob]) -> bool:
    taken: list[DemoJob] = []
    for part in parts:
        found = choose(world.nodes.values(), part)
        if not found:
            for other in taken:
                world.free_nodes(other)
                other.nodes, other.gpu_ids = (), {}
            return False
        part.gpu_ids = {node.name: node.take(part) for node in found}
        part.nodes = tuple(part.gpu_ids)
        taken.append(part)
    for part in parts:
        world.begin(part, Run(part.submit_t, world.t, part.nodes))
    return True


def _expected_start(world: "World", parts: Sequence[DemoJob]) -> int | None:
    """When enough of the running jobs will have hit their limits; None: never."""
    gone: list[int] = []
    for job in sorted(world.busy.values(), key=lambda one: (one.start_t or 0) + one.limit_s):
        gone.append(job.id)
        if all(choose(world.nodes.values(), part, gone) for part in parts):
            return max(world.t + 60, (job.start_t or 0) + job.limit_s)
    return None
