"""``triage`` of a running job on many simulated nodes: time, CPU and memory from the command to the
verdict.

Each node answers the scripts ``slurmtop-probe`` and ``slurmtop-stacks`` in the form in which they
print it, for eight ranks with two dozen threads each, after as long as a node of a busy cluster
takes. What is measured is all of slurmtop's own: asking 64 nodes at once, parsing, judging, twice.
The last rank is stopped, all others wait in one collective: it is checked that it is named.

    python -m benchmarks.live [--nodes 64 512] [--probe-s 0.8] [--stacks-s 1.2]
"""

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from datetime import timedelta

from slurmtop.collect.clock import SystemClock
from slurmtop.collect.live import LiveLook, LookSettings
from slurmtop.model.facts import JobFacts, LogFacts, LogStatus
from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job
from slurmtop.model.ports import Clock, Command, Completed, FileStat
from slurmtop.parse.slurm.ids import parse_job_id
from slurmtop.parse.slurm.states import parse_state
from slurmtop.triage.why import explain_job

JOB = "4711"
RANKS = 8
_THREADS = 24
_HZ, _UP_S = 100, 900_000
_SITE = "/opt/venv/lib/python3.11/site-packages/torch/distributed/"
_CALLS = (
    ("all_reduce", f"{_SITE}distributed_c10d.py", 2810),
    ("wrapper", f"{_SITE}c10d_logger.py", 81),
    ("step", "/home/anna/run/train.py", 114),
    ("main", "/home/anna/run/train.py", 201),
    ("<module>", "/home/anna/run/train.py", 230),
)


class Nodes:
    """A runner behind which simulated nodes stand."""

    def __init__(self, clock: Clock, count: int, probe_s: float, stacks_s: float) -> None:
        self._clock = clock
        self._begun = clock.monotonic()
        self._count = count
        self._took_s = {"slurmtop-probe": probe_s, "slurmtop-stacks": stacks_s}
        # Made beforehand: to make answers is no work of slurmtop's.
        self._answers = [self._probe(node) for node in range(count)]
        self.asked = 0
        self.bytes = 0

    async def run(self, command: Command) -> Completed:
        at, begun = self._clock.now(), self._clock.monotonic()
        name = next((word for word in command.argv if word in self._took_s), "")
        out = b""
        if name and command.host is not None:
            await self._clock.sleep(self._took_s[name])
            number = int(command.host[-4:])
            words = command.argv[command.argv.index(name) + 1 :]
            out = self._told(number) if name == "slurmtop-probe" else _stacks(words).encode()
            self.asked += 1
            self.bytes += len(out)
        took = self._clock.monotonic() - begun
        return Completed(rc=0, stdout=out, stderr=b"", started_at=at, took_s=took)

    async def stream(self, command: Command) -> AsyncIterator[bytes]:
        raise FileNotFoundError(command.argv[0])
        yield b""  # type: ignore[unreachable]

    async def read(self, path: str, offset: int, length: int, host: str | None = None) -> bytes:
        raise FileNotFoundError(path)

    async def stat(self, path: str, host: str | None = None) -> FileStat:
        raise FileNotFoundError(path)

    def _told(self, node: int) -> bytes:
        now = self._clock.monotonic() - self._begun + _UP_S
        values = {b"@TIME": f"{self._clock.now().timestamp():.0f}", b"@UP": f"{now:.2f}"}
        values |= {b"@CS1": f"{now * 100:.0f}", b"@CS2": f"{now * 100 + 40:.0f}"}
        head, mark, rest = self._answers[node].partition(b"\n@HEAD\n")
        for name, value in values.items():
            head = head.replace(name, value.encode())
        return head + b"\n" + rest if mark else head

    def _probe(self, node: int) -> bytes:
        out = ["slurmtop-probe 1", "M pids pid:[4026531836]", "slurmtop-processes 1", "M self 99"]
        out += ["M time @TIME", "M uptime @UP 1.0", f"M hz {_HZ}", f"M boot b{node}"]
        out += ["M cpus 0-191", "M cs1 @CS1", "M cs2 @CS2", "@HEAD"]
        for local in range(RANKS):
            out += self._rank(node, local)
        out += ["M arch x86_64", "F groups 0", "F memory 0"]
        out += ["k dmesg: Operation not permitted", "F kernel 1", "F ports 0"]
        out += ["X stack-arch x86_64", f"X stack-tool own /usr/bin/py-spy 0.4.3 {'ab' * 32}"]
        out += ["X stack-end", "N 1001 anna", "end", ""]
        return "\n".join(out).encode()

    def _rank(self, node: int, local: int) -> list[str]:
        pid, rank = 5000 + 100 * local, node * RANKS + local
        stopped = rank == self._count * RANKS - 1
        letter, wchan = ("T", "do_signal_stop") if stopped else ("S", "futex_do_wait")
        path = f"/system.slice/slurmstepd.scope/job_{JOB}/step_0/user/task_{local}"
        out = [f"S {pid} 63457 1 {letter} python3", f"U {pid} 1001 0 0 {_THREADS} {pid}"]
        out += [f"C {pid} 0::{path}", f"R {pid}", f"o {pid} /sys/fs/cgroup {path}"]
        env: dict[str, object] = {
            "RANK": rank,
            "LOCAL_RANK": local,
            "WORLD_SIZE": self._count * RANKS,
        }
        env |= {"MASTER_ADDR": "gpu0000", "MASTER_PORT": 29500, "SLURM_JOB_ID": JOB}
        out += [f"E {pid} {name}={value}" for name, value in env.items()]
        out += [f"E {pid} SLURM_PROCID={rank}", f"E {pid} SLURM_STEP_ID=0"]
        out += [f"A {pid} {word}" for word in ("/usr/bin/python3", "-u", "train.py")]
        for reading in (1, 2):
            out.append(f"B {pid} {reading} 63457 {letter} 7034")
            out += [f"J {pid} {reading} 9000 4096 0 0", f"V {pid} {reading} 812 0"]
        out += [f"W {pid} {wchan}", f"Y {pid} 202 -"]
        for thread in range(_THREADS):
            out.append(f"H {pid} {pid + thread} {letter} 7 pt_gloo_{thread}")
            out.append(f"h {pid} {pid + thread} {wchan}")
        return [*out, f"T {pid} 63457"]

    async def list(self, path: str, host: str | None = None) -> tuple[str, ...]:
        raise FileNotFoundError(path)


def _stacks(words: tuple[str, ...]) -> str:
    frames = [
        {"name": name, "filename": file, "line": line, "locals": None}
        for name, file, line in _CALLS
    ]
    thread = {"thread_name": "MainThread", "os_thread_id": 1, "active": False, "owns_gil": False}
    out = ["slurmtop-stacks 1", "I 1001 0"]
    for pid, start in (word.split(":") for word in words if word.partition(":")[0].isdigit()):
        said = json.dumps([{**thread, "os_thread_id": int(pid), "frames": frames}])
        out += [f"S {pid} S", f"N {pid} {said}", f"E {pid} 0 S own"]
        assert start
    return "\n".join([*out, "end", ""])


def _facts(clock: Clock, count: int) -> JobFacts:
    now = clock.now()
    job = Job(
        key=JobKey("", JOB),
        id=parse_job_id(JOB),
        raw_id=JOB,
        user="anna",
        state=parse_state("RUNNING"),
        nodes=f"gpu[0000-{count - 1:04}]",
        start=now - timedelta(hours=1),
    )
    log = LogFacts(
        label="stdout",
        path="/home/anna/slurm-4711.out",
        status=LogStatus.READ,
        size=4096,
        mtime=now - timedelta(seconds=60),
    )
    return JobFacts(
        asked=JOB, cluster="", now=now, job=job, logs=(log,), viewer="anna", viewer_uid=1001
    )


async def _once(count: int, probe_s: float, stacks_s: float) -> dict[str, object]:
    clock = SystemClock()
    nodes = Nodes(clock, count, probe_s, stacks_s)
    used = time.process_time()
    facts = _facts(clock, count)
    begun, first = clock.monotonic(), 0.0

    def told(_: JobFacts) -> None:
        nonlocal first
        first = first or clock.monotonic() - begun

    look = LiveLook(nodes, clock, facts, settings=LookSettings(budget_s=60.0))
    look.judged(facts)
    known = await look.run(told)
    verdict = explain_job(known)
    took = clock.monotonic() - begun
    probes = [len(sample.probes) for sample in known.live.samples] if known.live else []
    return {
        "nodes": count,
        "took_s": took,
        "first_s": first,
        "cpu_s": time.process_time() - used,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "probes": probes,
        "answers": nodes.asked,
        "mb": nodes.bytes / 1e6,
        "state": verdict.state.value,
        "summary": verdict.summary,
        "named": [(one.rank, one.host) for one in verdict.culprits],
    }


def _told(one: dict[str, object], count: int) -> str:
    wanted = [[count * RANKS - 1, f"gpu{count - 1:04}"]]
    right = "named rightly" if one["named"] == wanted else f"NOT NAMED: {one['named']}"
    return (
        f"{count} nodes, {count * RANKS} ranks: verdict after {one['took_s']:.1f} s (first news "
        f"{one['first_s']:.1f} s), {one['cpu_s']:.1f} s of CPU, peak {one['peak_mib']:.0f} MiB; "
        f"looks at {one['probes']} nodes, {one['mb']:.1f} MB; {one['state']}, {right}: "
        f"{str(one['summary'])[:200]}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--nodes", type=int, nargs="+", default=[64, 512])
    parser.add_argument("--probe-s", type=float, default=0.8, help="how long a node takes")
    parser.add_argument("--stacks-s", type=float, default=1.2)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        found = asyncio.run(_once(args.nodes[0], args.probe_s, args.stacks_s))
        print(json.dumps(found))
        return 0
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    empty = subprocess.run(
        [sys.executable, "-c", "import asyncio,resource;"
         "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss/1024)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    print(f"an empty Python with asyncio: {float(empty.stdout):.0f} MiB")
    right = True
    for count in args.nodes:
        words = ["--nodes", str(count), "--probe-s", str(args.probe_s)]
        words += ["--stacks-s", str(args.stacks_s), "--one"]
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.live", *words],
            capture_output=True,
            text=True,
            check=True,
        )
        one = json.loads(done.stdout)
        print(_told(one, count), flush=True)
        right = right and "NOT" not in _told(one, count)
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
