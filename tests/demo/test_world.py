"""The simulated cluster itself: nothing is given away twice, and time can be cut anyhow."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmtop.demo.answers_scancel import cancel
from slurmtop.demo.jobs import DemoJob
from slurmtop.demo.nodes import CPUS, GPUS, MEMORY_MIB, choose
from slurmtop.demo.scenario import FILL
from slurmtop.demo.scheduler import schedule
from slurmtop.demo.values import View
from slurmtop.demo.world import World
from tests.fakes import START

HOUR = 3_600


def world(scenario: str = "busy") -> World:
    made = World()
    FILL[scenario](made)
    return made


def picture(made: World) -> list[tuple[object, ...]]:
    return [
        (
            job.id,
            job.state,
            job.completing,
            job.reason,
            job.start_t,
            job.end_t,
            job.nodes,
            tuple(job.tasks or ()),
        )
        for job in made.jobs.values()
    ]


def check(made: World) -> None:
    """What must hold at any moment."""
    for node in made.nodes.values():
        assert len(node.gpu_owner) == GPUS
        assert node.cpus_used <= CPUS
        assert node.memory_used <= MEMORY_MIB
        for owner in set(node.gpu_owner) - {None}:
            assert owner is not None
            held = tuple(at for at, one in enumerate(node.gpu_owner) if one == owner)
            assert made.jobs[owner].gpu_ids[node.name] == held
            assert len(held) == made.jobs[owner].spec.gpus
        if not node.usable:
            assert not node.cpus_used
    assert sum(1 for job in made.busy.values() if job.array_id == 4830) <= 8
    for job in made.jobs.values():
        busy = job.running or job.completing
        assert (job.id in made.busy) == busy, job
        assert ((-job.priority, job.id) in made.queue) == (job.pending and not job.completing), job
        if busy:
            assert len(job.nodes) == job.spec.nodes
            assert all(job.id in made.nodes[name].cpus for name in job.nodes)
        if job.running:
            assert job.start_t is not None
            assert job.start_t <= made.t <= (job.ends_at or 0)
        if job.pending and not job.completing:
            assert job.nodes == ()


@pytest.mark.parametrize("scenario", ["busy", "quiet", "empty"])
def test_nothing_is_given_away_twice_for_three_days(scenario: str) -> None:
    made = world(scenario)
    for t in range(0, 72 * HOUR, 1_201):
        made.advance(t)
        check(made)


@given(st.lists(st.integers(1, 9 * HOUR), min_size=1, max_size=12))
@settings(max_examples=25, deadline=None)
def test_looking_in_between_changes_nothing(steps: list[int]) -> None:
    looked, asleep = world(), world()
    for step in steps:
        looked.advance(looked.t + step)
    asleep.advance(sum(steps))
    assert picture(looked) == picture(asleep)
    assert [node.gpu_owner for node in looked.nodes.values()] == [
        node.gpu_owner for node in asleep.nodes.values()
    ]


Act = Callable[[World, DemoJob], None]


def _cancel(made: World, job: DemoJob) -> None:
    cancel(View(made, START, "alice", 1001), job, None)


def _requeue(made: World, job: DemoJob) -> None:
    if job.started and not job.pending:
        made.send_back(job)


def _requeue_held(made: World, job: DemoJob) -> None:
    if job.started and not job.pending:
        made.send_back(job, held=True)


def _drop_some(made: World, job: DemoJob) -> None:
    if job.pending and job.tasks is not None:
        made.drop_tasks(job, job.tasks[::3], 1001)


ACTS: tuple[Act, ...] = (_cancel, _requeue, _requeue_held, _drop_some)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2 * HOUR),
            st.integers(0, 400) | st.sampled_from((8, 9, 10)),
            st.sampled_from(ACTS),
        ),
        max_size=25,
    )
)
@settings(max_examples=40, deadline=None)
def test_no_row_of_actions_breaks_the_books(story: list[tuple[int, int, Act]]) -> None:
    made = world()
    for wait, which, act in story:
        made.advance(made.t + wait)
        jobs = list(made.jobs.values())
        act(made, jobs[which % len(jobs)])
        schedule(made)
        check(made)
    made.advance(made.t + 6 * HOUR)
    check(made)


def test_the_head_of_the_queue_is_promised_a_time_and_starts_by_then() -> None:
    made = world()
    head = made.jobs[4910]
    assert head.reason == "Resources"
    promised = head.expected_t
    assert promised is not None
    made.advance(promised + 60)
    assert head.running or head.state == "TIMEOUT"
    assert head.start_t is not None
    assert head.start_t <= promised + 60


def test_a_job_is_not_put_on_nodes_that_are_excluded_or_broken() -> None:
    made = world("empty")
    made.nodes["gpu01"].trouble = "drain"
    job = made.submit(world().jobs[4917].spec, 0, priority=5)
    job.exc_nodes = ("gpu02",)
    assert [node.name for node in choose(made.nodes.values(), job)] == ["gpu03", "gpu04"]


def test_an_id_is_never_given_twice() -> None:
    made = world()
    with pytest.raises(ValueError, match="4817"):
        made.submit(made.jobs[4817].spec, 0, id=4817, priority=1)


def test_ended_jobs_are_remembered_for_two_days() -> None:
    made = world()
    assert 4801 in {job.id for job in made.remembered()}
    made.advance(48 * HOUR)
    known = {job.id for job in made.remembered()}
    assert 4801 not in known
    assert 4801 in made.jobs, "accounting still has it"


def test_the_last_task_of_an_array_takes_over_the_record_of_the_rest() -> None:
    made = world()
    made.drop_tasks(made.jobs[4830], range(79, 1_000), 1001)
    made.advance(3 * HOUR)
    last = made.jobs[4830]
    assert (last.task, last.tasks) == (78, None)
    assert last.state == "RUNNING" or last.end_t is not None
