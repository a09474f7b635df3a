"""Reading one long log: megabytes a second on one core, and peak memory, beside ``grep -c``.

    .venv/bin/python -m benchmarks.logs [--megabytes 100] [--keep DIR]

The logs are generated: NCCL's lines of each call of 32 processes on 4 hosts, clean and behind the
prefixes of launchers and collectors; NCCL's start; steps of a trainer; bars; tracebacks of ranks.
Each is read by the readers of triage in a process of its own, with full attribution (host, pid,
communicator, position), which is checked against what was written. CPU seconds are counted, since
a machine may be busy; ``grep -c`` reads the same file right before it.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

HOSTS = 4
DEVICES = 8
BLOCK = 1 << 20
OPS = ("AllGather", "ReduceScatter", "AllReduce")


def call_lines(seed: int) -> Iterator[tuple[int, str]]:
    """(rank, line) of calls on a communicator of all and on one of two, for ever."""
    pick = random.Random(seed)
    op_count = 0
    while True:
        for rank in range(HOSTS * DEVICES):
            host, device = divmod(rank, DEVICES)
            pid = 20_000 + 1_000 * host + device
            for op in OPS:
                comm, nranks = (pid * 16, 32) if op != "AllReduce" else (pid * 16 + 1, 2)
                yield (
                    rank,
                    f"node-{host}:{pid}:{pid + 7} [{device}] NCCL INFO {op}: opCount {op_count:x} "
                    f"sendbuff 0x7fa9{pick.getrandbits(32):08x} "
                    f"recvbuff 0x7fa9{pick.getrandbits(32):08x} count {pick.choice((1, 4096))} "
                    f"datatype 7 op 0 root 0 comm 0x55fc{comm:08x} [nranks={nranks}] "
                    f"stream 0x55fc{comm + 99:08x}\n",
                )
        op_count += 1


def clean_calls() -> Iterator[str]:
    for _, line in call_lines(1):
        yield line


def mixed_calls() -> Iterator[str]:
    pick = random.Random(2)
    for number, (rank, line) in enumerate(call_lines(1)):
        clock = f"09:{number // 60 % 60:02d}:{number % 60:02d}"
        yield (
            pick.choice(
                (
                    f"{rank}: ",
                    f"{rank}: [rank{rank}]:",
                    f"[1,{rank}]<stdout>:",
                    f"[2025-08-12 {clock}] ",
                    "",
                )
            )
            + line
        )


def start_lines() -> Iterator[str]:
    """What NCCL prints while it starts: nearly all of it channels."""
    number = 0
    while True:
        host, device = divmod(number % (HOSTS * DEVICES), DEVICES)
        pid = 20_000 + 1_000 * host + device
        head = f"node-{host}:{pid}:{pid + 7} [{device}] NCCL INFO"
        for channel in range(24):
            yield (
                f"{head} Channel {channel:02d}/0 : {device}[{device}] -> "
                f"{(device + 1) % DEVICES}[{(device + 1) % DEVICES}] via P2P/CUMEM\n"
            )
        yield f"{head} Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1\n"
        yield f"{head} comm 0x55fc{number:08x} rank {device} nRanks 8 nNodes 1 localRanks 8\n"
        number += 1


def step_lines() -> Iterator[str]:
    pick = random.Random(3)
    number = 0
    while True:
        yield (
            f"[2025-08-12 09:{number // 60 % 60:02d}:{number % 60:02d}] iteration {number:8d}/ "
            f"1000000 | consumed samples: {number * 1024:12d} | elapsed time per iteration (ms): "
            f"812.{number % 10} | learning rate: 1.5E-04 | lm loss: 2.{pick.randrange(10**6)} |\n"
        )
        number += 1


def bars() -> Iterator[str]:
    number = 0
    while True:
        end = "\n" if number % 100 == 0 else ""
        yield f"\r  1%|#         | {number}/175200 [01:08<1:22:56,  2.88s/it]{end}"
        number += 1


def tracebacks() -> Iterator[str]:
    number = 0
    while True:
        tag = f"[rank{number % 8}]:"
        yield f"{tag} Traceback (most recent call last):\n"
        for depth in range(12):
            yield f'{tag}   File "/opt/env/lib/model{depth}.py", line {number}, in forward\n'
            yield f"{tag}     x = self.layer{depth}(x)\n"
        yield f"{tag} ValueError: batch {number} is empty\n"
        number += 1


LOGS: dict[str, Callable[[], Iterator[str]]] = {
    "calls, clean": clean_calls,
    "calls, mixed prefixes": mixed_calls,
    "start of NCCL": start_lines,
    "steps": step_lines,
    "bars": bars,
    "tracebacks": tracebacks,
}


def write(path: Path, lines: Iterator[str], size: int) -> dict[str, int]:
    """The file, and how many calls stand in it by communicator."""
    calls: dict[str, int] = {}
    written = 0
    with path.open("w") as out:
        while written < size:
            line = next(lines)
            written += out.write(line)
            if ": opCount " in line:
                comm = line.partition(" comm ")[2].partition(" ")[0]
                calls[comm] = calls.get(comm, 0) + 1
    return calls


def read(path: str) -> None:
    """In a process of its own: read one file and print CPU seconds, peak memory and the counts."""
    from slurmtop.model.events.nccl import CommCalls
    from slurmtop.parse.logs.reading import SourceReader

    before = peak_mib()
    start = time.process_time()
    reader = SourceReader(path)
    with Path(path).open("rb") as file:
        while block := file.read(BLOCK):
            reader.feed(block)
    traces = reader.finish()
    took = time.process_time() - start
    print(took, before, peak_mib(), len(traces.events))
    for event in traces.of(CommCalls):
        if event.at.host is None or event.at.pid is None or not event.last_at or event.torn:
            raise SystemExit(f"a communicator without its writer: {event.comm}")
        print(event.comm, event.collectives)


def peak_mib() -> float:
    """Peak memory of this process."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def grep(path: Path) -> float:
    """CPU seconds of ``grep -c`` for the same lines."""
    before = os.times()
    subprocess.run(["grep", "-c", "opCount", str(path)], capture_output=True, check=False)
    after = os.times()
    return (
        after.children_user - before.children_user + after.children_system - before.children_system
    )


def measure(name: str, path: Path, calls: dict[str, int]) -> None:
    size_mb = path.stat().st_size / 1e6
    path.read_bytes()
    runs: list[tuple[float, float, float, int]] = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.logs", "--read", str(path)],
            capture_output=True,
            check=True,
            text=True,
        )
        head, *told = done.stdout.splitlines()
        cpu, before, peak, events = head.split()
        runs.append((float(cpu), float(before), float(peak), int(events)))
        found = {comm: int(count) for comm, count in (line.split() for line in told)}
        if found != calls:
            raise SystemExit(f"{name}: not every call was counted")
    cpu_s, before_mib, peak_mib, events_told = min(runs)
    grep_s = max(min(grep(path) for _ in range(3)), 0.01)
    print(
        f"{name:22} {size_mb / cpu_s:7.1f} MB/s   grep -c {size_mb / grep_s:8.0f} MB/s   "
        f"ratio {cpu_s / grep_s:6.1f}   peak {peak_mib:5.0f} MiB ({before_mib:.0f} before)   "
        f"{events_told} events"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--megabytes", type=int, default=100, help="of the logs of calls")
    parser.add_argument("--keep", help="a folder in which the logs stay")
    parser.add_argument("--read", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.read:
        read(args.read)
        return 0
    print(f"load {Path('/proc/loadavg').read_text().split()[0]}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(args.keep) if args.keep else Path(folder)
        kept.mkdir(parents=True, exist_ok=True)
        for name, lines in LOGS.items():
            path = kept / (name.replace(", ", "-").replace(" ", "-") + ".log")
            megabytes = args.megabytes if name.startswith("calls") else max(args.megabytes // 5, 1)
            measure(name, path, write(path, lines(), megabytes * 1_000_000))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
