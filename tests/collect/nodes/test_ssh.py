"""Connections of our own, against a server inside the test."""

import asyncio
import time
from collections.abc import AsyncIterator

import asyncssh
import pytest

from slurmtop.collect.clock import cancel_and_wait, spawn
from slurmtop.collect.nodes import ssh_process
from slurmtop.collect.nodes.remote import RemoteProcess
from slurmtop.collect.nodes.script import new_mark
from slurmtop.collect.nodes.ssh import CHANNELS_A_CONNECTION, HANDSHAKES_AT_ONCE, IDLE_S
from slurmtop.model.ports import NodeUnreachable
from slurmtop.model.snapshot import Failure, Trouble
from tests.collect.helpers import DEADLINE_S, alive, until
from tests.collect.nodes.ssh_server import KNOWN, Desk, Node, ask, desk, script, serving


@pytest.fixture
async def here() -> AsyncIterator[Desk]:
    async with desk() as made:
        yield made


@pytest.fixture
async def node(here: Desk) -> AsyncIterator[Node]:
    async with serving(Node(authorized=here.user_key.convert_to_public())) as made:
        here.host("gpu01", made)
        here.know(made)
        yield made


async def refused(here: Desk, host: str = "gpu01") -> Failure:
    with pytest.raises(NodeUnreachable) as caught:
        await here.way.start(host, b"true\n")
    assert caught.value.host == host
    return caught.value.failure


async def stays(here: Desk, host: str = "gpu01") -> RemoteProcess:
    """A script that runs until it is ended."""
    return await here.way.start(host, script("exec sleep 600", new_mark(), timeout_s=900))


async def test_an_answer_comes_through_all_noise(here: Desk, node: Node) -> None:
    node.noise = b"Welcome!\r\n\x1b[2J<<<slurmtop-000>>>\n0, GPU-xxxx\n"
    node.stderr_noise = b"bash: warning: setlocale: LC_ALL: cannot change locale\n"
    got = await ask(here.way, "gpu01", 'echo it\\\'s "$0"; echo wrong >&2; exit 3')
    assert (got.rc, got.stdout, got.stderr) == (3, b"it's slurmtop-test\n", b"wrong")
    assert got.complete


async def test_its_stdin_is_empty(here: Desk, node: Node) -> None:
    assert (await ask(here.way, "gpu01", "cat; echo end")).stdout == b"end\n"


async def test_a_large_answer_waits_for_who_reads_it(here: Desk, node: Node) -> None:
    got = await ask(here.way, "gpu01", "head -c 12000000 /dev/zero")
    assert len(got.stdout) == 12_000_000


async def test_one_connection_a_host_and_one_ssh_g(here: Desk, node: Node) -> None:
    answers = await asyncio.gather(*(ask(here.way, "gpu01", f"echo {n}") for n in range(20)))
    assert [answer.stdout for answer in answers] == [b"%d\n" % n for n in range(20)]
    assert node.connections == 1
    assert node.most_channels <= CHANNELS_A_CONNECTION
    assert [call.argv for call in here.runner.calls] == [("ssh", "-G", "--", "gpu01")]


async def test_eight_handshakes_at_once(here: Desk, node: Node) -> None:
    node.gate = asyncio.Event()
    for n in range(20):
        here.host(f"n{n}", node)
    tasks = [spawn(ask(here.way, f"n{n}", "true"), name=f"n{n}") for n in range(20)]
    await until(lambda: node.in_login == HANDSHAKES_AT_ONCE, "eight logins in flight")
    assert here.way.most_in_flight == HANDSHAKES_AT_ONCE
    node.gate.set()
    await asyncio.gather(*tasks)
    assert (node.connections, node.most_in_login) == (20, HANDSHAKES_AT_ONCE)


async def test_who_stops_waiting_takes_nothing_from_the_others(here: Desk, node: Node) -> None:
    node.gate = asyncio.Event()
    first = spawn(ask(here.way, "gpu01", "true"), name="first")
    second = spawn(ask(here.way, "gpu01", "echo yes"), name="second")
    await until(lambda: node.in_login == 1, "a login in flight")
    await cancel_and_wait(first)
    node.gate.set()
    assert (await second).stdout == b"yes\n"
    assert node.connections == 1


async def test_a_channel_comes_back_when_its_script_ends(
    here: Desk, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slurmtop.collect.nodes.ssh._CHANNEL_WAIT_S", 0.05)
    open_ = [await stays(here) for _ in range(CHANNELS_A_CONNECTION)]
    failure = await refused(here)
    assert failure.trouble is Trouble.BUSY
    assert "have not ended" in failure.sentence
    await asyncio.gather(*(process.close() for process in open_))
    here.way.forget("gpu01")
    assert (await ask(here.way, "gpu01", "echo again")).stdout == b"again\n"


async def test_closing_ends_what_runs_on_the_node(here: Desk, node: Node) -> None:
    mark = new_mark()
    process = await here.way.start(
        "gpu01", script("trap '' TERM; echo $$; sleep 600 & sleep 601", mark, timeout_s=900)
    )
    seen = b""
    async for chunk in process.chunks():
        seen += chunk
        if seen.count(b"\n") >= 3:
            break
    pid = int(seen.split(b"\n")[2])
    await process.close()
    await process.close()
    await until(lambda: not alive(pid), "the end of the script on the node")


async def test_a_slurmtop_that_dies_leaves_nothing_on_the_node(here: Desk, node: Node) -> None:
    await stays(here)
    (shell,) = node.children
    # As the kernel does it for a killed process: the socket is gone, without a word.
    for link in here.way._links.values():
        link.connection.abort()
    await until(lambda: not alive(shell), "the end of the login shell")


async def test_a_connection_that_breaks_is_no_answer(here: Desk, node: Node) -> None:
    node.mode = "drop"
    with pytest.raises(NodeUnreachable) as caught:
        await ask(here.way, "gpu01", "head -c 9000 /dev/zero | tr '\\0' x")
    assert caught.value.failure.trouble is Trouble.DOWN
    assert "broke" in str(caught.value)


async def test_a_cut_answer_is_none(here: Desk, node: Node) -> None:
    node.mode, node.half = "cut", 90
    with pytest.raises(NodeUnreachable):
        await ask(here.way, "gpu01", "head -c 9000 /dev/zero | tr '\\0' x")


async def test_a_connection_that_died_unseen_is_made_anew(here: Desk, node: Node) -> None:
    await ask(here.way, "gpu01", "true")
    for connection in tuple(node.live):
        connection.abort()
    assert (await ask(here.way, "gpu01", "echo back")).stdout == b"back\n"
    assert node.connections == 2


async def test_idle_connections_are_closed(here: Desk, node: Node) -> None:
    process = await stays(here)
    await here.clock.advance(IDLE_S + 1)
    await here.way.close_idle()
    assert here.way.connections == 1
    await process.close()
    await here.way.close_idle()
    assert here.way.connections == 1
    await here.clock.advance(IDLE_S)
    await here.way.close_idle()
    assert here.way.connections == 0
    await until(lambda: node.open == 0, "the end of the connection")


async def test_the_connection_used_longest_ago_makes_room() -> None:
    async with desk(most_connections=2) as here, serving(Node()) as node:
        node.authorized = here.user_key.convert_to_public()
        here.know(node)
        for name in ("a", "b", "c"):
            here.host(name, node)
            await ask(here.way, name, "true")
            await here.clock.advance(1)
        assert [key[0] for key in here.way._links] == ["b", "c"]
        await here.way.aclose()


async def test_an_unknown_key_is_refused_with_the_line_to_add(here: Desk, node: Node) -> None:
    here.know(file=KNOWN)
    failure = await refused(here)
    assert failure.trouble is Trouble.DENIED
    assert "not known here" in failure.sentence
    assert node.known_line.strip() in failure.sentence
    assert KNOWN in failure.sentence
    plain, hashed = failure.raw.split("\n")
    assert plain == node.known_line.strip()
    # Each of both lines is enough.
    for line in (plain, hashed):
        here.runner.files[KNOWN] = f"{line}\n".encode()
        await here.clock.advance(300)
        assert (await ask(here.way, "gpu01", "echo in")).stdout == b"in\n"
        await here.clock.advance(300)
        await here.way.close_idle()


async def test_a_key_in_the_sites_file_is_enough(here: Desk, node: Node) -> None:
    here.know(file=KNOWN)
    here.know(node, file="/etc/ssh/ssh_known_hosts")
    assert (await ask(here.way, "gpu01", "echo in")).stdout == b"in\n"


async def test_an_alias_names_the_key(here: Desk, node: Node) -> None:
    public = node.key.export_public_key().decode().strip()
    here.host("gpu01", node, hostkeyalias="rack7")
    here.runner.files[KNOWN] = f"rack7 {public}\n".encode()
    assert (await ask(here.way, "gpu01", "echo in")).stdout == b"in\n"


async def test_a_changed_key_is_said_so_strongly(here: Desk, node: Node) -> None:
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    here.runner.files[KNOWN] = f"[127.0.0.1]:{node.port} {other}".encode()
    failure = await refused(here)
    assert failure.trouble is Trouble.DENIED
    assert failure.sentence.startswith("THE HOST KEY OF gpu01 HAS CHANGED")
    assert failure.sentence.endswith(f"ssh-keygen -f {KNOWN} -R '[127.0.0.1]:{node.port}'")


async def test_a_key_of_another_kind_is_unknown_not_changed(here: Desk, node: Node) -> None:
    other = asyncssh.generate_private_key("ecdsa-sha2-nistp256").export_public_key().decode()
    here.runner.files[KNOWN] = f"[127.0.0.1]:{node.port} {other}".encode()
    assert "not known here" in (await refused(here)).sentence


async def test_a_key_under_the_name_without_the_port(here: Desk, node: Node) -> None:
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    here.runner.files[KNOWN] = f"127.0.0.1 {other}".encode()
    # Another sshd on the same machine: nothing has changed.
    assert "not known here" in (await refused(here)).sentence
    public = node.key.export_public_key().decode()
    here.runner.files[KNOWN] = f"127.0.0.1 {public}".encode()
    await here.clock.advance(300)
    assert (await ask(here.way, "gpu01", "echo in")).stdout == b"in\n"


async def test_a_revoked_key_is_refused(here: Desk, node: Node) -> None:
    public = node.key.export_public_key().decode().strip()
    here.runner.files[KNOWN] = (node.known_line + f"@revoked * {public}\n").encode()
    assert "revoked" in (await refused(here)).sentence


async def test_a_host_certificate_by_a_trusted_authority(here: Desk) -> None:
    authority = asyncssh.generate_private_key("ssh-ed25519")
    node = Node(authorized=here.user_key.convert_to_public())
    certificate = authority.generate_host_certificate(node.key, "gpu01", principals=["127.0.0.1"])
    async with serving(node, certificate):
        here.host("gpu01", node)
        # Without a trusted authority the plain key is asked for, and told.
        assert node.known_line.strip() in (await refused(here)).sentence
        public = authority.export_public_key().decode().strip()
        here.runner.files[KNOWN] = f"@cert-authority other,*.else {public}\n".encode()
        await here.clock.advance(300)
        assert "not known here" in (await refused(here)).sentence
        here.runner.files[KNOWN] = f"@cert-authority [127.0.0.1]:* {public}\n".encode()
        await here.clock.advance(300)
        assert (await ask(here.way, "gpu01", "echo in")).stdout == b"in\n"
        await here.way.aclose()


async def test_a_host_certificate_by_another_authority(here: Desk) -> None:
    authority, other = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    node = Node()
    certificate = authority.generate_host_certificate(node.key, "gpu01", principals=["127.0.0.1"])
    async with serving(node, certificate):
        here.host("gpu01", node)
        public = other.export_public_key().decode().strip()
        here.runner.files[KNOWN] = f"@cert-authority * {public}\n".encode()
        sentence = (await refused(here)).sentence
        assert "certificate by an authority that is not trusted" in sentence
        signed_by = authority.export_public_key().decode().split()[1]
        assert f"@cert-authority [127.0.0.1]:{node.port} ssh-ed25519 {signed_by}" in sentence


async def test_no_question_is_ever_answered(here: Desk, node: Node) -> None:
    node.methods = ("password", "keyboard-interactive")
    failure = await refused(here)
    assert failure.trouble is Trouble.DENIED
    assert "asks questions" in failure.sentence
    assert "never" in failure.sentence
    assert "keyboard-interactive" in failure.sentence
    assert node.questions == 0


async def test_a_refused_key_is_told_with_what_is_offered(here: Desk, node: Node) -> None:
    node.authorized = asyncssh.generate_private_key("ssh-ed25519").convert_to_public()
    node.methods = ("publickey", "password")
    failure = await refused(here)
    assert "refused every key of alice (it offers publickey, password)" in failure.sentence
    assert node.questions == 0


async def test_a_key_with_a_passphrase_is_no_question(here: Desk, node: Node) -> None:
    here.runner.files["/home/alice/.ssh/id_ed25519"] = here.user_key.export_private_key(
        "pkcs8-pem", passphrase="x"
    )
    failure = await refused(here)
    assert "ssh-add /home/alice/.ssh/id_ed25519" in failure.sentence


async def test_no_key_at_all(here: Desk, node: Node) -> None:
    here.runner.files.pop("/home/alice/.ssh/id_ed25519")
    assert "There is no ssh key" in (await refused(here)).sentence


async def test_the_refusal_of_pam_slurm_adopt(here: Desk, node: Node) -> None:
    node.banner = "Access denied by pam_slurm_adopt: you have no active jobs on this node\n"
    node.let_in = False
    failure = await refused(here)
    assert failure.trouble is Trouble.DENIED
    assert failure.retry_after_s == float("inf")
    assert "running job" in failure.sentence
    assert "no active jobs" in failure.raw


async def test_a_login_that_is_cut_off(here: Desk, node: Node) -> None:
    node.let_in = False
    failure = await refused(here)
    assert failure.trouble is Trouble.BUSY
    assert "MaxStartups" in failure.sentence


async def test_a_server_that_drops_some_is_asked_again(here: Desk, node: Node) -> None:
    dropped = 0

    async def drop(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal dropped
        dropped += 1
        writer.close()

    server = await asyncio.start_server(drop, "127.0.0.1", 0)
    async with server:
        here.host("busy", Node(port=server.sockets[0].getsockname()[1]))
        asking = spawn(refused(here, "busy"), name="busy")
        limit = time.monotonic() + DEADLINE_S
        while not asking.done():
            assert time.monotonic() < limit
            if here.way.logins_in_flight == 0:
                # It waits for its next try, or is about to.
                await here.clock.advance(0.5)
            await asyncio.sleep(0.005)
        failure = await asking
    assert dropped == 4
    assert (failure.trouble, "MaxStartups" in failure.sentence) == (Trouble.BUSY, True)


async def test_an_account_without_a_shell(here: Desk, node: Node) -> None:
    node.mode = "nologin"
    failure = await refused(here)
    assert failure.trouble is Trouble.DENIED
    assert "This account is currently not available." in failure.sentence


async def test_a_shell_that_never_gets_to_our_command(
    here: Desk, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh_process, "SHELL_TIMEOUT_S", 0.1)
    node.mode = "silent"
    failure = await refused(here)
    assert failure.trouble is Trouble.TIMEOUT
    await until(lambda: node.channels == 0, "the channel let go")


async def test_nothing_listens(here: Desk, node: Node) -> None:
    free = Node(port=1)
    here.host("down", free)
    failure = await refused(here, "down")
    assert failure.trouble is Trouble.DOWN
    assert "port 1" in failure.sentence


async def test_a_failure_is_told_again_until_its_time_is_over(here: Desk, node: Node) -> None:
    free = Node(port=1)
    here.host("down", free)
    first = await refused(here, "down")
    here.host("down", node)
    assert await refused(here, "down") is first
    await here.clock.advance(4)
    again = await refused(here, "down")
    assert (again is first, again.trouble) == (False, Trouble.DOWN)
    # Somebody has mended the settings, and asks for a new try.
    here.way.forget("down")
    assert (await ask(here.way, "down", "echo up")).stdout == b"up\n"


async def test_an_agent_that_is_gone_costs_nothing(here: Desk, node: Node) -> None:
    here.host("gpu01", node, identityagent="/nonexistent/agent")
    assert (await ask(here.way, "gpu01", "echo in")).stdout == b"in\n"


async def test_jump_hosts_share_one_connection(here: Desk, node: Node) -> None:
    async with serving(Node(authorized=here.user_key.convert_to_public())) as jump:
        here.know(node, jump)
        here.host("door", jump, user="alice")
        here.host("far1", node, proxyjump=f"alice@door:{jump.port}")
        here.host("far2", node, proxyjump=f"alice@door:{jump.port}")
        answers = await asyncio.gather(
            *(ask(here.way, far, "echo far") for far in ("far1", "far2"))
        )
        assert [answer.stdout for answer in answers] == [b"far\n", b"far\n"]
        assert (jump.connections, node.connections) == (1, 2)
        # What carries others is not idle.
        await here.clock.advance(IDLE_S - 1)
        await ask(here.way, "far1", "true")
        await here.clock.advance(2)
        await here.way.close_idle()
        assert here.way.connections == 2
        await here.way.aclose()


async def test_a_failure_on_the_way_names_the_jump_host(here: Desk, node: Node) -> None:
    here.host("door", Node(port=1))
    here.host("far", node, proxyjump="door")
    failure = await refused(here, "far")
    assert failure.sentence.startswith("On the way to far by the jump host door: ")


async def test_jump_hosts_in_a_circle(here: Desk, node: Node) -> None:
    here.host("a", node, proxyjump="b")
    here.host("b", node, proxyjump="a")
    assert "circle" in (await refused(here, "a")).sentence


async def test_what_only_ssh_can_do_is_left_to_it(here: Desk, node: Node) -> None:
    here.host("proxied", node, proxycommand="nc %h %p")
    failure = await refused(here, "proxied")
    assert "ProxyCommand, which is left to the ssh command" in failure.sentence


@pytest.mark.parametrize("name", ["-oProxyCommand=id", "a b", "", "x;y", "a\nb", "x" * 300])
async def test_no_hostile_name_reaches_ssh(here: Desk, name: str) -> None:
    failure = await refused(here, name)
    assert "not the name of a host" in failure.sentence
    assert here.runner.calls == []


async def test_a_leaving_slurmtop_closes_everything(here: Desk, node: Node) -> None:
    process = await stays(here)
    (shell,) = node.children
    await here.way.aclose()
    with pytest.raises(NodeUnreachable):
        async for _ in process.chunks():
            pass
    await until(lambda: not alive(shell), "the end of the login shell")
    await until(lambda: node.open == 0, "the end of the connection")
