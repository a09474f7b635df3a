"""What ``ssh -G HOST`` prints: the settings that OpenSSH would use for one host.

Source: ``dump_client_config`` in OpenSSH's readconf.c (written for 9.2; older ones lack fields).
One setting a line, name and value, names in small letters; some names come more than once::

    hostname gpu01
    identityfile ~/.ssh/id_ed25519

``%`` tokens and a leading ``~`` of key files are left as they stand there; ``expanded`` fills them
in. Known-hosts files, the agent and the control path come already filled in.
"""

from dataclasses import dataclass, field

#: Values that say "not set".
_NOTHING = frozenset({"", "none"})
_DEFAULT_PORT = 22


@dataclass(frozen=True, slots=True, kw_only=True)
class Jump:
    """One host on the way, as ``ProxyJump`` names it; ``user`` and ``port`` where it does."""

    host: str
    user: str | None = None
    port: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SshSettings:
    """The settings that matter to a connection; names are OpenSSH's.

    ``hostname`` is the name or address that is connected to, ``host`` the word that was asked
    about. None and ``()`` are "not set"; ``identityagent`` None is "as SSH_AUTH_SOCK says" and
    "" is "no agent". ``unsupported`` are settings whose meaning only ``ssh`` itself knows.
    """

    host: str = ""
    hostname: str = ""
    port: int = _DEFAULT_PORT
    user: str = ""
    identityfile: tuple[str, ...] = ()
    certificatefile: tuple[str, ...] = ()
    identitiesonly: bool = False
    identityagent: str | None = None
    userknownhostsfile: tuple[str, ...] = ()
    globalknownhostsfile: tuple[str, ...] = ()
    hashknownhosts: bool = False
    hostkeyalias: str | None = None
    hostkeyalgorithms: tuple[str, ...] = ()
    proxyjump: tuple[Jump, ...] = ()
    proxycommand: str | None = None
    controlpath: str | None = None
    controlmaster: str | None = None
    connecttimeout_s: float | None = None
    addressfamily: str = "any"
    bindaddress: str | None = None
    pubkeyauthentication: bool = True
    hostbasedauthentication: bool = False
    unsupported: tuple[str, ...] = field(default=())

    @property
    def key_name(self) -> str:
        """The name under which known-hosts files are searched."""
        return (self.hostkeyalias or self.hostname or self.host).lower()

    @property
    def key_port(self) -> int:
        """The port under which they are searched: an alias stands without one."""
        return _DEFAULT_PORT if self.hostkeyalias else self.port


#: Names that, where set, change who is trusted in ways that are not read here.
_ONLY_SSH = ("revokedhostkeys", "bindinterface")
_LISTS = ("identityfile", "certificatefile")


def parse_ssh_g(stdout: bytes) -> SshSettings:
    """The settings in ``stdout`` of ``ssh -G HOST``; what is broken or missing has its default."""
    said: dict[str, list[str]] = {}
    for line in stdout.decode("utf-8", "surrogateescape").split("\n"):
        name, _, value = line.strip().partition(" ")
        if name:
            said.setdefault(name.lower(), []).append(value.strip())

    def first(name: str) -> str:
        value = said.get(name, [""])[0]
        return "" if value.lower() in _NOTHING else value

    def every(name: str) -> tuple[str, ...]:
        return tuple(value for value in said.get(name, ()) if value.lower() not in _NOTHING)

    def yes(name: str, default: bool = False) -> bool:
        value = said.get(name, [""])[0].lower()
        return value in ("yes", "true") if value else default

    agent = said.get("identityagent", [""])[0]
    return SshSettings(
        host=first("host"),
        hostname=first("hostname"),
        port=_port(first("port")) or _DEFAULT_PORT,
        user=first("user"),
        identityfile=every("identityfile"),
        certificatefile=every("certificatefile"),
        identitiesonly=yes("identitiesonly"),
        identityagent="" if agent.lower() == "none" else agent or None,
        userknownhostsfile=_files(said.get("userknownhostsfile", [""])[0]),
        globalknownhostsfile=_files(said.get("globalknownhostsfile", [""])[0]),
        hashknownhosts=yes("hashknownhosts"),
        hostkeyalias=first("hostkeyalias") or None,
        hostkeyalgorithms=tuple(filter(None, first("hostkeyalgorithms").split(","))),
        proxyjump=_jumps(first("proxyjump")),
        proxycommand=first("proxycommand") or None,
        controlpath=first("controlpath") or None,
        controlmaster=first("controlmaster") or None,
        connecttimeout_s=_seconds(first("connecttimeout")),
        addressfamily=first("addressfamily") or "any",
        bindaddress=first("bindaddress") or None,
        pubkeyauthentication=said.get("pubkeyauthentication", ["yes"])[0].lower() != "no",
        hostbasedauthentication=yes("hostbasedauthentication"),
        unsupported=tuple(name for name in _ONLY_SSH if first(name)),
    )


def expanded(path: str, settings: SshSettings, *, home: str, local_user: str, uid: int) -> str:
    """A key file's name with ``~`` and the tokens of ssh_config(5) filled in.

    A token that is not known is left, so that the file is not found rather than another one.
    """
    tokens = {
        "%": "%",
        "d": home,
        "h": settings.hostname,
        "i": str(uid),
        "k": settings.hostkeyalias or settings.host,
        "n": settings.host,
        "p": str(settings.port),
        "r": settings.user,
        "u": local_user,
    }
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    filled = []
    at = 0
    while (found := path.find("%", at)) >= 0:
        token = path[found + 1 : found + 2]
        filled += [path[at:found], tokens.get(token, "%" + token)]
        at = found + 2
    return "".join(filled) + path[at:]


def _port(text: str) -> int | None:
    if not (text.isascii() and text.isdigit()) or len(text) > 5:
        return None
    return int(text) if 0 < int(text) < 65536 else None


def _seconds(text: str) -> float | None:
    return float(text) if text.isascii() and text.isdigit() and len(text) < 9 else None


def _files(text: str) -> tuple[str, ...]:
    """Names of files, which ssh prints bare: a word that begins no path belongs to the last.

    ``none`` is ``/dev/null`` in other words: it is not "not set", which has files of its own.
    """
    if text.lower() == "none":
        return ("/dev/null",)
    found: list[str] = []
    for word in text.replace('"', "").split():
        if found and not word.startswith(("/", "~")):
            found[-1] += f" {word}"
        else:
            found.append(word)
    return tuple(found)


def _jumps(text: str) -> tuple[Jump, ...]:
    return tuple(jump for word in text.split(",") if (jump := _jump(word.strip())) is not None)


def _jump(word: str) -> Jump | None:
    """``[user@]host[:port]``, ``[user@][address][:port]`` in brackets, ``ssh://…``."""
    word = word.removeprefix("ssh://").rstrip("/")
    user, at, rest = word.rpartition("@")
    host, port = rest, ""
    if rest.startswith("["):
        host, _, port = rest[1:].partition("]")
        port = port.removeprefix(":")
    elif rest.count(":") == 1:
        host, _, port = rest.partition(":")
    if not host:
        return None
    return Jump(host=host, user=user if at and user else None, port=_port(port))
