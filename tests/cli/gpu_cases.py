"""Looks at GPUs for the tests of ``gpus`` and ``export``."""

from datetime import timedelta
from typing import Any

from slurmtop.cli.gpu_rows import HostGpus, JobGpus
from slurmtop.model.gpu import Answer, GpuProcess, GpuSample, NodeGpus
from slurmtop.model.job import Job, Tres
from slurmtop.model.look import HostLook
from slurmtop.model.process import NodeProcess, NodeProcesses, RankProcess, Rung
from slurmtop.model.reach import Way
from slurmtop.model.snapshot import Failure, Trouble
from tests.build import make_job
from tests.fakes import START

NOW = START + timedelta(seconds=3)
SSH_DOWN = Failure(Trouble.DOWN, "gpu02 refuses connections on port 22: no sshd is running there.")


def gpu(host: str, index: int, **fields: Any) -> GpuSample:
    given: dict[str, Any] = {
        "index": index,
        "uuid": f"GPU-{host}-{index}",
        "bus_id": f"0000:{index + 16:02x}:00.0",
        "name": "NVIDIA H100 80GB HBM3",
        "util_percent": 97.0,
        "power_w": 612.4,
        "power_limit_w": 700.0,
        "mem_used_mib": 61440.0,
        "mem_total_mib": 81559.0,
        "temp_c": 61.0,
        "sm_clock_mhz": 1755.0,
    }
    return GpuSample(**{**given, **fields})


def rank(host: str, number: int, pid: int, rung: Rung = Rung.ENVIRONMENT) -> RankProcess:
    process = NodeProcess(host=host, pid=pid, start_ticks=7, job="4711", name="python3")
    return RankProcess(process=process, rank=number, local_rank=number % 8, rung=rung)


def answered(host: str, seen: list[GpuSample], first_rank: int = 0, **fields: Any) -> HostGpus:
    processes = tuple(
        GpuProcess(pid=900 + place, gpu_uuid=one.uuid) for place, one in enumerate(seen)
    )
    node = NodeGpus(host=host, samples=tuple(seen), processes=processes)
    look = HostLook(
        host=host,
        way=Way.SSH,
        gpus=node,
        gpus_at=START,
        sources=("nvidia-smi",),
        processes=NodeProcesses(host=host, at=START),
    )
    by_uuid = {
        one.uuid or "": (rank(host, first_rank + place, 900 + place),)
        for place, one in enumerate(seen)
    }
    given: dict[str, Any] = {"look": look, "gpus": tuple(seen), "held": len(seen)}
    return HostGpus(**{**given, "by_uuid": by_uuid, "age_s": 3.0, **fields})


def silent(host: str, held: int = 8, failure: Failure = SSH_DOWN) -> HostGpus:
    return HostGpus(
        look=HostLook(host=host, failure=failure, failing_since=START), gpus=None, held=held
    )


def stuck(host: str) -> HostGpus:
    """A node whose driver does not answer."""
    failure = Failure(Trouble.TIMEOUT, f"nvidia-smi on {host} did not answer in 10 s.")
    node = NodeGpus(host=host, answer=Answer.NO_ANSWER, failure=failure)
    return HostGpus(look=HostLook(host=host, way=Way.SSH, gpus=node, gpus_at=START), gpus=None)


def job_on(hosts: list[str], gpus: int, **fields: Any) -> Job:
    return make_job(
        "4711",
        name=fields.pop("name", "llm-pretrain"),
        nodes=",".join(hosts),
        node_count=len(hosts),
        tres=Tres(gpus=gpus),
        **fields,
    )


def two_nodes() -> JobGpus:
    """One that answers with an odd one, and one that does not."""
    eight = [gpu("gpu01", index) for index in range(8)]
    eight[5] = gpu("gpu01", 5, util_percent=12.0, power_w=140.0)
    return JobGpus(
        job=job_on(["gpu01", "gpu02"], 16), hosts=(answered("gpu01", eight), silent("gpu02"))
    )
