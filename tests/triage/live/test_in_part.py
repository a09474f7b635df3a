"""Worlds of which only a part was looked at, ranks that share out work, several launches in one
job, and programs that start their ranks themselves."""

from dataclasses import replace

import pytest

from slurmtop.model.facts import JobFacts
from slurmtop.model.probe import ThreadState
from slurmtop.model.process import NodeProcess
from slurmtop.model.verdict import State, Verdict
from slurmtop.triage.live.judge import judge_live
from slurmtop.triage.words import who_text
from tests.triage.live.builders import JOB, STEPS, Rank, captured, facts, live, process
from tests.triage.live.examined import Build
from tests.triage.live.examined_calls import CLIP
from tests.triage.live.test_patience import HTTP, thread

REDUCE = captured("data-sleep", "rank0")


def judged(told: JobFacts) -> Verdict:
    verdict = judge_live(told)
    assert verdict is not None
    return verdict


def waiters(*numbers: int, stacks: bool = True, size: int = 4, host: str = "") -> list[Rank]:
    threads = (REDUCE, REDUCE) if stacks else ((), ())
    return [Rank(n, stacks=threads, size=size, host=host) for n in numbers]


# A part of a world


@pytest.mark.parametrize("stacks", [True, False])
def test_ranks_in_the_other_part_of_a_het_job_are_not_gone(stacks: bool) -> None:
    told = facts(live(waiters(0, 1, 2, stacks=stacks), agents=False, stacks=stacks))
    verdict = judged(told)
    assert not verdict.culprits
    assert verdict.state is State.UNKNOWN, verdict.summary
    assert "1 rank nothing was seen" in verdict.summary


def test_also_not_where_its_nodes_have_room() -> None:
    """Two ranks on gpu01, one on gpu02, and one in the other part."""
    ranks = [*waiters(0, 1, host="gpu01"), *waiters(2, host="gpu02")]
    told = facts(live(ranks, agents=False))
    assert judged(told).culprits, "of a plain job it is missing"
    assert told.job is not None
    part = replace(told, job=replace(told.job, het_leader=JOB))
    verdict = judged(part)
    assert not verdict.culprits
    assert verdict.state is State.UNKNOWN, verdict.summary


def test_a_meeting_point_on_a_node_of_another_job_is_a_larger_world() -> None:
    """Rank 0 is there as well."""
    looked = live([*waiters(1, 2, host="gpu11"), *waiters(3, host="gpu12")], agents=False)
    verdict = judged(facts(looked))
    assert not verdict.culprits
    assert verdict.state is State.UNKNOWN, verdict.summary


def test_below_torchrun_each_rank_tells_how_many_its_node_has() -> None:
    ranks = waiters(0, 1, 2)
    told = facts(live(ranks))
    assert judged(told).culprits, "it may have ended"
    assert told.live is not None
    samples = []
    for sample in told.live.samples:
        probes = []
        for probe in sample.probes:
            assert probe.processes is not None
            those = tuple(
                replace(one, env=(*(one.env or ()), ("LOCAL_WORLD_SIZE", "1")))
                for one in probe.processes.processes
            )
            probes.append(replace(probe, processes=replace(probe.processes, processes=those)))
        samples.append(replace(sample, probes=tuple(probes)))
    verdict = judged(replace(told, live=replace(told.live, samples=tuple(samples))))
    assert verdict.state is State.UNKNOWN, verdict.summary


def test_who_was_seen_and_is_no_more_is_gone_also_there() -> None:
    told = facts(live(waiters(0, 1, 2, 3), agents=False))
    assert told.live is not None
    assert told.job is not None
    first, last = told.live.samples
    probes = tuple(one for one in last.probes if one.host != "gpu04")
    bare = next(one for one in last.probes if one.host == "gpu04")
    assert bare.processes is not None
    empty = replace(bare, processes=replace(bare.processes, processes=()), activity=())
    stacks = tuple(one for one in last.stacks if one.host != "gpu04")
    last = replace(last, probes=(*probes, empty), stacks=stacks)
    looked = replace(told.live, samples=(first, last))
    verdict = judged(replace(told, live=looked, job=replace(told.job, het_leader=JOB)))
    assert verdict.cls == "missing-rank"
    assert "no process any more" in verdict.summary


# Work that is shared out


def test_a_shard_that_takes_longer_than_the_others_is_no_teardown() -> None:
    hosts = ("gpu01", "gpu02", "gpu03", "gpu04")
    threads = (thread(*HTTP),)
    one = Rank(0, wchan="wait_woken", stacks=(threads, threads))
    verdict = judged(facts(live([one], hosts=hosts)))
    assert verdict.state is State.UNKNOWN, verdict.summary
    blocked = (thread("data.py:3 fetch", "train.py:9 <module>"),)
    for stacks in (True, False):
        one = Rank(0, wchan="hrtimer_nanosleep", stacks=(blocked, blocked))
        verdict = judged(facts(live([one], hosts=hosts, stacks=stacks)))
        assert verdict.state is State.UNKNOWN, verdict.summary
        assert "cannot be told" in verdict.summary
    for stacks in (True, False):
        one = Rank(0, stacks=((thread("gen.py:3 run", "gen.py:9 <module>"),),) * 2)
        verdict = judged(facts(live([one], hosts=hosts, stacks=stacks)))
        assert verdict.state is State.UNKNOWN, verdict.summary


# Programs that start their ranks themselves


def spawned(act: str, wchan: str, state: str, *, stacks: bool = True) -> JobFacts:
    """Four nodes, each with a program that has spawned two ranks; one of those is away."""
    sleeps = (thread("spawn.py:11 run", "<string>:1 <module>"),)
    ranks = []
    more: list[NodeProcess] = []
    for n in range(8):
        host = f"gpu{n // 2 + 1:02}"
        away = n == 5
        shown = sleeps if away and act == "sleep" else REDUCE
        ranks.append(
            Rank(
                n,
                host=host,
                size=4,
                stacks=(shown, shown) if stacks else ((), ()),
                state=state if away else "S",
                wchan=wchan if away else "futex_do_wait",
            )
        )
    for node in range(4):
        argv = ("/usr/bin/python", "-u", "spawn.py")
        env = (("SLURM_JOB_ID", JOB), ("SLURM_PROCID", str(node)), ("SLURM_NTASKS", "4"))
        more.append(process(f"gpu{node + 1:02}", 4900, argv, name="python", env=env, threads=2))
    looked = live(ranks, agents=False, more=tuple(more), stacks=stacks)
    env_of = {one.host: one.env for one in more}
    samples = []
    for sample in looked.samples:
        probes = []
        for probe in sample.probes:
            assert probe.processes is not None
            those = tuple(
                one if one.pid == 4900 else _child(one, env_of) for one in probe.processes.processes
            )
            acts = tuple(
                one
                if one.pid != 4900
                else replace(
                    one,
                    wchan="poll_schedule_timeout",
                    threads=(ThreadState(tid=4900, state="S", name="python", cpu_ticks=5),),
                )
                for one in probe.activity
            )
            probes.append(
                replace(probe, processes=replace(probe.processes, processes=those), activity=acts)
            )
        samples.append(replace(sample, probes=tuple(probes)))
    return facts(replace(looked, samples=tuple(samples)))


def _child(one: NodeProcess, env_of: dict[str, tuple[tuple[str, str], ...] | None]) -> NodeProcess:
    argv = (
        "/usr/bin/python",
        "-c",
        "from multiprocessing.spawn import spawn_main; spawn_main()",
        "--multiprocessing-fork",
    )
    return replace(one, ppid=4900, argv=argv, env=env_of[one.host], threads=8)


@pytest.mark.parametrize(
    ("act", "wchan", "state", "cls"),
    [
        ("stop", "do_signal_stop", "T", "process-stopped"),
        ("sleep", "hrtimer_nanosleep", "S", "rank-elsewhere"),
    ],
)
@pytest.mark.parametrize("stacks", [True, False])
def test_of_spawned_ranks_the_one_that_is_away_is_told_and_no_launcher(
    act: str, wchan: str, state: str, cls: str, stacks: bool
) -> None:
    verdict = judged(spawned(act, wchan, state, stacks=stacks))
    assert (verdict.state, verdict.cls) == (State.HUNG, cls), verdict.summary
    assert {(one.rank, one.pid, one.host) for one in verdict.culprits} == {(None, 5050, "gpu03")}
    assert "process 5050 on gpu03" in verdict.summary
    assert "7 ranks wait" in verdict.summary


# Several launches, and none


def _helper(host: str) -> NodeProcess:
    argv = ("/usr/bin/python3", "-c", "")
    env = (("SLURM_JOB_ID", JOB), ("SLURM_PROCID", host[-1:]))
    return process(host, 3100, argv, step="1", name="python3", env=env)


def test_a_helper_at_rest_does_not_hide_a_training_at_work() -> None:
    moves = (captured("healthy", "rank0"), captured("healthy", "later-rank0"))
    ranks = [Rank(n, stacks=moves, switches=60, cpu=8, wchan="hrtimer_nanosleep") for n in range(4)]
    helpers = tuple(_helper(f"gpu{n:02}") for n in range(1, 5))
    verdict = judged(facts(live(ranks, more=helpers)))
    assert verdict.state is State.HEALTHY, verdict.summary
    assert "of another launch" in verdict.summary


def test_a_notebook_is_idle_also_as_a_task_of_srun() -> None:
    argv = ("/usr/bin/python3", "/opt/bin/jupyter-lab", "--no-browser")
    env = (("SLURM_JOB_ID", JOB), ("SLURM_PROCID", "0"))
    note = process("gpu01", 4100, argv, name="python3", env=env)
    looked = live([], agents=False, more=(note,), hosts=("gpu01",), stacks=False)
    verdict = judged(facts(looked))
    assert verdict.state is State.IDLE, verdict.summary
    assert who_text(verdict) == "nobody: no program of it trains"


# Long steps on GPUs


@pytest.mark.parametrize(
    ("gpu", "quiet", "state"),
    [
        ((100.0, 600.0), 200.0, State.HEALTHY),
        (None, 200.0, State.UNKNOWN),
        (None, 250.0, State.UNKNOWN),
        (None, 900.0, State.HUNG),
        ((100.0, 110.0), 200.0, State.HUNG),
    ],
)
def test_a_silence_is_a_stall_of_gpus_only_where_they_rest_or_it_is_very_long(
    gpu: tuple[float, float] | None, quiet: float, state: State
) -> None:
    verdict = judged(Build(size=8, usual=CLIP, gpu=gpu, quiet=quiet).facts())
    assert verdict.state is state, verdict.summary
    assert not verdict.culprits


def test_a_log_that_speaks_every_five_minutes_is_not_silent_after_six() -> None:
    steps = replace(STEPS, lines=9, first=1, last=9, span_s=2400.0, pause_s=310.0)
    looked = Build(size=4, usual=CLIP, quiet=360.0).facts()
    log = replace(looked.logs[0], steps=steps)
    verdict = judged(replace(looked, logs=(log,)))
    assert verdict.state is State.UNKNOWN, verdict.summary
