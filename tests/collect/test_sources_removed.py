"""A rank that hangs, and the sources of the verdict taken away: one by one, and two at a time.

Whatever is missing is named, nobody innocent is ever named, and nothing breaks.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from slurmtop.collect import job_triage, live
from slurmtop.collect.job_triage import Door, triage_job
from slurmtop.collect.live import LookSettings
from slurmtop.collect.who import Who
from slurmtop.model.facts import JobFacts
from slurmtop.model.live import LiveFacts
from slurmtop.model.probe import NodeProbe
from slurmtop.model.process import NodeProcess
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.stacks import ProcessStacks, StackTool
from slurmtop.model.verdict import Fate, SourceFate, State, Verdict, verdict_dict
from slurmtop.triage.live.enough import wanted
from slurmtop.triage.report import report_lines
from slurmtop.triage.words import four_lines
from tests.collect.slurm_forms import MARK
from tests.collect.test_job_triage import Job
from tests.collect.test_live import LOG
from tests.triage.live import builders

GUILTY = {"stop": 2, "d-state": 2, "data-fifo": 2, "loop": 2, "branch": 2}
HOSTS = ("gpu01", "gpu02", "gpu03", "gpu04")
SITUATIONS = sorted(GUILTY)


class Hang(Job):
    """A job whose nodes show a captured hang."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, situation: str) -> None:
        super().__init__(monkeypatch)
        # A step takes a second: so long as it is quiet it never was.
        lines = (f"2026-11-30 10:00:{n:02} step {n}/200 loss 2.1\n" for n in range(1, 31))
        self.runner.files[LOG] = "".join(lines).encode()
        self.shown: LiveFacts = builders.live(builders.ranks_of(situation))
        self.no_stacks = False
        self.no_gpus = False
        self.looks: dict[str, int] = {}
        monkeypatch.setattr(live, "read_probe", self.probe)
        monkeypatch.setattr(live, "read_stacks", self.stacks)
        monkeypatch.setattr(live, "wanted", wanted)
        monkeypatch.setattr(job_triage, "wanted", wanted)

    async def probe(self, runner: Any, clock: Any, host: str, **how: Any) -> NodeProbe:
        at, look = clock.now(), self.looks.get(host, 0)
        self.looks[host] = look + 1
        await self.clock.sleep(self.nodes.took_s.get(host, 1.0))
        if host in self.nodes.failures:
            return NodeProbe(host=host, at=at, failure=self.nodes.failures[host])
        probe = self.shown.samples[min(look, 1)].probe_of(host)
        assert probe is not None
        assert probe.processes is not None
        fates = [SourceFate(source="processes", fate=Fate.ANSWERED)]
        if self.no_gpus:
            why = "there is no nvidia-smi"
            fates.append(SourceFate(source="gpus", fate=Fate.ABSENT, why=why))
        return replace(
            probe,
            at=at,
            processes=replace(probe.processes, at=at),
            fates=tuple(fates),
            stack_tools=() if self.no_stacks else (StackTool(path="/usr/bin/py-spy"),),
        )

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
        await self.clock.sleep(0.5)
        look = min(self.looks[host] - 1, 1)
        known = {one.key: one for one in self.shown.samples[look].stacks}
        refused = Failure(Trouble.DENIED, "stacks are closed there", copy="sysctl x=0")
        return tuple(
            replace(known[one.key], at=clock.now())
            if one.key in known and not self.no_stacks
            else ProcessStacks(
                host=host,
                pid=one.pid,
                start_ticks=one.start_ticks,
                at=clock.now(),
                failure=refused,
            )
            for one in processes
        )

    async def verdict(self) -> tuple[JobFacts, Verdict, float]:
        door = Door(runner=self.runner, clock=self.clock, who=Who(1001, "anna"), mark=MARK)
        settings = LookSettings(once=True)
        work = triage_job(door, "4711", settings, self.heard, judge_logs=self.judge)
        (facts, verdict), took = await self.until_done(work)
        return facts, verdict, took


def no_ssh(hang: Hang) -> str:
    failure = Failure(Trouble.DENIED, "There is no way onto it now.")
    hang.nodes.failures = dict.fromkeys(HOSTS, failure)
    return "nodes"


def no_stacks(hang: Hang) -> str:
    hang.no_stacks = True
    return "stacks"


def no_log_rights(hang: Hang) -> str:
    hang.runner.files[LOG] = PermissionError(13, "Permission denied", LOG)
    return "logs"


def no_nvidia_smi(hang: Hang) -> str:
    hang.no_gpus = True
    return "gpus"


def silent_node(hang: Hang) -> str:
    hang.nodes.took_s["gpu02"] = 1_000.0
    return "nodes"


def silent_node_of_the_guilty(hang: Hang) -> str:
    hang.nodes.took_s["gpu03"] = 1_000.0
    return "nodes"


def mount_that_hangs(hang: Hang) -> str:
    async def never(*_: Any, **__: Any) -> Any:
        await hang.clock.sleep(1_000.0)

    hang.runner.stat = never  # type: ignore[method-assign]
    return "logs"


Removal = Callable[[Hang], str]
REMOVALS: tuple[Removal, ...] = (
    no_ssh,
    no_stacks,
    no_log_rights,
    no_nvidia_smi,
    silent_node,
    silent_node_of_the_guilty,
    mount_that_hangs,
)


def test_the_situations_were_captured() -> None:
    assert all((builders.STACKS / name).is_dir() for name in SITUATIONS)


@pytest.mark.parametrize("situation", SITUATIONS)
async def test_with_all_sources_the_rank_is_named(
    monkeypatch: pytest.MonkeyPatch, situation: str
) -> None:
    _, verdict, took = await Hang(monkeypatch, situation).verdict()
    assert verdict.state is State.HUNG, verdict.summary
    assert [one.rank for one in verdict.culprits] == [GUILTY[situation]]
    assert took < 9.0


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize(
    "removals",
    [*((one,) for one in REMOVALS), *itertools.combinations(REMOVALS, 2)],
    ids=lambda removals: "+".join(one.__name__ for one in removals),
)
async def test_without_some_nobody_else_is_named(
    monkeypatch: pytest.MonkeyPatch, situation: str, removals: tuple[Removal, ...]
) -> None:
    hang = Hang(monkeypatch, situation)
    missing = {remove(hang) for remove in removals}
    _, verdict, took = await hang.verdict()
    named = {one.rank for one in verdict.culprits}
    assert named <= {GUILTY[situation]}, verdict.summary
    assert {one.host for one in verdict.culprits} <= {f"gpu{GUILTY[situation] + 1:02}"}
    if no_ssh in removals:
        assert verdict.culprits == ()
        missing -= {"stacks", "gpus"}
    if silent_node_of_the_guilty in removals:
        assert verdict.culprits == ()
    told = {one.source for one in verdict.sources if one.fate is not Fate.ANSWERED}
    assert missing <= told, verdict.sources
    assert took < 24.0
    assert len(four_lines(verdict)) == 4
    assert report_lines(verdict)
    assert verdict_dict(verdict)["sources"]
