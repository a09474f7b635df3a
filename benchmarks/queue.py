"""A queue of 20,000 real jobs: first rows, key to paint, CPU of a refresh, memory.

Run as the user whose jobs they are, inside the test cluster (benchmarks/README.md). Every figure
stands beside a reference measured in the same run: the same ``squeue`` alone, an idle app, and
turm, a queue monitor, on the same queue.

    python -m benchmarks.queue [--turm PATH] [--keys 60] [--refreshes 5]
"""

import argparse
import asyncio
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.terminal import Screen, Terminal, replay
from slurmtop.model.ports import Clock, Command, Completed, FileStat

ID = re.compile(r"(?<![\w.])\d{2,}(?![\w.])")


@dataclass(frozen=True)
class Program:
    name: str
    argv: tuple[str, ...]
    refresh_key: bytes | None
    settle_s: float


class AskedOnly:
    """A runner that only keeps the question."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.argv: tuple[str, ...] = ()

    async def run(self, command: Command) -> Completed:
        self.argv = command.argv
        return Completed(0, b"", b"", self.clock.now(), 0.0)

    def stream(self, command: Command) -> AsyncIterator[bytes]:
        raise NotImplementedError

    async def read(self, path: str, offset: int, length: int, host: str | None = None) -> bytes:
        raise NotImplementedError

    async def stat(self, path: str, host: str | None = None) -> FileStat:
        raise NotImplementedError

    async def list(self, path: str, host: str | None = None) -> tuple[str, ...]:
        raise NotImplementedError


def squeue_alone(argv: list[str]) -> tuple[float, float, int]:
    """Wall and CPU seconds of one squeue, and the bytes it printed."""
    before = os.times()
    start = time.monotonic()
    done = subprocess.run(argv, capture_output=True, check=True)
    wall = time.monotonic() - start
    after = os.times()
    cpu = (after.children_user - before.children_user) + (
        after.children_system - before.children_system
    )
    return wall, cpu, len(done.stdout)


def slurmtop_squeue() -> list[str]:
    """The very command that slurmtop polls with: the one that a source gives its runner."""
    from slurmtop.collect.clock import SystemClock
    from slurmtop.collect.squeue import QueueSource

    clock = SystemClock()
    asked = AskedOnly(clock)
    asyncio.run(QueueSource(asked, clock, interval_s=20.0).fetch())
    return list(asked.argv)


def shows_jobs(screen: Screen) -> bool:
    """At least ten lines hold a job id beside a word or letter for pending."""
    return sum(1 for line in screen.lines() if ID.search(line) and "PD" in line.upper()) >= 10 or (
        sum(1 for line in screen.lines() if ID.search(line) and "pend" in line.lower()) >= 10
    )


def cursor_moves(terminal: Terminal, keys: list[float]) -> list[float]:
    """Milliseconds from each key until the cursor stood on another row."""
    screen = Screen(terminal.columns, terminal.rows)
    moves: list[float] = []
    row: int | None = None
    for when, data in terminal.chunks:
        screen.stream.feed(data)
        if keys and when < keys[0] - 1.0:
            continue
        now = screen.cursor_row(4, terminal.rows - 4)
        if now is not None and now != row:
            if row is not None:
                moves.append(when)
            row = now
    out: list[float] = []
    for index, sent in enumerate(keys):
        until = keys[index + 1] if index + 1 < len(keys) else float("inf")
        hit = next((when for when in moves if sent < when), None)
        if hit is not None and hit < until + 5:
            out.append((hit - sent) * 1000)
    return out


def pump_for(terminal: Terminal, seconds: float) -> None:
    """Collect output for the whole of ``seconds``."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        terminal.pump(left)


def measure(program: Program, keys: int, refreshes: int, env: dict[str, str]) -> dict[str, object]:
    """One program: start it, wait for rows, press keys while it refreshes, read its costs."""
    terminal = Terminal(program.argv, env)
    deadline = time.monotonic() + 60
    first: float | None = None
    while first is None and time.monotonic() < deadline:
        terminal.pump(0.25)
        hits = replay(terminal, [(0.0, shows_jobs)])
        first = hits[0] - terminal.started if hits[0] is not None else None
    terminal.pump(program.settle_s)
    rss = terminal.rss_mib()

    for _ in range(8):  # away from the headings, so that the cursor's row is unlike the others
        terminal.key(b"j")
        pump_for(terminal, 0.15)
    sent: list[float] = []
    own_before, children_before = terminal.cpu_s()
    for number in range(keys):
        if program.refresh_key and number % 20 == 0:
            terminal.key(program.refresh_key)
        sent.append(terminal.key(b"j" if number % 2 == 0 else b"k"))
        pump_for(terminal, 0.15)
    latencies = cursor_moves(terminal, sent)
    terminal.pump(program.settle_s)

    quiet_own, quiet_children = terminal.cpu_s()
    asked = 0
    if program.refresh_key:
        for _ in range(refreshes):
            terminal.key(program.refresh_key)
            asked += 1
            pump_for(terminal, 4.0)
    own, children = terminal.cpu_s()
    rss = max(rss, terminal.rss_mib())
    terminal.close()
    latencies.sort()
    return {
        "name": program.name,
        "first_rows_s": first,
        "keys": f"{len(latencies)} of {keys} read back",
        "key_p50_ms": statistics.median(latencies) if latencies else None,
        "key_p95_ms": latencies[int(len(latencies) * 0.95) - 1] if len(latencies) > 19 else None,
        "key_max_ms": latencies[-1] if latencies else None,
        "rss_mib": rss,
        "refresh_own_cpu_s": (own - quiet_own) / asked if asked else None,
        "refresh_child_cpu_s": (children - quiet_children) / asked if asked else None,
        "keys_own_cpu_s": quiet_own - own_before,
        "keys_child_cpu_s": quiet_children - children_before,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--turm", help="path of the turm program")
    parser.add_argument("--keys", type=int, default=60)
    parser.add_argument("--refreshes", type=int, default=5)
    args = parser.parse_args()

    env = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(Path.cwd())}
    command = slurmtop_squeue()
    runs = [squeue_alone(command) for _ in range(3)]
    wall = statistics.median(run[0] for run in runs)
    cpu = statistics.median(run[1] for run in runs)
    print(f"load {Path('/proc/loadavg').read_text().split()[0]}, {os.cpu_count()} cores")
    print(
        f"squeue alone (slurmtop's own format): {wall:.2f} s wall, {cpu:.2f} s CPU, "
        f"{runs[0][2] / 1e6:.1f} MB, median of 3"
    )

    programs = [
        Program("idle app", (sys.executable, "-m", "benchmarks.idle_app"), None, 0.5),
        Program("slurmtop", (sys.executable, "-m", "slurmtop"), b"r", 2.0),
    ]
    if args.turm:
        programs.append(Program("turm", (args.turm, "--me"), None, 2.0))
    for program in programs:
        result = measure(program, args.keys, args.refreshes, env)
        print(f"\n{result.pop('name')}")
        for name, value in result.items():
            shown = f"{value:.3f}" if isinstance(value, float) else value
            print(f"  {name:22} {shown}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
