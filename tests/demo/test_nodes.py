"""The simulated nodes, read by what reads real ones."""

from collections.abc import AsyncIterator
from itertools import pairwise

import pytest

from slurmtop.collect.clock import spawn
from slurmtop.collect.nodes.access import NAME as ACCESS
from slurmtop.collect.nodes.gpu_script import dcgm_command, once_command, stream_command
from slurmtop.collect.nodes.processes import read_processes
from slurmtop.model.gpu import Answer, GpuSample, NodeGpus
from slurmtop.model.ports import Command, NodeUnreachable
from slurmtop.parse.dumps.access import parse_access
from slurmtop.parse.gpu.compute_apps import parse_compute_apps
from slurmtop.parse.gpu.dcgm import parse_discovery, parse_dmon
from slurmtop.parse.gpu.fields import CORE_FIELDS
from slurmtop.parse.gpu.node_script import parse_node_answer
from slurmtop.parse.gpu.nvidia_smi import read_query
from slurmtop.triage.gpu_work import Work, work_of
from slurmtop.triage.ranks import rank_processes
from tests.demo.kit import Lab, lab


def expand_numbers(text: str) -> set[int]:
    """``0-2,5``: 0, 1, 2 and 5; ``N/A``: none."""
    out: set[int] = set()
    for part in text.split(",") if text != "N/A" else ():
        first, _, last = part.partition("-")
        out.update(range(int(first), int(last or first) + 1))
    return out


FIELDS = (*CORE_FIELDS, "clocks_throttle_reasons.active")


async def look(place: Lab, host: str) -> NodeGpus:
    done = await place.runner.run(once_command(host, FIELDS, ()))
    answer = parse_node_answer(done.stdout)
    assert answer.whole
    part = answer.parts["query"]
    return read_query(host, FIELDS, part.rc, part.text)


async def gpus(place: Lab, host: str) -> tuple[GpuSample, ...]:
    found = await look(place, host)
    assert found.answer is Answer.OK
    assert not found.bad
    return found.samples


async def _next(stream: AsyncIterator[bytes]) -> bytes:
    return await anext(stream)


async def test_a_gpu_that_slurm_calls_free_does_nothing() -> None:
    """At any moment, also where jobs come and go within minutes."""
    place = lab()
    free = 0
    for _ in range(12):
        for host in ("gpu04", "gpu05", "gpu06"):
            told = await place.ask("sinfo", "-h", "-N", "-n", host, "-O", "GresUsed:60")
            used = expand_numbers(told.split()[0].partition("IDX:")[2].rstrip(")"))
            seen = await gpus(place, host)
            idle = {gpu.index for gpu in seen} - used
            free += len(idle)
            assert {gpu.util_percent for gpu in seen if gpu.index in idle} <= {0}
        await place.later(300)
    assert free


async def test_whose_gpus_are_whose_is_told_by_processes_and_of_other_people_nothing() -> None:
    place = lab()
    told = await read_processes(place.runner, place.clock, "gpu06", job="4898", own=True)
    assert {one.user for one in told.processes} == {"alice"}
    assert len({one.job for one in told.processes}) > 4
    told = await read_processes(place.runner, place.clock, "gpu05")
    assert {one.user for one in told.processes} <= {"alice"}


async def test_every_card_has_its_own_uuid() -> None:
    place = lab()
    seen = [gpu.uuid for host in ("gpu01", "gpu02", "gpu05") for gpu in await gpus(place, host)]
    assert len(set(seen)) == 24


async def test_ranks_sit_on_the_gpus_of_their_job() -> None:
    place = lab()
    done = await place.runner.run(once_command("gpu02", FIELDS, ()))
    apps = parse_compute_apps(parse_node_answer(done.stdout).parts["apps"].text).rows
    processes = await read_processes(place.runner, place.clock, "gpu02", job="4811")
    ranks = rank_processes([processes], "4811")
    assert [one.rank for one in ranks] == list(range(8, 16))
    assert [one.process.pid for one in ranks] == [one.pid for one in apps]


async def test_in_the_hang_one_rank_does_nothing_and_all_others_wait() -> None:
    place = lab()
    works = {}
    for host, first in (("gpu03", 0), ("gpu04", 8)):
        columns = (1002, 1004, 1005, 203)
        done = await place.runner.run(dcgm_command(host, columns, (), count=2))
        assert parse_node_answer(done.stdout).parts["discovery"].rc == 0
        stream = place.runner.stream(dcgm_command(host, columns, ()))
        await anext(stream)
        rows = parse_dmon(await anext(stream))
        assert not rows.bad
        for gpu, row in zip(await gpus(place, host), rows.rows, strict=True):
            merged = GpuSample(
                util_percent=gpu.util_percent,
                power_w=gpu.power_w,
                power_limit_w=gpu.power_limit_w,
                tensor_active=row.tensor_active,
                dram_active=row.dram_active,
                sm_active=row.sm_active,
            )
            works[first + (gpu.index or 0)] = work_of(merged)
    assert works.pop(11) is Work.IDLE
    assert set(works.values()) == {Work.WAITS}


async def test_a_stream_goes_on_round_by_round() -> None:
    place = lab()
    stream = place.runner.stream(stream_command("gpu01", FIELDS, ()))
    assert b"#slurmtop part query" in await anext(stream)
    rounds = [await anext(stream)]
    for _ in range(2):
        task = spawn(_next(stream), name="next round")
        while not task.done():
            await place.real.advance(2)
        rounds.append(task.result())
    assert all(one.count(b"\n") == 8 for one in rounds)
    assert any(one != other for one, other in pairwise(rounds))


async def test_an_unknown_field_is_refused_as_the_real_one_refuses() -> None:
    place = lab()
    fields = (*CORE_FIELDS, "gpu_recovery_action")
    done = await place.runner.run(once_command("gpu01", fields, ()))
    part = parse_node_answer(done.stdout).parts["query"]
    assert (part.rc, part.text) == (
        2,
        b'Field "gpu_recovery_action" is not a valid field to query.',
    )


async def test_discovery_names_the_cards() -> None:
    place = lab()
    done = await place.runner.run(dcgm_command("gpu01", (203,), (), count=2))
    uuids = parse_discovery(parse_node_answer(done.stdout).parts["discovery"].text)
    assert list(uuids.values()) == [gpu.uuid for gpu in await gpus(place, "gpu01")]


@pytest.mark.parametrize(
    ("host", "words"),
    [("gpu07", "pam_slurm_adopt"), ("gpu08", "timed out"), ("gpu99", "not known")],
)
async def test_who_has_no_job_there_is_not_let_in(host: str, words: str) -> None:
    place = lab()
    with pytest.raises(NodeUnreachable, match=words):
        await place.runner.run(once_command(host, FIELDS, ()))


async def test_what_may_be_read() -> None:
    place = lab()
    argv = ("/bin/sh", "-c", "", ACCESS, "4811")
    done = await place.runner.run(Command(argv, host="gpu01"))
    access = parse_access(done.stdout, "gpu01")
    assert access.complete
    assert access.ptrace_scope == 0
    assert access.job_processes == 11
