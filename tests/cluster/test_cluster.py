"""The cluster itself: what the other tests build on must work as the normal user."""

from __future__ import annotations

import os
import time

import pytest

from tests.cluster.faults import FaultError, Faults
from tests.cluster.fixtures import FINAL_STATES, Cluster
from tests.cluster.torch_env import TORCH

#: Where the cluster itself is wrong, all other tests say so.
pytestmark = pytest.mark.long


def test_user_is_normal_and_the_machine_is_the_login_node(cluster: Cluster) -> None:
    assert os.geteuid() != 0
    assert cluster.user == cluster.users[0]
    assert cluster.run("hostname").stdout.strip() == "login"
    assert (cluster.source / "tests" / "cluster" / "fixtures.py").is_file()


def test_batch_job_writes_its_log(cluster: Cluster) -> None:
    job = cluster.submit("#!/bin/bash\necho on $(hostname) as $(id -un)\n")
    cluster.wait_state(job, "COMPLETED")
    words = cluster.log(job).read_text().split()
    assert words[1] in cluster.nodes
    assert words[3] == cluster.user


def test_array_runs_each_task(cluster: Cluster) -> None:
    output = f"{cluster.dir}/array-%a.log"
    job = cluster.submit("echo task $SLURM_ARRAY_TASK_ID", array="0-5%3", output=output)
    cluster.wait_state(job, "COMPLETED")
    texts = [(cluster.dir / f"array-{task}.log").read_text() for task in range(6)]
    assert texts == [f"task {task}\n" for task in range(6)]


def test_het_job_runs_on_both_components(cluster: Cluster) -> None:
    script = (
        "#!/bin/bash\n#SBATCH -N1 --gres=gpu:h100:1\n#SBATCH hetjob\n#SBATCH -N2\n"
        "srun --het-group=0,1 hostname\n"
    )
    job = cluster.submit(script)
    cluster.wait_state(job, "COMPLETED")
    assert len(set(cluster.log(job).read_text().split())) == 3


def test_gpus_are_given_out(cluster: Cluster) -> None:
    command = "srun bash -c 'echo $SLURM_NODEID $CUDA_VISIBLE_DEVICES'"
    job = cluster.submit(command, nodes=4, gres="gpu:h100:8")
    cluster.wait_state(job, "COMPLETED")
    lines = sorted(cluster.log(job).read_text().splitlines())
    assert lines == [f"{node} 0,1,2,3,4,5,6,7" for node in range(4)]


def test_nodes_see_their_own_processes_only(cluster: Cluster) -> None:
    job = cluster.submit("exec sleep 31415", nodelist="gpu02")
    cluster.wait_state(job, "RUNNING")
    argv = ("pgrep", "-u", cluster.user, "-f", "^sleep.31415")
    cluster.wait_for("the job's process", lambda: bool(cluster.ssh("gpu02", *argv, "||", "true")))
    assert cluster.ssh("gpu03", *argv, "||", "true") == ""
    cluster.run("scancel", job)
    cluster.wait_state(job, "CANCELLED")


def test_jobs_can_use_torch_and_nobody_can_change_it(cluster: Cluster) -> None:
    python = f"{cluster.layout.torch}/bin/python"
    told = "import torch; print(torch.__version__, torch.distributed.is_gloo_available())"
    done = cluster.run("srun", "-N1", "-t1", python, "-W", "ignore", "-c", told)
    version, _, gloo = done.stdout.strip().partition(" ")
    assert version.partition("+")[0] == TORCH.partition("==")[2]
    assert gloo == "True"
    assert not os.access(cluster.layout.torch / "lib", os.W_OK)


@pytest.mark.parametrize("node", ["gpu01", "gpu04"])
def test_ssh_reaches_a_node(cluster: Cluster, node: str) -> None:
    assert cluster.ssh(node, "hostname").strip() == node
    assert len(cluster.ssh(node, "squeue", "--version").split()) == 2


def test_accounting_shows_the_job(cluster: Cluster) -> None:
    job = cluster.submit("exit 3", job_name="accounted")
    cluster.wait_state(job, "FAILED")
    fields = ("-nPX", "-o", "JobName,Account,User,State,ExitCode", "-j", job)
    want = f"accounted|ml|{cluster.user}|FAILED|3:0"
    # Generous: slurmdbd may still be busy with thousands of jobs of a flood.
    cluster.wait_for("the job in sacct", lambda: want in cluster.run("sacct", *fields).stdout, 120)
    script = cluster.run("sacct", "--batch-script", "-j", job).stdout
    assert "exit 3" in script


def test_requeued_job_starts_again_within_a_minute(cluster: Cluster) -> None:
    job = cluster.submit("echo start $SLURM_RESTART_COUNT; sleep 300", open_mode="append")
    cluster.wait_state(job, "RUNNING")
    begun = time.monotonic()
    cluster.run("scontrol", "requeue", job)
    cluster.wait_for("Restarts=1", lambda: "Restarts=1 " in _show(cluster, job))
    cluster.wait_state(job, "RUNNING", 60)
    assert time.monotonic() - begun < 60
    cluster.wait_for("the second start", lambda: "start 1" in cluster.log(job).read_text())
    cluster.run("scancel", job)
    cluster.wait_state(job, "CANCELLED")


def _show(cluster: Cluster, job: str) -> str:
    return cluster.run("scontrol", "-o", "show", "job", job).stdout


def test_high_partition_preempts_the_low_one(cluster: Cluster) -> None:
    whole: dict[str, str | int | bool] = {"nodes": 4, "gres": "gpu:h100:8"}
    low = cluster.submit("sleep 300", partition="low", **whole)
    cluster.wait_state(low, "RUNNING")
    high = cluster.submit("sleep 300", **whole)
    cluster.wait_state(high, "RUNNING", 60)
    assert cluster.states(low) <= {"PENDING", "COMPLETING"}
    cluster.wait_for("Restarts=1", lambda: "Restarts=1 " in _show(cluster, low))
    cluster.run("scancel", high, low)
    cluster.wait_state(low, FINAL_STATES)
    cluster.wait_state(high, FINAL_STATES)


def test_controller_dies_and_comes_back(cluster: Cluster, faults: Faults) -> None:
    job = cluster.submit("sleep 300")
    cluster.wait_state(job, "RUNNING")
    faults.kill("slurmctld")
    failed = cluster.run("squeue", check=False)
    assert failed.returncode == 1
    assert "Unable to contact slurm controller" in failed.stderr
    faults.start("slurmctld")
    assert cluster.wait_state(job, "RUNNING") == {"RUNNING"}
    cluster.run("scancel", job)
    cluster.wait_state(job, "CANCELLED")


def test_stopped_controller_times_out(cluster: Cluster, faults: Faults) -> None:
    faults.stop("slurmctld")
    failed = cluster.run("squeue", check=False, deadline_s=90)
    assert failed.returncode == 1
    assert "timed out" in failed.stderr
    faults.cont("slurmctld")
    assert cluster.run("squeue").returncode == 0


def test_missing_munged_is_an_error(cluster: Cluster, faults: Faults) -> None:
    faults.kill("munged")
    failed = cluster.run("squeue", check=False)
    assert failed.returncode == 1
    assert "Munge encode failed" in failed.stderr
    faults.start("munged")
    assert cluster.run("squeue").returncode == 0


def test_missing_slurmdbd_is_an_error_of_sacct_only(cluster: Cluster, faults: Faults) -> None:
    faults.kill("slurmdbd")
    assert cluster.run("sacct", check=False).returncode != 0
    assert cluster.run("squeue").returncode == 0
    faults.start("slurmdbd")
    assert cluster.run("sacct").returncode == 0


def test_drained_node_comes_back_by_itself(cluster: Cluster, faults: Faults) -> None:
    faults.drain("gpu03", "fan 2 broken; see ticket 7")
    line = cluster.run("sinfo", "-h", "-n", "gpu03", "-p", "gpu", "-o", "%t|%E").stdout.strip()
    assert line == "drain|fan 2 broken; see ticket 7"
    faults.restore()
    assert cluster.run("sinfo", "-h", "-n", "gpu03", "-p", "gpu", "-o", "%t").stdout == "idle\n"


def test_node_without_sshd_refuses(cluster: Cluster, faults: Faults) -> None:
    faults.stop_node("gpu02", "sshd")
    done = cluster.run("ssh", "-o", "BatchMode=yes", "gpu02", "true", check=False)
    assert done.returncode == 255
    assert "refused" in done.stderr
    faults.start_node("gpu02", "sshd")
    assert cluster.ssh("gpu02", "hostname").strip() == "gpu02"


def test_others_jobs_cannot_be_cancelled(cluster: Cluster, faults: Faults) -> None:
    job = faults.submit_other(name="theirs")
    cluster.wait_state(job, "RUNNING")
    done = cluster.run("scancel", job, check=False)
    assert done.returncode != 0
    assert "Access/permission denied" in done.stderr
    assert cluster.states(job) == {"RUNNING"}


def test_rpcs_are_counted_by_user(cluster: Cluster, faults: Faults) -> None:
    faults.rpc_counts(reset=True)
    for _ in range(3):
        cluster.run("squeue", "--user", cluster.user)
    assert faults.rpc_counts()[cluster.user] >= 3


def test_helper_refuses_what_it_does_not_know(faults: Faults) -> None:
    with pytest.raises(FaultError, match="what must be one of"):
        faults.kill("systemd")  # type: ignore[arg-type]
    with pytest.raises(FaultError, match="reason must be"):
        faults.drain("gpu01", "two\nlines")
