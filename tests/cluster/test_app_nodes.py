"""The Nodes screen and ``slurmtop nodes`` over the real cluster, beside what Slurm itself says."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from slurmtop.ui.screens.nodes import NodesScreen
from tests.cluster.desk import Desk, open_desk, slurmtop
from tests.cluster.faults import Faults
from tests.cluster.fixtures import Cluster

REASON = "bad NVLink, ticket 4411; GPU 3 | [x]"


@pytest.fixture(scope="module")
def job(cluster: Cluster) -> Iterator[str]:
    """An own job with three GPUs on the second node."""
    made = cluster.submit(
        "sleep 900", job_name=f"{cluster.tag}-nodes", gres="gpu:h100:3", nodelist="gpu02"
    )
    cluster.wait_state(made, "RUNNING")
    yield made
    cluster.run("scancel", made, check=False)


def sinfo(cluster: Cluster) -> dict[str, list[str]]:
    """State, GPUs in use and reason of each node, asked by other means than slurmtop's."""
    form = "NodeList:|,StateLong:|,GresUsed:|,Reason:|"
    lines = cluster.run("sinfo", "-h", "-N", "-O", form).stdout.splitlines()
    found = {}
    for line in lines:
        name, state, used, reason = (part.strip() for part in line.split("|", 3))
        found[name] = [state, used, reason.rstrip("|").strip()]
    return found


def nodes_screen(desk: Desk) -> NodesScreen:
    screen = desk.app.screen
    assert isinstance(screen, NodesScreen), desk.text
    return screen


async def open_nodes(desk: Desk) -> NodesScreen:
    await desk.press("3")
    await desk.until("an answer of sinfo", lambda: desk.app.nodes.sampled_at is not None)
    await desk.pilot.pause()
    return nodes_screen(desk)


async def go_to(desk: Desk, name: str) -> None:
    screen = nodes_screen(desk)
    await desk.press("g", *"j" * [row.name for row in screen.view.rows].index(name))
    row = screen.view.cursor_row
    assert row is not None
    assert row.name == name


async def test_the_screen_says_what_sinfo_says(
    cluster: Cluster, job: str, faults: Faults, tmp_path: Path
) -> None:
    faults.drain("gpu04", REASON)
    async with open_desk(tmp_path) as desk:
        screen = await open_nodes(desk)
        truth = sinfo(cluster)
        assert {row.name for row in screen.view.rows} == set(truth)
        for row in screen.view.rows:
            state, used, _ = truth[row.name]
            assert row.node.state.text == state
            assert row.node.gpus() == (8, int(used.split(":")[2].partition("(")[0]))
        first = screen.view.rows[0]
        assert (first.name, first.node.reason) == ("gpu04", REASON), "trouble stands first"
        await go_to(desk, "gpu04")
        await desk.shows(REASON, "by root since", "8 free (no job gets them now)")
        faults.resume("gpu04")
        await desk.press("r")
        await desk.until("the node is back", lambda: "ticket" not in desk.text)


async def test_ones_own_node_and_a_free_one(cluster: Cluster, job: str, tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        await open_nodes(desk)
        await go_to(desk, "gpu02")
        await desk.shows(f"{job} {cluster.tag}-nodes", "8 h100 GPUs, 3 used, 5 free")
        assert "only who has one, an operator or root" not in desk.text
        await desk.press("enter")
        await desk.shows("nvidia-smi", "GPU 0", "GPU 7", "over ssh")
        await desk.shows("kernel log")
        await desk.press("escape")
        await go_to(desk, "gpu03")
        await desk.shows("only who has one, an operator or root")
        looked = {host for host in desk.app.gpus.book.hosts if host != "gpu02"}
        assert looked == set(), "nobody looks into a node without a job of ours"
        await go_to(desk, "gpu02")
        await desk.press("o")
        await desk.until("the job", lambda: desk.job.key.id == job)


async def test_where_it_fits_is_where_slurm_starts_it(
    cluster: Cluster, job: str, tmp_path: Path
) -> None:
    async with open_desk(tmp_path) as desk:
        await open_nodes(desk)
        await desk.press("f")
        await desk.type("3x8")
        await desk.press("enter")
        await desk.shows("3 nodes of 8 GPUs would fit now in gpu")
        await desk.shows("for example gpu[01,03-04]")
    made = cluster.submit("sleep 60", nodes=3, gres="gpu:h100:8", job_name=f"{cluster.tag}-fit")
    try:
        cluster.wait_state(made, "RUNNING")
        assert cluster.squeue("-j", made, "-o", "%N") == ["gpu[01,03-04]"]
        said = slurmtop("nodes", "--fit", "1x8", "--json")
        assert said.data["fit"]["fits_now"] is False
        assert said.data["fit"]["partitions"][0]["by_at_latest"] is not None
    finally:
        cluster.run("scancel", made, check=False)
        cluster.wait_for("its end", lambda: not cluster.squeue("-j", made), 60)


async def test_sinfo_is_asked_while_the_screen_is_shown(
    cluster: Cluster, job: str, faults: Faults, tmp_path: Path
) -> None:
    async with open_desk(tmp_path, interval_s=600) as desk:
        assert desk.wire.asked_of("sinfo") == []
        before = faults.rpc_counts().get(cluster.user, 0)
        metered = desk.wiring.runner.total
        await open_nodes(desk)
        await desk.press("escape", "3")
        await desk.pilot.pause(1.0)
        assert len(desk.wire.asked_of("sinfo")) == 1
        spent = faults.rpc_counts().get(cluster.user, 0) - before
        assert spent == desk.wiring.runner.total - metered == 2


def test_the_command_beside_sinfo(cluster: Cluster, job: str, faults: Faults) -> None:
    faults.drain("gpu04", REASON)
    said = slurmtop("nodes", "--json")
    assert said.rc == 0
    truth = sinfo(cluster)
    nodes = {node["name"]: node for node in said.data["nodes"]}
    assert set(nodes) == set(truth)
    for name, (state, _, reason) in truth.items():
        assert nodes[name]["state"] == state
        assert (nodes[name]["reason"] or "none") == reason
        assert nodes[name]["partitions"][0] == nodes[name]["default_partition"]
    assert [one["id"] for one in nodes["gpu02"]["jobs"]] == [job]
    assert nodes["gpu02"]["gpus"]["used"] == 3
    table = slurmtop("nodes")
    assert max(map(len, table.lines)) <= 80
    assert REASON in table.out
    assert slurmtop("nodes", "state:drain").lines[0].startswith("1 of 4 nodes: 1 drained")


@pytest.mark.long
async def test_a_silent_controller(cluster: Cluster, faults: Faults, tmp_path: Path) -> None:
    async with open_desk(tmp_path, interval_s=600) as desk:
        await open_nodes(desk)
        faults.kill("slurmctld")
        await desk.press("r")
        await desk.shows("stale: last answer", deadline_s=90)
        assert "gpu02" in desk.text
        said = slurmtop("nodes")
        assert (said.rc, said.out) == (1, "")
        assert "the nodes cannot be read" in said.err
        faults.start("slurmctld")
