"""Trouble with the store that ranks meet at: waiting, timeouts, lost and refused connections.

Sources: ``TCPStore.cpp``, ``socket.cpp``, ``distributed_c10d.py`` and elastic's rendezvous of
torch 1.8 to 2.13, for example::

    Waiting in store based barrier to initialize process group for rank: 6, key: store_based_…
    torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. 7/8 clients …

A host without IPv6 makes torch complain about IPv6 in every healthy run: such lines are no trouble.
"""

import re
from collections import Counter
from collections.abc import Iterable

from slurmtop.model.events.torch import StoreEvent, StoreTrouble
from slurmtop.model.trace import Event
from slurmtop.parse.logs.line import Message
from slurmtop.parse.logs.torch_words import number, shown

_BARRIER = re.compile(
    r"(?P<how>Waiting in|Timed out initializing process group in) store based barrier\b"
    r"(?:.{0,120}? rank:? ?(?P<rank>\d{1,9}))?"
)
_BARRIER_KEY = re.compile(r"\bkey: (?P<key>[^\s(]{1,120})")
_BARRIER_COUNTS = re.compile(
    r"world_size=(?P<expected>\d{1,9}), (?:worker_count|num_workers_joined)=(?P<joined>\d{1,9})"
    r"(?:, timeout=(?:(?P<d>\d{1,4}) days?, )?(?P<h>\d{1,4}):(?P<m>\d\d):(?P<s>\d\d))?"
)
_CLIENTS = re.compile(
    r"[Tt]imed out after (?P<s>\d{1,9}) seconds waiting for clients"
    r"(?:\. (?P<joined>\d{1,9})/(?P<expected>\d{1,9}) clients joined)?"
)
_UNIQUE_ID = re.compile(
    r"\[(?P<asking>\d{1,9})\] is setting up NCCL communicator and retrieving ncclUniqueId from "
    r"\[(?P<owner>\d{1,9})\](?:.{0,80}? by key '(?P<key>[^']{1,200})')?(?:.{0,200}? got error: "
    r"(?P<why>.{0,200}))?",
    re.DOTALL,
)
_KEY = re.compile(
    r"wait timeout after (?P<ms>\d{1,12})ms, keys: (?P<key>[^\s,]{1,200})"
    r"|Timeout waiting for key: (?P<key2>\S{1,200}) after (?P<ms2>\d{1,12}) ms"
)
_SOCKET_TIMEOUT = re.compile(r"(?:RuntimeError|DistStoreError|DistNetworkError): Socket Timeout")
_CLIENT_SLOW = re.compile(
    r"client socket has timed out after (?P<n>\d{1,12})(?P<unit>ms|s) while trying to connect to "
    r"\(?(?P<host>[^,\s)]{1,255})(?:, (?P<port>\d{1,5}))?"
    r"|connect\(\) timed out\. Original timeout was (?P<ms>\d{1,12}) ms"
)
_CLIENT_FAILED = re.compile(
    r"client socket (?:has failed|cannot be initialized|failed) to connect to "
    r"(?:any network address of )?[\[(]?(?P<host>[^\],\s)]{1,255})(?:[\])]?:|, )?"
    r"(?P<port>\d{1,5})?\)?[.:]? ?(?:\(errno: (?P<errno>\d{1,4}))?"
)
_RESOLVE = re.compile(
    r"The IPv(?P<version>[46]) network addresses of \((?P<host>[^,\s)]{1,255}), (?P<port>\d{1,5})\)"
    r" cannot be retrieved \(gai error: (?P<error>-?\d{1,4})"
)
_LISTEN = re.compile(
    r"server socket has failed to (?:listen on|bind to) (?:any local network address"
    r"|\[?(?P<host>[^\]\s]{1,255}?)\]?:(?P<port>\d{1,5})\s?\(errno: (?P<errno>\d{1,4}))"
    r"|server socket on \S{1,255}:(?P<port2>\d{1,5}) .{0,60}Address already in use"
)
_IN_USE = re.compile(r"EADDRINUSE|[Aa]ddress already in use")
_IN_USE_PORT = re.compile(r"\bport[:=]? ?(?P<port>\d{2,5})\b")
#: Other servers of a program also find their port taken, and go on with the next one.
_OTHER_SERVER = re.compile(
    r"(?i)tensorboard|dashboard|metrics|prometheus|uvicorn|jupyter|notebook|http|wandb|grpc|gradio"
    r"|NCCL (?:WARN|INFO)|bind on address"
)
_BROKEN = re.compile(
    r"(?:recvValue(?:WithTimeout)?|recvVector|sendBytes|sendValue|recvBytes|recv|send) failed on "
    r"Socket(?:Impl)?(?:\((?P<socket>[^)]{0,300})\))?"
    r"|maybe TCPStore server has shut ?down|failed to recv, got \d+ bytes"
    r"|Connection was likely closed\. Did the remote server shutdown"
    r"|DistNetworkError: (?:Connection reset by peer|Broken pipe)"
    r"|TCPStore.{0,200}?(?:Broken pipe|Connection reset by peer)"
    r"|has failed to send a keep-alive .{0,200}? due to an error of type Rendezvous"
)
_REMOTE = re.compile(r"remote=\[(?P<host>[^\]]{1,255})\]:(?P<port>\d{1,5})")
_RENDEZVOUS = re.compile(r"\bRendezvous(?P<what>Timeout|Connection)Error\b")

#: ``errno`` of Linux to what it tells about the other end.
_ERRNO = {
    111: StoreTrouble.REFUSED,
    104: StoreTrouble.RESET,
    110: StoreTrouble.CONNECT_TIMEOUT,
    101: StoreTrouble.NO_HOST,
    113: StoreTrouble.NO_HOST,
}
#: The local host speaks no IPv6.
_NO_FAMILY = 97
_ADDRESS_IN_USE = 98
#: So often the same name is not found before IPv6 alone counts.
_IPV6_TRIES = 5
_MOST_NAMES = 1_000


class StoreReader:
    """Reads the store's lines; see :class:`~slurmtop.parse.logs.line.Reader`."""

    words: tuple[bytes, ...] = (
        b"store based barrier",
        b"waiting for clients",
        b"ncclUniqueId",
        b"wait timeout after",
        b"Timeout waiting for key",
        b"Socket Timeout",
        b"DistNetworkError: ",
        b"client socket",
        b"connect() timed out",
        b"network addresses of",
        b"server socket",
        b"EADDRINUSE",
        b"ddress already in use",
        b"failed on Socket",
        b"TCPStore",
        b"failed to recv, got",
        b"Connection was likely closed",
        b"RendezvousConnectionError",
        b"RendezvousTimeoutError",
    )
    open = False

    def __init__(self) -> None:
        self._unresolved: Counter[tuple[str, str]] = Counter()
        self._told = False

    def see(self, message: Message) -> Iterable[Event]:
        for read in _READS:
            event = read(message)
            if event is not None:
                break
        else:
            event = self._resolve(message) or self._rendezvous(message)
        if event is not None:
            self._told = True
            yield event

    def finish(self) -> Iterable[Event]:
        return ()

    def _resolve(self, message: Message) -> StoreEvent | None:
        found = _RESOLVE.search(message.text)
        if found is None:
            return None
        if found["version"] == "6":
            key = (message.stream, found["host"])
            if len(self._unresolved) < _MOST_NAMES or key in self._unresolved:
                self._unresolved[key] += 1
            if self._unresolved[key] != _IPV6_TRIES:
                return None
        return StoreEvent(
            at=shown(message, found.start()),
            kind=StoreTrouble.NO_HOST,
            host=found["host"],
            port=number(found["port"]),
        )

    def _rendezvous(self, message: Message) -> StoreEvent | None:
        found = _RENDEZVOUS.search(message.text)
        if found is None or " has failed to shut" in message.text:
            # The agents of a job that is over part one after the other.
            return None
        if found["what"] == "Timeout":
            kind = StoreTrouble.CLIENTS_TIMEOUT
        elif self._told:
            # The exception only wraps the one that was told before it.
            return None
        else:
            kind = StoreTrouble.FAILED
        return StoreEvent(at=shown(message, found.start()), kind=kind)


def _barrier(message: Message) -> StoreEvent | None:
    text = message.text
    found = _BARRIER.search(text)
    if found is None:
        return None
    waits = found["how"] == "Waiting in"
    key, counts = _BARRIER_KEY.search(text), _BARRIER_COUNTS.search(text)
    timeout: float | None = None
    if counts is not None and counts["h"] is not None:
        hours = int(counts["d"] or 0) * 24 + int(counts["h"])
        timeout = float(hours * 3_600 + int(counts["m"]) * 60 + int(counts["s"]))
    return StoreEvent(
        at=shown(message, found.start()),
        kind=StoreTrouble.BARRIER_WAITS if waits else StoreTrouble.BARRIER_TIMEOUT,
        joined=number(counts["joined"]) if counts is not None else None,
        expected=number(counts["expected"]) if counts is not None else None,
        asking=number(found["rank"]),
        key=key["key"].rstrip(",") if key is not None else None,
        timeout_s=timeout,
    )


def _clients(message: Message) -> StoreEvent | None:
    found = _CLIENTS.search(message.text)
    if found is None:
        return None
    return StoreEvent(
        at=shown(message, found.start()),
        kind=StoreTrouble.CLIENTS_TIMEOUT,
        joined=number(found["joined"]),
        expected=number(found["expected"]),
        timeout_s=float(found["s"]),
    )


def _unique_id(message: Message) -> StoreEvent | None:
    found = _UNIQUE_ID.search(message.text)
    if found is None:
        return None
    why = (found["why"] or "").lower()
    late = re.search(r"time(?:d )?-?out|wait", why) is not None
    return StoreEvent(
        at=shown(message, found.start()),
        kind=StoreTrouble.KEY_TIMEOUT if late else StoreTrouble.RESET,
        asking=number(found["asking"]),
        owner=number(found["owner"]),
        key=found["key"],
    )


def _key(message: Message) -> StoreEvent | None:
    found = _KEY.search(message.text)
    if found is None:
        late = _SOCKET_TIMEOUT.search(message.text)
        if late is None:
            return None
        return StoreEvent(at=shown(message, late.start()), kind=StoreTrouble.KEY_TIMEOUT)
    limit = number(found["ms"] or found["ms2"])
    return StoreEvent(
        at=shown(message, found.start()),
        kind=StoreTrouble.KEY_TIMEOUT,
        key=found["key"] or found["key2"],
        timeout_s=limit / 1000 if limit is not None else None,
    )


def _client(message: Message) -> StoreEvent | None:
    text = message.text
    if (slow := _CLIENT_SLOW.search(text)) is not None:
        limit = float(slow["n"] or slow["ms"]) / (1 if slow["unit"] == "s" else 1000)
        return StoreEvent(
            at=shown(message, slow.start()),
            kind=StoreTrouble.CONNECT_TIMEOUT,
            host=_host(slow["host"]),
            port=number(slow["port"]),
            timeout_s=limit,
        )
    failed = _CLIENT_FAILED.search(text)
    if failed is None or number(failed["errno"]) == _NO_FAMILY:
        return None
    return StoreEvent(
        at=shown(message, failed.start()),
        kind=_ERRNO.get(number(failed["errno"]) or 0, StoreTrouble.REFUSED),
        host=_host(failed["host"]),
        port=number(failed["port"]),
    )


def _port(message: Message) -> StoreEvent | None:
    text = message.text
    if (found := _LISTEN.search(text)) is not None:
        if found["errno"] is not None and number(found["errno"]) != _ADDRESS_IN_USE:
            return None
        return StoreEvent(
            at=shown(message, found.start()),
            kind=StoreTrouble.PORT_IN_USE,
            port=number(found["port"] or found["port2"]),
        )
    taken = _IN_USE.search(text)
    if taken is None or _OTHER_SERVER.search(text) is not None:
        return None
    port = _IN_USE_PORT.search(text)
    return StoreEvent(
        at=shown(message, taken.start()),
        kind=StoreTrouble.PORT_IN_USE,
        port=number(port["port"]) if port is not None else None,
    )


def _broken(message: Message) -> StoreEvent | None:
    found = _BROKEN.search(message.text)
    if found is None:
        return None
    remote = _REMOTE.search(message.text)
    return StoreEvent(
        at=shown(message, found.start()),
        kind=StoreTrouble.RESET,
        host=_host(remote["host"]) if remote is not None else None,
        port=number(remote["port"]) if remote is not None else None,
    )


def _host(text: str | None) -> str | None:
    return text.removeprefix("::ffff:") or None if text else None


_READS = (_barrier, _clients, _unique_id, _key, _client, _port, _broken)
