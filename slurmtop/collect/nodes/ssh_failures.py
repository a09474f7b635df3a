"""Why a login on a node failed, in one sentence each: what failed, why, what to do.

``explain_login`` reads what our own connection met; what ``ssh`` printed is read by
``openssh_failures``, in the same words. Both know the refusals of pam_slurm_adopt and of accounts,
which come as text before the connection is closed.
"""

import errno
import re
import shlex
import socket
from dataclasses import dataclass, replace

from slurmtop.collect.nodes.host_key_words import explain_key
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.text import visible
from slurmtop.parse.known_hosts import KnownKey
from slurmtop.parse.ssh_config import SshSettings

NEVER = float("inf")
#: A refused login is written to the node's log, and some sites lock out who tries too often.
REFUSED_AGAIN_S = 300.0
_RAW_CHARS = 2_000
_WORDS_CHARS = 200

_NO_JOB = re.compile(
    r"no active jobs on this node|No Slurm jobs found on node|access denied: user \S+ \(uid=\d+\)",
    re.IGNORECASE,
)
_ADOPT = re.compile(
    r"denied by pam_slurm|unable to determine source job|adoption failure", re.IGNORECASE
)
#: Words of pam_nologin and pam_limits, then of pam_unix: whole sentences, which no banner has.
_CLOSED = re.compile(
    r"Unprivileged users are not permitted to log in|There were too many logins for"
)
_EXPIRED = re.compile(
    r"(?:Your|This) (?:account|password) has (?:expired|been disabled|been locked)"
    r"|You are required to change your password immediately",
    re.IGNORECASE,
)
ASKS = frozenset({"password", "keyboard-interactive"})


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
    said = text_of(attempt.said)
    told = explain_adopt(attempt.host, said) or explain_account(attempt.host, said)
    if told is not None:
        return told
    raw = raw_of(f"{said}\n{error}")
    if "HostKeyNotVerifiable" in kinds:
        failure = explain_key(
            attempt.host,
            attempt.settings,
            attempt.known,
            attempt.shown,
            shown_ca=attempt.shown_ca,
            error=str(error),
        )
        return failure if failure.raw else replace(failure, raw=raw)
    if "PermissionDenied" in kinds:
        return replace(_explain_denied(attempt), raw=raw)
    if "KeyExchangeFailed" in kinds:
        sentence = (
            f"{attempt.host} and slurmtop have no kind of encryption or host key in common: "
            f"{visible(str(error))}"
        )
        return Failure(Trouble.OTHER, sentence, raw, REFUSED_AGAIN_S)
    if "ChannelOpenError" in kinds:
        sentence = (
            f"The jump host could not open a way to {attempt.host}: {visible(str(error))}; "
            f"`ssh {attempt.host}` by hand shows more."
        )
        return Failure(Trouble.DOWN, sentence, raw)
    if isinstance(error, OSError) or "TimeoutError" in kinds:
        return explain_network(attempt.host, attempt.settings.port, error, raw, said)
    if "login timeout" in str(error).lower():
        return explain_network(attempt.host, attempt.settings.port, TimeoutError(), raw, said)
    if kinds & {"ConnectionLost", "DisconnectError"}:
        return closed_early(attempt.host, raw, str(error), said)
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
    return Failure(Trouble.DENIED, sentence, raw_of(said), NEVER)


def explain_account(host: str, said: str) -> Failure | None:
    """What PAM says of an account or of the whole node, None where ``said`` is no such thing."""
    for line in said.split("\n"):
        words = visible(line.strip())[:_WORDS_CHARS]
        if _EXPIRED.search(line):
            sentence = f"{host} refuses this account; it said {words!r}."
            return Failure(Trouble.DENIED, sentence, raw_of(said), REFUSED_AGAIN_S)
        if _CLOSED.search(line):
            sentence = f"{host} lets nobody in just now, or no more; it said {words!r}."
            return Failure(Trouble.BUSY, sentence, raw_of(said))
    return None


def explain_no_shell(host: str, rc: int | None, stdout: bytes, stderr: bytes) -> Failure:
    """The login worked, but our command was never run by a shell."""
    said = "\n".join(filter(None, (text_of(stdout), text_of(stderr))))
    told = explain_adopt(host, said)
    if told is not None:
        return told
    words = _first_line(said)
    if rc is None:
        sentence = (
            f"{host} let us in, but its login shell did not get as far as our command in time: "
            f"a home folder that hangs, or a slow .bashrc."
        )
        return Failure(Trouble.TIMEOUT, sentence, raw_of(said))
    if rc == 127 or "command not found" in said.lower():
        sentence = f"{host} let us in, but has no /bin/sh or no head there: {words or 'no word'}."
    elif "not available" in said or "nologin" in said:
        sentence = f"{host} has no login shell for this account: it said {words!r}."
    else:
        sentence = (
            f"{host} let us in, but ran something else than our command (a forced command, a menu "
            f"or a restricted shell); it said {words!r}."
        )
    return Failure(Trouble.DENIED, sentence, raw_of(said), REFUSED_AGAIN_S)


def explain_broken(host: str, error: BaseException | None) -> Failure:
    """The connection broke while something ran on the node."""
    why = f" ({visible(str(error))})" if error is not None and str(error) else ""
    sentence = (
        f"The connection to {host} broke{why}: the node, its sshd or the network between went away."
    )
    return Failure(Trouble.DOWN, sentence, raw_of("" if error is None else str(error)))


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
    return Failure(Trouble.BUSY, sentence, raw_of(error))


def on_the_way(host: str, jump: str, failure: Failure) -> Failure:
    """``failure`` of a jump host, told of the host behind it."""
    sentence = f"On the way to {host} by the jump host {visible(jump)}: {failure.sentence}"
    return replace(failure, sentence=sentence)


def explain_left_to_ssh(host: str, what: str) -> Failure:
    """A setting that only the ``ssh`` command itself can follow."""
    sentence = f"{host} is reached with {what}, which is left to the ssh command."
    return Failure(Trouble.OTHER, sentence, "", NEVER)


# What our own connection met


def _explain_denied(attempt: Attempt) -> Failure:
    host, methods = attempt.host, frozenset(attempt.methods)
    if not methods:
        # A key, a password and an answer were not asked for: what is left needs none of them.
        return explain_left_to_ssh(host, "a login of another kind (host-based or GSSAPI)")
    if methods <= ASKS:
        return asks(host, attempt.methods)
    if attempt.locked and not attempt.keys:
        path = shlex.quote(visible(attempt.locked[0]))
        sentence = (
            f"The key {path} has a passphrase and no agent holds it, so {host} could not be logged "
            f"in to: run `ssh-add {path}`, then start slurmtop again from that shell."
        )
        return Failure(Trouble.DENIED, sentence, "", REFUSED_AGAIN_S)
    if not attempt.keys:
        sentence = (
            f"There is no ssh key for {attempt.user} on {host}, neither a file nor in an agent: "
            f"make one with `ssh-keygen` and put it there with `ssh-copy-id {host}`."
        )
        return Failure(Trouble.DENIED, sentence, "", REFUSED_AGAIN_S)
    return refused_keys(host, attempt.user, attempt.methods)


def asks(host: str, methods: tuple[str, ...]) -> Failure:
    sentence = (
        f"{host} asks questions at its login ({visible(', '.join(methods))}), which slurmtop never "
        f"answers: set up a key (`ssh-copy-id {host}`), or log in once with a ControlMaster that "
        f"stays open, which slurmtop then uses."
    )
    return Failure(Trouble.DENIED, sentence, "", REFUSED_AGAIN_S)


def refused_keys(host: str, user: str, methods: tuple[str, ...]) -> Failure:
    offers = f" (it offers {visible(', '.join(methods))})" if methods else ""
    sentence = (
        f"{host} refused every key of {user or 'this user'}{offers}: put one there with "
        f"`ssh-copy-id {host}`; `ssh -v {host}` shows which were tried."
    )
    return Failure(Trouble.DENIED, sentence, "", REFUSED_AGAIN_S)


def explain_network(
    host: str, port: int | None, error: BaseException, raw: str, said: str = ""
) -> Failure:
    """What the network said of ``host``; ``port`` None where nobody told it."""
    at = "" if port is None else f" on port {port}"
    if isinstance(error, socket.gaierror):
        sentence = (
            f"The name {host} is not known on this machine: see HostName in the ssh settings, "
            f"or ask your site how its nodes are called from here."
        )
        return Failure(Trouble.OTHER, sentence, raw, REFUSED_AGAIN_S)
    if isinstance(error, TimeoutError):
        sentence = f"{host} did not answer in time (ssh{at}): it is down or very busy."
        return Failure(Trouble.TIMEOUT, sentence, raw)
    code = error.errno if isinstance(error, OSError) else None
    match code:
        case errno.ECONNREFUSED:
            sentence = f"{host} refuses connections{at}: no sshd is running there."
            return Failure(Trouble.DOWN, sentence, raw)
        case errno.EHOSTUNREACH | errno.ENETUNREACH:
            sentence = f"There is no route to {host}: it is down, or not on this network."
            return Failure(Trouble.DOWN, sentence, raw)
        case errno.EMFILE | errno.ENFILE:
            sentence = f"{host} was not tried: too many files and connections are open here."
            return Failure(Trouble.LOCAL, sentence, raw)
        case errno.ECONNRESET | errno.EPIPE:
            return closed_early(host, raw, str(error), said)
        case _:
            sentence = f"ssh to {host}{at} failed: {visible(str(error))}."
            return Failure(Trouble.DOWN, sentence, raw)


def closed_early(host: str, raw: str, error: str, said: str) -> Failure:
    """The connection was closed before the login was done; ``said`` are the node's own words."""
    if "too many authentication" in f"{error}\n{said}".lower():
        sentence = (
            f"{host} ended the login after too many keys: name the right one with IdentityFile and "
            f"IdentitiesOnly in the ssh settings."
        )
        return Failure(Trouble.DENIED, sentence, raw, REFUSED_AGAIN_S)
    if words := last_line(said):
        sentence = f"{host} closed the connection before the login was done; it said {words!r}."
        return Failure(Trouble.BUSY, sentence, raw)
    sentence = (
        f"{host} closed the connection before the login was done: too many logins at once "
        f"(MaxStartups), or this account or machine is not let in."
    )
    return Failure(Trouble.BUSY, sentence, raw)


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\r", "").strip()


def raw_of(text: str) -> str:
    return text.strip()[-_RAW_CHARS:]


def _first_line(text: str) -> str:
    return next(
        (visible(line.strip())[:_WORDS_CHARS] for line in text.split("\n") if line.strip()), ""
    )


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return visible(lines[-1])[:_WORDS_CHARS].rstrip(".") if lines else ""
