"""1,024 rank logs of 100 MB: the verdict, the time to it, and the share of bytes that is read.

    .venv/bin/python -m benchmarks.many_logs [--ranks 1024] [--keep DIR]

The files are sparse: 512 KB of NCCL, PyTorch and training lines at each end, a hole between. In the
first set the culprit's line stands in the tail of one of them; in the second it stands in the hole,
so that nobody may be named and the middle is told as not read. Printed beside it: ``grep -c`` over
the same bytes, and the same run with 5 ms added to every file call, also to those of the processes
that parse (a cold file system). CPU seconds are those of this process and of the children that it
started, peak memory that of this process and of the largest child.
"""

import argparse
import asyncio
import os
import random
import resource
import subprocess
import tempfile
import time
from pathlib import Path

from slurmtop.collect import log_pool
from slurmtop.collect.clock import SystemClock
from slurmtop.collect.left_behind import read_traces
from slurmtop.collect.local import LocalRunner
from slurmtop.collect.log_spans import END_BYTES
from slurmtop.model.ports import FileStat
from slurmtop.model.trace import Traces
from slurmtop.model.verdict import Verdict
from slurmtop.triage.judge import explain_traces

SIZE = 100 * 1024 * 1024
COMM = "0x8f1e0a7c5b3d2e19"


class Slower(LocalRunner):
    """Each file call takes ``call_s`` longer."""

    def __init__(self, call_s: float = 0.0) -> None:
        super().__init__(SystemClock(), os.environ)
        self._call_s = call_s

    async def _called(self) -> None:
        if self._call_s:
            await asyncio.sleep(self._call_s)

    async def read(self, path: str, offset: int, length: int, host: str | None = None) -> bytes:
        await self._called()
        return await super().read(path, offset, length, host)

    async def stat(self, path: str, host: str | None = None) -> FileStat:
        await self._called()
        return await super().stat(path, host)

    async def list(self, path: str, host: str | None = None) -> tuple[str, ...]:
        await self._called()
        return await super().list(path, host)


def head_of(rank: int, ranks: int) -> bytes:
    """Set-up of one rank as NCCL 2.27 writes it, then steps."""
    host, pid, gpu = f"gn{rank // 8:03}", 100_000 + rank, rank % 8
    here = f"{host}:{pid}:{pid} [{gpu}] NCCL INFO"
    lines = [
        f"{here} Bootstrap: Using eth0:10.8.{rank // 8 // 250}.{rank // 8 % 250 + 1}<0>",
        f"{here} NCCL version 2.27.5+cuda12.9",
        f"{here} ncclCommInitRankConfig comm 0x5591{rank:06x} rank {rank} nranks {ranks} cudaDev"
        f" {gpu} nvmlDev {gpu} busId {gpu + 1}b000 commId {COMM} - Init START",
    ]
    for channel in range(24):
        for peer in (rank + 1, rank + 8):
            lines.append(
                f"{here} Channel {channel:02}/0 : {rank}[{gpu}] -> {peer % ranks}[{peer % 8}]"
                " [send] via NET/IB/0/GDRDMA"
            )
    lines += [
        f"{here} Connected all rings, use ring PXN 0 GDR 1",
        f"{here} ncclCommInitRankConfig comm 0x5591{rank:06x} rank {rank} nranks {ranks} cudaDev"
        f" {gpu} nvmlDev {gpu} busId {gpu + 1}b000 commId {COMM} - Init COMPLETE",
    ]
    return _filled(lines, rank, END_BYTES)


def _steps(rank: int, first: int) -> list[str]:
    rng = random.Random(rank * 7_919 + first)
    return [
        f"[rank{rank}]: 2031-05-05 10:{step // 60 % 60:02}:{step % 60:02} INFO train: step"
        f" {step}/200000 loss {rng.uniform(1.8, 2.4):.4f} grad_norm {rng.uniform(0.2, 0.9):.3f} lr"
        f" 2.9e-04 tokens/s {rng.randint(81_000, 83_000)} mem 61.2GiB"
        for step in range(first, first + 500)
    ]


def _filled(lines: list[str], rank: int, size: int, last: list[str] | None = None) -> bytes:
    """``lines``, steps up to ``size`` bytes, then ``last``."""
    end = ("\n".join(last) + "\n").encode() if last else b""
    out = ("\n".join(lines) + "\n").encode() if lines else b""
    first = 1
    while len(out) + len(end) < size:
        out += ("\n".join(_steps(rank, first)) + "\n").encode()
        first += 500
    return out[: size - len(end) - 1] + b"\n" + end


def watchdog(rank: int) -> list[str]:
    """A victim's last words."""
    c10 = f"[rank{rank}]:[E505 11:40:07.{rank:06}342 ProcessGroupNCCL.cpp:"
    return [
        f"{c10}632] [Rank {rank}] Watchdog caught collective operation timeout:"
        " WorkNCCL(SeqNum=48213, OpType=ALLREDUCE, NumelIn=67108864, NumelOut=67108864,"
        " Timeout(ms)=600000) ran for 600021 milliseconds before timing out.",
        f"{c10}2271] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] failure detected by watchdog at"
        " work sequence id: 48213 PG status: last enqueued work: 48213, last completed work:"
        " 48212",
        f"{c10}684] [Rank {rank}] To avoid data inconsistency, we are taking the entire process"
        " down.",
    ]


def culprit(rank: int) -> list[str]:
    return [
        f"[rank{rank}]: Traceback (most recent call last):",
        f'[rank{rank}]:   File "/w/train.py", line 88, in step',
        f"[rank{rank}]:     loss.backward()",
        f"[rank{rank}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
        " GPU 1 has a total capacity of 79.11 GiB of which 1.02 GiB is free.",
    ]


def make(folder: Path, ranks: int, faulty: int, *, in_hole: bool) -> None:
    for rank in range(ranks):
        words = culprit(rank) if rank == faulty else watchdog(rank)
        if rank == faulty and in_hole:
            words = _steps(rank, 1)[-3:]
        with (folder / f"rank{rank}.log").open("wb") as file:
            file.write(head_of(rank, ranks))
            if rank == faulty and in_hole:
                file.seek(SIZE // 2)
                file.write(("\n" + "\n".join(culprit(rank)) + "\n").encode())
            file.seek(SIZE - END_BYTES)
            file.write(_filled([], rank, END_BYTES, words))


async def judged(folder: Path, call_s: float = 0.0) -> tuple[Verdict, int, dict[str, float]]:
    """The verdict, the bytes that were read for it, and the seconds that it took."""
    runner = Slower(call_s)
    if call_s:
        log_pool._SCRIPT = Path(__file__).with_name("slow_child.py")
    before = _cpu_s()
    began = time.perf_counter()
    traces: Traces = await read_traces(runner, [str(folder)])
    read_s = time.perf_counter() - began
    verdict = explain_traces(traces)
    took_s = time.perf_counter() - began
    await runner.aclose()
    here_s, children_s = (now - then for now, then in zip(_cpu_s(), before, strict=True))
    times = {"read": read_s, "judge": took_s - read_s, "all": took_s}
    read = sum(source.read_bytes for source in traces.sources)
    return verdict, read, times | {"here": here_s, "children": children_s}


def _cpu_s() -> tuple[float, float]:
    """CPU seconds of this process, and of the children that have ended."""
    here, children = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return here.ru_utime + here.ru_stime, children.ru_utime + children.ru_stime


def _peak_mib() -> tuple[float, float]:
    """Peak memory of this process, and of the largest child that has ended."""
    kinds = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    here, children = (resource.getrusage(kind).ru_maxrss / 1024 for kind in kinds)
    return here, children


def grep_s(folder: Path) -> float:
    """``grep -c`` over the two ends of every file, which a person cannot do better by hand."""
    began = time.perf_counter()
    script = (
        f'for f in "$1"/*; do head -c {END_BYTES} "$f"; tail -c {END_BYTES} "$f"; done'
        " | LC_ALL=C grep -cE 'Watchdog|OutOfMemory|NCCL WARN'"
    )
    subprocess.run(["sh", "-c", script, "sh", str(folder)], check=False, capture_output=True)
    return time.perf_counter() - began


def report(title: str, folder: Path, call_s: float = 0.0) -> None:
    verdict, read, times = asyncio.run(judged(folder, call_s))
    total = sum(path.stat().st_size for path in folder.iterdir())
    who = ", ".join(f"rank {one.rank} on {one.host}" for one in verdict.culprits) or "nobody"
    middle = [one for one in verdict.missing if "middle" in one.why]
    print(
        f"{title}: {times['all']:.2f} s (read and parse {times['read']:.2f}, judge"
        f" {times['judge']:.2f}); {read / total:.2%} of {total / 1e9:.1f} GB;"
        f" {verdict.state} {verdict.cls}, {who};"
        f" {len(middle)} lines on middles not read, e.g. {middle[0].command if middle else None}"
    )
    here_mib, child_mib = _peak_mib()
    print(
        f"  CPU {times['here']:.2f} s here, {times['children']:.2f} s in children; peak so far"
        f" {here_mib:.0f} MiB here, {child_mib:.0f} MiB in the largest child"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=1_024)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, {options.ranks} files")
    with tempfile.TemporaryDirectory() as scratch:
        base = options.keep or Path(scratch)
        for name, in_hole in (("tail", False), ("hole", True)):
            folder = base / name
            if not folder.is_dir():
                folder.mkdir(parents=True)
                make(folder, options.ranks, options.ranks * 2 // 3, in_hole=in_hole)
            grep_s(folder)  # warms the cache
            before = sum(_cpu_s())
            took_s = grep_s(folder)
            print(f"grep -c over both ends: {took_s:.2f} s (CPU {sum(_cpu_s()) - before:.2f} s)")
            report(f"culprit in the {name}, warm", folder)
        report("the same with 5 ms a call", base / "tail", 0.005)


if __name__ == "__main__":
    main()
