"""GPUs of AMD, the basic form: ``amd-smi``, else ``rocm-smi``, where there is no nvidia-smi."""

import math

from slurmtop.collect.nodes.gpu_script import amd_command
from slurmtop.collect.nodes.host_memory import HostMemory
from slurmtop.model.gpu import Answer, NodeGpus
from slurmtop.model.ports import NodeUnreachable, Runner, RunnerError
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.text import visible
from slurmtop.parse.gpu.amd import parse_amd
from slurmtop.parse.gpu.failures import explain_gpu_failure
from slurmtop.parse.gpu.node_script import parse_node_answer

#: Both are slow to start: several hundred milliseconds of Python each time.
EVERY_S = 10.0
_NOT_THERE = (126, 127)


async def ask_amd(runner: Runner, host: str, memory: HostMemory) -> tuple[NodeGpus, str]:
    """One look, and the program that answered. NO_TOOL where the node has no GPU of AMD or no
    program to ask. Raises :class:`NodeUnreachable`."""
    try:
        done = await runner.run(amd_command(host, memory.open_tools))
    except NodeUnreachable:
        raise
    except RunnerError as error:
        failure = Failure(Trouble.LOCAL, str(error))
        return NodeGpus(host=host, answer=Answer.OTHER, failure=failure), "amd-smi"
    answer = parse_node_answer(done.stdout)
    memory.learn(answer)
    program, part = "amd-smi", answer.parts.get("amd")
    if part is not None and part.rc in _NOT_THERE and "rocm" in answer.parts:
        program, part = "rocm-smi", answer.parts["rocm"]
    text, rc = (b"", None) if part is None else (part.text, part.rc)
    found = parse_amd(text) if rc == 0 else None
    if found is not None and found.rows:
        node = NodeGpus(host=host, samples=found.rows, bad=found.bad, took_s=done.took_s)
        return node, program
    why, failure = explain_gpu_failure(program, host, rc, text, elapsed_s=done.took_s)
    if why is Answer.NO_TOOL:
        says = (
            f"There is no GPU tool on {visible(host)} (nvidia-smi, amd-smi, rocm-smi): it gives no "
            "values of GPUs."
        )
        failure = Failure(Trouble.OTHER, says, retry_after_s=math.inf)
    return NodeGpus(host=host, answer=why, failure=failure), program
