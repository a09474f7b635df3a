"""A job on very many nodes: streams for those in view, the others in turn, nothing piled up."""

from typing import cast

import pytest

from slurmtop.collect.nodes.gpu_host import HostWatch
from slurmtop.collect.nodes.gpu_turns import LOOKS_AT_ONCE, MOST_STREAMS, Turns
from tests.collect.nodes.gpu_desk import Desk, watching
from tests.collect.nodes.gpu_fakes import FakeNodes, begun, ended, rows, unreachable
from tests.fakes import FakeClock, settle

HOSTS = tuple(f"n{number:04}" for number in range(1_000))


def answering() -> FakeNodes:
    """Nodes that answer one look, each at once."""
    nodes = FakeNodes(FakeClock())
    for host in HOSTS:
        nodes.on(host, "once", lambda done: begun() + rows(done.argv[6], 97) + ended(0))
    return nodes


def streaming(desk: Desk) -> set[str]:
    return {host for host in HOSTS if desk.nodes.open_streams(host)}


async def pass_time(desk: Desk, seconds: int) -> int:
    """The most streams that there were at any second of it."""
    most = 0
    for _ in range(seconds):
        for host in streaming(desk):
            (one,) = desk.nodes.open_streams(host)
            one.round(97)
        await desk.tick(1)
        most = max(most, len(streaming(desk)))
    return most


async def test_only_so_many_nodes_have_a_stream_and_all_others_come_in_turn() -> None:
    async with watching(*HOSTS, nodes=answering()) as desk:
        assert desk.watch.in_turn == len(HOSTS) - MOST_STREAMS
        assert await pass_time(desk, 60) == MOST_STREAMS
        looked = {host for host in HOSTS if desk.nodes.ran(host, "once")}
        assert 60 < len(looked) <= 60 * LOOKS_AT_ONCE
        assert looked.isdisjoint(streaming(desk))
        # Each of them once before anybody comes a second time.
        assert all(len(desk.nodes.ran(host, "once")) == 1 for host in looked)
        assert desk.utils(next(iter(looked))) == [97]
    assert not streaming(desk)


async def test_streams_go_where_a_person_looks_once_they_rest_there() -> None:
    async with watching(*HOSTS, nodes=answering()) as desk:
        await pass_time(desk, 15)
        for first in range(100, 800, 100):
            desk.watch.in_view(HOSTS[first : first + 40])
            await settle()
        most = await pass_time(desk, 15)
        assert streaming(desk) == set(HOSTS[700:740])
        assert most <= MOST_STREAMS
        assert desk.nodes.started(HOSTS[300]) == 0
        assert desk.watch.in_turn == len(HOSTS) - 40
        desk.watch.in_view(HOSTS)
        assert await pass_time(desk, 20) == MOST_STREAMS
        assert streaming(desk) == set(HOSTS[:MOST_STREAMS])


async def test_few_nodes_have_a_stream_each_whatever_is_in_view() -> None:
    few = HOSTS[:3]
    async with watching(*few) as desk:
        assert desk.watch.in_turn == 0
        desk.watch.in_view(few[:1])
        await pass_time(desk, 5)
        assert streaming(desk) == set(few)
        assert not any(desk.nodes.ran(host, "once") for host in few)


async def test_a_node_that_refuses_is_left_alone_in_its_turn_until_a_person_asks() -> None:
    nodes = answering()
    refusing = HOSTS[MOST_STREAMS]
    nodes.dead[refusing] = unreachable(refusing, retry_after_s=300.0)
    async with watching(*HOSTS[: MOST_STREAMS + 2], nodes=nodes) as desk:
        desk.watch.in_view(HOSTS[:1])
        await pass_time(desk, 200)
        calls = [one for one in nodes.calls if one.host == refusing]
        assert len(calls) == 1
        failure = desk.last(refusing).failure
        assert failure is not None
        assert len(nodes.ran(HOSTS[MOST_STREAMS + 1], "once")) in (3, 4)
        desk.watch.poke()
        await pass_time(desk, 3)
        assert len([one for one in nodes.calls if one.host == refusing]) == 2


class Broken:
    """A watch of a node with a fault."""

    async def run(self) -> None:
        raise ValueError("a fault")


async def test_what_goes_wrong_in_a_stream_is_not_hidden() -> None:
    turns = Turns({"n1": cast(HostWatch, Broken())}, FakeClock())
    with pytest.raises(ValueError, match="a fault"):
        await turns.run()
