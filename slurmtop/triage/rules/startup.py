"""Start-up: the meeting of all ranks, ports, rank numbers and GPUs given twice, slow set-up."""

import re
from collections.abc import Iterable, Iterator, Sequence

from slurmtop.model.events.nccl import Channel, CommInit, InitTimings, NcclWarn, Warn
from slurmtop.model.events.program import PyException
from slurmtop.model.events.system import Limit, LimitHit
from slurmtop.model.events.torch import StoreEvent, StoreTrouble
from slurmtop.model.trace import Event
from slurmtop.model.verdict import Culprit, State
from slurmtop.triage.finding import Finding, Weight
from slurmtop.triage.picture import Picture
from slurmtop.triage.rules import lines

_IN_USE = re.compile(r"address already in use|EADDRINUSE", re.IGNORECASE)
_PORT = re.compile(r"[\])\w]:(\d{2,5})\b(?! ?\))|\bport:? ?(\d{2,5})\b")
_BAD_RANK = re.compile(r"[Ii]nvalid rank requested|[Ii]nvalid number of ranks")
_WAITING = (
    StoreTrouble.BARRIER_WAITS,
    StoreTrouble.BARRIER_TIMEOUT,
    StoreTrouble.CLIENTS_TIMEOUT,
)
#: Set-up of a communicator: usual up to this, and a little more for every rank.
_SLOW_S = 30.0
_SLOW_S_PER_RANK = 0.02


def find(picture: Picture) -> Iterable[Finding]:
    yield from _port(picture)
    yield from _meeting(picture)
    yield from _keys(picture)
    yield from _duplicate_rank(picture)
    yield from _rank_counts(picture)
    yield from _duplicate_gpu(picture)
    yield from _slow_init(picture)
    yield from _in_set_up(picture)


def _port(picture: Picture) -> Iterator[Finding]:
    told: list[Event] = [
        one for one in picture.of(StoreEvent) if one.kind is StoreTrouble.PORT_IN_USE
    ]
    told += [one for one in picture.of(NcclWarn) if _IN_USE.search(f"{one.text} {one.error}")]
    told += [
        one
        for one in picture.of(PyException)
        if not one.swallowed and _IN_USE.search(f"{one.name} {one.message}")
    ]
    began = lines.Began(picture)
    told = [one for one in told if not began.after(one.at, surely=True)]
    if not told or any(one.limit is Limit.FILES for one in picture.of(LimitHit)):
        return  # without file descriptors a free port cannot be bound either
    told = lines.in_time(picture, told)
    port = next((found for one in told if (found := _port_of(one))), None)
    yield Finding(
        cls="port-in-use",
        weight=Weight.OUTRIGHT,
        summary=f"port {port} was already taken" if port else "the port was already taken",
        state=State.FAILED,
        at=told[0].at,
        shown=lines.lines(picture, told, "the port is taken"),
        explains=lines.AFTER_A_DEATH,
    )


def _port_of(event: Event) -> str | None:
    if isinstance(event, StoreEvent) and event.port:
        return str(event.port)
    found = _PORT.search(event.at.text)
    return None if found is None else found[1] or found[2]


def _meeting(picture: Picture) -> Iterator[Finding]:
    """The store's barrier or the wait for clients: too few came, or more than there can be."""
    told = [
        one for one in lines.in_time(picture, picture.of(StoreEvent)) if isinstance(one, StoreEvent)
    ]
    began = lines.Began(picture)
    told = [one for one in told if one.kind in _WAITING and not _over(began, one)]
    if not told:
        return
    ended = [one for one in told if one.kind is not StoreTrouble.BARRIER_WAITS]
    last = (ended or told)[-1]
    joined, expected = last.joined, last.expected
    counts = joined is not None and expected is not None
    if joined is not None and expected is not None and joined > expected:
        yield _stale(picture, told, joined, expected)
        return
    if not ended and counts and joined == expected:
        return
    came = f": {joined} of {expected} did" if counts else ""
    yield Finding(
        cls="rendezvous-timeout",
        weight=Weight.PATTERN,
        summary=f"not everybody came to the meeting point in time{came}"
        if ended
        else f"the ranks wait for others at the meeting point{came.replace('did', 'are there')}",
        state=State.FAILED if ended else State.HUNG,
        at=last.at,
        shown=(
            *lines.lines(picture, ended[::-1], "the meeting ended without everybody"),
            *lines.lines(picture, told[::-1], "it waits; the others have not come", limit=3),
        ),
        explains=frozenset(
            {"missing-rank", "bootstrap-unreachable", "python-exception", "peer-died", "task-exit"}
        ),
    )


def _over(began: lines.Began, one: StoreEvent) -> bool:
    """Was it got over? What only waits is, unless it is known to be newer than all progress."""
    return began.after(one.at, surely=one.kind is not StoreTrouble.BARRIER_WAITS)


def _stale(picture: Picture, told: Sequence[StoreEvent], joined: int, expected: int) -> Finding:
    over = [one for one in told if (one.joined or 0) > (one.expected or 0)]
    return Finding(
        cls="stale-rendezvous",
        weight=Weight.CAUSE,
        summary=f"{joined} workers came to a meeting of {expected}: some are of an earlier attempt",
        state=State.FAILED,
        at=over[-1].at,
        shown=lines.lines(picture, over[::-1], "more workers than ranks"),
        explains=lines.AFTER_A_DEATH,
    )


def _keys(picture: Picture) -> Iterator[Finding]:
    """A key that nobody wrote in time."""
    began = lines.Began(picture)
    told = [
        one
        for one in picture.of(StoreEvent)
        if one.kind is StoreTrouble.KEY_TIMEOUT and not _over(began, one)
    ]
    if told:
        yield Finding(
            cls="rendezvous-timeout",
            weight=Weight.SYMPTOM,
            summary="a rank waited in vain for what another one was to write into the store",
            state=State.FAILED,
            at=told[0].at,
            shown=lines.lines(picture, told, "nobody wrote this key in time"),
        )


def _duplicate_rank(picture: Picture) -> Iterator[Finding]:
    warns = [one for one in picture.of(NcclWarn) if one.kind is Warn.DUPLICATE_RANK]
    if not warns:
        return
    first = warns[0]
    rank = first.ranks[0] if first.ranks else None
    # Only in the communicator of all ranks is the number the one people know.
    whole = len(first.ranks) > 1 and first.ranks[1] >= (lines.largest_group(picture) or 0)
    culprits: tuple[Culprit, ...] = ()
    if rank is not None and whole:
        culprits = (Culprit(rank=rank, reason="two processes registered with this number"),)
    yield Finding(
        cls="duplicate-rank",
        weight=Weight.OUTRIGHT,
        summary=f"rank {'number' if rank is None else rank} registered twice",
        state=State.FAILED,
        at=first.at,
        culprits=culprits,
        shown=lines.lines(picture, warns, "this rank had already registered"),
        explains=lines.AFTER_A_DEATH,
    )


def _rank_counts(picture: Picture) -> Iterator[Finding]:
    """Processes that believe in different numbers of ranks."""
    warns: list[Event] = [
        one
        for one in picture.of(NcclWarn)
        if one.kind is Warn.RANK_COUNT or _BAD_RANK.search(one.text)
    ]
    inits: list[Event] = []
    sizes: dict[str, dict[int, CommInit]] = {}
    for one in picture.of(CommInit):
        if one.comm_id is not None and one.parent is None and one.nranks is not None:
            sizes.setdefault(one.comm_id, {}).setdefault(one.nranks, one)
    for by_size in sizes.values():
        if len(by_size) > 1:
            inits += by_size.values()
    barriers = _barrier_sizes(picture)
    told = warns or inits or barriers
    if not told:
        return
    yield Finding(
        cls="rank-count-mismatch",
        weight=Weight.CAUSE if warns or inits else Weight.PATTERN,
        summary="the processes disagree about how many ranks there are",
        state=State.FAILED,
        at=told[0].at,
        shown=(
            *lines.lines(picture, warns, "a rank and the number of ranks do not fit"),
            *lines.lines(picture, inits, "the same communicator with another size"),
            *lines.lines(picture, barriers, "it waits for this number of ranks"),
        ),
        explains=lines.AFTER_A_DEATH,
    )


def _barrier_sizes(picture: Picture) -> list[Event]:
    """One line for each number of ranks that one and the same barrier was told."""
    if lines.Began(picture):
        return []
    by_key: dict[str, dict[int, StoreEvent]] = {}
    for one in picture.of(StoreEvent):
        if one.kind in _WAITING and one.expected is not None and one.key is not None:
            by_key.setdefault(one.key, {}).setdefault(one.expected, one)
    return [one for sizes in by_key.values() if len(sizes) > 1 for one in sizes.values()]


def _duplicate_gpu(picture: Picture) -> Iterator[Finding]:
    warns = [one for one in picture.of(NcclWarn) if one.kind is Warn.DUPLICATE_GPU]
    if not warns:
        return
    reason = "shares a GPU with another rank"
    ranks: dict[int, str | None] = {}
    for one in warns:
        host, own = lines.host_of(picture, one.at), picture.rank_of(one.at)
        # The words count the ranks of a communicator: the same as global ones unless the
        # writer's own number says otherwise.
        same = own is None or (bool(one.ranks) and own in one.ranks)
        for rank in one.ranks if same else (own,):
            if rank is not None:
                ranks.setdefault(rank, host)
    yield Finding(
        cls="duplicate-gpu",
        weight=Weight.OUTRIGHT,
        summary=f"ranks {_listed(ranks)} were given the same GPU"
        if ranks
        else "two ranks were given the same GPU",
        state=State.FAILED,
        at=warns[0].at,
        culprits=tuple(
            Culprit(rank=rank, host=host, gpu=warns[0].device, reason=reason)
            for rank, host in sorted(ranks.items())
        ),
        shown=lines.lines(picture, warns, "two ranks on one GPU"),
        explains=lines.AFTER_A_DEATH,
    )


def _listed(ranks: Iterable[int]) -> str:
    return ", ".join(str(rank) for rank in sorted(ranks))


def _slow_init(picture: Picture) -> Iterator[Finding]:
    slow = [
        one
        for one in picture.of(InitTimings)
        if one.total_s > _SLOW_S + _SLOW_S_PER_RANK * one.nranks
    ]
    if not slow:
        return
    worst = max(slow, key=lambda one: one.total_s)
    part = max(worst.parts, key=lambda pair: pair[1], default=None)
    most = f", most of it in {part[0]}" if part and part[1] > worst.total_s / 2 else ""
    yield Finding(
        cls="slow-init",
        weight=Weight.NOTE,
        summary=f"setting up a communicator took {worst.total_s:.0f} s{most}: slow, not stuck",
        state=State.SLOW,
        at=slow[0].at,
        shown=lines.lines(picture, [worst, *slow], "set-up took this long"),
    )


def _in_set_up(picture: Picture) -> Iterator[Finding]:
    """What was read ends among the lines of set-up: that is neither well nor a hang."""
    channels = picture.of(Channel)
    if channels and not lines.Began(picture) and not picture.of(NcclWarn):
        yield Finding(
            cls=None,
            weight=Weight.NOTE,
            summary="what was read ends while connections are set up; how it went on is not told",
            state=State.UNKNOWN,
            at=channels[-1].at,
            shown=lines.lines(picture, channels, "a connection is being set up"),
        )
