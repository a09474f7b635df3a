"""Evidence is never destroyed unasked: what is known of a suspect is saved before it is ended."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from slurmtop.control.action_log import ActionLog
from slurmtop.control.actions import Action, Asker, Kind, Refusal, Saving
from slurmtop.control.cancel import plan_cancel, plan_cancel_step
from slurmtop.control.execute import Executor
from slurmtop.control.hold import plan_hold
from slurmtop.control.outcome import Outcome, Result
from slurmtop.control.read_back import QueueReadBack
from slurmtop.control.requeue import plan_requeue
from slurmtop.control.save_first import AT_MOST, Kept, saving_lines
from slurmtop.model.job import Job, Step
from tests.build import make_id
from tests.control.bench import Bench, Lines
from tests.control.builders import NOW, job

FOLDER = "/home/anna/.local/state/slurmtop/bundles"


def asker(*suspects: Job, folder: str = FOLDER) -> Asker:
    keys = frozenset(one.key for one in suspects)
    return Asker(me="anna", now=NOW, suspects=keys, save_folder=folder)


def planned(action: Action | Refusal) -> Action:
    assert isinstance(action, Action), action
    return action


def test_a_suspect_is_saved_in_a_folder_of_its_own() -> None:
    one, other = job("4711_3"), job("4712")
    action = planned(plan_cancel([one, other], asker(one)))
    assert action.saves == (Saving(one.key, "4711_3", f"{FOLDER}/4711_3-20310505T120000Z"),)
    (line,) = saving_lines(action)
    assert line == f"saves what is known first: {action.saves[0].path}, about 10 s"


def test_what_ends_nothing_saves_nothing() -> None:
    one = job("4711")
    assert planned(plan_requeue([one], asker(one))).saves
    assert planned(plan_requeue([one], asker(one), hold=True)).saves
    assert not planned(plan_hold([job("4711", "PENDING")], asker(one))).saves
    step = Step(job=make_id("4711"), id="0", name="train.py")
    assert not planned(plan_cancel_step(one, step, asker(one))).saves
    assert not planned(plan_cancel([one], asker())).saves
    assert not planned(plan_cancel([one], asker(one, folder=""))).saves
    assert saving_lines(planned(plan_cancel([one], asker()))) == []


def test_of_many_suspects_some_are_saved_and_that_is_told() -> None:
    jobs = [job(str(4_000 + n)) for n in range(10)]
    action = planned(plan_cancel(jobs, asker(*jobs)))
    assert len(action.saves) == AT_MOST
    assert any("saved first of 4 suspects only, not of 6 others" in one for one in action.warnings)


def test_a_part_of_a_het_job_saves_the_whole() -> None:
    parts = [job("4815+0"), job("4815+1")]
    action = planned(plan_cancel([parts[1]], asker(parts[1]), known=parts))
    assert [one.job for one in action.saves] == ["4815+0"]


class Saves:
    """Saves, or does not, and notes what Slurm had been sent by then."""

    def __init__(self, bench: Bench, trouble: str | None = None) -> None:
        self._bench = bench
        self.trouble = trouble
        self.asked: list[tuple[str, ...]] = []
        self.sent_before: list[int] = []

    async def __call__(self, wanted: Sequence[Saving]) -> Kept:
        self.asked.append(tuple(one.job for one in wanted))
        self.sent_before.append(len(self._bench.sent))
        if self.trouble is not None:
            return Kept(trouble=self.trouble)
        return Kept(paths=tuple(one.path for one in wanted))


def bench_of(trouble: str | None = None, log: Lines | None = None) -> tuple[Bench, Saves]:
    bench = Bench(log=log)
    saves = Saves(bench, trouble)
    bench.executor = Executor(
        bench.runner,
        bench.clock,
        ActionLog(lambda: bench.lines, who="anna", uid=20011),
        read_only=False,
        read_back=QueueReadBack(bench.runner),
        save_first=saves,
    )
    bench.queue = [{"4711": "CANCELLED"}]
    return bench, saves


async def run(bench: Bench, action: Action, **how: bool) -> Outcome:
    task = bench.begin(action, **how)
    while not task.done():
        await bench.clock.advance(0.5)
    return await task


async def test_it_is_saved_before_slurm_hears_of_it_and_that_is_logged() -> None:
    bench, saves = bench_of()
    one = job("4711")
    action = planned(plan_cancel([one], asker(one)))
    outcome = await run(bench, action)
    assert (saves.asked, saves.sent_before) == ([("4711",)], [0])
    assert bench.sent == [("scancel", "4711")]
    paths = [one.path for one in action.saves]
    assert (outcome.ok, list(outcome.saved)) == (True, paths)
    assert [json.loads(line)["details"] for line in bench.lines.lines] == [{"saved": paths}] * 2


async def test_where_it_cannot_be_saved_nothing_is_done_until_somebody_says_so() -> None:
    bench, saves = bench_of("what is known could not be saved first: job 4711: the disk is full")
    one = job("4711")
    action = planned(plan_cancel([one], asker(one)))
    outcome = await run(bench, action)
    assert outcome.unsaved == saves.trouble
    assert not outcome.ok
    assert outcome.sentence == f"nothing was done: {saves.trouble}"
    assert bench.sent == []
    assert bench.lines.lines == []
    outcome = await run(bench, action, without_save=True)
    assert outcome.jobs[0].result is Result.DONE
    assert outcome.saved == ()
    assert len(saves.asked) == 1


async def test_whoever_hands_in_no_way_to_save_does_not_lose_it_silently() -> None:
    bench = Bench()
    one = job("4711")
    outcome = await run(bench, planned(plan_cancel([one], asker(one))))
    assert outcome.unsaved is not None
    assert bench.sent == []


async def test_what_was_saved_is_not_saved_again_where_the_log_was_asked_about() -> None:
    lines = Lines(OSError(28, "No space left on device"))
    bench, saves = bench_of(log=lines)
    one = job("4711")
    action = planned(plan_cancel([one], asker(one)))
    outcome = await run(bench, action)
    assert outcome.unlogged is not None
    outcome = await run(bench, action, without_log=True)
    assert saves.asked == [("4711",)]
    assert outcome.ok
    assert outcome.saved == tuple(one.path for one in action.saves)


async def test_what_the_person_left_out_is_not_saved() -> None:
    bench, saves = bench_of()
    one = job("4711")
    action = planned(plan_cancel([one], asker(one)))
    outcome = await run(bench, replace(action, saves=()))
    assert outcome.ok
    assert saves.asked == []


@pytest.mark.parametrize("kind", [Kind.CANCEL, Kind.REQUEUE])
async def test_a_dry_run_saves_nothing(kind: Kind) -> None:
    bench = Bench(dry_run=True)
    one = job("4711")
    plan = plan_cancel if kind is Kind.CANCEL else plan_requeue
    outcome = await run(bench, planned(plan([one], asker(one))))
    assert outcome.dry_run
    assert outcome.unsaved is None
