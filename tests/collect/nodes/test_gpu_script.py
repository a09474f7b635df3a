"""The GPU script run for real by every shell that is here, with tools that a test wrote."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurmtop.collect.nodes.gpu_script import (
    amd_command,
    dcgm_command,
    once_command,
    probe_command,
    stream_command,
)
from slurmtop.model.ports import Command
from slurmtop.parse.gpu.node_script import NodeAnswer, OpenTool, parse_node_answer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
#: A stand-in: rounds for ``-lms`` until it is ended, else one answer.
SMI = """#!/bin/sh
case "$*" in
*compute-apps*) echo "GPU-1, 30001, python, 512" ;;
*-lms*) while :; do echo "0, GPU-1, 97"; sleep 0.1; done ;;
*) echo "0, GPU-1, 97"; exit ${RC:-0} ;;
esac
"""
DCGMI = """#!/bin/sh
echo "dcgmi $*"
"""
DEADLINE_S = 20.0


@pytest.fixture(params=["dash", "bash", "busybox"])
def shell(request: pytest.FixtureRequest) -> list[str]:
    path = shutil.which(request.param)
    if path is None:
        pytest.skip(f"no {request.param} here")
    return [path, "sh"] if request.param == "busybox" else [path]


@pytest.fixture
def tools(tmp_path: Path) -> dict[str, str]:
    for name, text in (("nvidia-smi", SMI), ("dcgmi", DCGMI)):
        (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    return {"PATH": f"{tmp_path}:{os.environ['PATH']}"}


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(["sleep", "600"])
    yield child
    child.kill()
    child.wait()


def run(shell: list[str], command: Command, env: dict[str, str]) -> NodeAnswer:
    done = subprocess.run(
        [*shell, *command.argv[1:]], env=env, capture_output=True, timeout=DEADLINE_S, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    answer = parse_node_answer(done.stdout)
    assert answer.whole
    return answer


def start_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()[19])


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")


def test_one_look_reads_gpus_processes_ports_and_the_cgroup(
    shell: list[str], tools: dict[str, str]
) -> None:
    answer = run(shell, once_command("gpu01", ("index", "uuid"), ()), tools)
    assert answer.parts["query"].text == b"0, GPU-1, 97"
    assert (answer.parts["query"].rc, answer.parts["apps"].rc) == (0, 0)
    assert answer.parts["apps"].text == b"GPU-1, 30001, python, 512"
    assert b"/proc/uptime:" in answer.parts["nics"].text
    assert answer.parts["cgroup"].text.strip()


def test_a_query_that_fails_starts_no_second_tool(shell: list[str], tools: dict[str, str]) -> None:
    answer = run(shell, once_command("gpu01", ("index",), ()), {**tools, "RC": "9"})
    assert answer.parts["query"].rc == 9
    assert "apps" not in answer.parts


def test_a_probe_reads_all_but_the_values(shell: list[str], tools: dict[str, str]) -> None:
    assert set(run(shell, probe_command("gpu01", ()), tools).parts) == {"cgroup", "nics", "apps"}
    without = run(shell, probe_command("gpu01", (), apps=False), tools)
    assert set(without.parts) == {"cgroup", "nics"}


def test_dcgm_is_asked_for_its_list_and_its_counters(
    shell: list[str], tools: dict[str, str]
) -> None:
    answer = run(shell, dcgm_command("gpu01", (203, 1004), (), count=2, round_s=1.0), tools)
    assert answer.parts["discovery"].text == b"dcgmi discovery -l"
    assert answer.parts["dmon"].text == b"dcgmi dmon -e 203,1004 -d 1000 -c 2"


def test_a_tool_that_is_not_there_is_127(shell: list[str]) -> None:
    env = {"PATH": os.environ["PATH"]}
    if shutil.which("nvidia-smi") is None:
        answer = run(shell, once_command("gpu01", ("index",), ()), env)
        assert answer.parts["query"].rc == 127
    if not Path("/dev/kfd").exists():
        assert run(shell, amd_command("gpu01", ()), env).parts["amd"].rc == 127


def test_no_tool_is_started_while_an_earlier_one_is_there(
    shell: list[str], tools: dict[str, str], sleeper: "subprocess.Popen[bytes]"
) -> None:
    mine = OpenTool(sleeper.pid, start_of(sleeper.pid))
    answer = run(shell, stream_command("gpu01", ("index",), (mine,)), tools)
    assert [(one.pid, one.start_ticks) for one in answer.open_tools] == [
        (mine.pid, mine.start_ticks)
    ]
    assert answer.parts == {}


def test_a_pid_that_was_given_to_another_process_is_not_in_the_way(
    shell: list[str], tools: dict[str, str], sleeper: "subprocess.Popen[bytes]"
) -> None:
    other = OpenTool(sleeper.pid, start_of(sleeper.pid) - 1)
    gone = OpenTool(2**22 + 1, 5)
    answer = run(shell, once_command("gpu01", ("index",), (other, gone)), tools)
    assert answer.open_tools == ()
    assert answer.parts["query"].rc == 0


def test_a_tool_that_is_just_ending_is_given_its_time(
    shell: list[str], tools: dict[str, str], sleeper: "subprocess.Popen[bytes]"
) -> None:
    mine = OpenTool(sleeper.pid, start_of(sleeper.pid))
    command = once_command("gpu01", ("index",), (mine,))
    with subprocess.Popen([*shell, *command.argv[1:]], env=tools, stdout=subprocess.PIPE) as child:
        # It waits for the earlier one: that is its only child.
        children = Path(f"/proc/{child.pid}/task/{child.pid}/children")
        limit = time.monotonic() + DEADLINE_S
        while not children.read_text().split():
            assert time.monotonic() < limit, "it did not wait"
        sleeper.kill()
        sleeper.wait()
        said, _ = child.communicate(timeout=DEADLINE_S)
    assert parse_node_answer(said).parts["query"].rc == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_stream_that_is_ended_takes_its_tool_with_it(
    shell: list[str], tools: dict[str, str], number: int
) -> None:
    command = stream_command("gpu01", ("index",), ())
    with subprocess.Popen([*shell, *command.argv[1:]], env=tools, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        said = b""
        while said.count(b"GPU-1") < 3:
            said += os.read(child.stdout.fileno(), 4096)
        (tool,) = parse_node_answer(said).running
        assert alive(tool.pid)
        child.send_signal(number)
        child.wait(timeout=DEADLINE_S)
    limit = time.monotonic() + DEADLINE_S
    while alive(tool.pid):
        assert time.monotonic() < limit, "the tool was left behind"
        time.sleep(0.01)
