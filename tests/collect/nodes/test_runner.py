"""Commands on nodes: whole answers only, limits, ends, and the way that is taken."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest

from slurmtop.collect.clock import spawn
from slurmtop.collect.nodes.here import HereWay
from slurmtop.collect.nodes.remote import RemoteProcess
from slurmtop.collect.nodes.runner import GRACE_S, NodeRunner
from slurmtop.collect.nodes.way_memory import FILE_NAME, WayMemory
from slurmtop.collect.streams import closing
from slurmtop.model.ports import Command, NodeUnreachable, RunnerError
from slurmtop.model.reach import Way
from slurmtop.model.snapshot import Failure, Trouble
from tests.fakes import FakeClock, FakeRunner, settle

HOSTS = ("gpu01", "gpu02", "gpu03", "gpu04")
_MARK = re.compile(rb"'(<<<slurmtop-[0-9a-f]+)>>>'")
Chunk = bytes | Exception | asyncio.Event


class FakeProcess:
    def __init__(self, chunks: Sequence[Chunk], stderr: bytes = b"") -> None:
        self._chunks = chunks
        self.stderr = stderr
        self.closed = 0

    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            if isinstance(chunk, Exception):
                raise chunk
            if isinstance(chunk, asyncio.Event):
                await chunk.wait()
            else:
                yield chunk

    async def close(self) -> None:
        self.closed += 1


def whole(stdout: bytes = b"ok\n", rc: int = 0, stderr: bytes = b"") -> Callable[[bytes], bytes]:
    def answer(mark: bytes) -> bytes:
        begin = b"welcome\n\n%b>>>\n%b" % (mark, stdout)
        return begin + b"\n%b err>>>\n%b\n%b end %d>>>\n" % (mark, stderr, mark, rc)

    return answer


class FakeWay:
    """Answers by host: a failure, or what is made of the mark in the script."""

    def __init__(self, way: Way) -> None:
        self.way = way
        self.refusals: dict[str, Failure] = {}
        self.answer: Callable[[bytes], bytes | Sequence[Chunk]] = whole()
        self.stderr = b""
        self.started: list[str] = []
        self.scripts: list[bytes] = []
        self.processes: list[FakeProcess] = []
        self.forgotten: list[str] = []
        self.swept = 0
        self.closed = False
        self.gate: asyncio.Event | None = None
        self.at_once = 0
        self.most_at_once = 0

    def refuse(self, trouble: Trouble, *hosts: str) -> None:
        for host in hosts or HOSTS:
            self.refusals[host] = Failure(trouble, f"{host}: no way by {self.way}.", "", 10.0)

    async def start(self, host: str, script: bytes) -> RemoteProcess:
        self.started.append(host)
        self.scripts.append(script)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await (self.gate.wait() if self.gate is not None else asyncio.sleep(0))
        self.at_once -= 1
        if host in self.refusals:
            raise NodeUnreachable(host, self.refusals[host])
        match = _MARK.search(script)
        assert match is not None
        made = self.answer(match[1])
        process = FakeProcess([made] if isinstance(made, bytes) else made, self.stderr)
        self.processes.append(process)
        return process

    def forget(self, host: str) -> None:
        self.forgotten.append(host)

    async def close_idle(self) -> None:
        self.swept += 1

    async def aclose(self) -> None:
        self.closed = True


class Bench:
    def __init__(self, tmp_path: Path) -> None:
        self.clock = FakeClock()
        self.local = FakeRunner(self.clock)
        self.ssh, self.openssh, self.srun = map(FakeWay, (Way.SSH, Way.OPENSSH, Way.SRUN))
        self.ways = [self.ssh, self.openssh, self.srun]
        self.memory = WayMemory(tmp_path / "state", "@login1")
        self.runner = self.make()

    def make(self) -> NodeRunner:
        return NodeRunner(self.local, lambda: self.ways, self.clock, memory=self.memory)

    async def ask(self, host: str = "gpu01", **options: float) -> bytes:
        done = await self.runner.run(Command(("true",), host=host, **options))  # type: ignore[arg-type]
        return done.stdout

    async def ask_all(self) -> list[bytes | BaseException]:
        return await asyncio.gather(*map(self.ask, HOSTS), return_exceptions=True)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path)
    yield made
    await made.runner.aclose()


async def test_without_a_host_it_is_the_local_runner(bench: Bench) -> None:
    bench.local.on("squeue", "rows")
    bench.local.files["/log"] = b"abc"
    assert (await bench.runner.run(Command(("squeue",)))).stdout == b"rows"
    assert [c async for c in bench.runner.stream(Command(("squeue",)))] == [b"rows"]
    assert await bench.runner.read("/log", 0, 2) == b"ab"
    assert (await bench.runner.stat("/log")).size == 3
    assert await bench.runner.list("/") == ("log",)
    for call in (
        bench.runner.read("/log", 0, 2, "gpu01"),
        bench.runner.stat("/log", "gpu01"),
        bench.runner.list("/", "gpu01"),
    ):
        with pytest.raises(RunnerError, match="gpu01: files are read on the login node only"):
            await call
    assert not bench.ssh.started


async def test_an_answer_is_what_stands_between_the_marks(bench: Bench) -> None:
    bench.ssh.answer = whole(b"\x00rows\n\xff", 3, b"no such field")
    done = await bench.runner.run(Command(("nvidia-smi", "-L; rm x"), host="gpu01", timeout_s=5.0))
    assert (done.rc, done.stdout, done.stderr) == (3, b"\x00rows\n\xff", b"no such field")
    assert not done.truncated
    assert b"timeout -k 2 5 " in bench.ssh.scripts[0]
    assert b"nvidia-smi '-L; rm x'" in bench.ssh.scripts[0]
    await settle()
    assert bench.ssh.processes[0].closed == 1


async def test_output_past_the_limit_is_dropped_and_said(bench: Bench) -> None:
    bench.ssh.answer = whole(b"x" * 1000)
    done = await bench.runner.run(Command(("yes",), host="gpu01", max_bytes=10))
    assert (done.rc, done.stdout, done.truncated) == (0, b"x" * 10, True)


async def test_one_that_never_stops_printing_is_ended(bench: Bench) -> None:
    forever = asyncio.Event()
    block = b"x" * (1 << 20)
    bench.ssh.answer = lambda mark: [mark + b">>>\n", *([block] * 40), forever]
    done = await bench.runner.run(Command(("yes",), host="gpu01", max_bytes=10))
    assert (done.rc, done.stdout, done.truncated) == (-9, b"x" * 10, True)


@pytest.mark.parametrize("cut", ["", "half", "no end"])
async def test_a_cut_answer_is_a_failure_and_never_data(bench: Bench, cut: str) -> None:
    def answer(mark: bytes) -> bytes:
        data = whole(b"gpu 0\ngpu 1\n")(mark)
        return {"": b"account closed\n", "half": data[:60], "no end": data[:-5]}[cut]

    bench.ssh.answer = answer
    with pytest.raises(NodeUnreachable) as error:
        await bench.ask()
    sentence = error.value.failure.sentence
    assert (
        "cut off before its end" in sentence if cut else "ran nothing: account closed" in sentence
    )


async def test_a_connection_that_breaks_is_told_as_the_way_says(bench: Bench) -> None:
    broken = NodeUnreachable("gpu01", Failure(Trouble.DOWN, "gpu01 hung up."))
    bench.ssh.answer = lambda mark: [mark + b">>>\nhalf", broken]
    with pytest.raises(NodeUnreachable, match="hung up"):
        await bench.ask()
    reach = bench.runner.reach("gpu01")
    assert reach is not None
    assert reach.failure == broken.failure


async def test_out_of_time_on_the_node_and_out_of_patience_here(bench: Bench) -> None:
    bench.ssh.answer = whole(b"half", 124)
    assert (await bench.runner.run(Command(("x",), host="gpu01", timeout_s=5.0))).rc == 124
    late = asyncio.Event()
    bench.ssh.answer = lambda mark: [mark + b">>>\nhalf", late, whole(b"", 124)(mark)]
    waiting = spawn(
        bench.runner.run(Command(("x",), host="gpu01", timeout_s=5.0)), name="out of time there"
    )
    await settle()
    await bench.clock.advance(5.5)
    late.set()
    assert (await waiting).timed_out
    bench.ssh.answer = lambda mark: [mark + b">>>\nhalf", asyncio.Event()]
    waiting = spawn(
        bench.runner.run(Command(("x",), host="gpu01", timeout_s=5.0)), name="out of patience"
    )
    await settle()
    await bench.clock.advance(5.0 + GRACE_S)
    done = await waiting
    assert (done.timed_out, done.stdout) == (True, b"half")
    assert bench.ssh.processes[-1].closed == 1


async def test_input_reaches_the_command_and_too_much_is_refused(bench: Bench) -> None:
    await bench.runner.run(Command(("cat",), host="gpu01", stdin=b"hallo"))
    assert b"aGFsbG8=" in bench.ssh.scripts[0]
    with pytest.raises(RunnerError, match="too much input"):
        await bench.runner.run(Command(("cat",), host="gpu01", stdin=b"x" * 100_000))


async def test_a_stream_gives_chunks_and_is_ended_when_its_reader_stops(bench: Bench) -> None:
    forever = asyncio.Event()
    bench.ssh.answer = lambda mark: [b"motd", mark + b">>>\n", b"one\n", b"two\n", forever]
    stream = bench.runner.stream(Command(("nvidia-smi", "-lms"), host="gpu01"))
    assert [await anext(stream), await anext(stream)] == [b"one\n", b"two\n"]
    async with closing(stream):
        pass
    assert bench.ssh.processes[0].closed == 1
    assert b"timeout" not in bench.ssh.scripts[0].split(b"lim=''")[0]


async def test_a_stream_that_ends_and_one_that_is_cut(bench: Bench) -> None:
    bench.ssh.answer = whole(b"all\n")
    command = Command(("x",), host="gpu01")
    assert [chunk async for chunk in bench.runner.stream(command)] == [b"all\n"]
    bench.ssh.answer = lambda mark: mark + b">>>\nhalf\n"
    stream = bench.runner.stream(command)
    assert await anext(stream) == b"half\n"
    with pytest.raises(NodeUnreachable, match="cut off"):
        await anext(stream)


async def test_a_silent_stream_ends_after_its_limit(bench: Bench) -> None:
    bench.ssh.answer = lambda mark: [mark + b">>>\n", b"one\n", asyncio.Event()]
    stream = bench.runner.stream(Command(("x",), host="gpu01", timeout_s=10.0))
    assert await anext(stream) == b"one\n"

    async def next_chunk() -> bytes | None:
        return await anext(stream, None)

    rest = spawn(next_chunk(), name="rest of the stream")
    await settle()
    await bench.clock.advance(10.0)
    assert await rest is None
    assert bench.ssh.processes[0].closed == 1


async def test_the_first_way_that_answers_is_taken_for_all(bench: Bench) -> None:
    assert await bench.ask_all() == [b"ok\n"] * 4
    assert bench.runner.way is Way.SSH
    assert sorted(bench.ssh.started) == list(HOSTS)
    assert not bench.openssh.started


async def test_a_node_that_is_down_condemns_nothing(bench: Bench) -> None:
    bench.ssh.refuse(Trouble.DOWN, "gpu01")
    for _ in range(3):
        first, *others = await bench.ask_all()
        assert isinstance(first, NodeUnreachable)
        assert others == [b"ok\n"] * 3
    assert bench.runner.way is Way.SSH
    assert not bench.openssh.started
    assert not bench.srun.started


async def test_a_refused_login_switches_the_way_without_a_storm(bench: Bench) -> None:
    bench.ssh.refuse(Trouble.DENIED)
    bench.openssh.refuse(Trouble.DENIED)
    assert await bench.ask_all() == [b"ok\n"] * 4
    assert bench.runner.way is Way.SRUN
    # Two nodes at the most try what is closed, one after the other.
    assert len(bench.ssh.started) == 2
    assert len(bench.openssh.started) == 2
    assert bench.ssh.most_at_once == bench.openssh.most_at_once == 1
    assert await bench.ask_all() == [b"ok\n"] * 4
    assert len(bench.ssh.started) == 2


async def test_one_node_alone_goes_through_all_ways_and_tells_of_each(bench: Bench) -> None:
    for way in bench.ways:
        way.refuse(Trouble.DENIED)
    with pytest.raises(NodeUnreachable) as error:
        await bench.ask()
    told = error.value.failure.sentence
    assert re.search("By ssh: .* By the ssh command: .* By srun: ", told)
    assert bench.runner.way is None
    reach = bench.runner.reach("gpu01")
    assert reach is not None
    assert [way for way, _ in reach.refused] == [Way.SSH, Way.OPENSSH, Way.SRUN]


async def test_a_way_that_closes_meanwhile_is_left(bench: Bench) -> None:
    assert await bench.ask() == b"ok\n"
    bench.ssh.refuse(Trouble.DOWN)
    bench.openssh.refuse(Trouble.DOWN)
    assert await bench.ask() == b"ok\n"
    assert bench.runner.way is Way.SRUN


async def test_the_way_is_remembered_and_tried_first(bench: Bench, tmp_path: Path) -> None:
    bench.ssh.refuse(Trouble.DENIED)
    bench.openssh.refuse(Trouble.DENIED)
    await bench.ask()
    await bench.runner.aclose()
    path = tmp_path / "state" / FILE_NAME
    assert path.stat().st_mode & 0o777 == 0o600
    bench.ssh.started.clear()
    bench.runner = bench.make()
    assert await bench.ask() == b"ok\n"
    assert not bench.ssh.started
    await bench.runner.aclose()
    bench.clock.step(8 * 24 * 3600)
    bench.runner = bench.make()
    await bench.ask()
    assert bench.ssh.started


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"schema":"slurmtop.ways/1","ways":{"@login1":5}}', "\x00\xff"]
)
async def test_a_broken_memory_is_none(bench: Bench, tmp_path: Path, text: str) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / FILE_NAME).write_text(text)
    assert await bench.ask() == b"ok\n"
    assert bench.memory.load(bench.clock.now()) in (None, Way.SSH)


async def test_a_new_job_on_a_node_is_a_new_try(bench: Bench) -> None:
    await bench.ask()
    bench.runner.expect("7", ["gpu01", "gpu02"])
    assert bench.ssh.forgotten == ["gpu01", "gpu02"]
    bench.runner.expect("7", ["gpu01", "gpu02"])
    assert bench.ssh.forgotten == ["gpu01", "gpu02"]
    bench.runner.forget("7")
    assert bench.runner.reach("gpu01") is None


async def test_what_is_idle_is_let_go_and_everything_at_the_end(bench: Bench) -> None:
    await bench.ask()
    await bench.clock.advance(31.0)
    assert bench.ssh.swept == 2
    await bench.runner.aclose()
    assert all(way.closed for way in bench.ways)


async def test_closed_by_the_settings_nothing_is_tried(bench: Bench) -> None:
    why = Failure(Trouble.DENIED, "Nodes are not looked into: the settings say so.")
    runner = NodeRunner(bench.local, lambda: bench.ways, bench.clock, closed=lambda: why)
    with pytest.raises(NodeUnreachable, match="settings say so"):
        await runner.run(Command(("true",), host="gpu01"))
    assert not bench.ssh.started


async def test_this_machine_is_asked_itself(bench: Bench) -> None:
    here = HereWay({"PATH": "/usr/bin:/bin"}, hostname="GPU01.cluster.example")
    runner = NodeRunner(bench.local, lambda: bench.ways, bench.clock, here=here)
    argv = ("/bin/sh", "-c", "printf 'a\\000b'; echo no >&2; exit 4")
    done = await runner.run(Command(argv, host="gpu01"))
    assert (done.rc, done.stdout, done.stderr) == (4, b"a\x00b", b"no")
    reach = runner.reach("gpu01")
    assert reach is not None
    assert reach.way is Way.HERE
    assert not bench.ssh.started
    await runner.aclose()


@pytest.mark.parametrize(
    ("own", "host", "here"),
    [
        ("gpu01", "gpu01", True),
        ("GPU01.a.example", "gpu01", True),
        ("gpu01.rack1", "gpu01.rack1", True),
        ("gpu01.rack1.example", "gpu01.rack1", True),
        ("gpu01.rack1", "gpu01.rack2", False),
        ("gpu01", "gpu01.rack2", False),
        ("gpu01.rack1", "rack1", False),
        ("10.1.0.1", "10.1.0.1", True),
        ("10.1.0.1", "10.1.0.7", False),
        ("10.1.0.1", "10", False),
        ("", "", False),
    ],
)
def test_this_machine_is_told_from_its_neighbours_by_its_whole_name(
    own: str, host: str, here: bool
) -> None:
    assert HereWay({}, hostname=own).is_here(host) is here
    assert HereWay({"SLURMD_NODENAME": own}, hostname="box").is_here(host) is here
