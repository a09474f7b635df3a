"""Signals to real jobs: who gets them, who saves, who dies, and what is said before and after."""

import re
from pathlib import Path

import pytest

from tests.cluster.fixtures import Cluster, Mine
from tests.cluster.truth import Process, processes, record, states
from tests.cluster.ways import WAYS, open_way

pytestmark = pytest.mark.parametrize("way", WAYS)
JOBS = Path(__file__).parent / "jobs"


def _reports(log: Path) -> list[str]:
    """Who said that they got which signal, sorted, each once.

    ``--full`` may reach a step twice: by slurmd, and by the srun that passes it on.
    """
    return sorted(set(re.findall(r"(?m)^\w+: (.* got \w+)$", _text(log))))


def _wait_for_reports(cluster: Cluster, log: Path, count: int) -> None:
    cluster.wait_for(f"{count} reports in {log.name}", lambda: len(_reports(log)) >= count)


def _at_work(cluster: Cluster, log: Path, count: int = 2) -> None:
    cluster.wait_for(f"{count} at work", lambda: _text(log).count(" ready\n") == count)


async def test_each_target_is_the_one_that_gets_it(
    cluster: Cluster, mine: Mine, tmp_path: Path, way: str
) -> None:
    job = mine.submit(JOBS / "reports.sh")
    log = cluster.log(job)
    _at_work(cluster, log)
    got: list[str] = []
    async with open_way(way, tmp_path, mine.name, hurried=True) as hands:
        for signal, to, who in (
            ("USR1", "steps", ["step 0", "step 1"]),
            ("HUP", "batch", ["shell"]),
            ("USR2", "everything", ["shell", "step 0", "step 1"]),
        ):
            told = await hands.act("signal", job, signal=signal, to=to)
            assert told.results == {job: "signalled"}, told
            got = sorted([*got, *(f"{one} got {signal}" for one in who)])
            # Each signal is another one: what went to the wrong part would stay in the list.
            _wait_for_reports(cluster, log, len(got))
            assert _reports(log) == got
        told = await hands.act("signal", job, signal="INT", step="1")
        assert told.results == {f"{job}.1": "signalled"}, told
        got = sorted([*got, "step 1 got INT"])
        _wait_for_reports(cluster, log, len(got))
        assert _reports(log) == got
    assert states(cluster, job) == {job: "RUNNING"}


async def test_one_task_of_an_array_and_all_parts_of_a_het_job(
    cluster: Cluster, mine: Mine, tmp_path: Path, way: str
) -> None:
    array = mine.submit(JOBS / "reports.sh", array="0-1", output=f"{cluster.dir}/{way}_%a.log")
    logs = [cluster.dir / f"{way}_{task}.log" for task in range(2)]
    het = mine.submit(JOBS / "reports_het.sh")
    for log in (*logs, cluster.log(het)):
        _at_work(cluster, log)
    async with open_way(way, tmp_path, mine.name, hurried=True) as hands:
        told = await hands.act("signal", f"{array}_1", signal="USR1", to="steps")
        assert told.results == {f"{array}_1": "signalled"}, told
        both = ["step 0 got USR1", "step 1 got USR1"]
        _wait_for_reports(cluster, logs[1], 2)
        assert _reports(logs[1]) == both
        told = await hands.act("signal", het, signal="USR1", to="steps")
        assert told.results == {het: "signalled"}, told
        parts = ["part 0 got USR1", "part 1 got USR1"]
        _wait_for_reports(cluster, cluster.log(het), 2)
        assert _reports(cluster.log(het)) == parts
    assert _reports(logs[0]) == [], "its sister got nothing"


async def test_stop_continue_and_kill(
    cluster: Cluster, mine: Mine, tmp_path: Path, way: str
) -> None:
    job = mine.submit(JOBS / "unprepared.sh", nodelist="gpu02")

    def sleeper() -> str:
        found = [one for one in processes(cluster, "gpu02").values() if "/sleep 900" in one.argv]
        return found[0].state[0] if found else ""

    cluster.wait_for("its step", lambda: sleeper() == "S")
    async with open_way(way, tmp_path, mine.name, hurried=True) as hands:
        told = await hands.act("signal", job, signal="STOP", to="steps")
        assert told.results == {job: "signalled"}, told
        cluster.wait_for("a stopped step", lambda: sleeper() == "T")
        told = await hands.act("signal", job, signal="CONT", to="steps")
        assert told.results == {job: "signalled"}, told
        cluster.wait_for("a running step", lambda: sleeper() == "S")
        told = await hands.act("signal", job, signal="KILL", to="everything")
        assert told.done, told
        assert "cancelled" in told.words, told
        assert states(cluster, job) == {job: "CANCELLED"}


async def test_trap_in_the_batch_script_saves(
    cluster: Cluster, mine: Mine, tmp_path: Path, way: str
) -> None:
    job = mine.submit(JOBS / "saves_in_trap.sh", nodelist="gpu01")
    saved = cluster.dir / f"saved-{job}"
    cluster.wait_for("its trap", lambda: "ready" in _text(cluster.log(job)))
    before = _alive(cluster, "gpu01")
    async with open_way(way, tmp_path, mine.name, hurried=True) as hands:
        # The step has no handler: what would happen there is said, and nothing is done.
        shown = await hands.look("signal", job, signal="USR1", to="steps")
        assert "dies of it" in shown, shown
        shown = await hands.look("signal", job, signal="USR1", to="batch")
        assert "handles it" in shown, shown
        assert "dies of it" not in shown, shown
        assert not saved.exists()
        told = await hands.act("signal", job, signal="USR1", to="batch")
        assert told.results == {job: "signalled"}, told
    cluster.wait_for("what it saves", saved.exists)
    assert saved.read_text().startswith("by shell ")
    assert _alive(cluster, "gpu01") == before, "the same processes, every one"
    assert states(cluster, job) == {job: "RUNNING"}


async def test_ranks_save_and_the_agent_of_torchrun_lives(
    cluster: Cluster, mine: Mine, tmp_path: Path, way: str
) -> None:
    nodes = ("gpu01", "gpu02")
    ranks = JOBS / "ranks.py"
    export = f"ALL,RANKS={ranks}"
    job = mine.submit(JOBS / "saves_in_ranks.sh", nodelist=",".join(nodes), export=export)
    cluster.wait_for(
        "both ranks at work", lambda: _text(cluster.log(job)).count(" is at work") == 2, 90
    )
    before = [_alive(cluster, node) for node in nodes]
    for found in before:
        assert _kinds(found)["agent"], found
        assert _kinds(found)["rank"], found
    async with open_way(way, tmp_path, mine.name, hurried=True) as hands:
        shown = await hands.look("signal", job, signal="USR1", to="everything")
        assert "dies of it" in shown, "neither the shell nor srun is prepared"
        shown = await hands.look("signal", job, signal="USR1", to="steps")
        assert "ignores it" in shown, shown
        assert "dies of it" not in shown, shown
        told = await hands.act("signal", job, signal="USR1", to="steps")
        assert told.results == {job: "signalled"}, told
    files = [cluster.dir / f"saved-{job}-{rank}" for rank in range(2)]
    cluster.wait_for("both files", lambda: all(path.exists() for path in files))
    after = [_alive(cluster, node) for node in nodes]
    # Same pids and same parents: no agent has died, and no rank was left to process 1.
    assert after == before
    assert states(cluster, job) == {job: "RUNNING"}


def _kinds(found: dict[int, Process]) -> dict[str, list[int]]:
    """The agent of torchrun, and the ranks whose parent it is."""
    agents = [pid for pid, one in found.items() if "/torchrun" in one.argv]
    agents = [pid for pid in agents if found[pid].argv.split()[0].endswith("python")]
    ranks = [pid for pid, one in found.items() if one.parent in agents and "ranks.py" in one.argv]
    return {"agent": agents, "rank": ranks}


async def test_nothing_prepared_is_said_and_no_is_the_default(
    cluster: Cluster, mine: Mine, tmp_path: Path, way: str
) -> None:
    job = mine.submit(JOBS / "unprepared.sh", nodelist="gpu01")
    cluster.wait_for("its step", lambda: _steps(cluster, job) == [f"{job}.0"])
    before = _alive(cluster, "gpu01")
    async with open_way(way, tmp_path, mine.name) as hands:
        shown = await hands.look("signal", job, signal="USR1", to="steps", answer="enter")
        assert "dies of it" in shown, shown
        assert hands.commands_run() == [], "enter alone is a no"
        assert _alive(cluster, "gpu01") == before
        told = await hands.act("signal", job, signal="USR1", to="steps")
        assert states(cluster, job) == {job: "FAILED"}
        assert "FAILED" in told.words, told
    assert record(cluster, job).fields["ExitCode"] != "0:0"
    assert not _alive(cluster, "gpu01")


def _steps(cluster: Cluster, job: str) -> list[str]:
    return [step for step in cluster.squeue("-s", "-j", job, "-o", "%i") if step[-1].isdigit()]


def _alive(cluster: Cluster, node: str) -> dict[int, Process]:
    """The processes of jobs on a node, by what does not change while they live."""
    found = processes(cluster, node)
    return {
        pid: Process(pid=pid, parent=one.parent, state="", argv=one.argv)
        for pid, one in found.items()
    }


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
