"""slurmtop's own functions, called on the commands of a GPU case."""

import re
from typing import Any

from slurmtop.model.gpu import GpuSample, NodeGpus
from slurmtop.parse.gpu.nvidia_smi import read_query
from slurmtop.triage.gpus import judge_gpu
from tests.cases.support import GPU, Case, Step

UUID = "GPU-0000000{0}-1111-2222-3333-44445555000{0}"


def fields(step: Step) -> tuple[str, ...]:
    """The fields that ``--query-gpu`` or ``--query-compute-apps`` of a step asks for."""
    (asked,) = re.findall(r"--query-[a-z-]+=(\S+)", " ".join(step.argv))
    return tuple(asked.split(","))


def node(step: Step, *, rc: int | None = -1, host: str | None = None) -> NodeGpus:
    """The answer of a ``--query-gpu``; ``rc`` None for one that our time limit stopped."""
    return read_query(
        host or step.argv[1],
        fields(step),
        step.exit if rc == -1 else rc,
        step.stdout,
        step.stderr,
        elapsed_s=step.elapsed_s,
        header="noheader" not in " ".join(step.argv),
    )


def of(case: str, n: int = 1) -> NodeGpus:
    return node(GPU.load(case)[n])


def rows(case: Case, made: Any) -> dict[str, Any]:
    """``made`` of every GPU of the first command, by its index."""
    return {str(gpu.index): made(gpu) for gpu in node(case[1]).samples}


def judged(gpu: GpuSample, neighbours: tuple[GpuSample, ...] = ()) -> dict[str, Any]:
    """Level, and the first sentence both as what is said and as a note."""
    found = judge_gpu(gpu, neighbours)
    return {
        "index": gpu.index,
        "level": found.level.value,
        "health": found.level.value,
        "says": found.says,
        "note": found.says,
    }
