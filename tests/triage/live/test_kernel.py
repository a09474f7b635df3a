"""What kernel logs add to a verdict: the end of one's own processes, a broken GPU, and nothing that
is somebody else's."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

import pytest

from slurmtop.model.live import LiveFacts
from slurmtop.model.probe import KernelLine, NodeProbe
from slurmtop.model.verdict import State, Verdict
from slurmtop.parse.dumps.kernel_lines import parse_kernel_lines
from slurmtop.triage.live.judge import judge_live
from tests.triage.builders import NOW, job
from tests.triage.live.builders import JOB, agent, facts, live, ranks_of

#: All of them since the job began.
UPTIME_S = 10_000.0


def lines(*texts: str) -> tuple[KernelLine, ...]:
    return parse_kernel_lines(texts, at=NOW, node_at=NOW, uptime_s=UPTIME_S)


def ago(seconds: float, text: str) -> str:
    return f"[{UPTIME_S - seconds:.3f}] {text}"


def told(
    looked: LiveFacts, host: str, found: Iterable[KernelLine], pids: bool | None = True
) -> LiveFacts:
    """The same looks, where the kernel log of ``host`` says so in the newest one."""

    def with_lines(probe: NodeProbe) -> NodeProbe:
        return replace(probe, kernel_pids=pids, kernel=tuple(found) if probe.host == host else ())

    samples = tuple(
        replace(one, probes=tuple(with_lines(probe) for probe in one.probes))
        for one in looked.samples
    )
    return replace(looked, samples=samples)


def judged(looked: LiveFacts, began_ago_s: float = 3600) -> Verdict:
    record = replace(job("RUNNING", JOB), start=NOW - timedelta(seconds=began_ago_s))
    verdict = judge_live(facts(looked, job=record))
    assert verdict is not None
    return verdict


def kernel_words(verdict: Verdict) -> list[str]:
    return [one.text for one in verdict.evidence if one.family == "kernel"]


def named(verdict: Verdict) -> set[tuple[int | None, str | None]]:
    return {(one.rank, one.host) for one in verdict.culprits}


# A rank that has died


def without_rank_2(*, seen_first: bool = True) -> LiveFacts:
    """Rank 2 has no process in the second look; in the first one it had."""
    ranks = ranks_of("stop")
    looked = live(ranks, more=(agent("gpu03"),))
    dead = next(one for one in ranks if one.number == 2)

    def gone(probe: NodeProbe) -> NodeProbe:
        look = probe.processes
        if probe.host != dead.at or look is None:
            return probe
        rest = tuple(one for one in look.processes if one.pid != dead.pid)
        acts = tuple(one for one in probe.activity if one.pid != dead.pid)
        return replace(probe, processes=replace(look, processes=rest), activity=acts)

    first, last = looked.samples
    samples = []
    for one, keep in ((first, seen_first), (last, False)):
        probes = one.probes if keep else tuple(gone(probe) for probe in one.probes)
        stacks = tuple(s for s in one.stacks if keep or s.pid != dead.pid)
        samples.append(replace(one, probes=probes, stacks=stacks))
    return replace(looked, samples=tuple(samples))


SEGFAULT = "python3[5020]: segfault at 0 ip 00007f13 sp 00007ffd error 4 in libc.so.6"
KILLED = "Memory cgroup out of memory: Killed process 5020 (python3) total-vm:9kB, anon-rss:8kB"


def oom_line(of_job: str, pid: int = 5020) -> str:
    path = f"/system.slice/slurmstepd.scope/job_{of_job}/step_0"
    return (
        f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg={path},"
        f"task_memcg={path}/user/task_2,task=python3,pid={pid},uid=1000"
    )


def test_without_a_line_a_rank_is_missing() -> None:
    verdict = judged(told(without_rank_2(), "gpu03", ()))
    assert (verdict.state, verdict.cls) == (State.HUNG, "missing-rank")
    assert named(verdict) == {(2, "gpu03")}


def test_a_segfault_of_its_pid_is_told() -> None:
    verdict = judged(told(without_rank_2(), "gpu03", lines(ago(20, SEGFAULT))))
    assert (verdict.cls, named(verdict)) == ("task-exit", {(2, "gpu03")})
    assert "crashed" in verdict.summary
    assert kernel_words(verdict) == [ago(20, SEGFAULT)]
    assert "crashed" in (verdict.culprits[0].reason or "")


def test_a_thread_that_nobody_saw_is_nobodys() -> None:
    looked = without_rank_2()
    line = lines(ago(20, SEGFAULT.replace("python3[5020]", "python3[5021]")))
    assert kernel_words(judged(told(looked, "gpu03", line))) == []


@pytest.mark.parametrize("seen_first", [True, False])
def test_a_kill_in_the_cgroup_of_the_job_is_told(seen_first: bool) -> None:
    found = lines(ago(20, oom_line(JOB)), ago(20, KILLED))
    verdict = judged(told(without_rank_2(seen_first=seen_first), "gpu03", found))
    assert (verdict.cls, named(verdict)) == ("host-oom", {(2, "gpu03")})
    assert kernel_words(verdict) == [ago(20, KILLED)]


@pytest.mark.parametrize(
    "found",
    [
        lines(ago(20, "python3[999]: segfault at 0 ip 0 sp 0 error 4")),
        lines(ago(20, oom_line("4712", 999)), ago(20, KILLED.replace("5020", "999"))),
        lines(ago(20, oom_line("47110", 999))),
        lines(ago(5000, SEGFAULT)),
        lines(SEGFAULT),
        lines(ago(20, SEGFAULT.replace("python3[", "ffmpeg["))),
    ],
    ids=["other pid", "other job", "longer number", "before the job", "no time", "other name"],
)
def test_lines_that_are_nobodys(found: tuple[KernelLine, ...]) -> None:
    verdict = judged(told(without_rank_2(), "gpu03", found))
    assert (verdict.cls, named(verdict)) == ("missing-rank", {(2, "gpu03")})
    assert kernel_words(verdict) == []


@pytest.mark.parametrize("pids", [False, None])
def test_pids_of_another_namespace_name_nobody(pids: bool | None) -> None:
    verdict = judged(told(without_rank_2(), "gpu03", lines(ago(20, SEGFAULT)), pids))
    assert (verdict.cls, kernel_words(verdict)) == ("missing-rank", [])


# A job that shares a node


def test_the_end_of_another_job_on_a_shared_node_names_nobody() -> None:
    """All ranks wait; on gpu02 the kernel killed a process of another job."""
    found = lines(
        ago(20, oom_line("999", 4242)),
        ago(20, KILLED.replace("5020", "4242")),
        ago(20, "python3[4243]: segfault at 0 ip 0 sp 0 error 4"),
        ago(
            20, "NVRM: Xid (PCI:0000:3b:00): 79, pid=4243, name=python3, GPU has fallen off the bus"
        ),
    )
    plain = judged(told(all_wait(), "gpu02", ()))
    verdict = judged(told(all_wait(), "gpu02", found))
    assert (verdict.state, verdict.cls) == (plain.state, plain.cls)
    assert (verdict.culprits, kernel_words(verdict)) == ((), [])
    assert verdict.summary == plain.summary


# GPUs


def all_wait() -> LiveFacts:
    """All ranks stand in one collective."""
    ranks = ranks_of("stop")
    first = next(one for one in ranks if one.number == 0)
    for one in ranks:
        one.state, one.wchan, one.stacks = first.state, first.wchan, first.stacks
    return live(ranks)


def xid(code: int, pid: int = 5020, seconds: float = 30) -> str:
    return ago(seconds, f"NVRM: Xid (PCI:0000:3b:00): {code}, pid={pid}, name=python3, Ch 00000008")


def test_a_broken_gpu_under_the_pid_of_one_rank_names_it() -> None:
    verdict = judged(told(all_wait(), "gpu03", lines(xid(79))))
    assert (verdict.state, verdict.cls) == (State.HUNG, "gpu-hw-fault")
    assert named(verdict) == {(2, "gpu03")}
    assert verdict.culprits[0].gpu == "0000:3b:00"
    assert verdict.culprits[0].pid == 5020
    assert kernel_words(verdict) == [xid(79)]


@pytest.mark.parametrize("code", [31, 13, 43, 45, 63, 154, 74])
def test_codes_of_programs_links_and_notes_are_shown_and_blame_nobody(code: int) -> None:
    plain = judged(told(all_wait(), "gpu03", ()))
    verdict = judged(told(all_wait(), "gpu03", lines(xid(code))))
    assert verdict.culprits == ()
    assert (verdict.cls, verdict.confidence) == (plain.cls, plain.confidence)
    assert kernel_words(verdict) == [xid(code)]


def test_a_fault_of_long_before_the_silence_blames_nobody() -> None:
    verdict = judged(told(all_wait(), "gpu03", lines(xid(79, seconds=1800))))
    assert (verdict.culprits, kernel_words(verdict)) == ((), [])


def test_faults_of_two_ranks_blame_nobody() -> None:
    looked = told(all_wait(), "gpu03", lines(xid(79)))
    samples = tuple(
        replace(
            one,
            probes=tuple(
                replace(p, kernel=lines(xid(79, pid=5010))) if p.host == "gpu02" else p
                for p in one.probes
            ),
        )
        for one in looked.samples
    )
    verdict = judged(replace(looked, samples=samples))
    assert verdict.culprits == ()
    assert len(kernel_words(verdict)) == 2


def test_a_card_without_a_process_is_only_a_trail() -> None:
    line = ago(30, "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.")
    plain = judged(told(all_wait(), "gpu03", ()))
    verdict = judged(told(all_wait(), "gpu03", lines(line)))
    assert verdict.culprits == ()
    assert (verdict.cls, verdict.confidence) == (plain.cls, plain.confidence)
    assert kernel_words(verdict) == [line]


# What is the node's


def in_d() -> LiveFacts:
    return live(ranks_of("d-state"))


SERVER = "nfs: server nfs01 not responding, still trying"


def test_a_server_that_does_not_answer_is_a_possibility() -> None:
    plain = judged(told(in_d(), "gpu03", ()))
    verdict = judged(told(in_d(), "gpu03", lines(ago(30, SERVER))))
    assert plain.cls == verdict.cls == "io-stuck"
    assert verdict.confidence is plain.confidence
    (shown,) = [one for one in verdict.evidence if one.family == "kernel"]
    assert "may be" in shown.says
    well = lines(ago(30, SERVER), ago(20, "nfs: server nfs01 OK"))
    assert kernel_words(judged(told(in_d(), "gpu03", well))) == []
    old = lines(ago(3000, SERVER))
    assert kernel_words(judged(told(in_d(), "gpu03", old))) == []


def test_a_task_that_the_kernel_finds_blocked_is_proof_only_where_it_is_ours() -> None:
    line = ago(10, "INFO: task python3:5020 blocked for more than 120 seconds.")
    verdict = judged(told(in_d(), "gpu03", lines(line)))
    assert kernel_words(verdict) == [line]
    other = ago(10, "INFO: task python3:999 blocked for more than 120 seconds.")
    assert kernel_words(judged(told(in_d(), "gpu03", lines(other)))) == []


def test_a_link_that_went_down_is_shown_and_blames_nobody() -> None:
    down = ago(30, "mlx5_core 0000:5e:00.0 mlx5_0: Port: 1 Link DOWN")
    plain = judged(told(all_wait(), "gpu03", ()))
    verdict = judged(told(all_wait(), "gpu03", lines(down)))
    assert (verdict.culprits, verdict.cls) == ((), plain.cls)
    assert verdict.confidence is plain.confidence
    assert kernel_words(verdict) == [down]
    came_back = lines(down, ago(20, "mlx5_core 0000:5e:00.0 mlx5_0: Port: 1 Link UP"))
    assert kernel_words(judged(told(all_wait(), "gpu03", came_back))) == []


def test_a_job_that_goes_on_is_not_hung_by_its_kernel_log() -> None:
    found = lines(xid(79), ago(20, SEGFAULT), ago(20, SERVER))
    verdict = judged(told(live(ranks_of("healthy")), "gpu03", found))
    assert verdict.state is State.HEALTHY
    assert verdict.culprits == ()
