"""Each hang of the lab, as its processes and stacks show it: state, class, and whom to blame."""

from dataclasses import replace

import pytest

from slurmtop.model.facts import LogLine, Progress
from slurmtop.model.live import LogMotion
from slurmtop.model.nic import NicKind, NicPort
from slurmtop.model.probe import MemoryGroup
from slurmtop.model.process import NodeProcess
from slurmtop.model.verdict import Confidence, State, Verdict
from slurmtop.triage.live.judge import judge_live
from tests.triage.live.builders import (
    JOB,
    STACKS,
    Rank,
    agent,
    captured,
    facts,
    live,
    process,
    ranks_of,
)

FUTEX = "futex_do_wait"
GROWS = LogMotion(grew=True, new_steps=True, quiet_s=0.5)


def judged(ranks: list[Rank], **how: object) -> Verdict | None:
    return judge_live(facts(live(ranks, **how)))  # type: ignore[arg-type]


def sure(ranks: list[Rank], **how: object) -> Verdict:
    verdict = judged(ranks, **how)
    assert verdict is not None
    return verdict


def named(verdict: Verdict | None) -> set[tuple[int | None, str | None]]:
    return {(one.rank, one.host) for one in verdict.culprits} if verdict is not None else set()


SITUATIONS = {
    "branch": ("hung", "collective-op-mismatch", {2}),
    "broadcast": ("hung", "rank-elsewhere", {2}),
    "checkpoint": ("hung", "checkpoint-stuck", {2}),
    "compile": ("unknown", None, set()),
    "d-state": ("hung", "io-stuck", {2}),
    "data-fifo": ("hung", "data-loader-stuck", {2}),
    "data-sleep": ("hung", "data-loader-stuck", {2}),
    "data-worker": ("hung", "data-loader-stuck", {2}),
    "ddp-loop": ("hung", "rank-elsewhere", {2}),
    "evaluation": ("unknown", None, set()),
    "gil": ("hung", "gil-held", {2}),
    "healthy": ("healthy", "healthy", set()),
    "input": ("hung", "rank-elsewhere", {2}),
    "lock": ("hung", "rank-elsewhere", {2}),
    "loop": ("hung", "rank-elsewhere", {2}),
    "rendezvous": ("hung", "rank-elsewhere", {2}),
    "shim-healthy": ("healthy", "healthy", set()),
    "shim-loop": ("hung", "rank-elsewhere", {2}),
    "stop": ("hung", "process-stopped", {2}),
    "sub-order": ("hung", "collective-order-skew", set()),
    "teardown": ("hung", "teardown-hang", {2}),
}
#: By the kernel's signs alone. Who computes may work or loop: nobody can tell without a stack.
WITHOUT_STACKS = {
    "broadcast": {2},
    "checkpoint": {2},
    "d-state": {2},
    "data-fifo": {2},
    "data-sleep": {2},
    "data-worker": {2},
    "gil": {2},
    "input": {2},
    "stop": {2},
}
FOLDERS = sorted(path.name for path in STACKS.iterdir() if path.is_dir())


def test_every_captured_situation_has_an_answer() -> None:
    assert set(FOLDERS) == set(SITUATIONS)


@pytest.mark.parametrize("situation", FOLDERS)
def test_a_captured_situation_comes_out_right(situation: str) -> None:
    state, cls, ranks = SITUATIONS[situation]
    verdict = sure(ranks_of(situation))
    assert (verdict.state, verdict.cls) == (state, cls)
    assert {one.rank for one in verdict.culprits} == ranks
    assert all(one.host == f"gpu{(one.rank or 0) + 1:02}" for one in verdict.culprits)


@pytest.mark.parametrize("situation", FOLDERS)
def test_without_stacks_the_kernel_names_the_same_rank_or_nobody(situation: str) -> None:
    verdict = sure(ranks_of(situation), stacks=False)
    assert {one.rank for one in verdict.culprits} == WITHOUT_STACKS.get(situation, set())
    if SITUATIONS[situation][0] != "hung":
        assert verdict.state is not State.HUNG


@pytest.mark.parametrize("situation", FOLDERS)
def test_one_look_is_never_a_hang(situation: str) -> None:
    verdict = judged(ranks_of(situation), samples=1)
    assert verdict is None or (verdict.state is State.UNKNOWN and not verdict.culprits)


def test_one_look_says_who_stands_apart_and_that_a_second_follows() -> None:
    verdict = sure(ranks_of("stop"), samples=1)
    assert verdict.summary.startswith(
        "may be stuck: rank 2 on gpu03 is stopped, ranks 0-1, 3 wait;"
    )
    assert "second look" in verdict.summary


def test_half_of_a_second_look_does_not_say_less_than_the_first() -> None:
    looked = live(ranks_of("stop"))
    first, last = looked.samples
    half = replace(last, probes=last.probes[:1], stacks=(), whole=False)
    before = judge_live(facts(replace(looked, samples=(first,))))
    verdict = judge_live(facts(replace(looked, samples=(first, half))))
    assert verdict is not None
    assert before is not None
    assert verdict.summary == before.summary


@pytest.mark.parametrize("situation", FOLDERS)
def test_a_second_look_that_no_node_answers_takes_nothing_of_the_first(situation: str) -> None:
    looked = live(ranks_of(situation))
    first, _ = looked.samples
    _, unanswered = live(ranks_of(situation), silent=looked.hosts).samples
    before = judge_live(facts(replace(looked, samples=(first,))))
    after = judge_live(facts(replace(looked, samples=(first, unanswered))))
    if before is None:
        assert after is None
        return
    assert after is not None
    assert (after.state, after.summary) == (before.state, before.summary)
    assert "no node answered the second look" in after.missing[0].why


def test_two_looks_too_close_together_are_one() -> None:
    looked = live(ranks_of("stop"))
    first, last = looked.samples
    close = replace(last, began_at=first.began_at)
    verdict = judge_live(facts(replace(looked, samples=(first, close))))
    assert verdict is None or verdict.state is not State.HUNG


def test_stack_and_process_together_are_sure_and_each_alone_less() -> None:
    assert sure(ranks_of("stop")).confidence is Confidence.HIGH
    assert sure(ranks_of("stop"), stacks=False).confidence is Confidence.MEDIUM
    assert sure(ranks_of("branch")).confidence is Confidence.MEDIUM


def test_the_raw_lines_and_their_places_are_told() -> None:
    verdict = sure(ranks_of("data-sleep"))
    stack, kernel = verdict.evidence[:2]
    assert stack.family == "stack"
    assert stack.source == "py-spy dump --nonblocking -p 5020 on gpu03"
    assert "    read_shard (train.py:36)" in stack.text.split("\n")
    assert kernel.family == "process"
    assert "State: S (sleeping) wchan: hrtimer_nanosleep" in kernel.text
    assert "context switches: +0" in kernel.text
    assert verdict.evidence[2].says == "ranks 0-1, 3 wait here"


def test_what_is_known_is_saved_before_anything_is_changed() -> None:
    steps = sure(ranks_of("stop")).next
    assert steps[0].command == f"slurmtop triage {JOB} --save triage-{JOB}"
    writes = [n for n, one in enumerate(steps) if one.effect == "write"]
    assert writes
    assert min(writes) == len(steps) - len(writes)
    assert steps[-1].command == "ssh gpu03 kill -CONT 5020"


def test_a_stopped_rank_that_is_traced_is_not_woken() -> None:
    looked = live(ranks_of("stop"))
    samples = []
    for sample in looked.samples:
        probes = tuple(
            replace(
                probe,
                activity=tuple(
                    replace(one, tracer_pid=99) if one.pid == 5020 else one
                    for one in probe.activity
                ),
            )
            for probe in sample.probes
        )
        samples.append(replace(sample, probes=probes))
    verdict = judge_live(facts(replace(looked, samples=tuple(samples))))
    assert verdict is not None
    assert "traced by process 99" in verdict.summary
    assert not any("CONT" in one.command for one in verdict.next)


# Who moves is not stuck


def moving(ranks: list[Rank], *numbers: int, **how: int) -> list[Rank]:
    for one in ranks:
        if one.number in numbers:
            one.switches, one.cpu = how.get("switches", 80), how.get("cpu", 150)
            one.io = how.get("io", 0)
    return ranks


def test_a_rank_that_evaluates_while_the_others_wait_is_healthy() -> None:
    ranks = moving(ranks_of("evaluation"), 0)
    ranks[0].stacks = (ranks[0].stacks[0], captured("healthy", "rank0"))
    verdict = sure(ranks)
    assert verdict.state is State.HEALTHY
    assert verdict.summary.startswith("quiet for 26 s, but working: rank 0 is at work")
    assert not verdict.culprits


def test_a_slow_checkpoint_whose_bytes_grow_is_healthy() -> None:
    ranks = moving(ranks_of("checkpoint"), 2, io=5_000_000, cpu=10)
    verdict = sure(ranks)
    assert (verdict.state, verdict.cls) == (State.HEALTHY, "healthy")
    assert "rank 2 is at work at a checkpoint" in verdict.summary


def test_without_stacks_a_checkpoint_that_grows_blames_nobody() -> None:
    verdict = sure(moving(ranks_of("checkpoint"), 2, io=5_000_000), stacks=False)
    assert verdict.state in (State.HEALTHY, State.UNKNOWN)
    assert not verdict.culprits


def test_compilers_at_work_below_the_ranks_are_healthy() -> None:
    ranks = ranks_of("compile")
    for one in ranks:
        one.children, one.lively = [("R", "")], True
    verdict = sure(ranks)
    assert verdict.state is State.HEALTHY
    assert "compiling" in verdict.summary


@pytest.mark.parametrize("stacks", [True, False])
def test_one_rank_that_starts_compilers_while_the_others_wait_is_not_blamed(stacks: bool) -> None:
    ranks = ranks_of("branch")
    ranks[2] = ranks_of("compile")[2]
    ranks[2].children, ranks[2].fresh = [("S", "hrtimer_nanosleep")], True
    verdict = sure(ranks, stacks=stacks)
    assert verdict.state is not State.HUNG
    assert not verdict.culprits


def test_a_loader_whose_workers_work_is_not_stuck() -> None:
    ranks = ranks_of("data-worker")
    ranks[2].children, ranks[2].lively = [("R", ""), ("R", "")], True
    for stacks in (True, False):
        verdict = sure(ranks, stacks=stacks)
        assert verdict.state is not State.HUNG
        assert not verdict.culprits


def test_waiters_that_come_by_again_and_again_are_no_hang() -> None:
    """The same line in both looks, as in a job of short steps whose log is buffered."""
    verdict = sure(moving(ranks_of("data-sleep"), 0, 1, 2, 3))
    assert verdict.state is State.HEALTHY


def test_who_looks_again_and_again_for_something_may_find_it() -> None:
    ranks = ranks_of("data-sleep")
    ranks[2].switches, ranks[2].cpu = 7, 1
    assert sure(ranks).state is State.UNKNOWN
    verdict = sure(ranks, log=LogMotion(grew=False, quiet_s=360))
    assert named(verdict) == {(2, "gpu03")}
    assert verdict.confidence is Confidence.MEDIUM
    assert "for 6 min" in verdict.summary


def test_new_steps_take_a_hang_back() -> None:
    for situation in FOLDERS:
        verdict = judged(ranks_of(situation), log=GROWS)
        assert verdict is None or verdict.state is not State.HUNG, situation


def test_all_others_wait_for_one_in_both_looks_while_steps_are_made() -> None:
    verdict = sure(moving(ranks_of("data-sleep"), 0, 1, 2, 3), log=GROWS)
    assert (verdict.state, verdict.cls) == (State.SLOW, "slow-run")
    assert "all others waited for rank 2 on gpu03" in verdict.summary
    assert not verdict.culprits


# Minorities and worlds of two


def world_of(size: int, away: dict[int, str]) -> list[Rank]:
    """Ranks that wait in one all_reduce, and some that sleep or are stopped instead."""
    waits, sleeps = captured("data-sleep", "rank0"), captured("data-sleep", "rank2")
    out = []
    for number in range(size):
        act = away.get(number)
        state = "T" if act == "stop" else "S"
        wchan = {"stop": "do_signal_stop", "sleep": "hrtimer_nanosleep"}.get(act or "", FUTEX)
        stack = sleeps if act == "sleep" else waits
        out.append(Rank(number, state=state, wchan=wchan, stacks=(stack, stack), size=size))
    return out


def test_two_sleepers_of_eight_are_both_named() -> None:
    verdict = sure(world_of(8, {2: "sleep", 5: "sleep"}))
    assert {one.rank for one in verdict.culprits} == {2, 5}
    assert verdict.cls == "data-loader-stuck"


def test_half_of_the_ranks_are_no_minority() -> None:
    verdict = sure(world_of(4, {1: "sleep", 2: "sleep"}))
    assert not verdict.culprits


def test_in_a_world_of_two_stacks_tell_and_the_kernel_alone_does_not() -> None:
    assert named(sure(world_of(2, {1: "sleep"}))) == {(1, "gpu02")}
    assert not named(judged(world_of(2, {1: "sleep"}), stacks=False))
    assert named(sure(world_of(2, {1: "stop"}))) == {(1, "gpu02")}


def test_equal_halves_in_different_calls_name_nobody() -> None:
    ranks = ranks_of("branch")
    ranks[3].stacks = ranks[2].stacks
    verdict = sure(ranks)
    assert verdict.cls == "collective-op-mismatch"
    assert not verdict.culprits
    assert verdict.collective is not None
    assert "barrier" in (verdict.collective.mismatch or "")


def test_with_a_node_that_is_silent_a_minority_of_calls_names_nobody() -> None:
    assert not named(judged(ranks_of("branch"), silent=("gpu01",)))


# Nodes


def frozen(*, states: tuple[tuple[str, str], ...] = ()) -> Verdict:
    ranks = ranks_of("stop")
    more = tuple(agent(one.at, state="T" if one.number == 2 else "S") for one in ranks)
    more += tuple(daemon(one.at) for one in ranks)
    return sure(ranks, agents=False, more=more, node_states=states)


def test_a_node_on_which_all_is_stopped_is_frozen() -> None:
    verdict = frozen(states=(("gpu03", "MIXED*"),))
    assert (verdict.state, verdict.cls) == (State.HUNG, "node-frozen")
    assert named(verdict) == {(None, "gpu03")}
    assert any(one.family == "slurm" and one.text == "gpu03 MIXED*" for one in verdict.evidence)


def test_a_frozen_node_is_told_before_slurm_misses_it() -> None:
    assert frozen().cls == "node-frozen"


def test_a_node_that_only_does_not_answer_us_is_not_blamed() -> None:
    verdict = sure(world_of(4, {}), silent=("gpu03",))
    assert not verdict.culprits
    assert "gpu03" in verdict.summary
    assert any("gpu03" in one.why for one in verdict.missing)


def test_a_node_that_slurm_misses_too_is_named() -> None:
    verdict = sure(world_of(4, {}), silent=("gpu03",), node_states=(("gpu03", "MIXED*"),))
    assert named(verdict) == {(None, "gpu03")}
    assert verdict.cls is None


def test_several_silent_nodes_are_our_side_first() -> None:
    verdict = sure(world_of(8, {}), silent=("gpu03", "gpu04"))
    assert verdict.state is State.UNKNOWN
    assert not verdict.culprits


def test_the_culprits_own_node_is_silent() -> None:
    for situation in FOLDERS:
        assert not named(judged(ranks_of(situation), silent=("gpu03",))), situation


# Ranks without a process


def test_a_rank_that_is_gone_is_named_with_its_node() -> None:
    ranks = world_of(4, {})
    verdict = sure(ranks[:2] + ranks[3:], agents=False, hosts=tuple(r.at for r in ranks))
    assert (verdict.state, verdict.cls) == (State.HUNG, "missing-rank")
    assert named(verdict) == {(2, "gpu03")}
    assert verdict.collective is not None
    assert verdict.collective.missing_ranks == (2,)


def test_a_rank_that_memory_ran_out_for() -> None:
    ranks = world_of(4, {})
    looked = live(ranks[:2] + ranks[3:], agents=False, hosts=tuple(r.at for r in ranks))
    group = MemoryGroup(path="/slurm/job_4711", oom_kills=1)
    last = looked.samples[-1]
    probes = tuple(
        replace(one, memory=(group,)) if one.host == "gpu03" else one for one in last.probes
    )
    samples = (looked.samples[0], replace(last, probes=probes))
    verdict = judge_live(facts(replace(looked, samples=samples)))
    assert verdict is not None
    assert verdict.cls == "host-oom"
    assert verdict.evidence[0].text == "oom_kill 1"


def test_a_rank_that_nobody_could_see_is_not_missing() -> None:
    ranks = world_of(4, {})
    hosts = tuple(one.at for one in ranks)
    left = ranks[:2] + ranks[3:]
    assert not named(judged(left, agents=False, hosts=hosts, silent=("gpu03",)))
    ranks[2].env = False
    assert not named(judged(ranks, agents=False, hosts=hosts))


def finished(ranks: list[Rank], **how: object) -> Verdict:
    """The log of the job tells its last step."""
    told = facts(live(ranks, **how))  # type: ignore[arg-type]
    line = LogLine("step 500/500 loss=1.9", 9, 400)
    log = replace(told.logs[0], progress=Progress(500, 500, line))
    verdict = judge_live(replace(told, logs=(log,)))
    assert verdict is not None
    return verdict


def test_one_that_lingers_when_the_others_have_ended() -> None:
    ranks = ranks_of("teardown")
    for stacks in (True, False):
        hosts = tuple(one.at for one in ranks)
        look = sure if stacks else finished
        verdict = look([ranks[2]], hosts=hosts, stacks=stacks, more=tuple(map(daemon, hosts)))
        assert (verdict.state, verdict.cls) == (State.HUNG, "teardown-hang")
        assert named(verdict) == {(2, "gpu03")}


def daemon(host: str) -> NodeProcess:
    """Slurm's own process of the step, of which nobody but root may read the environment."""
    return process(host, 3900, ("slurmstepd: [4711.0]",), name="slurmstepd", env=None)


def test_a_launcher_that_never_came_up() -> None:
    hosts = ("gpu01", "gpu02", "gpu03", "gpu04")
    more = tuple(agent(host) for host in hosts if host != "gpu03")
    more += (process("gpu03", 4100, ("sleep", "900")), *map(daemon, hosts))
    quiet = LogMotion(grew=False, quiet_s=400.0)
    verdict = sure([], agents=False, more=more, hosts=hosts, log=quiet)
    assert (verdict.state, verdict.cls) == (State.HUNG, "rendezvous-timeout")
    assert named(verdict) == {(None, "gpu03")}
    soon = sure([], agents=False, more=more, hosts=hosts)
    assert (soon.state, soon.cls) == (State.UNKNOWN, None)
    assert "no launcher on gpu03 yet" in soon.summary
    assert not soon.culprits


def test_all_launchers_there_and_no_rank_yet_is_nothing_to_say() -> None:
    hosts = ("gpu01", "gpu02", "gpu03", "gpu04")
    verdict = judged([], agents=False, more=tuple(map(agent, hosts)), hosts=hosts)
    assert verdict is None or verdict.state is State.UNKNOWN


def test_an_allocation_without_a_program_is_idle() -> None:
    more = (
        daemon("gpu01"),
        process("gpu01", 4100, ("/bin/bash", "job.sh"), step="batch"),
        process("gpu01", 4101, ("sleep", "900"), step="batch", ppid=4100),
    )
    verdict = sure([], agents=False, more=more, hosts=("gpu01", "gpu02"))
    assert verdict.state is State.IDLE
    assert not verdict.culprits


# All alike


def test_all_in_one_collective_of_the_cpu_name_nobody() -> None:
    verdict = sure(world_of(4, {}))
    assert verdict.state is State.HUNG
    assert not verdict.culprits
    assert "the same all_reduce" in verdict.summary


def test_a_collective_whose_transport_works_may_take_its_time() -> None:
    ranks = world_of(4, {})
    ranks[1].cpu = 60
    verdict = sure(ranks)
    assert verdict.state is State.UNKNOWN
    assert "data may be on its way" in verdict.summary


def test_nothing_seen_is_nothing_said() -> None:
    assert judge_live(facts(live([], samples=0))) is None
    ranks = world_of(4, {})
    assert judged(ranks, silent=tuple(one.at for one in ranks)) is None
    no_signs = sure(ranks, stacks=False, activity=False)
    assert no_signs.state is State.UNKNOWN


def test_one_that_lingers_on_the_only_node() -> None:
    ranks = ranks_of("teardown")
    for one in ranks:
        one.host = "gpu01"
    for stacks in (True, False):
        verdict = (sure if stacks else finished)([ranks[2]], stacks=stacks)
        assert (verdict.state, verdict.cls) == (State.HUNG, "teardown-hang")
        assert named(verdict) == {(2, "gpu01")}


def test_a_rank_that_left_early_under_torchrun_is_the_one_that_is_missing() -> None:
    ranks = world_of(4, {})
    verdict = sure(ranks[:2] + ranks[3:], hosts=tuple(one.at for one in ranks))
    assert verdict.cls == "missing-rank"
    assert named(verdict) == {(2, "gpu03")}


def test_locks_of_programs_that_never_meet_are_their_own() -> None:
    """Tasks of one step that form no group: workers that idle, and one that sleeps. That there is a
    MASTER_ADDR says nothing: many scripts export one always."""
    ranks = world_of(4, {0: "sleep"})
    for one in ranks:
        one.gloo = False
    verdict = judged(ranks, stacks=False)
    assert verdict is None or (verdict.state is State.UNKNOWN and not verdict.culprits)


def test_a_port_that_is_down_on_one_node_only_is_told_and_blames_nobody() -> None:
    looked = live(world_of(4, {}))
    samples = []
    for sample in looked.samples:
        probes = tuple(
            replace(one, nics=(port("mlx5_0/1", one.host != "gpu02"), port("mlx5_1/1", False)))
            for one in sample.probes
        )
        samples.append(replace(sample, probes=probes))
    verdict = judge_live(facts(replace(looked, samples=tuple(samples))))
    assert verdict is not None
    told = [one for one in verdict.evidence if one.family == "telemetry"]
    assert [(one.host, one.text) for one in told] == [("gpu02", "mlx5_0/1 DOWN")]
    assert not verdict.culprits


def port(name: str, up: bool) -> NicPort:
    return NicPort(name=name, kind=NicKind.IB, state="ACTIVE" if up else "DOWN")


def test_of_many_silent_nodes_some_are_told_and_the_rest_is_counted() -> None:
    first = ranks_of("stop")[0]
    ranks = [
        replace(first, number=number, size=40, host=f"gpu{number:02}") for number in range(1, 41)
    ]
    silent = tuple(f"gpu{number:02}" for number in range(20, 41))
    verdict = sure(ranks, silent=silent)
    assert verdict.state is State.UNKNOWN
    assert "gpu20, gpu21, gpu22, gpu23 and 17 more nodes did not answer us" in verdict.summary
    assert "17 more nodes gave no answer" in {one.why for one in verdict.missing}
    assert len([one for one in verdict.missing if one.family == "process"]) == 5
