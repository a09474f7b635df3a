"""What a rank, or an earlier attempt of it, left running with its name never stands for it."""

from types import SimpleNamespace
from typing import cast

import pytest

from slurmtop.control.rank_signal import ranks_found
from slurmtop.model.gpu import GpuProcess, GpuSample, NodeGpus
from slurmtop.model.job import Job
from slurmtop.model.look import HostLook
from slurmtop.model.process import NodeProcess
from slurmtop.parse.slurm.ids import parse_job_id
from slurmtop.triage.ranks import ranks_by_gpu
from tests.triage.test_ranks import BATCH, JOB, PYTHON, look, pids, process, ranks, stepd

ENV = {"WORLD_SIZE": 2, "MASTER_ADDR": "gpu01", "MASTER_PORT": 29500}
TRAIN = f"{PYTHON} train.py"
WHOLE = [(0, 60), (1, 61)]


def rank(
    pid: int, number: int, line: str | tuple[str, ...] = TRAIN, ppid: int = 5, **more: object
) -> NodeProcess:
    """A rank that a batch script starts without srun."""
    told = {"RANK": number, "LOCAL_RANK": number, "step": "batch", **ENV}
    return process(pid, ppid, line, **{**told, **more})


NEW = (rank(60, 0), rank(61, 1))
LEFT = (
    "sh -c sleep",
    ("sh", "-c", "while true; do date; sleep 9; done"),
    "sleep 60",
    "ffmpeg -i x",
    f"{PYTHON} watch.py",
    TRAIN,
)


@pytest.mark.parametrize("line", LEFT)
@pytest.mark.parametrize("pid", [50, 70])
@pytest.mark.parametrize("whose", [(1,), (0, 1)])
def test_what_has_lost_its_parent_is_not_the_rank(
    line: str | tuple[str, ...], pid: int, whose: tuple[int, ...]
) -> None:
    """Older than the rank: of an earlier attempt. Younger: a daemon that the rank let go."""
    left = [rank(pid + n, n, line, ppid=1, threads=1) for n in whose]
    assert pids(BATCH, *NEW, *left) == WHOLE


@pytest.mark.parametrize("line", LEFT)
def test_who_takes_orphans_may_be_a_process_of_the_job(line: str | tuple[str, ...]) -> None:
    left = rank(50, 1, line, ppid=10, threads=40)
    script = process(5, 10, "/bin/bash /var/spool/slurm_script", step="batch", SLURM_PROCID=0)
    assert pids(stepd(step="batch"), script, *NEW, left) == WHOLE


def test_a_tool_with_a_parent_does_not_stand_for_a_rank_without_one() -> None:
    """A script that lets its ranks go into the background, and watches the GPUs."""
    let_go = [rank(60, 0, ppid=1), rank(61, 1, ppid=1)]
    assert pids(BATCH, *let_go, rank(50, 0, "nvidia-smi dmon")) == WHOLE


def test_what_is_below_a_rank_is_not_beside_it() -> None:
    """What stands between them may hide its environment."""
    between = process(70, 61, "sudo x", step="batch", readable=False)
    assert pids(BATCH, *NEW, between, rank(71, 1, ppid=70, threads=40)) == WHOLE


def test_of_several_orphans_the_one_with_many_threads_is_the_rank() -> None:
    let_go = [rank(60, 0, ppid=1), rank(61, 1, ppid=1)]
    left = rank(50, 1, ppid=1, threads=2)
    assert pids(BATCH, *let_go, left) == WHOLE


def test_where_two_may_be_the_rank_both_are_told_without_a_number() -> None:
    let_go = [rank(60, 0, ppid=1), rank(61, 1, ppid=1)]
    assert pids(BATCH, *let_go, rank(50, 1, ppid=1)) == [(0, 60), (None, 50), (None, 61)]


def test_a_signal_reaches_the_ranks_alone() -> None:
    left = [rank(50 + n, n, "ffmpeg -i x", ppid=1, threads=1) for n in (0, 1)]
    job = cast(Job, SimpleNamespace(id=parse_job_id(JOB), raw_id=JOB, key=None))
    found = ranks_found(job, [look(BATCH, *NEW, *left)], "USR1")
    assert [(one.rank, one.pid) for one in found.pids] == WHOLE
    assert not found.short


def test_a_gpu_that_a_left_process_holds_belongs_to_no_rank() -> None:
    left = rank(50, 1, ppid=1, threads=2)
    seen = (BATCH, *NEW, left)
    samples = tuple(GpuSample(index=n, uuid=f"GPU-{n}") for n in (0, 1))
    users = tuple(GpuProcess(pid=pid, gpu_uuid=f"GPU-{n}") for n, pid in ((0, 60), (1, 50)))
    gpus = NodeGpus(host="gpu01", samples=samples, processes=users)
    both = HostLook(host="gpu01", processes=look(*seen), gpus=gpus)
    assert set(ranks_by_gpu(both, ranks(*seen))) == {"GPU-0"}
