"""What ``ncclras --format json`` prints, where it stands in a log.

Source: NCCL 2.28 to 2.30, ``src/ras/client_support.cc``, for example::

      "communicators": [ { "hash": "0x5f", "size": 2, "ranks": [ { "rank": 0, "host": "10.0.0.1",
      "collective_counts": { "AllReduce": 17, … } } ], "missing_ranks": [ … ] } ]

The same findings as in the text, worked out of the ranks that it lists.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator

from slurmtop.model.events.reports import RasComm, RasRank, RasSummary
from slurmtop.model.trace import Event, Where
from slurmtop.parse.logs.block import shown
from slurmtop.parse.logs.line import Message

_BEGINS = '"nccl_version"'
_NEEDED = '"communicators'
_MOST_CHARS = 8_000_000
#: Of a mismatch, ranks are listed of groups up to this many, as the text does.
_LISTED = 10
#: ncclSuccess and ncclInProgress.
_FINE = (0, 7)


class RasJsonReader:
    """One document at a time; a broken one says nothing."""

    words: tuple[bytes, ...] = (b'"nccl_version"',)

    def __init__(self) -> None:
        self._fresh()

    def _fresh(self) -> None:
        self._lines: list[Message] = []
        self._parts: list[str] = []
        self._depth = 0
        self._chars = 0

    @property
    def open(self) -> bool:
        return bool(self._parts)

    def see(self, message: Message) -> Iterable[Event]:
        text = message.text
        if not self._parts:
            if _BEGINS not in text:
                return
            self._lines = [message]
            if "{" not in text.partition(_BEGINS)[0]:
                text = "{" + text[text.index(_BEGINS) :]
            else:
                text = text[text.index("{") :]
        self._parts.append(text)
        self._chars += len(text)
        self._depth += text.count("{") - text.count("}")
        if self._depth <= 0 or self._chars > _MOST_CHARS:
            document, place = "\n".join(self._parts), shown(self._lines)
            self._fresh()
            yield from _document(document, place)

    def finish(self) -> Iterable[Event]:
        return ()


def _document(text: str, at: Where) -> Iterator[Event]:
    if _NEEDED not in text:
        return
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return
    comms = document.get("communicators") if isinstance(document, dict) else None
    if not isinstance(comms, list):
        return
    findings = [event for comm in comms if isinstance(comm, dict) for event in _comm(comm, at)]
    yield from findings
    version = document.get("nccl_version")
    sizes = [size for comm in comms if isinstance(comm, dict) and (size := _int(comm, "size"))]
    yield RasSummary(
        at=at,
        version=version if isinstance(version, str) else None,
        ranks=max(sizes, default=None),
        all_ok=not findings if comms else None,
    )


def _comm(comm: dict[str, object], at: Where) -> Iterator[RasComm]:
    name = str(comm.get("hash", "")).removeprefix("0x") or None
    ranks = _dicts(comm.get("ranks"))
    missing = _dicts(comm.get("missing_ranks"))
    silent = [rank for rank in missing if _flag(rank, "unresponsive")]
    dead = [rank for rank in missing if _flag(rank, "considered_dead")]
    if silent or dead:
        listed = tuple(_rank(rank) for rank in missing if rank in silent or rank in dead)
        yield RasComm(at=at, comm_id=name, errors=("INCOMPLETE",), missing=listed, dead=bool(dead))
    gone = tuple(
        _rank(rank, status="NOCOMM") for rank in missing if rank not in silent and rank not in dead
    )
    states = Counter(_state(rank) for rank in ranks)
    if gone or len(states) > 1:
        usual = states.most_common(1)[0][0] if states else ""
        odd = tuple(_rank(rank, status=_state(rank)) for rank in ranks if _state(rank) != usual)
        listed = gone + odd if len(odd) <= _LISTED else gone
        yield RasComm(at=at, comm_id=name, errors=("MISMATCH",), ranks=listed)
    failed = [rank for rank in ranks if _failed(rank)]
    if failed:
        yield RasComm(
            at=at, comm_id=name, errors=("ERROR",), ranks=tuple(map(_rank, failed[:_LISTED]))
        )
    yield from _counts(name, ranks, at)


def _counts(name: str | None, ranks: list[dict[str, object]], at: Where) -> Iterator[RasComm]:
    counted = [(rank, _dict(rank.get("collective_counts"))) for rank in ranks]
    operations = dict.fromkeys(op for _, counts in counted for op in counts)
    for op in list(operations)[:64]:
        groups = Counter(_int(counts, op) or 0 for _, counts in counted)
        if len(groups) < 2:
            continue
        listed: list[RasRank] = []
        for launched, size in groups.most_common():
            if size <= _LISTED and size * 2 <= len(ranks):
                listed += [
                    _rank(rank, launched=launched)
                    for rank, counts in counted
                    if (_int(counts, op) or 0) == launched
                ]
        yield RasComm(
            at=at,
            comm_id=name,
            errors=("MISMATCH",),
            op=op,
            counts=tuple((size, launched) for launched, size in groups.most_common()),
            ranks=tuple(listed[:4096]),
        )


def _rank(
    rank: dict[str, object], launched: int | None = None, status: str | None = None
) -> RasRank:
    pid, gpu, host = _int(rank, "pid"), _int(rank, "cuda_dev"), rank.get("host")
    return RasRank(
        rank=_int(rank, "rank") or 0,
        gpu=None if gpu is None else str(gpu),
        pid=pid if pid is not None and pid > 0 else None,
        node=host if isinstance(host, str) and host != "unknown" else None,
        launched=launched,
        status=status,
    )


def _state(rank: dict[str, object]) -> str:
    if _flag(rank, "abort_flag"):
        return "ABORT"
    if _flag(rank, "finalize_called") or _flag(rank, "destroy_flag"):
        return "FINALIZE"
    return "RUNNING" if _int(_dict(rank.get("status")), "init_state") in (0, None) else "INIT"


def _failed(rank: dict[str, object]) -> bool:
    status = _dict(rank.get("status"))
    return any((_int(status, name) or 0) not in _FINE for name in ("init_state", "async_error"))


def _flag(rank: dict[str, object], name: str) -> bool:
    return _dict(rank.get("status")).get(name) is True


def _int(values: dict[str, object], name: str) -> int | None:
    value = values.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _dict(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _dicts(value: object) -> list[dict[str, object]]:
    """The entries of a list that tell their rank; nobody is called by a rank that is not told."""
    if not isinstance(value, list):
        return []
    return [entry for entry in value if isinstance(entry, dict) and _int(entry, "rank") is not None]
