"""Cancelling real jobs from the screen: what is told must be what Slurm shows right after."""

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurmtop.control.actions import ConfirmLevel
from slurmtop.control.outcome import Result
from tests.cluster.desk import Desk, open_desk
from tests.cluster.fixtures import Cluster

# Its end takes up to two minutes and is wanted by tests that come after these.


@pytest.fixture(autouse=True)
def _nothing_left(cluster: Cluster) -> Iterator[None]:
    """Whatever a test submitted and did not cancel goes with it."""
    yield
    names = cluster.squeue(f"--user={cluster.user}", "-o", "%A %j")
    left = [line.split()[0] for line in names if line.split()[1] == _name(cluster)]
    if left:
        cluster.run("scancel", *left, check=False)


def _name(cluster: Cluster) -> str:
    return f"{cluster.tag}-cancel"


def _submit(cluster: Cluster, **options: str | int | bool) -> str:
    return cluster.submit("sleep 900", job_name=_name(cluster), **options)


def _truth(cluster: Cluster, job: str) -> dict[str, str]:
    """State by id, as squeue shows it now."""
    lines = cluster.squeue("-t", "all", "-j", job, "-o", "%i %T")
    return dict(line.split() for line in lines)


def _check_log(desk: Desk, *commands: list[str]) -> dict[str, object]:
    """One private line that holds the commands; returns it."""
    (entry,) = desk.logged()
    assert entry["kind"] == "cancel"
    assert entry["who"] == desk.app.services.user
    assert entry["commands"] == [*commands] == [list(argv) for argv in desk.sent]
    mode = desk.action_log.stat().st_mode
    assert stat.S_IMODE(mode) == 0o600
    assert stat.S_IMODE(desk.action_log.parent.stat().st_mode) == 0o700
    return entry


async def test_running_job(cluster: Cluster, tmp_path: Path) -> None:
    job = _submit(cluster)
    cluster.wait_state(job, "RUNNING")
    async with open_desk(tmp_path) as desk:
        dialog = await desk.ask_to_cancel(job)
        assert f"$ scancel {job}" in desk.text
        assert "Runs exactly:" in desk.text
        assert f"yours ({cluster.user})" in desk.text
        assert "running for" in desk.text
        assert dialog.action.confirm is ConfirmLevel.YES
        assert desk.sent == [], "nothing is run before a yes"
        await desk.say_yes()
        outcome = await desk.outcome()
        assert _truth(cluster, job) == {job: "CANCELLED"}
        assert outcome.ok
        assert f"job {job}: cancelled" in desk.text
        entry = _check_log(desk, ["scancel", job])
        assert entry["jobs"] == [
            {"job": job, "outcome": "cancelled", "says": f"job {job}: cancelled"}
        ]
        await desk.press("escape")
        await desk.until("its row", lambda: "cancelled" in desk.row(job))


async def test_no_is_no(cluster: Cluster, tmp_path: Path) -> None:
    job = _submit(cluster, hold=True)
    async with open_desk(tmp_path) as desk:
        for keys in (("n",), ("escape",), ("enter",)):
            await desk.ask_to_cancel(job)
            await desk.press(*keys)
            assert len(desk.app.screen_stack) == 1
        assert desk.sent == []
        assert desk.logged() == []
    assert _truth(cluster, job) == {job: "PENDING"}


async def test_waiting_job_from_its_own_screen(cluster: Cluster, tmp_path: Path) -> None:
    job = _submit(cluster, hold=True)
    async with open_desk(tmp_path) as desk:
        await desk.open_job(job)
        await desk.press("K")
        assert f"$ scancel {job}" in desk.text
        assert "Reaches no node" in desk.text
        await desk.say_yes()
        outcome = await desk.outcome()
        assert _truth(cluster, job) == {job: "CANCELLED"}
        assert outcome.ok
        _check_log(desk, ["scancel", job])


async def test_one_task_of_an_array(cluster: Cluster, tmp_path: Path) -> None:
    array = _submit(cluster, array="0-3%2", output=f"{cluster.dir}/%A_%a.log")
    cluster.wait_for("the tasks", lambda: cluster.states(array) == {"RUNNING", "PENDING"})
    async with open_desk(tmp_path) as desk:
        await desk.go_to(array)
        await desk.press("enter")
        await desk.go_to(f"{array}_1")
        await desk.press("K")
        assert f"$ scancel {array}_1" in desk.text
        await desk.say_yes()
        outcome = await desk.outcome()
        truth = _truth(cluster, array)
        assert truth[f"{array}_1"] == "CANCELLED"
        assert truth[f"{array}_0"] == "RUNNING", "its sister goes on"
        assert outcome.ok
        _check_log(desk, ["scancel", f"{array}_1"])


async def test_whole_array_running_and_waiting(cluster: Cluster, tmp_path: Path) -> None:
    array = _submit(cluster, array="0-9%2", output=f"{cluster.dir}/%A_%a.log")
    cluster.wait_for("the tasks", lambda: cluster.states(array) == {"RUNNING", "PENDING"})
    async with open_desk(tmp_path) as desk:
        dialog = await desk.ask_to_cancel(array)
        assert dialog.action.confirm is ConfirmLevel.TYPE_COUNT
        assert dialog.action.expected_text == "10"
        await desk.press("y")
        assert desk.confirm.query_one("#yes").disabled, "no single key is a yes here"
        await desk.press("backspace")
        await desk.say_yes()
        outcome = await desk.outcome()
        assert set(_truth(cluster, array).values()) == {"CANCELLED"}
        assert outcome.ok
        assert desk.sent == [("scancel", f"{array}_[0-9]")]
        _check_log(desk, ["scancel", f"{array}_[0-9]"])
        assert f"'{array}_[0-9]'" in desk.text, "as it has to be typed into a shell"


async def test_het_job_by_its_leader(cluster: Cluster, tmp_path: Path) -> None:
    script = "#!/bin/bash\n#SBATCH -N1\n#SBATCH hetjob\n#SBATCH -N2\nsleep 900\n"
    job = cluster.submit(script, job_name=_name(cluster))
    cluster.wait_state(job, "RUNNING")
    async with open_desk(tmp_path) as desk:
        dialog = await desk.ask_to_cancel(job)
        assert dialog.action.confirm is ConfirmLevel.TYPE_ID
        assert f"$ scancel {job}" in desk.text
        assert "all of its parts end" in " ".join(desk.text.split())
        await desk.say_yes()
        outcome = await desk.outcome()
        assert _truth(cluster, job) == {f"{job}+0": "CANCELLED", f"{job}+1": "CANCELLED"}
        assert outcome.ok
        _check_log(desk, ["scancel", job])


async def test_thirty_marked_jobs_are_one_call(cluster: Cluster, tmp_path: Path) -> None:
    jobs = [_submit(cluster, hold=True) for _ in range(30)]
    async with open_desk(tmp_path) as desk:
        await desk.filter(f"{_name(cluster)} state:pending")
        await desk.press("g")
        for _ in jobs:
            await desk.press("space")
        assert "30 marked" in desk.head
        await desk.press("K")
        assert "Cancel 30 jobs" in desk.text
        await desk.type("29")
        await desk.press("enter")
        assert "that is not 30: nothing is done" in desk.text
        assert desk.sent == []
        await desk.press("backspace", "backspace")
        await desk.say_yes()
        outcome = await desk.outcome()
        for job in jobs:
            assert _truth(cluster, job) == {job: "CANCELLED"}
        assert outcome.count(Result.DONE) == 30
        assert "30 cancelled" in desk.text
        assert len(desk.sent) == 1, "scancel takes all ids at once"
        assert set(desk.sent[0][1:]) == set(jobs)
        assert len(_check_log(desk, list(desk.sent[0]))["jobs"]) == 30  # type: ignore[arg-type]
        await desk.press("escape")
        await desk.until("no marks", lambda: "marked" not in desk.head)


async def test_what_accounting_says_is_what_was_told(cluster: Cluster, tmp_path: Path) -> None:
    job = _submit(cluster)
    cluster.wait_state(job, "RUNNING")
    async with open_desk(tmp_path) as desk:
        await desk.ask_to_cancel(job)
        await desk.say_yes()
        assert (await desk.outcome()).ok
    cluster.wait_accounting(job, "CANCELLED by")
