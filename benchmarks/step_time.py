"""What ``slurmtop triage JOB --look`` costs the job that it looks at: the job's own step times.

Run as the user inside the test cluster. One training of four ranks on four nodes makes steps of
about a tenth of a second; runs without slurmtop and with it, one look after the other, take turns.
The median with it has to lie within the spread of the runs without. All nodes, the login and this
benchmark share the cores of one machine: what slurmtop costs on the login counts here as well. How
much of it that is, is told by runs that judge a bundle of the job as often: the same work here, and
no node is touched.

    python -m benchmarks.step_time [--runs 3] [--seconds 30] [--stacks]
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

from tests.cluster.faults import Faults
from tests.cluster.fixtures import Cluster, alone
from tests.cluster.layout import NODES

JOB = Path(__file__).with_name("step_job.py")
_OURS = re.compile(r"slurmtop-(probe|stacks|script|agent|request|access)|py-spy")


def _steps(path: Path, begun: float, ended: float) -> list[float]:
    """The lengths, in milliseconds, of the steps that lie in that time."""
    found = []
    for line in path.read_text().splitlines():
        at, _, length = line.partition(" ")
        if length and begun + float(length) <= float(at) <= ended:
            found.append(1000 * float(length))
    return found


#: A look lasts about so long; most of that it waits.
_LOOK_S = 7.0


def _look(what: list[str]) -> tuple[str, float]:
    """One look: the state and the sentence that it told, and the CPU that it took here."""
    before = os.times()
    done = subprocess.run(
        [sys.executable, "-m", "slurmtop", "triage", *what, "--json"],
        capture_output=True,
        check=False,
        timeout=90,
    )
    after = os.times()
    used = after.children_user + after.children_system
    used -= before.children_user + before.children_system
    try:
        told = json.loads(done.stdout)
    except ValueError:
        return f"no answer: {done.stderr.decode(errors='replace')[-200:]}", used
    return f"{told['state']}: {told['summary']}", used


def _run(name: str, path: Path, seconds: float, what: list[str]) -> list[float]:
    """The steps of one run; ``what`` is given to ``triage``, nothing where it is left alone."""
    begun, said, used = time.time(), list[str](), 0.0
    while (left := begun + seconds - time.time()) > 0:
        if not what:
            time.sleep(left)
            continue
        look_begun = time.time()
        words, cpu = _look(what)
        said, used = [*said, words], used + cpu
        time.sleep(max(0.0, min(look_begun + _LOOK_S, begun + seconds) - time.time()))
    ended = time.time()
    steps = _steps(path, begun, ended)
    quarters = statistics.quantiles(steps, n=20)
    told = name
    if what:
        told += f", {len(said)} times, {used / (ended - begun):.0%} of a CPU here"
    print(
        f"{told:42} {len(steps):5} steps, median {statistics.median(steps):6.1f} ms, "
        f"5-95 % {quarters[0]:.1f}-{quarters[-1]:.1f}, load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    for words in said:
        if not words.startswith("healthy"):
            print(f"  NOT HEALTHY: {words}", flush=True)
    return steps


def _left(faults: Faults) -> list[str]:
    return [
        f"{node} {one.argv}"
        for node in NODES
        for one in faults.processes(node)
        if _OURS.search(one.argv)
    ]


def _measure(cluster: Cluster, faults: Faults, args: argparse.Namespace) -> int:
    path = cluster.dir / "steps"
    python = cluster.layout.torch / "bin/python"
    # -P: beside the job lies a file called queue.py.
    script = (
        "export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1) "
        "MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000)) GLOO_SOCKET_IFNAME=eth0 OMP_NUM_THREADS=1 "
        f"STEPS={path}; exec srun {python} -P -u {JOB}"
    )
    job = cluster.submit(script, nodes=4, ntasks=4, ntasks_per_node=1, time=30)
    cluster.wait_for("steps", lambda: path.exists() and path.read_text().count("\n") > 100, 120)
    options = [] if args.stacks else ["--no-stacks"]
    look, bundle = [job, "--look", *options], str(cluster.dir / "kept")
    _look([*look, "--save", bundle])
    arms = {"no slurmtop": [], "a bundle": [bundle], "looks": look}
    medians: dict[str, list[float]] = {name: [] for name in arms}
    for _ in range(args.runs):
        for name, what in arms.items():
            medians[name].append(statistics.median(_run(name, path, args.seconds, what)))
    plain, here, looked = medians.values()
    middle, low, high = statistics.median(looked), min(plain), max(plain)
    inside = low <= middle <= high
    print(
        f"median with slurmtop {middle:.2f} ms; runs without {low:.2f} to {high:.2f} ms: "
        + ("within" if inside else f"OUTSIDE by {middle / high - 1:+.2%} of the top")
        + f"; the same work here alone {min(here):.2f} to {max(here):.2f} ms"
    )
    left = _left(faults)
    print("left on nodes: " + (", ".join(left) or "nothing"))
    cluster.run("scancel", job, check=False)
    return 0 if inside and not left else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--stacks", action="store_true", help="stacks may be read, too")
    args = parser.parse_args()
    with alone() as cluster, Faults(cluster.layout.fault_socket) as faults:
        return _measure(cluster, faults, args)


if __name__ == "__main__":
    raise SystemExit(main())
