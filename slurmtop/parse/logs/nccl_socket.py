"""Warnings of NCCL's sockets and of its bootstrap, of all ages.

Source: ``include/socket.h`` (to 2.10), ``misc/socket.cc`` (to 2.28), ``os/linux.cc`` and
``transport/net_socket*``, ``bootstrap*`` of NCCL 2.2 to 2.32::

    Call to connect failed : Connection timed out
    socketPollConnect: Connect to 10.0.0.4<56849> returned 113(No route to host) errno 115(…)
    ncclOsSocketProgressOpt: Call to recv from 10.0.0.5<33759> failed : Connection reset by peer
    Bootstrap Root : rank 1 of 8 ranks has already checked in
"""

import re

from slurmtop.model.events.nccl import Warn
from slurmtop.parse.logs.nccl_peer import PEER, Told, peer_name

_ERROR = r"(?P<error>[^,\n()]{1,100})"
_CLOSED = re.compile(r"onnection closed by(?: remote)? peer(?: " + PEER + r")?")
_CONNECT = (
    re.compile(
        r"\b[Cc]onnect to " + PEER + r"(?:<\d{0,5}>)? (?:has )?(?:failed|returned)"
        r"(?: with error)?\s?:? ?(?:\d{1,4}\()?" + _ERROR
    ),
    re.compile(r"ocketPollConnect to " + PEER + r"(?:<\d{0,5}>)? failed with error " + _ERROR),
    # 2.2 to 2.4 say "timeout" once they have tried often enough, whatever the error was.
    re.compile(r"\bCall to (?P<peer>)connect (?:failed|timeout) ?:? ?" + _ERROR),
    re.compile(r"onnect(?:: )?(?P<peer>)(?:connect )?returned " + _ERROR + r", exceeded"),
    re.compile(
        r"onnect\b.{0,80}?(?P<peer>)(?P<error>exceeded (?:retries|timeouts|error retry count)\b)"
    ),
)
_CALL = re.compile(
    r"\bCall to (?P<call>\w{2,40})(?: [A-Z]\w{1,20}(?: \w{1,20})?)?(?: (?:from|to) "
    + PEER
    + r"(?:<\d{0,5}>)?)?"
    r" (?:failed|returned)\s?:? ?(?:with )?(?:error )?(?P<error>[^\n(,]{0,100})"
)
_TRANSFERS = frozenset(
    ("recv", "send", "recvmsg", "sendmsg", "recvfrom", "sendto", "readv", "writev")
)
#: Errors that only an established connection has.
_BROKEN = re.compile(
    r"Connection reset|Broken pipe|Connection timed out|No route to host|unreachable"
    r"|Software caused connection abort|Transport endpoint|Host is down|Network is down"
)
_SOCKET_TRUNCATED = re.compile(
    r"truncated\s?:?\s{0,4}receiv(?:ing|ed) (\d{1,19}) bytes instead of (\d{1,19})"
)
_MISMATCH_PEER = re.compile(r"\bpeer " + PEER)
_FOREIGN = re.compile(
    r"wrong magic|wrong type -?\d|valid magic|magic mismatch from|before socket hello"
    r"|[Hh]andshake receive from"
)
_FOREIGN_PEER = re.compile(r"(?:\bfrom|\bPeer) " + PEER)
_NO_INTERFACE = re.compile(
    r"(?i)no (?:usable )?(?:socket |listening )?interface found|no valid interface"
    r"|network \S.{0,60}? not found"
)
_BAD_ADDRESS = re.compile(
    r"is neither AF_INET|pair found|getting address info|[Uu]nsupported (?:address|IP) family"
    r"|string too short|Invalid NCCL_COMM_ID"
    r"|Ip address \S{1,100} is invalid|Cannot assign requested address"
)
_CHECKED_IN = re.compile(r"rank (\d{1,9}) of (\d{1,9}) ranks has already checked in")
_RANK_COUNT = re.compile(
    r"mismatch in rank count from procs (\d{1,9}) ?: ?(\d{1,9})"
    r"|mismatch in info from procs, nranks (\d{1,9}) vs (\d{1,9})"
)
_VERSIONS = re.compile(
    r"Mismatched NCCL version detected ?: ?rank (\d{1,9}) version (\d{1,9}) rank (\d{1,9})"
    r" version (\d{1,9})"
)
_LOCAL_REMOTE = re.compile(r"\(local: (\d{1,9}), remote:? (\d{1,9})\)")


def read_bootstrap(text: str) -> Told | None:
    """What the start of a communicator found; None for another message."""
    if (found := _CHECKED_IN.search(text)) is not None:
        return Told(Warn.DUPLICATE_RANK, ranks=(int(found[1]), int(found[2])))
    if (found := _RANK_COUNT.search(text)) is not None:
        counts = (int(found[1] or found[3]), int(found[2] or found[4]))
        # 2.23 compares more than the counts: the same number twice is another difference.
        return Told(Warn.RANK_COUNT if counts[0] != counts[1] else Warn.OTHER, sizes=counts)
    if (found := _VERSIONS.search(text)) is not None:
        return Told(
            Warn.VERSION_MISMATCH,
            ranks=(int(found[1]), int(found[3])),
            sizes=(int(found[2]), int(found[4])),
        )
    if "NCCL" in text and ("version mismatch" in text or "git versions" in text):
        found = _LOCAL_REMOTE.search(text)
        sizes = (int(found[1]), int(found[2])) if found else ()
        return Told(Warn.VERSION_MISMATCH, sizes=sizes)
    if _NO_INTERFACE.search(text) is not None:
        return Told(Warn.NO_INTERFACE)
    return None


def read_socket(text: str) -> Told | None:
    """A message about a connection; None for another one."""
    if _FOREIGN.search(text) is not None:
        peer = _FOREIGN_PEER.search(text)
        return Told(Warn.FOREIGN, peer=peer_name(peer["peer"]) if peer else None)
    if "essage truncated" in text:
        return _truncated(text)
    if _BAD_ADDRESS.search(text) is not None and "Call to bind" not in text and not _connects(text):
        return Told(Warn.BAD_ADDRESS)
    if (found := _CLOSED.search(text)) is not None:
        return Told(Warn.CLOSED, peer=peer_name(found["peer"]))
    for pattern in _CONNECT:
        if (found := pattern.search(text)) is not None:
            kind = Warn.OTHER if ", retrying" in text else Warn.CONNECT
            return Told(kind, peer=peer_name(found["peer"]), error=found["error"].strip(" .:)"))
    return _failed_call(text)


def _connects(text: str) -> bool:
    return "onnect to" in text or "to connect" in text


def _truncated(text: str) -> Told:
    peer = _MISMATCH_PEER.search(text)
    sizes = _SOCKET_TRUNCATED.search(text)
    return Told(
        Warn.SIZE_MISMATCH,
        peer=peer_name(peer["peer"]) if peer else None,
        call=None if "NET/" in text else "bootstrap",
        # What came is what the other end wanted to send.
        sizes=(int(sizes[2]), int(sizes[1])) if sizes else (),
    )


def _failed_call(text: str) -> Told | None:
    found = _CALL.search(text)
    if found is None:
        return None
    call, error = found["call"], found["error"].strip(" .:")
    broken = _BROKEN.search(text)
    if call in _TRANSFERS or broken is not None:
        kind = Warn.RESET
    elif call == "bind" and "Cannot assign" in error:
        kind = Warn.BAD_ADDRESS
    else:
        return None
    return Told(kind, peer=peer_name(found["peer"]), call=call, error=error or None)
