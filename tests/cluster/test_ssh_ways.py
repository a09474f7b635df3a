"""Both ssh ways against real sshds: every kind of login, every kind of refusal, 128 hosts."""

import asyncio
import os
import secrets
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurmtop.collect.nodes.ssh import HANDSHAKES_AT_ONCE, SshWay
from slurmtop.model.ports import NodeUnreachable
from slurmtop.model.snapshot import Failure, Trouble
from tests.cluster.faults import Faults
from tests.cluster.fixtures import unavailable
from tests.cluster.procs import wait_until
from tests.cluster.sshds import Bench, Sshd, agent, child, keygen, make_key, me, running
from tests.collect.nodes.ssh_server import ask

both = pytest.mark.parametrize("name", ["ssh", pytest.param("openssh", marks=pytest.mark.long)])


@pytest.fixture
def bench() -> Iterator[Bench]:
    """Without the lock of the cluster: these sshds are the test's own."""
    reason = unavailable()
    if reason is not None:
        if os.environ.get("SLURMTOP_REQUIRE_CLUSTER") == "1":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    # A socket's name may be 107 bytes long.
    with tempfile.TemporaryDirectory(prefix="ssh-", ignore_cleanup_errors=True) as folder:
        path = Path(folder)
        yield Bench(path, make_key(path / "user"))


async def says(bench: Bench, name: str, host: str, **environ: str) -> bytes:
    async with bench.way(name, **environ) as way:
        got = await ask(way, host, "echo yes $((6 * 7))")
    assert got.complete
    return got.stdout


async def refused(bench: Bench, name: str, host: str, **environ: str) -> Failure:
    async with bench.way(name, **environ) as way:
        with pytest.raises(NodeUnreachable) as caught:
            await way.start(host, b"true\n")
    return caught.value.failure


@both
async def test_a_key_that_only_the_sites_file_knows(
    bench: Bench, faults: Faults, name: str
) -> None:
    with bench.sshd("node") as sshd:
        bench.host("gpu", sshd, know=False)
        assert (await refused(bench, name, "gpu")).trouble is Trouble.DENIED
        faults.open_etc_ssh(sshd.known_line)
        assert await says(bench, name, "gpu") == b"yes 42\n"


@both
async def test_a_user_certificate(bench: Bench, name: str) -> None:
    authority, key = make_key(bench.folder / "ca"), make_key(bench.folder / "id")
    with bench.sshd("node", f"TrustedUserCAKeys {authority}.pub") as sshd:
        bench.host("gpu", sshd, f"IdentityFile {key}")
        assert "refused every key" in (await refused(bench, name, "gpu")).sentence
        keygen("-s", str(authority), "-I", "test", "-n", me().name, f"{key}.pub")
        assert await says(bench, name, "gpu") == b"yes 42\n"
        # The same certificate under a name of its own.
        other = bench.folder / "other-cert.pub"
        (bench.folder / "id-cert.pub").rename(other)
        bench.hosts.clear()
        bench.host("gpu", sshd, f"IdentityFile {key}", f"CertificateFile {other}")
        assert await says(bench, name, "gpu") == b"yes 42\n"


@both
async def test_a_host_certificate(bench: Bench, name: str) -> None:
    with bench.sshd("node", certificate=True) as sshd:
        bench.host("gpu", sshd, know=False)
        assert (await refused(bench, name, "gpu")).trouble is Trouble.DENIED
        public = " ".join((sshd.folder / "authority.pub").read_text().split()[:2])
        bench.known.append(f"@cert-authority [127.0.0.1]:* {public}")
        bench.write()
        assert await says(bench, name, "gpu") == b"yes 42\n"
        bench.known.append(f"@revoked * {public}")
        bench.write()
        assert (await refused(bench, name, "gpu")).trouble is Trouble.DENIED


async def test_host_based_login_is_left_to_ssh(bench: Bench, faults: Faults) -> None:
    faults.open_etc_ssh()
    with bench.sshd(
        "node",
        "HostbasedAuthentication yes",
        "HostbasedUsesNameFromPacketOnly yes",
        "PubkeyAuthentication no",
    ) as sshd:
        bench.host("gpu", sshd, "HostbasedAuthentication yes")
        failure = await refused(bench, "ssh", "gpu")
        assert "(host-based or GSSAPI), which is left to the ssh command" in failure.sentence
        assert await says(bench, "openssh", "gpu") == b"yes 42\n"
        assert "Accepted hostbased" in sshd.log


@both
async def test_a_jump_host(bench: Bench, name: str) -> None:
    with bench.sshd("door") as door, bench.sshd("node") as node:
        bench.host("door", door)
        bench.host("far*", node, "ProxyJump door")
        async with bench.way(name) as way:
            answers = await asyncio.gather(*(ask(way, f"far{n}", f"echo {n}") for n in range(6)))
        assert [answer.stdout for answer in answers] == [b"%d\n" % n for n in range(6)]
        assert node.logins == 6
        assert door.logins == (1 if name == "ssh" else 6)


async def test_two_jump_hosts_in_a_row(bench: Bench) -> None:
    with bench.sshd("a") as first, bench.sshd("b") as second, bench.sshd("node") as node:
        bench.host("first", first)
        bench.host("second", second)
        bench.host("far", node, "ProxyJump first,second")
        assert await says(bench, "ssh", "far") == b"yes 42\n"
        assert (first.logins, second.logins, node.logins) == (1, 1, 1)
        # The second one is reached through the first, not straight.
        assert await says(bench, "openssh", "far") == b"yes 42\n"


async def test_a_proxy_command_is_left_to_ssh(bench: Bench) -> None:
    with bench.sshd("door") as door, bench.sshd("node") as node:
        bench.host("door", door)
        bench.host("far", node, f"ProxyCommand ssh -F {bench.config} -W %h:%p door")
        assert "left to the ssh command" in (await refused(bench, "ssh", "far")).sentence
        assert await says(bench, "openssh", "far") == b"yes 42\n"


async def test_a_master_that_the_person_opened_is_used(bench: Bench) -> None:
    other = make_key(bench.folder / "other")
    control = bench.folder / "cm"
    with bench.sshd("node") as sshd:
        bench.host(
            "gpu", sshd, f"IdentityFile {other}", f"ControlPath {control}", "ControlMaster auto"
        )
        for name in ("ssh", "openssh"):
            assert "refused every key" in (await refused(bench, name, "gpu")).sentence
        # Theirs, made by hand, with what only they can show.
        argv = ["ssh", "-F", str(bench.config), "-o", f"IdentityFile {bench.user}"]
        with child(*argv, "-M", "-N", "gpu") as master:
            wait_until("the master", control.exists, 20)
            assert await says(bench, "openssh", "gpu") == b"yes 42\n"
            assert sshd.logins == 1
            assert master.poll() is None
            assert "refused every key" in (await refused(bench, "ssh", "gpu")).sentence
        wait_until("the end of the master", lambda: not control.exists(), 20)
        # None is made, whatever the settings ask for.
        (sshd.folder / "authorized").write_text(other.with_suffix(".pub").read_text())
        assert await says(bench, "openssh", "gpu") == b"yes 42\n"
        assert not control.exists()


@both
async def test_keyboard_interactive_is_never_answered(bench: Bench, name: str) -> None:
    settings = ("KbdInteractiveAuthentication yes", "PubkeyAuthentication no")
    with bench.sshd("node", *settings) as sshd:
        bench.host("gpu", sshd)
        failure = await refused(bench, name, "gpu")
        assert failure.trouble is Trouble.DENIED
        assert "asks questions at its login (keyboard-interactive)" in failure.sentence
        assert "never answers" in failure.sentence


@both
async def test_a_second_factor_is_never_answered(bench: Bench, name: str) -> None:
    settings = (
        "KbdInteractiveAuthentication yes",
        "AuthenticationMethods publickey,keyboard-interactive",
    )
    with bench.sshd("node", *settings) as sshd:
        bench.host("gpu", sshd)
        assert "asks questions" in (await refused(bench, name, "gpu")).sentence


async def test_an_unknown_host_key_is_told_with_the_line(bench: Bench) -> None:
    with bench.sshd("node") as sshd:
        bench.host("gpu", sshd, know=False)
        ours = await refused(bench, "ssh", "gpu")
        assert sshd.known_line in ours.sentence
        theirs = await refused(bench, "openssh", "gpu")
        assert theirs.sentence.endswith("ssh -o StrictHostKeyChecking=ask gpu")
        bench.known.append(ours.raw.split("\n")[1])
        bench.write()
        assert await says(bench, "ssh", "gpu") == b"yes 42\n"
        assert await says(bench, "openssh", "gpu") == b"yes 42\n"


@both
async def test_a_changed_host_key_is_said_so_strongly(bench: Bench, name: str) -> None:
    with bench.sshd("node") as sshd:
        other = make_key(bench.folder / "old").with_suffix(".pub").read_text()
        bench.host("gpu", sshd, know=False)
        bench.known.append(f"[127.0.0.1]:{sshd.port} {other}")
        bench.write()
        assert "HAS CHANGED" in (await refused(bench, name, "gpu")).sentence


@both
async def test_a_refused_key(bench: Bench, name: str) -> None:
    with bench.sshd("node") as sshd:
        bench.host("gpu", sshd, f"IdentityFile {make_key(bench.folder / 'other')}")
        failure = await refused(bench, name, "gpu")
        assert "refused every key" in failure.sentence
        assert "it offers publickey" in failure.sentence


@both
async def test_an_agent_that_holds_the_key(bench: Bench, name: str) -> None:
    locked = make_key(bench.folder / "locked", "a passphrase")
    open_ = bench.folder / "open"
    open_.write_bytes(locked.read_bytes())
    open_.chmod(0o600)
    keygen("-p", "-P", "a passphrase", "-N", "", "-f", str(open_))
    with bench.sshd("node") as sshd:
        (sshd.folder / "authorized").write_text(locked.with_suffix(".pub").read_text())
        bench.host("gpu", sshd, f"IdentityFile {locked}")
        sentence = (await refused(bench, name, "gpu")).sentence
        assert (f"ssh-add {locked}" in sentence) == (name == "ssh")
        with agent(bench.folder, open_) as path:
            assert await says(bench, name, "gpu", SSH_AUTH_SOCK=path) == b"yes 42\n"


@both
async def test_a_forced_command_and_an_account_without_a_shell(bench: Bench, name: str) -> None:
    with bench.sshd("menu", "ForceCommand echo Only backups here") as menu:
        bench.host("menu", menu)
        sentence = (await refused(bench, name, "menu")).sentence
        assert "forced command" in sentence
        assert "Only backups here" in sentence
    with bench.sshd("none", "ForceCommand /usr/sbin/nologin") as none:
        bench.host("none", none)
        assert "has no login shell" in (await refused(bench, name, "none")).sentence


async def test_more_scripts_than_a_server_has_sessions_for(bench: Bench) -> None:
    with bench.sshd("node") as sshd:
        bench.host("gpu", sshd)
        async with bench.way("ssh") as way:
            answers = await asyncio.gather(*(ask(way, "gpu", "echo yes") for _ in range(40)))
        assert {answer.stdout for answer in answers} == {b"yes\n"}
        assert sshd.logins == 1


async def test_a_server_with_one_session_a_connection(bench: Bench) -> None:
    with bench.sshd("node", "MaxSessions 1") as sshd:
        bench.host("gpu", sshd)
        async with bench.way("ssh") as way:
            for _ in range(5):
                assert (await ask(way, "gpu", "echo yes")).stdout == b"yes\n"
            await way.start("gpu", b"exec sleep 900\n")
            with pytest.raises(NodeUnreachable) as caught:
                await way.start("gpu", b"true\n")
            assert caught.value.failure.trouble is Trouble.BUSY
            assert "MaxSessions" in caught.value.failure.sentence


@both
@pytest.mark.parametrize("how", ["killed", "closed"])
async def test_nothing_is_left_on_the_node(bench: Bench, name: str, how: str) -> None:
    word = f"slurmtop-test-{secrets.token_hex(6)}"
    with bench.sshd("node") as sshd:
        bench.host("gpu", sshd)
        code = (
            "import asyncio, sys\n"
            "from pathlib import Path\n"
            "from tests.cluster.sshds import Bench\n"
            "from slurmtop.collect.nodes.script import framed, new_mark\n"
            "async def main():\n"
            f"    async with Bench(Path({str(bench.folder)!r}), Path('x')).way({name!r}) as way:\n"
            "        argv = ('/bin/sh', '-c', \"trap '' TERM; sleep 900 & sleep 900\", "
            f"{word!r})\n"
            "        process = await way.start('gpu', framed(argv, new_mark(), timeout_s=900))\n"
            "        print('runs', flush=True)\n"
            "        await asyncio.to_thread(sys.stdin.read)\n"
            "asyncio.run(main())\n"
        )
        with child(sys.executable, "-c", code) as slurmtop:
            assert slurmtop.stdin is not None
            assert slurmtop.stdout is not None
            assert slurmtop.stdout.readline() == b"runs\n"
            assert running(word)
            if how == "killed":
                slurmtop.send_signal(signal.SIGKILL)
            slurmtop.stdin.close()
            slurmtop.wait(20)
        wait_until("the end of all that was started", lambda: not running(word), 20)
        wait_until("the end of the session", lambda: not running(str(sshd.port)), 20)


def loopback(bench: Bench, sshd: Sshd) -> list[str]:
    bench.host("127.0.1.*", sshd, "HostName %h", "HostKeyAlias loop", know=False)
    bench.known.append(f"loop {sshd.public}")
    bench.write()
    return [f"127.0.1.{n}" for n in range(1, 129)]


async def test_128_hosts_eight_logins_at_once(bench: Bench) -> None:
    # The stock bound of sshd, which also counts who is in, but not yet reported to be: from the
    # tenth on it drops some, who then come again.
    with bench.sshd("node", "MaxStartups 10:30:100") as sshd:
        hosts = loopback(bench, sshd)
        async with bench.way("ssh") as way:
            assert isinstance(way, SshWay)
            for _ in range(2):
                got = await asyncio.gather(*(ask(way, host, f"echo {host}") for host in hosts))
                assert [answer.stdout.decode().strip() for answer in got] == hosts
            assert way.connections == 128
            assert way.most_in_flight == HANDSHAKES_AT_ONCE
        assert sshd.logins == 128
