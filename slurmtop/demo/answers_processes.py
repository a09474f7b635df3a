"""What a simulated node tells of its processes, and of what may be read there."""

from collections.abc import Sequence

from slurmtop.demo.doing import doing
from slurmtop.demo.nodes import DemoNode
from slurmtop.demo.processes import HZ, UP_S, Process, processes_on
from slurmtop.demo.values import View

#: Everybody may read the stacks of their own processes.
PTRACE = 0
PY_SPY = "/opt/venv/bin/py-spy"


def who_lines(view: View, one: Process, state: str) -> list[str]:
    """What every look tells of one process."""
    job = one.job
    group = f"0::{group_of(one)}"
    out = [
        f"S {one.pid} {one.start_ticks} {one.ppid} {state} {one.name}",
        f"U {one.pid} {job.spec.uid} {one.caught:016x} {one.ignored:016x} {one.threads} {one.pid}",
        f"C {one.pid} {group}",
    ]
    if view.mine(job):
        out.append(f"R {one.pid}")
        out += [f"E {one.pid} {name}={value}" for name, value in one.env]
    out += [f"A {one.pid} {word}" for word in one.argv]
    out.append(f"T {one.pid} {one.start_ticks}")
    return out


def group_of(one: Process) -> str:
    return f"/system.slice/slurmstepd.scope/job_{one.job.id}/step_{one.step}/user/task_0"


def node_lines(view: View, node: DemoNode) -> list[str]:
    """What every look tells of a node."""
    return [
        "slurmtop-processes 1",
        "M self 99001",
        f"M time {int(view.when(view.t).timestamp())}",
        f"M uptime {UP_S + view.t}.00 1.00",
        f"M hz {HZ}",
        f"M boot 7c0ffee0-0000-4000-8000-0000000000{node.name[-2:]}",
        f"M ptrace {PTRACE}",
    ]


def process_lines(view: View, node: DemoNode, words: Sequence[str]) -> str:
    """The answer of slurmtop's script for processes: one's own, and a named job's."""
    out = node_lines(view, node)
    wanted = words[0] if words else None
    users: dict[int, str] = {}
    for one in processes_on(view, node):
        job = one.job
        if str(job.id) != wanted and not view.mine(job):
            continue
        users[job.spec.uid] = job.spec.user
        out += who_lines(view, one, doing(view, one).state)
    out += [f"N {uid} {name}" for uid, name in users.items()]
    return "".join(line + "\n" for line in [*out, "end"])


def access_lines(view: View, node: DemoNode, words: Sequence[str]) -> str:
    """The answer of slurmtop's script for what may be read; ``words`` may name one job."""
    own = [one for one in processes_on(view, node) if view.mine(one.job)]
    job = words[0] if words else ""
    inside = sum(1 for one in own if str(one.job.id) == job)
    pairs = [
        ("user", f"{view.uid} {view.user}"),
        ("groups", "users ml"),
        ("system", "Linux 5.15.0-122-generic x86_64"),
        ("ptrace", str(PTRACE)),
        ("dmesg_restrict", "1"),
        ("dmesg", "1"),
        ("journal", "refused"),
        ("proc", "rw,nosuid,nodev,noexec,relatime"),
        ("sees_others", "yes"),
        ("driver", "yes"),
        ("cgroup", "0::/system.slice/sshd.service"),
        ("processes", f"{len(own)} 0 {inside}"),
        ("set", "NCCL_DEBUG=INFO"),
        ("tool", "nvidia-smi /usr/bin/nvidia-smi"),
        ("tool", "dcgmi /usr/bin/dcgmi"),
        ("tool", "amd-smi "),
        ("tool", "rocm-smi "),
        ("tool", f"py-spy {PY_SPY}"),
        ("end", "1"),
    ]
    return "".join(f"{name}\t{value}\n" for name, value in pairs)
