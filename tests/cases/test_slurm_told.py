"""What a person is told of one job: cases 009, 023, 031, 038."""

from dataclasses import replace
from typing import Any

import pytest

from slurmtop.collect.poller import Poller, SourceFailed
from slurmtop.collect.sacct import Accounting
from slurmtop.collect.scontrol import fetch_job_detail
from slurmtop.collect.squeue import QueueSource
from slurmtop.model.facts import JobFacts, LogStatus
from slurmtop.model.job import JobDetail
from slurmtop.model.snapshot import Trouble
from slurmtop.model.verdict import EndedBy, State
from slurmtop.parse.slurm.failures import explain_failure
from slurmtop.parse.slurm.reasons import explain_reason
from slurmtop.parse.slurm.scontrol import parse_scontrol_jobs
from slurmtop.store.jobs import JobBook
from slurmtop.triage.why import explain_job
from slurmtop.triage.words import first_line
from tests.build import make_job
from tests.cases.product import (
    CaseRunner,
    accounting_rows,
    cells,
    gather,
    hosts,
    rows_of,
    sacct,
    squeue,
    told,
    until_done,
)
from tests.cases.support import Case, found, load, product, prose, sentence, values
from tests.fakes import START

LOG = "/scratch/anna/run9/logs/6100.out"


@values("009", "023")
def test_values(path: str, wanted: Any) -> None:
    assert found(path) == wanted


# 009: exit 0:53, the output file could not be opened


async def _facts_009(reason: str = "JobLaunchFailure", nodes: str = "") -> JobFacts:
    """The job as squeue, scontrol and sacct tell it; the log is not there.

    Of the nodes the case tells nothing; Slurm does where the job had any.
    """
    case = load("009")
    runner = CaseRunner()
    (row,) = rows_of(case[4])
    row |= {"raw_id": "6100", "user": "anna", "name": "prep", "stdout": LOG, "reason": reason}
    row |= {"start": "2031-03-04T10:00:05", "end": "2031-03-04T10:00:05", "nodes": nodes}
    runner.queue([row])
    runner.says("scontrol *show job 6100", case[2])
    steps = {row["JobID"]: row for row in accounting_rows(case[3])}
    whole = accounting_rows(case[1])[0]
    runner.accounting([whole, steps["6100.batch"]])
    return await gather(runner, "6100")


@product("009")
def answer_009(case: Case) -> Any:
    (detail,) = parse_scontrol_jobs(case[2].stdout).rows
    (record,) = sacct(case[1]).rows
    assert detail.exit_code == record.exit_code
    assert detail.exit_code is not None
    return {
        "job": {
            "id": detail.job.key.id,
            "state": detail.job.state.word,
            "code": detail.exit_code.code,
            "signal": detail.exit_code.signal,
        }
    }


@prose("009/user_text_must_say/1")
async def test_case_009_user_text_names_the_trouble() -> None:
    for reason in ("JobLaunchFailure", "RaisedSignal:53(Real-time_signal_19)"):
        facts = await _facts_009(reason)
        wanted = load("009").expected["user_text_must_say"][0]
        assert wanted in explain_job(facts).summary
        assert wanted in told(facts)


@prose("009/user_text_must_say/2")
@pytest.mark.parametrize("nodes", ["", "gpu01"])
async def test_case_009_user_text_names_the_path(nodes: str) -> None:
    assert LOG in first_line(explain_job(await _facts_009(nodes=nodes)))


@prose("009/must_not_say/1")
async def test_case_009_user_text_does_not_say_signal_53() -> None:
    for reason in ("JobLaunchFailure", "RaisedSignal:53(Real-time_signal_19)", "None"):
        assert "signal 53" not in told(await _facts_009(reason)).lower()


@prose("009/must_not_say/2")
async def test_case_009_user_text_does_not_say_real_time_signal() -> None:
    for reason in ("JobLaunchFailure", "RaisedSignal:53(Real-time signal 19)", "None"):
        facts = await _facts_009(reason)
        assert "real-time signal" not in told(facts).lower()
        assert facts.job is not None
        row = " ".join(text for text, _ in cells(facts.job).values()).lower()
        assert "real-time" not in row


@sentence("009", 'offer no "open log" success: the log does not exist')
@pytest.mark.parametrize("nodes", ["", "gpu01"])
async def test_case_009_must_not_offer_the_log(nodes: str) -> None:
    facts = await _facts_009(nodes=nodes)
    assert {log.status for log in facts.logs} <= {LogStatus.ABSENT}
    for step in explain_job(facts).next:
        assert not step.command.startswith(("tail", "less", "cat"))
        assert "log" not in step.label


@sentence("009", "the sacct reason is None and says nothing; squeue/scontrol know more")
async def test_case_009_must_take_the_reason_from_squeue_or_scontrol() -> None:
    (record,) = sacct(load("009")[1]).rows
    assert record.reason is None
    (detail,) = parse_scontrol_jobs(load("009")[2].stdout).rows
    (job,) = squeue(load("009")[4]).rows
    for reason in (detail.job.reason, job.reason):
        assert reason is not None
        assert explain_reason(reason).kind == "failure"
    facts = await _facts_009()
    assert facts.reason is not None
    assert facts.reason.kind == "failure"


@sentence("009", ".batch CANCELLED is not a cancel by a user")
async def test_case_009_must_not_take_the_batch_step_for_a_cancel() -> None:
    facts = await _facts_009()
    assert [row.state.word for row in facts.history if row.id.step == "batch"] == ["CANCELLED"]
    verdict = explain_job(facts)
    assert verdict.state is State.FAILED
    assert verdict.ended_by is not EndedBy.USER
    assert verdict.cls == "slurm-launch-failure"
    assert "cancelled" not in verdict.summary.lower()


# 023: scontrol prints blanks as underscores


def _detail_023(data: bytes | None = None) -> JobDetail:
    (detail,) = parse_scontrol_jobs(load("023")[1].stdout if data is None else data).rows
    return detail


@product("023")
def answer_023(case: Case) -> Any:
    job = _detail_023().job
    assert job.reason is not None
    return {
        "job": {
            "id": job.key.id,
            "state": job.state.word,
            "reason": job.reason,
            "nodes": hosts(job.nodes),
            "start": job.start,
            "partitions": list(job.partitions),
            "gpus": job.tres.gpus,
            "command": job.command,
            "workdir": job.workdir,
        }
    }


@sentence("023", "same reason class as the squeue spelling with blanks")
def test_case_023_must_know_both_spellings_of_a_reason() -> None:
    raw = dict(_detail_023().fields)["Reason"]
    blanks = load("023").expected["job"]["reason"]
    assert "_" in raw
    for text in (raw, f"({blanks})", f"({raw})"):
        one, other = explain_reason(text), explain_reason(blanks)
        assert (one.word, one.kind, one.meaning) == (other.word, other.kind, other.meaning)
    assert explain_reason(blanks).kind != "unknown"


@sentence("023", 'values holding blanks and "=" keep whole')
@pytest.mark.parametrize("folder", ["my jobs", "a=b c=d", "x  y", "lr=3e-4 run", "k=v"])
def test_case_023_must_keep_values_with_blanks_and_equal_signs(folder: str) -> None:
    data = load("023")[1].stdout.replace(b"my jobs", folder.encode())
    detail = _detail_023(data)
    assert detail.job.workdir == f"/home/chen/{folder}"
    assert detail.job.command == f"/home/chen/{folder}/run.sh"
    fields = dict(detail.fields)
    assert fields["ReqTRES"] == "cpu=64,mem=256G,node=4,billing=64,gres/gpu=32"
    assert fields["TresPerNode"] == "gres/gpu:8"


# 031: an id that the controller does not know


def _forgotten(n: int) -> CaseRunner:
    """squeue answers as command ``n``, scontrol as 5, sacct as 4."""
    case = load("031")
    runner = CaseRunner()
    runner.accounting([])
    runner.says("scontrol *", case[5])
    runner.says("squeue *", case[n])
    return runner


@prose("031/results/1")
async def test_case_031_one_unknown_id_is_looked_up_in_accounting() -> None:
    runner = _forgotten(1)
    facts = await gather(runner, "99999999")
    assert facts.job is None
    assert facts.controller_answered
    assert len(runner.asked("sacct")) == 1


@prose("031/results/2")
async def test_case_031_the_known_one_of_two() -> None:
    runner = CaseRunner()
    runner.queue(rows_of(load("031")[2]))
    source = QueueSource(runner, runner.clock, job_id="99999999,7601")
    answer = await until_done(runner.clock, source.fetch())
    assert [job.key.id for job in answer.rows] == ["7601"]
    assert answer.bad == 0


@prose("031/results/3")
async def test_case_031_two_unknown_ids_are_an_empty_answer() -> None:
    runner = _forgotten(3)
    source = QueueSource(runner, runner.clock, job_id="99999998,99999999")
    assert (await until_done(runner.clock, source.fetch())).rows == ()
    for job in ("99999998", "99999999"):
        assert (await gather(runner, job)).job is None
    assert [argv[argv.index("-j") + 1] for argv in runner.asked("sacct")] == [
        "99999998",
        "99999999",
    ]


@prose("031/results/4")
async def test_case_031_no_record_is_unknown_and_not_failed() -> None:
    for n in (1, 3):
        facts = await gather(_forgotten(n), "99999999")
        assert facts.accounting_answered is True
        verdict = explain_job(facts)
        assert verdict.state is State.UNKNOWN
        assert "failed" not in verdict.summary


@prose("031/results/5")
async def test_case_031_scontrol_says_the_same_as_squeue() -> None:
    runner = _forgotten(1)
    with pytest.raises(SourceFailed) as caught:
        await until_done(runner.clock, fetch_job_detail(runner, "99999999"))
    assert caught.value.failure.trouble is Trouble.UNKNOWN_JOB


@sentence("031", "treat the exit status 1 of the first as an outage")
async def test_case_031_must_not_take_an_unknown_id_for_an_outage() -> None:
    step = load("031")[1]
    failure = explain_failure("squeue", step.exit, step.stderr)
    assert failure.trouble is Trouble.UNKNOWN_JOB
    facts = await gather(_forgotten(1), "99999999")
    assert facts.controller_answered
    assert facts.missing == ()
    assert "controller is silent" not in told(facts)


@sentence("031", "mark a job FAILED because squeue lost it")
async def test_case_031_must_not_call_a_lost_job_failed() -> None:
    book = JobBook()
    job = make_job("99999999")
    book.apply([job], START)
    book.apply([], START)
    (gone,) = book.gone.values()
    assert gone.result is None
    assert gone.job.state.word == "RUNNING"
    runner = _forgotten(3)
    runner.accounting([{"JobID": "99999999", "State": "RUNNING"}])
    for other in (runner, _forgotten(3)):
        assert explain_job(await gather(other, "99999999")).state is State.UNKNOWN


# 038: accounting is switched off


def _disabled() -> CaseRunner:
    runner = CaseRunner()
    runner.says("sacct *", load("038")[1])
    runner.on("scontrol *", rc=1, stderr=load("031")[5].stderr)
    row = {"id": "5", "raw_id": "5", "state": "COMPLETED", "user": "anna"}
    runner.queue([row | {"start": "2031-05-05T10:00:00", "end": "2031-05-05T11:00:00"}])
    return runner


async def _asked_twice() -> tuple[CaseRunner, Accounting]:
    runner = _disabled()
    accounting = Accounting(runner)
    for _ in range(2):
        with pytest.raises(SourceFailed) as caught:
            await until_done(runner.clock, accounting.history("5"))
        assert caught.value.failure.trouble is Trouble.NO_ACCOUNTING
    return runner, accounting


@sentence("038", "never call sacct again in this session")
async def test_case_038_must_never_ask_again() -> None:
    runner, accounting = await _asked_twice()
    for job in ("5", "6"):
        await gather(runner, job, accounting=accounting)
    assert len(runner.asked("sacct")) == 1
    assert accounting.disabled is not None
    assert accounting.disabled.retry_after_s == float("inf")


@sentence("038", "ended jobs come from squeue -t all / scontrol while they last")
async def test_case_038_must_take_ended_jobs_from_the_controller() -> None:
    runner, accounting = await _asked_twice()
    facts = await gather(runner, "5", accounting=accounting)
    (argv,) = runner.asked("squeue")
    assert argv[argv.index("-t") + 1] == "all"
    verdict = explain_job(facts)
    assert verdict.state is State.HEALTHY
    assert verdict.summary.startswith("completed after 60 min")
    own = QueueSource(runner, runner.clock)
    await until_done(runner.clock, own.fetch())
    argv = runner.asked("squeue")[-1]
    assert argv[argv.index("-t") + 1] == "all"


@sentence("038", "say that there is no history on this cluster")
async def test_case_038_must_say_that_there_is_no_history() -> None:
    runner, accounting = await _asked_twice()
    assert accounting.disabled is not None
    assert "no history" in accounting.disabled.sentence
    facts = await gather(runner, "5", accounting=accounting)
    assert any("no history" in missing.why for missing in facts.missing)


@sentence("038", "retry every cycle")
async def test_case_038_must_not_retry_every_cycle() -> None:
    runner = _disabled()
    accounting = Accounting(runner)

    class History:
        name = "history"
        interval_s = 20.0

        async def fetch(self) -> object:
            return await accounting.history("5")

    poller = Poller(History(), runner.clock, lambda _: None, jitter=lambda: 0.0)
    await until_done(runner.clock, poller.run())
    assert poller.stopped
    assert len(runner.asked("sacct")) == 1


@sentence("038", "stop the program")
async def test_case_038_must_not_stop_the_program() -> None:
    runner = _disabled()
    facts = await gather(runner, "5")
    assert facts.job is not None
    assert explain_job(facts).state is State.HEALTHY
    lost = replace(facts, job=None, detail=None)
    assert explain_job(lost).state is State.UNKNOWN
