"""slurmtop's own functions, called on the commands of a GPU case."""

import re
from typing import Any

from slurmtop.model.gpu import GpuSample, NodeGpus
from slurmtop.parse.gpu.nvidia_smi import read_query
from slurmtop.triage.gpus import judge_gpu
from tests.cases.support import GPU, Case, Step

UUID = "GPU-0000000{0}-1111-2222-3333-44445555000{0}"
#: Sentences that only a screen or a runner can hold, which come later: {case: {sentence: why}}.
_SOURCE = "the source that asks a node again and again is not built yet"
LATER_GPU: dict[str, dict[str, str]] = {
    "011": {
        "no second nvidia-smi on that node while the first is open": _SOURCE,
        "other nodes keep refreshing": _SOURCE,
        "quit of slurmtop does not wait for it": _SOURCE,
        "freeze": "the GPUs screen is not built yet",
        "pile up ssh sessions": "the ssh runners are not built yet",
    },
    "018": {
        "fall back to nvidia-smi or the exporter for the session on that node, quietly": _SOURCE,
    },
    "033": {"time-out at 10 s and call the node dead": _SOURCE},
}


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
