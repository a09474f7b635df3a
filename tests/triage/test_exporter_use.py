"""Whose GPUs an exporter speaks of: labels are checked against the queue."""

from slurmtop.model.gpu import GpuSample
from slurmtop.triage.exporter_use import JobOnHosts, gpus_by_job


def gpu(index: int, *jobs: str, slice_id: str | None = None) -> GpuSample:
    return GpuSample(dcgm_id=index, uuid=f"GPU-{index}", jobs=jobs, slice_id=slice_id)


def on(job: str, *hosts: str, each: int | None = None) -> JobOnHosts:
    return JobOnHosts(job, frozenset(hosts), each)


def test_a_label_counts_for_a_job_that_runs_on_that_node() -> None:
    seen = {"gpu01": [gpu(0, "4711"), gpu(1, "4711", "3000"), gpu(2, "4712"), gpu(3)]}
    found = gpus_by_job(seen, [on("4711", "gpu01"), on("4713", "gpu02")])
    # 3000 is over: its file was left behind. 4712 runs elsewhere or not at all.
    assert {job: [one.dcgm_id for one in gpus] for job, gpus in found.items()} == {"4711": [0, 1]}


def test_a_shared_gpu_is_nobodys() -> None:
    seen = {"gpu01": [gpu(0, "4711", "4712"), gpu(1, "4711")]}
    jobs = [on("4711", "gpu01")]
    assert [one.dcgm_id for one in gpus_by_job(seen, jobs, running={"4712"})["4711"]] == [1]
    both = gpus_by_job(seen, [*jobs, on("4712", "gpu01")])
    assert list(both) == ["4711"]


def test_without_labels_only_a_job_that_holds_them_all() -> None:
    seen = {"gpu01": [gpu(0), gpu(1)], "gpu02": [gpu(0), gpu(1)]}
    whole = on("4711", "gpu01", "gpu02", each=2)
    assert len(gpus_by_job(seen, [whole])["4711"]) == 4
    assert gpus_by_job(seen, [on("4711", "gpu01", each=1)]) == {}
    assert gpus_by_job(seen, [on("4711", "gpu01")]) == {}
    shared = gpus_by_job(seen, [whole, on("4712", "gpu01", each=2)])
    assert [one.dcgm_id for one in shared["4711"]] == [0, 1]


def test_slices_are_not_counted_as_gpus() -> None:
    seen = {"gpu01": [gpu(0, slice_id="1"), gpu(0, slice_id="2")]}
    assert gpus_by_job(seen, [on("4711", "gpu01", each=2)]) == {}
