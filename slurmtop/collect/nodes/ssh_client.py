"""One login by asyncssh.

Import this module in a thread and only when a node is to be reached: asyncssh takes 0.1 s and
27 MB. Nothing here reads a settings file; all is given, as ``ssh -G`` and its files said.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import asyncssh
from asyncssh.public_key import get_certificate_algs, get_public_key_algs

from slurmtop.collect.nodes.connecting import connected
from slurmtop.collect.nodes.ssh_book import KeyFile
from slurmtop.collect.nodes.ssh_failures import Attempt
from slurmtop.parse.known_hosts import KnownKey

CONNECT_TIMEOUT_S = 5.0
LOGIN_TIMEOUT_S = 10.0
KEEPALIVE_S = 15.0
KEEPALIVE_MISSES = 3
_BANNER_BYTES = 16 * 1024

# Its warnings would be written across the screen; what failed is said by the exception.
logging.getLogger("asyncssh").addHandler(logging.NullHandler())
logging.getLogger("asyncssh").propagate = False

Connection = asyncssh.SSHClientConnection


class _Keys(list[Any]):
    """Keys that are all there are: asyncssh takes an empty list for "read the default files"."""

    def __bool__(self) -> bool:
        return True


class _Client(asyncssh.SSHClient):
    """Answers no question, trusts no key of its own accord, and notes what it was asked.

    To say no before anything is sent is how the kinds of login are learnt that a node offers; of
    those that need no key and no answer it is not asked.
    """

    def __init__(self) -> None:
        self.shown: KnownKey | None = None
        self.shown_ca = False
        self.banner = bytearray()
        self.methods: tuple[str, ...] = ()
        self.greeted = False
        self._connection: Connection | None = None

    def connection_made(self, conn: Connection) -> None:
        self._connection = conn

    def connection_lost(self, exc: Exception | None) -> None:
        if self._connection is not None:
            self.greeted = bool(self._connection.get_extra_info("server_version"))
        self._connection = None

    def auth_banner_received(self, msg: str, lang: str) -> None:
        self.banner += msg.encode("utf-8", "replace")[: _BANNER_BYTES - len(self.banner)]

    def validate_host_public_key(
        self, host: str, addr: str, port: int, key: asyncssh.SSHKey
    ) -> bool:
        self.shown = _known_key(key)
        return False

    def validate_host_ca_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.shown, self.shown_ca = _known_key(key), True
        return False

    def public_key_auth_requested(self) -> None:
        self._note()

    def kbdint_auth_requested(self) -> None:
        self._note()

    def password_auth_requested(self) -> None:
        self._note()

    def _note(self) -> None:
        if self._connection is not None and not self.methods:
            self.methods = tuple(self._connection.get_server_auth_methods())


def _known_key(key: asyncssh.SSHKey) -> KnownKey:
    kind, _, rest = key.export_public_key().decode().strip().partition(" ")
    return KnownKey("", kind, rest.split(" ")[0])


async def connect(
    attempt: Attempt, keys: Sequence[KeyFile], agent: str, tunnel: Connection | None
) -> Connection:
    """Log in once. On failure the error is raised with the attempt as it then stood as
    ``attempt`` (:class:`LoginFailed`)."""
    client = _Client()
    pairs, locked = _key_pairs(keys)
    settings = attempt.settings
    trusted = [_imported(known) for known in attempt.known if not known.mark]
    authorities = [_imported(known) for known in attempt.known if known.mark == "cert-authority"]
    revoked = [_imported(known) for known in attempt.known if known.mark == "revoked"]
    options: dict[str, Any] = {
        "config": None,
        "client_factory": lambda: client,
        "username": settings.user,
        "known_hosts": tuple(
            [key for key in kind if key is not None] for kind in (trusted, authorities, revoked)
        ),
        "host_key_alias": settings.hostkeyalias,
        "server_host_key_algs": _host_key_algs(attempt),
        "x509_trusted_certs": None,
        "x509_trusted_cert_paths": [],
        "client_keys": pairs if settings.pubkeyauthentication else None,
        "agent_path": agent,
        "agent_identities": _identities(keys) if settings.identitiesonly else None,
        "agent_forwarding": False,
        "x11_forwarding": False,
        "gss_kex": False,
        "gss_auth": False,
        "gss_host": None,
        "host_based_auth": False,
        # Keys first: then all that is offered is known when they have run out.
        "preferred_auth": (
            "publickey",
            "keyboard-interactive",
            "password",
            "hostbased",
            "gssapi-with-mic",
        ),
        "canonicalize_hostname": False,
        "proxy_command": None,
        "connect_timeout": None,
        "login_timeout": LOGIN_TIMEOUT_S,
        "keepalive_interval": KEEPALIVE_S,
        "keepalive_count_max": KEEPALIVE_MISSES,
        "send_env": None,
        "env": None,
        "request_pty": False,
    }
    sock: socket.socket | None = None
    try:
        if tunnel is None:
            sock = await _open_socket(attempt)
            options["sock"] = sock
            options["tunnel"] = None
        else:
            options["tunnel"] = tunnel
        async with asyncio.timeout(LOGIN_TIMEOUT_S + CONNECT_TIMEOUT_S):
            return await asyncssh.connect(settings.hostname, settings.port, **options)
    except (OSError, TimeoutError, asyncssh.Error, ValueError, EOFError) as error:
        if sock is not None:
            sock.close()
        learnt = replace(
            attempt,
            shown=client.shown,
            shown_ca=client.shown_ca,
            methods=client.methods,
            said=bytes(client.banner),
            locked=locked,
            keys=len(pairs) + await _agent_keys(agent),
            greeted=client.greeted,
        )
        raise LoginFailed(learnt, error) from error


class LoginFailed(Exception):
    """A login that failed with ``error``, and what had been learnt until then."""

    def __init__(self, attempt: Attempt, error: Exception) -> None:
        super().__init__(str(error))
        self.attempt = attempt
        self.error = error


async def _open_socket(attempt: Attempt) -> socket.socket:
    """A connected socket, each address of the name in turn. The kernel's own errors are raised."""
    settings = attempt.settings
    family = {"inet": socket.AF_INET, "inet6": socket.AF_INET6}.get(settings.addressfamily, 0)
    limit_s = min(CONNECT_TIMEOUT_S, settings.connecttimeout_s or CONNECT_TIMEOUT_S)
    async with asyncio.timeout(limit_s):
        return await connected(
            settings.hostname, settings.port, family=family, bind=settings.bindaddress or ""
        )


def _host_key_algs(attempt: Attempt) -> list[str]:
    """What OpenSSH would allow, those first for which a key is known.

    Unknown kinds stay on the list: a node that shows one is then told with the line to add.
    """
    able = {name.decode() for name in (*get_certificate_algs(), *get_public_key_algs())}
    allowed = [name for name in attempt.settings.hostkeyalgorithms if name in able]
    if not allowed:
        allowed = sorted(able, key=lambda name: ("-cert-" not in name, name != "ssh-ed25519"))
    kinds = {known.kind for known in attempt.known if not known.mark}
    certified = any(known.mark == "cert-authority" for known in attempt.known)

    def rank(name: str) -> int:
        if "-cert-" in name:
            return 0 if certified else 2
        kind = "ssh-rsa" if name.startswith("rsa-sha2-") else name
        return 0 if kind in kinds else 1

    return sorted(allowed, key=rank)


def _imported(known: KnownKey) -> asyncssh.SSHKey | None:
    try:
        return asyncssh.import_public_key(known.line)
    except (asyncssh.KeyImportError, ValueError):
        return None


def _key_pairs(keys: Sequence[KeyFile]) -> tuple[_Keys, tuple[str, ...]]:
    """Keys as asyncssh takes them, certificates first, and the files that have a passphrase."""
    pairs = _Keys()
    locked = []
    for file in keys:
        if not file.private:
            continue
        try:
            key = asyncssh.import_private_key(file.private)
        except asyncssh.KeyEncryptionError:
            locked.append(file.path)
            continue
        except (asyncssh.KeyImportError, ValueError) as error:
            if "passphrase" in str(error).lower():
                locked.append(file.path)
            continue
        for data in file.certificates:
            with contextlib.suppress(asyncssh.KeyImportError, ValueError):
                certificate = asyncssh.import_certificate(data)
                if certificate.key == key.convert_to_public():
                    pairs.append((key, certificate))
        pairs.append(key)
    return pairs, tuple(locked)


def _identities(keys: Sequence[KeyFile]) -> list[bytes]:
    """The public halves of the named keys: with IdentitiesOnly the agent may use no other."""
    found = []
    for file in keys:
        with contextlib.suppress(asyncssh.KeyImportError, ValueError):
            found.append(asyncssh.import_public_key(file.public).public_data)
        for data in file.certificates:
            with contextlib.suppress(asyncssh.KeyImportError, ValueError):
                found.append(asyncssh.import_certificate(data).public_data)
    return found or [b"none"]


async def _agent_keys(path: str) -> int:
    found = 0
    if path:
        with contextlib.suppress(OSError, ValueError, TimeoutError, asyncssh.Error):
            async with asyncio.timeout(1), await asyncssh.connect_agent(path) as agent:
                found = len(await agent.get_keys())
    return found
