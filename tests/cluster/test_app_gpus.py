"""The GPUs of one job on four real nodes, by real ssh and srun, with the ranks that really run."""

from pathlib import Path

import pytest

from slurmtop.collect.nodes import nvidia_smi
from slurmtop.ui import gpu_feed
from slurmtop.ui.present.gpu_grid import IDLE, LOST, UNKNOWN, WAITS
from tests.cluster.desk import meanwhile, open_desk
from tests.cluster.faults import Faults, SshFault
from tests.cluster.fixtures import Cluster
from tests.cluster.gpu_desk import (
    Watchman,
    answered,
    failed,
    go_to_gpu,
    open_gpus,
    rounds,
    rows,
    steps,
)
from tests.cluster.layout import NODES
from tests.cluster.training import Training, trains

#: What a driver that does not answer may take to be told here.
DRIVER_S = 60


async def test_every_rank_stands_on_its_own_gpu(training: Training, tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        await open_gpus(desk, training.job)
        await answered(desk)
        for host in NODES:
            uuids = [cell.gpu and cell.gpu.uuid for cell in rows(desk)[host].cells]
            assert uuids == [rank.uuid for rank in training.on(host)]
        for rank in training.ranks:
            await go_to_gpu(desk, rank)
            await desk.shows(f"rank {rank.rank} (environment) pid {rank.pid}")
        assert "via ssh" in desk.text
        await desk.shows("GPUs work")


@pytest.mark.long
async def test_ranks_that_srun_started_are_told_as_well(cluster: Cluster, tmp_path: Path) -> None:
    with trains(cluster, "trains_by_srun.sh", ranks=4) as training:
        async with open_desk(tmp_path) as desk:
            await open_gpus(desk, training.job)
            await answered(desk, *{rank.host for rank in training.ranks})
            for rank in training.ranks:
                await go_to_gpu(desk, rank)
                await desk.shows(f"rank {rank.rank} (environment) pid {rank.pid}")


#: How a node lets nobody in, and what is said of it.
WORDS: dict[SshFault, tuple[str, ...]] = {
    "closed": ("refuses connections", "no sshd"),
    "unknown key": ("host key", "not known here", "known_hosts"),
    "other key": ("host key", "has changed"),
    "refuses": ("refused every key", "ssh-copy-id"),
}


@pytest.mark.long
@pytest.mark.parametrize("how", ["other key", "closed", "unknown key", "refuses"])
async def test_a_node_that_lets_nobody_in_costs_its_own_row(
    training: Training, faults: Faults, tmp_path: Path, how: SshFault
) -> None:
    others = [host for host in NODES if host != "gpu03"]
    await meanwhile(lambda: faults.set_ssh("gpu03", how))
    async with open_desk(tmp_path, node_access="ssh") as desk:
        await open_gpus(desk, training.job)
        await answered(desk, *others)
        sentence = await failed(desk, "gpu03", "gpu03", *WORDS[how])
        await desk.shows("3 of 4 answered")
        assert "gpu03" in desk.text
        assert sentence.split()[0] in desk.text
        assert not rows(desk)["gpu03"].cells, "nothing is made up of a node that nobody saw"
        await rounds(desk, 2, *others)
        # No mean over GPUs that nobody asked.
        assert "mean" not in desk.text
        await meanwhile(lambda: faults.set_ssh("gpu03", "open"))
        await desk.press("r")
        await answered(desk)


async def test_three_nodes_fail_in_three_ways_and_one_goes_on(
    training: Training, faults: Faults, tmp_path: Path
) -> None:
    ways: tuple[SshFault, ...] = ("closed", "unknown key", "refuses")
    for host, how in zip(("gpu02", "gpu03", "gpu04"), ways, strict=True):
        await meanwhile(lambda host=host, how=how: faults.set_ssh(host, how))
    async with open_desk(tmp_path, node_access="ssh") as desk:
        await open_gpus(desk, training.job)
        await answered(desk, "gpu01")
        for host, how in zip(("gpu02", "gpu03", "gpu04"), ways, strict=True):
            await failed(desk, host, host, *WORDS[how])
        await rounds(desk, 3, "gpu01")
        await desk.shows("1 of 4 answered")


@pytest.mark.long
async def test_drivers_that_hang_are_told_and_not_asked_again(
    cluster: Cluster,
    training: Training,
    faults: Faults,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One hangs from the start, one while it is looked at: its last values stay, with their age."""
    # A minute and half of one in earnest.
    monkeypatch.setattr(nvidia_smi, "FIRST_ANSWER_S", 12.0)
    monkeypatch.setattr(nvidia_smi, "SILENT_S", 12.0)
    watchman = Watchman(faults)
    await meanwhile(lambda: faults.set_gpu("gpu01", "hung"))

    def stuck(host: str) -> int:
        new = watchman.new(stuck=True)
        return sum(1 for where, one in new if where == host and one.state == "D")

    async with open_desk(tmp_path) as desk:
        await open_gpus(desk, training.job)
        await answered(desk, "gpu02", "gpu03", "gpu04")
        await meanwhile(lambda: faults.set_gpu("gpu02", "hung"))
        await failed(desk, "gpu02", "driver on gpu02 does not answer", deadline_s=DRIVER_S)
        assert len(rows(desk)["gpu02"].cells) == 2
        await failed(desk, "gpu01", "driver on gpu01 does not answer", deadline_s=DRIVER_S)
        assert not rows(desk)["gpu01"].cells, "nobody ever saw its values"
        for _ in range(3):
            await desk.press("r")
            await rounds(desk, 2, "gpu03", "gpu04")
        assert await meanwhile(lambda: stuck("gpu01")) <= 1, "one is enough"
        assert await meanwhile(lambda: stuck("gpu02")) <= 1
        await desk.shows("2 of 4 answered")
    await meanwhile(lambda: watchman.all_gone(cluster))
    await meanwhile(training.goes_on)


async def test_sshd_stops_while_it_is_looked_at(
    training: Training, faults: Faults, tmp_path: Path
) -> None:
    async with open_desk(tmp_path, node_access="ssh") as desk:
        await open_gpus(desk, training.job)
        await answered(desk)
        await meanwhile(lambda: faults.set_ssh("gpu04", "closed", cut=True))
        await failed(desk, "gpu04", "gpu04")
        assert rows(desk)["gpu04"].cells, "the last values stay, and are told to be old"
        await rounds(desk, 2, "gpu01", "gpu02", "gpu03")
        await meanwhile(lambda: faults.set_ssh("gpu04", "open"))
        await desk.press("r")
        await answered(desk)


@pytest.mark.long
async def test_where_ssh_is_closed_one_step_does_it(
    cluster: Cluster, training: Training, faults: Faults, tmp_path: Path
) -> None:
    await meanwhile(faults.close_ssh)
    watchman = Watchman(faults)
    before = steps(cluster, training.job)
    async with open_desk(tmp_path) as desk:
        await open_gpus(desk, training.job)
        await answered(desk, deadline_s=90)
        await desk.shows("via srun")
        for rank in training.ranks:
            await go_to_gpu(desk, rank)
            await desk.shows(f"rank {rank.rank} (environment) pid {rank.pid}")
        # The header shows the way as well, wherever one is.
        await rounds(desk, 15, deadline_s=120)
        for key in ("tab", "shift+tab", "escape"):
            await desk.press(key)
        await open_gpus(desk, training.job)
        await answered(desk)
        added = await meanwhile(lambda: steps(cluster, training.job)[len(before) :])
        assert len(added) <= 1, added
        assert all(line.endswith("|slurmtop") for line in added)
        assert len(desk.wire.asked_of("srun")) <= 1
    await meanwhile(lambda: watchman.all_gone(cluster))
    added = steps(cluster, training.job)[len(before) :]
    assert len(added) == 1, added
    training.goes_on()


async def test_watching_touches_nothing(
    cluster: Cluster, training: Training, faults: Faults, tmp_path: Path
) -> None:
    watchman = Watchman(faults)
    pids = {(rank.host, rank.pid) for rank in training.ranks}
    async with open_desk(tmp_path) as desk:
        await open_gpus(desk, training.job)
        await answered(desk)
        assert await meanwhile(watchman.looking) == set(NODES)
        for _ in range(5):
            await rounds(desk, 1)
            for host in NODES:
                for one in await meanwhile(lambda host=host: faults.processes(host)):
                    # A rank that is stopped or traced would be T or t.
                    if (host, one.pid) in pids:
                        assert one.state in "RSD", one
                    assert "slurmtop-kill" not in one.argv
        assert not desk.acted()
        await meanwhile(training.goes_on)
    await meanwhile(lambda: watchman.all_gone(cluster))
    assert {(h, one.pid) for h in NODES for one in faults.processes(h)} >= pids


async def test_leaving_the_page_ends_the_looking(
    cluster: Cluster,
    training: Training,
    faults: Faults,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gpu_feed, "KEPT_S", 6.0)
    watchman = Watchman(faults)
    async with open_desk(tmp_path) as desk:
        await open_gpus(desk, training.job)
        await answered(desk)
        await desk.press("escape")
        await desk.until("the end of it", lambda: not watchman.looking(), 60)


async def test_a_gpu_that_is_too_hot_stands_out(
    training: Training, faults: Faults, tmp_path: Path
) -> None:
    slow = training.on("gpu03")[1]
    await meanwhile(lambda: faults.set_gpu("gpu03", "straggler", slow.gpu))
    async with open_desk(tmp_path) as desk:
        await open_gpus(desk, training.job)
        await answered(desk)
        for _ in range(12):
            if desk.job.gpus.metric.id == "clock":
                break
            await desk.press("m")
        await desk.until("an odd one", lambda: bool(desk.job.gpus.model.odd))
        assert [(ref.host, odd.value) for ref, odd in desk.job.gpus.model.odd.items()] == [
            ("gpu03", 990.0)
        ]
        await desk.press("s")
        assert desk.job.gpus.grid.rows[0].host == "gpu03"
        await go_to_gpu(desk, slow)
        await desk.shows("the odd one by SM clock", "990 MHz", "1980 MHz")
        await desk.shows("thermal")


async def test_full_at_a_quarter_of_the_power_is_not_healthy(
    training: Training, faults: Faults, tmp_path: Path
) -> None:
    for host in NODES:
        await meanwhile(lambda host=host: faults.set_gpu(host, "waiting"))
    async with open_desk(tmp_path) as desk:
        await open_gpus(desk, training.job)
        await answered(desk)
        await rounds(desk, 4)
        assert {cell.sign for row in rows(desk).values() for cell in row.cells} == {WAITS}
        assert "GPUs work" not in desk.text
        # The log goes on all the while: nobody calls that a hang.
        assert "hang, by" not in desk.text.replace("possible hang, by", "")


async def test_a_lost_gpu_is_no_idle_one_and_hides_no_other(
    training: Training, faults: Faults, tmp_path: Path
) -> None:
    kept, lost = training.on("gpu02")
    await meanwhile(lambda: faults.set_gpu("gpu02", "lost", lost.gpu))
    async with open_desk(tmp_path) as desk:
        await open_gpus(desk, training.job)
        await answered(desk)
        await rounds(desk, 2)
        row = rows(desk)["gpu02"]
        assert kept.uuid in {gpu.uuid for gpu in row.samples}
        assert lost.uuid not in {gpu.uuid for gpu in row.samples}
        assert IDLE not in row.signs
        assert row.signs & {LOST, UNKNOWN}
        await desk.press("s")
        assert desk.job.gpus.grid.rows[0].host == "gpu02"


@pytest.mark.long
async def test_an_old_driver_is_asked_for_what_it_knows(
    training: Training, faults: Faults, tmp_path: Path
) -> None:
    await meanwhile(lambda: faults.set_gpu("gpu04", "old-driver"))
    async with open_desk(tmp_path) as desk:
        await open_gpus(desk, training.job)
        await answered(desk)
        assert {gpu.driver for gpu in rows(desk)["gpu04"].samples} == {"525.85.12"}
        assert all(gpu.util_percent for gpu in rows(desk)["gpu04"].samples)
