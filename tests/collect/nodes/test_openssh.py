"""The ``ssh`` command, against the same server inside the test."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import asyncssh
import pytest

from slurmtop.collect.clock import SystemClock
from slurmtop.collect.nodes import openssh
from slurmtop.collect.nodes.openssh import STARTS_AT_ONCE, OpenSshWay, ssh_argv
from slurmtop.collect.nodes.script import new_mark
from slurmtop.model.ports import NodeUnreachable
from slurmtop.model.snapshot import Failure, Trouble
from tests.collect.helpers import alive, until
from tests.collect.nodes.ssh_server import Node, ask, script, serving

pytestmark = pytest.mark.skipif(shutil.which("ssh") is None, reason="there is no ssh here")


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    key = asyncssh.generate_private_key("ssh-ed25519")
    path = tmp_path / "id"
    path.write_bytes(key.export_private_key("openssh"))
    path.chmod(0o600)
    async with serving(Node(authorized=key.convert_to_public())) as made:
        (tmp_path / "known").write_text(made.known_line)
        (tmp_path / "config").write_text(
            f"Host gpu*\n  HostName 127.0.0.1\n  Port {made.port}\n  User alice\n"
            f"  IdentityFile {path}\n  IdentitiesOnly yes\n  IdentityAgent none\n"
            f"  UserKnownHostsFile {tmp_path}/known\n  GlobalKnownHostsFile /dev/null\n"
            # As careless as some people's: none of it may count here.
            "  StrictHostKeyChecking no\n  LogLevel QUIET\n  RequestTTY force\n"
            "  ControlMaster auto\n  ControlPath /nonexistent/%C\n  LocalCommand touch %d/no\n"
        )
        yield made


@pytest.fixture
async def way(node: Node, tmp_path: Path) -> AsyncIterator[OpenSshWay]:
    made = OpenSshWay(SystemClock(), os.environ, options=("-F", str(tmp_path / "config")))
    yield made
    await made.aclose()
    await until(lambda: made.children == 0, "the end of all children")


async def refused(way: OpenSshWay, host: str = "gpu01") -> Failure:
    with pytest.raises(NodeUnreachable) as caught:
        await way.start(host, b"true\n")
    return caught.value.failure


async def test_an_answer_comes_through_all_noise(way: OpenSshWay, node: Node) -> None:
    node.banner, node.noise = "Authorised use only\n", b"Welcome!\n"
    node.stderr_noise = b"bash: warning: setlocale\n"
    got = await ask(way, "gpu01", "echo out; echo wrong >&2; exit 3")
    assert (got.rc, got.stdout, got.stderr, got.complete) == (3, b"out\n", b"wrong", True)


async def test_starts_are_bounded(way: OpenSshWay, node: Node) -> None:
    node.gate = asyncio.Event()
    waiting = asyncio.gather(*(ask(way, f"gpu{n}", "true") for n in range(12)))
    await until(lambda: node.in_login == STARTS_AT_ONCE, "eight logins in flight")
    await until(lambda: way.children == STARTS_AT_ONCE, "their children on our side")
    node.gate.set()
    await waiting
    assert node.most_in_login == STARTS_AT_ONCE


async def test_closing_ends_the_child_and_what_runs_on_the_node(
    way: OpenSshWay, node: Node
) -> None:
    process = await way.start("gpu01", script("exec sleep 600", new_mark(), timeout_s=900))
    (shell,) = node.children
    await process.close()
    await process.close()
    assert way.children == 0
    await until(lambda: not alive(shell), "the end of the login shell")


async def test_a_killed_ssh_leaves_nothing_on_the_node(way: OpenSshWay, node: Node) -> None:
    process = await way.start("gpu01", script("exec sleep 600", new_mark(), timeout_s=900))
    (shell,) = node.children
    assert isinstance(process, openssh.OpenSshProcess)
    process._child.kill()
    with pytest.raises(NodeUnreachable):
        async for _ in process.chunks():
            pass
    await until(lambda: not alive(shell), "the end of the login shell")
    await process.close()


async def test_an_unknown_key_is_refused_whatever_the_settings_say(
    way: OpenSshWay, node: Node, tmp_path: Path
) -> None:
    (tmp_path / "known").write_text("")
    failure = await refused(way)
    assert failure.trouble is Trouble.DENIED
    assert "The host key of 127.0.0.1 is not known here" in failure.sentence
    assert failure.sentence.endswith(failure.copy)
    assert failure.copy == "ssh -o StrictHostKeyChecking=ask gpu01"
    assert (tmp_path / "known").read_text() == ""


async def test_no_question_is_answered(way: OpenSshWay, node: Node) -> None:
    node.methods = ("keyboard-interactive",)
    assert "asks questions" in (await refused(way)).sentence
    assert node.questions == 0


async def test_the_refusal_of_pam_slurm_adopt(way: OpenSshWay, node: Node) -> None:
    node.banner, node.let_in = "Access denied by pam_slurm_adopt: you have no active jobs\n", False
    failure = await refused(way)
    assert failure.retry_after_s == float("inf")


async def test_an_account_without_a_shell(way: OpenSshWay, node: Node) -> None:
    node.mode = "nologin"
    failure = await refused(way)
    assert "This account is currently not available." in failure.sentence
    assert await refused(way) is failure
    node.mode = "shell"
    way.forget("gpu01")
    assert (await ask(way, "gpu01", "echo in")).stdout == b"in\n"


async def test_a_shell_that_never_gets_to_our_command(
    way: OpenSshWay, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openssh, "START_TIMEOUT_S", 1.0)
    node.mode, node.noise = "silent", b"Lmod: loading\n"
    assert (await refused(way)).trouble is Trouble.TIMEOUT
    assert way.children == 0


async def test_a_cut_answer_is_none(way: OpenSshWay, node: Node) -> None:
    node.mode, node.half = "drop", 90
    with pytest.raises(NodeUnreachable):
        await ask(way, "gpu01", "head -c 9000 /dev/zero | tr '\\0' x")


async def test_no_ssh_at_all(node: Node, tmp_path: Path) -> None:
    way = OpenSshWay(SystemClock(), {"PATH": str(tmp_path)})
    assert (await refused(way)).trouble is Trouble.LOCAL


@pytest.mark.parametrize("name", ["-oProxyCommand=id", "", "a\nb"])
async def test_no_hostile_name_reaches_ssh(way: OpenSshWay, name: str) -> None:
    assert "not the name of a host" in (await refused(way, name)).sentence


def test_ssh_accepts_every_option() -> None:
    argv = ssh_argv("gpu01", "true")
    done = subprocess.run(["ssh", "-G", *argv[1:-1]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for line in (
        "batchmode yes",
        "controlmaster false",
        "requesttty false",
        "permitlocalcommand no",
    ):
        assert f"\n{line}\n" in done.stdout
