"""Fill the queue with separate, held job records, and empty it again.

Run it as the normal user inside the cluster:
``python3 -m tests.cluster exec --cwd . -- /usr/bin/python3 -m tests.cluster.queue_flood [N]``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator

NAME = "flood"
# Names of real trainings differ in length; so do these.
VARIANTS = ("pretrain-7b", "sft", "eval-mmlu-pro", "rl", "data-prep-shard")


def job_argv(number: int) -> list[str]:
    """One job's sbatch call; the script comes on stdin."""
    return [
        "sbatch",
        "--hold",
        "--quiet",
        "--parsable",
        f"--job-name={NAME}-{VARIANTS[number % len(VARIANTS)]}-{number}",
        f"--comment={NAME}",
        f"--nodes={1 + number % 4}",
        f"--gres=gpu:h100:{1 << number % 4}",
        f"--time={10 + number % 600}",
        f"--partition={'low' if number % 5 == 0 else 'gpu'}",
        "--output=/dev/null",
        "--chdir=/",
        # The whole environment would be sent, kept and stored with each job.
        "--export=NONE",
        "--wrap=sleep 60",
    ]


def run_many(commands: Iterable[list[str]], width: int) -> int:
    """Run commands, ``width`` at a time; how many failed."""
    running: set[int] = set()
    failed = 0
    nothing = os.open("/dev/null", os.O_RDWR)
    actions = [(os.POSIX_SPAWN_DUP2, nothing, 0), (os.POSIX_SPAWN_DUP2, nothing, 1)]
    source: Iterator[list[str]] = iter(commands)
    more = True
    while more or running:
        while more and len(running) < width:
            argv = next(source, None)
            if argv is None:
                more = False
                break
            running.add(os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions))
        if running:
            pid, status = os.wait()
            if pid in running:
                running.remove(pid)
                failed += os.waitstatus_to_exitcode(status) != 0
    os.close(nothing)
    return failed


def pending() -> list[str]:
    """Ids of the flood's jobs that are still in the queue."""
    user = f"--user={os.environ.get('USER', '')}"
    argv = ["squeue", "-h", user, "--states=PENDING", "-o", "%i %j"]
    text = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    pairs = (line.split(" ", 1) for line in text.splitlines())
    return [job for job, name in pairs if name.startswith(f"{NAME}-")]


def flood(count: int, width: int) -> int:
    """Submit and say how long it took; the exit status."""
    before = len(pending())
    begun = time.monotonic()
    failed = run_many((job_argv(number) for number in range(count)), width)
    seconds = time.monotonic() - begun
    there = len(pending()) - before
    print(
        f"{count} sbatch calls in {seconds:.1f} s ({count / max(seconds, 1e-9):.0f}/s),"
        f" {failed} failed, {there} jobs more in the queue"
    )
    return 0 if failed == 0 and there == count else 1


def clean(width: int) -> int:
    """Cancel the flood's jobs by their ids; the exit status."""
    jobs = pending()
    begun = time.monotonic()
    # Ids alone: any filter would make scancel load the whole job table each time.
    size = 500
    run_many((["scancel", *jobs[at : at + size]] for at in range(0, len(jobs), size)), width)
    left = len(pending())
    print(f"{len(jobs)} jobs cancelled in {time.monotonic() - begun:.1f} s, {left} left")
    return 0 if left == 0 else 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tests.cluster.queue_flood")
    parser.add_argument("count", nargs="?", type=int, default=20000, help="default: 20,000")
    parser.add_argument("--width", type=int, default=6, help="calls at the same time")
    parser.add_argument("--clean", action="store_true", help="cancel the flood's jobs instead")
    options = parser.parse_args()
    return clean(options.width) if options.clean else flood(options.count, options.width)


if __name__ == "__main__":
    sys.exit(main())
