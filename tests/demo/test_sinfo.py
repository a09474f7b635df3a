"""sinfo of the demo, read by the project's own parser and held against the captures."""

import re

from slurmtop.collect.sinfo import every_s
from slurmtop.parse.slurm.sinfo import parse_sinfo, sinfo_format
from tests.demo.kit import capture, lab

MARK = b"\x1eQwErTy"


async def test_the_parser_reads_every_node_once() -> None:
    demo = lab()
    done = await demo.done("sinfo", "-h", "-N", "-O", sinfo_format(MARK))
    parsed = parse_sinfo(done.stdout, record_mark=MARK)
    assert parsed.bad == 0, parsed.first_bad
    nodes = {node.name: node for node in parsed.rows}
    assert list(nodes) == [f"gpu{number:02}" for number in range(1, 9)]
    assert nodes["gpu01"].partitions == ("gpu", "long")
    for name, node in nodes.items():
        known = demo.world.nodes[name]
        assert node.gpus() == (8, len(known.gpus_used))
        assert node.cpus_alloc == known.cpus_used
    assert nodes["gpu05"].state.base == "MIXED"
    assert nodes["gpu07"].state.flags == ("DRAIN",)
    assert nodes["gpu07"].reason == "Xid 79 on gpu 3"
    assert nodes["gpu07"].reason_user == "root"
    assert nodes["gpu08"].state.base == "DOWN"
    assert nodes["gpu08"].mem_free_mib is None


async def test_long_fields_have_the_shape_of_the_capture() -> None:
    demo = lab()
    command = capture("sinfo_nodes.cmd").split("'")[1]
    lines = (await demo.ask("sinfo", "-h", "-N", "-O", command)).splitlines()
    real = capture("sinfo_nodes.out").splitlines()
    up, down = real[0].split("|"), real[1].split("|")
    ours_up = next(line for line in lines if line.startswith("gpu05|")).split("|")
    ours_down = next(line for line in lines if line.startswith("gpu08|")).split("|")
    assert len(ours_up) == len(up)
    assert [_shape(part) for part in ours_up[:9]] == [_shape(part) for part in up[:9]]
    assert ours_up[9:12] == up[9:12]
    assert [_shape(part) for part in ours_down[:9]] == [_shape(part) for part in down[:9]]


def _shape(text: str) -> str:
    return re.sub(r"\d+", "9", text)


async def test_the_default_forms_are_those_of_the_captures() -> None:
    demo = lab()
    text = await demo.ask("sinfo")
    real = capture("sinfo_default.out").splitlines()[0]
    assert text.splitlines()[0].split() == real.split()
    assert text.splitlines()[3:5] == [
        "gpu*         up 2-00:00:00      1  drain gpu07",
        "gpu*         up 2-00:00:00      1  down* gpu08",
    ]
    reasons = (await demo.ask("sinfo", "-R")).splitlines()
    assert reasons[0] == capture("sinfo_R.out").splitlines()[0]
    assert reasons[1] == "Xid 79 on gpu 3      root      2031-05-05T03:00:00 gpu07"


async def test_nodes_and_states_may_be_chosen() -> None:
    demo = lab()
    one = await demo.ask("sinfo", "-h", "-N", "-n", "gpu05", "-o", "%N %T %C")
    assert one == "gpu05 mixed 120/8/0/128\n"
    assert await demo.ask("sinfo", "-h", "-t", "drain", "-o", "%N") == "gpu07\n"
    assert await demo.ask("sinfo", "-h", "-p", "nosuch") == ""
    assert (await demo.ask("sinfo", "-s")).splitlines()[1].split()[3] == "6/0/2/8"


async def test_an_unknown_field_is_complained_about() -> None:
    done = await lab().done("sinfo", "-h", "-O", "bogus")
    assert (done.rc, done.stderr) == (
        0,
        b"sinfo: error: Invalid job format specification: bogus\n",
    )


async def test_a_node_that_is_being_cleaned_up_says_so() -> None:
    demo = lab()
    await demo.ask("scancel", "4817")
    await demo.later(10)
    assert await demo.ask("sinfo", "-h", "-N", "-p", "gpu", "-n", "gpu03", "-o", "%T") == (
        "completing\n"
    )
    node = await demo.ask("scontrol", "show", "node", "gpu03")
    assert "State=IDLE+COMPLETING " in node


def test_nodes_are_asked_for_as_often_as_the_time_of_the_cluster_runs() -> None:
    assert [every_s(speed) for speed in (1.0, 20.0, 60.0)] == [60.0, 3.0, 2.0]
