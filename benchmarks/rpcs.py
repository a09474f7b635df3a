"""Calls of an idle screen to the controller, by user, as ``sdiag`` counts them.

Run as the user inside the test cluster. slurmtop runs in a pseudo-terminal and no key is pressed;
``sdiag`` is asked at the end of every minute and what it costs itself is measured first and
subtracted.

    python -m benchmarks.rpcs [--minutes 11] [--settle-minutes 1]
"""

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.terminal import Terminal

USER_ROW = re.compile(r"^\s*(\S+)\s*\(\s*\d+\)\s+count:(\d+)", re.MULTILINE)


def rpcs_of(user: str) -> int:
    """RPCs of ``user`` since slurmctld started; 0 while the user has made none."""
    text = subprocess.run(["sdiag"], capture_output=True, text=True, check=True).stdout
    section = text.split("statistics by user", 1)[1]
    return next((int(count) for name, count in USER_ROW.findall(section) if name == user), 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--minutes", type=int, default=11)
    parser.add_argument("--settle-minutes", type=int, default=1)
    args = parser.parse_args()
    user = os.environ["USER"]

    first, second = rpcs_of(user), rpcs_of(user)
    own = second - first
    print(f"one sdiag costs {own} RPC of {user}")

    env = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(Path.cwd())}
    terminal = Terminal((sys.executable, "-m", "slurmtop"), env)
    counts = [rpcs_of(user)]
    for minute in range(1, args.minutes + 1):
        end = terminal.started + 60 * minute
        while (left := end - time.monotonic()) > 0:
            terminal.pump(left)
        counts.append(rpcs_of(user))
        print(f"minute {minute}: {counts[-1] - counts[-2] - own} RPCs", flush=True)
    terminal.close()
    settled = counts[args.settle_minutes :]
    minutes = len(settled) - 1
    mean = (settled[-1] - settled[0] - own * minutes) / minutes
    print(f"mean over {minutes} minutes after the first {args.settle_minutes}: {mean:.2f} a minute")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
