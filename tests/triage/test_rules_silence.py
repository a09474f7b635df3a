"""Silence is never evidence: with less to read, nobody new is blamed; and no traces raise."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from slurmtop.model.events.launch import ElasticFailure, Interrupted
from slurmtop.model.events.nccl import Call, CommCalls, CommInit, InitPhase
from slurmtop.model.events.program import Closing, Doing, Phase, ProgramSays, RankSeen, Step
from slurmtop.model.events.reports import FlightReport, HorovodStall, RasComm, RasRank
from slurmtop.model.events.torch import (
    Desync,
    DumpSignal,
    Fingerprint,
    FingerprintMismatch,
    Group,
    GroupStatus,
    Heartbeat,
    MonitoredBarrier,
    RunningCollective,
    WatchdogTimeout,
)
from slurmtop.model.trace import Event, RankFrom, Source, Stamp, Traces, Where
from slurmtop.triage.collective_table import collective_tables
from slurmtop.triage.join import join
from slurmtop.triage.rules import call_lines, collectives, missing, reported, timeouts

RULES = (collectives.find, reported.find, call_lines.find, missing.find, timeouts.find)
WORLD = 4
RANKS = st.integers(0, WORLD - 1)
SEQS = st.one_of(st.none(), st.integers(0, 4), st.integers(500, 503))
OPS = st.sampled_from(["ALLREDUCE", "BROADCAST", "_ALLGATHER_BASE", "SEND", None])
GROUPS = st.sampled_from(
    [None, Group(id=0, guid="0", desc="default_pg"), Group(id=2, guid="7", desc="tp"), Group(id=3)]
)
MANY = st.sets(RANKS, min_size=1).map(lambda ranks: tuple(sorted(ranks)))
SOME = st.one_of(st.none(), st.integers(0, 6))


@st.composite
def wheres(draw: st.DrawFn, order: int) -> Where:
    rank = draw(st.one_of(st.none(), RANKS))
    own = rank if rank is not None else draw(RANKS)
    source = draw(st.sampled_from(["all.log", f"rank{own}.log"]))
    return Where(
        source=source,
        line=order,
        offset=order * 100,
        order=order,
        text=f"line {order} opCount 0",
        rank=rank,
        rank_from=None if rank is None else draw(st.sampled_from(list(RankFrom))),
        host=draw(st.sampled_from([None, "n1", "n2"])),
        pid=draw(st.sampled_from([None, 10 + own])),
        attempt=draw(st.sampled_from([0, 0, 0, 1])),
        stamp=draw(st.sampled_from([None, Stamp(float(order)), Stamp(order - 5.0, zoned=True)])),
    )


@st.composite
def events(draw: st.DrawFn, order: int) -> Event:
    at = draw(wheres(order))
    rank, seq = draw(RANKS), draw(SEQS)
    own = at.rank if at.rank is not None else rank
    one = replace(at, source="report.log")
    """These reports compare all ranks themselves and stand in one file."""
    of: dict[str, Any] = {"at": at, "group_rank": own, "group": draw(GROUPS)}
    how_far: dict[str, Any] = {"enqueued": draw(SOME), "completed": draw(SOME)}
    op, some, ranks = draw(OPS), draw(SOME), draw(MANY)
    print_ = Fingerprint(rank, seq, op, str(some), "Float")
    call = Call(op or "Reduce", some or 8, 7, 0, 0, 0)
    kinds: list[Callable[[], Event]] = [
        lambda: WatchdogTimeout(**of, seq=seq, op=op, numel_in=some),
        lambda: WatchdogTimeout(**of, seq=500, op=op, numel_in=8),
        lambda: GroupStatus(**of, seq=seq, **how_far),
        lambda: DumpSignal(**of, **how_far),
        lambda: DumpSignal(**of, enqueued=4, completed=4),
        lambda: Heartbeat(**of, pending=some),
        lambda: RunningCollective(**of, print=print_),
        lambda: FingerprintMismatch(**of, here=print_, there=Fingerprint(own, seq, "SEND")),
        lambda: MonitoredBarrier(at=at, late=ranks),
        lambda: Desync(at=at, lagging=ranks),
        lambda: FlightReport(at=one, missing=ranks, expected=tuple(range(WORLD))),
        lambda: HorovodStall(at=one, ready=ranks),
        lambda: RasComm(at=at, comm_id="a", missing=(RasRank(rank),), dead=some == 1),
        lambda: Phase(at=at, doing=draw(st.sampled_from(Doing)), over=some == 1),
        lambda: Step(at=at, done=seq),
        lambda: ProgramSays(at=at, closing=draw(st.sampled_from(Closing)), rank=some),
        lambda: Interrupted(at=at),
        lambda: ElasticFailure(at=at, rank=rank, host="n1", exit_code=-6),
        lambda: CommInit(
            at=at,
            phase=draw(st.sampled_from(InitPhase)),
            comm=draw(st.sampled_from(["0x1", "0x2", "bad"])),
            rank=own,
            nranks=WORLD,
            comm_id=draw(st.sampled_from(["a", None])),
            parent=draw(st.sampled_from([None, "0x1", "0x0"])),
            split=some,
        ),
        lambda: CommCalls(
            at=at,
            comm="0x1",
            nranks=WORLD,
            collectives=2,
            last=(Call("AllReduce", 8, 7, 0, 0, 0), call),
            last_at=(at, at),
            sends=((rank, 2),),
            first_at=at,
        ),
    ]
    return draw(st.sampled_from(kinds))()


@st.composite
def readings(draw: st.DrawFn) -> Traces:
    count = draw(st.integers(1, 12))
    head: list[Event] = [
        RankSeen(at=Where(source="all.log", line=1, offset=0, order=0, text="world 4"), world=WORLD)
    ]
    found = head + [draw(events(order)) for order in range(1, count + 1)]
    names = sorted({event.at.source for event in found})
    return Traces(tuple(Source(name=name) for name in names), tuple(found))


def blamed(read: Traces) -> set[int]:
    picture = join(read)
    return {
        culprit.rank
        for rule in RULES
        for finding in rule(picture)
        for culprit in finding.culprits
        if culprit.rank is not None
    }


@settings(max_examples=50, deadline=None)
@given(readings(), st.randoms())
def test_no_order_and_no_loss_of_lines_raises(read: Traces, chance: object) -> None:
    shuffled = list(read.events)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    for kept in (read.events, shuffled, shuffled[::2]):
        some = Traces(read.sources, tuple(kept))
        blamed(some)
        collective_tables(join(some))


@settings(max_examples=100, deadline=None)
@given(readings(), st.data())
def test_a_source_that_says_nothing_makes_nobody_new_a_culprit(
    read: Traces, data: st.DataObject
) -> None:
    dropped = data.draw(st.sampled_from([source.name for source in read.sources]))
    rest = Traces(read.sources, tuple(e for e in read.events if e.at.source != dropped))
    assert blamed(rest) <= blamed(read)


DEFAULT = Group(id=0, guid="0", desc="default_pg")


def own_log(rank: int, op: str, seq: int, idle: bool) -> tuple[Event, ...]:
    """The log of one rank: it waits in an operation, or says that all it launched is done."""
    at = Where(
        source=f"rank{rank}.log",
        line=1,
        offset=0,
        order=1,
        text="[rank]: …",
        rank=rank,
        rank_from=RankFrom.TAG,
    )
    size = RankSeen(at=replace(at, order=0), world=6)
    if idle:
        done = DumpSignal(at=at, group_rank=rank, group=DEFAULT, enqueued=seq, completed=seq)
        return (size, done)
    return (size, WatchdogTimeout(at=at, group_rank=rank, group=DEFAULT, seq=seq, op=op))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ALLREDUCE", "ALLREDUCE", "BROADCAST"]),
            st.sampled_from([7, 7, 7, 6]),
            st.sampled_from([False, False, True]),
        ),
        min_size=2,
        max_size=6,
    ),
    st.sets(st.integers(0, 5)),
)
def test_logs_that_are_lost_make_nobody_a_minority(
    told: list[tuple[str, int, bool]], lost: set[int]
) -> None:
    logs = [own_log(rank, *one) for rank, one in enumerate(told)]
    sources = tuple(Source(name=f"rank{rank}.log") for rank in range(len(logs)))
    whole = Traces(sources, tuple(event for log in logs for event in log))
    kept = tuple(event for rank, log in enumerate(logs) if rank not in lost for event in log)
    assert blamed(Traces(sources, kept)) <= blamed(whole)


@settings(max_examples=50, deadline=None)
@given(st.sets(RANKS, min_size=1), st.integers(2, 9))
def test_ranks_that_only_wait_are_never_culprits(waiting: set[int], seq: int) -> None:
    found = tuple(
        WatchdogTimeout(
            at=Where(
                source="all.log",
                line=n,
                offset=n,
                order=n,
                text="Watchdog caught",
                rank=rank,
                rank_from=RankFrom.TAG,
            ),
            group_rank=rank,
            group=DEFAULT,
            seq=seq,
            op="ALLREDUCE",
        )
        for n, rank in enumerate(sorted(waiting))
    )
    assert blamed(Traces((Source(name="all.log"),), found)) == set()
