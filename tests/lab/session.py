"""The cluster for one sitting of the lab: alone on it, as a real site is set, open or sealed."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.faults import Faults
from tests.cluster.fixtures import Cluster
from tests.cluster.layout import ClusterError

#: A real site gives a silent node 300 s; so long that no job of the lab ends for that.
SLURMD_TIMEOUT_S = 90
PY_SPY = Path(sys.prefix) / "bin/py-spy"


@dataclass(frozen=True, kw_only=True)
class Sitting:
    """Where runs are made."""

    cluster: Cluster
    faults: Faults
    folder: Path
    """Bundles and what slurmtop keeps: of the user alone."""


@contextmanager
def sitting(cluster: Cluster, *, sealed: bool, keep: Path | None = None) -> Iterator[Sitting]:
    """Set the cluster up; all is mended at the end. ClusterError where the mode cannot be had.

    Bundles go into ``keep``, else they are deleted at the end.
    """
    folder = keep or cluster.dir / "lab"
    folder.mkdir(mode=0o700, exist_ok=True, parents=True)
    with Faults(cluster.layout.fault_socket) as faults:
        faults.set_slurmd_timeout(SLURMD_TIMEOUT_S)
        if sealed:
            faults.seal()
        prove(cluster, sealed=sealed)
        yield Sitting(cluster=cluster, faults=faults, folder=folder)


def prove(cluster: Cluster, *, sealed: bool) -> None:
    """py-spy reads a process of one's own on every node, or on none."""
    program = "import time; print(1, flush=True); time.sleep(20)"
    script = (
        f"/usr/bin/python3 -c '{program}' >/dev/null & pid=$!; sleep 1; "
        f"timeout 10 {PY_SPY} dump --nonblocking --pid $pid 2>&1; kill $pid"
    )
    for node in cluster.nodes:
        try:
            said = cluster.ssh(node, script)
        except (ClusterError, subprocess.TimeoutExpired) as error:
            raise ClusterError(f"py-spy on {node}: {error}") from error
        reads = "<module> (<string>:1)" in said
        if reads is sealed:
            raise ClusterError(f"stacks on {node}, sealed {sealed}: {said.strip()[-300:]}")
