"""Waiting tasks of one array that squeue prints in one row, although only some are held."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from slurmtop.control.actions import Action, Asker, Kind
from slurmtop.control.commands import merge_ranges
from slurmtop.control.hold import plan_hold
from slurmtop.control.outcome import Result, Seen
from slurmtop.control.plan import task_ranges
from slurmtop.control.prepare import Request, prepare
from slurmtop.control.read_back import QueueReadBack
from slurmtop.control.rows import join_alike
from slurmtop.model.job import Job
from slurmtop.model.ports import Command, Completed
from tests.control.bench import Bench
from tests.control.builders import NOW, FakeWorld, job
from tests.fakes import START, FakeRunner

_TASK = ("pending", "held", "running")


def _task(number: int, how: str) -> Job:
    if how == "running":
        return job(f"2212_{number}", "RUNNING")
    held = how == "held"
    row = job(f"2212_{number}", "PENDING", reason="JobHeldUser" if held else "Priority")
    return replace(row, priority=0 if held else 4_294, raw_id=str(9_000 + number))


def _named(rows: tuple[Job, ...]) -> list[tuple[int, str | None]]:
    out: list[tuple[int, str | None]] = []
    for row in rows:
        if row.id.tasks is not None:
            for low, high in task_ranges(row.id.tasks) or ():
                out += [(number, row.reason) for number in range(low, high + 1)]
        elif row.id.task is not None:
            out.append((row.id.task, row.reason))
    return sorted(out)


@given(st.lists(st.sampled_from(_TASK), min_size=1, max_size=30))
def test_no_task_is_lost_and_none_is_joined_to_one_that_differs(hows: list[str]) -> None:
    rows = [_task(number, how) for number, how in enumerate(hows)]
    joined = join_alike(rows)
    assert _named(joined) == sorted((row.id.task or 0, row.reason) for row in rows)
    assert len({row.key for row in joined}) == len(joined)
    assert all(row.state.word == "RUNNING" for row in joined if row.reason is None)


def test_tasks_that_are_all_alike_are_one_record_again() -> None:
    joined = join_alike([_task(number, "pending") for number in (0, 1, 2, 7)])
    assert [row.id.text for row in joined] == ["2212_[0-2,7]"]
    assert joined[0].key.id == "2212_[*]"


async def test_they_are_asked_for_one_by_one_only_where_asked() -> None:
    runner = FakeRunner()
    seen: list[tuple[str, ...]] = []

    def look(command: Command) -> Completed:
        seen.append(command.argv)
        return Completed(0, b"", b"", START, 0.1)

    runner.on_call("squeue *", look)
    read_back = QueueReadBack(runner)
    await read_back.read(["2212"], "")
    await read_back.read(["2212"], "", apart=True)
    assert ["-r" in argv for argv in seen] == [False, True]


async def test_a_hold_of_two_of_ten_tasks_is_seen_although_squeue_joins_them() -> None:
    """Measured on 22.05.8: after ``scontrol hold 2212_[5-6]`` a plain squeue prints
    ``2212_[0-9]|PENDING|None,JobHeldUser`` with the priority of a task that is not held."""
    shown = job("2212_[5-6]", "PENDING", reason="Priority", priority=4_294)
    action = plan_hold([shown], Asker(me="anna", now=NOW))
    assert isinstance(action, Action)
    bench = Bench()
    held = {"State": "PENDING", "Reason": "JobHeldUser", "PriorityLong": "0"}
    free = {"State": "PENDING", "Reason": "None", "PriorityLong": "4294"}
    bench.queue = [{f"2212_{number}": held if number in (5, 6) else free for number in range(10)}]
    outcome = await bench.run(action)
    assert [item.result for item in outcome.jobs] == [Result.DONE]
    assert any("-r" in one.argv for one in bench.runner.calls)


async def test_a_release_names_only_the_tasks_that_are_held() -> None:
    shown = job("2212_[0-9]", "PENDING", reason="None,JobHeldUser", priority=4_294)
    rows = join_alike(
        [_task(number, "held" if number in (5, 6) else "pending") for number in range(10)]
    )
    world = FakeWorld(seen=Seen(rows))
    made = await prepare(
        Request(kind=Kind.RELEASE, jobs=(shown,), known=(shown,)), world, Asker(me="anna", now=NOW)
    )
    assert isinstance(made, Action), made
    ranges = merge_ranges(span for target in made.targets for span in target.tasks)
    assert ranges == [(5, 6)]
