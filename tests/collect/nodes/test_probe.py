"""The script that looks at a node, run for real by every shell that is here."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from slurmtop.collect.nodes.probe import probe_command, read_probe
from slurmtop.collect.nodes.probe_script import SCRIPT
from slurmtop.model.ports import NodeUnreachable
from slurmtop.model.probe import Activity, NodeProbe
from slurmtop.model.process import NodeProcess
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.verdict import Fate
from slurmtop.parse.dumps.node_probe import parse_node_probe
from slurmtop.parse.mask import MARK
from tests.fakes import START, FakeClock, FakeRunner

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
JOB = "4242424242"
_TOOLS = ("sh", "grep", "awk", "tr", "cut", "sort", "head", "tail", "date", "id", "getconf", "sed")
_MORE = ("timeout", "sleep", "cat", "ls", "uname", "readlink", "stat", "od", "sha256sum")
_SMI = """#!/bin/sh
case $1 in
--query-gpu*) echo '0, GPU-00000000-1111-2222-3333-444455550000, 00000000:17:00.0, H100, 550.54,'\\
' 81559, 70000, 100, 50, 60, 120.5, 700, 1980, P0, 0, Disabled' ;;
*) echo 'GPU-00000000-1111-2222-3333-444455550000, 4711, python a, b, 512' ;;
esac
"""


@dataclass
class Children:
    """Processes that wait until they are let go."""

    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def python(self, code: str, *words: str, **env: str) -> int:
        """One of the job, once it says that it is ready."""
        code = f"{code}\nimport sys; print('ready', flush=True); sys.stdin.read()"
        return self.start(sys.executable, "-c", code, *words, **env)

    def start(self, *argv: str, **env: str) -> int:
        child = subprocess.Popen(
            argv,
            env={"SLURM_JOB_ID": JOB, "SLURM_STEP_ID": "0", **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.running.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        return child.pid


@pytest.fixture
def children() -> Iterator[Children]:
    made = Children()
    yield made
    for child in made.running:
        child.send_signal(signal.SIGCONT)
        child.kill()
        child.communicate()


@dataclass
class Node:
    """A shell, and the programs that it finds."""

    argv: list[str]
    tools: Path

    def put(self, name: str, text: str) -> None:
        path = self.tools / name
        path.unlink(missing_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def look(self) -> tuple[NodeProbe, bytes]:
        done = subprocess.run(
            [*self.argv, "-c", SCRIPT, "slurmtop-probe", JOB, "0"],
            env={"PATH": str(self.tools)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        probe = parse_node_probe(done.stdout, "here", START, job=JOB)
        assert probe.failure is None, done.stdout
        assert probe.processes is not None
        assert probe.processes.complete
        return probe, done.stdout


@pytest.fixture(params=["dash", "bash", "busybox"])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Node:
    """For busybox all tools are its own. No folder of the system is in PATH, so that what is not
    put there is not there; the script adds folders, but without these tools."""
    name = request.param
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"no {name} here")
    tools = tmp_path / "tools"
    tools.mkdir()
    applets = []
    if name == "busybox":
        done = subprocess.run([path, "--list"], capture_output=True, text=True, check=True)
        applets = done.stdout.split()
    for tool in (*_TOOLS, *_MORE):
        own = path if tool in applets else shutil.which(tool)
        if tool == "awk" and name == "dash":
            own = shutil.which("mawk") or own
        if own is not None:
            (tools / tool).symlink_to(own)
    return Node([str(tools / "sh")] if name == "busybox" else [path], tools)


def of(probe: NodeProbe, pid: int) -> tuple[NodeProcess, Activity]:
    assert probe.processes is not None
    (process,) = [one for one in probe.processes.processes if one.pid == pid]
    activity = probe.activity_of(process)
    assert activity is not None
    return process, activity


def fate(probe: NodeProbe, source: str) -> Fate:
    return next(one.fate for one in probe.fates if one.source == source)


def test_what_processes_do(node: Node, children: Children, tmp_path: Path) -> None:
    fifo = str(tmp_path / "a -> b\n c")
    os.mkfifo(fifo)
    busy = children.python("", RANK="0")
    reads = children.start(
        sys.executable,
        "-c",
        "import os,sys; f = os.open(sys.argv[1], os.O_RDWR); print('ready', flush=True);"
        " os.read(f, 1)",
        fifo,
        RANK="1",
    )
    threads = children.python(
        "import threading\n"
        "for n in range(60): threading.Thread(target=threading.Event().wait, daemon=True).start()",
        RANK="2",
    )
    stopped = children.python("", RANK="3")
    os.kill(stopped, signal.SIGSTOP)
    os.waitid(os.P_PID, stopped, os.WSTOPPED | os.WNOWAIT)
    node.put("nvidia-smi", _SMI)
    probe, _ = node.look()
    assert probe.ticks_per_s == os.sysconf("SC_CLK_TCK")
    assert probe.arch == os.uname().machine
    assert probe.node_at is not None
    process, doing = of(probe, reads)
    assert process.variable("RANK") == "1"
    assert (process.job, process.step) == (JOB, "0")
    if doing.syscall is not None and os.uname().machine == "x86_64":
        assert doing.syscall == "0"
        # A blank, an arrow and a line break in a name forge nothing.
        assert doing.open_file is not None
        assert doing.open_file.startswith(str(tmp_path))
    assert doing.between_s is not None
    assert 0.3 <= doing.between_s < 20
    assert doing.second.written_chars is not None
    assert doing.tracer_pid == 0
    _, doing = of(probe, threads)
    assert len(doing.threads) == 48
    assert doing.threads[0].tid == threads
    assert {one.state for one in doing.threads[1:]} <= {"S", "R"}
    _, doing = of(probe, stopped)
    assert doing.state == "T"
    assert doing.first == doing.second
    _, doing = of(probe, busy)
    assert doing.first.cpu_ticks is not None
    assert doing.second.switches is not None
    assert probe.gpus is not None
    assert probe.gpus.samples[0].util_percent == 100
    assert probe.gpus.processes is not None
    assert probe.gpus.processes[0].name == "python a, b"
    for source in ("processes", "environment", "activity", "gpus"):
        assert fate(probe, source) is Fate.ANSWERED, probe.fates


def test_one_that_waits_in_the_kernel_is_told_with_its_environment(
    node: Node, children: Children, tmp_path: Path
) -> None:
    """A vfork whose child waits for the other end of a pipe: state D until it comes."""
    fifo = str(tmp_path / "server")
    os.mkfifo(fifo)
    code = (
        "import ctypes, os, sys\n"
        "libc, actions = ctypes.CDLL(None), ctypes.create_string_buffer(512)\n"
        "libc.posix_spawn_file_actions_init(actions)\n"
        "path = os.fsencode(sys.argv[1])\n"
        "libc.posix_spawn_file_actions_addopen(actions, 0, path, os.O_RDONLY, 0)\n"
        "argv = (ctypes.c_char_p * 2)(b'/bin/true', None)\n"
        "print('ready', flush=True)\n"
        "libc.posix_spawn(ctypes.byref(ctypes.c_int()), b'/bin/true', actions, None, argv, None)\n"
    )
    pid = children.start(sys.executable, "-c", code, fifo, RANK="7")
    deadline = time.monotonic() + 10
    while _state(pid) != "D":
        assert time.monotonic() < deadline, _state(pid)
    try:
        probe, _ = node.look()
    finally:
        # Both ends: nobody waits any more.
        os.close(os.open(fifo, os.O_RDWR))
    process, doing = of(probe, pid)
    assert doing.state == "D"
    assert process.variable("RANK") == "7"
    assert fate(probe, "environment") is Fate.ANSWERED


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_what_hangs_costs_its_own_answer(node: Node, children: Children) -> None:
    pid = children.python("", RANK="0")
    hangs = "#!/bin/sh\nexec sleep 300\n"
    for tool in ("nvidia-smi", "dmesg"):
        node.put(tool, hangs)
    # The tools would take longer than a look is given here.
    probe, _ = node.look()
    process, doing = of(probe, pid)
    assert process.variable("RANK") == "0"
    assert doing.second.cpu_ticks is not None
    assert fate(probe, "gpus") is Fate.TIMED_OUT
    assert fate(probe, "kernel log") is Fate.TIMED_OUT
    assert fate(probe, "environment") is Fate.ANSWERED


def test_a_node_without_timeout(node: Node, children: Children) -> None:
    pid = children.python("", RANK="0")
    node.put("nvidia-smi", _SMI)
    # The folders of the system would have one.
    script = SCRIPT.replace("PATH=$PATH:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "PATH=$PATH")
    assert script != SCRIPT
    (node.tools / "timeout").unlink()
    done = subprocess.run(
        [*node.argv, "-c", script, "slurmtop-probe", JOB, "0"],
        env={"PATH": str(node.tools)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    probe = parse_node_probe(done.stdout, "here", START, job=JOB)
    process, doing = of(probe, pid)
    assert process.variable("RANK") == "0"
    assert doing.second.cpu_ticks is not None
    assert fate(probe, "gpus") is Fate.NOT_ASKED
    assert probe.gpus is None


_MAPS = """
import mmap, sys
files = [open(path, 'rb') for path in sys.argv[1:]]
held = [mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) for file in files]
"""


def _library(site: Path, where: str, info: str) -> str:
    """A file in ``site`` that is mapped like a library, and the folder that tells its version."""
    path = site / where
    path.parent.mkdir(parents=True)
    path.write_bytes(bytes(4096))
    (site / info).mkdir()
    return str(path)


def _versions(node: Node, pid: int) -> tuple[set[tuple[str, str]], bytes]:
    """The libraries of a process. On a busy machine they may not come in time, and none is looked
    for while any process waits in the kernel."""
    for _ in range(20):
        probe, answer = node.look()
        told = {(one.name, one.version) for one in probe.libraries if one.pid == pid}
        if told:
            return told, answer
    pytest.fail("no library was told")


def test_versions_of_libraries_are_told(node: Node, children: Children, tmp_path: Path) -> None:
    site = tmp_path / "site packages"
    torch = _library(site, "torch/lib/libtorch_cpu.so", "torch-2.4.0+cu124.dist-info")
    nccl = _library(site, "nvidia/nccl/lib/libnccl.so.2", "nvidia_nccl_cu12-2.21.5.dist-info")
    (site / "torch_scatter-9.9.dist-info").mkdir()
    (site / "torch-8.8\nS 1 1 1 S forged.dist-info").mkdir()
    pid = children.python(_MAPS, torch, nccl)
    told, answer = _versions(node, pid)
    assert told == {("torch", "2.4.0+cu124"), ("nccl", "2.21.5")}
    assert b"forged" not in answer


def test_no_file_of_the_job_is_opened_and_no_link_of_it_followed(
    node: Node, children: Children, tmp_path: Path
) -> None:
    """Whoever looks may be root, and a link of the job's owner may lead to any device or pipe."""
    plain, moved = tmp_path / "plain", tmp_path / "moved"
    first = _library(plain, "torch/lib/libtorch_cpu.so", "torch-1.1.1.dist-info")
    second = _library(moved, "torch/lib/libtorch_cpu.so", "torch-2.2.2.dist-info")
    # Where the second one was, a link leads to another place once it runs.
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "torch-3.3.3.dist-info").mkdir(parents=True)
    for name in ("version.py", "../torch-1.1.2.dist-info"):
        os.mkfifo(plain / "torch" / name)
    pid = children.python(_MAPS, first, second)
    shutil.rmtree(moved)
    moved.symlink_to(elsewhere)
    opened: list[str] = []

    def write(path: Path) -> None:
        with path.open("wb"):
            opened.append(path.name)

    pipes = [plain / "torch/version.py", plain / "torch-1.1.2.dist-info"]
    writers = [threading.Thread(target=write, args=(pipe,)) for pipe in pipes]
    for writer in writers:
        writer.start()
    told, _ = _versions(node, pid)
    let_go = tuple(opened)
    for pipe, writer in zip(pipes, writers, strict=True):
        os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
        writer.join(5)
    assert let_go == ()
    assert told == {("torch", "1.1.2")}


def test_no_secret_leaves_the_node(node: Node, children: Children, tmp_path: Path) -> None:
    folder = tmp_path / "hf_S3cretABCDEFGHIJKLMNOP"
    folder.mkdir()
    fifo = str(folder / "token=S3cret2")
    os.mkfifo(fifo)
    pid = children.start(
        sys.executable,
        "-c",
        "import os,sys; f = os.open(sys.argv[1], os.O_RDWR); print('ready', flush=True);"
        " os.read(f, 1)",
        fifo,
        "--token",
        "S3cret3",
        RANK="0",
        AWS_SECRET_ACCESS_KEY="S3cret4",
        NCCL_X="hf_S3cretABCDEFGHIJKLMNOP",
    )
    probe, stdout = node.look()
    assert b"S3cret" not in stdout
    _, doing = of(probe, pid)
    if doing.open_file is not None:
        assert MARK.decode() in doing.open_file


def test_only_lines_of_the_kernel_that_matter_are_told(node: Node) -> None:
    told = (
        "[Mon May  5 10:00:00 2031] audit: somebody logged in\n"
        "[Mon May  5 10:00:01 2031] Memory cgroup out of memory: Killed process 12 (python)\n"
        "[Mon May  5 10:00:02 2031] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"
        "[Mon May  5 10:00:03 2031] nfs: server store01 not responding, still trying\n"
    )
    node.put("dmesg", f"#!/bin/sh\ncat <<'END'\n{told}END\n")
    probe, _ = node.look()
    assert probe.kernel_lines == tuple(told.splitlines()[1:])
    assert fate(probe, "kernel log") is Fate.ANSWERED
    refused = "dmesg: read kernel buffer failed: Operation not permitted"
    node.put("dmesg", f"#!/bin/sh\necho '{refused}'\nexit 1\n")
    node.put("journalctl", "#!/bin/sh\nexit 0\n")
    probe, _ = node.look()
    assert probe.kernel_lines == ()
    (log,) = [one for one in probe.fates if one.source == "kernel log"]
    assert (log.fate, log.command) == (Fate.REFUSED, "ssh here sudo dmesg -T")


def test_our_own_script_is_not_of_the_job(node: Node) -> None:
    """A step of our own has the variables of the job."""
    done = subprocess.run(
        [*node.argv, "-c", SCRIPT, "slurmtop-probe", JOB, "0"],
        env={"PATH": str(node.tools), "SLURM_JOB_ID": JOB},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=True,
    )
    probe = parse_node_probe(done.stdout, "here", START, job=JOB)
    assert probe.processes is not None
    assert probe.processes.processes == ()
    assert probe.activity == ()


# --- the call, with a runner that answers from a table ------------------------------------------

_ANSWER = (
    b"slurmtop-probe 1\nslurmtop-processes 1\nS 1 1 0 S a\nC 1 0::/job_77/step_0\nT 1 1\nend\n"
)


def test_a_node_that_does_not_answer_is_told_in_words() -> None:
    clock, runner = FakeClock(), FakeRunner()
    denied = Failure(Trouble.DENIED, "gpu01 lets nobody in")
    runner.on_call("*slurmtop-probe*", NodeUnreachable("gpu01", denied))
    probe = asyncio.run(read_probe(runner, clock, "gpu01", job="77"))
    assert probe.failure == denied
    assert probe.processes is None
    runner.on("*slurmtop-probe*", b"", rc=127, stderr="sh: not found")
    probe = asyncio.run(read_probe(runner, clock, "gpu01", job="77"))
    assert probe.failure is not None
    assert probe.failure.raw == "sh: not found"
    runner.on("*slurmtop-probe*", b"", rc=None)
    probe = asyncio.run(read_probe(runner, clock, "gpu01", job="77"))
    assert probe.failure is not None
    assert probe.failure.trouble is Trouble.TIMEOUT
    runner.on("*slurmtop-probe*", _ANSWER, rc=None)
    probe = asyncio.run(read_probe(runner, clock, "gpu01", job="77"))
    assert probe.failure is None
    assert probe.processes is not None
    assert not probe.processes.complete
    probe = asyncio.run(read_probe(runner, clock, "gpu01", job="77; reboot"))
    assert probe.failure is not None
    with pytest.raises(ValueError, match="not the number"):
        probe_command("gpu01", "7; reboot")


def test_through_sudo_and_as_oneself_where_that_is_refused() -> None:
    clock, runner = FakeClock(), FakeRunner()
    closed_log = b"k dmesg: read kernel buffer failed: Operation not permitted\nF kernel 1\nend\n"
    runner.on("/bin/sh -c *", _ANSWER.replace(b"end\n", closed_log))
    runner.on("sudo -n /bin/sh -c *", b"", rc=1, stderr="sudo: a password is required")
    probe = asyncio.run(read_probe(runner, clock, "gpu01", job="77", sudo=True))
    assert probe.failure is None
    assert [call.argv[0] for call in runner.calls] == ["sudo", "/bin/sh"]
    closed = [one for one in probe.fates if one.fate is Fate.REFUSED]
    assert closed
    assert all("sudo: a password is required" in one.why for one in closed)
    runner.calls.clear()
    runner.on("sudo -n /bin/sh -c *", _ANSWER)
    probe = asyncio.run(read_probe(runner, clock, "gpu01", job="77", sudo=True, words=("any:/x",)))
    (call,) = runner.calls
    assert call.argv[:4] == ("sudo", "-n", "/bin/sh", "-c")
    assert call.argv[5:] == ("slurmtop-probe", "77", "1", "any:/x")
