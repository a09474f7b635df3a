"""What happens to a job, or to the controller, between the question and the yes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from slurmtop.control.outcome import Result
from tests.cluster.desk import HurriedClock, meanwhile, open_desk, slurmtop
from tests.cluster.faults import Faults
from tests.cluster.fixtures import Cluster, Mine
from tests.cluster.truth import record, states, unmoved
from tests.cluster.ways import WAYS, open_way


def _requeue(cluster: Cluster, job: str) -> Callable[[], None]:
    """Somebody else puts the job back."""

    def act() -> None:
        cluster.run("scontrol", "requeue", job)
        cluster.wait_for("its other run", lambda: record(cluster, job).restarts == 1)

    return act


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "verb",
    [
        "requeue",
        pytest.param("cancel", marks=pytest.mark.long),
        pytest.param("signal", marks=pytest.mark.long),
    ],
)
async def test_another_run_of_the_job_is_left_alone(
    cluster: Cluster, mine: Mine, tmp_path: Path, way: str, verb: str
) -> None:
    job = mine.submit()
    cluster.wait_state(job, "RUNNING")
    async with open_way(way, tmp_path, mine.name) as hands:
        await hands.look(
            verb,
            job,
            signal="USR1",
            to="everything",
            answer="y",
            meanwhile=_requeue(cluster, job),
        )
    assert record(cluster, job).restarts == 1, "the one of somebody else"
    assert states(cluster, job)[job] in ("PENDING", "RUNNING")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("verb", ["hold", pytest.param("signal", marks=pytest.mark.long)])
async def test_job_that_ends_while_the_question_is_open(
    cluster: Cluster, mine: Mine, tmp_path: Path, way: str, verb: str
) -> None:
    job, other = mine.submit(), mine.submit()
    for one in (job, other):
        cluster.wait_state(one, "RUNNING")
    before = unmoved(cluster, other)

    def end() -> None:
        cluster.run("scancel", job)
        cluster.wait_state(job, "CANCELLED")

    async with open_way(way, tmp_path, mine.name) as hands:
        await hands.look(verb, job, signal="USR1", to="everything", answer="y", meanwhile=end)
        assert not any(other in word for argv in hands.commands_run() for word in argv)
    assert states(cluster, job) == {job: "CANCELLED"}
    assert unmoved(cluster, other) == before, "its neighbour"


async def test_job_that_starts_is_not_held(cluster: Cluster, mine: Mine, tmp_path: Path) -> None:
    """What was shown as harmless is something else by now."""
    job = mine.submit(begin="now+1hour")

    def start() -> None:
        cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now")
        cluster.wait_state(job, "RUNNING")

    async with open_way("keys", tmp_path, mine.name) as hands:
        shown = await hands.look("hold", job, answer="y", meanwhile=start)
        assert "started" in shown, shown
        assert hands.commands_run() == []
    assert not record(cluster, job).held


async def test_row_that_moves_is_not_another_one_held(
    cluster: Cluster, mine: Mine, tmp_path: Path
) -> None:
    job, other = mine.submit(begin="now+1hour"), mine.submit(hold=True)
    async with open_desk(tmp_path, query=mine.name) as desk:
        await desk.go_to(job)
        before = [row.key.id for row in desk.jobs.view.rows]
        await desk.press("H")
        await desk.until("a dialog", lambda: "Runs exactly" in desk.text)
        cluster.run("scontrol", "release", other)
        await desk.until(
            "another order", lambda: [row.key.id for row in desk.jobs.view.rows] != before
        )
        await desk.say_yes()
        outcome = await desk.outcome()
        assert [one.target.key.id for one in outcome.jobs] == [job]
    assert record(cluster, job).held
    assert not record(cluster, other).held


@pytest.mark.long
async def test_controller_that_goes_away_leaves_it_open_and_is_asked_again(
    cluster: Cluster, mine: Mine, faults: Faults, tmp_path: Path
) -> None:
    job = mine.submit(begin="now+1hour")
    async with open_desk(tmp_path, query=mine.name, executor_clock=HurriedClock()) as desk:
        await desk.go_to(job)
        await desk.press("H")
        await desk.until("a dialog", lambda: "Runs exactly" in desk.text)
        await meanwhile(faults.kill, "slurmctld")
        await desk.say_yes()
        outcome = await desk.outcome(120)
        assert [one.result for one in outcome.jobs] == [Result.NOT_KNOWN]
        assert f"job {job}: not known" in desk.text
        assert desk.logged()[0]["jobs"][0]["outcome"] == "not known"
        said = slurmtop("hold", job, "--yes", "--json")
        assert said.rc == 1
        assert said.data["jobs"] == []
        assert "controller" in said.data["refused"]
        await meanwhile(faults.start, "slurmctld")
        await desk.press("escape", "r")
        await desk.until("an answer", lambda: desk.app.health.failure is None, 60)
        assert not record(cluster, job).held, "the controller never heard of it"
        assert "pending" in desk.row(job)
