"""The looks at simulated nodes, read by what reads real ones, and judged by the rules."""

from dataclasses import replace

import pytest

from slurmtop.collect.nodes.probe import read_probe
from slurmtop.collect.nodes.stacks import read_stacks
from slurmtop.demo.gpus import ASIDE
from slurmtop.model.live import LiveFacts, LogMotion, Sample
from slurmtop.model.probe import NodeProbe
from slurmtop.model.process import RankProcess
from slurmtop.model.stacks import ProcessStacks
from slurmtop.model.verdict import Fate
from slurmtop.triage.ranks import rank_processes
from slurmtop.ui.present.rank_rows import rank_rows
from tests.demo.kit import Lab, lab

HUNG, HEALTHY = "4817", "4811"
NODES = {HUNG: ("gpu03", "gpu04"), HEALTHY: ("gpu01", "gpu02")}


async def probes(place: Lab, job: str) -> list[NodeProbe]:
    return [await read_probe(place.runner, place.clock, host, job=job) for host in NODES[job]]


def ranks(found: list[NodeProbe], job: str) -> tuple[RankProcess, ...]:
    return rank_processes([one.processes for one in found if one.processes is not None], job)


async def sample(place: Lab, job: str) -> Sample:
    at = place.clock.now()
    found = await probes(place, job)
    stacks: list[ProcessStacks] = []
    for one in found:
        own = [rank.process for rank in ranks([one], job)]
        stacks += await read_stacks(place.runner, place.clock, one.host, own, one.stack_tools)
    return Sample(
        began_at=at, probes=tuple(found), stacks=tuple(stacks), stacks_asked=True, whole=True
    )


async def looks(place: Lab, job: str) -> LiveFacts:
    first = await sample(place, job)
    await place.later(360)
    return LiveFacts(
        job=job,
        hosts=NODES[job],
        samples=(first, await sample(place, job)),
        log=LogMotion(grew=job == HEALTHY),
    )


@pytest.mark.parametrize("job", [HUNG, HEALTHY])
async def test_a_look_is_read_whole(job: str) -> None:
    found = await probes(lab(), job)
    for one in found:
        assert one.failure is None
        assert one.processes is not None
        assert one.processes.complete
        assert len(one.activity) == len(one.processes.processes)
        assert all(told.second.cpu_ticks is not None for told in one.activity)
        assert all(told.between_s == pytest.approx(0.4) for told in one.activity)
        assert [told.version for told in one.libraries][:2] == ["2.27.5", "2.6.0+cu124"]
        assert one.gpus is not None
        assert len(one.gpus.samples) == 8
        assert len(one.nics) == 8
        assert [tool.path for tool in one.stack_tools] == ["/opt/venv/bin/py-spy"]
        fates = {told.source: told.fate for told in one.fates}
        assert fates.pop("kernel log") is Fate.REFUSED
        assert set(fates.values()) == {Fate.ANSWERED}
    told = ranks(found, job)
    assert [one.rank for one in told] == list(range(16)), "no worker of a loader among them"


async def test_stacks_are_read_of_every_rank() -> None:
    found = await looks(lab(), HUNG)
    for one in found.samples:
        assert len(one.stacks) == 16
        assert all(told.failure is None and told.main is not None for told in one.stacks)
    rows = rank_rows(found)
    by_ranks = {row.ranks: row for row in rows}
    odd = by_ranks.pop((ASIDE,))
    assert odd.does == "waits until something can be read, data loading"
    assert odd.site == "train.py:88 in next_batch"
    assert odd.moved is False
    (rest,) = by_ranks.values()
    assert rest.count == 15
    assert rest.does == "waits in a collective (all_reduce)"
    assert rest.moved is False


async def test_a_healthy_job_moves() -> None:
    rows = rank_rows(await looks(lab(), HEALTHY))
    assert sum(row.count for row in rows) == 16
    assert {row.moved for row in rows} == {True}


async def test_a_process_that_is_gone_or_no_python_says_so() -> None:
    place = lab()
    (one, _) = await probes(place, HUNG)
    assert one.processes is not None
    shell = next(p for p in one.processes.processes if p.name == "slurm_script")
    (told,) = await read_stacks(place.runner, place.clock, one.host, [shell], one.stack_tools)
    assert told.failure is not None
    rank = replace(ranks([one], HUNG)[0].process, start_ticks=1)
    (told,) = await read_stacks(place.runner, place.clock, one.host, [rank], one.stack_tools)
    assert told.failure is not None, "another process has its pid"
