"""NCCL's own lines in a log (``NCCL_DEBUG``): the reader that the log is shown to.

Source: NCCL 2.2 to 2.32, RCCL, and the plugins that log through them; ``docs/logs.md`` lists the
forms. A prefix may still stand before the message, so that everything is searched for::

    node-a:815:864 [0] NCCL INFO Using network IB
    node-a:815:864 [0] transport/net_ib.cc:93 NCCL WARN NET/IB : Got async event : port error

The calls of collectives (``opCount``) are another reader's.
"""

import re
from collections.abc import Callable, Hashable, Iterable

from slurmtop.model.events.nccl import (
    ClosedByLocalRank,
    Connected,
    NcclChain,
    NcclRetry,
    NcclWarn,
    Warn,
)
from slurmtop.model.trace import Event, Where
from slurmtop.parse.logs.line import Message
from slurmtop.parse.logs.nccl_init import (
    read_addresses,
    read_channel,
    read_comm,
    read_network,
    read_setting,
    read_timings,
    read_version,
)
from slurmtop.parse.logs.nccl_peer import PEER, number, peer_name
from slurmtop.parse.logs.nccl_warn import read_warn

#: Statements remembered as already made; beyond it a new one is no longer told apart.
_REMEMBERED = 100_000
#: The same warning of one process is kept that often: a broken queue pair says it for each of
#: thousands of requests.
_SAME_WARNINGS = 8

#: Up to 2.2 the word NCCL was missing, and the process in front tells the speaker.
_OLD_INFO = re.compile(r"(?:^|:\d{1,10} \[-?\d{1,3}\] )INFO ")
_OLD_HEAD = re.compile(r":\d{1,10} \[-?\d{1,3}\]$")
_CHAIN = re.compile(
    r"(?P<file>[\w./+-]{1,200}\.(?:cc|cpp|cu|c|hpp|h)):\d{1,6}(?: \(\w{1,80}\))? ?-> ?"
    r"(?P<result>\d{1,2})(?!\d)"
)
_CLOSED_LOCAL = re.compile(r"Connection closed by localRank (\d{1,6})")
_RETRY = re.compile(
    r"(?:[Cc]onnect to " + PEER + r"(?:<\d{0,5}>)? |onnect: )?(?:connect )?returned "
    r"(?P<error>[A-Z][^,\n]{2,80}), retrying(?: \((?P<attempt>\d{1,9})/(?P<attempts>\d{1,9})\))?"
)
#: In progress is no failure.
_NO_FAILURES = frozenset((0, 7))

_Reading = Callable[["NcclReader", str, Where], Iterable[Event]]


class NcclReader:
    """Reads one source's lines of NCCL; holds only what it has said before."""

    words: tuple[bytes, ...] = (b"NCCL", b" WARN ", b"] INFO ", b"RCCL version")

    def __init__(self) -> None:
        self._said: dict[Hashable, int] = {}
        self._cuda: dict[Hashable, NcclWarn] = {}
        self._late_retries: dict[Hashable, NcclRetry] = {}
        self._ways: set[Hashable] = set()

    @property
    def open(self) -> bool:
        return False

    def see(self, message: Message) -> Iterable[Event]:
        text, at = message.text, message.at
        _, mark, info = text.partition("NCCL INFO ")
        if mark:
            return self._info(info, at)
        if "WARN " in text:
            warn = read_warn(text, at)
            if warn is not None:
                return self._warn(warn)
        if "CCL version" in text:
            version = read_version(text, at)
            return () if version is None else self._new(version, version.version)
        old = _OLD_INFO.search(text)
        if old is not None and (old.start() or _OLD_HEAD.search(message.head) is not None):
            return self._info(text[old.end() :], at)
        return ()

    def finish(self) -> Iterable[Event]:
        late = sorted(self._late_retries.values(), key=lambda retry: retry.at.order)
        self._late_retries = {}
        return late

    def _info(self, text: str, at: Where) -> Iterable[Event]:
        if "opCount" in text:
            return ()
        for word, reading in _READINGS:
            if word in text:
                events = reading(self, text, at)
                if events:
                    return events
        return ()

    def _warn(self, warn: NcclWarn) -> Iterable[Event]:
        warn = self._after_cuda(warn)
        words: Hashable = warn.text[:80] if warn.kind in (Warn.OTHER, Warn.BENIGN) else None
        told = (warn.kind, warn.peer, warn.status, warn.vendor, warn.call, warn.error, warn.device)
        more = (warn.ranks, warn.sizes, warn.remote_gid, words)
        return self._new(warn, (told, more), times=_SAME_WARNINGS)

    def _after_cuda(self, warn: NcclWarn) -> NcclWarn:
        """``Failed to CUDA calloc`` means what the failure before it says, if one stands there."""
        process = _process(warn.at)
        if warn.kind in (Warn.CUDA, Warn.NVLS) and len(self._cuda) < _REMEMBERED:
            self._cuda[process] = warn
            return warn
        before = self._cuda.pop(process, None)
        if before is None or warn.kind is not Warn.OUT_OF_MEMORY or warn.error is not None:
            return warn
        return NcclWarn(
            at=warn.at, kind=before.kind, text=warn.text, error=before.error, status=before.status
        )

    def _new(self, event: Event, *key: Hashable, times: int = 1) -> tuple[Event, ...]:
        """The event, unless its process said the same ``times`` times before."""
        whole = (type(event), _process(event.at), key)
        count = self._said.get(whole, 0)
        if count >= times or (not count and len(self._said) >= _REMEMBERED):
            return ()
        self._said[whole] = count + 1
        return (event,)

    def _settings(self, text: str, at: Where) -> Iterable[Event]:
        setting = read_setting(text, at)
        return () if setting is None else self._new(setting, setting.name, setting.value)

    def _addresses(self, text: str, at: Where) -> Iterable[Event]:
        found: list[Event] = []
        for address in read_addresses(text, at):
            found += self._new(address, address.interface, address.address)
        return found

    def _networks(self, text: str, at: Where) -> Iterable[Event]:
        network = read_network(text, at)
        return () if network is None else self._new(network, network.name)

    def _comms(self, text: str, at: Where) -> Iterable[Event]:
        comm = read_comm(text, at)
        return () if comm is None else (comm,)

    def _timings(self, text: str, at: Where) -> Iterable[Event]:
        timings = read_timings(text, at)
        return () if timings is None else (timings,)

    def _versions(self, text: str, at: Where) -> Iterable[Event]:
        version = read_version(text, at)
        return () if version is None else self._new(version, version.version)

    def _channels(self, text: str, at: Where) -> Iterable[Event]:
        # Thousands of lines tell the same few ways: most need no pattern.
        way = (_process(at), text.rpartition(" via ")[2])
        if way in self._ways:
            return ()
        channel = read_channel(text, at)
        if channel is None:
            return ()
        if len(self._ways) < _REMEMBERED:
            self._ways.add(way)
        return self._new(channel, channel.via)

    def _connected(self, text: str, at: Where) -> Iterable[Event]:
        if "Connected all" not in text:
            return ()
        return self._new(Connected(at=at))

    def _closed(self, text: str, at: Where) -> Iterable[Event]:
        found = _CLOSED_LOCAL.search(text)
        if found is None:
            return ()
        closed = ClosedByLocalRank(at=at, local_rank=int(found[1]))
        return self._new(closed, closed.local_rank, times=_SAME_WARNINGS)

    def _retries(self, text: str, at: Where) -> Iterable[Event]:
        found = _RETRY.search(text)
        if found is None:
            return ()
        retry = NcclRetry(
            at=at,
            error=found["error"].strip(),
            peer=peer_name(found["peer"]),
            attempt=number(found["attempt"]),
            attempts=number(found["attempts"]),
        )
        first = self._new(retry, retry.error, retry.peer)
        key = (_process(at), retry.error, retry.peer)
        if not first and (key in self._late_retries or len(self._late_retries) < _REMEMBERED):
            self._late_retries[key] = retry
        return first

    def _foreign(self, text: str, at: Where) -> Iterable[Event]:
        warn = read_warn("NCCL WARN " + text, at)
        return () if warn is None or warn.kind is not Warn.FOREIGN else self._warn(warn)

    def _chains(self, text: str, at: Where) -> Iterable[Event]:
        found = _CHAIN.search(text) if ".c" in text or ".h" in text else None
        if found is None or int(found["result"]) in _NO_FAILURES:
            return ()
        chain = NcclChain(at=at, file=found["file"], result=int(found["result"]))
        return self._new(chain, chain.result)


#: A word that the message must hold, and who reads it then; the frequent ones first.
_READINGS: tuple[tuple[str, _Reading], ...] = (
    (" via ", NcclReader._channels),
    ("comm ", NcclReader._comms),
    ("Connected all", NcclReader._connected),
    ("localRank", NcclReader._closed),
    (" set ", NcclReader._settings),
    ("Using", NcclReader._addresses),
    ("etwork ", NcclReader._networks),
    ("plugin", NcclReader._networks),
    ("No device found", NcclReader._networks),
    ("Init timings", NcclReader._timings),
    ("CCL version", NcclReader._versions),
    (", retrying", NcclReader._retries),
    ("magic", NcclReader._foreign),
    ("socket hello", NcclReader._foreign),
    ("andshake receive", NcclReader._foreign),
    ("->", NcclReader._chains),
)


def _process(at: Where) -> Hashable:
    """Whose words these are, as far as the line tells."""
    return (at.host, at.pid, at.rank, at.task, at.label, at.local_rank, at.attempt)
