"""The Why tab looks at the nodes of a real training: who is named, and what is left behind."""

import re
from pathlib import Path

from slurmtop.model.verdict import State
from tests.cluster.desk import Desk, meanwhile, open_desk
from tests.cluster.fixtures import Cluster
from tests.cluster.layout import NODES
from tests.cluster.training import Training, trains

_OURS = re.compile(r"slurmtop-(probe|stacks|script|request)|py-spy")


async def _look(desk: Desk) -> None:
    """A look that a person asks for, from the key to its end."""
    await desk.press("p")
    await desk.until("a look", lambda: desk.job.look.going)
    await desk.until("the end of the look", lambda: not desk.job.look.going, 60)
    state = desk.job.look.state
    assert state is not None
    assert state.ended == "", state.ended


def _left_behind(cluster: Cluster) -> list[str]:
    """What of ours still runs on the nodes."""
    lines = [line for host in NODES for line in cluster.ssh(host, "ps", "-eo", "args").splitlines()]
    return [line for line in lines if _OURS.search(line)]


async def _nothing_left(cluster: Cluster) -> None:
    await meanwhile(cluster.wait_for, "nothing of ours", lambda: not _left_behind(cluster), 15)


def _quiet_s(cluster: Cluster, training: Training) -> float:
    """Seconds since the last line: a step that was on its way is no progress."""
    now = float(cluster.run("date", "+%s.%N").stdout)
    return now - cluster.log(training.job).stat().st_mtime


async def _stops_one(cluster: Cluster, training: Training, desk: Desk) -> None:
    odd = training.ranks[5]
    await meanwhile(cluster.ssh, odd.host, "kill", "-STOP", str(odd.pid))
    try:
        await meanwhile(
            cluster.wait_for, "a quiet log", lambda: _quiet_s(cluster, training) > 3, 60
        )
        await _look(desk)
        verdict = desk.job.why.state.verdict
        assert verdict is not None
        assert (verdict.state, verdict.cls) == (State.HUNG, "process-stopped"), desk.text
        assert [(one.rank, one.host) for one in verdict.culprits] == [(odd.rank, odd.host)]
        row = next(row for row in desk.job.why.state.rows if odd.rank in row.ranks)
        assert row.ranks == (odd.rank,)
        assert row.moved is False
        await desk.shows("Where the ranks are", f"! rank {odd.rank}")
    finally:
        await meanwhile(cluster.ssh, odd.host, "kill", "-CONT", str(odd.pid))
        await meanwhile(training.goes_on)


async def test_the_page_names_the_rank_that_is_stopped_and_leaves_nothing(
    cluster: Cluster, tmp_path: Path
) -> None:
    with trains(cluster) as training:
        async with open_desk(tmp_path) as desk:
            await desk.open_job(training.job)
            await _look(desk)
            healthy = desk.job.why.state.verdict
            assert healthy is not None
            assert healthy.state is State.HEALTHY, desk.text
            assert healthy.culprits == ()
            assert sum(row.count for row in desk.job.why.state.rows) == len(training.ranks)
            await _stops_one(cluster, training, desk)
            await desk.press("p")
            await desk.until("a look", lambda: desk.job.look.going)
            await desk.press("tab")
            assert not desk.job.look.going
            await _nothing_left(cluster)
        await meanwhile(training.goes_on)
