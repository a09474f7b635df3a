"""The agent's text, run by real shells: several requests, every kind of end, junk, 5 MB."""

import asyncio
import base64
import contextlib
import os
import shutil
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.collect.nodes import agent
from tests.collect.helpers import alive, until

MARK = "5f0c2a9e"
SHELLS = tuple(path for name in ("dash", "bash", "busybox") if (path := shutil.which(name)))


class Served:
    """One agent that believes to be on gpu01, and what it said."""

    def __init__(self, child: asyncio.subprocess.Process) -> None:
        self.child = child
        self.said: list[agent.Said] = []
        self.lines: list[bytes] = []
        self._reader = agent.AgentReader(MARK)
        self._reading = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        assert self.child.stdout is not None
        while chunk := await self.child.stdout.read(65536):
            self.lines += chunk.split(b"\n")
            self.said += self._reader.feed(chunk)

    def send(self, data: bytes) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(data)

    def run(self, number: int, script: str, host: str = "gpu01") -> None:
        self.send(agent.run_line(number, host, script.encode()))

    def output(self, number: int) -> bytes:
        return b"".join(
            one.data for one in self.said if isinstance(one, agent.Output) and one.number == number
        )

    async def ended(self, number: int) -> bytes:
        await until(lambda: agent.Ended(number) in self.said, f"the end of request {number}")
        return self.output(number)

    async def close(self) -> int:
        assert self.child.stdin is not None
        self.child.stdin.close()
        status = await self.child.wait()
        await self._reading
        return status


@contextlib.asynccontextmanager
async def serving(shell: str, environ: dict[str, str] | None = None) -> AsyncIterator[Served]:
    words = [shell, "sh"] if shell.endswith("busybox") else [shell]
    child = await asyncio.create_subprocess_exec(
        *words,
        "-c",
        agent.agent_script(),
        agent.AGENT_NAME,
        MARK,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
        env=environ or {"SLURMD_NODENAME": "gpu01", "PATH": os.environ["PATH"]},
    )
    served = Served(child)
    try:
        await until(lambda: bool(served.said), "the first words of the agent")
        yield served
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        await child.wait()
        await served._reading


@pytest.fixture(params=SHELLS, ids=[Path(path).name for path in SHELLS])
async def served(request: pytest.FixtureRequest) -> AsyncIterator[Served]:
    async with serving(request.param) as one:
        yield one


async def test_requests_are_served_side_by_side_and_each_gets_its_own(served: Served) -> None:
    assert served.said == [agent.Hello("gpu01")]
    served.run(1, "read line; sleep 0.2; echo slow; echo $SLURMD_NODENAME; echo no >&2")
    for number in range(2, 12):
        served.run(number, f"printf '%s' {number}; printf '\\000\\377'")
    for number in range(2, 12):
        assert await served.ended(number) == b"%d\x00\xff" % number
    assert await served.ended(1) == b"slow\ngpu01\n"
    assert await served.close() == 0


async def test_a_large_answer_is_whole_and_its_lines_are_short(served: Served) -> None:
    served.run(1, "seq 1 700000")
    data = await served.ended(1)
    assert data == b"".join(b"%d\n" % number for number in range(1, 700_001))
    # Slurm breaks what is longer than 1,024 bytes, the task in front of it included.
    assert max(map(len, served.lines)) < 800


async def test_output_comes_while_the_script_still_runs(served: Served) -> None:
    served.run(1, "echo first; sleep 60; echo second")
    await until(lambda: served.output(1) == b"first\n", "the first line")
    assert agent.Ended(1) not in served.said
    served.send(agent.kill_line(1, "gpu01"))
    assert await served.ended(1) == b"first\n"


async def test_a_killed_request_takes_all_that_it_started(served: Served) -> None:
    # timeout makes a group of its own, and the shell in between ignores TERM.
    served.run(
        1, "trap '' TERM; sleep 300 & echo $!; timeout 300 sleep 300 & echo $!; echo $$; wait"
    )
    served.run(2, "sleep 301 & echo $!; wait")
    await until(lambda: served.output(1).count(b"\n") == 3, "three pids")
    await until(lambda: served.output(2).count(b"\n") == 1, "one pid")
    pids = [int(word) for word in served.output(1).split()]
    other = int(served.output(2))
    assert all(map(alive, (*pids, other)))
    served.send(agent.kill_line(1, "gpu01"))
    await served.ended(1)
    await until(lambda: not any(map(alive, pids)), "the end of all of it")
    assert alive(other)
    assert await served.close() == 0
    assert not alive(other)


def left_behind(word: str) -> list[str]:
    """Processes with ``word`` in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if word.encode() in (folder / "environ").read_bytes() and alive(int(folder.name)):
                found.append(f"{folder.name} {(folder / 'cmdline').read_bytes()!r:.80}")
    return found


@pytest.mark.parametrize("shell", SHELLS, ids=[Path(path).name for path in SHELLS])
async def test_whatever_comes_in_a_burst_nothing_is_left_behind(shell: str) -> None:
    word = f"slurmtop-burst-{os.getpid()}-{Path(shell).name}"
    environ = {"SLURMD_NODENAME": "gpu01", "PATH": os.environ["PATH"], "TESTED": word}
    async with serving(shell, environ) as served:
        served.send(agent.PING * 300)
        for number in range(20):
            served.run(number, "sleep 300")
            served.send(agent.kill_line(number, "gpu01"))
        for number in range(20):
            await served.ended(number)
        await until(lambda: len(left_behind(word)) <= 6, "the end of all requests")
        served.run(30, "sleep 300")
        served.send(agent.PING)
        assert await served.close() == 0
        await until(lambda: not left_behind(word), "nothing left")


async def test_it_ends_with_its_stdin_and_so_does_everything(served: Served) -> None:
    served.run(1, "sleep 300 & echo $!; while :; do echo x; sleep 0.05; done")
    await until(lambda: b"x" in served.output(1), "output")
    pid = int(served.output(1).split()[0])
    assert await served.close() == 0
    await until(lambda: not alive(pid), "the end of what it started")


async def test_a_term_to_all_ends_it_with_status_0_and_other_signals_do_nothing(
    served: Served,
) -> None:
    """A step that fails shows in the derived exit code of the job."""
    os.killpg(served.child.pid, signal.SIGUSR1)
    os.killpg(served.child.pid, signal.SIGINT)
    served.run(1, "echo alive")
    assert await served.ended(1) == b"alive\n"
    os.killpg(served.child.pid, signal.SIGTERM)
    assert await served.child.wait() == 0


async def test_an_agent_that_hears_nothing_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "SILENCE_S", 1.0)
    async with serving("/bin/sh") as served:
        served.run(1, "sleep 300 & echo $!; wait")
        await until(lambda: served.output(1).endswith(b"\n"), "a pid")
        began = asyncio.get_running_loop().time()
        while asyncio.get_running_loop().time() < began + 2.0:
            served.send(agent.PING)
            await asyncio.sleep(0.1)
        assert served.child.returncode is None
        assert await served.child.wait() == 0
        pid = int(served.output(1))
        await until(lambda: not alive(pid), "the end of what it started")


async def test_junk_and_requests_for_other_nodes_do_nothing(served: Served) -> None:
    served.run(1, "echo wrong", host="gpu02")
    served.send(b"\x00\xff\n\n RUN \nRUN x gpu01 aGk=\nRUN -1 gpu01 aGk=\nKILL 77 gpu01 -\n")
    served.send(b"RUN 2 gpu01\nRUN 3 gpu01 !!!\nEVAL 4 gpu01 ZWNobyBoaQo=\n$(id) `id` gpu01 x\n")
    served.run(5, "echo right")
    assert await served.ended(5) == b"right\n"
    for number in (1, 4):
        assert agent.Ended(number) not in served.said
    assert await served.close() == 0


async def test_a_node_without_a_tool_says_which(tmp_path: Path) -> None:
    for tool in ("base64", "grep", "dd", "uname"):
        found = shutil.which(tool)
        assert found is not None
        (tmp_path / tool).symlink_to(found)
    script = agent.agent_script().replace("PATH=$PATH:", "PATH=$PATH #")
    child = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", script, agent.AGENT_NAME, MARK,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        env={"SLURMD_NODENAME": "gpu01", "PATH": str(tmp_path)},
    )  # fmt: skip
    said, _ = await child.communicate()
    assert agent.AgentReader(MARK).feed(said) == [agent.Lacks("gpu01", "setsid")]


def test_the_longest_script_fits_into_one_word() -> None:
    line = agent.run_line(1, "gpu01", b"x" * agent.MOST_SCRIPT_BYTES)
    assert len(line) < 128 * 1024


def test_lines_are_read_with_and_without_the_task_and_cut_anywhere() -> None:
    data = b"banner\n 0: 5f0c2a9e HELLO gpu01\n5f0c2a9e O 7 aGFsbG8K\n12: 5f0c2a9e E 7\n"
    said = [agent.Hello("gpu01"), agent.Output(7, b"hallo\n"), agent.Ended(7)]
    assert agent.AgentReader(MARK).feed(data) == said
    for cut in range(len(data)):
        reader = agent.AgentReader(MARK)
        assert reader.feed(data[:cut]) + reader.feed(data[cut:]) == said
    assert agent.AgentReader("ffffffff").feed(data) == []


@given(st.lists(st.binary(max_size=80), max_size=8))
def test_any_bytes_are_read_without_an_error(chunks: list[bytes]) -> None:
    reader = agent.AgentReader(MARK)
    for chunk in chunks:
        reader.feed(b"5f0c2a9e " + chunk)


@given(st.binary(max_size=2000), st.integers(0, 10**9))
def test_what_an_agent_prints_comes_back(data: bytes, number: int) -> None:
    line = b"3: 5f0c2a9e O %d %s\n" % (number, base64.b64encode(data))
    assert agent.AgentReader(MARK).feed(line) == [agent.Output(number, data)]
