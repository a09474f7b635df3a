"""One look at the queue, judged. Only what Slurm shows makes a job cancelled."""

import pytest

from slurmtop.control.after_cancel import judge_cancel as judge
from slurmtop.control.outcome import Result, Said, Seen
from slurmtop.control.rows import matching
from slurmtop.model.job import Job
from slurmtop.model.snapshot import Failure, Trouble
from tests.control.builders import job, plan

SILENT = Said()
DOWN = Seen((), Failure(Trouble.DOWN, "The controller does not answer."))


def look(
    one: Job, *rows: Job, said: Said = SILENT, before: bool = False
) -> tuple[Result, str, bool]:
    (target,) = plan(one).targets
    made = judge(target, said, Seen(rows), seen_before=before)
    return made.result, made.sentence, made.final


@pytest.mark.parametrize(
    ("word", "result", "says", "final"),
    [
        ("CANCELLED", Result.DONE, "job 4711: cancelled", True),
        ("COMPLETED", Result.OVER, "already over before the cancel reached it (COMPLETED)", True),
        ("TIMEOUT", Result.OVER, "(TIMEOUT)", True),
        (
            "COMPLETING",
            Result.SENT,
            "still completing on 1 node (epilog or a stuck process)",
            False,
        ),
        ("RUNNING", Result.SENT, "not final yet; it is still RUNNING", False),
        ("PENDING", Result.SENT, "still PENDING", False),
        ("QUANTUM", Result.SENT, "still QUANTUM", False),
    ],
)
def test_what_the_queue_shows(word: str, result: Result, says: str, final: bool) -> None:
    found = look(job("4711"), job("4711", word))
    assert found[0] is result
    assert says in found[1]
    assert found[2] is final


def test_silence_of_both_is_no_such_job() -> None:
    result, says, final = look(job("4711"))
    assert result is Result.NO_SUCH_JOB
    assert "sacct -j 4711" in says
    assert final


def test_a_job_that_was_shown_and_then_forgotten_is_over() -> None:
    result, says, _ = look(job("4711"), before=True)
    assert result is Result.OVER
    assert "sacct" in says


def test_a_silent_controller_is_not_known_and_never_cancelled() -> None:
    (target,) = plan(job("4711")).targets
    for before in (False, True):
        made = judge(target, SILENT, DOWN, seen_before=before)
        assert made.result is Result.NOT_KNOWN
        assert not made.final
        assert "does not answer" in made.sentence


def test_refusals_hold_only_while_the_job_lives() -> None:
    denied = Said(denied="denied: it belongs to bob")
    assert look(job("4711"), job("4711"), said=denied)[0] is Result.DENIED
    assert look(job("4711"), job("4711", "COMPLETED"), said=denied)[0] is Result.OVER
    refused = Said(refused="refused")
    assert look(job("4711"), job("4711"), said=refused)[0] is Result.REFUSED
    unsure = Said(unsure="no answer within 150 s")
    result, says, final = look(job("4711"), job("4711"), said=unsure)
    assert result is Result.NOT_KNOWN
    assert "no answer within 150 s" in says
    assert not final
    assert look(job("4711"), job("4711", "CANCELLED"), said=unsure)[0] is Result.DONE


def test_another_job_of_the_answer_is_not_this_one() -> None:
    assert look(job("4711"), job("4712", "CANCELLED"))[0] is Result.NO_SUCH_JOB
    assert look(job("4711_3"), job("4711_4", "CANCELLED"))[0] is Result.NO_SUCH_JOB


def test_the_rest_of_an_array_is_followed_by_its_tasks() -> None:
    rest = job("4711_[1-5]", "PENDING")
    assert look(rest, job("4711_[1-5]", "CANCELLED"))[0] is Result.DONE
    assert look(rest, job("4711_[2-5]", "PENDING"))[0] is Result.SENT
    assert look(rest)[0] is Result.NO_SUCH_JOB
    mixed = look(rest, job("4711_1", "COMPLETED"), job("4711_[2-5]", "CANCELLED"))
    assert mixed[0] is Result.DONE
    assert "1 record of it had already ended" in mixed[1]
    started = look(rest, job("4711_1", "RUNNING"), job("4711_[2-5]", "CANCELLED"))
    assert started[0] is Result.SENT
    assert started[1].endswith("it is still RUNNING")


def test_waiting_tasks_that_were_taken_out_of_their_array() -> None:
    """As seen on Slurm 22.05 after ``scancel 4711_[2-5]`` of a waiting array."""
    rest = job("4711_[2-5]", "PENDING")
    emptied = look(rest, job("4711", "CANCELLED"), job("4711_0"))
    assert emptied[0] is Result.DONE
    others = look(rest, job("4711_[6-9]", "PENDING"), job("4711_0"))
    assert others[0] is Result.DONE
    assert "no longer waits in its array" in others[1]
    running = look(job("4711_0"), job("4711_[6-9]", "PENDING"), job("4711", "CANCELLED"))
    assert running[0] is Result.NO_SUCH_JOB, "a task that ran has a record of its own"
    still = look(rest, job("4711", "PENDING"))
    assert still[0] is Result.SENT


def test_all_parts_of_a_het_job_must_be_over() -> None:
    parts = (job("9300+0"), job("9300+1"))
    (target,) = plan(*parts).targets
    rows = [job("9300+0", "CANCELLED"), job("9300+1", "COMPLETING")]
    assert judge(target, SILENT, Seen(tuple(rows)), seen_before=False).result is Result.SENT
    rows[1] = job("9300+1", "CANCELLED")
    assert judge(target, SILENT, Seen(tuple(rows)), seen_before=False).result is Result.DONE
    assert len(matching(target, rows)) == 2


def test_sentences_are_safe_to_show() -> None:
    made = look(job("4711"), job("4711", "\x1b[2J"))
    assert "\x1b" not in made[1]
