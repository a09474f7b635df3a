"""Names and comments that attack a terminal, a parser or a reader, in real jobs."""

import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from slurmtop.model.ids import JobKey
from slurmtop.model.text import visible
from tests.cluster.desk import Desk, open_desk, slurmtop
from tests.cluster.fixtures import Cluster
from tests.cluster.verdicts import ask

#: Each is the name and the comment of a held job.
NAMES: dict[str, bytes] = {
    "markup": b"[bold]x[/nonsense] [@click=app.quit]y[/]",
    "escape": b"\x1b[2J\x1b[31m\x1b]0;title\x07 esc",
    "newline": b"two\nlines\r\nof text",
    "tab": b"a\tb",
    "bidi": "run\u202egpj.exe\u2066\u200b".encode(),
    "bytes": b"f\xfcr \xff\xfe",
    "separators": b"a\x1fRUNNING\x1fb\x1ec\x1e\n1\x1f2",
    "quotes": b"a|b|c 'q' \"d\" $(id) `id` \\n ; rm -rf x",
    "long": b"n" * 300,
    "cjk": "\u8a13\u7df4\u30b8\u30e7\u30d6\u30fb\u5927\u898f\u6a21".encode(),
    "lines": b"x\n   JobState=COMPLETED Reason=None Dependency=(null)\n   ExitCode=0:0",
    "record": b"x\n\nJobId=1 JobName=y\n   JobState=RUNNING Reason=None\n   RunTime=01:00:00",
}
#: What must not change what is told of a job that failed with exit code 9.
FORGED = (
    b"x\n   JobState=COMPLETED Reason=None Dependency=(null)\n"
    b"   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0\n"
    b"   StdOut=/etc/passwd"
)


class Hostile:
    """One held job for every name; a failed and a running one that claim other things."""

    def __init__(self, cluster: Cluster) -> None:
        self.held = {
            kind: self._submit(cluster, name, "true", hold=True) for kind, name in NAMES.items()
        }
        text = r"\033[2J\033]0;owned\007\342\200\256reversed\n[bold]step 1[/bold]\n"
        self.running = self._submit(
            cluster,
            b"x\n   JobState=FAILED Reason=NonZeroExitCode\n   ExitCode=9:0",
            f"printf '{text}'; sleep 900",
        )
        self.failed = self._submit(cluster, FORGED, "echo out of luck; exit 9")
        cluster.wait_state(self.running, "RUNNING")
        cluster.wait_state(self.failed, "FAILED")

    @staticmethod
    def _submit(cluster: Cluster, name: bytes, command: str, **options: str | int | bool) -> str:
        text = os.fsdecode(name)
        return cluster.submit(command, job_name=text, comment=text, **options)

    @property
    def ids(self) -> list[str]:
        return [*self.held.values(), self.running]


@pytest.fixture(scope="module")
def hostile(cluster: Cluster) -> Iterator[Hostile]:
    made = Hostile(cluster)
    try:
        yield made
    finally:
        cluster.run("scancel", *made.ids, check=False)


def _harmless(text: str) -> None:
    """No character that a terminal would act on or that hides itself."""
    for line in text.split("\n"):
        assert line.isprintable(), ascii(line)
        assert visible(line) == line, ascii(line)


def _shown(name: bytes) -> str:
    """The name as it may be shown, up to where a column would cut it."""
    return visible(name.decode(errors="replace"))


def _job_id(desk: Desk, job: str) -> None:
    found = desk.app.book.get(JobKey("", job))
    assert found is not None
    assert found.id.text == job


async def test_jobs_screen(hostile: Hostile, tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        _harmless(desk.text)
        assert desk.app.health.bad_records == 0
        for kind, job in hostile.held.items():
            _job_id(desk, job)
            row = desk.row(job)
            assert "pending" in row, (kind, row)
            assert "Held by the owner" in row, (kind, row)
            assert _shown(NAMES[kind])[:8] in row, (kind, row)
        assert "FAILED" in desk.row(hostile.failed)
        assert "running" in desk.row(hostile.running)
        assert set(desk.ids()) >= {*hostile.ids, hostile.failed}
        truth = [text for text in desk.ids() if text in ("1", "99")]
        assert truth == [], "no job that a name made up"


async def test_job_screen(cluster: Cluster, hostile: Hostile, tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        for kind, job in hostile.held.items():
            await desk.open_job(job)
            head = "\n".join(desk.text.splitlines()[:5])
            assert f"Job {job}  {_shown(NAMES[kind])[:40]}" in head, (kind, head)
            assert "waits in the queue" in head
            assert "reason JobHeldUser" in head
            detail = desk.job.facts.detail if desk.job.facts else None
            assert detail is not None, kind
            assert detail.job.state.word == "PENDING", kind
            assert f"scontrol release {job}" in desk.text
            _harmless(desk.text)
            await desk.press("escape")
        await desk.open_job(hostile.running)
        assert "running" in desk.text.splitlines()[0]
        await desk.show_tab("Logs")
        await desk.shows("[bold]step 1[/bold]", str(cluster.log(hostile.running)))
        assert "‹202E›reversed" in desk.text
        _harmless(desk.text)
        await desk.press("escape")
        await desk.open_job(hostile.failed)
        assert "failed" in desk.text.splitlines()[0]
        await desk.shows("exit code 9", str(cluster.log(hostile.failed)))
        assert "/etc/passwd" not in desk.text.replace(_shown(FORGED), "")


def test_why(cluster: Cluster, hostile: Hostile) -> None:
    with ThreadPoolExecutor(3) as pool:
        answers = dict(zip(hostile.held, pool.map(ask, hostile.held.values()), strict=True))
    for kind, answer in answers.items():
        job = hostile.held[kind]
        assert (answer.rc, answer.state) == (0, "pending"), kind
        assert answer.summary.startswith("held"), kind
        assert answer.lines["do"].startswith(f"scontrol release {job}"), kind
    running = ask(hostile.running)
    assert running.rc == 0
    assert running.ended_by is None
    # It trains nothing: idle is true of it as well.
    assert running.state in ("healthy", "idle", "unknown")
    failed = ask(hostile.failed)
    assert (failed.rc, failed.state) == (2, "failed")
    assert "exit code 9" in failed.summary
    assert any("ExitCode=9:0" in item["text"] for item in failed.data["evidence"])
    for step in failed.data["next"]:
        assert "/etc/passwd" not in step["command"]
    assert str(cluster.log(hostile.failed)) in str(failed.data["next"])


def test_jobs_for_scripts(hostile: Hostile) -> None:
    as_json = slurmtop("jobs", "--json")
    assert as_json.rc == 0
    assert as_json.err == ""
    by_id = {job["id"]: job for job in as_json.data["jobs"]}
    for kind, job in hostile.held.items():
        found = by_id[job]
        assert (found["state"], found["reason"]) == ("PENDING", "JobHeldUser"), kind
        if kind != "separators":
            assert found["name"] == NAMES[kind].decode(errors="replace"), kind
            assert found["comment"] == found["name"], kind
    assert by_id[hostile.failed]["state"] == "FAILED"
    assert by_id[hostile.running]["state"] == "RUNNING"
    table = slurmtop("jobs")
    assert table.rc == 0
    assert table.err == ""
    _harmless(table.out)
    for job in hostile.ids:
        assert len(re.findall(rf"(?m)^{job} ", table.out)) == 1


async def test_cancel_dialog(cluster: Cluster, hostile: Hostile, tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        for kind, job in hostile.held.items():
            dialog = await desk.ask_to_cancel(job)
            assert dialog.action.argvs == (("scancel", job),), kind
            assert f"$ scancel {job}" in desk.text, kind
            _harmless(desk.text)
            await desk.press("escape")
        victim = hostile.held.pop("separators")
        await desk.ask_to_cancel(victim)
        await desk.say_yes()
        outcome = await desk.outcome()
        assert outcome.ok
        _harmless(desk.text)
        assert desk.sent == [("scancel", victim)]
        assert desk.logged()[0]["jobs"][0]["job"] == victim
    assert cluster.states(victim) == {"CANCELLED"}
    for job in hostile.held.values():
        assert cluster.states(job) == {"PENDING"}
