"""Reports that compare ranks themselves: DETAIL fingerprints, flight recorder, RAS counts.

What they call a culprit is weighed: a report that takes the wrong rank for its measure blames
everybody else, and states that differ are normal near a hang.
"""

from collections.abc import Iterable, Iterator

from slurmtop.model.events.reports import CallsApart, FlightReport, RasComm
from slurmtop.model.events.torch import (
    Desync,
    Fingerprint,
    FingerprintMismatch,
    WatchdogTimeout,
)
from slurmtop.model.verdict import Collective, State
from slurmtop.triage.finding import Finding, Shown, Weight
from slurmtop.triage.ops import plain_op
from slurmtop.triage.picture import Picture
from slurmtop.triage.rules.nccl_bug import damaged
from slurmtop.triage.waiting import WAITED_OR_LEFT, culprits, minority, ranks_words, sides_words

_OP_TYPES = ("TYPE",)
_SHAPE_TYPES = ("SIZE", "SYNTAX", "DTYPE", "SHAPE")


def find(picture: Picture) -> Iterator[Finding]:
    """Findings of these reports in the newest attempt."""
    yield from _fingerprints(picture)
    yield from _apart(picture)
    yield from _no_desync_report(picture)
    yield from _flight_errors(picture)
    yield from _ras_counts(picture)


# Fingerprints (TORCH_DISTRIBUTED_DEBUG=DETAIL)


def _fingerprints(picture: Picture) -> Iterator[Finding]:
    events = picture.of(FingerprintMismatch)
    if not events:
        return
    event = picture.earliest(events) or events[0]
    here, there = event.here, event.there
    cls, why = _kind(here, there)
    sides = {
        print_.rank: _print_words(print_)
        for one in events
        for print_ in (one.here, one.there)
        if print_ is not None and print_.rank is not None and print_.seq == here.seq
    }
    odd: frozenset[int] = frozenset()
    if cls in ("collective-op-mismatch", "collective-shape-mismatch") and there is not None:
        odd = minority(sides, picture.world_size)
    yield Finding(
        cls=cls,
        weight=Weight.CAUSE,
        summary=f"PyTorch's check of collectives found {why}",
        at=event.at,
        culprits=culprits(picture, odd, f"called {_print_words(here)}"),
        shown=(
            *(Shown(one.at, why) for one in events[:3]),
            *(Shown(one.aspects, "in what they differ") for one in events[:2] if one.aspects),
        ),
        collective=Collective(
            op=plain_op(here.op),
            seq=here.seq,
            mismatch=sides_words(sides) if len(sides) > 1 else None,
        ),
        explains=WAITED_OR_LEFT | {"python-exception"},
    )


def _kind(here: Fingerprint, there: Fingerprint | None) -> tuple[str, str]:
    if there is None:
        return "collective-op-mismatch", "a difference whose other side is cut off"
    same_op = plain_op(here.op) == plain_op(there.op)
    if here.empty and there.empty and same_op and plain_op(here.op) == "barrier":
        if here.seq != there.seq:
            return (
                "debug-tool-artifact",
                "barriers that it counts differently, as it may where nothing is wrong",
            )
        return "debug-tool-artifact", "a difference between two equal barriers"
    if here.empty != there.empty:
        return "collective-order-skew", "a rank that had come to no such operation yet"
    if here.seq is not None and there.seq is not None and here.seq != there.seq:
        return "collective-order-skew", f"ranks at operations {here.seq} and {there.seq}"
    if not same_op:
        return "collective-op-mismatch", f"{plain_op(here.op)} against {plain_op(there.op)}"
    if here.dtype != there.dtype and here.shape == there.shape:
        return "collective-shape-mismatch", f"type {here.dtype} against {there.dtype}"
    return "collective-shape-mismatch", f"shape [{here.shape}] against [{there.shape}]"


def _print_words(print_: Fingerprint) -> str:
    if print_.shape is None:
        return f"{plain_op(print_.op)}"
    return f"{plain_op(print_.op)} of shape [{print_.shape}]"


def _apart(picture: Picture) -> Iterator[Finding]:
    """What Horovod, gloo or MPI found; with an operation that differs the sizes do, too."""
    told = picture.of(CallsApart)
    if told:
        shape = all(e.shape for e in told)
        what = "sizes or types of one operation" if shape else "what the ranks called"
        yield Finding(
            cls="collective-shape-mismatch" if shape else "collective-op-mismatch",
            weight=Weight.CAUSE,
            summary=f"The library's own check found a difference in {what}",
            state=State.FAILED,
            at=told[0].at,
            shown=tuple(Shown(e.at, "the calls of two ranks differ") for e in told[:4]),
            explains=WAITED_OR_LEFT | {"python-exception"},
        )


def _no_desync_report(picture: Picture) -> Iterator[Finding]:
    """The report broke that PyTorch makes after a timeout. The timeout was real; who is told is
    chance: whichever rank left no trace in the store."""
    broken = [e for e in picture.of(Desync) if e.broken]
    if broken and not picture.of(WatchdogTimeout):
        yield Finding(
            cls="debug-tool-artifact",
            weight=Weight.SYMPTOM,
            summary="a collective timed out, and PyTorch's desync report about it broke itself",
            state=State.FAILED,
            at=broken[0].at,
            shown=tuple(Shown(e.at, "the report could not be made") for e in broken[:4]),
        )


# Flight recorder (torchfrtrace)


def _flight_errors(picture: Picture) -> Iterator[Finding]:
    for report in picture.of(FlightReport):
        ranks = sorted({rank for rank, kind, _ in report.culprits if _class_of(kind) is not None})
        if not ranks:
            continue
        kinds = {rank: kind for rank, kind, _ in report.culprits}
        cls = _class_of(kinds[ranks[0]]) or ""
        world = len(report.expected) or report.world
        # It measures all ranks by the first dump: where most differ, that one is the odd one.
        named = ranks if world is not None and 2 * len(ranks) < world else []
        words = f"{ranks_words(ranks)} called it differently ({kinds[ranks[0]].lower()})"
        yield Finding(
            cls=cls,
            weight=Weight.OUTRIGHT if named else Weight.CAUSE,
            summary=f"In operation {report.seq} ({plain_op(report.op)}) {words}",
            state=State.HUNG,
            at=report.at,
            culprits=culprits(picture, named, "its call differs, by the flight recorder"),
            shown=(Shown(report.at, words, "flight-recorder"),),
            collective=flight_collective(report, mismatch=words),
            explains=WAITED_OR_LEFT,
        )
        return


def _class_of(kind: str) -> str | None:
    """The class of an error type; None for states, which say nothing near a hang."""
    if any(word in kind for word in _SHAPE_TYPES):
        return "collective-shape-mismatch"
    return "collective-op-mismatch" if any(word in kind for word in _OP_TYPES) else None


def flight_collective(
    report: FlightReport, *, missing: Iterable[int] = (), mismatch: str | None = None
) -> Collective:
    """The operation that a block of the flight recorder is about."""
    return Collective(
        op=plain_op(report.op),
        seq=report.seq,
        group=report.group,
        expected_ranks=tuple(sorted(report.expected)),
        missing_ranks=tuple(sorted(missing)),
        mismatch=mismatch,
    )


# RAS


def _ras_counts(picture: Picture) -> Iterator[Finding]:
    """One look shows who is apart, not who is late: the smaller side may be the one ahead."""
    if damaged(picture):
        return
    for comm in picture.of(RasComm):
        if "MISMATCH" not in comm.errors or len(comm.counts) < 2:
            continue
        words = ", ".join(f"{ranks} ranks at {count}" for ranks, count in comm.counts)
        op = plain_op(comm.op)
        yield Finding(
            cls="ras-count-skew",
            weight=Weight.SYMPTOM,
            state=State.UNKNOWN,
            summary=f"NCCL's RAS counts {op or 'operations'} differently on the ranks: {words}; "
            "one look does not tell who is late",
            at=comm.at,
            shown=(Shown(comm.at, "counts that differ at one moment", "ras"),),
            collective=Collective(
                op=op,
                seq=min(count for _, count in comm.counts),
                group=comm.comm_id,
                mismatch=words,
            ),
        )
