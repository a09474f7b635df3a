"""Every kind of action on real jobs, by keys and by the command line.

What is told is held against what ``scontrol`` says right after, never against the read-back.
"""

from functools import partial
from pathlib import Path

import pytest

from tests.cluster.faults import Faults
from tests.cluster.fixtures import Cluster, Mine
from tests.cluster.truth import accounted, record, records, states, unmoved
from tests.cluster.ways import WAYS, open_way

# Its end takes up to two minutes and is wanted by tests that come after these.
both_ways = pytest.mark.parametrize("way", WAYS)
HET = "#!/bin/bash\n#SBATCH -N1 {0}\n#SBATCH hetjob\n#SBATCH -N1 {0}\nsleep 900\n"


def _array_at_work(mine: Mine, tasks: str) -> str:
    """An array of which two tasks run and the others wait."""
    cluster, array = mine.cluster, mine.submit(array=f"{tasks}%2")

    def begun() -> bool:
        found = states(cluster, array)
        return list(found.values()).count("RUNNING") == 2 and "PENDING" in found.values()

    cluster.wait_for("two tasks at work", begun)
    return array


@both_ways
async def test_hold_and_release(cluster: Cluster, mine: Mine, tmp_path: Path, way: str) -> None:
    single = mine.submit(begin="now+1hour")
    other = mine.submit(begin="now+1hour")
    het = mine.submit(HET.format("--begin=now+1hour"))
    array = _array_at_work(mine, "0-5")
    async with open_way(way, tmp_path, mine.name) as hands:
        for job in (single, het):
            told = await hands.act("hold", job)
            assert told.results == {job: "held"}, told
            for part in records(cluster, job).values():
                assert (part.held, part.state) == (True, "PENDING")
            told = await hands.act("release", job)
            assert told.results == {job: "released"}, told
            assert not any(part.held for part in records(cluster, job).values())
        told = await hands.act("hold", f"{array}_0")
        assert told.results == {f"{array}_0": "held"}, told
        assert [key for key, task in records(cluster, array).items() if task.held] == [f"{array}_0"]
        assert states(cluster, array)[f"{array}_0"] == "RUNNING", "it goes on"
        await hands.act("hold", array)
        assert all(task.held for task in records(cluster, array).values())
        await hands.act("release", array)
        assert not any(task.held for task in records(cluster, array).values())
    assert not record(cluster, other).held, "nobody asked for this one"


@both_ways
async def test_requeue(cluster: Cluster, mine: Mine, tmp_path: Path, way: str) -> None:
    single = mine.submit()
    failed = mine.submit("exit 3")
    het = mine.submit(HET.format(""))
    array = _array_at_work(mine, "0-3")
    cluster.wait_state(single, "RUNNING")
    cluster.wait_state(het, "RUNNING")
    cluster.wait_state(failed, "FAILED")
    async with open_way(way, tmp_path, mine.name) as hands:
        for job in (single, failed, f"{array}_0", het):
            told = await hands.act("requeue", job)
            assert told.results == {job: "requeued"}, told
            for part in records(cluster, job).values():
                assert part.restarts == 1, part
                assert not part.held
        others = {key: task.restarts for key, task in records(cluster, array).items()}
        assert sum(others.values()) == 1, "one task, and no sister"
    # Of all runs the first: the second may have begun meanwhile.
    for job in (single, failed):
        cluster.wait_for(f"a run of {job} that was put back", partial(_put_back, cluster, job))


def _put_back(cluster: Cluster, job: str) -> bool:
    return accounted(cluster, job)[:1] == ["REQUEUED"]


@both_ways
async def test_requeue_and_hold(cluster: Cluster, mine: Mine, tmp_path: Path, way: str) -> None:
    single = mine.submit()
    array = _array_at_work(mine, "0-3")
    cluster.wait_state(single, "RUNNING")
    async with open_way(way, tmp_path, mine.name) as hands:
        for job in (single, f"{array}_1"):
            told = await hands.act("requeue", job, hold=True)
            assert told.results == {job: "requeued and held"}, told
            assert (record(cluster, job).restarts, record(cluster, job).held) == (1, True)
        assert states(cluster, array)[f"{array}_0"] == "RUNNING"
    cluster.wait_state(single, "PENDING")
    assert record(cluster, single).held


@both_ways
async def test_cancel(cluster: Cluster, mine: Mine, tmp_path: Path, way: str) -> None:
    single, other = mine.submit(), mine.submit()
    het = mine.submit(HET.format(""))
    array = _array_at_work(mine, "0-9")
    for job in (single, other, het):
        cluster.wait_state(job, "RUNNING")
    async with open_way(way, tmp_path, mine.name) as hands:
        told = await hands.act("cancel", single)
        assert told.results == {single: "cancelled"}, told
        assert states(cluster, single) == {single: "CANCELLED"}
        told = await hands.act("cancel", array, tasks="1,7-8")
        assert set(told.results.values()) == {"cancelled"}, told
        after = states(cluster, array)
        assert after[f"{array}_1"] == "CANCELLED"
        assert after[f"{array}_0"] == "RUNNING"
        waiting = {key for key, state in after.items() if state == "PENDING"}
        assert waiting <= {f"{array}_[2-6,9]", f"{array}_2", f"{array}_[3-6,9]"}, after
        told = await hands.act("cancel", array)
        assert set(told.results.values()) == {"cancelled"}, told
        assert set(states(cluster, array).values()) == {"CANCELLED"}
        told = await hands.act("cancel", het)
        assert told.results == {het: "cancelled"}, told
        assert set(states(cluster, het).values()) == {"CANCELLED"}
    assert states(cluster, other) == {other: "RUNNING"}


@both_ways
async def test_cancel_of_one_step(cluster: Cluster, mine: Mine, tmp_path: Path, way: str) -> None:
    script = "#!/bin/bash\nsrun --overlap sleep 900 & srun --overlap sleep 901 & wait\n"
    job = mine.submit(script)

    def steps() -> set[str]:
        found = cluster.squeue("-s", "-j", job, "-o", "%i")
        return {text for text in found if not text.endswith(("batch", "extern"))}

    cluster.wait_for("two steps", lambda: steps() == {f"{job}.0", f"{job}.1"})
    async with open_way(way, tmp_path, mine.name) as hands:
        told = await hands.act("cancel", job, step="0")
        assert told.results == {f"{job}.0": "cancelled"}, told
        assert steps() == {f"{job}.1"}
        assert states(cluster, job) == {job: "RUNNING"}


@both_ways
async def test_what_is_refused_is_refused_in_words(
    cluster: Cluster, mine: Mine, faults: Faults, tmp_path: Path, way: str
) -> None:
    theirs = faults.submit_other(name=mine.name)
    never = mine.submit(no_requeue=True)
    waiting = mine.submit(begin="now+1hour")
    over = mine.submit("true")
    for job in (theirs, never):
        cluster.wait_state(job, "RUNNING")
    cluster.wait_state(over, "COMPLETED")
    before = unmoved(cluster, theirs, never, waiting, over)
    async with open_way(way, tmp_path, mine.name, all_users=True) as hands:
        for verb in ("cancel", "requeue", "hold", "release", "signal"):
            more = {"signal": "USR1", "to": "steps"} if verb == "signal" else {}
            told = await hands.act(verb, theirs, **more)
            assert not told.done, (verb, told)
            if verb != "release":
                # Of a job that is not held nobody needs to be asked.
                assert cluster.users[1] in told.shown + told.words, (verb, told)
    async with open_way(way, tmp_path, mine.name) as hands:
        told = await hands.act("requeue", never)
        assert not told.done
        assert "requeue" in told.words, told
        for verb in ("cancel", "hold", "release", "signal"):
            more = {"signal": "USR1", "to": "steps"} if verb == "signal" else {}
            told = await hands.act(verb, over, **more)
            assert not told.done
            assert over in told.words, told
        told = await hands.act("signal", waiting, signal="USR1", to="steps")
        assert not told.done, told
        assert "has not started" in told.words, told
        sent = [argv for argv in hands.commands_run() if waiting in argv]
        assert not sent, "scancel would try for 95 s"
    assert unmoved(cluster, theirs, never, waiting, over) == before


async def test_time_limit_and_excluded_nodes(cluster: Cluster, mine: Mine, tmp_path: Path) -> None:
    """By keys alone: scripts have scontrol for it."""
    running = mine.submit()
    waiting = mine.submit(begin="now+1hour", exclude="gpu04")
    array = _array_at_work(mine, "0-3")
    cluster.wait_state(running, "RUNNING")
    async with open_way("keys", tmp_path, mine.name) as hands:
        for job in (running, array):
            told = await hands.act("limit", job, limit="5")
            assert set(told.results.values()) == {"time limit set"}, told
            limits = {one.fields["TimeLimit"] for one in records(cluster, job).values()}
            assert limits == {"00:05:00"}
        told = await hands.act("limit", running, limit="8")
        assert not told.done, told
        assert "not raise it" in told.words, told
        assert record(cluster, running).fields["TimeLimit"] == "00:05:00"
        told = await hands.act("exclude", waiting, hosts="gpu02")
        assert told.results == {waiting: "nodes excluded"}, told
        assert record(cluster, waiting).fields["ExcNodeList"] == "gpu[02,04]"
        told = await hands.act("exclude", running, hosts="gpu02")
        assert not told.done, told
        assert record(cluster, running).fields["ExcNodeList"] == "(null)"


async def test_an_id_that_nobody_knows(cluster: Cluster, mine: Mine, tmp_path: Path) -> None:
    """By the command line alone: what is not in the queue has no row. scancel exits 0 here."""
    known = mine.submit(begin="now+1hour")
    async with open_way("command", tmp_path, mine.name) as hands:
        for verb in ("cancel", "requeue", "hold", "release"):
            told = await hands.act(verb, "98765430")
            assert told.results == {"98765430": "no such job"}, told
        told = await hands.act("signal", "98765430", signal="USR1")
        assert told.results == {"98765430": "no such job"}, told
        assert hands.commands_run() == []
        told = await hands.act("cancel", "98765430", known)
        assert told.results == {"98765430": "no such job", known: "cancelled"}, told
    assert states(cluster, known) == {known: "CANCELLED"}
