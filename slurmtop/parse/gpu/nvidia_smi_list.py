"""``nvidia-smi -L``: cards, the MIG slices cut from them, and cards that are gone.

Sample; before driver 470 a slice is called ``MIG-GPU-<uuid>/<instance>/<compute instance>``::

    GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-1111-2222-3333-444455550000)
      MIG 3g.40gb     Device  0: (UUID: MIG-11111111-2222-3333-4444-555566667777)
"""

import re

from slurmtop.model.gpu import Answer, GpuSample, MigSlice, NodeGpus
from slurmtop.parse.gpu.failures import explain_gpu_failure, is_failure_line, lost_bus

_GPU = re.compile(
    r"GPU (?P<index>\d{1,4}): (?P<name>.{0,200}?) \(UUID: (?P<uuid>GPU-[\w-]{1,80})\)"
)
_SLICE = re.compile(
    r"\s+MIG (?P<profile>\S{1,40})\s+Device\s+(?P<device>\d{1,4}): "
    r"\(UUID: (?P<uuid>MIG-[\w/-]{1,100})\)"
)


def parse_list(
    host: str, rc: int | None, stdout: bytes, stderr: bytes = b"", *, elapsed_s: float | None = None
) -> NodeGpus:
    """What ``-L`` said: samples with index, name and UUID only. Never raises.

    A lost card stands between healthy ones and the command still exits 0.
    """
    gpus: list[GpuSample] = []
    slices: list[MigSlice] = []
    lost: list[str] = []
    bad = 0
    lines = [line for line in stdout.decode("utf-8", "replace").split("\n") if line.strip()]
    for line in lines:
        if found := _GPU.match(line):
            gpus.append(
                GpuSample(index=int(found["index"]), name=found["name"], uuid=found["uuid"])
            )
        elif found := _SLICE.match(line):
            slices.append(
                MigSlice(
                    uuid=found["uuid"],
                    profile=found["profile"],
                    device=int(found["device"]),
                    parent_uuid=gpus[-1].uuid if gpus else None,
                )
            )
        elif bus := lost_bus(line):
            lost.append(bus)
        elif not is_failure_line(line):
            bad += 1
    answer, failure = Answer.OK, None
    if rc != 0 or lost or not gpus:
        answer, failure = explain_gpu_failure(
            "nvidia-smi",
            host,
            rc,
            stdout if lines else b"No devices were found",
            stderr,
            elapsed_s=elapsed_s,
        )
    return NodeGpus(
        host=host,
        answer=answer,
        samples=tuple(gpus),
        slices=tuple(slices),
        lost=tuple(dict.fromkeys(lost)),
        failure=failure,
        took_s=elapsed_s,
        bad=bad,
    )
