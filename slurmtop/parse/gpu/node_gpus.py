"""The GPUs of a node out of one whole answer of the script that asks for them."""

from collections.abc import Sequence
from dataclasses import replace

from slurmtop.model.gpu import NodeGpus
from slurmtop.model.text import visible
from slurmtop.parse.gpu.compute_apps import parse_compute_apps
from slurmtop.parse.gpu.failures import explain_gpu_failure
from slurmtop.parse.gpu.node_script import NodeAnswer, OpenTool
from slurmtop.parse.gpu.nvidia_smi import PROGRAM, read_query

#: How ``timeout`` ends: its limit was reached; what did not end then was killed; that of busybox.
OUT_OF_TIME = (124, 137, 143)


def in_the_way(host: str, tools: Sequence[OpenTool]) -> NodeGpus:
    """An earlier process of ours is still there: none is started beside it."""
    answer, failure = explain_gpu_failure(PROGRAM, host, None, b"")
    named = ", ".join(f"{one.pid} (state {one.state or '?'})" for one in tools) or "unknown"
    says = (
        f"The GPU driver on {visible(host)} does not answer: a process from before still hangs "
        f"in it, pid {named}; no second one is started."
    )
    return NodeGpus(host=host, answer=answer, failure=replace(failure, sentence=says))


def gpus_within_limit(
    host: str, fields: Sequence[str], answer: NodeAnswer, limit_s: float
) -> NodeGpus | None:
    """What ``nvidia-smi`` under a ``timeout`` of ``limit_s`` told; None where it was not asked."""
    if answer.open_tools:
        return in_the_way(host, answer.open_tools)
    query, apps = answer.parts.get("query"), answer.parts.get("apps")
    if query is None:
        return None
    rc = None if query.rc in OUT_OF_TIME else query.rc
    node = read_query(host, fields, rc, query.text, elapsed_s=limit_s if rc is None else None)
    if node.answered and apps is not None and apps.rc == 0:
        node = replace(node, processes=parse_compute_apps(apps.text).rows)
    return node
