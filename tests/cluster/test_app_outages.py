"""Parts of Slurm fail under the open app: never an empty table, never stale as fresh."""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.desk import Desk, meanwhile, open_desk
from tests.cluster.faults import Faults
from tests.cluster.fixtures import Cluster

#: A squeue earlier in PATH: odd while a file is there, else the real one at once.
STAND_IN = """\
#!/bin/sh
if [ -e "$ODD_FOLDER/slow" ]; then sleep 7; fi
if [ -e "$ODD_FOLDER/limited" ]; then
    echo 'squeue: RPC rate limited 1 time(s). Sleeping then trying again.' >&2
    sleep 3
    echo 'squeue: RPC rate limited 2 time(s). Sleeping then trying again.' >&2
fi
if [ -e "$ODD_FOLDER/refused" ]; then
    echo 'slurm_load_jobs error: Rate limit exceeded, please retry later' >&2
    exit 1
fi
exec {real} "$@"
"""


class Watched:
    """The jobs whose rows must stay."""

    def __init__(self, cluster: Cluster) -> None:
        self.running = cluster.submit("sleep 900", job_name=f"{cluster.tag}-stays")
        self.held = cluster.submit("true", job_name=f"{cluster.tag}-waits", hold=True)
        self.failed = cluster.submit("exit 7", job_name=f"{cluster.tag}-seven")
        cluster.wait_state(self.running, "RUNNING")
        cluster.wait_state(self.failed, "FAILED")

    def all_shown(self, desk: Desk) -> bool:
        ids = desk.ids()
        return all(job in ids for job in (self.running, self.held, self.failed))


@pytest.fixture(scope="module")
def watched(cluster: Cluster) -> Iterator[Watched]:
    made = Watched(cluster)
    try:
        yield made
    finally:
        cluster.run("scancel", made.running, made.held, check=False)


def _is_old(desk: Desk) -> bool:
    """Are the rows painted as old?"""
    return desk.jobs._rows.old


async def _fresh(desk: Desk, watched: Watched) -> None:
    await desk.until(
        "fresh rows",
        lambda: "answered" in desk.head and not _is_old(desk) and watched.all_shown(desk),
        60,
    )


async def test_stopped_controller_shows_while_the_call_is_in_flight(
    watched: Watched, faults: Faults, tmp_path: Path
) -> None:
    """At the real interval: the words come long before squeue itself gives up."""
    async with open_desk(tmp_path, interval_s=20) as desk:
        await _fresh(desk, watched)
        await desk.until("time for another key", lambda: desk.app.feed.refresh_now())
        faults.stop("slurmctld")
        await desk.until("the key", lambda: desk.app.feed.refresh_now())
        await desk.until(
            "words in the header",
            lambda: re.search(r"no answer for \d+ s", desk.head) is not None,
            20,
        )
        assert desk.app.health.asking_since is not None, "the call has not ended yet"
        assert desk.app.health.failure is None
        assert watched.all_shown(desk)
        assert not _is_old(desk), "they are younger than one interval"
        # Keys go on working while Slurm is silent.
        await desk.go_to(watched.held)
        assert desk.cursor() == watched.held
        faults.cont("slurmctld")
        await _fresh(desk, watched)
        await desk.until("nothing in flight", lambda: "no answer" not in desk.head)


async def test_killed_controller_is_told_with_reason_and_time(
    cluster: Cluster, watched: Watched, faults: Faults, tmp_path: Path
) -> None:
    async with open_desk(tmp_path) as desk:
        await _fresh(desk, watched)
        last_good = desk.app.book.sampled_at
        await meanwhile(faults.kill, "slurmctld")
        await desk.until("a failure", lambda: desk.app.health.failure is not None, 40)
        await desk.shows("stale: last answer")
        head = " ".join(desk.head.split())
        assert re.search(r"stale: last answer \d+ s ago; ", head)
        assert "controller" in head
        assert re.search(r"since \d\d:\d\d", head)
        assert _is_old(desk)
        assert watched.all_shown(desk)
        assert desk.app.book.sampled_at is not None
        assert last_good is not None
        # A job that is opened now says so, too, and offers nothing that is not known.
        await desk.go_to(watched.running)
        await desk.press("enter")
        await desk.shows("! no answer, data")
        await desk.press("escape")
        await meanwhile(faults.start, "slurmctld")
        await _fresh(desk, watched)
        assert cluster.states(watched.running) == {"RUNNING"}
        assert "running" in desk.row(watched.running)


async def test_first_answer_that_never_came_is_no_empty_queue(
    watched: Watched, faults: Faults, tmp_path: Path
) -> None:
    """Started while munged is down: words in the place of rows, then the rows."""
    faults.kill("munged")
    async with open_desk(tmp_path, answered=False) as desk:
        assert "No jobs" not in desk.text
        await desk.until("a failure", lambda: desk.app.health.failure is not None, 40)
        await desk.shows("Slurm has not answered", "This is not an empty queue")
        assert "munge" in desk.text.lower()
        assert "no count yet" in desk.head
        assert "No jobs" not in desk.text
        await meanwhile(faults.start, "munged")
        # By itself it asks again after a minute; whoever has mended munge need not wait.
        await desk.press("r")
        await _fresh(desk, watched)


async def test_killed_munged_under_the_app(
    watched: Watched, faults: Faults, tmp_path: Path
) -> None:
    async with open_desk(tmp_path) as desk:
        await _fresh(desk, watched)
        await meanwhile(faults.kill, "munged")
        await desk.until("the reason", lambda: "munge" in desk.head, 40)
        assert "stale: last answer" in desk.head
        assert _is_old(desk)
        assert watched.all_shown(desk)
        await meanwhile(faults.start, "munged")
        # By itself it asks again after a minute; whoever has mended munge need not wait.
        await desk.press("r")
        await _fresh(desk, watched)


@pytest.mark.long
async def test_killed_slurmdbd_costs_only_the_past(
    watched: Watched, faults: Faults, tmp_path: Path
) -> None:
    async with open_desk(tmp_path) as desk:
        await _fresh(desk, watched)
        await meanwhile(faults.kill, "slurmdbd")
        good = desk.app.book.sampled_at
        assert good is not None
        await desk.until("another answer", lambda: desk.app.book.sampled_at > good)  # type: ignore[operator]
        assert "answered" in desk.head
        await desk.open_job(watched.failed)
        await desk.shows("exit code 7", "Not read", f"sacct -j {watched.failed}")
        assert "accounting" in desk.text.lower()


def _stand_in(folder: Path) -> dict[str, str]:
    """Environment in which ``squeue`` is the odd one."""
    real = next(
        Path(part, "squeue") for part in os.get_exec_path() if Path(part, "squeue").exists()
    )
    program = folder / "bin" / "squeue"
    program.parent.mkdir()
    program.write_text(STAND_IN.replace("{real}", str(real)))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {"PATH": f"{program.parent}:{os.environ['PATH']}", "ODD_FOLDER": str(folder)}


async def test_slow_squeue_is_waited_for_and_asked_less_often(
    watched: Watched, tmp_path: Path
) -> None:
    async with open_desk(tmp_path, environ=_stand_in(tmp_path)) as desk:
        await _fresh(desk, watched)
        (tmp_path / "slow").touch()
        asked = len(desk.wire.asked_of("squeue"))
        await desk.until("slow", lambda: "no answer for" in desk.head, 20)
        assert watched.all_shown(desk)
        assert not any(done.timed_out for done in desk.wire.answers_of("squeue"))
        await desk.until("its answer", lambda: (desk.app.health.took_s or 0) > 6, 20)
        assert "answered" in desk.head
        assert watched.all_shown(desk)
        assert desk.app.health.interval_s >= 5 * 7, "a busy controller is asked less often"
        assert len(desk.wire.asked_of("squeue")) <= asked + 1, "never two at a time"


@pytest.mark.long
async def test_rate_limited_squeue_that_answers_is_an_answer(
    watched: Watched, tmp_path: Path
) -> None:
    (tmp_path / "limited").touch()
    async with open_desk(tmp_path, environ=_stand_in(tmp_path)) as desk:
        await _fresh(desk, watched)
        assert desk.app.health.failure is None
        assert desk.app.health.interval_s >= 5 * 3


async def test_rate_limit_exceeded_keeps_the_rows_and_backs_off(
    watched: Watched, tmp_path: Path
) -> None:
    async with open_desk(tmp_path, environ=_stand_in(tmp_path)) as desk:
        await _fresh(desk, watched)
        (tmp_path / "refused").touch()
        await desk.until("a failure", lambda: desk.app.health.failure is not None)
        await desk.shows("stale: last answer")
        assert "the controller refuses" in desk.head.lower() or "limits" in desk.head.lower()
        assert watched.all_shown(desk)
        assert _is_old(desk)
        health = desk.app.health
        assert health.next_at is not None
        assert (health.next_at - desk.app.services.clock.now()).total_seconds() > 25
        asked = len(desk.wire.asked_of("squeue"))
        await desk.press("r")
        await desk.shows("next try in")
        assert len(desk.wire.asked_of("squeue")) == asked, "not even a key breaks the limit"
