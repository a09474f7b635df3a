"""The GPUs tab of a Job page over the real cluster: open it, walk through it, look beside it."""

from __future__ import annotations

from slurmtop.ui.present.gpu_grid import GridRow
from tests.cluster.desk import Desk
from tests.cluster.faults import Faults, NodeProcess
from tests.cluster.fixtures import Cluster
from tests.cluster.layout import NODES
from tests.cluster.training import Rank

#: Names of the processes that slurmtop starts on a node, or its ways in leave there.
_LOOKING = ("nvidia-smi", "dcgmi", "amd-smi", "rocm-smi", "sshd")


async def open_gpus(desk: Desk, job: str) -> None:
    """From the queue to the GPUs tab of a job."""
    await desk.open_job(job)
    await desk.show_tab("GPUs")


def rows(desk: Desk) -> dict[str, GridRow]:
    """The rows of the grid by node."""
    return {row.host: row for row in desk.job.gpus.grid.rows}


async def answered(desk: Desk, *hosts: str, deadline_s: float = 45) -> None:
    """Until these nodes (default: all) show the job's GPUs, and answer still."""
    wanted = hosts or NODES

    def all_have() -> bool:
        found = rows(desk)
        return all(host in found and found[host].answered and found[host].cells for host in wanted)

    await desk.until(f"answers of {', '.join(wanted)}", all_have, deadline_s)


async def failed(desk: Desk, host: str, *words: str, deadline_s: float = 45) -> str:
    """Until a node's row tells of a failure with all of ``words`` in it; the sentence."""

    def sentence() -> str:
        row = rows(desk).get(host)
        failure = row.look.failure if row is not None and row.look is not None else None
        return failure.sentence if failure is not None else ""

    await desk.until(
        f"a failure of {host} with {words}",
        lambda: bool(sentence()) and all(word in sentence().lower() for word in words),
        deadline_s,
    )
    return sentence()


async def rounds(desk: Desk, count: int, *hosts: str, deadline_s: float = 60) -> None:
    """Until each of these nodes has given ``count`` new looks."""
    seen: dict[str, set[object]] = {host: set() for host in hosts or NODES}

    def enough() -> bool:
        for host, times in seen.items():
            row = rows(desk).get(host)
            if row is not None and row.look is not None and row.look.gpus_at is not None:
                times.add(row.look.gpus_at)
        return all(len(times) > count for times in seen.values())

    await desk.until(f"{count} rounds", enough, deadline_s)


async def go_to_gpu(desk: Desk, rank: Rank) -> None:
    """Move the cursor to the cell of a rank's GPU, by keys."""
    tab = desk.job.gpus
    hosts = [row.host for row in tab.grid.rows]
    assert tab.row is not None, desk.text
    down = hosts.index(rank.host) - hosts.index(tab.row.host)
    await desk.press(*["down" if down > 0 else "up"] * abs(down))
    assert tab.row is not None
    uuids = [cell.gpu.uuid if cell.gpu is not None else None for cell in tab.row.cells]
    assert rank.uuid in uuids, (rank, uuids)
    for _ in range(len(uuids)):
        await desk.press("left")
    for _ in range(uuids.index(rank.uuid)):
        await desk.press("right")
    assert tab.cell is not None
    assert tab.cell.gpu is not None
    assert tab.cell.gpu.uuid == rank.uuid


class Watchman:
    """Every node's process table, as root sees it: what was there before, and what is left."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._before = {host: {one.pid for one in faults.processes(host)} for host in NODES}

    def new(self, *, stuck: bool = False) -> list[tuple[str, NodeProcess]]:
        """What is there now and was not before; without what nobody can end unless ``stuck``."""
        return [
            (host, one)
            for host in NODES
            for one in self._faults.processes(host)
            if one.pid not in self._before[host] and (stuck or not _is_stuck(one))
        ]

    def looking(self) -> set[str]:
        """The nodes on which a GPU tool of ours runs now."""
        return {host for host, one in self.new() if one.name in _LOOKING and one.name != "sshd"}

    def all_gone(self, cluster: Cluster, deadline_s: float = 20) -> None:
        """Wait until nothing new is left on any node."""
        left: list[tuple[str, NodeProcess]] = []

        def none_left() -> bool:
            left[:] = self.new()
            return not left

        try:
            cluster.wait_for("the end of all that slurmtop started", none_left, deadline_s)
        except Exception as error:
            raise AssertionError(f"left behind: {left}") from error


def _is_stuck(process: NodeProcess) -> bool:
    return process.name == "nvidia-smi" and process.user == "root"


def steps(cluster: Cluster, job: str) -> list[str]:
    """The steps of a job that accounting knows."""
    done = cluster.run("sacct", "-nP", "-j", job, "-o", "JobID,JobName")
    return [line for line in done.stdout.splitlines() if "." in line.partition("|")[0]]
