"""Which GPUs of a node are one job's: never by guess."""

from datetime import timedelta
from typing import Any

import pytest

from slurmtop.model.gpu import GpuProcess, GpuSample, NodeGpus
from slurmtop.model.look import HostLook
from slurmtop.model.process import NodeProcess, NodeProcesses
from slurmtop.triage.gpu_share import NOT_TOLD, NOT_VISIBLE, JobShare
from slurmtop.triage.job_gpus import gpus_of_job, whole_gpus
from tests.fakes import START

OURS = JobShare("4711", 4)
THEIRS = JobShare("4999", 4)


def look(
    count: int,
    *,
    lost: int = 0,
    bad: int = 0,
    pids: dict[int, int] | None = None,
    **fields: Any,
) -> HostLook:
    """``pids``: GPU index to the pid on it."""
    samples = tuple(GpuSample(index=n, uuid=f"GPU-{n}") for n in range(count))
    processes = (
        None
        if pids is None
        else tuple(GpuProcess(pid=pid, gpu_uuid=f"GPU-{index}") for index, pid in pids.items())
    )
    gpus = NodeGpus(
        host="gpu01",
        samples=samples,
        lost=tuple(f"0000:{n:02x}:00.0" for n in range(lost)),
        processes=processes,
        bad=bad,
    )
    return HostLook(host="gpu01", gpus=gpus, gpus_at=START, **fields)


def processes(*pairs: tuple[int, str]) -> NodeProcesses:
    return NodeProcesses(
        host="gpu01",
        at=START,
        processes=tuple(
            NodeProcess(host="gpu01", pid=pid, start_ticks=1, job=job) for pid, job in pairs
        ),
    )


def test_inside_its_cgroup_all_that_is_seen_is_the_jobs() -> None:
    mine = gpus_of_job(look(4, inside="4711"), OURS, (THEIRS,))
    assert mine.gpus is not None
    assert len(mine.gpus) == 4


def test_inside_another_jobs_cgroup_nothing_is_seen_of_it() -> None:
    mine = gpus_of_job(look(4, inside="4999"), OURS, (THEIRS,))
    assert (mine.gpus, mine.says) == (None, NOT_VISIBLE)


def test_of_two_jobs_that_are_seen_together_the_processes_tell() -> None:
    seen = look(
        8,
        pids={0: 10, 1: 11, 2: 12, 3: 13, 4: 20},
        processes=processes((10, "4711"), (11, "4711"), (12, "4711"), (13, "4711"), (20, "4999")),
    )
    mine = gpus_of_job(seen, OURS, (THEIRS,))
    assert [gpu.index for gpu in mine.gpus or ()] == [0, 1, 2, 3]
    assert mine.says == ""
    theirs = gpus_of_job(seen, THEIRS, (OURS,))
    assert [gpu.index for gpu in theirs.gpus or ()] == [4]
    assert theirs.says == "1 of 4 GPUs told by the processes on them"


def test_without_processes_nobody_is_told() -> None:
    mine = gpus_of_job(look(8), OURS, (THEIRS,))
    assert (mine.gpus, mine.says) == (None, NOT_TOLD)


def test_what_the_prolog_wrote_down_comes_first() -> None:
    samples = tuple(GpuSample(index=n, uuid=f"GPU-{n}", jobs=("4711",)) for n in (2, 3))
    others = tuple(GpuSample(index=n, uuid=f"GPU-{n}", jobs=("4999",)) for n in (0, 1))
    seen = HostLook(host="gpu01", gpus=NodeGpus(host="gpu01", samples=(*others, *samples)))
    assert gpus_of_job(seen, OURS, (THEIRS,)).gpus == samples


def test_a_lost_card_is_one_of_those_given_out() -> None:
    mine = gpus_of_job(look(3, lost=1), OURS)
    assert mine.gpus is not None
    assert len(mine.gpus) == 3


@pytest.mark.parametrize("gpus", [None, NodeGpus(host="gpu01")])
def test_nothing_seen_is_nothing_told(gpus: NodeGpus | None) -> None:
    seen = HostLook(host="gpu01", gpus=gpus)
    assert gpus_of_job(seen, OURS).gpus is None
    assert whole_gpus(seen) == ()


def test_slices_are_left_to_their_card() -> None:
    card = GpuSample(index=0, uuid="GPU-0", mig=True)
    part = GpuSample(index=0, uuid="GPU-0", slice_id="3")
    seen = HostLook(host="gpu01", gpus=NodeGpus(host="gpu01", samples=(card, part)), inside="4711")
    assert gpus_of_job(seen, JobShare("4711", 0)).gpus == (card,)


def test_a_row_that_could_not_be_read_is_a_card_that_may_be_anybodys() -> None:
    """Two GPUs, two jobs of one each: the one row that can be read may be of either job."""
    old = JobShare("1", 1, START, most=1)
    new = JobShare("2", 1, START + timedelta(days=1), most=1)
    for mine, other in ((old, new), (new, old)):
        assert gpus_of_job(look(1, bad=1), mine, (other,)).says == NOT_TOLD
    assert gpus_of_job(look(7, bad=1), JobShare("1", 7)).gpus is None, "the eighth may be its own"
    inside = gpus_of_job(look(7, bad=1, inside="1"), JobShare("1", 8))
    assert [gpu.index for gpu in inside.gpus or ()] == list(range(7))


def test_a_line_that_is_no_row_costs_nothing_where_all_cards_of_the_node_are_seen() -> None:
    seen = look(8, bad=2)
    assert gpus_of_job(seen, JobShare("1", 8)).gpus is None
    mine = gpus_of_job(seen, JobShare("1", 8), node_gpus=8)
    assert len(mine.gpus or ()) == 8


def test_a_lost_card_that_only_nvml_tells_is_counted_as_well() -> None:
    gpus = NodeGpus(host="gpu01", samples=look(7).gpus.samples, lost=("GPU 3",))  # type: ignore[union-attr] # look() has them
    seen = HostLook(host="gpu01", gpus=gpus)
    assert gpus_of_job(seen, JobShare("1", 7)).gpus is None
    assert len(gpus_of_job(seen, JobShare("1", 8)).gpus or ()) == 7


def test_notes_on_more_gpus_than_the_job_holds_are_old_ones() -> None:
    """Before it was requeued it had others; their labels still stand."""
    samples = tuple(
        GpuSample(index=n, uuid=f"GPU-{n}", jobs=("4711",) if n < 4 else ("4999", "4711"))
        for n in range(8)
    )
    seen = HostLook(host="gpu01", gpus=NodeGpus(host="gpu01", samples=samples))
    assert gpus_of_job(seen, OURS, (THEIRS,)).gpus is None
    slices = JobShare("4711", 0, most=3)
    card = HostLook(host="gpu01", gpus=NodeGpus(host="gpu01", samples=samples[:1]))
    assert gpus_of_job(card, slices).gpus == samples[:1]
