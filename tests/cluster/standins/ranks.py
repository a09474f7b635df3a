"""Which process would be on which GPU: told by the environment, as CUDA goes by it as well.

A rank is a worker of torchrun (``RANK`` and ``LOCAL_RANK``) or a Python program that ``srun``
started (``SLURM_PROCID`` and ``SLURM_LOCALID`` of a numbered step), with GPUs to see
(``CUDA_VISIBLE_DEVICES``). Agents, shells, and whatever a rank started itself are on none.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_AGENTS = ("torchrun", "torch.distributed.run", "torch.distributed.launch")


@dataclass(frozen=True)
class GpuProcess:
    """A process of ``job`` on the GPU with the number ``gpu``; ``name`` is its first word."""

    pid: int
    gpu: int
    name: str
    job: str


@dataclass(frozen=True)
class _Seen:
    pid: int
    parent: int
    argv: list[str]
    env: dict[str, str]

    @property
    def rank(self) -> tuple[str, ...] | None:
        """What its children inherit; None: it is no rank."""
        env = self.env
        if "CUDA_VISIBLE_DEVICES" not in env or any(
            agent in word for word in self.argv[:4] for agent in _AGENTS
        ):
            return None
        job = env.get("SLURM_JOB_ID", "")
        if "RANK" in env and "LOCAL_RANK" in env:
            return (job, "torchrun", env["RANK"])
        step = env.get("SLURM_STEP_ID", "")
        python = Path(self.argv[0]).name.startswith("python") if self.argv else False
        if python and step.isdigit() and "SLURM_PROCID" in env and "SLURM_LOCALID" in env:
            return (job, step, env["SLURM_PROCID"])
        return None

    @property
    def gpu(self) -> int | None:
        devices = self.env["CUDA_VISIBLE_DEVICES"].split(",")
        local = self.env.get("LOCAL_RANK") or self.env.get("SLURM_LOCALID") or ""
        # A task that is bound to one GPU sees that one alone, whatever its own number is.
        at = int(local) if local.isdigit() and len(devices) > 1 else 0
        chosen = devices[at] if at < len(devices) else ""
        return int(chosen) if chosen.isdigit() else None


def processes_on_gpus() -> list[GpuProcess]:
    """The ranks on this node whose environment the asker may read: its own, or all for root."""
    seen = {one.pid: one for one in _all()}
    found = []
    for one in seen.values():
        parent = seen.get(one.parent)
        gpu = one.gpu if one.rank is not None else None
        # Loaders and other children of a rank carry its environment, and no context of CUDA.
        if gpu is not None and (parent is None or parent.rank != one.rank):
            name = one.argv[0] if one.argv else ""
            found.append(GpuProcess(one.pid, gpu, name, one.env.get("SLURM_JOB_ID", "")))
    return sorted(found, key=lambda one: one.pid)


def _all() -> list[_Seen]:
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environ = (entry / "environ").read_bytes()
            if b"CUDA_VISIBLE_DEVICES=" not in environ:
                continue
            stat = (entry / "stat").read_text(errors="replace")
            argv = (entry / "cmdline").read_text(errors="replace").split("\0")[:-1]
        except OSError:
            continue
        state, parent = stat.rpartition(")")[2].split()[:2]
        if state in ("Z", "X"):
            continue
        pairs = (pair.partition("=") for pair in environ.decode(errors="replace").split("\0"))
        env = {name: value for name, mark, value in pairs if mark}
        found.append(_Seen(int(entry.name), int(parent), argv, env))
    return found
