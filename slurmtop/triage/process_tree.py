"""The processes of one job on one host as a tree. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from slurmtop.model.process import NodeProcess
from slurmtop.triage.identity import Identity
from slurmtop.triage.programs import Part, part_of, program_of

#: States of a process that has ended and only waits to be collected.
DEAD = ("Z", "X", "x")
#: Agents that belong to Slurm or to a login: they are above every rank.
_ABOVE_ALL = ("srun", "slurmstepd", "slurmd", "sshd", "sshd-session", "ssh")


@dataclass(slots=True)
class Tree:
    """``processes`` by pid, and the identity of those that have one."""

    processes: Mapping[int, NodeProcess]
    identities: Mapping[int, Identity]
    children: dict[int, list[NodeProcess]] = field(default_factory=dict)
    parts: dict[int, Part] = field(default_factory=dict)
    knows_tasks: bool = False
    """Are the pids that Slurm gave its tasks those of this look (and not of another namespace)?"""

    def __post_init__(self) -> None:
        for process in sorted(self.processes.values(), key=lambda one: one.pid):
            self.children.setdefault(process.ppid, []).append(process)
            self.parts[process.pid] = part_of(process)
        self.knows_tasks = any(
            _task_of(one) in self.processes for one in self.processes.values() if _in_step(one)
        )

    def below(self, process: NodeProcess) -> list[NodeProcess]:
        """All that it started, and what that started."""
        out: list[NodeProcess] = []
        todo = list(self.children.get(process.pid, ()))
        seen = {process.pid}
        while todo:
            one = todo.pop()
            if one.pid not in seen:
                seen.add(one.pid)
                out.append(one)
                todo += self.children.get(one.pid, ())
        return out

    def above(self, process: NodeProcess) -> list[NodeProcess]:
        """Its parent, the parent of that, and so on."""
        out: list[NodeProcess] = []
        seen = {process.pid}
        at = self.processes.get(process.ppid)
        while at is not None and at.pid not in seen:
            seen.add(at.pid)
            out.append(at)
            at = self.processes.get(at.ppid)
        return out

    def is_torch_agent(self, process: NodeProcess) -> bool:
        """torchrun and its like: what stands above ranks and is none."""
        names = (program_of(process), process.name)
        return self.parts[process.pid] is Part.AGENT and not any(
            name.startswith(_ABOVE_ALL) for name in names
        )

    def has_agent(self, step: str | None) -> bool:
        """Does an agent live in this step?"""
        return any(one.step == step and self.is_torch_agent(one) for one in self.processes.values())

    def below_task(self, process: NodeProcess) -> bool:
        """Is it the task that Slurm started, or below it? True where Slurm named none."""
        if not _in_step(process) or _task_of(process) is None:
            return True
        task = _task_of(process)
        return process.pid == task or any(one.pid == task for one in self.above(process))


def _task_of(process: NodeProcess) -> int | None:
    text = process.variable("SLURM_TASK_PID") or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else None


def _in_step(process: NodeProcess) -> bool:
    return process.step is not None and process.step.isdigit()
