"""What runs inside a node, as root sees it from outside."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
from collections.abc import Iterator
from pathlib import Path

from tests.cluster.daemons import record
from tests.cluster.layout import ClusterError, Layout
from tests.cluster.procs import namespace_of
from tests.cluster.spaces import node_record


def _pids(layout: Layout, node: str) -> Iterator[int]:
    first = node_record(layout, node).pid
    if first is None:
        raise ClusterError(f"{node} is not up")
    outer = namespace_of("self", "pid")
    space = namespace_of(first, "pid")
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if namespace_of(entry.name, "pid") != outer and _is_below(
                int(entry.name), first, space
            ):
                yield int(entry.name)
        except OSError:
            continue


def _is_below(pid: int, first: int, space: str) -> bool:
    """In the node's pid namespace, or in one that was made inside it."""
    if namespace_of(pid, "pid") == space:
        return True
    while pid > 1:
        if pid == first or namespace_of(pid, "pid") == space:
            return True
        pid = int(_status(pid)["PPid"])
    return False


def _status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def processes_of(layout: Layout, node: str) -> list[dict[str, object]]:
    """All processes of a node but zombies."""
    found: list[dict[str, object]] = []
    # In the list of a process's numbers, from the machine's own inwards, where the node's stands.
    depth = len(_status(node_record(layout, node).pid or 1)["NSpid"].split()) - 1
    for pid in _pids(layout, node):
        try:
            status = _status(pid)
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
            uid = int(status["Uid"].split()[0])
            parent = int(status["PPid"])
            inner = status["NSpid"].split()[depth]
            above = _status(parent)["NSpid"].split() if parent else []
        except (OSError, KeyError, IndexError):
            continue
        if status["State"][:1] in "ZX":
            continue
        found.append(
            {
                "pid": int(inner),
                "parent": int(above[depth]) if len(above) > depth else 0,
                "user": _name(uid),
                "state": status["State"][:1],
                "name": status["Name"],
                "argv": " ".join(word.decode(errors="replace") for word in words),
            }
        )
    return sorted(found, key=lambda one: int(str(one["pid"])))


def outer_pid(layout: Layout, node: str, pid: int) -> int:
    """The machine's own number of a process that the node calls ``pid``."""
    depth = len(_status(node_record(layout, node).pid or 1)["NSpid"].split()) - 1
    for outer in _pids(layout, node):
        inner = _status(outer)["NSpid"].split()
        if len(inner) > depth and int(inner[depth]) == pid:
            return outer
    raise ClusterError(f"no process {pid} on {node}")


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def end_sessions(layout: Layout, node: str) -> None:
    """Cut every ssh session on a node: its sshd children, as a crash of sshd would not."""
    listener = record(layout, f"{node}.sshd").pid
    for pid in list(_pids(layout, node)):
        try:
            is_sshd = Path(f"/proc/{pid}/comm").read_text().strip() == "sshd"
        except OSError:
            continue
        if is_sshd and pid != listener:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def job_processes(layout: Layout, node: str) -> list[int]:
    """The machine's own numbers of all that Slurm runs for jobs on a node: its step daemons, and
    whatever descends from one."""
    parents, found = {}, set()
    for pid in _pids(layout, node):
        try:
            parents[pid] = int(_status(pid)["PPid"])
            if Path(f"/proc/{pid}/comm").read_text().strip() == "slurmstepd":
                found.add(pid)
        except (OSError, KeyError):
            continue
    more = found
    while more:
        more = {pid for pid, parent in parents.items() if parent in more} - found
        found |= more
    return sorted(found)


def send_all(pids: list[int], number: signal.Signals) -> None:
    """Signal those that are still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
