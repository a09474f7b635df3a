"""Looks at the nodes of a running job: what is asked when, and what a silent node costs."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

import pytest

from slurmtop.collect import live
from slurmtop.collect.clock import cancel_and_wait, spawn
from slurmtop.collect.live import LiveLook, LookSettings, look_live, nodes_to_look_at
from slurmtop.collect.live_fates import fates_of
from slurmtop.collect.nodes.stacks import AT_ONCE
from slurmtop.model.facts import JobFacts, LogFacts, LogLine, LogStatus, Progress
from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job
from slurmtop.model.live import SAMPLES_APART_S, LiveFacts, Sample
from slurmtop.model.probe import NodeProbe
from slurmtop.model.process import NodeProcess, NodeProcesses
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.stacks import ProcessStacks, StackTool, ThreadStack
from slurmtop.model.verdict import Fate, SourceFate
from slurmtop.parse.slurm.ids import parse_job_id
from slurmtop.parse.slurm.states import parse_state
from slurmtop.triage.live.enough import Wanted
from tests.fakes import START, FakeClock, FakeRunner, settle

T = TypeVar("T")
LOG = "/w/slurm-4711.out"
TOOL = StackTool(path="/usr/bin/py-spy")
SINFO = b"".join(
    b"\x1f".join((name, state, *[b"N/A"] * 10)) + b"\x1eAbCdEf\n"
    for name, state in ((b"gpu01", b"allocated"), (b"gpu02", b"down*"))
)


def a_job(nodes: str = "gpu[01-04]", **changes: Any) -> Job:
    base = Job(
        key=JobKey("", "4711"),
        id=parse_job_id("4711"),
        raw_id="4711",
        user="anna",
        state=parse_state("RUNNING"),
        nodes=nodes,
        start=START - timedelta(hours=1),
    )
    return replace(base, **changes)


def a_log(quiet_s: float = 25.0, step: int = 100, size: int = 0) -> LogFacts:
    line = LogLine(f"step {step}/200", 1, 0)
    return LogFacts(
        label="stdout",
        path=LOG,
        status=LogStatus.READ,
        size=size,
        mtime=START - timedelta(seconds=quiet_s),
        last_line=line,
        progress=Progress(step, 200, line),
    )


def some_facts(nodes: str = "gpu[01-04]", **changes: Any) -> JobFacts:
    base = JobFacts(
        asked="4711",
        cluster="",
        now=START,
        job=a_job(nodes),
        logs=(a_log(),),
        viewer="anna",
        viewer_uid=1001,
    )
    return replace(base, **changes)


class Nodes:
    """What the nodes answer, and what they were asked. Times are those of the fake clock."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.took_s: dict[str, float] = {}
        self.failures: dict[str, Failure] = {}
        self.probed: list[tuple[str, datetime]] = []
        self.stacked: list[tuple[str, tuple[int, ...]]] = []
        self.stacks_took_s: Callable[[Sequence[NodeProcess]], float] = lambda _: 0.5
        self.tools: tuple[StackTool, ...] = (TOOL,)
        self.stacks_fail: dict[str, Failure] = {}
        self.broken: dict[str, Exception] = {}
        """What is raised on reading the answer of a node, or its stacks as ``stacks HOST``."""
        self.letters: dict[str, str] = {}
        self.beside: dict[str, str] = {}
        """The state of a second rank."""
        self.readers: dict[str, int] = {}
        self.most_readers = 0
        self.how: list[dict[str, Any]] = []
        self.gone_after: int | None = None
        """Their processes are gone after so many looks."""
        self.inside = 0
        self.most_inside = 0

    async def probe(self, runner: Any, clock: Any, host: str, *, job: str, **how: Any) -> NodeProbe:
        at = clock.now()
        self.probed.append((host, at))
        self.how.append(how)
        self.inside += 1
        self.most_inside = max(self.inside, self.most_inside)
        try:
            await self.clock.sleep(self.took_s.get(host, 1.0))
        finally:
            self.inside -= 1
        if host in self.broken:
            raise self.broken[host]
        if host in self.failures:
            return NodeProbe(host=host, at=at, failure=self.failures[host])
        number = int(host[-2:])
        rank = NodeProcess(
            host=host,
            pid=1000 + number,
            start_ticks=5,
            ppid=1,
            state=self.letters.get(host, "S"),
            name="python",
            argv=("python", "train.py"),
            job=job,
            step="0",
            env=(("RANK", str(number)), ("WORLD_SIZE", "4"), ("LOCAL_RANK", "0")),
        )
        gone = self.gone_after is not None and len(self.probed) > self.gone_after
        looked = NodeProcesses(host=host, at=at, processes=() if gone else self._with_another(rank))
        return NodeProbe(host=host, at=at, processes=looked, stack_tools=self.tools)

    def _with_another(self, rank: NodeProcess) -> tuple[NodeProcess, ...]:
        state = self.beside.get(rank.host)
        if state is None:
            return (rank,)
        env = (*rank.env[1:], ("RANK", f"{rank.pid}")) if rank.env is not None else None
        return rank, replace(rank, pid=rank.pid + 500, state=state, env=env)

    async def stacks(
        self,
        runner: Any,
        clock: Any,
        host: str,
        processes: Sequence[NodeProcess],
        tools: Any,
        *,
        at_once: int,
    ) -> tuple[ProcessStacks, ...]:
        self.readers[host] = self.readers.get(host, 0) + at_once
        self.most_readers = max(self.most_readers, self.readers[host])
        self.stacked.append((host, tuple(one.pid for one in processes)))
        try:
            await self.clock.sleep(self.stacks_took_s(processes))
        finally:
            self.readers[host] -= at_once
        if f"stacks {host}" in self.broken:
            raise self.broken[f"stacks {host}"]
        return tuple(
            ProcessStacks(
                host=host,
                pid=one.pid,
                start_ticks=one.start_ticks,
                at=clock.now(),
                threads=() if host in self.stacks_fail else (ThreadStack(name="MainThread"),),
                failure=self.stacks_fail.get(host),
            )
            for one in processes
        )


class Bench:
    """A look under a fake clock that is moved on until the look is over."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = FakeClock()
        self.runner = FakeRunner(self.clock)
        self.runner.on("sinfo *", b"")
        self.runner.files[LOG] = b""
        self.runner.mtimes[LOG] = START - timedelta(seconds=25)
        self.nodes = Nodes(self.clock)
        self.expected: list[tuple[str, tuple[str, ...]]] = []
        self.want: Callable[[JobFacts], Wanted] = lambda _: Wanted(stacks=True, second=True)
        monkeypatch.setattr(live, "read_probe", self.nodes.probe)
        monkeypatch.setattr(live, "read_stacks", self.nodes.stacks)
        monkeypatch.setattr(live, "wanted", lambda facts: self.want(facts))

    async def until_done(self, work: Awaitable[T], limit_s: float = 60.0) -> tuple[T, float]:
        """What ``work`` returns, and how long it took by the clock."""
        began = self.clock.monotonic()
        task = spawn(_coro(work), name="work")
        await settle()
        while not task.done():
            assert self.clock.monotonic() - began < limit_s, "it never ended"
            await self.clock.advance(0.1)
        return task.result(), self.clock.monotonic() - began

    def look(self, facts: JobFacts | None = None, **settings: Any) -> LiveLook:
        made = LiveLook(
            self.runner,
            self.clock,
            some_facts() if facts is None else facts,
            settings=LookSettings(**settings),
            expect=lambda job, hosts: self.expected.append((job, tuple(hosts))),
            mark=b"\x1eAbCdEf",
        )
        made.judged(made.facts)
        return made

    async def looked(
        self, facts: JobFacts | None = None, **settings: Any
    ) -> tuple[LiveFacts, float]:
        known, took = await self.until_done(self.look(facts, **settings).run(lambda _: None))
        assert known.live is not None
        return known.live, took


async def _coro(work: Awaitable[T]) -> T:
    return await work


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch)


async def test_two_looks_with_stacks_where_somebody_is_suspected(bench: Bench) -> None:
    told, took = await bench.looked()
    assert told.two_samples
    assert [len(sample.probes) for sample in told.samples] == [4, 4]
    assert [len(sample.stacks) for sample in told.samples] == [4, 4]
    apart = told.samples[1].began_at - told.samples[0].began_at
    assert SAMPLES_APART_S <= apart.total_seconds() < SAMPLES_APART_S + 0.3
    assert took < 7.0, "verdict within ten seconds"
    assert bench.expected == [("4711", ("gpu01", "gpu02", "gpu03", "gpu04"))]
    assert bench.nodes.most_inside == 4, "all nodes at once"
    fates = {one.source: one.fate for one in told.fates}
    assert fates == {"nodes": Fate.ANSWERED, "stacks": Fate.ANSWERED}


async def test_one_look_and_no_stacks_where_nobody_is_suspected(bench: Bench) -> None:
    bench.want = lambda _: Wanted(stacks=False, second=False)
    told, took = await bench.looked()
    assert [len(sample.probes) for sample in told.samples] == [4]
    assert bench.nodes.stacked == []
    assert not told.samples[0].stacks_asked
    assert took < 2.0
    [stacks] = [one for one in told.fates if one.source == "stacks"]
    assert (stacks.fate, stacks.why) == (Fate.NOT_ASKED, "nothing speaks for a hang")


async def test_two_looks_can_be_wanted_anyway(bench: Bench) -> None:
    bench.want = lambda _: Wanted(stacks=False, second=False)
    told, _ = await bench.looked(always=True)
    assert told.two_samples
    assert len(bench.nodes.stacked) == 8


async def test_no_stacks_where_they_are_not_wanted(bench: Bench) -> None:
    told, _ = await bench.looked(stacks=False)
    assert told.two_samples
    assert bench.nodes.stacked == []
    assert [one.why for one in told.fates if one.source == "stacks"] == ["--no-stacks"]


async def test_a_silent_node_costs_its_own_cell_and_a_bounded_wait(bench: Bench) -> None:
    bench.nodes.took_s["gpu03"] = 1_000.0
    told, took = await bench.looked()
    assert took < 10.0
    assert told.two_samples
    for sample in told.samples:
        silent = sample.probe_of("gpu03")
        assert silent is not None
        assert silent.failure is not None
        assert silent.failure.trouble is Trouble.TIMEOUT
        assert [probe.host for probe in sample.probes] == ["gpu01", "gpu02", "gpu03", "gpu04"]
    fates = [(one.hosts, one.fate) for one in told.fates if one.source == "nodes"]
    assert (("gpu03",), Fate.TIMED_OUT) in fates
    assert bench.nodes.inside == 0, "nothing is left behind"


async def test_no_node_answers(bench: Bench) -> None:
    bench.nodes.took_s = dict.fromkeys(("gpu01", "gpu02", "gpu03", "gpu04"), 1_000.0)
    told, took = await bench.looked()
    assert took <= 26.0
    assert all(probe.failure is not None for sample in told.samples for probe in sample.probes)


async def test_every_node_refuses(bench: Bench) -> None:
    failure = Failure(Trouble.DENIED, "gpu01 let nobody in.", copy="ssh-add")
    bench.nodes.failures = dict.fromkeys(("gpu01", "gpu02", "gpu03", "gpu04"), failure)
    told, _ = await bench.looked()
    fates = [one for one in told.fates if one.source == "nodes"]
    assert {one.fate for one in fates} == {Fate.REFUSED}
    assert {one.command for one in fates} == {"ssh-add"}
    assert bench.nodes.stacked == []


async def test_a_fault_of_ours_shows_and_costs_one_node_alone(bench: Bench) -> None:
    bench.nodes.broken = {"gpu02": KeyError("x"), "stacks gpu03": ValueError("y")}
    told, took = await bench.looked()
    assert took < 7.0, "nobody waits for it"
    for sample in told.samples:
        probe = sample.probe_of("gpu02")
        assert probe is not None
        assert probe.failure is not None
        assert "gpu02 (KeyError" in probe.failure.sentence
        stacks = {one.host: one.failure for one in sample.stacks}
        assert stacks["gpu01"] is None
        assert stacks["gpu03"] is not None
        assert "stacks of gpu03 (ValueError" in stacks["gpu03"].sentence
    whys = [one.why for one in told.fates if one.fate is not Fate.ANSWERED]
    assert any("gpu02" in why for why in whys)
    assert any("stacks of gpu03" in why for why in whys)


async def test_a_node_that_is_slow_now_answers_later(bench: Bench) -> None:
    bench.nodes.took_s["gpu02"] = 2.5
    told, _ = await bench.looked()
    assert all(probe.failure is None for sample in told.samples for probe in sample.probes)


async def test_stacks_that_were_refused_are_not_asked_for_again(bench: Bench) -> None:
    bench.nodes.stacks_fail = {
        "gpu02": Failure(Trouble.DENIED, "not yours"),
        "gpu03": Failure(Trouble.TIMEOUT, "too slow"),
    }
    told, _ = await bench.looked()
    asked = [host for host, _ in bench.nodes.stacked]
    assert [asked.count(f"gpu0{n}") for n in range(1, 5)] == [2, 1, 2, 2]
    for sample in told.samples:
        failures = [(one.host, one.failure) for one in sample.stacks if one.failure is not None]
        assert failures == list(bench.nodes.stacks_fail.items())


@pytest.mark.parametrize(("first", "second"), [("S", "S"), ("S", "D"), ("D", "D")])
async def test_so_many_readers_at_once_are_on_a_node(bench: Bench, first: str, second: str) -> None:
    for number in range(1, 5):
        bench.nodes.letters[f"gpu0{number}"] = first
        bench.nodes.beside[f"gpu0{number}"] = second
    told, _ = await bench.looked()
    assert all(len(sample.stacks) == 8 for sample in told.samples)
    assert bench.nodes.most_readers == AT_ONCE


async def test_one_process_that_waits_in_the_kernel_costs_only_its_own_stack(bench: Bench) -> None:
    bench.nodes.letters["gpu02"] = "D"
    bench.nodes.stacks_took_s = lambda processes: (
        1_000.0 if any(one.state == "D" for one in processes) else 0.5
    )
    told, took = await bench.looked()
    assert took < 9.0, "it is waited for once"
    assert [sorted(one.host for one in sample.stacks) for sample in told.samples] == [
        ["gpu01", "gpu03", "gpu04"],
        ["gpu01", "gpu03", "gpu04"],
    ]
    [left] = [one for one in told.fates if one.source == "stacks" and one.hosts == ("gpu02",)]
    assert left.fate is Fate.TIMED_OUT


async def test_the_log_grew_meanwhile(bench: Bench) -> None:
    bench.want = lambda facts: Wanted(
        stacks=False, second=not (facts.live is not None and facts.live.log.grew)
    )
    bench.runner.files[LOG] = b"step 101/200\n"
    bench.runner.mtimes[LOG] = START + timedelta(seconds=1)
    told, took = await bench.looked()
    assert (told.log.grew, told.log.new_steps) == (True, True)
    assert len(told.samples) == 1
    assert took < 2.0


async def test_the_log_did_not_grow(bench: Bench) -> None:
    told, took = await bench.looked()
    assert (told.log.grew, told.log.new_steps) == (False, False)
    assert told.log.quiet_s is not None
    assert abs(told.log.quiet_s - 25.0 - took) < 1.0


async def test_a_mount_that_hangs_costs_the_log_alone(bench: Bench) -> None:
    async def never(*_: Any, **__: Any) -> Any:
        await bench.clock.sleep(1_000.0)

    bench.runner.stat = never  # type: ignore[method-assign]
    told, took = await bench.looked()
    assert told.two_samples
    assert took < 14.0


async def test_nodes_that_are_not_well_by_slurms_word(bench: Bench) -> None:
    bench.runner.on("sinfo *", SINFO)
    told, _ = await bench.looked()
    assert told.node_states == (("gpu02", "DOWN*"),)
    assert [call.argv[:6] for call in bench.runner.calls if call.argv[0] == "sinfo"] == [
        ("sinfo", "-h", "-a", "-N", "-n", "gpu[01-04]")
    ], "asked once"


async def test_the_budget_bounds_all_looks(bench: Bench) -> None:
    bench.nodes.took_s = dict.fromkeys(("gpu01", "gpu02", "gpu03", "gpu04"), 1_000.0)
    told, took = await bench.looked(budget_s=6.0)
    assert took < 9.0
    assert len(told.samples) == 1


async def test_news_come_after_the_answers_and_the_last_is_the_whole(bench: Bench) -> None:
    bench.nodes.took_s = {"gpu01": 0.5, "gpu02": 1.0, "gpu03": 1.5, "gpu04": 2.0}
    heard: list[LiveFacts] = []

    async def listen() -> None:
        looking = look_live(bench.runner, bench.clock, some_facts(), settings=LookSettings())
        async for told in looking:
            heard.append(told)

    await bench.until_done(listen())
    first = [len(told.samples[0].probes) for told in heard if len(told.samples) == 1]
    assert first[:1] == [1]
    assert first == sorted(first)
    assert heard[-1].two_samples
    assert not any(told.two_samples for told in heard[:-4])


async def test_who_stops_listening_leaves_nothing_behind(bench: Bench) -> None:
    looking = look_live(bench.runner, bench.clock, some_facts(), settings=LookSettings())
    first = spawn(_coro(anext(looking)), name="first")
    await settle()
    while not first.done():
        await bench.clock.advance(0.1)
    await looking.aclose()
    await settle()
    assert bench.nodes.inside == 0


async def test_a_look_that_is_cancelled_leaves_nothing_behind(bench: Bench) -> None:
    task = spawn(bench.look().run(lambda _: None), name="look")
    await settle()
    assert bench.nodes.inside == 4
    await cancel_and_wait(task)
    assert bench.nodes.inside == 0


async def test_the_nodes_are_asked_before_the_logs_are_judged(bench: Bench) -> None:
    look = LiveLook(bench.runner, bench.clock, some_facts(), settings=LookSettings())
    task = spawn(look.run(lambda _: None), name="look")
    await bench.clock.advance(3.0)
    assert len(bench.nodes.probed) == 4
    assert not task.done()
    look.judged(some_facts())
    facts, _ = await bench.until_done(task)
    assert facts.live is not None
    assert facts.live.two_samples


async def test_a_job_of_somebody_else_opens_no_step_in_it(bench: Bench) -> None:
    await bench.looked(some_facts(viewer="bob", viewer_uid=1002))
    assert bench.expected == []
    await bench.looked(some_facts(viewer="root", viewer_uid=0))
    assert [job for job, _ in bench.expected] == ["4711"]


async def test_a_wall_clock_that_stands_still_or_jumps_keeps_the_looks_apart(
    bench: Bench,
) -> None:
    for jump_s in (-3_600.0, -0.5, 0.5, 3_600.0):
        look = spawn(bench.look().run(lambda _: None), name="look")
        await bench.clock.advance(2.0)
        bench.clock.step(jump_s)
        facts, _ = await bench.until_done(look)
        assert facts.live is not None
        first, second = facts.live.samples
        by_us = second.began_at - first.began_at - timedelta(seconds=jump_s)
        assert by_us.total_seconds() >= SAMPLES_APART_S
        assert by_us.total_seconds() < 2 * SAMPLES_APART_S + 1


async def test_what_the_settings_allow_is_told_to_each_probe(bench: Bench) -> None:
    await bench.looked(sudo=True, tools=("any:/opt/py-spy",))
    assert bench.nodes.how == [{"sudo": True, "words": ("any:/opt/py-spy",)}] * 8


async def test_many_nodes(bench: Bench) -> None:
    told, took = await bench.looked(some_facts("gpu[100-611]"))
    assert len(told.hosts) == 512
    assert all(len(sample.probes) == 512 for sample in told.samples)
    assert bench.nodes.most_inside <= 64
    assert took < 40.0


@pytest.mark.parametrize(
    ("job", "count"),
    [
        (a_job(), 4),
        (a_job(state=parse_state("PENDING")), 0),
        (a_job(state=parse_state("COMPLETED")), 0),
        (a_job(nodes="gpu[01-"), 0),
        (a_job(raw_id="x;reboot"), 0),
    ],
)
def test_which_nodes_are_looked_at(job: Job, count: int) -> None:
    assert len(nodes_to_look_at(some_facts(job=job))) == count
    assert nodes_to_look_at(some_facts(job=job, controller_answered=False)) == ()


def test_what_a_probe_says_of_stacks_stands_above() -> None:
    told = SourceFate(source="stacks", fate=Fate.ABSENT, why="py-spy is not there")
    probe = NodeProbe(host="gpu01", at=START, fates=(told,))
    sample = Sample(began_at=START, probes=(probe,), stacks_asked=True, whole=True)
    fates = fates_of((sample,), lambda host: None, stacks=True)
    assert [one.source for one in fates] == ["nodes"]


def test_no_rank_and_no_answer_are_told_apart() -> None:
    tool = StackTool(path="/opt/py-spy")
    probe = NodeProbe(host="gpu01", at=START, stack_tools=(tool,))
    sample = Sample(began_at=START, probes=(probe,), stacks_asked=True, whole=True)
    fates = fates_of((sample,), lambda host: None, stacks=True)
    [stacks] = [one for one in fates if one.source == "stacks"]
    assert (stacks.fate, stacks.why) == (Fate.NOT_ASKED, "no process there looks like a rank")
