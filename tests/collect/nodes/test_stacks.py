"""The script that reads stacks on a node, run for real: with py-spy, and with a reader that fails.

The failing reader is a Python too, because only programs for this machine are run: called as
``python dump --nonblocking …`` it runs a file ``dump`` of the folder that it is started in.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from slurmtop.collect.nodes.stack_tools import TOOL
from slurmtop.collect.nodes.stacks import MOST_PROCESSES, SCRIPT, read_stacks, stacks_command
from slurmtop.model.ports import NodeUnreachable, RunnerError
from slurmtop.model.process import NodeProcess
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.stacks import ProcessStacks, StackTool
from slurmtop.parse.dumps.stacks_answer import parse_stacks_answer
from tests.fakes import START, FakeClock, FakeRunner

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
_PY_SPY = Path(sys.executable).parent / TOOL
_PYTHON = str(Path(sys.executable).resolve())
_TOOLS = ("sh", "grep", "awk", "tr", "head", "date", "id", "timeout", "stat", "readlink", "od")
_MORE_TOOLS = ("uname", "cat", "sleep")
_HANGS = """
import sys, threading
def wait_for_shard():
    print("ready", flush=True)
    sys.stdin.read()
def step(): wait_for_shard()
def main(): step()
name = 'E 1 0 S own\\nend\\nJ 1 ['
threading.Thread(target=threading.Event().wait, name=name, daemon=True).start()
main()
"""


@dataclass
class Children:
    """Processes that wait until they are let go."""

    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, *argv: str, cwd: Path | None = None) -> NodeProcess:
        child = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=cwd, start_new_session=True
        )
        self.running.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        return seen(child.pid)


@pytest.fixture
def children() -> Iterator[Children]:
    made = Children()
    yield made
    for child in made.running:
        child.send_signal(signal.SIGCONT)
        child.kill()
        child.communicate()


@pytest.fixture(params=["dash", "bash", "busybox"])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """A shell and its PATH; for busybox all tools are its own."""
    name = request.param
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"no {name} here")
    tools = tmp_path / "tools"
    tools.mkdir()
    if name != "busybox":
        mawk = shutil.which("mawk") if name == "dash" else None
        if mawk is not None:
            (tools / "awk").symlink_to(mawk)
        return path, f"{tools}:{os.environ['PATH']}"
    applets = subprocess.run([path, "--list"], capture_output=True, text=True, check=True).stdout
    for tool in (*_TOOLS, *_MORE_TOOLS):
        if tool in applets.split():
            (tools / tool).symlink_to(path)
    return str(tools / "sh"), str(tools)


def seen(pid: int) -> NodeProcess:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return NodeProcess(
        host="gpu01", pid=pid, start_ticks=int(fields[19]), state=fields[0], uid=os.geteuid()
    )


def read(
    processes: list[NodeProcess],
    tool: str,
    *,
    shell: tuple[str, str] | None = None,
    cwd: Path | None = None,
    script: str = SCRIPT,
) -> tuple[ProcessStacks, ...]:
    path, search = shell or ("/bin/sh", os.environ["PATH"])
    command = stacks_command("gpu01", processes, (StackTool(path=tool),))
    done = subprocess.run(
        [path, "-c", script, *command.argv[3:]],
        env={"PATH": search},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    assert done.stdout.endswith(b"\nend\n")
    return parse_stacks_answer(done.stdout, "gpu01", processes, START)


@pytest.fixture
def py_spy(children: Children) -> str:
    """py-spy, where it may read here at all."""
    if not _PY_SPY.exists():
        pytest.skip("no py-spy beside this Python")
    process = children.start(sys.executable, "-c", _HANGS)
    tried = subprocess.run(
        [_PY_SPY, "dump", "--nonblocking", "-p", str(process.pid)], capture_output=True, check=False
    )
    if tried.returncode != 0:
        pytest.skip(f"py-spy may not read here: {tried.stderr.decode()[:200]}")
    return str(_PY_SPY)


def _names(stacks: ProcessStacks) -> list[str]:
    assert stacks.main is not None, stacks.failure
    return [frame.function for frame in stacks.main.frames]


def test_a_stack_is_read_and_nothing_in_a_name_can_look_like_an_answer(
    shell: tuple[str, str], py_spy: str, children: Children
) -> None:
    process = children.start(sys.executable, "-c", _HANGS)
    (stacks,) = read([process], py_spy, shell=shell)
    assert stacks.failure is None
    assert _names(stacks) == ["wait_for_shard", "step", "main", "<module>"]
    assert stacks.main is not None
    assert (stacks.main.name, stacks.main.os_id) == ("MainThread", process.pid)
    assert stacks.threads[1].name == "E 1 0 S own\nend\nJ 1 ["
    assert stacks.key == process.key
    assert stacks.at == START


def test_many_at_once_each_with_its_own_answer(
    shell: tuple[str, str], py_spy: str, children: Children
) -> None:
    good = [children.start(sys.executable, "-c", _HANGS) for _ in range(5)]
    other = children.start("/bin/sh", "-c", "echo ready; read x")
    gone = NodeProcess(host="gpu01", pid=good[0].pid, start_ticks=1)
    found = read([good[1], gone, *good[2:], other], py_spy, shell=shell)
    assert [stacks.failure is None for stacks in found] == [True, False, True, True, True, False]
    assert found[1].failure is not None
    assert "has ended meanwhile" in found[1].failure.sentence
    assert found[-1].failure is not None
    assert found[-1].failure.sentence == f"process {other.pid} is no Python"


def test_a_stopped_process_is_read_and_stays_stopped(py_spy: str, children: Children) -> None:
    process = children.start(sys.executable, "-c", _HANGS)
    os.kill(process.pid, signal.SIGSTOP)
    _wait_for(lambda: seen(process.pid).state == "T")
    (stacks,) = read([seen(process.pid)], py_spy)
    assert _names(stacks)[0] == "wait_for_shard"
    assert seen(process.pid).state == "T"


def test_a_process_that_works_is_never_stopped(py_spy: str, children: Children) -> None:
    """A stopped or traced process does not step on: its counter shows that it did, all the time."""
    code = "import os\nprint('ready', flush=True)\nwhile 1: os.write(1, b'x')"
    process = children.start(sys.executable, "-c", code)
    stdout = children.running[-1].stdout
    assert stdout is not None
    tool = StackTool(path=py_spy)
    command = stacks_command("gpu01", [process], (tool,))
    with subprocess.Popen(
        ["/bin/sh", "-c", SCRIPT, *command.argv[3:]], stdout=subprocess.PIPE, start_new_session=True
    ) as reader:
        letters, steps = set(), 0
        while reader.poll() is None:
            letters.add(seen(process.pid).state)
            steps += len(os.read(stdout.fileno(), 65_536))
    assert letters <= {"R", "S"}, letters
    assert steps > 0
    status = Path(f"/proc/{process.pid}/status").read_text()
    assert "TracerPid:\t0\n" in status


_FAKE = """
import os, sys, time
pid, how = sys.argv[sys.argv.index("-p") + 1], open("how").read()
assert sys.argv[1:4] == ["--nonblocking", "--json", "-p"], sys.argv
open("calls", "a").write(pid + "\\n")
if how == "hangs":
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("ready", flush=True)
    time.sleep(600)
if how == "leaves its pipe open":
    if os.fork() == 0:
        open("left", "w").write(str(os.getpid()))
        os.setsid()
        time.sleep(600)
    os._exit(0)
if how == "floods":
    print("[", "x" * 3_000_000, flush=True)
    print("]")
    sys.exit(0)
if how == "never ends":
    block = "x" * 1_000_000
    for turn in range(300):
        print(block, end="", flush=True)
        open("printed", "w").write(str(turn))
if how == "torn" and len(open("calls").readlines()) < 3:
    sys.exit("Error: Bad address (os error 14)")
if how in ("torn", "good"):
    print('[\\n {\\n  "thread_name": "MainThread",\\n  "locals": null,\\n  "frames": []\\n }\\n]')
    sys.exit(0)
sys.exit(how)
"""


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    folder = tmp_path / "fake"
    folder.mkdir()
    (folder / "dump").write_text(_FAKE)
    return folder


def _read_by(fake: Path, how: str, process: NodeProcess, **more: object) -> ProcessStacks:
    (fake / "how").write_text(how)
    # A second instead of five, so that nobody waits for long.
    script = SCRIPT.replace("limit=5", "limit=1")
    (stacks,) = read([process], _PYTHON, cwd=fake, script=script)
    return stacks


def _is_usable() -> bool:
    tool = StackTool(path=_PYTHON)
    done = subprocess.run(
        ["/bin/sh", "-c", SCRIPT, *stacks_command("h", [], (tool,)).argv[3:]],
        capture_output=True,
        check=True,
    )
    return b"\nX " not in done.stdout


@pytest.mark.parametrize(
    ("how", "trouble", "says"),
    [
        (
            "Permission Denied: Try running again with elevated permissions by going 'sudo'",
            Trouble.DENIED,
            "are closed",
        ),
        ("Error: Operation not permitted (os error 1)", Trouble.DENIED, "are closed"),
        (
            "Error: Unsupported version of Python: 3.17.0",
            Trouble.TOO_OLD,
            "is Python 3.17.0, which the py-spy on gpu01 does not know",
        ),
        (
            "Error: Failed to find python version from target process",
            Trouble.OTHER,
            "is no Python",
        ),
        ("Error: something <b>else</b>", Trouble.OTHER, "could not read process"),
        ("floods", Trouble.OTHER, "cannot be read"),
        ("never ends", Trouble.OTHER, "printed more of process"),
        ("hangs", Trouble.TIMEOUT, "did not come within"),
    ],
)
def test_refusals_are_told_apart(
    fake: Path, children: Children, how: str, trouble: Trouble, says: str
) -> None:
    if not _is_usable():
        pytest.skip("this Python lies where others may write")
    process = children.start("/bin/sh", "-c", "echo ready; read x")
    stacks = _read_by(fake, how, process)
    assert stacks.threads == ()
    assert stacks.failure is not None
    assert (stacks.failure.trouble, says in stacks.failure.sentence) == (trouble, True)
    assert len((fake / "calls").read_text().split()) <= 3


def test_one_endless_line_is_nowhere_held_in_memory(fake: Path, children: Children) -> None:
    if not _is_usable():
        pytest.skip("this Python lies where others may write")
    process = children.start("/bin/sh", "-c", "echo ready; read x")
    _read_by(fake, "never ends", process)
    assert int((fake / "printed").read_text()) < 10, "its pipe is closed where it is too much"


def test_what_was_torn_is_read_again(fake: Path, children: Children) -> None:
    if not _is_usable():
        pytest.skip("this Python lies where others may write")
    process = children.start("/bin/sh", "-c", "echo ready; read x")
    stacks = _read_by(fake, "torn", process)
    assert stacks.failure is None
    assert len((fake / "calls").read_text().split()) == 3


def test_a_pipe_that_never_closes_holds_nobody_up(fake: Path, children: Children) -> None:
    if not _is_usable():
        pytest.skip("this Python lies where others may write")
    process = children.start("/bin/sh", "-c", "echo ready; read x")
    stacks = _read_by(fake, "leaves its pipe open", process)
    assert stacks.failure is not None
    # What it left is still there: nobody waited for its end.
    os.kill(int((fake / "left").read_text()), signal.SIGKILL)


def test_no_second_reader_is_sent_after_one_that_hangs(fake: Path, children: Children) -> None:
    if not _is_usable():
        pytest.skip("this Python lies where others may write")
    process = children.start("/bin/sh", "-c", "echo ready; read x")
    (fake / "how").write_text("hangs")
    words = ("dump", "--nonblocking", "--json", "-p", str(process.pid))
    children.start(_PYTHON, *words, cwd=fake)
    stacks = _read_by(fake, "good", process)
    assert stacks.failure is not None
    assert "an earlier py-spy has not come back" in stacks.failure.sentence
    assert stacks.failure.trouble is Trouble.TIMEOUT
    assert (fake / "calls").read_text().split() == [str(process.pid)]


def test_a_tool_that_others_may_write_to_is_not_run(tmp_path: Path, children: Children) -> None:
    tool = tmp_path / "py-spy"
    shutil.copy(_PYTHON, tool)
    tool.chmod(0o757)
    process = children.start("/bin/sh", "-c", "echo ready; read x")
    (stacks,) = read([process], str(tool))
    assert stacks.failure is not None
    assert "may be written to by others" in stacks.failure.sentence
    assert stacks.failure.copy == f"chmod go-w {tool}"


async def test_without_a_tool_nothing_is_run() -> None:
    clock = FakeClock()
    runner = FakeRunner(clock)
    process = NodeProcess(host="gpu01", pid=7, start_ticks=9)
    (stacks,) = await read_stacks(runner, clock, "gpu01", [process], ())
    assert runner.calls == []
    assert stacks.failure is not None
    assert stacks.failure.copy == "pip install 'slurmtop-tui[stacks]'"


async def test_a_node_that_is_silent_costs_its_own_stacks() -> None:
    clock = FakeClock()
    process = NodeProcess(host="gpu01", pid=7, start_ticks=9)
    refused = Failure(Trouble.DENIED, "gpu01 lets nobody in")
    for error in (NodeUnreachable("gpu01", refused), RunnerError("no more processes")):
        runner = FakeRunner(clock)
        runner.on_call("*", error)
        (stacks,) = await read_stacks(
            runner, clock, "gpu01", [process], (StackTool(path="/usr/bin/py-spy"),)
        )
        assert stacks.failure is not None
    runner = FakeRunner(clock)
    runner.on("*", b"", rc=None)
    (stacks,) = await read_stacks(
        runner, clock, "gpu01", [process], (StackTool(path="/usr/bin/py-spy"),)
    )
    assert stacks.failure is not None
    assert stacks.failure.trouble is Trouble.TIMEOUT


async def test_so_many_are_asked_and_the_rest_is_told() -> None:
    clock = FakeClock()
    runner = FakeRunner(clock)
    runner.on("*", b"slurmtop-stacks 1\nend\n")
    many = [NodeProcess(host="gpu01", pid=n, start_ticks=n) for n in range(1, 100)]
    tools = (StackTool(path="/usr/bin/py-spy"), StackTool(path="/opt/py-spy", sudo=True))
    found = await read_stacks(runner, clock, "gpu01", many, tools)
    assert len(found) == 99
    assert all(stacks.failure is not None for stacks in found)
    (command,) = runner.calls
    assert command.argv[4:7] == ("/usr/bin/py-spy", "/opt/py-spy", "4")
    assert len(command.argv) == 7 + MOST_PROCESSES


def test_those_that_wait_in_the_kernel_come_last() -> None:
    first = NodeProcess(host="gpu01", pid=1, start_ticks=5, state="D")
    second = NodeProcess(host="gpu01", pid=2, start_ticks=6, state="S")
    command = stacks_command("gpu01", [first, second], ())
    assert command.argv[4:] == ("-", "-", "4", "2:6", "1:5")


def test_the_script_never_asks_for_values_and_never_pauses_by_itself() -> None:
    assert "--locals" not in SCRIPT
    assert SCRIPT.count('"$@" dump --nonblocking --json') == SCRIPT.count('"$@" dump ') == 1
    assert "--native" not in SCRIPT
    assert "kill" not in SCRIPT.replace("-s KILL", "")


def _wait_for(condition: object, seconds: float = 10.0) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
