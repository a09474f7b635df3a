"""Slurm's word beside what the logs tell: who is right about what."""

import dataclasses

import pytest

from slurmtop.model.facts import JobFacts, LogLine
from slurmtop.model.job import ExitCode
from slurmtop.model.verdict import Confidence, EndedBy, State, Verdict
from slurmtop.parse.logs.reading import read_bytes
from slurmtop.triage.join import join
from slurmtop.triage.logs_say import logs_say
from slurmtop.triage.why import explain_job
from slurmtop.triage.words import four_lines
from tests.triage.builders import STEP, TRACE, live, log, row
from tests.triage.logs_told import (
    CRASHED,
    KILLED,
    LIMIT,
    LOG,
    RAISED,
    STALL,
    SURVIVED,
    TIMED_OUT,
    say,
)

LATE = LogLine("ValueError: mirror answers nonsense", 990, 9_000)


def facts(word: str, exit_text: str, text: str, **changes: object) -> JobFacts:
    """A job of four tasks whose log holds ``text``."""
    said = changes.pop("said", None) or say(text)
    made = live(word, exit_text, logs_say=said, **changes)
    assert made.detail is not None
    fields = (*made.detail.fields, ("NumTasks", "4"))
    return dataclasses.replace(made, detail=dataclasses.replace(made.detail, fields=fields))


def told(word: str, exit_text: str, text: str, **changes: object) -> Verdict:
    return explain_job(facts(word, exit_text, text, **changes))


def ranks(verdict: Verdict) -> list[int | None]:
    return [culprit.rank for culprit in verdict.culprits]


def test_a_rank_that_threw_is_named_and_its_line_is_the_proof() -> None:
    verdict = told("FAILED", "1:0", RAISED)
    assert (verdict.state, verdict.cls) == (State.FAILED, "python-exception")
    assert (verdict.ended_by, verdict.confidence) == (EndedBy.SELF, Confidence.HIGH)
    assert ranks(verdict) == [2]
    assert verdict.evidence[0].text == "[rank2]: ValueError: shard data-02 is empty"
    assert verdict.evidence[0].line == 6
    assert "ValueError: shard data-02 is empty (exit code 1)" in verdict.summary
    assert any(one.family == "slurm" and one.line is None for one in verdict.evidence)
    assert four_lines(verdict)[3].startswith(f"do     less +6 {LOG}")


def test_without_logs_slurm_alone_speaks() -> None:
    verdict = explain_job(live("FAILED", "1:0"))
    assert (verdict.state, verdict.cls, verdict.culprits) == (State.FAILED, None, ())


def test_an_error_that_was_survived_is_not_why_it_failed() -> None:
    trace = log("stdout", 400, first_error=TRACE)
    verdict = told("FAILED", "1:0", SURVIVED, logs=(trace,))
    assert (verdict.state, verdict.cls, verdict.culprits) == (State.FAILED, None, ())
    assert "ValueError" not in verdict.summary
    assert verdict.evidence[0].family == "slurm"
    assert [one.says for one in verdict.evidence if one.family == "log"] == [
        "an error in the log that it got over"
    ]


@pytest.mark.parametrize(
    ("word", "cls"),
    [
        ("TIMEOUT", "slurm-time-limit"),
        ("PREEMPTED", "slurm-preempted"),
        ("NODE_FAIL", "slurm-node-fail"),
        ("CANCELLED", None),
    ],
)
@pytest.mark.parametrize("text", [RAISED, CRASHED, KILLED, TIMED_OUT, STALL, LIMIT, RAISED + LIMIT])
def test_slurms_own_ends_stand_and_no_rank_is_named(word: str, cls: str | None, text: str) -> None:
    verdict = told(word, "0:15", text)
    assert (verdict.state, verdict.cls, verdict.culprits) == (State.FAILED, cls, ())
    assert verdict.collective is None


def test_what_the_log_tells_of_a_job_at_its_limit_stands_beside_it() -> None:
    verdict = told("TIMEOUT", "0:15", TIMED_OUT + LIMIT)
    assert verdict.cls == "slurm-time-limit"
    assert verdict.against[0].says.startswith("in its log: ")
    assert "Watchdog caught" in verdict.against[0].text


def test_a_node_that_srun_names_is_named_where_slurm_says_that_one_failed() -> None:
    text = (
        "srun: error: Node failure on gpu02\n"
        "slurmstepd: error: *** STEP 4711.0 ON gpu01 CANCELLED AT 2031-05-05T11:50:00"
        " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\n"
    )
    verdict = told("NODE_FAIL", "0:15", text)
    assert [culprit.host for culprit in verdict.culprits] == ["gpu02"]
    assert verdict.cls == "slurm-node-fail"


def test_a_job_that_could_not_be_started_is_no_matter_of_its_log() -> None:
    verdict = told("FAILED", "0:53", RAISED)
    assert (verdict.cls, verdict.culprits) == ("slurm-launch-failure", ())


def test_a_rank_that_crashed_is_named_whatever_the_others_say_of_their_connections() -> None:
    verdict = told("FAILED", "139:0", CRASHED)
    assert (verdict.cls, verdict.ended_by) == ("task-exit", EndedBy.SELF)
    assert verdict.confidence is Confidence.HIGH
    assert "SIGSEGV" in verdict.summary
    assert "Segmentation fault" in verdict.evidence[0].text
    assert [(one.rank, one.host) for one in verdict.culprits] == [(2, "gpu03")]


def test_a_rank_that_was_killed_may_have_run_out_of_memory() -> None:
    verdict = told("FAILED", "137:0", KILLED)
    assert (verdict.cls, verdict.ended_by) == ("task-exit", None)
    assert "SIGKILL" in verdict.summary
    assert "host-oom" in verdict.summary
    assert [(one.rank, one.host) for one in verdict.culprits] == [(2, "gpu03")]
    assert any("MaxRSS" in step.command for step in verdict.next)
    assert any("dmesg" in (one.command or "") for one in verdict.missing)


def test_a_step_that_ran_out_of_memory_by_slurms_count_is_why_its_job_failed() -> None:
    starved = row("OUT_OF_MEMORY", step="0", exit_code=ExitCode(0, 125), max_rss_bytes=63 * 2**30)
    whole = row("FAILED", req_mem_bytes=64 * 2**30)
    verdict = told("FAILED", "137:0", KILLED, history=(whole, starved))
    assert (verdict.cls, verdict.confidence) == ("host-oom", Confidence.HIGH)
    assert "step 4711.0 ran out of memory: largest task 63.0 GiB" in verdict.summary
    assert [(one.rank, one.host) for one in verdict.culprits] == [(2, "gpu03")]
    assert told("FAILED", "1:0", RAISED, history=(whole, starved)).cls == "python-exception"


def test_the_largest_task_is_told_beside_a_rank_that_was_killed() -> None:
    step = row("FAILED", step="0", exit_code=ExitCode(0, 9), max_rss_bytes=63 * 2**30)
    whole = row("FAILED", req_mem_bytes=64 * 2**30)
    verdict = told("FAILED", "137:0", KILLED, history=(whole, step))
    assert "largest task 63.0 GiB" in verdict.evidence[0].says
    assert verdict.cls == "task-exit"


def test_whom_slurm_killed_while_it_cleared_up_is_a_victim() -> None:
    text = (
        "srun: error: gpu01: task 0: Exited with exit code 3\n"
        "srun: Terminating StepId=4711.0\n"
        "srun: error: gpu03: task 2: Killed\n"
    )
    verdict = told("FAILED", "3:0", text)
    assert all(culprit.host != "gpu03" for culprit in verdict.culprits)
    assert "SIGKILL" not in verdict.summary


def test_two_that_were_killed_name_nobody() -> None:
    text = "srun: error: gpu03: task 2: Killed\nsrun: error: gpu01: task 0: Killed\n"
    assert told("FAILED", "137:0", text).culprits == ()


def test_a_task_is_no_rank_where_another_launcher_spoke() -> None:
    said = say(KILLED, launched=True)
    verdict = told("FAILED", "137:0", KILLED, said=said)
    assert [(one.rank, one.host) for one in verdict.culprits] == [(None, "gpu03")]
    assert "task 2" in verdict.culprits[0].reason


def test_a_task_is_no_rank_where_there_are_more_ranks_than_tasks() -> None:
    said = say(KILLED, world_size=8)
    assert ranks(told("FAILED", "137:0", KILLED, said=said)) == [None]


def test_torchrun_tells_which_of_its_ranks_was_killed() -> None:
    text = """\
E1201 03:35:55.681000 10503 torch/distributed/elastic/multiprocessing/api.py:874] failed \
(exitcode: -9) local_rank: 1 (pid: 4243) of binary: /usr/bin/python
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-12-01_03:35:55
  host      : gpu02
  rank      : 3 (local_rank: 1)
  exitcode  : -9 (pid: 4243)
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 4243
============================================================
srun: error: gpu02: task 1: Exited with exit code 1
"""
    verdict = told("FAILED", "1:0", text)
    assert [(one.rank, one.host) for one in verdict.culprits] == [(3, "gpu02")]
    assert "SIGKILL" in verdict.summary


def test_out_of_memory_is_slurms_word_and_the_log_tells_where() -> None:
    text = "srun: error: gpu03: task 2: Out Of Memory\n"
    verdict = told("OUT_OF_MEMORY", "0:125", text)
    assert (verdict.cls, verdict.confidence) == ("host-oom", Confidence.HIGH)
    assert [culprit.host for culprit in verdict.culprits] == ["gpu03"]
    assert told("OUT_OF_MEMORY", "0:125", KILLED).culprits[0].host == "gpu03"


def test_a_job_that_completed_has_not_failed_whatever_its_log_holds() -> None:
    failed = row("FAILED", step="0", exit_code=ExitCode(1, 0))
    verdict = told("COMPLETED", "0:0", RAISED, history=(row("COMPLETED"), failed))
    assert (verdict.state, verdict.cls, verdict.culprits) == (State.HEALTHY, "healthy", ())
    assert any("ValueError" in one.text for one in verdict.against)
    assert told("COMPLETED", "0:0", RAISED).against == ()


#: Warned of each minute for seven.
STALLED = STALL + "".join(
    STALL[STALL.index("[2026") :].replace("03:10:", f"03:{10 + minute}:") for minute in range(1, 7)
)


@pytest.mark.parametrize(
    ("text", "words"), [(TIMED_OUT, "still running, but it has failed"), (STALLED, "stuck")]
)
def test_a_running_job_whose_log_tells_a_stall_is_hung(text: str, words: str) -> None:
    alone = say(text).verdict
    verdict = told("RUNNING", "0:0", text, logs=(log(progress=STEP),))
    assert (verdict.state, verdict.ended_by) == (State.HUNG, None)
    assert (verdict.cls, verdict.culprits) == (alone.cls, alone.culprits)
    assert verdict.summary.startswith(words)
    assert verdict.evidence[0].text == alone.evidence[0].text


def test_one_warning_of_those_who_wait_is_no_hang_yet_and_names_nobody() -> None:
    verdict = told("RUNNING", "0:0", STALL, logs=(log(progress=STEP),))
    assert (verdict.state, verdict.cls, verdict.culprits) == (State.UNKNOWN, None, ())
    assert verdict.summary.startswith("may be stuck")
    assert "more than 60 seconds" in verdict.evidence[0].text


def test_what_ends_a_hung_job_comes_last_and_changes_something() -> None:
    logs = (log(progress=STEP),)
    steps = told("RUNNING", "0:0", TIMED_OUT, logs=logs).next
    effects = [step.effect for step in steps]
    assert effects == sorted(effects), "what only reads comes first"
    ends = [step.command.split()[0] for step in steps[-2:]]
    assert ends == ["scontrol", "scancel"]
    no_requeue = told("RUNNING", "0:0", TIMED_OUT, logs=logs, detail_changes={"requeueable": False})
    assert not any("requeue" in step.command for step in no_requeue.next)
    assert no_requeue.next[-1].command.split()[0] == "scancel"


def test_a_running_job_that_made_steps_since_is_not_hung() -> None:
    text = RAISED + "step 3/60 loss=2.3\nstep 4/60 loss=2.3\n"
    verdict = told("RUNNING", "0:0", text, logs=(log(progress=STEP),))
    assert verdict.state is State.HEALTHY
    assert verdict.culprits == ()


@pytest.mark.parametrize(("quiet_s", "state"), [(12.0, State.UNKNOWN), (300.0, State.HUNG)])
def test_a_failed_step_of_a_running_job_is_a_hang_once_its_log_is_quiet(
    quiet_s: float, state: State
) -> None:
    verdict = told("RUNNING", "0:0", RAISED, logs=(log(quiet_s=quiet_s, progress=STEP),))
    assert (verdict.state, verdict.cls, ranks(verdict)) == (state, "python-exception", [2])
    assert "ValueError" in verdict.summary


def test_an_error_that_may_still_be_got_over_is_no_hang() -> None:
    text = "step 1/60 loss=2.5\nValueError: mirror answers nonsense\n"
    verdict = told("RUNNING", "0:0", text, logs=(log(progress=STEP, late_error=LATE),))
    assert verdict.state is State.UNKNOWN
    assert verdict.culprits == ()


def test_silence_behind_good_steps_is_no_hang() -> None:
    text = "step 1/60 loss=2.5\nstep 2/60 loss=2.4\n"
    verdict = told("RUNNING", "0:0", text, logs=(log(quiet_s=1_400, progress=STEP),))
    assert verdict.state is State.UNKNOWN
    assert "not a hang" in verdict.summary


def test_what_was_got_over_is_no_error_of_a_running_job() -> None:
    moving = log(progress=STEP, late_error=LATE)
    verdict = told("RUNNING", "0:0", SURVIVED, logs=(moving,))
    assert verdict.state is State.HEALTHY
    assert "error" not in verdict.summary
    assert [one.text for one in verdict.against] == [LATE.text]


def test_where_earlier_runs_may_have_written_nobody_is_named() -> None:
    said = say(RAISED, only_newest=False)
    verdict = told("FAILED", "1:0", RAISED, said=said, job_changes={"restarts": 2})
    assert verdict.cls == "python-exception"
    assert verdict.culprits == ()
    assert verdict.confidence is Confidence.MEDIUM
    assert verdict.evidence[0].says.endswith("it may be from an earlier attempt")
    running = told("RUNNING", "0:0", TIMED_OUT, said=say(TIMED_OUT, only_newest=False))
    assert running.state is not State.HUNG


def test_a_waiting_job_is_not_judged_by_the_log_of_its_last_run() -> None:
    verdict = told("PENDING", "0:0", RAISED, job_changes={"restarts": 1})
    assert verdict.state is State.PENDING
    assert verdict.culprits == ()


def test_what_only_reads_comes_before_what_changes_something() -> None:
    for word, text in (("FAILED", TIMED_OUT), ("FAILED", RAISED), ("RUNNING", TIMED_OUT)):
        effects = [step.effect for step in told(word, "1:0", text).next]
        assert effects == sorted(effects)


def test_nothing_readable_says_nothing() -> None:
    assert logs_say(join(read_bytes(LOG, b""))) is None
