"""An ssh server inside the test, whose login shell is really ``/bin/sh`` unless it misbehaves."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import asyncssh

from slurmtop.collect.nodes.remote import NodeWay
from slurmtop.collect.nodes.script import Unframer, framed, new_mark
from slurmtop.collect.nodes.ssh import SshWay
from slurmtop.collect.nodes.ssh_book import Person
from tests.collect.helpers import until
from tests.fakes import FakeClock, FakeRunner

ME = Person(name="alice", uid=1001, home="/home/alice")
KNOWN = "/home/alice/.ssh/known_hosts"
KEY = "/home/alice/.ssh/id_ed25519"


@dataclass(eq=False)
class Node:
    """What the server does; a test may change it at any time.

    ``mode`` is one of shell, hang, silent (no shell ever runs), nologin, drop and cut (both after
    ``half`` bytes of output: the connection, or only the channel, ends).
    """

    mode: str = "shell"
    noise: bytes = b""
    noise_after: bytes = b""
    stderr_noise: bytes = b""
    banner: str = ""
    methods: tuple[str, ...] = ("publickey",)
    half: int = 40
    let_in: bool = True
    authorized: asyncssh.SSHKey | None = None
    port: int = 0
    key: asyncssh.SSHKey = field(
        default_factory=lambda: asyncssh.generate_private_key("ssh-ed25519")
    )
    connections: int = 0
    open: int = 0
    in_login: int = 0
    most_in_login: int = 0
    questions: int = 0
    channels: int = 0
    most_channels: int = 0
    children: list[int] = field(default_factory=list)
    gate: asyncio.Event | None = None
    live: set[asyncssh.SSHServerConnection] = field(default_factory=set)

    @property
    def known_line(self) -> str:
        public = self.key.export_public_key().decode().strip()
        return f"[127.0.0.1]:{self.port} {public}\n"


class _Server(asyncssh.SSHServer):
    def __init__(self, node: Node) -> None:
        self.node = node
        self.done = False

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self.conn = conn
        self.node.live.add(conn)
        self.node.connections += 1
        self.node.open += 1
        self.node.in_login += 1
        self.node.most_in_login = max(self.node.most_in_login, self.node.in_login)

    def connection_lost(self, exc: Exception | None) -> None:
        self.node.live.discard(self.conn)
        self.node.open -= 1
        self._leave_login()

    def _leave_login(self) -> None:
        if not self.done:
            self.done = True
            self.node.in_login -= 1

    async def begin_auth(self, username: str) -> bool:
        if self.node.banner:
            self.conn.send_auth_banner(self.node.banner)
        if self.node.gate is not None:
            await self.node.gate.wait()
        return True

    def auth_completed(self) -> None:
        self._leave_login()

    def public_key_auth_supported(self) -> bool:
        return "publickey" in self.node.methods

    async def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        if not self.node.let_in:
            # As pam_slurm_adopt's sshd: the key was right, the account is not let in.
            self.conn.abort()
        return key == self.node.authorized

    def password_auth_supported(self) -> bool:
        return "password" in self.node.methods

    def validate_password(self, username: str, password: str) -> bool:
        self.node.questions += 1
        return False

    def kbdint_auth_supported(self) -> bool:
        return "keyboard-interactive" in self.node.methods

    def get_kbdint_challenge(self, username: str, lang: str, submethods: str) -> bool:
        self.node.questions += 1
        return False

    def connection_requested(self, *where: object) -> bool:
        return True


async def _serve(node: Node, process: asyncssh.SSHServerProcess[bytes]) -> None:
    node.channels += 1
    node.most_channels = max(node.most_channels, node.channels)
    try:
        await _answer(node, process)
    finally:
        node.channels -= 1


async def _answer(node: Node, process: asyncssh.SSHServerProcess[bytes]) -> None:
    process.stdout.write(node.noise)
    process.stderr.write(node.stderr_noise)
    if node.mode == "silent":
        with contextlib.suppress(asyncssh.Error):
            await process.stdin.read()
        process.exit(0)
        return
    if node.mode == "nologin":
        process.stdout.write(b"This account is currently not available.\n")
        process.exit(1)
        return
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", process.command or "", stdin=pipe, stdout=pipe, stderr=pipe
    )
    node.children.append(child.pid)
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    stdin, stdout, stderr = child.stdin, child.stdout, child.stderr

    async def feed() -> None:
        with contextlib.suppress(asyncssh.Error, OSError):
            while data := await process.stdin.read(4096):
                stdin.write(data)
                await stdin.drain()
        stdin.close()

    async def tell() -> None:
        sent = 0
        while data := await stdout.read(65536):
            # The limit counts what the script itself printed.
            if node.mode in ("drop", "cut"):
                data = data[: max(0, node.half - sent)]
            process.stdout.write(data)
            await process.stdout.drain()
            sent += len(data)
            if node.mode in ("drop", "cut") and sent >= node.half:
                stdin.close()
                if node.mode == "drop":
                    process.channel.get_connection().abort()
                else:
                    process.channel.close()
                return

    async def complain() -> None:
        while data := await stderr.read(4096):
            process.stderr.write(data)

    feeding = asyncio.ensure_future(feed())
    try:
        with contextlib.suppress(OSError, asyncssh.Error):
            await asyncio.gather(tell(), complain())
        rc = await child.wait()
        with contextlib.suppress(OSError, asyncssh.Error):
            process.stdout.write(node.noise_after)
        process.exit(rc if rc >= 0 else 255)
    finally:
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)
        stdin.close()
        await child.wait()
        child._transport.close()  # type: ignore[attr-defined]


@asynccontextmanager
async def serving(
    node: Node, certificate: asyncssh.SSHCertificate | None = None
) -> AsyncIterator[Node]:
    """The server on a free port of the loopback, with a certificate of its key where given."""
    acceptor = await asyncssh.create_server(
        lambda: _Server(node),
        "127.0.0.1",
        0,
        server_host_keys=[node.key if certificate is None else (node.key, certificate)],
        process_factory=lambda process: _serve(node, process),
        encoding=None,
        config=None,
        agent_forwarding=False,
        gss_host=None,
    )
    node.port = acceptor.get_port()
    try:
        yield node
    finally:
        acceptor.close()
        for connection in tuple(node.live):
            connection.abort()
        await acceptor.wait_closed()
        await until(lambda: not (node.live or node.channels), "the end of the server")


@dataclass(eq=False)
class Desk:
    """A login node whose ``ssh -G`` and files the test writes."""

    clock: FakeClock
    runner: FakeRunner
    way: SshWay
    user_key: asyncssh.SSHKey
    settings: dict[str, str] = field(default_factory=dict)

    def host(self, name: str, node: Node, **more: str) -> None:
        """``name`` leads to ``node``; ``more`` are further lines of ``ssh -G``."""
        lines = {
            "hostname": "127.0.0.1",
            "port": str(node.port),
            "user": "alice",
            "identityfile": "~/.ssh/id_ed25519",
            "identityagent": "none",
            "userknownhostsfile": KNOWN,
            "globalknownhostsfile": "/etc/ssh/ssh_known_hosts",
            **more,
        }
        text = "\n".join(f"{key} {value}" for key, value in {"host": name, **lines}.items())
        self.runner.on(f"ssh -G *-- {name}", text + "\n")

    def know(self, *nodes: Node, file: str = KNOWN) -> None:
        self.runner.files[file] = "".join(node.known_line for node in nodes).encode()


@asynccontextmanager
async def desk(most_connections: int = 100) -> AsyncIterator[Desk]:
    clock = FakeClock()
    runner = FakeRunner(clock)
    key = asyncssh.generate_private_key("ssh-ed25519")
    runner.files[KEY] = key.export_private_key("openssh")
    way = SshWay(runner, clock, {}, ME, most_connections=most_connections)
    made = Desk(clock=clock, runner=runner, way=way, user_key=key)
    try:
        yield made
    finally:
        await way.aclose()


@dataclass(frozen=True)
class Answer:
    """What came of one framed script; ``complete`` False is a cut answer, which is none."""

    rc: int | None
    stdout: bytes
    stderr: bytes
    complete: bool


def script(text: str, mark: str, *, timeout_s: float = 20.0) -> bytes:
    return framed(("/bin/sh", "-c", text, "slurmtop-test"), mark, timeout_s=timeout_s)


async def ask(way: NodeWay, host: str, text: str) -> Answer:
    """Run a shell script on ``host``, framed as all of slurmtop's are."""
    mark = new_mark()
    found = Unframer(mark)
    process = await way.start(host, script(text, mark))
    stdout = bytearray()
    try:
        async for chunk in process.chunks():
            stdout += found.feed(chunk)
    finally:
        await process.close()
    return Answer(found.rc, bytes(stdout), found.stderr, found.complete)
