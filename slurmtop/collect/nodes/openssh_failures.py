"""Why the ``ssh`` command failed, told from what it printed.

Source: the messages of OpenSSH's ssh.c, sshconnect.c, sshconnect2.c, packet.c and channels.c
(written for 9.2). With a jump host two of them write to one stderr, the one that failed first::

    ssh: connect to host jump1 port 22: Connection refused
    kex_exchange_identification: Connection closed by remote host
    Connection closed by UNKNOWN port 65535

A message names the machine that it is about, by the name or address that is connected to: where
that is not the node's own name it may be a jump host, and nothing is said of the node itself.
"""

import errno
import re
import shlex
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace

from slurmtop.collect.nodes.host_key_words import forget_command
from slurmtop.collect.nodes.ssh_failures import (
    ASKS,
    REFUSED_AGAIN_S,
    asks,
    closed_early,
    explain_account,
    explain_adopt,
    explain_network,
    last_line,
    raw_of,
    refused_keys,
    text_of,
)
from slurmtop.model.host_names import owner_of
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.text import visible

#: Somebody may be adding the line just now.
_UNKNOWN_AGAIN_S = 60.0

_DENIED = re.compile(
    r"^(?:(?:(?P<user>\S*)@)?(?P<name>[^\s@]+): )?Permission denied \((?P<methods>[a-z0-9,@.-]*)\)",
    re.M,
)
_UNKNOWN_KEY = re.compile(r"^No \S+ host key is known for (\S+)", re.M)
_CHANGED_NAME = re.compile(r"^Host key for (\S+) has changed", re.M)
_OFFENDING = re.compile(r"^Offending \S+ key in (.+):(\d+)\s*$", re.M)
_CONNECT = re.compile(r"^ssh: connect to host (\S+) port (\d+): (.*)", re.M)
_RESOLVE = re.compile(r"^ssh: Could not resolve hostname (\S+): ", re.M)
#: The jump host's word of the node behind it.
_BEHIND = re.compile(r"^channel \d+: open failed: (.+)", re.M)
#: ssh has no address for what it reaches through another program.
_THROUGH = re.compile(r"\bUNKNOWN port 65535\b")
_DISCONNECTED = re.compile(r"^Received disconnect from \S+ port \d+:\d+: (.*)", re.M)
_CLOSED = re.compile(r"onnection (?:closed|reset)|Too many authentication|Broken pipe")
#: What ssh itself writes beside the words of a node.
_OF_SSH = re.compile(
    r"(?:kex|ssh)_exchange_identification:|banner exchange:|Connection (?:to \S+ )?"
    r"(?:closed|reset|timed out)|Disconnected from|Disconnecting|Received disconnect|client_loop:"
    r"|Warning: |\*\* |channel \d+:|stdio forwarding failed|packet_write|ssh_dispatch_run_fatal|@+"
)
_REASONS: tuple[tuple[str, OSError], ...] = (
    ("Connection refused", OSError(errno.ECONNREFUSED, "")),
    ("No route to host", OSError(errno.EHOSTUNREACH, "")),
    ("Network is unreachable", OSError(errno.ENETUNREACH, "")),
    ("timed out", TimeoutError()),
)


@dataclass(frozen=True, slots=True)
class _Said:
    """What an ``ssh`` to ``host`` printed. ``through`` another program it reached the node."""

    host: str
    text: str
    raw: str

    @property
    def through(self) -> bool:
        return bool(_THROUGH.search(self.text))

    def of(self, name: str | None, explain: Callable[[str], Failure]) -> Failure:
        """The failure of the machine that a message is about, told of the node.

        Without a name it is the node's; through another program it may be that one's as well.
        """
        if name is None:
            return explain(f"{self.host}, or a host before it," if self.through else self.host)
        node, met = self.host.lower(), visible(name.lower())
        if owner_of(met, (node,)) or owner_of(node, (met,)):
            return explain(self.host)
        failure = explain(met)
        return replace(failure, sentence=f"On the way to {self.host}: {failure.sentence}")


def explain_openssh(host: str, rc: int | None, stderr: bytes) -> Failure:
    """Why ``ssh`` ended before our command ran; ``rc`` None where it was ended for its time."""
    text = text_of(stderr)
    said = _Said(host, text, raw_of(text))
    told = explain_adopt(host, text)
    for explain in (_account, _key, _denied, _behind, _network):
        told = told or explain(said)
    if told is None and rc is None:
        told = explain_network(host, None, TimeoutError(), said.raw)
    return replace(told or _other(said, rc), raw=said.raw)


def _account(said: _Said) -> Failure | None:
    told = explain_account(said.host, said.text)
    return told and said.of(None, lambda host: explain_account(host, said.text) or told)


def _denied(said: _Said) -> Failure | None:
    found = _DENIED.search(said.text)
    if found is None:
        return None
    methods = tuple(filter(None, found["methods"].split(",")))
    if methods and frozenset(methods) <= ASKS:
        return said.of(found["name"] or said.host, lambda host: asks(host, methods))
    user = visible(found["user"] or "")
    return said.of(found["name"] or said.host, lambda host: refused_keys(host, user, methods))


def _behind(said: _Said) -> Failure | None:
    """A jump host let us in and could not go on: what it says is of the node."""
    found = _BEHIND.search(said.text)
    if found is None:
        return None
    words = found[1]
    if "prohibited" in words or "denied" in words.lower():
        sentence = f"The jump host opens no way to {said.host} (AllowTcpForwarding, PermitOpen)."
        return Failure(Trouble.DENIED, sentence, "", REFUSED_AGAIN_S)
    sentence = (
        f"The jump host could not open a way to {said.host}: {visible(words)[:200].rstrip('.')}."
    )
    return Failure(Trouble.DOWN, sentence)


def _network(said: _Said) -> Failure | None:
    if found := _RESOLVE.search(said.text):
        return said.of(found[1], lambda host: explain_network(host, None, socket.gaierror(), ""))
    if found := _CONNECT.search(said.text):
        name, port, words = found[1], int(found[2][:5]), found[3]
        error = next((error for sign, error in _REASONS if sign in words), OSError(words))
        return said.of(name, lambda host: explain_network(host, port, error, ""))
    met = next((error for sign, error in _REASONS if sign in said.text), None)
    if met is None:
        return None
    return said.of(None, lambda host: explain_network(host, None, met, ""))


def _other(said: _Said, rc: int | None) -> Failure:
    if "Bad owner or permissions" in said.text or "Bad configuration option" in said.text:
        sentence = f"ssh does not accept its own settings: {last_line(said.text)}."
        return Failure(Trouble.LOCAL, sentence, "", REFUSED_AGAIN_S)
    if _CLOSED.search(said.text):
        words = [line for line in said.text.split("\n") if not _OF_SSH.match(line.strip())]
        words += _DISCONNECTED.findall(said.text)
        return said.of(None, lambda host: closed_early(host, "", said.text, "\n".join(words)))
    words_of_ssh = last_line(said.text) or f"exit {rc}, without a word"
    return Failure(Trouble.OTHER, f"ssh to {said.host} failed: {words_of_ssh}.")


# Host keys


def _key(said: _Said) -> Failure | None:
    text = said.text
    if "REVOKED HOST KEY" in text:
        sentence = (
            f"A host key on the way to {said.host} is marked as revoked: nothing was sent; "
            f"ask your site."
        )
        return Failure(Trouble.DENIED, sentence, "", REFUSED_AGAIN_S)
    if "IDENTIFICATION HAS CHANGED" in text:
        found = _CHANGED_NAME.search(text)
        name = found[1] if found else said.host
        return said.of(_bare(name), lambda host: _changed(host, name, _OFFENDING.search(text)))
    found = _UNKNOWN_KEY.search(text)
    if found is None and "Host key verification failed" not in text:
        return None
    name = _bare(found[1]) if found else said.host
    return said.of(name, lambda host: _unknown(host, said.host))


def _bare(name: str) -> str:
    return name.removeprefix("[").partition("]:")[0]


def _changed(host: str, name: str, offending: re.Match[str] | None) -> Failure:
    begin = (
        f"THE HOST KEY OF {host} HAS CHANGED: the node was installed anew, or somebody stands "
        f"between; nothing was sent. Ask your site"
    )
    if offending is None:
        sentence = f"{begin}, and only then take the old key out of the known hosts."
        return Failure(Trouble.DENIED, sentence, "", REFUSED_AGAIN_S)
    file, line_number = offending[1], offending[2]
    where = f"which stands in {visible(file)}, line {line_number}"
    if file.startswith("/etc/"):
        sentence = f"{begin} to change the old key, {where}, a file of the site."
        return Failure(Trouble.DENIED, sentence, "", REFUSED_AGAIN_S)
    command = forget_command(file, name)
    sentence = f"{begin}, and only then forget the old key, {where}: {command}"
    return Failure(Trouble.DENIED, sentence, "", REFUSED_AGAIN_S, copy=command)


def _unknown(host: str, node: str) -> Failure:
    command = shlex.join(["ssh", "-o", "StrictHostKeyChecking=ask", visible(node)])
    sentence = (
        f"The host key of {host} is not known here, so nothing was sent. By hand ssh shows its "
        f"fingerprint: compare it with what your site gives before you say yes, which adds it to "
        f"known_hosts (not where UserKnownHostsFile is /dev/null in the ssh settings): {command}"
    )
    return Failure(Trouble.DENIED, sentence, "", _UNKNOWN_AGAIN_S, copy=command)
