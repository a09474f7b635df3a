"""One ``slurmtop triage JOB --save DIR --json``, timed from its start."""

import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.faults import Faults
from tests.cluster.fixtures import Cluster
from tests.cluster.layout import ClusterError
from tests.cluster.procs import wait_until
from tests.lab.node_cpu import NodeCpu
from tests.lab.rows import Look

#: No answer may take longer, whatever happens.
DEADLINE_S = 90
#: What slurmtop runs on a node, by its words.
_OURS = re.compile(r"\bslurmtop-(?!cluster)|\bpy-spy\b|^sshd: \w+@")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The job to look at, and until when its bundle must be saved (``time.time``)."""

    job: str
    folder: Path
    when: str
    after_s: float
    before: float


def look(cluster: Cluster, faults: Faults, asked: Asked) -> Look:
    """Start the command and wait for its end."""
    slurm = ",".join(sorted(cluster.states(asked.job)))
    own_before = _own_cpu()
    bundle = asked.folder / f"bundle-{asked.job}-{asked.when}"
    argv = [sys.executable, "-m", "slurmtop", "triage", asked.job, "--json", "--save", str(bundle)]
    begun = time.monotonic()
    with NodeCpu() as nodes:
        rc, out, told = _run(argv, _environ(asked.folder), begun)
    took, ended = time.monotonic() - begun, time.time()
    said, left = _verdict(out), _left(cluster, faults)
    saved = (bundle / "manifest.json").is_file()
    return Look(
        when=asked.when,
        after_s=round(asked.after_s, 1),
        slurm=slurm,
        rc=rc,
        took_s=round(took, 2),
        first_s=_when(told, "(first answer|verdict)") or (round(took, 2) if said else None),
        verdict_s=_when(told, "verdict") or (round(took, 2) if said else None),
        own_cpu_s=round(_own_cpu() - own_before, 2),
        node_cpu_s=round(nodes.used_s, 2),
        bundle_bytes=sum(path.stat().st_size for path in bundle.rglob("*") if path.is_file()),
        saved=saved,
        in_time=saved and ended < asked.before,
        left=left,
        verdict=said,
        told=tuple(f"{at:.2f} {line}" for at, line in told)[-40:],
    )


def _run(
    argv: list[str], env: dict[str, str], begun: float
) -> tuple[int, bytes, list[tuple[float, str]]]:
    """Exit status, stdout, and the lines of stderr with their times."""
    with subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env,
    ) as child:
        try:
            out, told = _read(child, begun)
            return child.wait(timeout=10), out, told
        finally:
            if child.poll() is None:
                child.kill()


def _environ(folder: Path) -> dict[str, str]:
    """No settings but the defaults; a folder of its own for what slurmtop keeps."""
    own = folder / "home"
    own.mkdir(exist_ok=True, mode=0o700)
    xdg = {f"XDG_{name}_HOME": str(own / name.lower()) for name in ("CONFIG", "STATE", "CACHE")}
    return {**os.environ, **xdg, "SLURMTOP_TRACEBACK": "1"}


def _read(child: "subprocess.Popen[bytes]", begun: float) -> tuple[bytes, list[tuple[float, str]]]:
    """All of stdout, and the lines of stderr with the seconds at which they came."""
    assert child.stdout is not None
    assert child.stderr is not None
    # What is printed at the end is little: a pipe holds it while stderr is read line by line.
    os.set_blocking(child.stdout.fileno(), False)
    told: list[tuple[float, str]] = []
    out = b""
    os.set_blocking(child.stderr.fileno(), False)
    rest = b""
    while True:
        ended = child.poll() is not None
        out += child.stdout.read() or b""
        rest += child.stderr.read() or b""
        *lines, rest = rest.split(b"\n")
        told += [(time.monotonic() - begun, line.decode(errors="replace")) for line in lines]
        if ended:
            break
        if time.monotonic() - begun > DEADLINE_S:
            told.append((DEADLINE_S, "the lab ended it"))
            child.kill()
        time.sleep(0.02)
    if rest:
        told.append((time.monotonic() - begun, rest.decode(errors="replace")))
    return out, told


def _when(told: list[tuple[float, str]], word: str) -> float | None:
    """When the first such line came."""
    pattern = re.compile(rf"slurmtop: [\d.]+ s: {word}\b")
    return next((round(at, 2) for at, line in told if pattern.match(line)), None)


def _verdict(out: bytes) -> dict[str, Any] | None:
    try:
        data = json.loads(out)
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


def _own_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _left(cluster: Cluster, faults: Faults) -> tuple[str, ...]:
    """What is of slurmtop's on any node, a few seconds after its end."""
    found: tuple[str, ...] = ()

    def none() -> bool:
        nonlocal found
        found = on_nodes(cluster, faults, lambda argv: _OURS.search(argv) is not None)
        return not found

    try:
        wait_until("the end of all that slurmtop ran on nodes", none, 5, 0.2)
    except ClusterError:
        return found
    return ()


def on_nodes(cluster: Cluster, faults: Faults, wanted: Callable[[str], bool]) -> tuple[str, ...]:
    """Processes of the test's user on all nodes, ``HOST PID ARGV`` each."""
    return tuple(
        f"{node} {one.pid} {one.state} {one.argv[:120]}"
        for node in cluster.nodes
        for one in faults.processes(node)
        if one.user == cluster.user and wanted(one.argv)
    )
