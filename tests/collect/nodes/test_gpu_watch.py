"""The watch over GPUs: rounds as looks, refusals, drivers that hang, nodes that come back."""

import asyncio
from typing import Any

import pytest

from slurmtop.collect.clock import cancel_and_wait, spawn
from slurmtop.collect.nodes.dcgmi import DcgmMode
from slurmtop.collect.nodes.exporter import Exporters
from slurmtop.collect.nodes.gpu_script import FIRST_ANSWER_S
from slurmtop.collect.nodes.gpu_watch import AT_ONCE, GpuWatch
from slurmtop.collect.nodes.host_memory import Memories
from slurmtop.collect.nodes.http_get import HttpFailed
from slurmtop.model.ports import Completed, RunnerError
from slurmtop.model.reach import Reach, Way
from slurmtop.model.snapshot import Failure, Trouble
from tests.collect.nodes.gpu_desk import watching
from tests.collect.nodes.gpu_fakes import (
    GPU,
    PID,
    FakeNodes,
    begun,
    discovery,
    dmon,
    ended,
    lines,
    rows,
    unreachable,
)
from tests.fakes import FakeClock, settle


async def test_every_round_is_a_look_with_its_time_and_its_source() -> None:
    async with watching(reach=lambda host: Reach(host=host, way=Way.SSH)) as desk:
        stream = desk.stream()
        stream.say(begun())
        stream.round(97, 98)
        await desk.tick(0.6)
        assert desk.utils() == [97, 98]
        stream.round(50, 51)
        await settle()
        assert desk.utils() == [50, 51]
        look = desk.last()
        assert (look.way, look.sources, look.failure) == (Way.SSH, ("nvidia-smi",), None)
        assert look.gpus_at == desk.clock.now()
        assert look.gpus is not None
        assert look.gpus.samples[0].uuid == GPU.format(0)


async def test_fields_that_a_driver_lacks_are_dropped_one_by_one_and_remembered() -> None:
    memories = Memories()
    refused = ["fabric.clusterUuid", "gpu_recovery_action", "clocks_throttle_reasons.active"]
    async with watching(memories=memories) as desk:
        for name in refused:
            stream = desk.stream()
            assert name in stream.fields.split(",")
            stream.say(begun())
            stream.say(lines(f'Field "{name}" is not a valid field to query.', ""))
            stream.say(ended(2))
            await settle()
        stream = desk.stream()
        stream.say(begun())
        stream.round(97)
        await desk.tick(0.6)
        assert desk.utils() == [97]
        asked = stream.fields.split(",")
    assert "clocks_event_reasons.active" in asked
    assert not set(refused) & set(asked)
    assert "utilization.gpu" in asked
    # Nothing was shown as failed on the way, and the next view asks right at once.
    assert all(look.failure is None for look in desk.looks["gpu05"])
    async with watching(memories=memories, nodes=desk.nodes) as again:
        assert again.stream().fields == ",".join(asked)


async def test_words_in_the_place_of_numbers_and_a_card_that_is_lost() -> None:
    async with watching() as desk:
        stream = desk.stream()
        stream.say(begun())
        stream.round("[N/A]", "[Unknown Error]", **{"mig.mode.current": "Enabled"})
        await desk.tick(0.6)
        assert desk.utils() == [None, None]
        gpus = desk.last().gpus
        assert gpus is not None
        assert gpus.samples[1].word("util_percent") == "[Unknown Error]"
        stream.say(
            lines("Unable to determine the device handle for GPU0000:18:00.0: Unknown Error")
        )
        stream.say(ended(6))
        await settle()
        look = desk.last()
        assert look.failure is not None
        assert "lost" in look.failure.sentence
        assert look.gpus is not None
        assert look.gpus.lost == ("0000:18:00.0",)


async def test_a_lost_card_does_not_hide_the_others() -> None:
    """Beside it no row is printed by the whole query: the others are asked for by name."""
    said = lines("Unable to determine the device handle for GPU0000:18:00.0: Unknown Error")
    listed = lines(
        f"GPU 0: NVIDIA H100 80GB HBM3 (UUID: {GPU.format(0)})",
        "Unable to determine the device handle for gpu 0000:18:00.0: GPU is lost.  "
        "Reboot the system to recover this GPU",
    )
    async with watching() as desk:
        desk.nodes.on("gpu05", "list", begun("list") + listed + ended(0))
        stream = desk.stream()
        stream.say(begun() + said + ended(255))
        stream.end()
        await settle()
        (second,) = desk.nodes.open_streams("gpu05")
        assert second.command.argv[-1] == GPU.format(0)
        second.say(begun())
        second.round(97)
        await desk.tick(0.6)
        look = desk.last()
        assert desk.utils() == [97.0]
        assert look.failure is None
        assert look.gpus is not None
        assert look.gpus.lost == ("0000:18:00.0",)
        assert len(desk.nodes.ran("gpu05", "list")) == 1


async def test_where_no_list_tells_the_others_the_loss_alone_is_told() -> None:
    said = lines("Unable to determine the device handle for GPU0000:18:00.0: Unknown Error")
    async with watching() as desk:
        desk.nodes.on("gpu05", "list", begun("list") + said + ended(255))
        stream = desk.stream()
        stream.say(begun() + said + ended(255))
        stream.end()
        await settle()
        failure = desk.last().failure
        assert failure is not None
        assert "lost" in failure.sentence
        assert not desk.nodes.open_streams("gpu05")


async def test_a_driver_that_hangs_is_said_so_and_never_piled_up() -> None:
    async with watching("gpu05", "gpu06") as desk:
        hung, other = desk.stream("gpu05"), desk.stream("gpu06")
        for stream in (hung, other):
            stream.say(begun())
            stream.round(97)
        await desk.tick(0.6)
        good_at = desk.last("gpu05").gpus_at
        stuck = lines("#slurmtop seen ", f"#slurmtop open {PID}:D", "#slurmtop done")
        for want in ("state", "probe"):
            desk.nodes.on("gpu05", want, stuck)
        for _ in range(40):
            await desk.tick(1)
            other.round(98)
            await settle()
        look = desk.last("gpu05")
        assert look.failure is not None
        assert look.failure.trouble is Trouble.TIMEOUT
        assert "GPU driver on gpu05 does not answer" in look.failure.sentence
        # The old values stay, with the time at which they were true.
        assert look.gpus_at == good_at
        assert desk.utils("gpu05") == [97]
        assert hung.closed
        assert desk.last("gpu06").failure is None
        assert desk.last("gpu06").gpus_at == desk.clock.now()
        # Nothing starts a tool there for five minutes, whoever asks for it.
        desk.watch.poke()
        await desk.tick(250)
        assert desk.nodes.started("gpu05") == 1
        # Then the script looks first, at the process that it was told of.
        await desk.tick(60)
        assert desk.nodes.started("gpu05") == 2
        again = desk.stream("gpu05")
        assert again.command.argv[5] == PID
        again.say(stuck)
        again.end()
        await settle()
        look = desk.last("gpu05")
        assert look.failure is not None
        assert "pid 4242 (state D)" in look.failure.sentence
        # It came back.
        await desk.tick(301)
        stream = desk.stream("gpu05")
        stream.say(begun())
        stream.round(12)
        await desk.tick(0.6)
        assert (desk.last("gpu05").failure, desk.utils("gpu05")) == (None, [12])


async def test_a_first_answer_that_never_comes_is_waited_for_generously() -> None:
    async with watching() as desk:
        desk.stream().say(begun())
        await desk.tick(FIRST_ANSWER_S - 2)
        assert "gpu05" not in desk.looks
        await desk.tick(10)
        failure = desk.last().failure
        assert failure is not None
        assert "GPU driver on gpu05 does not answer" in failure.sentence
        assert desk.last().gpus is None


async def test_a_node_that_dies_is_not_called_a_driver_that_hangs() -> None:
    async with watching() as desk:
        stream = desk.stream()
        stream.say(begun())
        stream.round(97)
        await desk.tick(0.6)
        desk.nodes.dead["gpu05"] = unreachable("gpu05")
        await desk.tick(40)
        failure = desk.last().failure
        assert failure is not None
        assert failure.sentence == "gpu05 cannot be reached: connection refused"
        assert desk.utils() == [97]


async def test_a_node_that_is_gone_is_tried_later_and_later_and_comes_back() -> None:
    clock = FakeClock()
    nodes = FakeNodes(clock)
    nodes.dead["gpu05"] = unreachable("gpu05")
    async with watching("gpu05", "gpu06", nodes=nodes) as desk:
        look = desk.last("gpu05")
        assert look.failure is not None
        since = look.failing_since
        assert look.next_at is not None
        assert (look.next_at - clock.now()).total_seconds() == 10
        other = desk.stream("gpu06")
        other.say(begun())
        for _ in range(35):
            other.round(97)
            await desk.tick(1)
        assert desk.last("gpu06").failure is None
        tries = len([one for one in nodes.calls if one.host == "gpu05"])
        assert tries == 3
        assert desk.last("gpu05").failing_since == since
        del nodes.dead["gpu05"]
        desk.watch.poke()
        await settle()
        stream = desk.stream("gpu05")
        stream.say(begun())
        stream.round(3)
        await desk.tick(0.6)
        look = desk.last("gpu05")
        assert (look.failure, look.failing_since, look.next_at) == (None, None, None)
        assert desk.utils("gpu05") == [3]


async def test_a_stream_that_breaks_off_with_its_node() -> None:
    async with watching() as desk:
        stream = desk.stream()
        stream.say(begun())
        stream.round(97)
        await desk.tick(0.6)
        stream.fail(unreachable("gpu05", retry_after_s=30))
        await settle()
        assert desk.last().failure is not None
        await desk.tick(29)
        assert desk.nodes.started("gpu05") == 1
        await desk.tick(2)
        # The tool of the broken stream may still be there: the script is told of it.
        assert desk.stream().command.argv[5] == PID


async def test_a_slow_driver_is_good_and_is_asked_seldom() -> None:
    async with watching() as desk:
        stream = desk.stream()
        stream.say(begun())
        await desk.tick(14)
        for index in range(8):
            stream.say(rows(stream.fields, *([0] * 8)).splitlines(keepends=True)[index])
            await desk.tick(0.7)
        await desk.tick(6)
        look = desk.last()
        assert look.failure is None
        assert len(desk.utils()) == 8
        assert stream.closed
        assert desk.nodes.open_streams("gpu05") == []
        fields = desk.nodes.ran("gpu05", "stream")[0].argv[6]
        slow = begun() + rows(fields, *([0] * 8), persistence_mode="Disabled") + ended(0)

        def answer(_command: object) -> Any:
            return Completed(0, slow, b"", desk.clock.now(), 14.2)

        desk.nodes.on("gpu05", "once", answer)
        # The first round took 18.9 s, row by row.
        await desk.tick(150)
        assert desk.nodes.ran("gpu05", "once") == []
        while not desk.nodes.ran("gpu05", "once"):
            await desk.tick(1)
        assert len(desk.nodes.ran("gpu05", "once")) == 1
        assert [one for one in desk.last().hints if "persistence mode is off on gpu05" in one]
        assert desk.last().failure is None
        await desk.tick(141)
        assert len(desk.nodes.ran("gpu05", "once")) == 1
        await desk.tick(5)
        assert len(desk.nodes.ran("gpu05", "once")) == 2
        assert len([one for one in desk.last().hints if "persistence" in one]) == 1


async def test_the_processes_on_the_gpus_the_ports_and_the_job_that_we_are_in() -> None:
    nodes = FakeNodes(FakeClock())
    probed = [0]

    def probe(_command: object) -> bytes:
        probed[0] += 1
        return lines(
            "#slurmtop seen ",
            "#slurmtop part cgroup",
            "0::/system.slice/slurmstepd.scope/job_4711/step_extern/user/task_special",
            "#slurmtop part nics",
            f"/proc/uptime:{1000 + 15 * probed[0]}.00 1.0",
            "/sys/class/infiniband/mlx5_0/ports/1/state:4: ACTIVE",
            "/sys/class/infiniband/mlx5_0/ports/1/link_layer:InfiniBand",
            f"/sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data:{15_000 * probed[0]}",
            "#slurmtop part apps",
            "#slurmtop pid 5000:1",
            f"{GPU.format(0)}, 30001, python, 512",
            "#slurmtop end 0",
            "#slurmtop done",
        )

    nodes.on("gpu05", "probe", probe)
    async with watching(nodes=nodes) as desk:
        stream = desk.stream()
        stream.say(begun())
        stream.round(97)
        await desk.tick(0.6)
        look = desk.last()
        assert look.inside == "4711"
        assert look.gpus is not None
        assert look.gpus.processes is not None
        assert [one.pid for one in look.gpus.processes] == [30001]
        assert look.nics is not None
        assert look.nics[0].rx_bytes_s is None
        for _ in range(16):
            stream.round(97)
            await desk.tick(1)
        look = desk.last()
        assert look.nics is not None
        assert look.nics[0].rx_bytes_s == 4000.0
        # A round of values does not lose the processes of the look before.
        assert look.gpus is not None
        assert look.gpus.processes is not None


@pytest.mark.parametrize("job", ["4711", None])
async def test_the_processes_of_the_job_that_is_looked_at_are_asked_for_and_of_no_other(
    job: str | None,
) -> None:
    nodes = FakeNodes(FakeClock())
    async with watching(nodes=nodes, job=job) as desk:
        stream = desk.stream()
        stream.say(begun())
        stream.round(97)
        await desk.tick(0.6)
    asked = [call.argv[4:] for call in nodes.calls if call.argv[3] == "slurmtop-processes"]
    assert asked == ([] if job is None else [(job,)])


async def test_counters_of_dcgm_are_merged_by_uuid_and_their_first_rates_dropped() -> None:
    nodes = FakeNodes(FakeClock())
    nodes.on("gpu05", "probe", lines("#slurmtop seen hostengine exporter", "#slurmtop done"))
    async with watching(nodes=nodes, dcgm=DcgmMode.AUTO) as desk:
        stream = desk.stream()
        stream.say(begun(seen="hostengine exporter"))
        stream.round(97, 98)
        await desk.tick(2.6)
        counters = desk.stream(want="dcgm")
        asked = counters.fields.split(",")
        assert "1004" in asked
        assert "1002" not in asked
        counters.say(begun("discovery") + discovery(2) + lines("#slurmtop end 0"))
        counters.say(lines("#slurmtop part dmon", f"#slurmtop pid {PID}"))
        counters.say(dmon("N/A", "N/A", tensor="N/A"))
        counters.say(dmon("0.912", "0.050"))
        await desk.tick(0.6)
        stream.round(97, 98)
        await settle()
        look = desk.last()
        assert look.sources == ("nvidia-smi", "dcgmi")
        assert look.gpus is not None
        # DCGM's GPU 0 is nvidia-smi's GPU 1 on this node.
        assert [one.sm_active for one in look.gpus.samples] == [0.05, 0.912]
        # What DCGM said long ago is not of the same moment.
        for _ in range(6):
            await desk.tick(2)
            stream.round(97, 98)
            await settle()
        assert desk.last().sources == ("nvidia-smi",)


@pytest.mark.parametrize(("seen", "started"), [("", 0), ("exporter", 0), ("hidden", 0)])
async def test_dcgm_is_not_asked_where_nothing_watches(seen: str, started: int) -> None:
    async with watching(dcgm=DcgmMode.AUTO) as desk:
        stream = desk.stream()
        stream.say(begun(seen=seen))
        for _ in range(5):
            stream.round(97)
            await desk.tick(2)
        assert desk.nodes.started("gpu05", "dcgm") == started


async def test_profiling_that_is_not_there_is_said_once_and_the_rest_is_read() -> None:
    async with watching(dcgm=DcgmMode.ON) as desk:
        stream = desk.stream()
        stream.say(begun())
        stream.round(97)
        await desk.tick(2.6)
        counters = desk.stream(want="dcgm")
        counters.say(begun("dmon"))
        counters.say(
            lines("Error setting watches. Result: -36: Profiling is not supported for this group")
        )
        counters.say(ended(220))
        counters.end()
        await desk.tick(2.1)
        counters = desk.stream(want="dcgm")
        assert [one for one in counters.fields.split(",") if int(one) > 1000] == []
        stream.round(97)
        await settle()
        hints = [one for one in desk.last().hints if "no profiling counters on gpu05" in one]
        assert len(hints) == 1
        assert desk.last().failure is None


async def test_a_stream_that_goes_on_beside_a_lost_card_is_an_answer() -> None:
    async with watching() as desk:
        stream = desk.stream()
        stream.say(begun())
        lost = lines("Unable to determine the device handle for GPU0000:18:00.0: Unknown Error")
        for _ in range(2):
            stream.say(lost)
            stream.round(97, 96)
            await desk.tick(0.6)
            look = desk.last()
            assert look.failure is None
            assert look.gpus is not None
            assert (len(look.gpus.samples), look.gpus.lost) == (2, ("0000:18:00.0",))
            assert look.gpus.failure is not None, "it is told beside the values"


async def test_a_node_without_a_gpu_tool_is_asked_no_more() -> None:
    async with watching() as desk:
        stream = desk.stream()
        stream.say(begun())
        stream.say(lines("/bin/sh: 39: exec: nvidia-smi: not found") + ended(127))
        await settle()
        amd = lines("#slurmtop seen ", "#slurmtop part amd", "#slurmtop end 127", "#slurmtop done")
        assert desk.nodes.ran("gpu05", "amd") != []
        desk.nodes.on("gpu05", "amd", amd)
        await desk.tick(400)
        failure = desk.last().failure
        assert failure is not None
        assert "There is no GPU tool on gpu05" in failure.sentence
        count = len(desk.nodes.ran("gpu05", "amd"))
        await desk.tick(4000)
        assert len(desk.nodes.ran("gpu05", "amd")) == count
        assert desk.last().next_at is None


async def test_gpus_of_amd() -> None:
    nodes = FakeNodes(FakeClock())
    said = '{"card0": {"GPU use (%)": "97", "Average Graphics Package Power (W)": "410.0"}}'
    nodes.on(
        "gpu05",
        "amd",
        lines("#slurmtop seen ", "#slurmtop part amd", "#slurmtop pid 1:1", "not found")
        + lines("#slurmtop end 127", "#slurmtop part rocm", "#slurmtop pid 2:2", said)
        + ended(0),
    )
    async with watching(nodes=nodes) as desk:
        desk.stream().say(begun() + lines("exec: nvidia-smi: not found") + ended(127))
        await settle()
        assert desk.last().sources == ("rocm-smi",)
        assert desk.utils() == [97]


async def test_eight_nodes_start_at_once_and_hung_ones_do_not_hold_up_the_rest() -> None:
    hosts = [f"gpu{number:03}" for number in range(24)]
    async with watching(*hosts) as desk:
        assert sum(desk.nodes.started(host) for host in hosts) == AT_ONCE
        # None of the first eight ever says a word.
        await desk.tick(6)
        assert sum(desk.nodes.started(host) for host in hosts) == 2 * AT_ONCE
        stream = desk.nodes.open_streams(hosts[AT_ONCE])[0]
        stream.say(begun())
        stream.round(97)
        await desk.tick(0.6)
        assert desk.utils(hosts[AT_ONCE]) == [97]
        assert sum(desk.nodes.started(host) for host in hosts) == 2 * AT_ONCE + 1


async def test_leaving_ends_every_stream_and_waits_for_none_that_hangs() -> None:
    nodes = FakeNodes(FakeClock())
    nodes.cannot_close.add("gpu05")
    memories = Memories()
    watch = GpuWatch(nodes, nodes.clock, ("gpu05", "gpu06"), lambda look: None, memories=memories)
    task = spawn(watch.run(), name="watch")
    await settle()
    for host in ("gpu05", "gpu06"):
        nodes.open_streams(host)[0].say(begun())
    await settle()
    task.cancel()
    await settle()
    # The one that can be ended is ended, the other is left to itself after a few seconds.
    assert nodes.open_streams("gpu06") == []
    for _ in range(9):
        await nodes.clock.advance(0.5)
    assert task.done()
    # It is remembered: the next view looks whether it is still there.
    assert [one.pid for one in memories.of("gpu05").open_tools] == [4242]
    left = [one for one in asyncio.all_tasks() if one is not asyncio.current_task()]
    await cancel_and_wait(*left)


async def test_a_view_that_comes_back_knows_that_the_driver_hangs_and_the_last_values() -> None:
    memories, nodes = Memories(), FakeNodes(FakeClock())
    async with watching(memories=memories, nodes=nodes) as desk:
        stream = desk.stream()
        stream.say(begun())
        stream.round(97)
        await desk.tick(0.6)
        await desk.tick(40)
        assert desk.last().failure is not None
    async with watching(memories=memories, nodes=nodes) as desk:
        await settle()
        assert nodes.started("gpu05") == 1
        failure = desk.last().failure
        assert failure is not None
        assert "GPU driver on gpu05 does not answer" in failure.sentence
        assert desk.utils() == [97]
        assert desk.last().next_at is not None


async def test_news_of_one_node_touch_no_other() -> None:
    hosts = [f"gpu{number:03}" for number in range(8)]
    async with watching(*hosts) as desk:
        for host in hosts:
            stream = desk.stream(host)
            stream.say(begun())
            stream.round(97)
        await desk.tick(0.6)
        before = {host: len(desk.looks[host]) for host in hosts}
        desk.stream(hosts[3]).round(98)
        await settle()
        news = {host: len(desk.looks[host]) - before[host] for host in hosts}
        assert news == {host: int(host == hosts[3]) for host in hosts}


async def test_a_command_that_cannot_be_started_here_costs_one_look() -> None:
    nodes = FakeNodes(FakeClock())
    nodes.dead["gpu05"] = RunnerError("ssh could not be started: too many open files.")
    async with watching("gpu05", "gpu06", nodes=nodes) as desk:
        failure = desk.last("gpu05").failure
        assert failure is not None
        assert failure.sentence == "ssh could not be started: too many open files."
        stream = desk.stream("gpu06")
        stream.say(begun())
        stream.round(97)
        await desk.tick(0.6)
        assert desk.utils("gpu06") == [97]
        del nodes.dead["gpu05"]
        await desk.tick(11)
        assert desk.nodes.started("gpu05") == 1


def exported(util: int) -> bytes:
    label = f'gpu="0",UUID="{GPU.format(0)}",Hostname="gpu05"'
    return lines(
        f"DCGM_FI_DEV_GPU_UTIL{{{label}}} {util}", f"DCGM_FI_PROF_SM_ACTIVE{{{label}}} 0.9"
    )


async def test_an_exporter_that_is_not_there_is_said_until_it_comes() -> None:
    says = "There is no GPU exporter on gpu05."
    refused = HttpFailed(Failure(Trouble.DOWN, "Nothing answers at x."), nothing_there=True)
    page = lines(f'DCGM_FI_PROF_SM_ACTIVE{{UUID="{GPU.format(0)}",Hostname="gpu05"}} 0.9')
    answers: list[bytes | HttpFailed] = [refused, page, page]

    async def fetch(url: str, form: bytes | None) -> bytes:
        answer = answers.pop(0)
        if isinstance(answer, HttpFailed):
            raise answer
        return answer

    clock = FakeClock()
    exporters = Exporters(clock, exporter_url="http://{host}:9400/metrics", fetch=fetch)
    async with watching(nodes=FakeNodes(clock), exporters=exporters) as desk:
        stream = desk.stream()
        stream.say(begun())
        stream.round(97)
        await desk.tick(0.6)
        look = desk.last()
        assert (look.sources, look.failure, says in look.hints) == (("nvidia-smi",), None, True)
        await desk.tick(15)
        stream.round(96)
        await settle()
        look = desk.last()
        assert (look.sources, says in look.hints) == (("nvidia-smi", "exporter"), False)


async def test_an_exporter_fills_in_and_stands_alone_where_the_node_is_closed() -> None:
    clock = FakeClock()
    nodes = FakeNodes(clock)
    util = [50]

    async def fetch(_url: str, _form: bytes | None) -> bytes:
        return exported(util[0])

    exporters = Exporters(clock, exporter_url="http://{host}:9400/metrics", fetch=fetch)
    async with watching(nodes=nodes, exporters=exporters) as desk:
        stream = desk.stream()
        stream.say(begun())
        stream.round(97)
        await desk.tick(0.6)
        look = desk.last()
        assert look.sources == ("nvidia-smi", "exporter")
        assert look.gpus is not None
        assert (look.gpus.samples[0].util_percent, look.gpus.samples[0].sm_active) == (97, 0.9)
        nodes.dead["gpu05"] = unreachable("gpu05")
        stream.fail(nodes.dead["gpu05"])
        util[0] = 40
        await desk.tick(16)
        look = desk.last()
        assert look.failure is not None
        assert (look.sources, desk.utils()) == (("exporter",), [40])
        assert look.gpus_at is not None
        assert (clock.now() - look.gpus_at).total_seconds() < 15


@pytest.mark.parametrize(("state", "again"), [("D", 1), ("S", 0)])
async def test_a_driver_that_lets_its_process_go_is_asked_again(state: str, again: int) -> None:
    nodes = FakeNodes(FakeClock())
    stuck = lines("#slurmtop seen ", f"#slurmtop open {PID}:{state}", "#slurmtop done")
    nodes.on("gpu05", "state", stuck)
    nodes.on("gpu05", "probe", stuck)
    async with watching(nodes=nodes) as desk:
        stream = desk.stream()
        stream.say(begun())
        stream.round(97)
        await desk.tick(0.6)
        await desk.tick(60)
        assert desk.last().failure is not None
        assert nodes.started("gpu05") == 1
        # It is gone. One in state D nobody could end: so the driver has come back. Any other was
        # ended by us: then nothing is known of the driver.
        nodes.on("gpu05", "probe", lines("#slurmtop seen ", "#slurmtop done"))
        await desk.tick(16)
        assert nodes.started("gpu05") == 1 + again
