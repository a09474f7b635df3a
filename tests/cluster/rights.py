"""Who may look at the job of somebody else: root on the login side, ``sudo`` on the nodes; and a
training of the second user to look at. Run by the fault helper, as root.

All of it is mounts in the namespaces of the cluster: /root and /etc/sudoers of the machine stay as
they are. What is done with root's rights here is one fixed command line.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.cluster.confs import folder, put, sshd_config
from tests.cluster.daemons import slurm_env
from tests.cluster.inside import outer_pid
from tests.cluster.layout import NODES, ClusterError, Layout
from tests.cluster.spaces import command, login_record, node_record
from tests.cluster.users import known_hosts

HOME, SUDOERS = Path("/root"), Path("/etc/sudoers")
_MARK = ".slurmtop-cluster"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,60}")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,60}")
_JOB = re.compile(r"\d{1,10}")
_OPTIONS = ("--json", "--look")
_DEADLINE_S = 90
#: For the first user: what the settings of slurmtop name, and nothing else; or all but that.
SUDO = ("granted", "refused")


class Rights:
    """The requests of the helper that are about them."""

    def __init__(
        self,
        layout: Layout,
        as_other: Callable[..., str],
        serve_ssh: Callable[[str, str], None],
    ) -> None:
        self._layout = layout
        self._as_other = as_other
        self._serve_ssh = serve_ssh

    def verbs(self) -> dict[str, Callable[[dict[str, Any]], dict[str, Any]]]:
        return {
            "train_other": self.train_other,
            "signal_other": self.signal_other,
            "root_ways": self.root_ways,
            "as_root": lambda request: slurmtop_as_root(self._layout, request.get("words")),
            "node_sudo": self.node_sudo,
        }

    def train_other(self, request: dict[str, Any]) -> dict[str, Any]:
        """A training of the second user over all nodes."""
        job, at = submit_training(self._layout, request, self._as_other)
        return {"job": job, "folder": at}

    def signal_other(self, request: dict[str, Any]) -> dict[str, Any]:
        """Stop a process of the second user, or let it go on."""
        node = _one_of(request.get("node"), NODES)
        signal_other(self._layout, node, request.get("pid"), request.get("stop"))
        return {}

    def root_ways(self, _request: dict[str, Any]) -> dict[str, Any]:
        """Root of the login side may log in on the nodes."""
        let_root_in(self._layout)
        for node in NODES:
            self._serve_ssh(node, sshd_config(self._layout, node, root=True))
        return {}

    def node_sudo(self, request: dict[str, Any]) -> dict[str, Any]:
        """What ``sudo`` lets the first user do on the nodes."""
        set_sudo(self._layout, _one_of(request.get("how"), SUDO))
        return {}


def _one_of(value: object, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise ValueError(f"{value!r} is none of {', '.join(choices)}")
    return str(value)


def submit_training(
    layout: Layout, request: Mapping[str, Any], as_other: Callable[..., str]
) -> tuple[str, str]:
    """A training of the second user over all nodes; its id, and the folder that it writes to."""
    name, env = request.get("name"), request.get("env") or {}
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError("name must be 1 to 60 letters, digits, '_' or '-'")
    if not isinstance(env, dict) or not all(
        _VARIABLE.fullmatch(key) and isinstance(value, str) and value.isprintable()
        for key, value in env.items()
    ):
        raise ValueError("env holds names and printable values")
    jobs = layout.source / "tests/cluster/jobs"
    at = layout.shared / f"other-{name}"
    folder(at, 0o755, layout.users[1])
    words = {"TRAINS": str(jobs / "trains.py"), "SLURMTOP_CLUSTER_DIR": str(layout.root), **env}
    options = (f"--job-name={name}", f"--output={at}/%j.log", f"--chdir={at}", "--parsable")
    pairs = [f"{key}={value}" for key, value in words.items()]
    argv = ("env", *pairs, "sbatch", *options, "--time=10", str(jobs / "trains.sh"))
    return as_other("sh", "-c", 'umask 022; exec "$@"', "sh", *argv).strip().partition(";")[0], str(
        at
    )


def signal_other(layout: Layout, node: str, pid: object, stop: object) -> None:
    """Stop one process of the second user, or let it go on."""
    if not isinstance(pid, int) or not isinstance(stop, bool):
        raise ValueError("pid is a number, stop true or false")
    outer = outer_pid(layout, node, pid)
    if Path(f"/proc/{outer}").stat().st_uid != pwd.getpwnam(layout.users[1]).pw_uid:
        raise ClusterError(f"process {pid} on {node} is not {layout.users[1]}'s")
    os.kill(outer, signal.SIGSTOP if stop else signal.SIGCONT)


def let_root_in(layout: Layout) -> None:
    """Root of the login side has a key that is good on the nodes, in a home of its own."""
    home = layout.etc / "root-home"
    folder(home, 0o700)
    folder(home / ".ssh", 0o700)
    key = home / ".ssh/id_ed25519"
    if not key.exists():
        command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "root", "-f", str(key))
    put(home / ".ssh/authorized_keys", key.with_suffix(".pub").read_text(), 0o600)
    put(home / ".ssh/known_hosts", "".join(f"{line}\n" for line in known_hosts(layout)), 0o600)
    put(home / _MARK, "")
    for pid in _first_pids(layout):
        if not _marked(pid, HOME / _MARK):
            command("mount", "--bind", str(home), str(HOME), inside=pid)


def keep_root_out(layout: Layout) -> None:
    for pid in _first_pids(layout):
        if _marked(pid, HOME / _MARK):
            _umount(pid, HOME)


def slurmtop_as_root(layout: Layout, words: object) -> dict[str, Any]:
    """``triage JOB`` or ``why JOB`` by root on the login side: what it said."""
    if not isinstance(words, list) or len(words) < 2:
        raise ValueError("words are a subcommand, a job and options")
    verb, job, *options = (str(word) for word in words)
    if verb not in ("triage", "why") or not _JOB.fullmatch(job) or set(options) - {*_OPTIONS}:
        raise ValueError(f"only triage and why of one job, with {' '.join(_OPTIONS)}")
    env = {**slurm_env(layout), "HOME": str(HOME), "USER": "root", "PYTHONDONTWRITEBYTECODE": "1"}
    login = login_record(layout).pid
    if login is None:
        raise ClusterError("the cluster is not up")
    enter = ["nsenter", f"--target={login}", "--net", "--uts", "--mount", f"--wd={layout.source}"]
    argv = [str(layout.source / ".venv/bin/python"), "-m", "slurmtop", verb, job, *options]
    done = subprocess.run(
        [*enter, "--", *argv],
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_DEADLINE_S,
        check=False,
    )
    return {"rc": done.returncode, "out": done.stdout, "err": done.stderr}


def set_sudo(layout: Layout, how: str | None) -> None:
    """What ``sudo`` lets the first user run on the nodes; None: as the machine has it."""
    for node in NODES:
        pid = node_record(layout, node).pid
        if pid is None:
            continue
        while _marked(pid, SUDOERS, b"# slurmtop-cluster"):
            _umount(pid, SUDOERS)
        if how is not None:
            put(layout.etc / "sudoers", _sudoers(layout, granted=how == "granted"), 0o440)
            command("mount", "--bind", str(layout.etc / "sudoers"), str(SUDOERS), inside=pid)


def _sudoers(layout: Layout, *, granted: bool) -> str:
    tool = layout.source / ".venv/bin/py-spy"
    lines = [
        "# slurmtop-cluster",
        "Defaults env_reset, !use_pty, !syslog, !lecture",
        "root ALL=(ALL:ALL) NOPASSWD: ALL",
    ]
    if granted:
        lines.append(f"{layout.users[0]} ALL=(root) NOPASSWD: /bin/sh, /usr/bin/sh, {tool}")
    return "\n".join(lines) + "\n"


def _umount(pid: int, path: Path) -> None:
    """umount reads /proc/self, which only a process of the node's own pid namespace has there."""
    command("nsenter", f"--target={pid}", "--pid", "--mount", "--", "umount", "--lazy", str(path))


def _first_pids(layout: Layout) -> list[int]:
    found = [login_record(layout).pid, *(node_record(layout, node).pid for node in NODES)]
    return [pid for pid in found if pid is not None]


def _marked(pid: int, path: Path, begins: bytes = b"") -> bool:
    try:
        return Path(f"/proc/{pid}/root{path}").read_bytes().startswith(begins)
    except OSError:
        return False


def forget_others(layout: Layout) -> None:
    """Take away what jobs of the second user have written."""
    for path in layout.shared.glob("other-*"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
