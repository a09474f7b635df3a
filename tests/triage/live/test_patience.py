"""Healthy jobs that look as if they hung: waits that come to their end by themselves."""

from dataclasses import replace

import pytest

from slurmtop.model.live import LogMotion
from slurmtop.model.stacks import ThreadStack
from slurmtop.model.verdict import Confidence, State, Verdict
from slurmtop.triage.live.judge import judge_live
from tests.triage.live.builders import Rank, captured, facts, live
from tests.triage.live.examined import stack

MAIN = ("train.py:40 main", "train.py:90 <module>")
HTTP = ("%socket.py:706 readinto", "%http/client.py:279 _read_status", "judge.py:12 ask", *MAIN)
RETRY = ("hub.py:22 retry", *MAIN)
RUNS = ("%subprocess.py:2011 _try_wait", "%subprocess.py:1264 wait", "score.py:9 score", *MAIN)
POLLS = ("score.py:14 until_scored", *MAIN)
ASYNC = ("%selectors.py:468 select", "%asyncio/base_events.py:1898 _run_once", *MAIN)
JOINS = ("%threading.py:1119 _wait_for_tstate_lock", "%threading.py:1100 join", *MAIN)
RESULT = ("%threading.py:327 wait", "%concurrent/futures/_base.py:451 result", *MAIN)
FETCH = (
    "%selectors.py:415 select",
    "%multiprocessing/connection.py:930 wait",
    "@torch/utils/data/dataloader.py:1251 _try_get_data",
    *MAIN,
)
CHECK_OUTPUT = ("hook.py:3 ask", *MAIN)
UPLOAD = ("%ssl.py:1180 recv", "%http/client.py:279 _read_status", "hub.py:8 upload")
QUIET = LogMotion(grew=False, quiet_s=26)
LONG = LogMotion(grew=False, quiet_s=390)


def thread(*calls: str, name: str = "MainThread", os_id: int | None = None) -> ThreadStack:
    return ThreadStack(name=name, os_id=os_id, active=False, gil=False, frames=stack(*calls))


def waiters(*, stacks: bool = True, size: int = 4) -> list[Rank]:
    """All but rank 0 wait in one all_reduce."""
    waits = captured("data-sleep", "rank0") if stacks else ()
    return [Rank(n, stacks=(waits, waits), size=size) for n in range(1, size)]


def judged(first: Rank, log: LogMotion = QUIET, *, stacks: bool = True) -> Verdict:
    looked = live([first, *waiters(stacks=stacks, size=first.size)], stacks=stacks, log=log)
    verdict = judge_live(facts(looked))
    assert verdict is not None
    return verdict


def rank(*calls: str, wchan: str, more: tuple[ThreadStack, ...] = (), **how: object) -> Rank:
    threads = (thread(*calls), *more) if calls else ()
    return Rank(0, wchan=wchan, stacks=(threads, threads), **how)  # type: ignore[arg-type]


def uploads() -> Rank:
    return rank(*JOINS, wchan="futex_do_wait", more=(thread(*UPLOAD, name="up", os_id=9),))


#: They wait, and nothing but a long time tells that it is in vain.
COMES = {
    "an answer from the network": rank(*HTTP, wchan="wait_woken"),
    "the sleep before it asks again": rank(*RETRY, wchan="hrtimer_nanosleep"),
    "a program on another machine": rank(
        *RUNS, wchan="do_wait", children=[("S", "poll_schedule_timeout")]
    ),
    "a program that nobody has seen": rank(*RUNS, wchan="do_wait"),
    "a file that is looked for every second": rank(*POLLS, wchan="hrtimer_nanosleep", switches=6),
    "asyncio": rank(*ASYNC, wchan="ep_poll"),
    "a thread that uploads": uploads(),
    "a loader whose workers wait for the network": rank(
        *FETCH, wchan="poll_schedule_timeout", children=[("S", "wait_woken")] * 2
    ),
    "what a program writes into a pipe": rank(
        *CHECK_OUTPUT, wchan="anon_pipe_read", children=[("S", "wait_woken")], child="python3"
    ),
}


@pytest.mark.parametrize("name", COMES)
def test_what_comes_by_itself_is_no_hang_after_two_looks(name: str) -> None:
    verdict = judged(COMES[name])
    assert verdict.state is State.UNKNOWN, verdict.summary
    assert not verdict.culprits
    assert "look again once its log is quiet for 5 min" in verdict.summary


@pytest.mark.parametrize("name", COMES)
def test_after_a_long_silence_it_is_told_with_some_doubt(name: str) -> None:
    verdict = judged(COMES[name], LONG)
    assert verdict.state is State.HUNG, verdict.summary
    assert [one.rank for one in verdict.culprits] == [0]
    assert verdict.confidence is Confidence.MEDIUM
    assert " for 6 min" in verdict.summary


def test_a_silence_that_the_job_knows_is_not_long() -> None:
    """A line every three minutes: nothing is late before nine have passed."""
    looked = live([COMES["an answer from the network"], *waiters()], log=LONG)
    facts_of = facts(looked)
    slow = facts_of.logs[0].steps
    assert slow is not None
    steps = replace(slow, lines=10, first=1, last=10, span_s=1620.0, pause_s=190.0)
    verdict = judge_live(replace(facts_of, logs=(replace(facts_of.logs[0], steps=steps),)))
    assert verdict is not None
    assert verdict.state is State.UNKNOWN, verdict.summary
    assert "quiet for 9 min" in verdict.summary


def test_threads_of_its_own_that_compute_are_work() -> None:
    one = rank(*RESULT, wchan="futex_do_wait", others_cpu=130)
    verdict = judged(one)
    assert verdict.state in (State.UNKNOWN, State.HEALTHY), verdict.summary
    assert not verdict.culprits
    assert "stood still" not in verdict.summary


@pytest.mark.parametrize("cpu", [30, 300])
def test_threads_that_no_list_shows_are_seen_by_the_time_of_the_process(cpu: int) -> None:
    verdict = judged(rank(*JOINS, wchan="futex_do_wait", cpu=cpu))
    assert verdict.state is not State.HUNG, verdict.summary


def test_threads_of_its_own_whose_stacks_move_are_work() -> None:
    first = (thread(*RESULT), thread("prep.py:5 hash", name="w", os_id=9))
    later = (thread(*RESULT), thread("prep.py:9 sort", name="w", os_id=9))
    verdict = judged(Rank(0, stacks=(first, later)))
    assert verdict.state is State.HEALTHY, verdict.summary


def test_threads_that_carry_data_are_no_work_of_a_rank_that_sleeps() -> None:
    assert judged(rank("data.py:3 load", *MAIN, wchan="hrtimer_nanosleep")).culprits


def test_without_stacks_a_child_at_work_is_work() -> None:
    one = Rank(0, wchan="hrtimer_nanosleep", children=[("R", "")], lively=True)
    verdict = judged(one, stacks=False)
    assert verdict.state is State.HEALTHY, verdict.summary
    shown = verdict.evidence[0]
    assert "5001" in shown.source, "the child is the proof, not who waits for it"
    assert "moved" not in shown.says


def test_without_stacks_who_naps_may_be_waiting_for_something() -> None:
    one = Rank(0, wchan="hrtimer_nanosleep", switches=6)
    assert judged(one, stacks=False).state is State.UNKNOWN
    one = Rank(0, wchan="hrtimer_nanosleep")
    assert judged(one, stacks=False).culprits


def test_a_fifo_without_another_end_is_proof_whatever_else_works() -> None:
    one = rank("feed.py:3 read", *MAIN, wchan="wait_for_partner", children=[("R", "")], lively=True)
    verdict = judged(one)
    assert verdict.state is State.HUNG
    assert [one.rank for one in verdict.culprits] == [0]


def test_without_stacks_an_upload_on_a_thread_is_no_hang_of_all() -> None:
    verdict = judged(Rank(0, thread="wait_woken"), stacks=False)
    assert verdict.state is State.UNKNOWN, verdict.summary
    assert "waits for the network" in verdict.summary
    assert judged(Rank(0, thread="wait_woken"), LONG, stacks=False).state is State.HUNG
    assert judged(Rank(0, thread="futex_do_wait"), stacks=False).state is State.HUNG


def test_what_only_watches_is_no_work() -> None:
    one = Rank(0, wchan="hrtimer_nanosleep", children=[("R", "")], lively=True, child="nvidia-smi")
    assert judged(one, stacks=False).culprits


@pytest.mark.parametrize("wchan", ["fifo_pipe_read", "pipe_read", "pipe_write", "anon_pipe_read"])
def test_workers_of_a_loader_fill_no_pipe_that_the_program_reads(wchan: str) -> None:
    one = rank("feed.py:3 read", *MAIN, wchan=wchan, children=[("S", "poll_schedule_timeout")])
    for stacks in (True, False):
        verdict = judged(one if stacks else replace(one, stacks=((), ())), stacks=stacks)
        assert [one.rank for one in verdict.culprits] == [0], verdict.summary


def test_who_holds_the_interpreter_is_told_however_often_its_other_threads_wake_up() -> None:
    held = (replace(thread("tok.py:3 encode", *MAIN), gil=True),)
    one = Rank(0, wchan="", stacks=(held, held), others_cpu=20)
    assert judged(one).cls == "gil-held"


# Data on its way


def calls(op: str, line: int) -> tuple[ThreadStack, ...]:
    c10d = "@torch/distributed/distributed_c10d.py"
    return (thread(f"{c10d}:2000 {op}", f"train.py:{line} main", MAIN[1]),)


def at_two_lines(cpu: int, log: LogMotion, ops: tuple[str, str] = ("broadcast",) * 2) -> Verdict:
    """``if rank == 0: broadcast(w) else: broadcast(w)``."""
    first, other = calls(ops[0], 50), calls(ops[1], 54)
    ranks = [Rank(0, stacks=(first, first), cpu=cpu)]
    ranks += [Rank(n, stacks=(other, other), cpu=cpu) for n in (1, 2, 3)]
    verdict = judge_live(facts(live(ranks, log=log)))
    assert verdict is not None
    return verdict


def test_one_broadcast_at_two_lines_takes_its_time_while_data_comes() -> None:
    verdict = at_two_lines(300, QUIET)
    assert verdict.state is State.UNKNOWN
    assert "data may be on its way" in verdict.summary
    assert at_two_lines(0, QUIET).state is State.HUNG


def test_sub_groups_whose_transport_works_name_nobody_however_long_it_takes() -> None:
    assert at_two_lines(300, QUIET, ("reduce", "all_gather")).state is State.UNKNOWN
    verdict = at_two_lines(300, LONG, ("all_reduce", "all_gather"))
    assert not verdict.culprits
    assert at_two_lines(0, QUIET, ("all_reduce", "all_gather")).culprits


# Programs that are no group


@pytest.mark.parametrize(("state", "wchan"), [("S", "hrtimer_nanosleep"), ("D", "rq_qos_wait")])
def test_workers_that_wait_for_requests_are_no_group(state: str, wchan: str) -> None:
    """MASTER_ADDR is exported by every script: without a thread of gloo or NCCL, and without a
    stack, nobody can say that they wait for one another."""
    ranks = [Rank(n, gloo=False) for n in (1, 2, 3)]
    ranks.insert(0, Rank(0, state=state, wchan=wchan, gloo=False))
    verdict = judge_live(facts(live(ranks, stacks=False, agents=False)))
    assert verdict is None or verdict.state is not State.HUNG, verdict.summary
