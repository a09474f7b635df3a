"""What is written down of an action, what is not done without it, and what read-only forbids."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from slurmtop.control.actions import Kind
from slurmtop.ui.screens.confirm import ConfirmScreen
from slurmtop.ui.screens.outcome import OutcomeScreen
from slurmtop.ui.screens.unlogged import UnloggedScreen
from tests.cluster.desk import Said, open_desk, slurmtop
from tests.cluster.fixtures import Cluster, Mine
from tests.cluster.truth import record, states, unmoved
from tests.cluster.ways import WAYS, open_way

VERBS = ("cancel", "requeue", "hold", "release", "signal")
#: The keys that act, and what each of them would do.
KEYS = ("K", "C", "S", "R", "H", "U", "T", "D")


def _log(state: Path) -> Path:
    return state / "slurmtop" / "actions.jsonl"


def _lines(state: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in _log(state).read_text().splitlines()]


def _command(state: Path, *arguments: str) -> Said:
    return slurmtop(*arguments, environ={"XDG_STATE_HOME": str(state)})


@pytest.mark.parametrize("way", WAYS)
async def test_two_lines_tell_who_asked_for_what_and_what_became_of_it(
    cluster: Cluster, mine: Mine, tmp_path: Path, way: str
) -> None:
    job = mine.submit(begin="now+1hour")
    async with open_way(way, tmp_path, mine.name) as hands:
        await hands.act("hold", job)
        await hands.act("release", job)
    lines = _lines(tmp_path)
    assert [line["event"] for line in lines] == ["asked", "outcome"] * 2
    for at, (kind, argv, word) in enumerate(
        [
            (Kind.HOLD, ["scontrol", "hold", job], "held"),
            (Kind.RELEASE, ["scontrol", "release", job], "released"),
        ]
    ):
        asked, outcome = lines[2 * at : 2 * at + 2]
        assert asked["id"] == outcome["id"]
        for line in (asked, outcome):
            assert line["who"] == cluster.user
            assert line["kind"] == kind
            assert line["commands"] == [argv]
        assert [one["job"] for one in asked["jobs"]] == [job]
        assert [(one["job"], one["outcome"]) for one in outcome["jobs"]] == [(job, word)]
    assert stat.S_IMODE(_log(tmp_path).stat().st_mode) == 0o600
    assert stat.S_IMODE(_log(tmp_path).parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("way", WAYS)
async def test_a_dry_run_shows_the_commands_and_changes_nothing(
    cluster: Cluster, mine: Mine, tmp_path: Path, way: str
) -> None:
    job = mine.submit()
    cluster.wait_state(job, "RUNNING")
    before = unmoved(cluster, job)
    async with open_way(way, tmp_path, mine.name, dry_run=True) as hands:
        for verb in ("cancel", "requeue", "hold", "signal"):
            told = await hands.act(verb, job, signal="USR1")
            assert not told.done, told
            assert "dry run" in told.words, told
            assert "nothing was done" in told.words, told
        assert hands.commands_run() == []
    assert unmoved(cluster, job) == before


async def test_a_log_that_cannot_be_written_is_asked_about_once_more(
    cluster: Cluster, mine: Mine, tmp_path: Path
) -> None:
    job = mine.submit(hold=True)
    blocked = tmp_path / "slurmtop"
    blocked.write_text("in the way of the folder\n")
    async with open_desk(tmp_path, query=mine.name) as desk:
        for again in ("escape", "enter"):
            await desk.ask_to_cancel(job)
            await desk.say_yes()
            await desk.until("one more question", lambda: _asks_again(desk.app.screen))
            await desk.press(again)
            await desk.pilot.pause()
            assert desk.sent == [], "no is the default"
            await desk.press("escape")
        assert states(cluster, job) == {job: "PENDING"}
        await desk.ask_to_cancel(job)
        await desk.say_yes()
        await desk.until("one more question", lambda: _asks_again(desk.app.screen))
        await desk.press("y")
        outcome = await desk.outcome()
        assert outcome.ok
    assert states(cluster, job) == {job: "CANCELLED"}
    assert blocked.is_file()


def _asks_again(screen: object) -> bool:
    return isinstance(screen, UnloggedScreen)


async def test_a_command_does_nothing_without_its_log(
    cluster: Cluster, mine: Mine, tmp_path: Path
) -> None:
    job = mine.submit(hold=True)
    (tmp_path / "slurmtop").write_text("in the way of the folder\n")
    done = _command(tmp_path, "cancel", job, "--yes", "--json")
    assert done.rc == 1
    assert done.data["ok"] is False
    assert "log" in done.data["log_trouble"]
    assert states(cluster, job) == {job: "PENDING"}
    done = _command(tmp_path, "cancel", job, "--yes", "--json", "--without-log")
    assert done.rc == 0, done
    assert [one["outcome"] for one in done.data["jobs"]] == ["done"]
    assert states(cluster, job) == {job: "CANCELLED"}


async def test_without_a_yes_a_command_does_nothing(
    cluster: Cluster, mine: Mine, tmp_path: Path
) -> None:
    job = mine.submit(hold=True)
    for verb in ("cancel", "release"):
        done = _command(tmp_path, verb, job)
        assert done.rc not in (0, None)
        assert "--yes" in done.err
    assert (states(cluster, job), record(cluster, job).held) == ({job: "PENDING"}, True)
    assert not _log(tmp_path).exists()


async def test_read_only_refuses_every_key_twice(
    cluster: Cluster, mine: Mine, tmp_path: Path
) -> None:
    """Once where the key is pressed, and once more where all actions are carried out."""
    job = mine.submit()
    cluster.wait_state(job, "RUNNING")
    before = unmoved(cluster, job)
    async with open_desk(tmp_path, query=mine.name) as desk:
        # A dialog that was made while acting was allowed.
        dialog = await desk.ask_to_cancel(job)
        action = dialog.action
        await desk.press("escape")
    async with open_desk(tmp_path, query=mine.name, read_only=True) as desk:
        for where in ("Jobs", "Job"):
            await desk.go_to(job) if where == "Jobs" else await desk.open_job(job)
            depth = len(desk.app.screen_stack)
            for key in KEYS:
                for _ in range(2):
                    await desk.press(key)
                    await desk.pilot.pause()
                    assert not isinstance(desk.app.screen, ConfirmScreen), (where, key)
                    if len(desk.app.screen_stack) > depth:
                        assert isinstance(desk.app.screen, OutcomeScreen), (where, key)
                        assert "read-only" in desk.text, (where, key)
                        await desk.press("escape")
                    assert len(desk.app.screen_stack) == depth, (where, key)
        outcome = await desk.app.services.executor.execute(action)
        assert outcome.refused is not None
        assert "read-only" in outcome.refused
        assert desk.acted() == []
        assert desk.logged() == []
    assert unmoved(cluster, job) == before


@pytest.mark.parametrize("verb", VERBS)
def test_read_only_refuses_every_command(
    cluster: Cluster, mine: Mine, tmp_path: Path, verb: str
) -> None:
    job = mine.submit(hold=verb == "release")
    cluster.wait_state(job, "PENDING" if verb == "release" else "RUNNING")
    before = unmoved(cluster, job)
    more = ("--signal", "USR1") if verb == "signal" else ()
    config = tmp_path / "config.yaml"
    config.write_text("read_only: true\n")
    for said in (
        _command(tmp_path, verb, job, *more, "--yes", "--json", "--read-only"),
        _command(tmp_path, verb, job, *more, "--yes", "--json", "--config", str(config)),
    ):
        assert said.rc == 1, said
        assert "read-only" in said.out + said.err, said
    assert unmoved(cluster, job) == before
    assert not _log(tmp_path).exists()
