"""What OpenSSH would use for a host: asked of ``ssh -G``, with the files that it names.

``ssh`` itself reads the user's and the site's settings, so that Match blocks, canonical names and
defaults mean here what they mean there. All files are read through the local runner, whose helper
may be left behind when a home folder hangs.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass

from slurmtop.collect.clock import cancel_and_wait, spawn_shared
from slurmtop.model.ports import Clock, Command, NodeUnreachable, Runner
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.text import visible
from slurmtop.parse.known_hosts import KnownHosts, KnownKey, parse_known_hosts
from slurmtop.parse.ssh_config import SshSettings, expanded, parse_ssh_g

#: ``ssh -G`` takes about 5 ms; more at once would be a storm of processes for nothing.
_ASKED_AT_ONCE = 4
_ASK_TIMEOUT_S = 10.0
#: A known-hosts file that somebody adds a line to is read anew after this time.
_FRESH_S = 5.0
_BLOCK = 1024 * 1024
_LARGEST_KNOWN_HOSTS = 32 * _BLOCK
_LARGEST_KEY = 64 * 1024
#: Names and addresses, with a zone; nothing that ssh could take for an option.
_HOST = re.compile(r"(?!-)[\w.:%-]{1,255}")


def check_host_name(host: str) -> None:
    """Raise ``NodeUnreachable`` for what is no name and no address: it is not given to ssh."""
    if not _HOST.fullmatch(host):
        sentence = f"{visible(host)!r} is not the name of a host, so ssh is not asked about it."
        raise NodeUnreachable(host, Failure(Trouble.OTHER, sentence, "", float("inf")))


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFile:
    """One private key file as bytes, with its public half and certificate where there are any."""

    path: str
    private: bytes
    public: bytes
    certificates: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Who runs slurmtop: for the tokens in names of key files, and for the agent."""

    name: str
    uid: int
    home: str


class SshBook:
    """Settings by host, asked once a session; known hosts and keys, read when needed.

    ``options`` are more options of ``ssh``, such as ``-F FILE``. Failures raise
    ``NodeUnreachable``.
    """

    def __init__(
        self,
        local: Runner,
        clock: Clock,
        environ: Mapping[str, str],
        person: Person,
        *,
        options: tuple[str, ...] = (),
    ) -> None:
        self._local = local
        self._clock = clock
        self._environ = environ
        self._person = person
        self._options = options
        self._asking = asyncio.Semaphore(_ASKED_AT_ONCE)
        self._settings: dict[tuple[str, ...], asyncio.Task[SshSettings]] = {}
        self._known: dict[tuple[str, ...], tuple[float, asyncio.Task[KnownHosts]]] = {}
        self._keys: dict[str, KeyFile | None] = {}

    async def settings(
        self, host: str, *, user: str | None = None, port: int | None = None
    ) -> SshSettings:
        """What ``ssh -G`` says of ``host``, with a user and a port where a jump names them."""
        check_host_name(host)
        words = (*(("-l", user) if user else ()), *(("-p", str(port)) if port else ()), "--", host)
        task = self._settings.get(words)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = spawn_shared(self._ask(host, words), name=f"ssh -G {host}")
            self._settings[words] = task
        # Shielded: one who stops waiting must not take the answer from the others.
        return await asyncio.shield(task)

    async def known(self, settings: SshSettings) -> tuple[KnownKey, ...]:
        """The host keys known for it, from the user's and the site's files."""
        files = (*settings.userknownhostsfile, *settings.globalknownhostsfile)
        now = self._clock.monotonic()
        read_at, task = self._known.get(files, (0.0, None))
        if task is None or now - read_at > _FRESH_S:
            task = spawn_shared(self._read_known(files), name="known hosts")
            self._known[files] = (now, task)
        known = await asyncio.shield(task)
        return known.keys_for(settings.key_name, settings.key_port)

    async def keys(self, settings: SshSettings) -> tuple[KeyFile, ...]:
        """The key files that exist, in the order in which they are tried."""
        certificates = [
            await self._read(self._path(p, settings), _LARGEST_KEY)
            for p in settings.certificatefile
        ]
        found = []
        for name in settings.identityfile:
            path = self._path(name, settings)
            if path not in self._keys:
                self._keys[path] = await self._key(path)
            key = self._keys[path]
            if key is not None:
                more = tuple(data for data in (*key.certificates, *certificates) if data)
                found.append(
                    KeyFile(path=path, private=key.private, public=key.public, certificates=more)
                )
        return tuple(found)

    def agent(self, settings: SshSettings) -> str:
        """The agent's socket, "" for none."""
        named = settings.identityagent
        if named is None or named == "SSH_AUTH_SOCK":
            return self._environ.get("SSH_AUTH_SOCK", "")
        if named.startswith("$"):
            return self._environ.get(named[1:].strip("{}"), "")
        return self._path(named, settings) if named else ""

    def forget(self, host: str) -> None:
        """Ask and read anew what led to a failure: settings, keys and known hosts may be mended."""
        for words in [words for words in self._settings if words[-1] == host]:
            del self._settings[words]
        self._keys.clear()
        self._known.clear()

    async def aclose(self) -> None:
        """End what is still being asked."""
        reading = (task for _, task in self._known.values())
        await cancel_and_wait(*self._settings.values(), *reading)

    def _path(self, name: str, settings: SshSettings) -> str:
        me = self._person
        return expanded(name, settings, home=me.home, local_user=me.name, uid=me.uid)

    async def _ask(self, host: str, words: tuple[str, ...]) -> SshSettings:
        async with self._asking:
            done = await self._local.run(
                Command(("ssh", *self._options, "-G", *words), timeout_s=_ASK_TIMEOUT_S)
            )
        if done.rc == 0:
            return parse_ssh_g(done.stdout)
        said = done.stderr.decode("utf-8", "replace").strip()
        why = "it did not end in time" if done.timed_out else visible(said.split("\n")[-1])
        sentence = (
            f"`ssh -G {host}` does not say how {host} is reached: {why or 'no reason given'}."
        )
        raise NodeUnreachable(host, Failure(Trouble.LOCAL, sentence, said))

    async def _read_known(self, files: tuple[str, ...]) -> KnownHosts:
        data = [await self._read(path, _LARGEST_KNOWN_HOSTS) for path in files]
        # A site's file with 30,000 lines takes a while.
        return await asyncio.to_thread(parse_known_hosts, *data)

    async def _key(self, path: str) -> KeyFile | None:
        private = await self._read(path, _LARGEST_KEY)
        public = await self._read(f"{path}.pub", _LARGEST_KEY)
        certificate = await self._read(f"{path}-cert.pub", _LARGEST_KEY)
        if not (private or public):
            return None
        certificates = (certificate,) if certificate else ()
        return KeyFile(path=path, private=private, public=public, certificates=certificates)

    async def _read(self, path: str, limit: int) -> bytes:
        """A whole small file; b"" where it is not there or may not be read, as ssh takes it."""
        data = bytearray()
        try:
            while len(data) < limit:
                block = await self._local.read(path, len(data), min(_BLOCK, limit - len(data)))
                data += block
                if len(block) < _BLOCK:
                    break
        except OSError:
            return b""
        return bytes(data)
