"""Hold, release and requeue, and what scontrol says of them: cases 049, 053, 058."""

from collections.abc import Sequence

import pytest

from slurmtop.control.actions import Action, Refusal
from slurmtop.control.hold import plan_hold, plan_release
from slurmtop.control.outcome import Outcome, Result
from slurmtop.control.requeue import plan_requeue
from slurmtop.model.job import Job
from slurmtop.parse.slurm.scontrol_replies import ReplyKind, parse_scontrol_replies
from tests.build import make_job
from tests.cases.acting import (
    Acting,
    Planner,
    Rows,
    dialog,
    planned,
    refusal,
    row,
    said,
    told,
)
from tests.cases.product import rows_of, squeue
from tests.cases.support import load, prose, sentence

HELD = {"reason": "JobHeldUser", "priority": "0"}
WAITS = {"reason": "Priority", "priority": "100"}


def tasks(base: str, numbers: Sequence[int], state: str, **more: str) -> list[dict[str, str]]:
    return [row(f"{base}_{n}", state, **more) for n in numbers]


def array(*parts: tuple[str, str]) -> list[Job]:
    return [make_job(id, state) for id, state in parts]


async def after(
    case: str, n: int, plan: Planner, jobs: Sequence[Job], looks: Sequence[Rows | None]
) -> Outcome:
    """Do it to ``jobs``; the command answers as command ``n`` of ``case`` did."""
    return await Acting(load(case)[n], looks).outcome(planned(plan, jobs))


# 049: scontrol tells of an array task by task, and not in the exit status


async def _array_held(n: int) -> Outcome:
    """4711 while its first 19 tasks end between the key and the command."""
    jobs = array(("4711_[1-99]", "PENDING"))
    rows = [*tasks("4711", range(1, 20), "COMPLETED"), row("4711_[20-99]", "PENDING", **HELD)]
    return await after("049", n, plan_hold, jobs, [rows])


@prose("049/results/1/ok", "049/results/1/failed/4711_1-19", "049/results/1/summary")
async def test_case_049_80_held_and_19_already_over() -> None:
    outcome = await _array_held(1)
    text = told(outcome)
    assert "80" in text
    assert "held" in text
    assert "19" in text
    assert "already" in text


@prose("049/results/4/ok", "049/results/4/failed/4711_[1-19]")
async def test_case_049_the_same_with_brackets() -> None:
    new, old = await _array_held(4), await _array_held(1)
    assert told(new) == told(old)


@prose("049/results/2/failed/8701")
async def test_case_049_no_such_job() -> None:
    outcome = await after("049", 2, plan_hold, [make_job("8701", "PENDING")], [[]])
    assert [job.result for job in outcome.jobs] == [Result.NO_SUCH_JOB]
    assert "no such job" in told(outcome)


@prose("049/results/3/failed/8702")
async def test_case_049_only_an_administrator_releases_his_hold() -> None:
    known = make_job("8702", "PENDING", reason="JobHeldAdmin", priority=0)
    before = refusal(planned(plan_release, [known]))
    assert "held by an administrator, only they can release it" in before
    # The hold was its owner's when the queue was read, or the reason was not known.
    job = make_job("8702", "PENDING", reason="JobHeldUser", priority=0)
    rows = [row("8702", "PENDING", reason="JobHeldAdmin", priority="0")]
    outcome = await after("049", 3, plan_release, [job], [rows])
    assert [job.result for job in outcome.jobs] == [Result.DENIED]
    assert "administrator" in told(outcome)
    assert "somebody else" not in told(outcome)


@prose("049/results/5/ok", "049/results/5/failed/4711_4-5")
async def test_case_049_what_waits_is_not_requeued_and_the_others_are() -> None:
    jobs = array(*((f"4711_{n}", "RUNNING") for n in range(6)))
    rows = [
        *tasks("4711", range(4), "PENDING", reason="BeginTime", restarts="1"),
        *tasks("4711", (4, 5), "PENDING", reason="Priority", restarts="0"),
    ]
    outcome = await after("049", 5, plan_requeue, jobs, [rows])
    by_task = {job.target.key.id: job for job in outcome.jobs}
    assert [by_task[f"4711_{n}"].result for n in range(4)] == [Result.DONE] * 4
    for n in (4, 5):
        assert by_task[f"4711_{n}"].result is not Result.DONE
        assert "wait" in by_task[f"4711_{n}"].sentence


@prose("049/results/6/failed/4711_9")
async def test_case_049_no_such_task() -> None:
    rows = [row("4711_[0-3]", "PENDING", **WAITS)]
    outcome = await after("049", 6, plan_hold, [make_job("4711_9", "PENDING")], [rows])
    (job,) = outcome.jobs
    assert job.result is Result.NO_SUCH_JOB
    assert "4711_9" in job.sentence
    assert "no such" in job.sentence


@prose("049/results/7/failed/8703")
async def test_case_049_not_your_job() -> None:
    job = make_job("8703", "PENDING", user="bob")
    outcome = await after("049", 7, plan_hold, [job], [[row("8703", "PENDING", **WAITS)]])
    assert [job.result for job in outcome.jobs] == [Result.DENIED]
    assert "somebody else" in told(outcome) or "not your" in told(outcome)


@sentence("049", '"No error" rows are successes')
@pytest.mark.parametrize("n", [1, 4])
async def test_case_049_no_error_is_a_success(n: int) -> None:
    text = told(await _array_held(n))
    assert "No error" not in text
    assert "80" in text


@sentence("049", "task lists stand with brackets (26.05) or without (22.05, 24.11)")
@pytest.mark.parametrize("n", [1, 4])
def test_case_049_task_lists_with_and_without_brackets(n: int) -> None:
    step = load("049")[n]
    over, held = parse_scontrol_replies(step.exit, step.stderr)
    assert [over.kind, held.kind] == [ReplyKind.FINISHED, ReplyKind.TAKEN]
    for reply, count in ((over, 19), (held, 80)):
        assert reply.job is not None
        assert reply.job.base == "4711"
        assert reply.job.tasks is not None
        assert (reply.job.tasks.count, reply.job.tasks.exact) == (count, True)


@sentence("049", "requeue of a whole array runs finished tasks again: ask for the tasks")
def test_case_049_a_requeue_names_the_tasks() -> None:
    jobs = array(("4711_0", "COMPLETED"), ("4711_1", "COMPLETED"), ("4711_2", "FAILED"))
    jobs += array(("4711_3", "RUNNING"), ("4711_[4-5]", "PENDING"))
    action = planned(plan_requeue, jobs)
    assert isinstance(action, Action)
    assert action.argvs == (("scontrol", "requeue", "4711_[2-3]"),)
    text = dialog(action)
    assert "left out" in text
    assert "4711_0" in text


@sentence("049", "hide the misleading words slurm_suspend error")
@pytest.mark.parametrize("n", range(1, 8))
async def test_case_049_slurm_suspend_is_never_said(n: int) -> None:
    for rows in ([row("8701", "PENDING", **WAITS), row("8702", "PENDING", **HELD)], [], None):
        jobs = [make_job(load("049")[n].argv[-1], "PENDING")]
        text = told(await after("049", n, plan_hold, jobs, [rows]))
        assert "suspend" not in text.lower()


@sentence("049", '"hold failed" for the whole array')
@pytest.mark.parametrize("n", [1, 4])
async def test_case_049_must_not_say_that_the_array_failed(n: int) -> None:
    outcome = await _array_held(n)
    assert "failed" not in told(outcome)
    assert Result.REFUSED not in [job.result for job in outcome.jobs]
    assert Result.DENIED not in [job.result for job in outcome.jobs]


# 053: what may be requeued, and what becomes of it


async def _refused(n: int, job: Job, rows: Rows) -> Outcome:
    """A requeue that got past the plan, because the queue knew less than Slurm."""
    outcome = await after("053", n, plan_requeue, [job], [rows])
    assert not outcome.ok
    assert Result.DONE not in [item.result for item in outcome.jobs]
    return outcome


@prose("053/results/1")
async def test_case_053_no_requeue() -> None:
    outcome = await _refused(1, make_job("8901"), [row("8901", "RUNNING")])
    assert [job.result for job in outcome.jobs] == [Result.REFUSED]
    text = told(outcome)
    assert "--no-requeue" in text
    assert "site forbids it" in text
    assert "submit it again" in text
    known = refusal(planned(plan_requeue, [make_job("8901", requeueable=False)]))
    assert "--no-requeue" in known


@prose("053/results/2")
async def test_case_053_interactive() -> None:
    outcome = await _refused(2, make_job("8902"), [row("8902", "RUNNING")])
    assert [job.result for job in outcome.jobs] == [Result.REFUSED]
    assert "batch" in told(outcome)
    known = refusal(planned(plan_requeue, [make_job("8902", batch=False)]))
    assert "interactive" in known or "salloc" in known


@prose("053/results/3")
async def test_case_053_already_pending() -> None:
    rows = [row("8903", "PENDING", reason="Priority", restarts="0")]
    outcome = await _refused(3, make_job("8903"), rows)
    assert "already pending" in told(outcome)
    assert "already pending" in refusal(planned(plan_requeue, [make_job("8903", "PENDING")]))


@prose("053/results/4")
async def test_case_053_too_old() -> None:
    outcome = await _refused(4, make_job("8904", "COMPLETED"), [])
    assert [job.result for job in outcome.jobs] == [Result.NO_SUCH_JOB]
    assert "submit it again" in told(outcome)


@prose("053/results/5")
async def test_case_053_not_your_job() -> None:
    outcome = await _refused(5, make_job("8905", user="bob"), [row("8905", "RUNNING")])
    assert [job.result for job in outcome.jobs] == [Result.DENIED]
    assert "somebody else" in told(outcome) or "not your" in told(outcome)


async def _requeued(*looks: Rows | None) -> Outcome:
    return await after("053", 6, plan_requeue, [make_job("8906")], looks)


def _case_row(n: int, restarts: str = "1") -> dict[str, str]:
    (job,) = squeue(load("053")[n]).rows
    more = {"reason": job.reason or "None", "restarts": restarts}
    return row("8906", job.state.word, **more)


@prose("053/results/6")
async def test_case_053_accepted_is_proven_by_the_queue() -> None:
    (job,) = (await _requeued([_case_row(8)])).jobs
    assert job.result is Result.DONE
    for rows in ([row("8906", "RUNNING", restarts="0")], None, []):
        (job,) = (await _requeued(rows)).jobs
        assert job.result is not Result.DONE
        assert "requeued" not in job.sentence


@prose("053/results/7")
async def test_case_053_still_cleaning_up() -> None:
    (job,) = (await _requeued([_case_row(7)])).jobs
    assert job.result is Result.SENT
    assert not job.final
    assert "complet" in job.sentence or "clean" in job.sentence
    (job,) = (await _requeued([_case_row(7)], [_case_row(8)])).jobs
    assert job.result is Result.DONE


@prose("053/results/8")
async def test_case_053_waits_for_the_requeue_delay() -> None:
    (job,) = (await _requeued([_case_row(8)])).jobs
    assert "two minutes" in job.sentence or "2 min" in job.sentence
    assert job.final


@sentence("053", "check Requeue= before offering the action")
def test_case_053_a_job_that_may_not_be_requeued_is_not_offered() -> None:
    no, yes = make_job("1", requeueable=False), make_job("2", requeueable=True)
    assert isinstance(planned(plan_requeue, [no]), Refusal)
    for hold, verb in ((False, "requeue"), (True, "requeuehold")):
        action = planned(plan_requeue, [no, yes], hold=hold)
        assert isinstance(action, Action)
        assert action.argvs == (("scontrol", verb, "2"),)
        assert "left out" in dialog(action)


@sentence("053", "warn that the output file may be overwritten (open-mode)")
@pytest.mark.parametrize("hold", [False, True])
def test_case_053_the_output_may_be_overwritten(hold: bool) -> None:
    text = dialog(planned(plan_requeue, [make_job("8906")], hold=hold))
    assert "overwritten" in text
    assert "open-mode" in text


# 058: what is done to one part is done to the whole het job


def _parts() -> list[Job]:
    return [make_job("9300+0", raw_id="9300"), make_job("9300+1", raw_id="9301")]


@pytest.mark.parametrize("chosen", [0, 1])
def test_case_058_the_leader_is_requeued(chosen: int) -> None:
    parts = _parts()
    action = planned(plan_requeue, [parts[chosen]], known=parts)
    assert isinstance(action, Action)
    assert action.argvs == (("scontrol", "requeue", "9300"),)
    assert [key.id for key in action.targets[0].parts] == ["9300+0", "9300+1"]
    assert "all of its parts" in dialog(action)


async def test_case_058_requeue_of_a_part_is_refused_in_words() -> None:
    looks = [[row("9300+0", "RUNNING"), row("9300+1", "RUNNING", raw_id="9301")]]
    outcome = await after("058", 3, plan_requeue, _parts(), looks)
    (job,) = outcome.jobs
    assert job.result is Result.REFUSED
    assert "leader" in job.sentence
    assert "first part" in job.sentence


@pytest.mark.parametrize("chosen", [0, 1])
@pytest.mark.parametrize(("plan", "verb"), [(plan_hold, "hold"), (plan_release, "release")])
def test_case_058_hold_and_release_reach_all_parts(plan: Planner, verb: str, chosen: int) -> None:
    parts = [make_job("9302+1", "PENDING", reason="JobHeldUser", raw_id="9303")]
    parts += [make_job("9302+0", "PENDING", reason="JobHeldUser", raw_id="9302")]
    if plan is plan_hold:
        parts = [make_job(part.key.id, "PENDING", raw_id=part.raw_id) for part in parts]
    action = planned(plan, [parts[chosen]], known=parts)
    assert isinstance(action, Action)
    assert action.argvs == (("scontrol", verb, "9302"),)
    assert len(action.targets) == 1
    assert "all of its parts" in dialog(action)


async def test_case_058_a_hold_is_read_back_from_every_part() -> None:
    parts = [make_job("9302+0", "PENDING"), make_job("9302+1", "PENDING", raw_id="9303")]
    held = [{**each, "priority": "0"} for each in rows_of(load("058")[6])]
    (job,) = (await Acting(said(rc=0), [held]).outcome(planned(plan_hold, parts))).jobs
    assert job.result is Result.DONE
    half = [held[0], {**held[1], "reason": "Priority", "priority": "100"}]
    (job,) = (await Acting(said(rc=0), [half]).outcome(planned(plan_hold, parts))).jobs
    assert job.result is not Result.DONE
