"""What a verdict must and must not say, beyond its words."""

import dataclasses
import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.facts import JobFacts, LogLine, LogStatus
from slurmtop.model.job import ExitCode, ExitMeaning, ReasonInfo
from slurmtop.model.text import visible
from slurmtop.model.verdict import Confidence, EndedBy, State, verdict_dict
from slurmtop.triage.catalogue import CATALOGUE, family_of
from slurmtop.triage.fault_classes import FAMILIES
from slurmtop.triage.why import explain_job, known_anywhere
from slurmtop.triage.words import copy_block, first_line, four_lines
from tests.triage.builders import (
    NOW,
    STEP,
    TRACE,
    WATCHDOG,
    detail,
    facts,
    job,
    line,
    live,
    log,
    row,
    scenarios,
    state,
)

SCENARIOS = scenarios()


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_verdict_is_well_formed(name: str) -> None:
    verdict = explain_job(SCENARIOS[name])
    assert verdict.summary
    assert verdict.next, "every answer says what to do now"
    assert verdict.cls is None or verdict.family == CATALOGUE[verdict.cls].family
    assert verdict.cls is not None or verdict.family is None
    assert {step.effect for step in verdict.next} <= {"read", "write"}
    effects = [step.effect for step in verdict.next]
    assert "held" in name or effects == sorted(effects), "safest first"
    assert json.loads(json.dumps(verdict_dict(verdict)))["schema"] == "slurmtop.verdict/1"
    assert (verdict.ended_by is None) or verdict.state in (State.FAILED, State.HEALTHY)


@pytest.mark.parametrize("name", SCENARIOS)
def test_nobody_is_blamed_but_whom_slurm_or_the_logs_name(name: str) -> None:
    culprits = explain_job(SCENARIOS[name]).culprits
    if name.startswith("node-fail-"):
        node = {"node-fail-named": "gpu02", "node-fail-single": "gpu07"}[name]
        assert [item.host for item in culprits] == [node]
        assert all(item.rank is None for item in culprits)
    elif name == "logs-rank-threw":
        assert [item.rank for item in culprits] == [2]
    elif name.startswith("logs-rank-"):
        assert [(item.rank, item.host) for item in culprits] == [(None, "gpu03")]
    else:
        assert culprits == ()


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name.startswith("running")])
def test_silence_is_never_a_hang(name: str) -> None:
    assert explain_job(SCENARIOS[name]).state in (State.HEALTHY, State.UNKNOWN)


def test_quiet_says_what_would_tell() -> None:
    verdict = explain_job(SCENARIOS["running-quiet"])
    assert verdict.state is State.UNKNOWN
    assert "not a hang" in verdict.summary
    assert verdict.missing[-1].command == "ssh gpu01 ps -u anna -o pid,stat,time,wchan:20,args"


def test_an_error_newer_than_the_last_step_is_not_health() -> None:
    verdict = explain_job(SCENARIOS["running-error-after-steps"])
    assert verdict.state is State.UNKNOWN
    assert verdict.summary.startswith("an error line newer than its last step")
    assert verdict.evidence[0].text == WATCHDOG.text
    assert verdict.since is None, "the time of the error is not that of the last step"


def test_an_error_before_newer_steps_only_speaks_against() -> None:
    last = STEP.line
    old = LogLine("RuntimeError: retrying", 3, 100)
    verdict = explain_job(
        live("RUNNING", logs=(log(progress=STEP, first_error=old, last_line=last),))
    )
    assert verdict.state is State.HEALTHY
    assert verdict.against[0].text == old.text
    assert verdict.since == NOW - timedelta(seconds=12)


@pytest.mark.parametrize(
    ("err_quiet_s", "expected"), [(5.0, State.UNKNOWN), (199.0, State.HEALTHY)]
)
def test_an_error_in_the_other_file_counts_where_that_was_written_later(
    err_quiet_s: float, expected: State
) -> None:
    logs = (log(quiet_s=200.0, progress=STEP), log("stderr", err_quiet_s, first_error=WATCHDOG))
    verdict = explain_job(live("RUNNING", logs=logs))
    assert verdict.state is expected


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name.startswith("controller")])
def test_a_silent_controller_never_means_no_such_job(name: str) -> None:
    verdict = explain_job(SCENARIOS[name])
    text = " ".join(four_lines(verdict, 400))
    assert "no such job" not in text
    assert "not in the queue" not in text
    assert verdict.state is not State.FAILED


def test_the_batch_host_is_not_the_node_that_failed() -> None:
    text = (
        "slurmstepd: error: *** JOB 4711 ON gpu01 CANCELLED AT 2031-05-05T11:55:00"
        " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***"
    )
    verdict = explain_job(live("NODE_FAIL", logs=(log("stderr", 400, slurm_line=line(text)),)))
    assert verdict.culprits == ()
    assert verdict.cls == "slurm-node-fail"
    assert verdict.evidence[0].text == text


def test_a_program_that_prints_srun_lines_blames_no_node_unless_slurm_says_node_fail() -> None:
    forged = log("stderr", 400, first_error=line("srun: error: Node failure on gpu07"))
    assert explain_job(live("FAILED", "1:0", logs=(forged,))).culprits == ()


@pytest.mark.parametrize(
    ("text", "cls"),
    [
        ("ValueError: bad", "python-exception"),
        ("[rank3]: KeyError: 'tokens'", "python-exception"),
        ("json.decoder.JSONDecodeError: Expecting value", "python-exception"),
        ("my.mod.ShapeError: 3 != 4", "python-exception"),
        ("torch.OutOfMemoryError: CUDA out of memory", None),
        ("RuntimeError: CUDA error: an illegal memory access was encountered", None),
        ("torch.distributed.DistBackendError: NCCL error in: ...", None),
        ("torch.distributed.elastic.multiprocessing.errors.ChildFailedError:", None),
        ("ConnectionResetError: [Errno 104] Connection reset by peer", None),
        ("KeyboardInterrupt", None),
        ("bash: line 3: trian.py: command not found", None),
        ("ERROR: something went wrong", None),
    ],
)
def test_only_an_ordinary_exception_is_called_one(text: str, cls: str | None) -> None:
    verdict = explain_job(live("FAILED", "1:0", logs=(log("stderr", 400, first_error=line(text)),)))
    assert verdict.cls == cls
    assert verdict.evidence[0].text == text
    assert verdict.evidence[1].family == "slurm"


def test_an_exception_of_a_job_that_slurm_ended_is_not_its_cause() -> None:
    trace = log("stderr", 400, first_error=TRACE)
    for word, cls in (("TIMEOUT", "slurm-time-limit"), ("PREEMPTED", "slurm-preempted")):
        verdict = explain_job(live(word, "0:15", logs=(trace,)))
        assert verdict.cls == cls
        assert verdict.ended_by is EndedBy.SLURM
        assert "ValueError" not in verdict.summary
        assert verdict.evidence[0].family == "slurm"


def test_a_signal_leaves_open_who_ended_it() -> None:
    for exit_text in ("0:9", "137:0", "143:0"):
        verdict = explain_job(
            live("FAILED", exit_text, logs=(log("stderr", 400, first_error=TRACE),))
        )
        assert verdict.ended_by is None
        assert verdict.cls is None
        assert "ValueError" in verdict.summary


def test_who_ended_it_is_taken_from_the_meaning_of_the_exit() -> None:
    meaning = ExitMeaning(False, "ended by a signal from outside", "user")
    verdict = explain_job(live("FAILED", "0:15", exit=meaning, logs=(log(first_error=TRACE),)))
    assert verdict.ended_by is EndedBy.USER
    assert verdict.cls is None
    assert "ValueError" not in verdict.summary


@pytest.mark.parametrize(
    ("by_uid", "user_id", "cls"), [(20011, 20011, "user-interrupt"), (20099, 20011, None)]
)
def test_only_its_owner_makes_it_a_user_interrupt(
    by_uid: int, user_id: int, cls: str | None
) -> None:
    record = live("CANCELLED", detail_changes={"user_id": user_id})
    given_uid = dataclasses.replace(
        record, history=(row("CANCELLED", state=state("CANCELLED", by_uid)),)
    )
    verdict = explain_job(given_uid)
    assert verdict.cls == cls
    assert verdict.ended_by is EndedBy.USER


def test_cancelled_before_it_had_a_node_is_before_it_started() -> None:
    waiting = live("CANCELLED", job_changes={"nodes": None, "start": NOW, "end": NOW})
    assert "before it started" in explain_job(waiting).summary
    assert "before it started" not in explain_job(live("CANCELLED")).summary


def test_a_log_of_an_earlier_attempt_is_not_joined_to_this_one() -> None:
    old = log(quiet_s=4 * 3_600, progress=STEP, first_error=TRACE)
    verdict = explain_job(live("RUNNING", logs=(old,)))
    assert "48,213" not in verdict.summary
    assert all(item.family != "log" for item in verdict.evidence)


def test_after_a_restart_an_error_line_is_doubted() -> None:
    verdict = explain_job(
        live(
            "FAILED",
            "1:0",
            job_changes={"restarts": 2},
            logs=(log("stderr", 400, first_error=TRACE),),
        )
    )
    assert "earlier attempt" in verdict.evidence[0].says


def test_a_stale_guess_of_the_start_is_not_shown() -> None:
    past = live("PENDING", job_changes={"start": NOW - timedelta(hours=1)})
    assert "may start" not in explain_job(past).summary


def test_a_requeued_job_that_accounting_calls_preempted_is_pending() -> None:
    record = facts(job=job("PENDING", restarts=1), history=(row("PREEMPTED"),))
    assert explain_job(record).state is State.PENDING


def test_an_end_from_accounting_alone_with_a_silent_controller_is_less_sure() -> None:
    silent = {"controller_answered": False, "accounting_answered": True}
    assert explain_job(facts(history=(row("PREEMPTED"),), **silent)).confidence is Confidence.LOW
    assert explain_job(facts(history=(row("TIMEOUT"),), **silent)).confidence is Confidence.MEDIUM


def test_clock_skew_makes_no_negative_age() -> None:
    verdict = explain_job(live("RUNNING", logs=(log(quiet_s=-30.0, progress=STEP),)))
    assert "log written 0 s ago" in verdict.summary


def test_a_viewer_who_is_not_the_owner_is_told_who_can() -> None:
    verdict = explain_job(SCENARIOS["pending-held-not-mine"])
    assert all(s.label.startswith("ask anna") for s in verdict.next if s.effect == "write")
    narrow = four_lines(verdict, 50)[3]
    assert "release" not in narrow
    root = dataclasses.replace(SCENARIOS["pending-held-not-mine"], viewer="root", viewer_uid=0)
    assert explain_job(root).next[0].label == "release it"


def test_a_requeue_is_offered_only_where_slurm_would_take_it() -> None:
    may = explain_job(live("TIMEOUT", "0:15"))
    assert may.next[-1].command == "scontrol requeue 4711"
    no_requeue = explain_job(live("TIMEOUT", "0:15", detail_changes={"requeueable": False}))
    interactive = explain_job(live("TIMEOUT", "0:15", detail_changes={"batch": False}))
    forgotten = explain_job(facts(history=(row("TIMEOUT"),), accounting_answered=True))
    for verdict in (no_requeue, interactive, forgotten):
        assert all(step.effect == "read" for step in verdict.next)


def test_the_cluster_stands_in_every_command() -> None:
    for name, record in SCENARIOS.items():
        if record.job is not None and name != "revoked":
            verdict = explain_job(dataclasses.replace(record, cluster="beta"))
            for step in verdict.next:
                program = step.command.split()[0]
                if program in ("scontrol", "squeue", "sacct", "scancel", "sinfo"):
                    assert "-M beta" in step.command


@pytest.mark.parametrize(
    ("asked", "id"),
    [("4711_3", "4711_3"), ("4711+1", "4711"), ("4711_[2-19]", "4711"), ("4711", "4711")],
)
def test_commands_take_an_id_that_slurm_takes(asked: str, id: str) -> None:
    verdict = explain_job(live("SUSPENDED", asked=asked))
    assert verdict.next[0].command == f"scontrol show job {id}"
    assert verdict.next[1].command == f"scontrol resume {id}"
    assert verdict.job == asked


def test_a_path_that_no_command_line_can_hold_is_not_put_on_one() -> None:
    bad = log("stderr", 400, first_error=TRACE, path="/scratch/a\nrm -rf x/4711.err")
    verdict = explain_job(live("FAILED", "1:0", logs=(bad,)))
    assert all("\n" not in step.command for step in verdict.next)
    spaced = log("stderr", 400, first_error=TRACE, path="/scratch/my run/$(x).err")
    verdict = explain_job(live("FAILED", "1:0", logs=(spaced,)))
    assert verdict.next[0].command == "less +412 '/scratch/my run/$(x).err'"


def test_a_long_command_is_never_cut() -> None:
    path = "/scratch/" + "deep/" * 20 + "4711.err"
    verdict = explain_job(
        live("FAILED", "1:0", logs=(log("stderr", 400, first_error=TRACE, path=path),))
    )
    assert four_lines(verdict)[3] == "do     slurmtop why 4711 --json"
    assert four_lines(verdict)[2].startswith("proof  …")
    assert "4711.err:412: ValueError" in four_lines(verdict)[2]


TEXT = st.text(max_size=60)
PHASES = st.sampled_from(
    ["PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "FAILED", "CANCELLED", "TIMEOUT", "QUANTUM"]
)


@given(word=PHASES, name=TEXT, text=TEXT, path=TEXT, reason=TEXT, asked=TEXT, dependency=TEXT)
def test_hostile_text_stays_harmless(
    word: str, name: str, text: str, path: str, reason: str, asked: str, dependency: str
) -> None:
    record = job(word, name=name, user=text, reason=reason, dependency=dependency, qos=text)
    found = log("stderr", 30, first_error=line(text), last_line=line(path), path="/" + path)
    denied = log(status=LogStatus.DENIED, why=text)
    verdict = explain_job(
        JobFacts(
            asked=asked,
            cluster=name,
            now=NOW,
            job=record,
            logs=(found, denied),
            viewer=path,
            viewer_uid=5,
        )
    )
    shown = [
        first_line(verdict),
        *four_lines(verdict),
        *copy_block(verdict, version="1").split("\n"),
    ]
    for item in shown:
        assert visible(item) == item
    for step in verdict.next:
        assert "\n" not in step.command
        assert "\x1b" not in step.command


def test_the_copy_block_has_times_and_versions() -> None:
    block = copy_block(
        explain_job(SCENARIOS["failed-exception"]), version="0.1.0", slurm_version="24.11.5"
    )
    assert "slurmtop 0.1.0, Slurm 24.11.5 at 2031-05-05T12:00:00+00:00" in block
    assert "since:  2031-05-05T11:55:00+00:00" in block
    assert "4711.err:412: ValueError: expected 8 columns, got 7" in block


def test_known_anywhere() -> None:
    assert not known_anywhere(SCENARIOS["controller-down"])
    assert not known_anywhere(SCENARIOS["unknown-everywhere"])
    assert known_anywhere(SCENARIOS["vanished"])
    assert known_anywhere(SCENARIOS["pending-held-not-mine"])


def test_the_catalogue() -> None:
    assert len(CATALOGUE) == 71
    assert {entry.family for entry in CATALOGUE.values()} == set(FAMILIES)
    for slug, entry in CATALOGUE.items():
        assert slug == entry.slug
        assert entry.meaning.endswith(".")
        assert entry.first_action.endswith(".")
    assert family_of(None) is None
    assert family_of("no-such-class") is None
    assert family_of("host-oom") == "GPUs and hosts"


def test_launch_errors_are_not_called_signals() -> None:
    verdict = explain_job(live("FAILED", "0:53"))
    assert verdict.cls == "slurm-launch-failure"
    assert "signal" not in verdict.summary
    assert explain_job(live("FAILED", "0:11")).cls is None
    assert ExitCode(0, 53).signal == 53


def test_a_signal_is_no_launch_failure_whatever_the_reason_says() -> None:
    """Slurm 22.05 gives the reason JobLaunchFailure to a script that died of SIGSEGV."""
    verdict = explain_job(
        live(
            "FAILED",
            "0:11",
            job_changes={"reason": "JobLaunchFailure"},
            exit=ExitMeaning(False, "Died of SIGSEGV: a segmentation fault.", "fault"),
        )
    )
    assert verdict.cls != "slurm-launch-failure"
    assert "could not be started" not in verdict.summary
    assert "SIGSEGV" in verdict.summary


def test_a_row_of_the_screen_cites_no_command_that_never_ran() -> None:
    row_at = NOW - timedelta(seconds=40)
    told = explain_job(
        facts(
            job=job("PENDING", start=NOW + timedelta(hours=1)),
            queue_at=row_at,
            reason=ReasonInfo("Priority", "queue", "Others are ahead.", "Wait."),
        )
    )
    assert {item.source for item in told.evidence} == {"squeue (the screen's last answer)"}
    assert told.evidence[0].time == row_at
    assert len(told.evidence) == 2


def test_an_expected_start_names_who_said_it() -> None:
    record = job("PENDING", start=NOW + timedelta(hours=1))
    by_detail = explain_job(facts(job=record, detail=detail(record)))
    assert by_detail.evidence[1].source == "scontrol show job 4711"
    asked = explain_job(facts(job=record, expected_start=NOW + timedelta(hours=2)))
    assert asked.evidence[1].source == "squeue --start -j 4711"
