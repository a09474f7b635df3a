"""The Jobs screen over the real queue: what every kind of job looks like, and the keys."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.desk import Desk, open_desk
from tests.cluster.faults import Faults
from tests.cluster.fixtures import Cluster

#: Reason word of squeue -> the words that the screen must have for it.
PLAIN = {
    "JobHeldUser": "Held by the owner",
    "BeginTime": "--begin time is not reached",
    "Resources": "the nodes it needs are busy",
    "Priority": "Other jobs are ahead",
    "Dependency": "Waits for the jobs named in --dependency",
    "DependencyNeverSatisfied": "can no longer be met",
}


class Scene:
    """Jobs of alice, one of every kind that the screen tells apart."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, submit = cluster, cluster.submit
        self.tag = tag = f"{cluster.tag}j"
        self.running = submit(
            "sleep 3000", job_name=f"{tag}-run", gres="gpu:h100:2", nodelist="gpu01", time=50
        )
        self.failed = submit("exit 3", job_name=f"{tag}-fail")
        self.done = submit("true", job_name=f"{tag}-done")
        self.het = submit(
            "#!/bin/bash\n#SBATCH -N1 --gres=gpu:h100:1\n#SBATCH hetjob\n#SBATCH -N2\nsleep 900\n",
            job_name=f"{tag}-het",
        )
        self.array = submit(
            "sleep 900", job_name=f"{tag}-array", array="0-5%2", output=f"{cluster.dir}/%A-%a.log"
        )
        # What waits for nodes must not make these wait as well.
        cluster.wait_state(self.het, "RUNNING")
        cluster.wait_for("two tasks", lambda: cluster.states(self.array) == {"RUNNING", "PENDING"})
        after = f"afterok:{self.running}"
        never = f"afterok:{self.failed}"
        self.by_reason = {
            "JobHeldUser": submit("true", job_name=f"{tag}-held", hold=True),
            "BeginTime": submit("true", job_name=f"{tag}-begin", begin="now+1hour"),
            "Resources": submit("true", job_name=f"{tag}-big", nodes=4, gres="gpu:h100:8"),
            "Priority": submit("true", job_name=f"{tag}-next", nodes=4, gres="gpu:h100:8"),
            "Dependency": submit("true", job_name=f"{tag}-dep", dependency=after),
            "DependencyNeverSatisfied": submit("true", job_name=f"{tag}-never", dependency=never),
        }
        self.many = submit("true", job_name=f"{tag}-many", hold=True, array="0-9999%50")

    @property
    def ids(self) -> list[str]:
        named = (self.running, self.failed, self.done, self.many, self.array, self.het)
        return [*named, *self.by_reason.values()]

    def wait(self) -> None:
        cluster = self._cluster
        cluster.wait_state(self.running, "RUNNING")
        cluster.wait_state(self.failed, "FAILED")
        for word, job in self.by_reason.items():
            cluster.wait_reason(job, word)


@pytest.fixture(scope="module")
def scene(cluster: Cluster) -> Iterator[Scene]:
    made = Scene(cluster)
    try:
        made.wait()
        yield made
    finally:
        cluster.run("scancel", *made.ids, check=False)


def _ours(desk: Desk, tag: str) -> list[str]:
    """The names of the scene's rows, from top to bottom."""
    return [word for word in desk.text.split() if word.startswith(f"{tag}-")]


async def test_every_job_has_its_row_and_its_reason(scene: Scene, tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        running = desk.row(scene.running)
        assert "running" in running
        assert "gpu01" in running
        assert f"{scene.tag}-run" in running
        assert " 2 " in running, "its GPUs"
        for word, job in scene.by_reason.items():
            assert PLAIN[word] in desk.row(job), desk.text
            assert "pending" in desk.row(job)
        assert f"afterok:{scene.running}" in desk.row(scene.by_reason["Dependency"])
        failed = desk.row(scene.failed)
        assert "FAILED" in failed
        assert "done" in desk.row(scene.done)
        het = desk.row(scene.het)
        assert "het, 2 parts: 2 R" in het
        assert " 3 " in het, "the nodes of both parts"
        array = desk.row(scene.array)
        assert "2 R  4 waiting" in array
        assert desk.text.count(f"{scene.tag}-array") == 1
        assert "answered" in desk.head
        assert desk.app.services.user in desk.head


async def test_ten_thousand_tasks_are_one_row_and_one_record(scene: Scene, tmp_path: Path) -> None:
    """Also where the person's own settings would have squeue print every task."""
    environ = {"SQUEUE_ARRAY": "1", "SLURM_BITSTR_LEN": "64"}
    async with open_desk(tmp_path, environ=environ) as desk:
        row = desk.row(scene.many)
        assert f"{scene.many}_[…]" in row
        assert re.search("10,?000 waiting, 50 at once", row)
        assert desk.text.count(f"{scene.tag}-many") == 1
        answers = desk.wire.answers_of("squeue")
        assert answers
        for done in answers:
            assert done.stdout.count(f"{scene.many}_".encode()) == 1
            records = done.stdout.count(desk.wiring.mark)
            assert records == len(desk.app.book.jobs)
            assert len(done.stdout) < 1_000 * records
        assert all("-r" not in argv for argv in desk.wire.asked_of("squeue"))


async def test_a_group_opens_and_closes(scene: Scene, tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        await desk.go_to(scene.array)
        await desk.press("enter")
        await desk.shows(f"{scene.array}_0", f"{scene.array}_1", f"{scene.array}_[…]")
        assert desk.text.count(f"{scene.tag}-array") == 4
        assert "throttle" in next(
            line for line in desk.text.splitlines() if "_[…]" in line and scene.array in line
        )
        await desk.press("j", "o")
        assert desk.text.count(f"{scene.tag}-array") == 1
        assert desk.cursor() == scene.array


async def test_a_shows_everybodys_jobs(
    cluster: Cluster, scene: Scene, faults: Faults, tmp_path: Path
) -> None:
    theirs = faults.submit_other(name=f"{scene.tag}-theirs")
    async with open_desk(tmp_path) as desk:
        assert f"{scene.tag}-theirs" not in desk.text
        await desk.press("a")
        await desk.shows("everybody", f"{scene.tag}-theirs")
        other = desk.row(theirs)
        assert cluster.users[1] in other
        assert desk.row(scene.running)
        await desk.press("a")
        await desk.until("own jobs only", lambda: f"{scene.tag}-theirs" not in desk.text)
        assert desk.row(scene.running)


async def test_filter_and_sort(scene: Scene, tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        before = len(desk.ids())
        await desk.filter(f"{scene.tag}-held")
        assert desk.ids() == [scene.by_reason["JobHeldUser"]]
        await desk.press("escape")
        assert len(desk.ids()) == before
        await desk.filter(f"state:running {scene.tag}")
        assert {text.partition("_")[0] for text in desk.ids()} == {
            scene.running,
            scene.array,
            scene.het,
        }
        await desk.press("escape")
        await desk.filter(scene.tag)
        await desk.press("s")
        assert "by id" in desk.head
        numbers = [int(text.partition("_")[0]) for text in desk.ids()]
        assert numbers == sorted(numbers)
        assert len(numbers) == len(scene.ids)
        await desk.press("i")
        numbers = [int(text.partition("_")[0]) for text in desk.ids()]
        assert numbers == sorted(numbers, reverse=True)
        await desk.press("i", "s")
        assert "by name" in desk.head
        assert _ours(desk, scene.tag) == sorted(_ours(desk, scene.tag))


async def test_only_what_needs_somebody(scene: Scene, tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        await desk.press("exclamation_mark")
        shown = set(desk.ids())
        needs = {scene.failed, scene.by_reason["JobHeldUser"], f"{scene.many}_[…]"}
        assert needs | {scene.by_reason["DependencyNeverSatisfied"]} <= shown
        assert not shown & {scene.running, scene.done, scene.by_reason["Resources"]}


async def test_cursor_and_marks_stay_with_their_jobs_when_rows_move(
    cluster: Cluster, scene: Scene, tmp_path: Path
) -> None:
    older, held, newer = (
        cluster.submit("sleep 300", job_name=f"{scene.tag}-move", hold=True, time=5)
        for _ in range(3)
    )
    try:
        async with open_desk(tmp_path) as desk:
            await desk.go_to(held)
            await desk.press("space")
            await desk.go_to(newer)
            await desk.press("space")
            await desk.go_to(held)
            assert "2 marked" in desk.head
            cluster.run("scontrol", "release", older, newer)
            await desk.until(
                "two running", lambda: all("running" in desk.row(job) for job in (older, newer))
            )
            above = desk.ids()[: desk.ids().index(held)]
            assert {older, newer} <= set(above), "what runs stands above what waits"
            assert desk.cursor() == held
            assert desk.row(held).startswith(">*")
            assert desk.row(newer).startswith(" *")
            assert desk.row(older).startswith("  ")
    finally:
        cluster.run("scancel", older, held, newer)
