"""Why a login on a node failed, in one sentence each: what failed, why, what to do.

``explain_login`` reads what our own connection met, ``explain_openssh`` what ``ssh`` printed;
both know the refusals of pam_slurm_adopt, which come as text before the connection is closed.
"""

import base64
import errno
import hmac
import re
import shlex
import socket
from dataclasses import dataclass, replace

from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.text import visible
from slurmtop.parse.known_hosts import KnownKey, fingerprint, known_hosts_name
from slurmtop.parse.ssh_config import SshSettings

NEVER = float("inf")
#: A refused login is written to the node's log, and some sites lock out who tries too often.
_REFUSED_AGAIN_S = 300.0
#: Somebody may be adding the line just now.
_UNKNOWN_AGAIN_S = 60.0
_RAW_CHARS = 2_000

_NO_JOB = re.compile(
    r"no active jobs on this node|No Slurm jobs found on node|access denied: user \S+ \(uid=\d+\)",
    re.IGNORECASE,
)
_ADOPT = re.compile(
    r"denied by pam_slurm|unable to determine source job|adoption failure", re.IGNORECASE
)
_ASKS = frozenset({"password", "keyboard-interactive"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What one try to log in had and learnt before it failed.

    ``shown`` is the host key (or the certificate's authority, ``shown_ca``) that the node showed
    and nobody here trusts; ``methods`` are the kinds of login that the node offers; ``locked`` are
    key files with a passphrase; ``keys`` counts what could be shown, agent's keys included;
    ``greeted`` tells that the node's sshd had said its name.
    """

    host: str
    settings: SshSettings
    known: tuple[KnownKey, ...] = ()
    shown: KnownKey | None = None
    shown_ca: bool = False
    methods: tuple[str, ...] = ()
    said: bytes = b""
    locked: tuple[str, ...] = ()
    keys: int = 0
    greeted: bool = False

    @property
    def user(self) -> str:
        return visible(self.settings.user)


def explain_login(attempt: Attempt, error: BaseException) -> Failure:
    """A failed login of our own connection. Errors are told by the names of their classes, so
    that nothing of asyncssh is needed to put them into words."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    said = _text(attempt.said)
    told = explain_adopt(attempt.host, said)
    if told is not None:
        return told
    raw = _raw(f"{said}\n{error}")
    if "HostKeyNotVerifiable" in kinds:
        return replace(_explain_key(attempt, str(error)), raw=_key_lines(attempt) or raw)
    if "PermissionDenied" in kinds:
        return replace(_explain_denied(attempt), raw=raw)
    if "KeyExchangeFailed" in kinds:
        sentence = (
            f"{attempt.host} and slurmtop have no kind of encryption or host key in common: "
            f"{visible(str(error))}"
        )
        return Failure(Trouble.OTHER, sentence, raw, _REFUSED_AGAIN_S)
    if "ChannelOpenError" in kinds:
        sentence = (
            f"The jump host could not open a way to {attempt.host}: {visible(str(error))}; "
            f"`ssh {attempt.host}` by hand shows more."
        )
        return Failure(Trouble.DOWN, sentence, raw)
    if isinstance(error, OSError) or "TimeoutError" in kinds:
        return _explain_network(attempt.host, attempt.settings.port, error, raw)
    if "login timeout" in str(error).lower():
        return _explain_network(attempt.host, attempt.settings.port, TimeoutError(), raw)
    if kinds & {"ConnectionLost", "DisconnectError"}:
        return _closed_early(attempt.host, raw, str(error))
    sentence = f"ssh to {attempt.host} failed: {visible(str(error)) or type(error).__name__}."
    return Failure(Trouble.OTHER, sentence, raw)


def explain_adopt(host: str, said: str) -> Failure | None:
    """A refusal by pam_slurm_adopt or pam_slurm, None where ``said`` is no such thing."""
    if not _NO_JOB.search(said) and not _ADOPT.search(said):
        return None
    if _NO_JOB.search(said):
        sentence = (
            f"{host} lets in only who has a running job there (pam_slurm_adopt): it is asked again "
            f"when the list of jobs changes."
        )
    else:
        sentence = (
            f"{host} could not tie this login to a job and refused it (pam_slurm_adopt); "
            f"where it goes on with a job of yours there, tell your site's administrators."
        )
    return Failure(Trouble.DENIED, sentence, _raw(said), NEVER)


def explain_no_shell(host: str, rc: int | None, stdout: bytes, stderr: bytes) -> Failure:
    """The login worked, but our command was never run by a shell."""
    said = "\n".join(filter(None, (_text(stdout), _text(stderr))))
    told = explain_adopt(host, said)
    if told is not None:
        return told
    words = _first_line(said)
    if rc is None:
        sentence = (
            f"{host} let us in, but its login shell did not get as far as our command in time: "
            f"a home folder that hangs, or a slow .bashrc."
        )
        return Failure(Trouble.TIMEOUT, sentence, _raw(said))
    if rc == 127 or "command not found" in said.lower():
        sentence = f"{host} let us in, but has no /bin/sh or no head there: {words or 'no word'}."
    elif "not available" in said or "nologin" in said:
        sentence = f"{host} has no login shell for this account: it said {words!r}."
    else:
        sentence = (
            f"{host} let us in, but ran something else than our command (a forced command, a menu "
            f"or a restricted shell); it said {words!r}."
        )
    return Failure(Trouble.DENIED, sentence, _raw(said), _REFUSED_AGAIN_S)


def explain_broken(host: str, error: BaseException | None) -> Failure:
    """The connection broke while something ran on the node."""
    why = f" ({visible(str(error))})" if error is not None and str(error) else ""
    sentence = (
        f"The connection to {host} broke{why}: the node, its sshd or the network between went away."
    )
    return Failure(Trouble.DOWN, sentence, _raw("" if error is None else str(error)))


def explain_too_many(host: str, count: int) -> Failure:
    """All channels of a connection are taken."""
    sentence = (
        f"{count} commands of slurmtop on {host} have not ended, so none is added: a process there "
        f"hangs (state D), often in a driver or a file system."
    )
    return Failure(Trouble.BUSY, sentence)


def explain_no_session(host: str, open_now: int, error: str) -> Failure:
    """sshd opens no further session on a connection that it keeps open."""
    sentence = (
        f"{host} runs no further command on this connection, {open_now} of slurmtop's run there: "
        f"its sshd allows no more (MaxSessions)."
    )
    return Failure(Trouble.BUSY, sentence, _raw(error))


def on_the_way(host: str, jump: str, failure: Failure) -> Failure:
    """``failure`` of a jump host, told of the host behind it."""
    sentence = f"On the way to {host} by the jump host {visible(jump)}: {failure.sentence}"
    return replace(failure, sentence=sentence)


def explain_left_to_ssh(host: str, what: str) -> Failure:
    """A setting that only the ``ssh`` command itself can follow."""
    sentence = f"{host} is reached with {what}, which is left to the ssh command."
    return Failure(Trouble.OTHER, sentence, "", NEVER)


# What our own connection met


def _explain_key(attempt: Attempt, error: str) -> Failure:
    host, shown, settings = attempt.host, attempt.shown, attempt.settings
    name = known_hosts_name(settings.key_name, settings.key_port)
    files = _where(settings)
    if "revoked" in error.lower():
        sentence = (
            f"The host key of {host} is marked as revoked in {files}: nothing was sent; "
            f"ask your site for the node's new key."
        )
        return Failure(Trouble.DENIED, sentence, "", _REFUSED_AGAIN_S)
    if shown is None:
        sentence = f"The host key of {host} could not be verified: {visible(error)}"
        return Failure(Trouble.DENIED, sentence, "", _REFUSED_AGAIN_S)
    mark = fingerprint(shown.base64) or "no fingerprint"
    if attempt.shown_ca:
        sentence = (
            f"{host} shows a certificate by an authority that is not trusted here, so nothing was "
            f"sent: compare {mark} with what your site gives, then add this line to {files}: "
            f"@cert-authority {name} {shown.line}"
        )
        return Failure(Trouble.DENIED, sentence, "", _UNKNOWN_AGAIN_S)
    own = [key for key in attempt.known if not (key.mark or key.without_port)]
    if any(key.kind == shown.kind for key in own):
        sentence = (
            f"THE HOST KEY OF {host} HAS CHANGED: it shows {shown.kind} {mark}, another one is "
            f"known here. The node was installed anew, or somebody stands between; nothing was "
            f"sent. Ask your site, and only then forget the old key: "
            f"ssh-keygen -R {shlex.quote(name)}"
        )
        return Failure(Trouble.DENIED, sentence, "", _REFUSED_AGAIN_S)
    sentence = (
        f"The host key of {host} is not known here, so nothing was sent: compare {mark} with what "
        f"your site gives, then add this line to {files}: {name} {shown.line}"
    )
    return Failure(Trouble.DENIED, sentence, "", _UNKNOWN_AGAIN_S)


def _key_lines(attempt: Attempt) -> str:
    """The line to add in both forms of the file: with the name, and with the name hashed."""
    if attempt.shown is None or attempt.shown_ca:
        return ""
    settings = attempt.settings
    name = known_hosts_name(settings.key_name, settings.key_port)
    # The salt need not be secret, and the same line comes out each time.
    salt = hmac.digest(attempt.shown.base64.encode(), name.encode(), "sha1")
    words = (salt, hmac.digest(salt, name.encode(), "sha1"))
    hashed = "|".join(base64.b64encode(word).decode() for word in words)
    return f"{name} {attempt.shown.line}\n|1|{hashed} {attempt.shown.line}"


def _where(settings: SshSettings) -> str:
    own = [path for path in settings.userknownhostsfile if path != "/dev/null"]
    return visible(own[0] if own else "~/.ssh/known_hosts")


def _explain_denied(attempt: Attempt) -> Failure:
    host, methods = attempt.host, frozenset(attempt.methods)
    if not methods:
        # A key, a password and an answer were not asked for: what is left needs none of them.
        return explain_left_to_ssh(host, "a login of another kind (host-based or GSSAPI)")
    if methods <= _ASKS:
        return _asks(host, attempt.methods)
    if attempt.locked and not attempt.keys:
        path = shlex.quote(visible(attempt.locked[0]))
        sentence = (
            f"The key {path} has a passphrase and no agent holds it, so {host} could not be logged "
            f"in to: run `ssh-add {path}`, then start slurmtop again from that shell."
        )
        return Failure(Trouble.DENIED, sentence, "", _REFUSED_AGAIN_S)
    if not attempt.keys:
        sentence = (
            f"There is no ssh key for {attempt.user} on {host}, neither a file nor in an agent: "
            f"make one with `ssh-keygen` and put it there with `ssh-copy-id {host}`."
        )
        return Failure(Trouble.DENIED, sentence, "", _REFUSED_AGAIN_S)
    return _refused(host, attempt.user, attempt.methods)


def _asks(host: str, methods: tuple[str, ...]) -> Failure:
    sentence = (
        f"{host} asks questions at its login ({visible(', '.join(methods))}), which slurmtop never "
        f"answers: set up a key (`ssh-copy-id {host}`), or log in once with a ControlMaster that "
        f"stays open, which slurmtop then uses."
    )
    return Failure(Trouble.DENIED, sentence, "", _REFUSED_AGAIN_S)


def _refused(host: str, user: str, methods: tuple[str, ...]) -> Failure:
    offers = f" (it offers {visible(', '.join(methods))})" if methods else ""
    sentence = (
        f"{host} refused every key of {user or 'this user'}{offers}: put one there with "
        f"`ssh-copy-id {host}`; `ssh -v {host}` shows which were tried."
    )
    return Failure(Trouble.DENIED, sentence, "", _REFUSED_AGAIN_S)


def _explain_network(host: str, port: int, error: BaseException, raw: str) -> Failure:
    if isinstance(error, socket.gaierror):
        sentence = (
            f"The name {host} is not known on this machine: see HostName in the ssh settings, "
            f"or ask your site how its nodes are called from here."
        )
        return Failure(Trouble.OTHER, sentence, raw, _REFUSED_AGAIN_S)
    if isinstance(error, TimeoutError):
        sentence = f"{host} did not answer in time (ssh, port {port}): it is down or very busy."
        return Failure(Trouble.TIMEOUT, sentence, raw)
    code = error.errno if isinstance(error, OSError) else None
    match code:
        case errno.ECONNREFUSED:
            sentence = f"{host} refuses connections on port {port}: no sshd is running there."
            return Failure(Trouble.DOWN, sentence, raw)
        case errno.EHOSTUNREACH | errno.ENETUNREACH:
            sentence = f"There is no route to {host}: it is down, or not on this network."
            return Failure(Trouble.DOWN, sentence, raw)
        case errno.EMFILE | errno.ENFILE:
            sentence = f"{host} was not tried: too many files and connections are open here."
            return Failure(Trouble.LOCAL, sentence, raw)
        case errno.ECONNRESET | errno.EPIPE:
            return _closed_early(host, raw, str(error))
        case _:
            sentence = f"ssh to {host}, port {port}, failed: {visible(str(error))}."
            return Failure(Trouble.DOWN, sentence, raw)


def _closed_early(host: str, raw: str, words: str) -> Failure:
    if "too many authentication" in words.lower():
        sentence = (
            f"{host} ended the login after too many keys: name the right one with IdentityFile and "
            f"IdentitiesOnly in the ssh settings."
        )
        return Failure(Trouble.DENIED, sentence, raw, _REFUSED_AGAIN_S)
    sentence = (
        f"{host} closed the connection before the login was done: too many logins at once "
        f"(MaxStartups), or this account or machine is not let in."
    )
    return Failure(Trouble.BUSY, sentence, raw)


# What ssh printed

_DENIED = re.compile(r"(?:^|\n)(?:(\S+): )?Permission denied \(([a-z0-9,@.-]*)\)")
_UNKNOWN_KEY = re.compile(r"No (\S+) host key is known for (\S+)")
_CHANGED = re.compile(r"IDENTIFICATION HAS CHANGED")


def explain_openssh(host: str, rc: int | None, stderr: bytes) -> Failure:
    """Why ``ssh`` ended before our command ran; ``rc`` None where it was ended for its time."""
    said = _text(stderr)
    raw = _raw(said)
    told = explain_adopt(host, said) or _openssh_key(host, said)
    if told is not None:
        return replace(told, raw=raw)
    denied = _DENIED.search(said)
    if denied:
        methods = tuple(filter(None, denied[2].split(",")))
        if methods and frozenset(methods) <= _ASKS:
            return replace(_asks(host, methods), raw=raw)
        user = (denied[1] or "").rpartition("@")[0]
        return replace(_refused(host, visible(user), methods), raw=raw)
    for words, error in _OPENSSH_NETWORK:
        if words in said:
            return _explain_network(host, _port_in(said), error, raw)
    if rc is None:
        return _explain_network(host, 22, TimeoutError(), raw)
    if "Bad owner or permissions" in said or "Bad configuration option" in said:
        sentence = f"ssh does not accept its own settings: {_last_line(said)}."
        return Failure(Trouble.LOCAL, sentence, raw, _REFUSED_AGAIN_S)
    if re.search(r"onnection (?:closed|reset)|Too many authentication|Broken pipe", said):
        return _closed_early(host, raw, said)
    words = _last_line(said) or f"exit {rc}, without a word"
    return Failure(Trouble.OTHER, f"ssh to {host} failed: {words}.", raw)


_OPENSSH_NETWORK: tuple[tuple[str, OSError], ...] = (
    ("Could not resolve hostname", socket.gaierror()),
    ("Connection refused", OSError(errno.ECONNREFUSED, "")),
    ("No route to host", OSError(errno.EHOSTUNREACH, "")),
    ("Network is unreachable", OSError(errno.ENETUNREACH, "")),
    ("timed out", TimeoutError()),
)


def _openssh_key(host: str, said: str) -> Failure | None:
    if "REVOKED HOST KEY" in said:
        sentence = f"The host key of {host} is marked as revoked: nothing was sent; ask your site."
        return Failure(Trouble.DENIED, sentence, "", _REFUSED_AGAIN_S)
    if _CHANGED.search(said):
        sentence = (
            f"THE HOST KEY OF {host} HAS CHANGED: the node was installed anew, or somebody stands "
            f"between; nothing was sent. Ask your site, and only then forget the old key: "
            f"ssh-keygen -R {host}"
        )
        return Failure(Trouble.DENIED, sentence, "", _REFUSED_AGAIN_S)
    unknown = _UNKNOWN_KEY.search(said)
    if unknown is None and "Host key verification failed" not in said:
        return None
    kind, name = (unknown[1].lower(), unknown[2]) if unknown else ("", host)
    address, _, port = name.removeprefix("[").partition("]:")
    words = ["ssh-keyscan", *(("-t", kind) if kind else ()), *(("-p", port) if port else ())]
    command = shlex.join([*words, visible(address)])
    sentence = (
        f"The host key of {host} is not known here, so nothing was sent: `{command}` prints the "
        f"line for ~/.ssh/known_hosts; compare it with what your site gives before you add it."
    )
    return Failure(Trouble.DENIED, sentence, "", _UNKNOWN_AGAIN_S)


def _port_in(said: str) -> int:
    found = re.search(r"port (\d{1,5})\b", said)
    return int(found[1]) if found else 22


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\r", "").strip()


def _raw(text: str) -> str:
    return text.strip()[-_RAW_CHARS:]


def _first_line(text: str) -> str:
    return next((visible(line.strip())[:200] for line in text.split("\n") if line.strip()), "")


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return visible(lines[-1])[:200].rstrip(".") if lines else ""
