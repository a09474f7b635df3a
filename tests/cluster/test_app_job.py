"""The Job screen over real jobs: header, logs that grow, are cut and replaced, script."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurmtop.model.facts import LogStatus
from tests.cluster.desk import Desk, open_desk
from tests.cluster.faults import Faults
from tests.cluster.fixtures import Cluster

#: Prints one more line each time the test makes the next file.
OBEDIENT = """\
#!/bin/bash
# comment of the batch script
echo "line one"
echo "words on stderr" >&2
for word in two three four; do
    while [ ! -e "$GO-$word" ]; do sleep 0.1; done
    echo "line $word"
done
sleep 600
"""
TRAIN = """\
def load(path):
    raise ValueError(f"shard {path} is empty")

load("data-07")
"""
LINES = 20_000


class Pages:
    """The jobs of this file; what takes long to happen is begun first."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, tag = cluster, cluster.tag
        self.go = cluster.dir / "go"
        environ = f"ALL,GO={self.go}"
        self.again = cluster.submit(
            "echo attempt ${SLURM_RESTART_COUNT:-0}; sleep 900",
            job_name=f"{tag}-again",
            open_mode="append",
        )
        self.talks = cluster.submit(
            OBEDIENT,
            job_name=f"{tag}-talks",
            export=environ,
            open_mode="append",
            error=f"{cluster.dir}/%j.err",
            nodes=2,
            gres="gpu:h100:4",
            time="1:30:00",
        )
        train = cluster.dir / "train.py"
        train.write_text(TRAIN)
        self.broken = cluster.submit(
            f"seq -f 'step %.0f ok' {LINES}; python3 {train}; rc=$?;"
            f" seq -f 'shutting down %.0f' {LINES}; exit $rc",
            job_name=f"{tag}-broken",
        )
        cluster.wait_state(self.again, "RUNNING")
        cluster.wait_for("its first line", lambda: self.again_log == "attempt 0\n")
        cluster.run("scontrol", "requeue", self.again)

    @property
    def again_log(self) -> str:
        log = self.cluster.log(self.again)
        return log.read_text() if log.exists() else ""

    def say(self, word: str) -> None:
        """Let the obedient job go on."""
        Path(f"{self.go}-{word}").touch()

    def show(self, job: str) -> dict[str, str]:
        """``scontrol show job``, field by field."""
        text = self.cluster.run("scontrol", "-o", "show", "job", job).stdout
        return dict(pair.partition("=")[::2] for pair in text.split() if "=" in pair)


@pytest.fixture(scope="module")
def pages(cluster: Cluster) -> Iterator[Pages]:
    made = Pages(cluster)
    try:
        yield made
    finally:
        cluster.run("scancel", made.again, made.talks, check=False)


async def _logs(desk: Desk, job: str) -> None:
    """Open a job's Logs tab and wait until the log has been read."""
    await desk.open_job(job)
    await desk.show_tab("Logs")
    await desk.until("a log", lambda: desk.job.logs._status() is LogStatus.READ)


def _seconds(text: str) -> int:
    """``1:02:03`` or ``02:03`` in seconds."""
    total = 0
    for part in text.split(":"):
        total = total * 60 + int(part)
    return total


async def test_header_equals_scontrol(cluster: Cluster, pages: Pages, tmp_path: Path) -> None:
    cluster.wait_state(pages.talks, "RUNNING")
    async with open_desk(tmp_path) as desk:
        await desk.open_job(pages.talks)
        head = "\n".join(desk.text.splitlines()[:5])
        truth = pages.show(pages.talks)
    assert f"Job {pages.talks}  {truth['JobName']}" in head
    assert truth["JobState"] == "RUNNING"
    assert "running" in head
    assert truth["UserId"].partition("(")[0] in head
    assert f"{truth['NumNodes']} nodes {truth['NodeList']}" in head
    assert "gres/gpu=8" in truth["TRES"]
    assert "8 GPUs (h100)" in head
    assert f"partition {truth['Partition']}" in head
    assert f"account {truth['Account']}" in head
    assert f"qos {truth['QOS']}" in head
    assert f"restarts {truth['Restarts']}" in head
    limit = re.search(r"limit ([\d:]+)", head)
    assert limit is not None
    assert _seconds(limit.group(1)) == _seconds(truth["TimeLimit"]) == 5_400
    ran = re.search(r"elapsed ([\d:]+)", head)
    assert ran is not None
    assert abs(_seconds(ran.group(1)) - _seconds(truth["RunTime"])) <= 2
    left = re.search(r"left ([\d:]+)", head)
    assert left is not None
    assert abs(_seconds(left.group(1)) + _seconds(truth["RunTime"]) - 5_400) <= 2
    assert f"submitted {truth['SubmitTime'].partition('T')[2]}" in head
    assert f"started {truth['StartTime'].partition('T')[2]}" in head


async def test_log_grows_is_cut_and_is_replaced(
    cluster: Cluster, pages: Pages, tmp_path: Path
) -> None:
    log = cluster.log(pages.talks)
    async with open_desk(tmp_path) as desk:
        await _logs(desk, pages.talks)
        await desk.shows("line one", "following", str(log))
        pages.say("two")
        await desk.shows("line two")
        os.truncate(log, 0)
        pages.say("three")
        await desk.shows("this log was cut short at", "line three")
        # As a script does that keeps old logs; the job itself still writes to the old file.
        log.rename(log.with_suffix(".old"))
        log.write_text("line of the new file\n")
        await desk.shows("this log was replaced at", "line of the new file")
        await desk.press("l")
        await desk.shows("words on stderr", f"{pages.talks}.err")
        assert "line of the new file" not in desk.text
        await desk.press("l")
        await desk.shows("line of the new file")


async def test_script_is_the_one_that_was_submitted(pages: Pages, tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        await desk.open_job(pages.talks)
        await desk.show_tab("Script")
        await desk.shows("# comment of the batch script")
        for number, line in enumerate(OBEDIENT.splitlines(), 1):
            assert re.search(rf"(?m)^ *{number}  {re.escape(line)}", desk.text), line


async def test_first_error_of_a_failed_job(cluster: Cluster, pages: Pages, tmp_path: Path) -> None:
    cluster.wait_state(pages.broken, "FAILED")
    lines = cluster.log(pages.broken).read_text().splitlines()
    number = lines.index("ValueError: shard data-07 is empty") + 1
    assert LINES < number < LINES + 20
    async with open_desk(tmp_path) as desk:
        await _logs(desk, pages.broken)
        await desk.shows(f"shutting down {LINES}")
        await desk.press("E")
        await desk.shows("ValueError: shard data-07 is empty", f"line {number:,}")
        hit = desk.job.logs.view.hit
        assert hit is not None
        assert (hit.text, hit.number) == ("ValueError: shard data-07 is empty", number)
        assert "in load" in desk.text, "the traceback above it is in sight"
        await desk.press("G")
        await desk.shows(f"shutting down {LINES}")
        await desk.press("slash")
        await desk.type("step 777 ok")
        await desk.press("enter")
        await desk.shows("step 777 ok")


async def test_others_log_and_script_say_who_can(
    cluster: Cluster, faults: Faults, tmp_path: Path
) -> None:
    other = cluster.users[1]
    theirs = faults.submit_other(name=f"{cluster.tag}-private", private_log=True)
    cluster.wait_state(theirs, "RUNNING")
    log = cluster.layout.shared / f"other-{theirs}.log"
    cluster.wait_for("the log", log.exists)
    assert log.stat().st_mode & 0o777 == 0o600
    async with open_desk(tmp_path, all_users=True) as desk:
        await desk.open_job(theirs)
        assert f"its owner {other} may" in " ".join(desk.text.split())
        await desk.show_tab("Logs")
        await desk.shows(f"You may not read {log}", f"{other} can")
        assert "private" not in desk.text.replace(f"{cluster.tag}-private", "")
        await desk.show_tab("Script")
        await desk.shows("You may not read the batch script", "only the owner of the job")


async def test_requeued_job_shows_its_restart_and_both_attempts(
    cluster: Cluster, pages: Pages, tmp_path: Path
) -> None:
    async with open_desk(tmp_path) as desk:
        await desk.open_job(pages.again)
        await desk.until(
            "the second attempt", lambda: "restarts 1" in desk.text and "running" in desk.text, 60
        )
        assert pages.show(pages.again)["Restarts"] == "1"
        await desk.show_tab("Logs")
        await desk.shows("attempt 0", "attempt 1", deadline_s=60)
        assert "attempt 0" in pages.again_log
        await desk.press("escape")
        assert "attempt 2" in desk.row(pages.again)
