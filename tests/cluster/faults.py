"""Client of the fault helper, used by tests as the normal user.

>>> faults = Faults.from_environment()
>>> faults.kill("slurmctld"); ...; faults.start("slurmctld")
"""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from tests.cluster.layout import NODES, load_layout

Control = Literal["slurmctld", "slurmdbd", "munged"]
NodeDaemon = Literal["slurmd", "sshd", "nv-hostengine", "dcgm-exporter"]
#: How a node's sshd treats who comes: as usual; nobody listens; its key is known to nobody; its
#: key is another one than users know; no user's key is good.
SshFault = Literal["open", "closed", "unknown key", "other key", "refuses"]
GpuMode = Literal[
    "normal",
    "straggler",
    "waiting",
    "idle",
    "hung",
    "old-driver",
    "lost",
    "mig",
    "no-hostengine",
    "no-profiling",
]
# `restore` waits for daemons and nodes one after the other.
DEADLINE_S = 400.0


class FaultError(Exception):
    """The helper refused or failed; the text says why."""


@dataclass(frozen=True, kw_only=True)
class NodeProcess:
    """One process of a node. ``pid`` and ``parent`` are the node's own numbers."""

    pid: int
    parent: int
    user: str
    state: str
    name: str
    argv: str


class Faults:
    """Synchronous calls; each returns when the fault is there (or gone)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.broken = False
        self.others_jobs = False

    @classmethod
    def from_environment(cls) -> Faults:
        return cls(load_layout().fault_socket)

    def _call(self, cmd: str, **fields: object) -> dict[str, Any]:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(DEADLINE_S)
            try:
                connection.connect(str(self.path))
                connection.sendall(json.dumps({"cmd": cmd, **fields}).encode() + b"\n")
                with connection.makefile("rb") as lines:
                    line = lines.readline()
            except OSError as error:
                raise FaultError(f"fault helper at {self.path}: {error}") from error
        if not line:
            raise FaultError("the fault helper closed the connection")
        answer: dict[str, Any] = json.loads(line)
        if not answer.get("ok"):
            raise FaultError(str(answer.get("error")))
        return answer

    def ping(self) -> None:
        self._call("ping")

    def kill(self, what: Control, *, hard: bool = False) -> None:
        """End a daemon: SIGTERM (it saves its state), or SIGKILL when ``hard``."""
        self.broken = True
        self._call("kill", what=what, hard=hard)

    def stop(self, what: Control) -> None:
        """SIGSTOP a daemon: it is there and does not answer."""
        self.broken = True
        self._call("stop", what=what)

    def cont(self, what: Control) -> None:
        """SIGCONT a stopped daemon."""
        self._call("cont", what=what)

    def start(self, what: Control) -> None:
        """Start a daemon that was killed; returns when it answers."""
        self._call("start", what=what)

    def stop_node(self, node: str, what: NodeDaemon) -> None:
        """End one daemon of a node."""
        self.broken = True
        self._call("node_stop", node=node, what=what)

    def start_node(self, node: str, what: NodeDaemon) -> None:
        self._call("node_start", node=node, what=what)

    def set_ssh(self, node: str, how: SshFault, *, cut: bool = False) -> None:
        """From now on a node's sshd treats who comes so; ``cut`` ends the sessions that are open.

        Without ``cut`` those go on, as on a real node.
        """
        self.broken = True
        self._call("node_ssh", node=node, how=how, cut=cut)

    def open_etc_ssh(self, *known_hosts: str) -> None:
        """The login's /etc/ssh knows these host keys, and lets its people log in by host."""
        self.broken = True
        self._call("login_ssh", known_hosts=list(known_hosts))

    def close_ssh(self, *, cut: bool = True) -> None:
        """No node lets anybody in by ssh."""
        for node in NODES:
            self.set_ssh(node, "closed", cut=cut)

    def open_ssh(self) -> None:
        for node in NODES:
            self.set_ssh(node, "open")

    def set_gpu(self, node: str, mode: GpuMode, gpu: int | None = None) -> None:
        """What ``nvidia-smi`` and ``dcgmi`` say on a node from now on.

        ``straggler``, ``lost`` and ``mig`` are about the GPU with the index ``gpu``. ``hung``: a
        process that the user cannot end, in state D; the next mode ends it.
        """
        self.broken = True
        self._call("node_gpus", node=node, mode=mode, gpu=gpu)

    def processes(self, node: str) -> list[NodeProcess]:
        """Every process of a node, as root sees them."""
        found = self._call("node_processes", node=node)["processes"]
        return [NodeProcess(**one) for one in found]

    def freeze(self, node: str) -> None:
        """A node stands still: its Slurm daemon and all that it runs for jobs are stopped.

        ssh goes on: whoever comes sees them stand.
        """
        self.broken = True
        self._call("node_freeze", node=node)

    def thaw(self, node: str) -> None:
        self._call("node_thaw", node=node)

    def limit_memory(self, node: str, pid: int, most_bytes: int) -> str:
        """Let a process of a node have no more memory than this; the name of the limit.

        The kernel kills it once it wants more. FaultError where this machine lets nobody do so.
        """
        self.broken = True
        return str(self._call("memory", node=node, pid=pid, bytes=most_bytes)["limit"])

    def oom_kills(self, limit: str) -> tuple[int, list[str]]:
        """How often the kernel killed under a limit, and what its log says of that."""
        answer = self._call("oom_kills", limit=limit)
        return int(answer["count"]), [str(line) for line in answer["lines"]]

    def drain(self, node: str, reason: str) -> None:
        self.broken = True
        self._call("node_state", node=node, state="drain", reason=reason)

    def node_down(self, node: str, reason: str) -> None:
        """Mark a node DOWN as an administrator does; its jobs end."""
        self.broken = True
        self._call("node_state", node=node, state="down", reason=reason)

    def resume(self, node: str) -> None:
        self._call("node_state", node=node, state="resume")

    def link_down(self, node: str) -> None:
        """Pull a node's network cable."""
        self.broken = True
        self._call("link", node=node, state="down")

    def link_up(self, node: str) -> None:
        self._call("link", node=node, state="up")

    def submit_other(
        self,
        *,
        name: str = "other",
        seconds: int = 600,
        gpus: int = 0,
        private_log: bool = False,
    ) -> str:
        """Submit a sleeping job as the cluster's second user; returns its id.

        ``private_log`` gives it a log that only its owner may read (mode 0600), in a folder
        that everybody may look into; else it has none.
        """
        self.others_jobs = True
        fields = {"name": name, "seconds": seconds, "gpus": gpus, "private_log": private_log}
        return str(self._call("submit_other", **fields)["job"])

    def train_other(
        self, *, name: str = "other", env: dict[str, str] | None = None
    ) -> tuple[str, Path]:
        """Submit a training of the second user; its id, and the folder of its logs."""
        self.others_jobs = True
        answer = self._call("train_other", name=name, env=env or {})
        return str(answer["job"]), Path(str(answer["folder"]))

    def signal_other(self, node: str, pid: int, *, stop: bool) -> None:
        """Stop a process of the second user, or let it go on."""
        self.broken = True
        self._call("signal_other", node=node, pid=pid, stop=stop)

    def let_root_in(self) -> None:
        """Root of the login side can log in on the nodes."""
        self.broken = True
        self._call("root_ways")

    def as_root(self, *words: str) -> dict[str, Any]:
        """``slurmtop triage JOB …`` by root of the login side: ``rc``, ``out``, ``err``."""
        return self._call("as_root", words=list(words))

    def set_sudo(self, how: Literal["granted", "refused"]) -> None:
        """Whether ``sudo`` on the nodes lets the tests' user run sh and py-spy as root."""
        self.broken = True
        self._call("node_sudo", how=how)

    def hang(self, folder: Path) -> None:
        """A folder below the shared one answers nobody on the login side any more."""
        self.broken = True
        self._call("hang", folder=str(folder))

    def cancel_other(self) -> None:
        """Cancel all jobs of the second user."""
        self._call("cancel_other")
        self.others_jobs = False

    def rpc_counts(self, *, reset: bool = False) -> dict[str, int]:
        """RPCs the controller served since its start (or the last reset), by user."""
        users = self._call("sdiag", reset=reset)["users"]
        return {name: int(values["count"]) for name, values in users.items()}

    def sdiag(self, *, reset: bool = False) -> dict[str, Any]:
        """``users`` (count, ave_us, total_us each) and ``types`` (count each)."""
        answer = self._call("sdiag", reset=reset)
        return {"users": answer["users"], "types": answer["types"]}

    def forget_ended(self) -> None:
        """Make the controller forget ended jobs 2 s after their end (default 300 s).

        It looks for them every 10 s; wait for ``scontrol show job`` to know one no more.
        """
        self.broken = True
        self._call("forget_ended")

    def set_slurmd_timeout(self, seconds: int) -> None:
        """How long a node may be silent before the controller calls it DOWN (default here: 30)."""
        self.broken = True
        self._call("slurmd_timeout", seconds=seconds)

    def seal(self, sealed: bool = True) -> None:
        """From now on nobody on a node may look into a process: ptrace and its like are refused.

        All sessions and Slurm's daemons there begin anew, so no job may be running.
        """
        self.broken = True
        self._call("seal", sealed=sealed)

    def reconfigure(self) -> None:
        self._call("reconfigure")

    def restore(self) -> None:
        """Mend everything that may be broken; returns when all of it answers."""
        self._call("restore")
        self.broken = False

    def __enter__(self) -> Faults:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.broken:
            self.restore()
        if self.others_jobs:
            self.cancel_other()


def available() -> bool:
    """Whether this process may use a fault helper."""
    return os.access(load_layout().fault_socket, os.W_OK)
