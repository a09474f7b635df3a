"""Real sshds of the test's own user, on ports of the login side, and settings that lead to them.

A normal user may run sshd for himself: it lets in nobody else, which is all that is needed here.
"""

import contextlib
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from slurmtop.collect.clock import SystemClock
from slurmtop.collect.local import LocalRunner
from slurmtop.collect.nodes.openssh import OpenSshWay
from slurmtop.collect.nodes.remote import NodeWay
from slurmtop.collect.nodes.ssh import SshWay
from slurmtop.collect.nodes.ssh_book import Person
from tests.cluster.procs import wait_until


def keygen(*args: str) -> None:
    subprocess.run(["ssh-keygen", "-q", *args], check=True, capture_output=True)


def make_key(path: Path, passphrase: str = "") -> Path:
    keygen("-t", "ed25519", "-N", passphrase, "-C", path.name, "-f", str(path))
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(eq=False)
class Sshd:
    """One running sshd."""

    folder: Path
    port: int
    child: "subprocess.Popen[bytes]"

    @property
    def public(self) -> str:
        """Kind and key of the host key."""
        return " ".join((self.folder / "host.pub").read_text().split()[:2])

    @property
    def known_line(self) -> str:
        return f"[127.0.0.1]:{self.port} {self.public}"

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    @property
    def logins(self) -> int:
        return len(re.findall(r"Accepted \S+ for ", self.log))


@dataclass(eq=False)
class Bench:
    """A folder with keys and ``ssh_config``; ``user`` is a key that every sshd here lets in."""

    folder: Path
    user: Path
    hosts: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)

    @property
    def config(self) -> Path:
        return self.folder / "ssh_config"

    @contextmanager
    def sshd(self, name: str, *settings: str, certificate: bool = False) -> Iterator[Sshd]:
        """Start an sshd; ``settings`` stand first, so they count."""
        folder = self.folder / name
        folder.mkdir()
        make_key(folder / "host")
        shutil.copy(self.user.with_suffix(".pub"), folder / "authorized")
        port = free_port()
        lines = [
            *settings,
            f"Port {port}",
            "ListenAddress 0.0.0.0",
            f"HostKey {folder}/host",
            *([f"HostCertificate {folder}/host-cert.pub"] if certificate else ()),
            f"AuthorizedKeysFile {folder}/authorized",
            "PidFile none",
            "StrictModes no",
            "UsePAM no",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "LogLevel VERBOSE",
        ]
        if certificate:
            authority = make_key(folder / "authority")
            sign = ("-s", str(authority), "-I", name, "-h", "-n", "127.0.0.1")
            keygen(*sign, str(folder / "host.pub"))
        (folder / "sshd_config").write_text("\n".join(lines) + "\n")
        with (folder / "log").open("wb") as log:
            argv = ["/usr/sbin/sshd", "-D", "-e", "-f", str(folder / "sshd_config")]
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        made = Sshd(folder, port, child)
        try:
            wait_until(f"the sshd {name}", lambda: "listening on" in made.log, 20)
            yield made
        finally:
            child.send_signal(signal.SIGTERM)
            child.wait(20)

    def host(self, name: str, sshd: Sshd, *settings: str, know: bool = True) -> None:
        """``name`` leads to ``sshd``; further ``settings`` stand first, so they count."""
        lines = [f"Host {name}", *settings, f"Port {sshd.port}"]
        if not any(line.startswith("HostName") for line in settings):
            lines.append("HostName 127.0.0.1")
        if not any(line.startswith("IdentityFile") for line in settings):
            lines.append(f"IdentityFile {self.user}")
        self.hosts.append("\n    ".join(lines))
        if know:
            self.known.append(sshd.known_line)
        self.write()

    def write(self) -> None:
        common = (
            f"Host *\n    UserKnownHostsFile {self.folder}/known_hosts\n    IdentitiesOnly yes\n"
        )
        self.config.write_text("\n".join([*self.hosts, common]))
        (self.folder / "known_hosts").write_text("".join(f"{line}\n" for line in self.known))

    @asynccontextmanager
    async def way(self, name: str, **environ: str) -> AsyncIterator[NodeWay]:
        """``ssh`` or ``openssh``, with the settings of this bench and nothing else."""
        clock = SystemClock()
        options = ("-F", str(self.config))
        env = {**os.environ, "SSH_AUTH_SOCK": "", **environ}
        async with LocalRunner(clock, env) as local:
            way: NodeWay
            if name == "ssh":
                way = SshWay(local, clock, env, me(), options=options)
            else:
                way = OpenSshWay(clock, env, options=options)
            try:
                yield way
            finally:
                await way.aclose()


def me() -> Person:
    entry = pwd.getpwuid(os.getuid())
    return Person(name=entry.pw_name, uid=entry.pw_uid, home=entry.pw_dir)


@contextmanager
def agent(folder: Path, key: Path) -> Iterator[str]:
    """An ssh-agent that holds ``key``; gives its socket."""
    path = folder / "agent"
    argv = ["ssh-agent", "-D", "-a", str(path)]
    child = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until("the agent", path.exists, 20)
        subprocess.run(
            ["ssh-add", "-q", str(key)],
            env={**os.environ, "SSH_AUTH_SOCK": str(path)},
            check=True,
            capture_output=True,
        )
        yield str(path)
    finally:
        child.terminate()
        child.wait(20)


def running(word: str) -> list[int]:
    """Processes of this user, other than ours, that have ``word`` in their arguments."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            theirs = int(path.name) != os.getpid() and path.stat().st_uid == os.getuid()
            if theirs and word.encode() in (path / "cmdline").read_bytes():
                found.append(int(path.name))
    return found


@contextmanager
def child(*argv: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A child with a stdin that is held open; its stdout is to be read, its stderr is dropped."""
    pipe = subprocess.PIPE
    made = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
    assert made.stdin is not None
    assert made.stdout is not None
    try:
        yield made
    finally:
        made.terminate()
        made.stdin.close()
        made.stdout.close()
        made.wait(20)


def output(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout
