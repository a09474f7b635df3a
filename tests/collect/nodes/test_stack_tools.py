"""Which program may read stacks on a node: the fragment of the script, run for real."""

import grp
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.collect.nodes.stack_tools import CHECK, FRAGMENT, TOOL, first_tools, tool_words
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.stacks import StackTool
from slurmtop.parse.dumps.stack_tools import parse_stack_tools

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="runs programs of Linux")
_PY_SPY = Path(sys.executable).parent / TOOL


def _find(
    *words: str, pids: str = "", sudo: str = "0", shell: str = "sh"
) -> tuple[tuple[StackTool, ...], Failure | None]:
    done = subprocess.run(
        [*shell.split(), "-c", f'{FRAGMENT}\nstack_tools "$@"', "test", sudo, pids, *words],
        capture_output=True,
        check=True,
    )
    assert done.stderr == b""
    return parse_stack_tools(done.stdout.split(b"\n"), "gpu01")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Below /tmp, where everybody may write, but nobody may replace what is somebody else's."""
    made = tmp_path / "of-tools"
    made.mkdir(mode=0o755)
    return made


@pytest.fixture
def tool(folder: Path) -> Path:
    """A copy of py-spy in a folder of one's own."""
    if not _PY_SPY.exists():
        pytest.skip("no py-spy beside this Python")
    path = folder / "bin" / TOOL
    path.parent.mkdir()
    shutil.copy(_PY_SPY, path)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox sh"])
def test_a_tool_is_told_with_its_version_and_hash(tool: Path, shell: str) -> None:
    if shutil.which(shell.split()[0]) is None:
        pytest.skip(f"no {shell} here")
    hashed = subprocess.run(["sha256sum", str(tool)], capture_output=True, text=True, check=True)
    found, failure = _find(f"any:{tool}", shell=shell)
    assert failure is None
    (one,) = found
    assert (one.path, one.sudo) == (str(tool), False)
    assert one.version is not None
    assert one.version.startswith("0.4")
    assert one.sha256 == hashed.stdout.split()[0]


def test_the_first_that_may_be_run_counts_and_only_those_of_this_machine(tool: Path) -> None:
    (one,) = _find("any:/nothing/py-spy", "mips64:/bin/sh", f"{os.uname().machine}:{tool}")[0]
    assert one.path == str(tool)
    found, failure = _find(f"mips64:{tool}")
    assert found == ()
    assert failure is not None
    assert failure.copy == "pip install 'slurmtop-tui[stacks]'"


def test_what_is_run_is_the_file_behind_the_link(tool: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tool)
    (one,) = _find(f"any:{link}")[0]
    assert one.path == str(tool)


def _open_to_others(path: Path, mode: int) -> None:
    """To a group that is not ours alone."""
    if os.geteuid() != 0:
        pytest.skip("gives files away")
    os.chown(path, -1, 65_533)
    path.chmod(mode)


def _spoil(tool: Path, how: str) -> None:
    if how == "group":
        _open_to_others(tool, 0o775)
    elif how == "world":
        tool.chmod(0o757)
    elif how.startswith("folder "):
        _open_to_others(tool.parent, int(how.removeprefix("folder "), 8))
    elif how == "above":
        _open_to_others(tool.parent.parent, 0o2775)
    elif how == "script":
        tool.write_text("#!/bin/sh\necho py-spy 0.4.3\n")
    elif how == "machine":
        data = bytearray(tool.read_bytes())
        data[18:20] = b"\x08\x00"
        tool.write_bytes(data)
    elif how == "other program":
        shutil.copy("/bin/cat", tool)
    elif how == "mode":
        tool.chmod(0o644)


@pytest.mark.parametrize(
    ("how", "says", "copy"),
    [
        ("group", "may be written to by others", "chmod go-w {tool}"),
        ("world", "may be written to by others", "chmod go-w {tool}"),
        ("folder 777", "below a folder where others may replace it", ""),
        ("folder 775", "below a folder where others may replace it", ""),
        ("folder 757", "below a folder where others may replace it", ""),
        ("above", "below a folder where others may replace it", ""),
        ("script", "is not made for this machine", ""),
        ("machine", "is not made for this machine", ""),
        ("other program", "does not run there", "{tool} --version"),
        ("mode", "may not be executed", "chmod u+x {tool}"),
    ],
)
def test_what_is_left_aside_is_told(tool: Path, how: str, says: str, copy: str) -> None:
    _spoil(tool, how)
    found, failure = _find(f"any:{tool}")
    assert found == ()
    assert failure is not None
    assert says in failure.sentence
    assert failure.copy == copy.format(tool=tool)
    assert failure.sentence.endswith(failure.copy)


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox sh"])
@pytest.mark.parametrize("mode", [0o775, 0o2775, 0o1777])
def test_the_group_of_the_user_alone_and_a_sticky_folder_are_open_to_nobody(
    tool: Path, shell: str, mode: int
) -> None:
    if shutil.which(shell.split()[0]) is None:
        pytest.skip(f"no {shell} here")
    group = grp.getgrgid(os.getegid()).gr_name
    if mode & 0o20 and group != pwd.getpwuid(os.geteuid()).pw_name:
        pytest.skip(f"{group} is not the user's own group")
    for path in (tool.parent, tool.parent.parent):
        path.chmod(mode)
    tool.chmod(0o775)
    (one,) = _find(f"any:{tool}", shell=shell)[0]
    assert one.path == str(tool)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")
def test_nothing_of_somebody_else_is_run_and_root_runs_only_its_own(tool: Path) -> None:
    os.chown(tool, 65_534, -1)
    found, failure = _find(f"any:{tool}")
    assert found == ()
    assert failure is not None
    assert "belongs neither to root nor to you" in failure.sentence


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")
@pytest.mark.parametrize("shell", ["dash", "bash", "busybox sh"])
@pytest.mark.parametrize("whose", ["folder", "above"])
def test_what_lies_below_a_folder_of_somebody_else_is_not_run(
    folder: Path, tool: Path, shell: str, whose: str
) -> None:
    if shutil.which(shell.split()[0]) is None:
        pytest.skip(f"no {shell} here")
    me, another = 65_534, 65_533
    os.chown(folder, me, -1)
    os.chown(tool.parent, me, -1)
    os.chown(tool, me, -1)
    asked = f'{CHECK}\ntool_may_run "$1" {me}; echo $? $why'

    def may_run() -> str:
        argv = [*shell.split(), "-c", asked, "test", str(tool)]
        return subprocess.run(argv, capture_output=True, check=True, text=True).stdout.strip()

    assert may_run() == "0"
    os.chown(folder if whose == "above" else tool.parent, another, -1)
    assert may_run() == "1 folder"


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")
def test_under_sudo_the_tool_may_be_of_the_one_who_asked_and_is_run_by_them(
    tool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(tool, 65_534, -1)
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "sudo").write_text(f'#!/bin/sh\necho "$*" >>{tools}/log\nshift 3; exec "$@"\n')
    (tools / "sudo").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("SUDO_UID", "65534")
    (found,) = _find(f"any:{tool}", sudo="1")[0]
    assert (found.path, found.sudo) == (str(tool), False)
    assert (tools / "log").read_text() == f"-n -u #65534 {tool} --version\n"
    assert _find(f"any:{tool}")[0] == ()
    monkeypatch.setenv("SUDO_UID", "65533")
    assert _find(f"any:{tool}", sudo="1")[0] == ()


@pytest.mark.parametrize("path", ["py-spy", "/a b/py-spy", "/a;id/py-spy", "/a\n/py-spy", "/$(id)"])
def test_a_path_that_needs_quotes_is_not_even_looked_at(path: str) -> None:
    found, failure = _find(f"any:{path}")
    assert found == ()
    assert failure is not None
    assert failure.trouble is Trouble.LOCAL


def test_the_environment_of_the_job_is_searched(tool: Path) -> None:
    env = {"PATH": f"/nowhere:{tool.parent}:/bin;id:/a b"}
    with subprocess.Popen(["/bin/sh", "-c", "read x"], env=env, stdin=subprocess.PIPE) as child:
        found, _ = _find(pids=f"{child.pid} 999999999")
        child.communicate(b"\n")
    assert [one.path for one in found] == [str(tool)]


def test_words_in_their_order() -> None:
    words = tool_words([("aarch64", "/shared/arm/py-spy"), ("any", "/shared/py-spy")])
    assert words[:2] == ("aarch64:/shared/arm/py-spy", "any:/shared/py-spy")
    assert words[2] == f"any:{_PY_SPY}"
    assert words[-2:] == ("any:/usr/local/bin/py-spy", "any:/usr/bin/py-spy")


def test_as_oneself_before_sudo() -> None:
    lines = ("stack-tool root /usr/bin/py-spy 0.4.3 -", "stack-tool own /home/a/py-spy 0.4.2 -")
    found, failure = parse_stack_tools(lines, "gpu01")
    assert failure is None
    assert [one.sudo for one in found] == [False, True]
    assert first_tools(found) == found


def test_an_answer_that_was_cut_and_a_node_without_timeout() -> None:
    assert "did not tell" in str(parse_stack_tools((), "gpu01")[1])
    assert "no timeout command" in str(parse_stack_tools(("stack-left - timeout",), "gpu01")[1])


@given(st.lists(st.binary(max_size=80) | st.text(max_size=80), max_size=6))
def test_any_lines_are_read(lines: list[str | bytes]) -> None:
    for some in (
        lines,
        ["stack-tool " + str(x) for x in lines],
        ["stack-left " + str(x) for x in lines],
    ):
        tools, failure = parse_stack_tools(some, "gpu01")
        assert bool(tools) == (failure is None)
