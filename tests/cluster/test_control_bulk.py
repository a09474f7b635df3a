"""Many jobs at once: what it costs the controller, and that each of them is told by itself."""

from collections import Counter
from pathlib import Path

import pytest

from tests.cluster.faults import Faults
from tests.cluster.fixtures import Cluster, Mine
from tests.cluster.truth import records, states
from tests.cluster.ways import WAYS, open_way

pytestmark = pytest.mark.parametrize("way", WAYS)

MANY = 200
#: Beside one kill a job: looks at the queue and the version, and the read-back.
EXTRA_RPCS = 10
FAILING, ENDLESS = {3, 7, 11}, {15, 16, 17}
TASKS = """\
#!/bin/bash
task=$SLURM_ARRAY_TASK_ID
echo run >> "$PWD/{name}-$task"
case " {endless} " in *" $task "*) exec sleep 900 ;; esac
case " {failing} " in *" $task "*) [ "$(wc -l < "$PWD/{name}-$task")" -gt 1 ] || exit 3 ;; esac
"""


async def test_two_hundred_jobs_cost_at_most_one_kill_each(
    cluster: Cluster, mine: Mine, faults: Faults, tmp_path: Path, way: str
) -> None:
    jobs = [mine.submit("true", hold=True) for _ in range(MANY)]
    async with open_way(way, tmp_path, mine.name, interval_s=600) as hands:
        before = faults.rpc_counts()[cluster.user]
        told = await hands.act("cancel", *jobs)
        spent = faults.rpc_counts()[cluster.user] - before
    print(f"{way}: {MANY} jobs cancelled by {spent} RPCs in {told.took_s:.1f} s")
    assert told.results == dict.fromkeys(jobs, "cancelled")
    assert len(told.says) == MANY, "a sentence a job"
    assert {_all_states(cluster)[job] for job in jobs} == {"CANCELLED"}
    assert 0 < spent <= MANY + EXTRA_RPCS
    assert told.took_s < 60


def _all_states(cluster: Cluster) -> dict[str, str]:
    lines = cluster.squeue(f"--user={cluster.user}", "-t", "all", "-o", "%i %T")
    return dict(line.split() for line in lines)


@pytest.mark.long
async def test_of_a_mixed_lot_each_is_told_by_itself(
    cluster: Cluster, mine: Mine, faults: Faults, tmp_path: Path, way: str
) -> None:
    """Requeue of one that runs, one that may not be requeued, one that is another's."""
    good = mine.submit()
    never = mine.submit(no_requeue=True)
    theirs = faults.submit_other(name=mine.name)
    for job in (good, never, theirs):
        cluster.wait_state(job, "RUNNING")
    async with open_way(way, tmp_path, mine.name, all_users=True) as hands:
        told = await hands.act("requeue", good, never, theirs)
    assert told.results[good] == "requeued", told
    assert "requeued" not in {told.results.get(never), told.results.get(theirs)}
    assert never in told.shown + told.words, told
    assert theirs in told.shown + told.words, told
    assert states(cluster, never) == {never: "RUNNING"}
    assert states(cluster, theirs) == {theirs: "RUNNING"}
    assert records(cluster, good)[good].restarts == 1


@pytest.mark.long
async def test_array_of_twenty_no_completed_task_runs_again(
    cluster: Cluster, mine: Mine, tmp_path: Path, way: str
) -> None:
    name = f"ran-{way}"
    script = TASKS.format(
        name=name, endless=" ".join(map(str, ENDLESS)), failing=" ".join(map(str, FAILING))
    )
    array = mine.submit(script, array="0-19", output="/dev/null")

    def settled() -> bool:
        found = Counter(states(cluster, array).values())
        return found == {"COMPLETED": 14, "FAILED": 3, "RUNNING": 3}

    cluster.wait_for("14 completed, 3 failed, 3 at work", settled, 60)
    async with open_way(way, tmp_path, mine.name) as hands:
        told = await hands.act("cancel", array, tasks="15-17")
        assert told.count("cancelled") == 3, told
        after = states(cluster, array)
        assert {key for key, state in after.items() if state == "CANCELLED"} == {
            f"{array}_{task}" for task in ENDLESS
        }
        # Of an array, a requeue means what has failed, for Slurm would run all of it again.
        told = await hands.act("requeue", array, which="failed")
        assert told.count("requeued") == 3, told
        again = {key for key, task in records(cluster, array).items() if task.restarts}
        assert again == {f"{array}_{task}" for task in FAILING}
    for task in FAILING:
        cluster.run("scontrol", "update", f"JobId={array}_{task}", "StartTime=now")
    done = {f"{array}_{task}": "COMPLETED" for task in range(20) if task not in ENDLESS}
    cluster.wait_for(
        "the second run of those that failed",
        lambda: done.items() <= states(cluster, array).items(),
        60,
    )
    ran = {task: (cluster.dir / f"{name}-{task}").read_text().count("run") for task in range(20)}
    assert {task for task, count in ran.items() if count != 1} == FAILING
    assert {ran[task] for task in FAILING} == {2}
