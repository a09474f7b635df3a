"""Where everything of the test cluster lies, and the few numbers all parts share."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
CLUSTER_NAME = "slurmtop"
ACCOUNT = "ml"
LOGIN = "login"
NODES = ("gpu01", "gpu02", "gpu03", "gpu04")
GPUS_PER_NODE = 8
BRIDGE = "br0"
LOGIN_ADDRESS = "10.213.77.1"
NETMASK_BITS = 24
SLURMCTLD_PORT = 6817
SLURMD_PORT = 6818
SLURMDBD_PORT = 6819
DATABASE_PORT = 3307
# A requeued job waits as long as a credential lives: 15 s instead of 120 s.
CRED_EXPIRE_S = 15
SBIN_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CANNOT_RUN = 3


class CannotRun(Exception):
    """The cluster cannot be made here; the text is the sentence for the user."""


class ClusterError(Exception):
    """The cluster can be made here in principle, but something went wrong."""


def node_address(node: str) -> str:
    """Address of a node, inside the cluster's own network namespace."""
    return f"10.213.77.{11 + NODES.index(node)}"


@dataclass(frozen=True)
class Layout:
    """Paths below the one directory that holds all state."""

    root: Path
    users: tuple[str, ...]

    @property
    def etc(self) -> Path:
        return self.root / "etc"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def log(self) -> Path:
        return self.root / "log"

    @property
    def spool(self) -> Path:
        return self.root / "spool"

    @property
    def database(self) -> Path:
        return self.root / "mysql"

    @property
    def devices(self) -> Path:
        return self.root / "dev"

    @property
    def shared(self) -> Path:
        """Folder that users and jobs of all nodes write to."""
        return self.root / "shared"

    @property
    def torch(self) -> Path:
        """An environment with PyTorch, for jobs of any user; ``bin/python``, ``bin/torchrun``."""
        return self.root / "torch"

    @property
    def standins(self) -> Path:
        """Programs that the nodes have in their PATH in the place of GPU tools."""
        return self.root / "standins"

    @property
    def source(self) -> Path:
        """Where the checkout is bound inside the cluster's mount namespaces."""
        return self.root / "src"

    @property
    def slurm_conf(self) -> Path:
        return self.etc / "slurm.conf"

    @property
    def munge_dir(self) -> Path:
        return self.root / "munge"

    @property
    def munge_socket(self) -> Path:
        return self.munge_dir / "munge.socket"

    @property
    def database_socket(self) -> Path:
        return self.database / "mysql.sock"

    @property
    def fault_socket(self) -> Path:
        return self.run / "faults.sock"

    @property
    def seal(self) -> Path:
        """File whose presence says that nobody on a node may look into a process."""
        return self.run / "sealed"

    @property
    def marker(self) -> Path:
        """File that says this directory is ours to fill and to delete."""
        return self.root / ".slurmtop-cluster"


def load_layout() -> Layout:
    """The layout the environment asks for."""
    root = Path(os.environ.get("SLURMTOP_CLUSTER_DIR") or "/opt/slurmtop-cluster")
    if not root.is_absolute() or len(root.parts) < 3:
        raise CannotRun(
            f"SLURMTOP_CLUSTER_DIR must be an absolute path two levels deep, not {root}"
        )
    names = os.environ.get("SLURMTOP_CLUSTER_USERS") or "alice,bob"
    users = tuple(name.strip() for name in names.split(",") if name.strip())
    if len(users) != 2 or users[0] == users[1] or "root" in users:
        raise CannotRun("SLURMTOP_CLUSTER_USERS must name two different users, none of them root")
    return Layout(root, users)
