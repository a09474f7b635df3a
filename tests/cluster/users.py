"""The normal users: accounts, ssh keys, known hosts."""

from __future__ import annotations

import os
import pwd
import subprocess
from pathlib import Path

from tests.cluster.confs import put
from tests.cluster.layout import NODES, ClusterError, Layout, node_address


def _run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ClusterError(f"{' '.join(argv)}: {done.stderr.strip() or done.returncode}")


def make_host_keys(layout: Layout) -> None:
    """One host key a node, the same from one `up` to the next."""
    for node in NODES:
        make_host_key(layout.etc / f"ssh_{node}_ed25519_key", node)


def make_host_key(key: Path, node: str) -> None:
    if not key.exists():
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", node, "-f", str(key))


def forget_host(layout: Layout, node: str) -> None:
    """Take a node out of what the users know, as if they had never been there."""
    for name in layout.users:
        path = Path(pwd.getpwnam(name).pw_dir) / ".ssh/known_hosts"
        lines = path.read_text().splitlines()
        kept = [line for line in lines if node not in line.partition(" ")[0].split(",")]
        put(path, "".join(f"{line}\n" for line in kept), 0o600, name)


def know_hosts(layout: Layout) -> None:
    """All users know all nodes by their right keys."""
    for name in layout.users:
        path = Path(pwd.getpwnam(name).pw_dir) / ".ssh/known_hosts"
        _add_lines(path, known_hosts(layout), name, set(NODES))


def known_hosts(layout: Layout) -> list[str]:
    lines = []
    for node in NODES:
        kind, key = (layout.etc / f"ssh_{node}_ed25519_key.pub").read_text().split()[:2]
        lines.append(f"{node},{node_address(node)} {kind} {key}")
    return lines


def make_user(layout: Layout, name: str) -> None:
    """Account without a password that can reach the nodes by key; an existing one is reused."""
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        _run("useradd", "--create-home", "--shell", "/bin/bash", name)
        # "!" would be a locked account, which sshd without PAM refuses.
        _run("usermod", "-p", "*", name)
        entry = pwd.getpwnam(name)
    if entry.pw_uid == 0:
        raise ClusterError(f"{name} is root")
    folder = Path(entry.pw_dir) / ".ssh"
    key = folder / "id_ed25519"
    # As the user, so that a link in the user's home leads nowhere the user may not write.
    as_user = ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--init-groups"]
    if not key.exists():
        _run(*as_user, "mkdir", "-p", "-m", "700", str(folder))
        _run(*as_user, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(key))
    public = key.with_suffix(".pub").read_text().strip()
    _add_lines(folder / "authorized_keys", [public], name)
    _add_lines(folder / "known_hosts", known_hosts(layout), name, set(NODES))


def _add_lines(path: Path, lines: list[str], owner: str, stale: set[str] | None = None) -> None:
    """Add what lacks; lines about one of the hosts ``stale`` with another key go."""
    old = path.read_text().splitlines() if path.exists() else []
    kept = [
        line
        for line in old
        if line not in lines and not (stale and stale & set(line.partition(" ")[0].split(",")))
    ]
    new = kept + lines
    if new != old:
        put(path, "\n".join(new) + "\n", 0o600, owner)


def user_env(layout: Layout, name: str, base: dict[str, str] | None = None) -> dict[str, str]:
    """Environment of a user's processes inside the cluster."""
    entry = pwd.getpwnam(name)
    source = os.environ if base is None else base
    passed = ("TERM", "COLORTERM", "LANG", "TZ", "COLUMNS", "LINES", "CI", "NO_COLOR")
    env = {
        key: value
        for key, value in source.items()
        if key in passed or key.startswith(("LC_", "SLURMTOP_", "PYTEST_", "HYPOTHESIS_"))
    }
    env.update(
        HOME=entry.pw_dir,
        USER=name,
        LOGNAME=name,
        SHELL=entry.pw_shell or "/bin/sh",
        PATH="/usr/local/bin:/usr/bin:/bin" if entry.pw_uid else "/usr/sbin:/usr/bin:/sbin:/bin",
        SLURM_CONF=str(layout.slurm_conf),
        SLURMTOP_CLUSTER_DIR=str(layout.root),
        SLURMTOP_CLUSTER_USERS=",".join(layout.users),
        # The checkout belongs to root: nothing can be stored beside the sources.
        PYTHONDONTWRITEBYTECODE="1",
        HYPOTHESIS_STORAGE_DIRECTORY=f"{entry.pw_dir}/.cache/hypothesis",
    )
    return env
