"""One job from Slurm, its logs and its nodes to a verdict: what is asked, and what is told when."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from slurmtop.collect import job_triage
from slurmtop.collect.clock import cancel_and_wait, spawn
from slurmtop.collect.job_triage import Door, triage_job
from slurmtop.collect.live import LookSettings
from slurmtop.collect.log_verdict import LogBytes, Runs
from slurmtop.collect.who import Who
from slurmtop.model.facts import JobFacts, LogsSay, LogStatus
from slurmtop.model.ports import Command, Completed, FileStat, FileTimeout
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.verdict import SOURCES, Fate, State, Verdict
from slurmtop.triage.live.enough import Wanted, wanted
from tests.collect.slurm_forms import MARK, queue_record
from tests.collect.test_facts import block
from tests.collect.test_live import LOG, Bench
from tests.fakes import START


class Job(Bench):
    """A bench with Slurm's word and a log in front of the nodes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(monkeypatch)
        monkeypatch.setattr(job_triage, "wanted", lambda facts: self.want(facts))
        self.judged_after_s = 0.0
        self.news: list[tuple[float, State, int]] = []
        self.runner.on("sacct *", b"")
        self.say(quiet_s=25)

    def say(self, state: str = "RUNNING", *, quiet_s: float = 25.0) -> None:
        row = queue_record(state=state, nodes="gpu[01-04]", node_count="4")
        self.runner.on("squeue *", row)
        self.runner.on("scontrol *", block(state=state).replace("gpu[01-02]", "gpu[01-04]"))
        self.runner.files[LOG] = b"step 99/200 loss 2.1\nstep 100/200 loss 2.0\n"
        self.runner.mtimes[LOG] = START - timedelta(seconds=quiet_s)

    async def judge(self, logs: Sequence[LogBytes], runs: Runs) -> LogsSay | None:
        assert all(isinstance(log, LogBytes) for log in logs)
        await self.clock.sleep(self.judged_after_s)
        return None

    def heard(self, facts: JobFacts, verdict: Verdict) -> None:
        probes = len(facts.live.samples[-1].probes) if facts.live and facts.live.samples else 0
        self.news.append((self.clock.monotonic() - 1_000.0, verdict.state, probes))

    async def triage(self, **settings: Any) -> tuple[JobFacts, Verdict, float]:
        door = Door(
            runner=self.runner,
            clock=self.clock,
            who=Who(1001, "anna"),
            mark=MARK,
            expect=lambda job, hosts: self.expected.append((job, tuple(hosts))),
        )
        work = triage_job(door, "4711", LookSettings(**settings), self.heard, judge_logs=self.judge)
        (facts, verdict), took = await self.until_done(work)
        return facts, verdict, took


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Job:
    return Job(monkeypatch)


async def test_a_quiet_job_is_answered_at_once_and_then_by_its_nodes(job: Job) -> None:
    job.judged_after_s = 1.5
    facts, verdict, took = await job.triage()
    at, state, probes = job.news[0]
    assert (state, probes) == (State.UNKNOWN, 0), "a quiet log is no proof of work"
    assert at < 0.5, "the first answer waits for no node and no judge"
    assert facts.live is not None
    assert facts.live.two_samples
    assert took < 8.0
    assert facts.now > START + timedelta(seconds=5), "ages count from the last look"
    order = [SOURCES.index(one.source) for one in verdict.sources]
    assert order == sorted(order)
    assert {one.source for one in verdict.sources} >= {"slurm", "accounting", "logs", "nodes"}


async def test_a_log_that_grows_sends_nobody_to_the_nodes(job: Job) -> None:
    job.want = lambda _: Wanted(stacks=False, second=False)
    job.say(quiet_s=1)
    facts, verdict, took = await job.triage()
    assert verdict.state is State.HEALTHY
    assert job.nodes.probed == []
    assert not [call for call in job.runner.calls if call.argv[0] == "sinfo"]
    assert took < 0.5
    assert facts.live is not None
    [nodes] = [one for one in verdict.sources if one.source == "nodes"]
    assert (nodes.fate, nodes.why) == (Fate.NOT_ASKED, "its log grows: nothing to look for there")


async def test_a_log_that_grows_without_a_step_sends_somebody_to_the_nodes(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "want", wanted)
    job.say(quiet_s=1)
    job.runner.files[LOG] = b"step 99/200\nstep 100/200\n" + b"heartbeat: alive\n" * 9
    facts, verdict, _ = await job.triage()
    assert {state for _, state, _ in job.news} == {State.UNKNOWN}
    assert verdict.state is not State.HEALTHY
    assert facts.live is not None
    assert facts.live.two_samples
    assert all(look.stacks_asked for look in facts.live.samples)


def log_lets_wait(job: Job, seconds: float, end: Exception | None = None) -> None:
    """Whoever looks at the log hears nothing for so long."""
    stat = job.runner.stat
    hung: list[str] = []

    async def slow(path: str, host: str | None = None) -> FileStat:
        if path == LOG and not hung:
            await job.clock.sleep(seconds)
        if end is not None:
            # What hung once is known to hang.
            hung.append(path)
            raise end
        return await stat(path, host)

    job.runner.stat = slow  # type: ignore[method-assign]


async def test_a_log_that_hangs_holds_up_neither_the_first_answer_nor_the_nodes(job: Job) -> None:
    log_lets_wait(job, 5.0, FileTimeout("the file system did not answer within 5 s."))
    facts, verdict, took = await job.triage()
    at, state, probes = job.news[0]
    assert (state, probes) == (State.UNKNOWN, 0)
    assert at < 2.0
    assert took < 9.0
    assert facts.live is not None
    assert facts.live.two_samples
    [log] = facts.logs
    assert (log.status, log.why) == (LogStatus.HANGS, "the file system did not answer within 5 s.")
    [logs] = [one for one in verdict.sources if one.source == "logs"]
    assert logs.fate is Fate.TIMED_OUT


async def test_a_log_that_comes_late_is_judged_like_any_other(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "want", wanted)
    job.say(quiet_s=1)
    log_lets_wait(job, 3.0)
    facts, verdict, took = await job.triage()
    assert job.news[0][0] < 2.0
    assert verdict.state is State.HEALTHY
    assert took < 4.0
    assert [log.status for log in facts.logs] == [LogStatus.READ]
    [nodes] = [one for one in verdict.sources if one.source == "nodes"]
    assert nodes.fate is Fate.NOT_ASKED


async def test_a_log_that_comes_late_is_compared_with_itself(job: Job) -> None:
    job.say(quiet_s=25)
    log_lets_wait(job, 3.0)
    facts, _, _ = await job.triage()
    assert facts.live is not None
    assert (facts.live.log.grew, facts.live.log.new_steps) == (False, False)


async def test_what_was_suspect_is_not_well_until_the_last_answer(job: Job) -> None:
    answers = iter([True])
    job.want = lambda _: Wanted(stacks=False, second=next(answers, False))
    job.say(quiet_s=1)
    _, verdict, _ = await job.triage(once=True)
    assert {state for _, state, _ in job.news} == {State.UNKNOWN}
    assert verdict.state is State.HEALTHY


async def test_one_look_at_the_least_where_that_is_wanted(job: Job) -> None:
    job.want = lambda _: Wanted(stacks=False, second=False)
    facts, _, _ = await job.triage(once=True)
    assert facts.live is not None
    assert len(facts.live.samples) == 1


async def test_what_the_judge_finds_sends_somebody_to_the_nodes(job: Job) -> None:
    job.want = lambda facts: Wanted(stacks=False, second=facts.now > START)
    job.judged_after_s = 1.0
    facts, _, _ = await job.triage()
    assert facts.live is not None
    assert facts.live.two_samples


async def test_a_job_that_ends_while_it_is_looked_at_has_ended(job: Job) -> None:
    asked = 0

    def answer(command: Command) -> Completed:
        nonlocal asked
        asked += 1
        state = "RUNNING" if asked == 1 else "FAILED"
        row = queue_record(state=state, nodes="gpu[01-04]", end="2031-05-05T12:00:03")
        return Completed(0, row, b"", job.clock.now(), 0.1)

    job.runner.on_call("squeue *", answer)
    job.nodes.gone_after = 4
    facts, verdict, _ = await job.triage()
    assert verdict.state is State.FAILED
    assert facts.live is None
    assert asked == 2


async def test_where_no_node_answers_any_more_slurm_is_asked_once_more(job: Job) -> None:
    """The nodes close behind a job that has ended."""
    asked = 0

    def answer(command: Command) -> Completed:
        nonlocal asked
        asked += 1
        state = "RUNNING" if asked == 1 else "FAILED"
        row = queue_record(state=state, nodes="gpu[01-04]", end="2031-05-05T12:00:03")
        return Completed(0, row, b"", job.clock.now(), 0.1)

    def heard(facts: JobFacts, verdict: Verdict) -> None:
        if facts.live is not None and facts.live.samples[-1].whole:
            closed = Failure(Trouble.DENIED, "it is closed")
            job.nodes.failures = dict.fromkeys(facts.live.hosts, closed)

    job.heard = heard  # type: ignore[method-assign]
    job.runner.on_call("squeue *", answer)
    _, verdict, _ = await job.triage()
    assert (verdict.state, asked) == (State.FAILED, 2)


async def test_a_new_error_in_the_log_is_judged_again(job: Job) -> None:
    judged: list[int] = []
    said = LogsSay(verdict=Verdict(job="4711", state=State.HUNG, summary="new"))

    async def judge(logs: Sequence[LogBytes], runs: Runs) -> LogsSay | None:
        judged.append(sum(log.size for log in logs))
        job.runner.files[LOG] = b"step 1/2\nRuntimeError: boom\n"
        job.runner.mtimes[LOG] = START
        return said if len(judged) > 1 else None

    job.judge = judge  # type: ignore[method-assign]
    facts, _, _ = await job.triage()
    assert len(judged) == 2
    assert facts.logs_say is said


async def test_nodes_may_be_left_out(job: Job) -> None:
    _, verdict, _ = await job.triage(nodes=False, why_not="--no-nodes")
    assert job.nodes.probed == []
    [nodes] = [one for one in verdict.sources if one.source == "nodes"]
    assert (nodes.fate, nodes.why) == (Fate.NOT_ASKED, "--no-nodes")
    later = [one for one in verdict.sources if one.source in ("flight recorder", "ras")]
    assert [one.fate for one in later] == [Fate.NOT_ASKED, Fate.NOT_ASKED]


@pytest.mark.parametrize("state", ["PENDING", "SUSPENDED", "COMPLETED"])
async def test_a_job_that_does_not_run_has_no_nodes_to_look_at(job: Job, state: str) -> None:
    job.say(state)
    _, verdict, _ = await job.triage(nodes=True)
    assert job.news == []
    assert job.nodes.probed == []
    assert "nodes" not in {one.source for one in verdict.sources}


async def test_a_log_that_may_not_be_read_is_told_with_the_command(job: Job) -> None:
    job.runner.files[LOG] = PermissionError(13, "Permission denied", LOG)
    _, verdict, _ = await job.triage()
    [logs] = [one for one in verdict.sources if one.source == "logs"]
    assert logs.fate is Fate.REFUSED
    assert logs.command == f"tail -n 100 -- {LOG}"
    assert len(job.nodes.probed) == 8, "the nodes speak all the same"


async def test_who_breaks_it_off_leaves_nothing_behind(job: Job) -> None:
    door = Door(runner=job.runner, clock=job.clock, who=Who(1001, "anna"), mark=MARK)
    work = triage_job(door, "4711", LookSettings(), job.heard, judge_logs=job.judge)
    task = spawn(work, name="triage")
    while not job.nodes.inside:
        await job.clock.advance(0.1)
    await cancel_and_wait(task)
    assert job.nodes.inside == 0
