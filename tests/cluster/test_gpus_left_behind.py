"""After slurmtop has gone, in whatever way, nothing of it runs on any node."""

import signal
from pathlib import Path

import pytest

from tests.cluster.desk import open_desk
from tests.cluster.faults import Faults
from tests.cluster.fixtures import Cluster
from tests.cluster.gpu_desk import Watchman, answered, open_gpus
from tests.cluster.layout import NODES, ClusterError
from tests.cluster.terminal import Terminal, in_terminal
from tests.cluster.training import Training, trains

#: Way onto the nodes, and how slurmtop ends.
ENDS = (
    ("ssh", "q"),
    ("srun", "KILL"),
    pytest.param("ssh", "KILL", marks=pytest.mark.long),
    pytest.param("srun", "q", marks=pytest.mark.long),
    *(pytest.param("openssh", how, marks=pytest.mark.long) for how in ("q", "KILL")),
    pytest.param("ssh", "HUP", marks=pytest.mark.long),
    pytest.param("srun", "TERM", marks=pytest.mark.long),
)


def look_at_gpus(cluster: Cluster, terminal: Terminal, watchman: Watchman) -> None:
    """Open the GPUs tab of the only job, as a person does, until all nodes are looked at."""
    cluster.wait_for("the queue", lambda: "-trains" in terminal.text, 30)
    seen = len(terminal.text)
    terminal.type("\r")
    cluster.wait_for("the Job page", lambda: "Script" in terminal.text[seen:], 30)
    terminal.type("\t")
    try:
        cluster.wait_for("a look at all nodes", lambda: watchman.looking() == set(NODES), 90)
    except ClusterError as error:
        raise ClusterError(
            f"{error}; the end of what was shown: {terminal.text[-6000:]}"
        ) from error


@pytest.mark.parametrize(("way", "how"), ENDS)
def test_nothing_is_left(
    cluster: Cluster, training: Training, faults: Faults, tmp_path: Path, way: str, how: str
) -> None:
    settings = tmp_path / "config.yaml"
    settings.write_text(f"node_access: {way}\n")
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    watchman = Watchman(faults)
    with in_terminal("--config", str(settings), environ=environ) as terminal:
        look_at_gpus(cluster, terminal, watchman)
        if how == "q":
            terminal.type("q")
        else:
            terminal.send(signal.Signals[f"SIG{how}"])
        terminal.wait()
    watchman.all_gone(cluster)
    here = cluster.run("ps", "-u", cluster.user, "-o", "args=").stdout
    assert "slurmtop-gpus" not in here
    assert "srun --overlap" not in here
    training.goes_on()


#: Answers of the queue in ten minutes, at one in 20 s.
POLLS_IN_TEN_MINUTES = 30
#: RPCs a minute of any screen, and what opening a job and its GPUs adds once.
MOST_A_MINUTE, MOST_ONCE = 10, 12


@pytest.mark.long
async def test_ten_minutes_of_an_open_job_page_add_one_step(
    cluster: Cluster, faults: Faults, tmp_path: Path
) -> None:
    with trains(cluster, time=30) as training:

        def steps() -> list[str]:
            rows = cluster.run("sacct", "-nP", "-j", training.job, "-o", "JobID,JobName").stdout
            return rows.splitlines()

        before = steps()
        watchman = Watchman(faults)
        faults.close_ssh()
        async with open_desk(tmp_path, interval_s=20) as desk:
            counted = faults.rpc_counts().get(cluster.user, 0)
            ends = len(desk.wire.answers_of("squeue")) + POLLS_IN_TEN_MINUTES
            await open_gpus(desk, training.job)
            await answered(desk, deadline_s=120)
            await desk.until(
                "ten minutes of polls", lambda: len(desk.wire.answers_of("squeue")) >= ends, 900
            )
            await answered(desk)
            spent = faults.rpc_counts().get(cluster.user, 0) - counted
        cluster.wait_for("the step", lambda: len(steps()) > len(before))
        added = [row for row in steps() if row not in before]
        assert len(added) == 1, added
        assert added[0].endswith("|slurmtop")
        assert spent <= MOST_ONCE + 10 * MOST_A_MINUTE, spent
        print(f"in ten minutes: {len(added)} step, {spent} RPCs")
        watchman.all_gone(cluster)
        training.goes_on()
