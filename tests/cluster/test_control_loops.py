"""A job that fails in the same way each time it is started, and one that does not."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.endings import TRAIN
from tests.cluster.fixtures import Cluster
from tests.cluster.truth import record
from tests.cluster.ways import WAYS, open_way

RESTARTS = 3


@pytest.fixture(scope="module")
def train(cluster: Cluster) -> Path:
    path = cluster.dir / "train-loop.py"
    path.write_text(TRAIN)
    return path


@pytest.fixture(scope="module")
def looping(cluster: Cluster, train: Path) -> Iterator[dict[str, str]]:
    """Jobs that were restarted three times, all at once: each restart takes a while.

    One fails and is put back by hand, one puts itself back as long as it is told to, and of
    one each run fails in another way.
    """
    options: dict[str, str | int | bool] = {
        "job_name": f"{cluster.tag}-loop",
        "open_mode": "append",
        "requeue": True,
    }
    hand = cluster.submit(f"python3 {train}", **options)
    itself = cluster.submit(
        f"#!/bin/bash\npython3 {train} && exit\n"
        f'[ "$SLURM_RESTART_COUNT" = {RESTARTS} ] || scontrol requeue "$SLURM_JOB_ID"\n'
        "wait; exit 1\n",
        **options,
    )
    other = cluster.submit(
        'echo "Error: cause $((7 << ${SLURM_RESTART_COUNT:-0})) of $RANDOM";'
        ' case "${SLURM_RESTART_COUNT:-0}" in'
        " 0) cat /nowhere ;; 1) python3 -c 'import nothing' ;; 2) exit 5 ;; *) exit 9 ;; esac",
        **options,
    )
    jobs = (hand, itself, other)

    def over() -> bool:
        # A list, so that all of them are pushed on in each round.
        return False not in [_pushed_on(cluster, job) for job in jobs]

    cluster.wait_for("the last runs", over, 90)
    yield {"hand": hand, "itself": itself, "other": other}
    cluster.run("scancel", *jobs, check=False)


def _pushed_on(cluster: Cluster, job: str) -> bool:
    """Whether its last run has failed; else help it to the next one."""
    found = record(cluster, job)
    if found.state == "FAILED":
        if found.restarts == RESTARTS:
            return True
        cluster.run("scontrol", "requeue", job, check=False)
    elif found.state == "PENDING":
        # Spares it the wait for its turn; refused while Slurm still tidies up.
        cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now", check=False)
    return False


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [pytest.param("hand", marks=pytest.mark.long), "itself"])
async def test_a_loop_is_told_before_it_is_put_back(
    cluster: Cluster, looping: dict[str, str], tmp_path: Path, way: str, kind: str
) -> None:
    job = looping[kind]
    assert record(cluster, job).restarts == RESTARTS
    async with open_way(way, tmp_path, f"{cluster.tag}-loop") as hands:
        shown = await hands.look("requeue", job)
    assert "looping: restarted 3 times" in shown, shown
    assert "ValueError: shard data-07 is empty" in shown, shown
    assert record(cluster, job).restarts == RESTARTS, "nothing was done yet"


@pytest.mark.parametrize("way", WAYS)
async def test_other_failures_are_no_loop(
    cluster: Cluster, looping: dict[str, str], tmp_path: Path, way: str
) -> None:
    job = looping["other"]
    async with open_way(way, tmp_path, f"{cluster.tag}-loop") as hands:
        shown = await hands.look("requeue", job)
    assert job in shown, shown
    assert "looping" not in shown, shown
