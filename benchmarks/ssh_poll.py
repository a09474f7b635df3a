"""A round over 128 hosts with open connections, beside 128 ``ssh`` processes.

All hosts are addresses of the loopback (127.0.1.1 to 127.0.1.128) behind one real sshd with its
stock ``MaxStartups``, which this starts and ends; it runs as any user who may start sshd. CPU is
user and system time of this process and of the ``ssh`` children that it waited for; the sshd's own
is not in it, and is the same work on both sides but for the logins.

    python -m benchmarks.ssh_poll [--hosts 128] [--rounds 5]
"""

import argparse
import asyncio
import os
import re
import resource
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from slurmtop.collect.nodes.remote import NodeWay
from slurmtop.collect.nodes.script import Unframer, framed, new_mark
from slurmtop.collect.nodes.ssh import SshWay
from tests.cluster.sshds import Bench, make_key

COMMAND = ("/bin/sh", "-c", "cat /proc/loadavg /proc/meminfo", "slurmtop-benchmark")


def cpu_s() -> float:
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(use.ru_utime + use.ru_stime for use in map(resource.getrusage, who))


def resident_mib(pid: int | str = "self") -> float:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


async def poll(way: NodeWay, host: str) -> None:
    mark = new_mark()
    found = Unframer(mark)
    process = await way.start(host, framed(COMMAND, mark, timeout_s=20))
    try:
        async for chunk in process.chunks():
            found.feed(chunk)
    finally:
        await process.close()
    assert found.complete, host
    assert found.rc == 0, host


async def measured(what: str, work: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    wall, cpu = time.monotonic(), cpu_s()
    await work()
    wall, cpu = time.monotonic() - wall, cpu_s() - cpu
    print(f"{what}: {wall:6.2f} s wall, {cpu:6.2f} s CPU", flush=True)
    return wall, cpu


async def plain_ssh(bench: Bench, hosts: list[str]) -> None:
    """One bare ``ssh`` a host, eight at once: what a shell loop would do."""
    slots = asyncio.Semaphore(8)

    async def one(host: str) -> None:
        async with slots:
            argv = ["ssh", "-F", str(bench.config), "-o", "BatchMode=yes", host, *COMMAND[:2]]
            child = await asyncio.create_subprocess_exec(
                *argv, f"'{COMMAND[2]}'", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
            )
            await child.communicate()
            assert child.returncode == 0, host

    await asyncio.gather(*(one(host) for host in hosts))


async def held_ssh_mib(bench: Bench, host: str) -> float:
    argv = ["ssh", "-F", str(bench.config), "-o", "BatchMode=yes", host, "echo in; sleep 60"]
    child = await asyncio.create_subprocess_exec(*argv, stdout=subprocess.PIPE)
    assert child.stdout is not None
    await child.stdout.readline()
    held = resident_mib(child.pid)
    child.terminate()
    await child.communicate()
    return held


async def compare(bench: Bench, hosts: list[str], rounds: int) -> None:
    before_mib = resident_mib()
    async with bench.way("ssh") as way:
        assert isinstance(way, SshWay)

        async def everyone() -> None:
            await asyncio.gather(*(poll(way, host) for host in hosts))

        print(f"load {os.getloadavg()[0]:.2f}, {os.cpu_count()} CPUs, {len(hosts)} hosts")
        await measured("first round, with all logins ", everyone)
        print(f"  {way.connections} connections, at most {way.most_in_flight} logins in flight")
        after_mib = resident_mib()
        ours = [await measured(f"round {n}, connections open   ", everyone) for n in range(rounds)]
        print(
            f"memory: {before_mib:.0f} MiB before, {after_mib:.0f} MiB with {way.connections} open"
            f" (asyncssh itself is in it), {resident_mib():.0f} MiB after {rounds} rounds"
        )
    theirs = await measured("128 ssh, bare, 8 at once     ", lambda: plain_ssh(bench, hosts))
    print(f"memory of one held ssh: {await held_ssh_mib(bench, hosts[0]):.1f} MiB")
    async with bench.way("openssh") as other:

        async def by_children() -> None:
            await asyncio.gather(*(poll(other, host) for host in hosts))

        await measured("the same by the openssh way  ", by_children)
    best = min(cpu for _, cpu in ours)
    print(f"CPU of a round: {best:.2f} s beside {theirs[1]:.2f} s: {best / theirs[1]:.1%}")
    print(f"load {os.getloadavg()[0]:.2f} at the end")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--hosts", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ssh-", ignore_cleanup_errors=True) as folder:
        bench = Bench(Path(folder), make_key(Path(folder) / "user"))
        with bench.sshd("node", "MaxStartups 10:30:100") as sshd:
            bench.host("127.0.1.*", sshd, "HostName %h", "HostKeyAlias loop", know=False)
            bench.known.append(f"loop {sshd.public}")
            bench.write()
            hosts = [f"127.0.1.{n}" for n in range(1, args.hosts + 1)]
            asyncio.run(compare(bench, hosts, args.rounds))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
