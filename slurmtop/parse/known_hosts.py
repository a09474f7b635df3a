"""Known-hosts files: which host keys are trusted for a name.

Source: sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT". Names (a list, with ``*``, ``?`` and ``!``), or one
hashed name; in front of it a mark, where there is one; then the kind and the key::

    gpu01,10.0.0.11 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKR3Zd4K…
    @cert-authority *.cluster ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPA5…

Read once and asked often: a file may hold 30,000 lines, and only those that match a name are ever
decoded. Total: a line that cannot be read trusts nobody and costs no other line.
"""

import base64
import binascii
import hashlib
import hmac
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

_DEFAULT_PORT = 22
_MARKS = {"@cert-authority": "cert-authority", "@revoked": "revoked"}


@dataclass(frozen=True, slots=True)
class KnownKey:
    """One key as the file has it; ``mark`` is "", "cert-authority" or "revoked".

    ``without_port`` tells that it stands under the name alone, and another port is meant: it may
    be the right key, but another one there is no change. It stands in the file of that place in
    the order in which they were given, in that line (counted from one), ``by_pattern`` under a
    name with ``*`` or ``?``; these say nothing of which key it is.
    """

    mark: str
    kind: str
    base64: str
    without_port: bool = False
    file: int = field(default=0, compare=False)
    line_number: int = field(default=0, compare=False)
    by_pattern: bool = field(default=False, compare=False)

    @property
    def line(self) -> str:
        return f"{self.kind} {self.base64}"


@dataclass(frozen=True, slots=True)
class _Pattern:
    yes: tuple[str, ...]
    no: tuple[str, ...]
    key: KnownKey

    def matches(self, name: str) -> bool:
        if any(_glob(pattern, name) for pattern in self.no):
            return False
        return any(_glob(pattern, name) for pattern in self.yes)


@dataclass(slots=True)
class KnownHosts:
    """What some known-hosts files say, by name."""

    exact: dict[str, list[KnownKey]] = field(default_factory=lambda: defaultdict(list))
    patterns: list[_Pattern] = field(default_factory=list)
    hashed: list[tuple[bytes, bytes, KnownKey]] = field(default_factory=list)

    def keys_for(self, name: str, port: int = _DEFAULT_PORT) -> tuple[KnownKey, ...]:
        """The keys under ``name``, in order, each once.

        For another port than 22 the name is ``[name]:port``, and without one only where that
        says nothing: as OpenSSH does it. What is revoked under either name is revoked.
        """
        name = name.lower()
        plain = list(self._under(name))
        if port == _DEFAULT_PORT:
            return tuple(dict.fromkeys(plain))
        own = list(self._under(f"[{name}]:{port}"))
        if any(key.mark != "revoked" for key in own):
            plain = [key for key in plain if key.mark == "revoked"]
        elsewhere = [key if key.mark else replace(key, without_port=True) for key in plain]
        return tuple(dict.fromkeys(own + elsewhere))

    def _under(self, name: str) -> Iterator[KnownKey]:
        yield from self.exact.get(name, ())
        yield from (pattern.key for pattern in self.patterns if pattern.matches(name))
        encoded = name.encode("utf-8", "surrogateescape")
        for salt, digest, key in self.hashed:
            if hmac.digest(salt, encoded, "sha1") == digest:
                yield key


def parse_known_hosts(*files: bytes) -> KnownHosts:
    """What ``files`` (their contents, in the order in which they count) say."""
    known = KnownHosts()
    for file, data in enumerate(files):
        for line_number, raw in enumerate(data.split(b"\n"), 1):
            words = raw.decode("utf-8", "surrogateescape").split()
            if len(words) < 3 or words[0].startswith("#"):
                continue
            mark = _MARKS.get(words[0], "")
            if words[0].startswith("@"):
                if not mark or len(words) < 4:
                    continue
                words = words[1:]
            key = KnownKey(mark, words[1], words[2], file=file, line_number=line_number)
            _add(known, words[0], key)
    return known


def _add(known: KnownHosts, names: str, key: KnownKey) -> None:
    if names.startswith("|"):
        hashed = _hashed(names)
        if hashed is not None:
            known.hashed.append((*hashed, key))
        return
    words = [word.lower() for word in names.split(",") if word.strip("!")]
    if not any(sign in word for word in words for sign in "*?!"):
        for word in words:
            known.exact[word].append(key)
        return
    yes = tuple(word for word in words if not word.startswith("!"))
    no = tuple(word[1:] for word in words if word.startswith("!"))
    known.patterns.append(_Pattern(yes, no, replace(key, by_pattern=True)))


def _glob(pattern: str, name: str) -> bool:
    """``*`` and ``?`` as ssh reads them; never slower than the product of both lengths."""
    at = seen = 0
    star = -1
    while seen < len(name):
        if at < len(pattern) and pattern[at] == "*":
            star, back = at, seen
            at += 1
        elif at < len(pattern) and pattern[at] in ("?", name[seen]):
            at += 1
            seen += 1
        elif star >= 0:
            back += 1
            at, seen = star + 1, back
        else:
            return False
    return not pattern[at:].strip("*")


def _hashed(names: str) -> tuple[bytes, bytes] | None:
    parts = names.split("|")
    if len(parts) != 4 or parts[1] != "1":
        return None
    try:
        return base64.b64decode(parts[2]), base64.b64decode(parts[3])
    except (binascii.Error, ValueError):
        return None


def known_hosts_name(name: str, port: int = _DEFAULT_PORT) -> str:
    """How a line names a host: ``gpu01``, or ``[gpu01]:2222`` for another port than 22."""
    return name if port == _DEFAULT_PORT else f"[{name}]:{port}"


def fingerprint(key_base64: str) -> str | None:
    """``SHA256:…`` as ssh prints it, None for what is no key."""
    try:
        data = base64.b64decode(key_base64, validate=True)
    except (binascii.Error, ValueError):
        return None
    digest = base64.b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    return f"SHA256:{digest}"
