"""Lines and events built by hand: who wrote a line, and traces of one or more sources."""

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

from slurmtop.model.events.nccl import Call, CommInit, InitPhase
from slurmtop.model.events.torch import Group, GroupStatus, WatchdogTimeout
from slurmtop.model.trace import Event, RankFrom, Source, Stamp, Traces, Where

_ORDERS = count(1)
DEFAULT_PG = Group(id=0, guid="0", desc="default_pg")


def where(text: str = "a line", *, source: str = "train.log", **more: Any) -> Where:
    """A line; ``order`` and ``line`` count up over a whole test run where they are not given.

    A rank is one of a tag unless ``rank_from`` says otherwise; ``seconds`` gives a wall clock.
    """
    order = more.pop("order", None) or next(_ORDERS)
    if more.get("rank") is not None:
        more.setdefault("rank_from", RankFrom.TAG)
    seconds = more.pop("seconds", None)
    if seconds is not None:
        more["stamp"] = Stamp(float(seconds), zoned=more.pop("zoned", False))
    more.setdefault("line", order)
    more.setdefault("offset", order * 100)
    return Where(source=source, order=order, text=text, **more)


def traces(*events: Event, sources: Iterable[str | Source] = ()) -> Traces:
    """The events as they were read; the sources are theirs, unless they are named."""
    named = [one if isinstance(one, Source) else Source(name=one) for one in sources]
    names = {one.name for one in named}
    for event in events:
        if event.at.source not in names:
            names.add(event.at.source)
            named.append(Source(name=event.at.source))
    return Traces(tuple(named), tuple(events))


def timed_out(
    rank: int,
    seq: int | None = 7,
    op: str = "ALLREDUCE",
    *,
    group: Group | None = DEFAULT_PG,
    numel: int | None = 64,
    group_rank: int | None = None,
    at: Where | None = None,
    **more: Any,
) -> WatchdogTimeout:
    """``[rank3]: … Watchdog caught collective operation timeout`` of one rank."""
    text = f"[rank{rank}]: Watchdog caught collective operation timeout: SeqNum={seq}, {op}"
    return WatchdogTimeout(
        at=at or where(text, rank=rank, **more),
        group_rank=rank if group_rank is None else group_rank,
        group=group,
        seq=seq,
        op=op,
        numel_in=numel,
        numel_out=numel,
        timeout_ms=600_000,
        ran_ms=600_010,
    )


def status(
    rank: int,
    seq: int | None,
    enqueued: int,
    completed: int,
    *,
    group: Group | None = DEFAULT_PG,
    **more: Any,
) -> GroupStatus:
    """``last enqueued work: 9, last completed work: 5`` of one rank."""
    text = f"[rank{rank}]: last enqueued work: {enqueued}, last completed work: {completed}"
    return GroupStatus(
        at=where(text, rank=rank, **more),
        group_rank=rank,
        group=group,
        seq=seq,
        enqueued=enqueued,
        completed=completed,
    )


def init(
    rank: int,
    nranks: int,
    *,
    host: str = "node-a",
    pid: int | None = None,
    comm_id: str | None = "ab12",
    phase: InitPhase = InitPhase.COMPLETE,
    comm: str | None = None,
    **more: Any,
) -> CommInit:
    """``comm 0x… rank 3 nranks 8 … commId 0xab12 - Init COMPLETE``."""
    at = where(
        f"NCCL INFO comm rank {rank} nranks {nranks} - Init {phase.upper()}",
        host=host,
        pid=1000 + rank if pid is None else pid,
        **{name: more.pop(name) for name in list(more) if name in ("source", "seconds", "label")},
    )
    return CommInit(
        at=at,
        phase=phase,
        comm=comm or f"0x{rank + 1:x}",
        rank=rank,
        nranks=nranks,
        comm_id=comm_id,
        **more,
    )


def calls(ops: Sequence[str], *, numel: int = 64) -> tuple[Call, ...]:
    return tuple(Call(op, numel, 7, 0, 0, n) for n, op in enumerate(ops))
