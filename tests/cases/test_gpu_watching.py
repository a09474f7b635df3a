"""What only a node that is asked again and again can show: cases 011, 018, 033."""

import asyncio

import pytest

from slurmtop.collect.clock import cancel_and_wait, spawn
from slurmtop.collect.nodes.dcgmi import DcgmMode
from slurmtop.collect.nodes.gpu_watch import GpuWatch
from slurmtop.collect.nodes.host_memory import Memories
from tests.cases.support import GPU
from tests.collect.nodes.gpu_desk import Desk, watching
from tests.collect.nodes.gpu_fakes import PID, FakeNodes, begun, lines, rows
from tests.fakes import FakeClock, settle

#: The node of case 011 as its own script tells it: nvidia-smi in state D, no matter what is sent.
STUCK = lines("#slurmtop seen ", f"#slurmtop open {PID}:D", "#slurmtop done")


def hung_node(clock: FakeClock) -> FakeNodes:
    nodes = FakeNodes(clock)
    for want in ("state", "probe", "once"):
        nodes.on("gpu05", want, STUCK)
    nodes.cannot_close.add("gpu05")
    return nodes


async def ten_minutes(desk: Desk) -> None:
    """The 600 s of the case: gpu05 hangs, gpu06 gives a round every two seconds."""
    first = desk.stream("gpu05")
    first.say(begun())
    other = desk.stream("gpu06")
    other.say(begun())
    for _ in range(300):
        other.round(98)
        await desk.tick(2)
        for stream in desk.nodes.open_streams("gpu05"):
            # A later start finds the first one still there, and starts none.
            if stream is not first:
                stream.say(STUCK)
                stream.end()


@GPU.sentence("011", "no second nvidia-smi on that node while the first is open")
async def test_case_011_must_start_no_second_one() -> None:
    nodes = hung_node(FakeClock())
    async with watching("gpu05", "gpu06", nodes=nodes) as desk:
        await ten_minutes(desk)
        assert desk.last("gpu05").failure is not None
        # Whatever was started after the first was told of its pid, and looks before it starts one.
        later = [one for one in nodes.calls if one.host == "gpu05" and "slurmtop-gpus" in one.argv]
        assert len(later) > 1
        told = [one.argv[5] for one in later[1:]]
        assert set(told) == {PID}


@GPU.sentence("011", "other nodes keep refreshing")
async def test_case_011_must_go_on_with_the_others() -> None:
    async with watching("gpu05", "gpu06", nodes=hung_node(FakeClock())) as desk:
        await ten_minutes(desk)
        fresh = [look for look in desk.looks["gpu06"] if look.failure is None]
        assert len(fresh) >= 300
        assert (desk.clock.now() - (desk.last("gpu06").gpus_at or desk.clock.now())).seconds <= 2


@GPU.sentence("011", "pile up ssh sessions")
async def test_case_011_must_not_pile_up_sessions() -> None:
    nodes = hung_node(FakeClock())
    async with watching("gpu05", "gpu06", nodes=nodes) as desk:
        await ten_minutes(desk)
        streams = nodes.started("gpu05") + nodes.started("gpu05", "dcgm")
        # One at the start, one after every five minutes.
        assert streams <= 3


@GPU.sentence("011", "quit of slurmtop does not wait for it")
async def test_case_011_must_leave_at_once() -> None:
    clock = FakeClock()
    nodes = hung_node(clock)
    watch = GpuWatch(nodes, clock, ("gpu05",), lambda look: None, memories=Memories())
    task = spawn(watch.run(), name="watch")
    await settle()
    nodes.open_streams("gpu05")[0].say(begun())
    await settle()
    left_at = clock.monotonic()
    task.cancel()
    while not task.done():
        await settle()
        await clock.advance(0.5)
    assert clock.monotonic() - left_at <= 5
    await cancel_and_wait(*(asyncio.all_tasks() - {asyncio.current_task()}))


@GPU.sentence("011", "freeze")
async def test_case_011_must_not_hold_the_loop() -> None:
    async with watching("gpu05", nodes=hung_node(FakeClock())) as desk:
        desk.stream().say(begun())
        await desk.tick(30)
        # Everything else in the loop goes on, second by second.
        beats = 0

        async def heart() -> None:
            nonlocal beats
            while True:
                await desk.clock.sleep(1)
                beats += 1

        beating = spawn(heart(), name="heart")
        await desk.tick(90)
        await cancel_and_wait(beating)
        assert beats >= 89
        assert desk.last().failure is not None


@GPU.sentence(
    "018", "fall back to nvidia-smi or the exporter for the session on that node, quietly"
)
@pytest.mark.parametrize("n", [1, 2])
async def test_case_018_must_go_on_without_dcgm(n: int) -> None:
    step = GPU.load("018")[n]
    memories = Memories()
    nodes = FakeNodes(FakeClock())
    async with watching(nodes=nodes, memories=memories, dcgm=DcgmMode.ON) as desk:
        stream = desk.stream()
        stream.say(begun())
        stream.round(97)
        await desk.tick(2.6)
        counters = desk.stream(want="dcgm")
        counters.say(begun("dmon") + step.stdout + step.stderr)
        counters.say(lines(f"#slurmtop end {step.exit}", "#slurmtop done"))
        counters.end()
        for _ in range(300):
            stream.round(97)
            await desk.tick(2)
        look = desk.last()
        assert (look.failure, look.hints, look.sources) == (None, (), ("nvidia-smi",))
        assert desk.utils() == [97]
        assert nodes.started("gpu05", "dcgm") == 1
    async with watching(nodes=nodes, memories=memories, dcgm=DcgmMode.ON) as desk:
        stream = desk.stream()
        stream.say(begun())
        stream.round(97)
        await desk.tick(10)
        assert nodes.started("gpu05", "dcgm") == 1


@GPU.sentence("033", "time-out at 10 s and call the node dead")
async def test_case_033_must_wait_for_a_slow_driver() -> None:
    step = GPU.load("033")[1]
    assert step.elapsed_s == 14.2
    async with watching() as desk:
        stream = desk.stream()
        stream.say(begun())
        await desk.tick(step.elapsed_s)
        assert "gpu05" not in desk.looks
        stream.say(rows(stream.fields, *([0] * 8), persistence_mode="Disabled"))
        await desk.tick(6)
        look = desk.last()
        assert look.failure is None
        assert desk.utils() == [0] * 8
        assert any("persistence mode is off on gpu05" in hint for hint in look.hints)
        # Asked again after ten times as long, not after two seconds.
        await desk.tick(130)
        assert desk.nodes.started("gpu05") == 1
        assert desk.nodes.ran("gpu05", "once") == []
