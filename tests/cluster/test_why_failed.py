"""``slurmtop why`` for trainings of four ranks that failed: class, culprit, first real error.

All jobs run at once, because each needs its time.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.desk import slurmtop
from tests.cluster.faults import FaultError, Faults
from tests.cluster.fixtures import STEPS, Cluster
from tests.cluster.layout import ClusterError
from tests.cluster.verdicts import Answer, ask, first_step_works

JOBS = Path(__file__).parent / "jobs"
KILLED_NODE = "gpu04"
#: The rank that fails, and where it runs where each node has one.
RANK, HOST = 2, "gpu03"
ENOUGH_BYTES = 700 * 2**20


@dataclass(frozen=True)
class Failed:
    """The ids of the jobs, all of which have ended."""

    cluster: Cluster
    raised: str
    raised_by_torchrun: str
    crashed: str
    starved: str
    on_killed_node: str
    limit: str | None
    """The memory limit under which a rank of ``starved`` was killed; None where that is not
    possible here, so that it was killed by hand."""
    oom_count: int
    kernel: tuple[str, ...]


@pytest.fixture(scope="module")
def failed(cluster: Cluster) -> Failed:
    def submit(how: str, script: str = "fails_by_srun.sh", **options: str | bool) -> str:
        export = f"ALL,TRAINS={JOBS / 'fails.py'},FAILS={how}"
        return cluster.submit(
            JOBS / script, job_name=f"{cluster.tag}-{how}", export=export, **options
        )

    with Faults(cluster.layout.fault_socket) as faults:
        starved = submit("eat")
        on_killed_node = cluster.submit(
            f"srun python3 {STEPS}",
            job_name=f"{cluster.tag}-killed",
            nodes=4,
            ntasks_per_node=1,
            no_requeue=True,
        )
        cluster.wait_for("its steps", lambda: "step 2/" in _text(cluster, on_killed_node), 60)
        raised = submit("raise")
        by_torchrun = submit("raise", "fails_by_torchrun.sh")
        crashed = submit("segv")
        limit = _starve(cluster, faults, starved)
        for job in (starved, raised, by_torchrun, crashed):
            cluster.wait_state(job, "FAILED", 120)
        count, kernel = faults.oom_kills(limit) if limit is not None else (0, [])
        # A node that dies: nobody answers there any more, and nothing comes over its cable.
        faults.link_down(KILLED_NODE)
        faults.stop_node(KILLED_NODE, "slurmd")
        cluster.wait_state(on_killed_node, "NODE_FAIL", 180)
    return Failed(
        cluster=cluster,
        raised=raised,
        raised_by_torchrun=by_torchrun,
        crashed=crashed,
        starved=starved,
        on_killed_node=on_killed_node,
        limit=limit,
        oom_count=count,
        kernel=tuple(kernel),
    )


def _text(cluster: Cluster, job: str) -> str:
    log = cluster.log(job)
    return log.read_text() if log.exists() else ""


def _starve(cluster: Cluster, faults: Faults, job: str) -> str | None:
    """Limit the memory of the rank that waits for that, and let it go on."""
    place = cluster.dir / f"eat-{job}"
    try:
        cluster.wait_for("the rank that eats", place.exists, 120)
    except ClusterError as error:
        raise ClusterError(f"{error}\n{_text(cluster, job)[-4000:]}") from error
    cluster.wait_for("its place", lambda: len(place.read_text().split()) == 2)
    host, pid = place.read_text().split()
    try:
        limit = faults.limit_memory(host, int(pid), ENOUGH_BYTES)
    except FaultError:
        cluster.ssh(host, "kill", "-KILL", pid)
        return None
    place.with_suffix(".limited").touch()
    return limit


def told(failed: Failed, job: str) -> Answer:
    """The answer, with what must hold of all of them."""
    answer = ask(job)
    assert answer.rc == 2
    assert answer.state == "failed"
    for item in answer.data["evidence"]:
        if item["line"] is not None:
            lines = Path(item["source"]).read_text().splitlines()
            assert item["text"].splitlines()[0] in lines[item["line"] - 1]
    first_step_works(answer)
    return answer


def ranks(answer: Answer) -> list[int | None]:
    return [culprit["rank"] for culprit in answer.data["culprits"]]


def quoted(answer: Answer, text: str) -> bool:
    return any(text in item["text"] for item in answer.data["evidence"])


def test_exception_on_one_rank_of_srun(failed: Failed) -> None:
    answer = told(failed, failed.raised)
    assert (answer.cls, answer.ended_by) == ("python-exception", "self")
    assert "ValueError: shard data-02 is empty" in answer.first_evidence["text"]
    assert "ValueError: shard data-02 is empty" in answer.summary
    assert ranks(answer) == [RANK]
    assert answer.lines["who"].startswith(f"rank {RANK}")
    long = slurmtop("triage", failed.raised, "--json")
    same = ("job", "state", "class", "ended_by", "confidence", "summary", "culprits")
    assert {key: long.data[key] for key in same} == {key: answer.data[key] for key in same}
    assert long.rc == 2


def test_exception_on_one_rank_of_torchrun(failed: Failed) -> None:
    answer = told(failed, failed.raised_by_torchrun)
    assert (answer.cls, answer.ended_by) == ("python-exception", "self")
    assert "ValueError: shard data-02 is empty" in answer.first_evidence["text"]
    assert ranks(answer) == [RANK]


def test_segmentation_fault_of_one_rank(failed: Failed) -> None:
    answer = told(failed, failed.crashed)
    assert answer.cls == "task-exit"
    assert "SIGSEGV" in answer.summary
    assert "Segmentation fault" in answer.first_evidence["text"]
    assert [culprit["host"] for culprit in answer.data["culprits"]] == [HOST]
    assert ranks(answer) == [RANK]


def test_rank_that_ran_out_of_memory(failed: Failed) -> None:
    """Slurm without cgroups counts no such kill: who was killed is told, and what may be why."""
    answer = told(failed, failed.starved)
    assert answer.cls in ("task-exit", "host-oom")
    assert "SIGKILL" in answer.summary
    assert "host-oom" in answer.summary
    assert "Killed" in answer.first_evidence["text"]
    assert [culprit["host"] for culprit in answer.data["culprits"]] == [HOST]
    assert ranks(answer) == [RANK]
    commands = [step["command"] for step in answer.data["next"]]
    assert any("MaxRSS" in command for command in commands)
    assert any("dmesg" in str(item["command"]) for item in answer.data["missing"])


def test_kernel_lines_of_its_node_make_it_sure(failed: Failed, tmp_path: Path) -> None:
    if failed.limit is None:
        pytest.skip("no memory limit can be set on this machine")
    assert failed.oom_count >= 1
    if not failed.kernel:
        pytest.skip("the kernel log cannot be read on this machine")
    (tmp_path / HOST).mkdir()
    kernel = tmp_path / HOST / "dmesg.txt"
    kernel.write_text("".join(f"{line}\n" for line in failed.kernel))
    said = slurmtop("triage", str(failed.cluster.log(failed.starved)), str(kernel), "--json")
    assert said.rc == 2
    assert (said.data["state"], said.data["class"]) == ("failed", "host-oom")
    assert {culprit["rank"] for culprit in said.data["culprits"]} <= {RANK, None}


def test_node_that_died(failed: Failed) -> None:
    answer = told(failed, failed.on_killed_node)
    assert (answer.cls, answer.ended_by) == ("slurm-node-fail", "fault")
    assert [culprit["host"] for culprit in answer.data["culprits"]] == [KILLED_NODE]
    assert ranks(answer) == [None]
    assert quoted(answer, KILLED_NODE)
