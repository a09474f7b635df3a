"""Namespaces and the network between them.

The login side (controller, data base, tests) has net, uts and mount
namespaces of its own, a node a pid namespace as well.  The bridge lives in
the login's network namespace: the machine's own network stays as it is, no
port can clash, and all of it is gone when its last process is.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
from pathlib import Path

from tests.cluster.confs import folder
from tests.cluster.layout import (
    BRIDGE,
    CHECKOUT,
    LOGIN,
    LOGIN_ADDRESS,
    NETMASK_BITS,
    NODES,
    SBIN_PATH,
    ClusterError,
    Layout,
    node_address,
)
from tests.cluster.procs import CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWUTS, Record, spawn, unshare

ROOT_ENV = {"PATH": SBIN_PATH, "HOME": "/root", "LANG": "C.UTF-8"}


def command(*argv: str, inside: int | None = None, deadline_s: float = 60) -> str:
    """Run a command as root, in the net, uts and mount namespaces of ``inside``."""
    full = list(argv)
    if inside is not None:
        full = ["nsenter", f"--target={inside}", "--net", "--uts", "--mount", "--", *argv]
    try:
        done = subprocess.run(
            full, env=ROOT_ENV, capture_output=True, text=True, timeout=deadline_s, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ClusterError(f"{' '.join(argv)}: no end within {deadline_s:g} s") from error
    if done.returncode != 0:
        raise ClusterError(
            f"{' '.join(argv)}: {(done.stderr or done.stdout).strip() or done.returncode}"
        )
    return done.stdout


def login_record(layout: Layout) -> Record:
    return Record(layout.run, LOGIN)


def node_record(layout: Layout, node: str) -> Record:
    return Record(layout.run, node)


def make_login(layout: Layout) -> int:
    """Start the process that holds the login side's namespaces."""

    def prepare() -> None:
        unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWNET)
        socket.sethostname(LOGIN)
        command("mount", "--make-rprivate", "/")
        command("mount", "--bind", str(layout.etc / "hosts"), "/etc/hosts")
        # Parents do not matter for a bind mount: a checkout below a 0700 folder can be read.
        command("mount", "--bind", str(CHECKOUT), str(layout.source))
        command("mount", "-t", "tmpfs", "-o", "mode=755,size=64m", "tmpfs", "/run")
        for name, mode in (("sshd", 0o755), ("lock", 0o1777), ("user", 0o755)):
            folder(Path("/run") / name, mode)
        command("ip", "link", "set", "lo", "up")
        command("ip", "link", "add", BRIDGE, "type", "bridge")
        command("ip", "addr", "add", f"{LOGIN_ADDRESS}/{NETMASK_BITS}", "dev", BRIDGE)
        command("ip", "link", "set", BRIDGE, "up")

    return spawn(
        login_record(layout),
        ["/usr/bin/sleep", "infinity"],
        layout.log / "login.log",
        ROOT_ENV,
        prepare=prepare,
    )


def make_node(layout: Layout, node: str, login: int) -> int:
    """Start a node's first process and plug its network cable in."""

    def prepare() -> None:
        unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWNET)
        socket.sethostname(node)
        command("mount", "-t", "proc", "proc", "/proc")
        _own_sysfs()
        # /run is the login's; a node needs one of its own.
        command("mount", "-t", "tmpfs", "-o", "mode=755,size=64m", "tmpfs", "/run")
        folder(Path("/run/sshd"))
        # The first process of a pid namespace inherits orphans; ignored children need no reaping.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    pid = spawn(
        node_record(layout, node),
        ["/usr/bin/sleep", "infinity"],
        layout.log / f"{node}.log",
        ROOT_ENV,
        inside=login,
        new_pid_namespace=True,
        prepare=prepare,
    )
    cable = cable_name(node)
    # The kernel takes a dead node's cable away only some time after its last process.
    with contextlib.suppress(ClusterError):
        command("ip", "link", "delete", cable, inside=login)
    command(
        *("ip", "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", str(pid)),
        inside=login,
    )
    command("ip", "link", "set", cable, "master", BRIDGE, "up", inside=login)
    command("ip", "link", "set", "lo", "up", inside=pid)
    command("ip", "addr", "add", f"{node_address(node)}/{NETMASK_BITS}", "dev", "eth0", inside=pid)
    command("ip", "link", "set", "eth0", "up", inside=pid)
    return pid


def cable_name(node: str) -> str:
    """The bridge's end of a node's link."""
    return f"veth-{node}"


def _own_sysfs() -> None:
    """Show the node's network devices in /sys, and the machine's cgroups read-only as before."""
    keep = "/mnt"
    command("mount", "--rbind", "/sys/fs/cgroup", keep)
    command("mount", "-t", "sysfs", "sysfs", "/sys")
    command("mount", "--rbind", keep, "/sys/fs/cgroup")
    command("umount", "--recursive", "--lazy", keep)
    with Path("/proc/self/mounts").open(encoding="utf-8") as stream:
        points = [
            line.split()[1] for line in stream if line.split()[1].startswith("/sys/fs/cgroup")
        ]
    for point in points:
        command("mount", "-o", "remount,bind,ro", point)


def same_checkout(layout: Layout, login: int) -> bool:
    """Whether the cluster shows this very checkout and not another one."""
    inner, outer = Path(f"/proc/{login}/root{layout.source}").stat(), CHECKOUT.stat()
    return (inner.st_dev, inner.st_ino) == (outer.st_dev, outer.st_ino)


def all_namespace_pids(layout: Layout) -> dict[str, int]:
    """First processes that are alive: login and nodes."""
    found = {LOGIN: login_record(layout).pid, **{n: node_record(layout, n).pid for n in NODES}}
    return {name: pid for name, pid in found.items() if pid is not None}
