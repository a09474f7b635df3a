"""Memory limits for single processes, by cgroups of version 1 or 2: who wants more is killed."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.cluster.layout import CannotRun

_ROOT = Path("/sys/fs/cgroup")
_PREFIX = "slurmtop-limit-"


def _base() -> tuple[Path, bool]:
    """Where groups with a memory limit can be made, and whether that is version 2."""
    if (_ROOT / "memory/memory.limit_in_bytes").exists():
        return _ROOT / "memory", False
    controllers = _ROOT / "cgroup.controllers"
    if controllers.exists() and "memory" in controllers.read_text().split():
        return _ROOT, True
    raise CannotRun("no cgroup here has a memory limit")


def limit_memory(pid: int, most_bytes: int) -> str:
    """Put a process (by the machine's own number) into a group of its own; the group's name."""
    base, second = _base()
    group = base / f"{_PREFIX}{pid}"
    try:
        if second:
            (base / "cgroup.subtree_control").write_text("+memory")
        group.mkdir(exist_ok=True)
        if second:
            (group / "memory.max").write_text(str(most_bytes))
            (group / "memory.swap.max").write_text("0")
        else:
            (group / "memory.limit_in_bytes").write_text(str(most_bytes))
        (group / "cgroup.procs").write_text(str(pid))
    except OSError as error:
        raise CannotRun(f"no memory limit can be set here: {error}") from error
    return group.name


def oom_kills(name: str) -> tuple[int, list[str]]:
    """How often the kernel killed in a group, and its lines that name the group or who it was."""
    base, second = _base()
    told = base / name / ("memory.events" if second else "memory.oom_control")
    counts = dict(line.split() for line in told.read_text().splitlines())
    done = subprocess.run(["dmesg"], capture_output=True, text=True, check=False, timeout=20)
    pid = name.removeprefix(_PREFIX)
    lines = [line for line in done.stdout.splitlines() if name in line or f"process {pid} " in line]
    return int(counts.get("oom_kill", 0)), lines


def lift_limits() -> None:
    """Let all go back to where there is no limit, and remove the groups."""
    try:
        base, _ = _base()
    except CannotRun:
        return
    for group in base.glob(f"{_PREFIX}*"):
        for pid in (group / "cgroup.procs").read_text().split():
            (base / "cgroup.procs").write_text(pid)
        group.rmdir()
