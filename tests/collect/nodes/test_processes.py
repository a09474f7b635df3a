"""The script that reads the processes of a node, run for real by every shell that is here."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from slurmtop.collect.nodes.process_script import HEAD, SCRIPT
from slurmtop.collect.nodes.processes import processes_command, read_processes
from slurmtop.model.ports import Command, Completed, NodeUnreachable, RunnerError
from slurmtop.model.process import NodeProcess
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.parse.dumps.probe import parse_processes
from slurmtop.parse.mask import MARK
from slurmtop.triage.programs import Part, part_of
from tests.fakes import START, FakeClock, FakeRunner

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
JOB = "4242424242"
_TOOLS = ("sh", "grep", "awk", "tr", "cut", "sort", "head", "date", "id", "getconf", "timeout")
_HOLD = "import sys; sys.stdin.read()"


@dataclass
class Children:
    """Processes that wait until they are let go."""

    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, *argv: str, **env: str) -> int:
        child = subprocess.Popen(argv, env=env, stdin=subprocess.PIPE)
        self.running.append(child)
        return child.pid


@pytest.fixture
def children() -> Iterator[Children]:
    made = Children()
    yield made
    for child in made.running:
        child.communicate()


@pytest.fixture(params=["dash", "bash", "busybox"])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[list[str], dict[str, str]]:
    """A shell and its environment; for busybox all tools are its own."""
    name = request.param
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"no {name} here")
    if name != "busybox":
        mawk = shutil.which("mawk") if name == "dash" else None
        if mawk is not None:
            # As on Debian; elsewhere awk is mostly that of GNU.
            (tmp_path / "awk").symlink_to(mawk)
        return [path], {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    applets = subprocess.run([path, "--list"], capture_output=True, text=True, check=True).stdout
    for tool in _TOOLS:
        if tool in applets.split():
            (tmp_path / tool).symlink_to(path)
    return [str(tmp_path / "sh")], {"PATH": str(tmp_path)}


def _look(shell: tuple[list[str], dict[str, str]], job: str = "") -> dict[int, NodeProcess]:
    argv, env = shell
    done = subprocess.run(
        [*argv, "-c", SCRIPT, "slurmtop-processes", job],
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    look = parse_processes(done.stdout, "here", START)
    assert look.complete, done.stdout[-500:]
    assert look.boot_id
    _Last.stdout = done.stdout
    return {process.pid: process for process in look.processes}


class _Last:
    stdout = b""


def test_what_is_told_of_a_process(
    shell: tuple[list[str], dict[str, str]], children: Children
) -> None:
    code = (
        "import signal,sys\n"
        "open('/proc/self/comm','w').write('a) b\\n(c')\n"
        "signal.signal(signal.SIGUSR1, print); signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "sys.stdout.write('ready\\n'); sys.stdout.flush(); sys.stdin.read()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, "--rank", "3", "two\nlines"],
        env={"RANK": "3", "SLURM_JOB_ID": JOB, "SLURM_STEP_ID": "0", "NCCL_DEBUG": "x\ny",
             "HOME": "/nowhere"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    children.running.append(child)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    found = _look(shell)[child.pid]
    assert found.name == "a) b\n(c"
    assert found.ppid == os.getpid()
    assert found.uid == os.geteuid()
    assert found.state in "SR"
    assert (found.job, found.step) == (JOB, "0") or found.job is not None
    assert found.argv == (sys.executable, "-c", MARK.decode(), "--rank=3")
    assert found.variable("NCCL_DEBUG") == "x\ny"
    assert found.variable("RANK") == "3"
    assert found.variable("HOME") is None
    assert found.catches(10) is True
    assert found.ignores(1) is True
    assert found.catches(12) is False
    assert found.threads == 1
    stat = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
    assert found.start_ticks == int(stat[19])


def test_no_secret_leaves_the_node(
    shell: tuple[list[str], dict[str, str]], children: Children
) -> None:
    secrets = {
        "SLURM_JWT": "s3cret-jwt",
        "AWS_SECRET_ACCESS_KEY": "s3cret-aws",
        "NCCL_TOKEN": "s3cret-nccl",
        "TORCH_X": "hf_s3cretABCDEFGHIJKLMNOP",
        "GLOO_URL": "http://anna:s3cret-url@host/",
        "LONG": "RANK=s3cret\nRANK=s3cret",
    }
    words = ("--api-key=s3cret-1", "--token", "s3cret-2", "wandb.api_key=s3cret-3",
             "export HF_TOKEN=s3cret-4; run", "--max-tokens", "2048")  # fmt: skip
    pid = children.start(sys.executable, "-c", _HOLD, *words, RANK="1", SLURM_JOB_ID=JOB, **secrets)
    found = _look(shell)[pid]
    assert b"s3cret" not in _Last.stdout
    assert found.variable("RANK") == "1"


#: Ways in which people hand a secret over, and there are more than anybody knows.
_HANDED_OVER: tuple[tuple[str, ...], ...] = (
    ("train --hf_token S3cret --password S3cret; curl -u bob:S3cret http://x/",),
    ('curl -H "Authorization: Basic S3cret=" -d \'{"token": "S3cret"}\' http://x/',),
    ('KEY="a S3cret" run',),
    ("-u", "bob:S3cret"),
    ("--db-pass", "S3cret"),
    ("--Password", "S3cret"),
    ("--Password=S3cret", "--apiKey=S3cret", "key: S3cret", "--openai.api_key:S3cret"),
    ("S3cret",),
    ("--rank", "S3cret"),
    ("--local_rank=S3cret", "-rank", "--token", "S3cret"),
    ("-c", "S3cret", "-m", "S3cret"),
)


def test_what_a_command_line_says_besides_programs_and_ranks_stays_there(
    shell: tuple[list[str], dict[str, str]], children: Children, tmp_path: Path
) -> None:
    script = str(tmp_path / "train.py")
    Path(script).write_text(_HOLD)
    python, mark = sys.executable, MARK.decode()
    started: dict[int, tuple[str, ...]] = {}
    for words in _HANDED_OVER:
        inside = f"read line; exit 0; {' '.join(words)}".replace("'", "")
        started |= {
            children.start(python, "-u", "-W", "ignore:S3cret", script, *words): (python, script),
            children.start(python, "-uc", f"{_HOLD}; 'S3cret'", *words): (python, "-c", mark),
            children.start("/bin/sh", "-c", "read line", "sh", *words): ("/bin/sh",),
            children.start("/bin/sh", "-c", inside): ("/bin/sh",),
            _titled(children, f"{python} {' '.join(words)}"): (python, "-c", mark),
        }
    found = _look(shell)
    assert b"S3cret" not in _Last.stdout
    assert {pid: found[pid].argv[:3] for pid in started} == started


def _titled(children: Children, title: str) -> int:
    """A program that has written ``title`` over its own name."""
    child = subprocess.Popen([title, "-c", "read line"], executable="/bin/sh", env={},
                             stdin=subprocess.PIPE)  # fmt: skip
    children.running.append(child)
    return child.pid


def test_what_a_python_runs_is_told(
    shell: tuple[list[str], dict[str, str]], children: Children, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(_HOLD)
    python, place = sys.executable, {"PYTHONPATH": str(tmp_path)}
    script, batch = str(tmp_path / "mine.py"), str(tmp_path / "slurm_script")
    Path(batch).write_text("read line")
    spawned = f"from multiprocessing.spawn import spawn_main; {_HOLD}"
    expected = {
        children.start(python, "-um", "mine", "--x", **place): (python, "-m", "mine"),
        children.start(python, "-mmine", "--rank", "7", **place): (
            python, "-m", "mine", "--rank=7"),
        children.start(python, "-X", "dev", "-W", "error", "-B", script, "y"): (python, script),
        children.start(python, "-c", spawned): (python, "-c", "multiprocessing.spawn"),
        children.start(python, "--", script, "--nproc-per-node=8", "--nnodes", "2"): (
            python, script, "--nproc-per-node=8", "--nnodes=2"),
        children.start(python, "-"): (python,),
        children.start("/bin/sh", batch, "x"): ("/bin/sh", "slurm_script"),
    }  # fmt: skip
    found = _look(shell)
    assert {pid: found[pid].argv for pid in expected} == expected
    helper = next(pid for pid, argv in expected.items() if "multiprocessing.spawn" in argv)
    assert part_of(found[helper]) is Part.HELPER


def test_the_titles_by_which_agents_and_containers_are_known_stay(
    shell: tuple[list[str], dict[str, str]], children: Children
) -> None:
    titles = {
        "slurmstepd: [77.0] S3cret": (Part.AGENT, "slurmstepd: [77.0]"),
        "sshd: alice@notty": (Part.AGENT, "sshd:"),
        "Apptainer runtime parent S3cret": (Part.WRAPPER, "Apptainer runtime parent"),
        "/opt/bin/torchrun --token S3cret": (Part.AGENT, "/opt/bin/torchrun"),
        "ray::train(token=S3cret)": (Part.WORK, "ray::train(token"),
    }
    started = {_titled(children, title): told for title, told in titles.items()}
    found = _look(shell)
    assert b"S3cret" not in _Last.stdout
    assert {pid: (part_of(found[pid]), found[pid].argv[0]) for pid in started} == started


def test_only_ones_own_processes_are_told_where_no_job_is_named() -> None:
    """Those of other people are asked for by their job alone. (Root may see all anyway.)"""
    nobody = 65_534 if os.geteuid() == 0 else None
    done = subprocess.run(
        ["/bin/sh", "-c", SCRIPT, "slurmtop-processes"],
        env={"PATH": "/usr/bin:/bin"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=True,
        cwd="/",
        user=nobody,
        group=nobody,
    )
    told = {line.split()[2] for line in done.stdout.decode().splitlines() if line[:2] == "U "}
    assert told == {str(nobody or os.geteuid())}


def test_long_and_many_words_are_cut_and_ranks_kept(
    shell: tuple[list[str], dict[str, str]], children: Children
) -> None:
    words = [f"--option-{number}={'x' * 90}" for number in range(60)]
    pid = children.start(
        sys.executable, "-c", _HOLD, *words, "--local_rank", "5", SLURM_JOB_ID=JOB,
        **{f"NCCL_{number}": "y" * 900 for number in range(100)},
    )  # fmt: skip
    found = _look(shell)[pid]
    assert len(found.argv) < 30
    assert found.argv[-1] == "--local_rank=5"
    assert found.env is not None
    assert len(found.env) <= 62
    assert sum(len(value) for _, value in found.env) < 20_000


def test_our_own_script_is_not_among_them(shell: tuple[list[str], dict[str, str]]) -> None:
    found = _look(shell)
    assert not any("slurmtop-processes" in process.argv for process in found.values())


class Raising(FakeRunner):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    async def run(self, command: Command) -> Completed:
        raise self.error


def test_a_node_that_does_not_answer_is_told_in_words() -> None:
    clock = FakeClock()
    failure = Failure(Trouble.DENIED, "gpu01 lets nobody in")
    for error, said in (
        (NodeUnreachable("gpu01", failure), "gpu01 lets nobody in"),
        (RunnerError("no memory"), "no memory"),
    ):
        look = asyncio.run(read_processes(Raising(error), clock, "gpu01"))
        assert look.failure is not None
        assert said in look.failure.sentence
    runner = FakeRunner(clock)
    runner.on("*slurmtop-processes*", b"slurmtop-processes 1\nS 1 1 0 S a\n", rc=None)
    look = asyncio.run(read_processes(runner, clock, "gpu01"))
    assert look.failure is None
    assert not look.complete
    runner.on("*slurmtop-processes*", b"", rc=127, stderr="sh: not found")
    look = asyncio.run(read_processes(runner, clock, "gpu01"))
    assert look.failure is not None
    assert look.failure.raw == "sh: not found"
    runner.on("*slurmtop-processes*", b"", rc=None)
    look = asyncio.run(read_processes(runner, clock, "gpu01"))
    assert look.failure is not None
    assert look.failure.trouble is Trouble.TIMEOUT


def test_of_a_job_only_its_own() -> None:
    clock, runner = FakeClock(), FakeRunner()
    runner.on(
        "*slurmtop-processes 77",
        b"slurmtop-processes 1\n"
        b"S 1 1 0 S a\nC 1 0::/job_77/step_0\nT 1 1\n"
        b"S 2 1 0 S b\nC 2 0::/job_78/step_0\nT 2 1\nend\n",
    )
    look = asyncio.run(read_processes(runner, clock, "gpu01", job="77"))
    assert [process.pid for process in look.processes] == [1]
    assert runner.calls[0].host == "gpu01"
    with pytest.raises(ValueError, match="not the number"):
        processes_command("gpu01", "7; reboot")
    look = asyncio.run(read_processes(runner, clock, "gpu01", job="77_1"))
    assert look.failure is not None


@pytest.mark.parametrize("one", ["(standard input)!b!", ""])
def test_what_a_process_shows_is_never_held_in_memory_as_a_whole(tmp_path: Path, one: str) -> None:
    """Its environment may be made as long as it likes, without an end of a word."""
    endless = tmp_path / "environ"
    with endless.open("wb") as file:
        file.write(b"x" * 40_000_000)
    begin = HEAD.index("records() {")
    records = HEAD[begin : HEAD.index("\n}\n", begin) + 3]
    script = f"LC_ALL=C; lim='timeout 20'; one=$1; {records} records \"$2\" | wc -c"
    argv = ["/bin/sh", "-c", script, "sh", one, str(endless)]
    done = subprocess.run(argv, capture_output=True, check=True)
    assert 1_000_000 < int(done.stdout) <= 33_554_432
