"""Up, down and status of the whole cluster."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import sys
import time
from pathlib import Path

from tests.cluster import gpus
from tests.cluster import install as machine
from tests.cluster.confs import write_all
from tests.cluster.daemons import (
    CONTROL,
    HELPER,
    NODE_DAEMONS,
    daemon_names,
    healthy,
    node_states,
    record,
    start_all,
)
from tests.cluster.layout import LOGIN, NODES, ClusterError, Layout
from tests.cluster.procs import Record, namespace_of
from tests.cluster.spaces import (
    all_namespace_pids,
    login_record,
    make_login,
    make_node,
    node_record,
    same_checkout,
)
from tests.cluster.torch_env import TORCH, make_torch
from tests.cluster.users import make_host_keys, make_user


def own_pids(layout: Layout) -> set[int]:
    names = [*daemon_names(), LOGIN, *NODES]
    found = (Record(layout.run, name).pid for name in names)
    return {pid for pid in found if pid is not None}


def _own_pid_namespaces(layout: Layout) -> set[str]:
    """The nodes' pid namespaces; whatever runs inside is ours."""
    links = set()
    for name, pid in all_namespace_pids(layout).items():
        if name != LOGIN:
            links.add(namespace_of(pid, "pid"))
    return links - {namespace_of("self", "pid")}


def is_up(layout: Layout) -> bool:
    """Everything alive and answering; cheap, for `up` asks it first."""
    if len(all_namespace_pids(layout)) != 1 + len(NODES):
        return False
    if any(record(layout, name).pid is None for name in daemon_names()):
        return False
    if not all(gpus.shown(layout, node_record(layout, node).pid or 0) for node in NODES):
        return False
    try:
        ready = [not state.endswith("*") for state in node_states(layout).values()]
    except ClusterError:
        return False
    names = [*CONTROL, *(f"{node}.sshd" for node in NODES)]
    return len(ready) == len(NODES) and all(ready) and all(healthy(layout, name) for name in names)


def wait_for_sessions(layout: Layout, deadline_s: float = 900) -> bool:
    """Wait until no test run holds the cluster; whether there was one."""
    waited = False
    end = time.monotonic() + deadline_s
    for path in layout.shared.glob("session-*.lock"):
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    waited = True
                if time.monotonic() > end:
                    raise ClusterError("another test run keeps the cluster")
                time.sleep(0.5)
        finally:
            os.close(handle)
    return waited


def up(layout: Layout) -> str:
    """Make the cluster, or what of it is missing; what was done and how long it took."""
    machine.require_root_on_debian()
    machine.require_programs()
    said = _up(layout)
    begun = time.monotonic()
    if make_torch(layout):
        said += f"; {TORCH} in {layout.torch} ({time.monotonic() - begun:.1f} s)"
    return said


def _up(layout: Layout) -> str:
    begun = time.monotonic()
    login = login_record(layout).pid
    if login is not None and not same_checkout(layout, login):
        # One cluster a machine: it moves to the checkout that asks, once its tests are done.
        wait_for_sessions(layout)
        down(layout)
        login = None
    if is_up(layout):
        return f"already up ({time.monotonic() - begun:.1f} s)"
    # What is missing may be broken on purpose by tests that run now; they mend it themselves.
    if wait_for_sessions(layout) and is_up(layout):
        return f"already up, after waiting for a test run ({time.monotonic() - begun:.1f} s)"
    machine.require_no_other_slurm(own_pids(layout), _own_pid_namespaces(layout))
    machine.require_namespaces()
    machine.claim(layout)
    write_all(layout)
    make_host_keys(layout)
    for user in layout.users:
        make_user(layout, user)
    if login is None:
        # Nodes hang off the login's network: without it they are of no use.
        _end_nodes(layout)
        login = make_login(layout)
    for node in NODES:
        if node_record(layout, node).pid is None:
            make_node(layout, node, login)
    start_all(layout)
    return f"up ({time.monotonic() - begun:.1f} s)"


def _end_nodes(layout: Layout) -> None:
    # The first process of a pid namespace takes all others in it along, which takes 2 s:
    # all at once.
    for node in NODES:
        node_record(layout, node).send(signal.SIGKILL)
    for node in NODES:
        node_record(layout, node).end(signal.SIGKILL)
        for daemon in NODE_DAEMONS:
            record(layout, f"{node}.{daemon}").end(signal.SIGKILL)


def down(layout: Layout, *, purge: bool = False) -> str:
    """End everything; namespaces, mounts and the bridge go with their last process."""
    machine.require_root_on_debian()
    if not layout.run.exists():
        return "not up"
    login = login_record(layout).pid
    space = namespace_of(login, "mnt") if login is not None else ""
    record(layout, HELPER).end()
    record(layout, "slurmctld").end()
    _end_nodes(layout)
    # slurmdbd takes 10 s to end; what it knows is in the data base already.
    record(layout, "slurmdbd").end(patience_s=2)
    for name in ("mariadbd", "munged"):
        record(layout, name).end()
    login_record(layout).end(signal.SIGKILL)
    layout.fault_socket.unlink(missing_ok=True)
    left = _inside(space) if space else []
    note = ""
    if left:
        # Not ours to end: somebody's shell or tests started through `exec`.
        note = f"; still in its namespaces: {', '.join(left)}"
    if purge:
        _purge(layout)
        note += f"; {layout.root} deleted"
    return f"down{note}"


def _inside(space: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if namespace_of(entry.name, "mnt") == space:
                found.append(f"{(entry / 'comm').read_text().strip()} (pid {entry.name})")
        except OSError:
            continue
    return found


def _purge(layout: Layout) -> None:
    """Delete the state directory, and nothing that is mounted into it."""
    if not layout.marker.exists():
        raise ClusterError(f"{layout.root} does not carry this cluster's marker; not deleted")
    with Path("/proc/self/mounts").open(encoding="utf-8") as stream:
        points = [line.split()[1] for line in stream]
    inside = [point for point in points if Path(point).is_relative_to(layout.root)]
    if inside:
        raise ClusterError(f"something is mounted at {inside[0]}; nothing deleted")
    # Fails when it is not empty: the checkout must never be deleted through it.
    if layout.source.exists():
        layout.source.rmdir()
    shutil.rmtree(layout.root)


def status(layout: Layout) -> bool:
    """One line a daemon on stdout; whether all is well."""
    spaces = all_namespace_pids(layout)
    good = True
    for name in (LOGIN, *NODES):
        alive = name in spaces
        good = good and alive
        print(f"{name:20} {'namespaces' if alive else 'none':11} {spaces.get(name, '-')}")
    for name in daemon_names():
        entry = record(layout, name)
        pid = entry.pid
        if pid is None:
            word = "absent"
        elif entry.stopped:
            word = "stopped"
        else:
            word = "up" if LOGIN in spaces and healthy(layout, name) else "no answer"
        good = good and word == "up"
        print(f"{name:20} {word:11} {pid or '-'}")
    sys.stdout.flush()
    return good
