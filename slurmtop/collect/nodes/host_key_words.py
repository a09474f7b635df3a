"""What is said of a host key that was not trusted: what the node showed, and what opens it.

Advice is only given that works with the settings that ``ssh -G`` told: a line goes into a file that
is read, an old key is taken out of the file that it stands in, and what only the site can change is
said to be the site's.
"""

import base64
import hmac
import shlex
from dataclasses import replace

from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.text import visible
from slurmtop.parse.known_hosts import KnownKey, fingerprint, known_hosts_name
from slurmtop.parse.ssh_config import SshSettings

#: A changed or revoked key needs a person at the site; an unknown one may be added just now.
_REFUSED_AGAIN_S = 300.0
_UNKNOWN_AGAIN_S = 60.0
_NO_FILE = "/dev/null"
_USUAL_FILE = "~/.ssh/known_hosts"


def explain_key(
    host: str,
    settings: SshSettings,
    known: tuple[KnownKey, ...],
    shown: KnownKey | None,
    *,
    shown_ca: bool,
    error: str,
) -> Failure:
    """Why the key ``shown`` by ``host`` (of its authority: ``shown_ca``) is not trusted, where
    ``known`` are the keys under its name. ``raw`` has the lines to add, where they help."""
    if "revoked" in error.lower():
        return _revoked(host, settings, known)
    if shown is None:
        sentence = f"The host key of {host} could not be verified: {visible(error)}"
        return Failure(Trouble.DENIED, sentence, "", _REFUSED_AGAIN_S)
    mark = fingerprint(shown.base64) or "no fingerprint"
    old = [key for key in known if key.kind == shown.kind and not (key.mark or key.without_port)]
    if old and not shown_ca:
        return _changed(host, settings, old, f"{shown.kind} {mark}")
    name = known_hosts_name(settings.key_name, settings.key_port)
    if shown_ca:
        line = f"@cert-authority {name} {shown.line}"
        begin = f"{host} shows a certificate by an authority that is not trusted here"
    else:
        line = f"{name} {shown.line}"
        begin = f"The host key of {host} is not known here"
    sentence = f"{begin}, so nothing was sent{_add(settings, mark)}: {line}"
    failure = Failure(Trouble.DENIED, sentence, "", _UNKNOWN_AGAIN_S, copy=line)
    return failure if shown_ca else replace(failure, raw=_key_lines(name, shown))


def _add(settings: SshSettings, mark: str) -> str:
    compare = f"compare {mark} with what your site gives"
    usable = [path for path in settings.userknownhostsfile if path != _NO_FILE]
    if usable or not settings.userknownhostsfile:
        file = visible(usable[0] if usable else _USUAL_FILE)
        return f": {compare}, then add this line to {file}"
    site = " or ".join(map(visible, settings.globalknownhostsfile))
    ask = f", or ask your site to add it to {site}" if site else ""
    return (
        f". No line of yours is read for it: UserKnownHostsFile is {_NO_FILE} in the ssh settings. "
        f"Name a file there, {compare}, then add this line to the file{ask}"
    )


def _revoked(host: str, settings: SshSettings, known: tuple[KnownKey, ...]) -> Failure:
    marked = next((key for key in known if key.mark == "revoked"), None)
    where = f" in {_place(settings, marked)}" if marked is not None else ""
    sentence = (
        f"The host key of {host} is marked as revoked{where}: nothing was sent; "
        f"ask your site for the node's new key."
    )
    return Failure(Trouble.DENIED, sentence, "", _REFUSED_AGAIN_S)


def _changed(host: str, settings: SshSettings, old: list[KnownKey], shows: str) -> Failure:
    mine = [key for key in old if _is_mine(settings, key)]
    key = (mine or old)[0]
    begin = (
        f"THE HOST KEY OF {host} HAS CHANGED: it shows {shows}, another one stands in "
        f"{_place(settings, key)}. The node was installed anew, or somebody stands between; "
        f"nothing was sent."
    )
    if not mine:
        sentence = f"{begin} That file is the site's: ask your site, which can put the new key in."
        return Failure(Trouble.DENIED, sentence, "", _REFUSED_AGAIN_S)
    if key.by_pattern:
        sentence = f"{begin} Ask your site, and only then take that line out of the file."
        return Failure(Trouble.DENIED, sentence, "", _REFUSED_AGAIN_S)
    name = known_hosts_name(settings.key_name, settings.key_port)
    command = forget_command(_file(settings, key), name)
    sentence = f"{begin} Ask your site, and only then forget the old key: {command}"
    return Failure(Trouble.DENIED, sentence, "", _REFUSED_AGAIN_S, copy=command)


def forget_command(file: str, name: str) -> str:
    """The command that takes the keys of ``name`` out of a known-hosts file."""
    return shlex.join(["ssh-keygen", "-f", visible(file), "-R", visible(name)])


def _is_mine(settings: SshSettings, key: KnownKey) -> bool:
    return key.file < len(settings.userknownhostsfile)


def _file(settings: SshSettings, key: KnownKey) -> str:
    files = (*settings.userknownhostsfile, *settings.globalknownhostsfile)
    return files[key.file] if key.file < len(files) else _USUAL_FILE


def _place(settings: SshSettings, key: KnownKey) -> str:
    return f"{visible(_file(settings, key))}, line {key.line_number}"


def _key_lines(name: str, shown: KnownKey) -> str:
    """The line to add in both forms of the file: with the name, and with the name hashed."""
    # The salt need not be secret, and the same line comes out each time.
    salt = hmac.digest(shown.base64.encode(), name.encode(), "sha1")
    words = (salt, hmac.digest(salt, name.encode(), "sha1"))
    hashed = "|".join(base64.b64encode(word).decode() for word in words)
    return f"{name} {shown.line}\n|1|{hashed} {shown.line}"
