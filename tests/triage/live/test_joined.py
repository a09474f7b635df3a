"""Live triage beside Slurm's word and the logs."""

from dataclasses import replace
from datetime import timedelta

from slurmtop.model.facts import JobFacts, LogsSay
from slurmtop.model.live import LogMotion
from slurmtop.model.verdict import Confidence, Culprit, Evidence, State, Verdict
from slurmtop.triage.live.enough import Wanted, wanted
from slurmtop.triage.why import explain_job
from tests.triage.builders import NOW, job
from tests.triage.live.builders import JOB, facts, live, ranks_of
from tests.triage.live.test_judge import moving, world_of

LINE = Evidence(family="log", source="/l", text="Watchdog caught collective", says="", line=3)
LOOP = LogMotion(grew=True, new_steps=True, quiet_s=0.2)


def says(state: State, *ranks: int, cls: str | None = "missing-rank") -> LogsSay:
    verdict = Verdict(
        job=JOB,
        state=state,
        cls=cls,
        summary="the log's own words",
        culprits=tuple(Culprit(rank=rank) for rank in ranks),
        evidence=(LINE,),
    )
    return LogsSay(verdict=verdict)


def stopped(**more: object) -> JobFacts:
    return facts(live(ranks_of("stop")), **more)


def test_a_hang_that_the_nodes_show_comes_before_a_log_that_was_written_just_now() -> None:
    verdict = explain_job(stopped())
    assert (verdict.state, verdict.cls) == (State.HUNG, "process-stopped")
    assert verdict.since is not None
    assert any(one.family == "slurm" for one in verdict.evidence)


def test_the_commands_that_end_it_come_last() -> None:
    commands = [one.command for one in explain_job(stopped()).next]
    assert commands[0].startswith("slurmtop triage 4711 --save")
    assert commands[-1] == "scancel 4711"


def test_a_job_that_has_ended_is_slurms() -> None:
    ended = stopped(job=job("TIMEOUT", JOB))
    assert explain_job(ended).cls == "slurm-time-limit"


def test_log_and_nodes_agree() -> None:
    verdict = explain_job(stopped(logs_say=says(State.HUNG, 2)))
    assert [one.rank for one in verdict.culprits] == [2]
    assert verdict.confidence is Confidence.HIGH
    assert LINE in verdict.evidence


def test_log_and_nodes_name_different_ranks_so_nobody_is_named() -> None:
    verdict = explain_job(stopped(logs_say=says(State.HUNG, 1)))
    assert verdict.state is State.HUNG
    assert not verdict.culprits
    assert verdict.confidence is Confidence.LOW
    assert "name different ranks" in verdict.summary
    assert verdict.against[0].says == "in its log: stuck: the log's own words"


def test_a_log_that_names_one_stands_where_the_nodes_name_nobody() -> None:
    verdict = explain_job(facts(live(world_of(4, {})), logs_say=says(State.HUNG, 1)))
    assert [one.rank for one in verdict.culprits] == [1]
    assert verdict.cls == "missing-rank"


def test_a_timeout_without_a_name_gets_the_one_that_the_nodes_show() -> None:
    say = says(State.HUNG, cls="watchdog-timeout-unattributed")
    verdict = explain_job(stopped(logs_say=say))
    assert (verdict.cls, verdict.culprits[0].rank) == ("process-stopped", 2)


def test_a_hang_of_the_log_whose_processes_move_is_unknown() -> None:
    looked = live(moving(ranks_of("healthy"), 0, 1, 2, 3))
    verdict = explain_job(facts(looked, logs_say=says(State.HUNG, 1)))
    assert verdict.state is State.UNKNOWN
    assert not verdict.culprits


def test_a_quiet_log_and_nothing_that_tells_is_not_called_healthy() -> None:
    looked = live(world_of(4, {}), stacks=False, activity=False)
    assert explain_job(facts(looked)).state is State.UNKNOWN


def test_a_log_that_grows_stays_healthy() -> None:
    looked = live(ranks_of("healthy"), log=LOOP)
    verdict = explain_job(facts(looked))
    assert verdict.state is State.HEALTHY
    assert not any("was not looked at" in one.why for one in verdict.missing)


def test_nodes_that_did_not_answer_change_nothing() -> None:
    looked = live(ranks_of("stop"), silent=("gpu01", "gpu02", "gpu03", "gpu04"))
    assert explain_job(facts(looked)).state is State.HEALTHY


# What is asked


def asked(quiet: float, **more: object) -> JobFacts:
    base = facts(live([], samples=0), live=None, **more)
    log = replace(base.logs[0], mtime=NOW - timedelta(seconds=quiet))
    return replace(base, logs=(log,))


def test_a_log_that_is_written_earns_no_look() -> None:
    assert wanted(asked(3)) == Wanted(stacks=False, second=False)


def test_a_quiet_log_earns_stacks_and_two_looks() -> None:
    assert wanted(asked(11)) == Wanted(stacks=True, second=True)


def test_so_does_a_log_that_nobody_can_read() -> None:
    assert wanted(replace(asked(3), logs=())) == Wanted(stacks=True, second=True)


def test_a_log_that_tells_of_a_hang_earns_them_at_once() -> None:
    assert wanted(asked(1, logs_say=says(State.HUNG))).stacks


def test_a_stopped_process_earns_them_although_the_log_grows() -> None:
    assert wanted(facts(live(ranks_of("stop"), samples=1, log=LOOP))).stacks
    assert not wanted(facts(live(ranks_of("healthy"), samples=1, log=LOOP))).stacks


def test_two_looks_are_enough() -> None:
    assert not wanted(stopped()).second


def test_one_rank_that_all_wait_for_earns_a_second_look_without_stacks() -> None:
    looked = live(world_of(4, {1: "sleep"}), samples=1, log=LOOP, stacks=False)
    assert wanted(facts(looked)) == Wanted(stacks=False, second=True)
