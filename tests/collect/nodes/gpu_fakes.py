"""Nodes that answer the GPU script from a table, and streams that a test feeds by hand."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from slurmtop.model.ports import Command, Completed, FileStat, NodeUnreachable, RunnerError
from slurmtop.model.snapshot import Failure, Trouble
from tests.fakes import FakeClock

GPU = "GPU-0000000{0}-1111-2222-3333-44445555000{0}"
PID = "4242:889123"


def unreachable(host: str, *, retry_after_s: float | None = None) -> NodeUnreachable:
    says = f"{host} cannot be reached: connection refused"
    return NodeUnreachable(host, Failure(Trouble.DOWN, says, retry_after_s=retry_after_s))


def lines(*said: str) -> bytes:
    return "".join(f"{one}\n" for one in said).encode()


def begun(part: str = "query", *, seen: str = "", pid: str = PID) -> bytes:
    """What the script says before the first row of a stream."""
    return lines(f"#slurmtop seen {seen}", f"#slurmtop part {part}", f"#slurmtop pid {pid}")


def ended(rc: int) -> bytes:
    return lines(f"#slurmtop end {rc}", "#slurmtop done")


def rows(fields: str, *utils: str | int, **others: str) -> bytes:
    """A round of ``--query-gpu`` with these fields: one GPU for each utilisation."""
    out = []
    for index, util in enumerate(utils):
        known = {
            "index": str(index),
            "uuid": GPU.format(index),
            "pci.bus_id": f"00000000:{0x17 + index:02X}:00.0",
            "name": "NVIDIA H100 80GB HBM3",
            "utilization.gpu": str(util),
            "power.draw": "627.40",
            "power.limit": "700.00",
            "persistence_mode": "Enabled",
            **others,
        }
        out.append(", ".join(known.get(name, "[N/A]") for name in fields.split(",")))
    return lines(*out)


def dmon(*sm: str, tensor: str = "0.280") -> bytes:
    head = lines("#Entity         GPUTL             SMACT             TENSO", "ID")
    body = "".join(f"GPU {i:<12}97                {one:<18}{tensor}\n" for i, one in enumerate(sm))
    return head + body.encode()


def discovery(gpus: int) -> bytes:
    out = []
    for gpu in range(gpus):
        # DCGM counts the other way round here: only the UUID joins.
        uuid = GPU.format(gpus - 1 - gpu)
        out += [f"| {gpu:<6} | Name: NVIDIA H100 80GB HBM3 |", f"|        | Device UUID: {uuid} |"]
    return lines(*out)


@dataclass
class Stream:
    """One open stream: ``say`` feeds it, ``end`` ends it, ``fail`` breaks the way to the node."""

    command: Command
    closed: bool = False
    queue: "asyncio.Queue[bytes | Exception | None]" = field(default_factory=asyncio.Queue)

    @property
    def fields(self) -> str:
        return self.command.argv[6]

    def say(self, data: bytes) -> None:
        self.queue.put_nowait(data)

    def end(self) -> None:
        self.queue.put_nowait(None)

    def fail(self, error: Exception) -> None:
        self.queue.put_nowait(error)

    def round(self, *utils: str | int, **others: str) -> None:
        self.say(rows(self.fields, *utils, **others))


Answer = bytes | Exception | Callable[[Command], bytes | Completed]


class FakeNodes:
    """A runner for nodes. ``on(host, want, answer)``: what ``run`` gives for that wish (``once``,
    ``probe``, ``state``, ``dcgm``, ``amd``); streams wait in ``streams[host, want]``, newest last.

    ``dead`` hosts cannot be reached; ``cannot_close`` are streams whose end takes for ever.
    """

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.calls: list[Command] = []
        self.streams: dict[tuple[str, str], list[Stream]] = {}
        self.answers: dict[tuple[str, str], Answer] = {}
        self.dead: dict[str, RunnerError] = {}
        self.cannot_close: set[str] = set()
        self.starting = 0
        self.most_starting = 0

    def on(self, host: str, want: str, answer: Answer) -> None:
        self.answers[host, want] = answer

    def open_streams(self, host: str, want: str = "stream") -> list[Stream]:
        return [one for one in self.streams.get((host, want), ()) if not one.closed]

    def started(self, host: str, want: str = "stream") -> int:
        return len(self.streams.get((host, want), ()))

    def ran(self, host: str, want: str) -> list[Command]:
        return [
            one
            for one in self.calls
            if one.host == host and one.argv[3] == "slurmtop-gpus" and one.argv[4] == want
        ]

    async def run(self, command: Command) -> Completed:
        host = command.host or ""
        self.calls.append(command)
        if host in self.dead:
            raise self.dead[host]
        if command.argv[3] != "slurmtop-gpus":
            return Completed(0, b"", b"", self.clock.now(), 0.1)
        quiet = lines("#slurmtop seen ", "#slurmtop done")
        answer = self.answers.get((host, command.argv[4]), quiet)
        if isinstance(answer, Exception):
            raise answer
        made = answer(command) if callable(answer) else answer
        if isinstance(made, Completed):
            return made
        return Completed(0, made, b"", self.clock.now(), 0.2)

    async def stream(self, command: Command) -> AsyncIterator[bytes]:
        host = command.host or ""
        self.calls.append(command)
        if host in self.dead:
            raise self.dead[host]
        stream = Stream(command)
        self.streams.setdefault((host, command.argv[4]), []).append(stream)
        self.starting += 1
        self.most_starting = max(self.most_starting, self.starting)
        first = True
        try:
            while True:
                item = await stream.queue.get()
                if first:
                    self.starting, first = self.starting - 1, False
                if item is None:
                    return
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            stream.closed = True
            if host in self.cannot_close:
                await self.clock.sleep(1e9)

    async def read(self, path: str, offset: int, length: int, host: str | None = None) -> bytes:
        raise FileNotFoundError(path)

    async def stat(self, path: str, host: str | None = None) -> FileStat:
        raise FileNotFoundError(path)

    async def list(self, path: str, host: str | None = None) -> tuple[str, ...]:
        raise FileNotFoundError(path)
