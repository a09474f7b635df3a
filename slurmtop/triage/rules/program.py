"""The program's own failures: exceptions, kernels that fail, DDP's unused parameters.

A rank is named only where other ranks are seen to have failed in another way: an error of the
program or its input shows on all, and an excerpt often holds the first only.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from slurmtop.model.events.launch import DeathSignal, Interrupted
from slurmtop.model.events.nccl import NcclWarn, Warn
from slurmtop.model.events.program import Phase, PyException, RankSeen, Step
from slurmtop.model.events.slurm import StepEnded
from slurmtop.model.events.system import Limit, LimitHit, MemoryUse
from slurmtop.model.events.torch import CudaError, CudaTrouble, StoreEvent, UnusedParameters
from slurmtop.model.trace import Event
from slurmtop.model.verdict import Culprit, State
from slurmtop.triage.cascades import is_cascade
from slurmtop.triage.failures import failures, survivals
from slurmtop.triage.finding import Finding, Shown, Weight
from slurmtop.triage.next_steps import ranks_text
from slurmtop.triage.picture import Picture
from slurmtop.triage.rules import lines
from slurmtop.triage.rules.lines import AFTER_A_DEATH

_KERNEL_KINDS = {
    CudaTrouble.ASSERT: "a check inside a GPU kernel of the program failed",
    CudaTrouble.ILLEGAL: "a GPU kernel reached outside its memory, mostly a fault of the program",
    CudaTrouble.LAUNCH: "a GPU kernel failed while it ran",
}
#: The same in the words of CUDA that NCCL quotes.
_KERNEL_WORDS = (
    (CudaTrouble.ASSERT, re.compile(r"(?i)device-side assert")),
    (
        CudaTrouble.ILLEGAL,
        re.compile(r"(?i)illegal (?:memory access|instruction)|misaligned|invalid program counter"),
    ),
    (CudaTrouble.LAUNCH, re.compile(r"(?i)unspecified launch|launch failure")),
)
#: What else may be read in the line of an exception and explains nothing of it.
_NO_BETTER = (PyException, DeathSignal, Interrupted, StepEnded, Step, Phase, RankSeen, MemoryUse)
#: Limits that the words of the exception tell as well as anything.
_PLAIN_LIMITS = frozenset({Limit.DISK, Limit.THREADS})
_SHOWN_LINES = 3
_LOOPBACK = frozenset({"127.0.0.1", "::1", "::ffff:127.0.0.1", "localhost"})
#: Once one rank has thrown, all of these are what the others see of it.
_FOLLOWS = (AFTER_A_DEATH | {"collective-order-skew", "data-exhausted"}) - {"python-exception"}


def find(picture: Picture) -> Iterable[Finding]:
    yield from _exception(picture)
    yield from _kernel_failed(picture)
    yield from _unused_parameters(picture)


def _exception(picture: Picture) -> Iterator[Finding]:
    thrown = own_exceptions(picture)
    if not thrown:
        return
    first = picture.earliest(thrown) or thrown[0]
    same = [e for e in thrown if e.name == first.name]
    culprits = _odd_one(picture, same, f"threw {_short(first.name)} first")
    if any(_same_elsewhere(picture, first, other) for other in thrown):
        culprits = ()
    message = " ".join(first.message.split())
    text = f"{_short(first.name)}: {message}" if message else _short(first.name)
    if first.cut:
        text = f"an exception in process {first.process} of its node, whose words are cut off"
    yield Finding(
        cls="python-exception",
        weight=Weight.PATTERN if first.cut else Weight.CAUSE,
        summary=f"the program ended with {text[:160]}",
        at=first.at,
        culprits=culprits,
        shown=tuple(Shown(e.at, "the exception") for e in _first_few(first, same)),
        explains=frozenset(_FOLLOWS),
    )


def own_exceptions(picture: Picture) -> list[PyException]:
    """Exceptions of the program itself that it did not get over.

    Not those that tell of another process, and not those whose line another reader knows better
    (a CUDA error, a mismatch, a timeout of the store).
    """
    survived = survivals(picture)
    better = {
        (event.at.source, event.at.order)
        for event in picture.of(Event)
        if not isinstance(event, _NO_BETTER)
        and not (isinstance(event, LimitHit) and event.limit in _PLAIN_LIMITS)
    }
    out = []
    for event in picture.of(PyException):
        if event.swallowed or is_cascade(event) or survived(event.at):
            continue
        if (event.at.source, event.at.order) not in better:
            out.append(event)
    return _causes(out)


def _causes(thrown: list[PyException]) -> list[PyException]:
    """Of chains of one writer (``During handling of …``) only the first, which is the cause."""
    out: list[PyException] = []
    for event in thrown:
        last = out[-1] if out else None
        chained = (
            last is not None
            and event.chain > 0
            and last.at.source == event.at.source
            and last.at.rank == event.at.rank
        )
        if not chained:
            out.append(event)
    return out


def _same_elsewhere(picture: Picture, first: PyException, other: PyException) -> bool:
    """Did another rank fail at the same place of the program?"""
    if other is first or not first.frames or other.frames[-1:] != first.frames[-1:]:
        return False
    return picture.rank_of(other.at) != picture.rank_of(first.at)


def _odd_one(picture: Picture, events: Sequence[Event], reason: str) -> tuple[Culprit, ...]:
    """The one rank that failed so while others are seen to have failed otherwise; else nobody.

    That others print something is not enough: people paste the traceback of one rank only. Of logs
    of single ranks all must be there: another one may tell the same.
    """
    ranks = {_rank_of(picture, event) for event in events}
    rank = ranks.pop() if len(ranks) == 1 else None
    failed = {picture.rank_of(event.at) for _, event in failures(picture)}
    if rank is None or not failed - {rank, None} or not lines.everybody_speaks(picture):
        return ()
    return (Culprit(rank=rank, host=picture.rank_hosts.get(rank), reason=reason),)


def _rank_of(picture: Picture, event: Event) -> int | None:
    """Whose event it is; a process that ``spawn`` numbers is a rank where all is on one node."""
    rank = picture.rank_of(event.at)
    if rank is None and isinstance(event, PyException) and _one_node(picture):
        return event.process
    return rank


def _one_node(picture: Picture) -> bool:
    """Did the ranks meet at an address that no other node can reach?"""
    return any((one.host or "") in _LOOPBACK for one in picture.of(StoreEvent))


def _kernel_failed(picture: Picture) -> Iterator[Finding]:
    """A kernel of the program failed on the device; whoever synchronises next in that process
    reports it. An assert says so outright; a wild access may have other reasons too."""
    errors: list[CudaError | NcclWarn] = [*picture.of(CudaError), *picture.of(NcclWarn)]
    kinds = {e: kind for e in errors if (kind := _kernel(e)) is not None}
    asserts = [e for e, kind in kinds.items() if kind is CudaTrouble.ASSERT]
    told = asserts or list(kinds)
    if not told:
        return
    first = picture.earliest(told) or told[0]
    what = _KERNEL_KINDS[kinds[first]]
    ranks = {r for e in told if (r := picture.rank_of(e.at)) is not None}
    who = f" on rank {ranks_text(ranks)}" if ranks else ""
    yield Finding(
        cls="cuda-assert",
        weight=Weight.CAUSE if asserts else Weight.PATTERN,
        summary=f"{what}{who}",
        at=first.at,
        culprits=_odd_one(picture, told, what),
        shown=tuple(Shown(e.at, "a kernel failed on the GPU") for e in _first_few(first, told)),
        explains=frozenset(_FOLLOWS | {"python-exception"}),
    )


def _kernel(event: CudaError | NcclWarn) -> CudaTrouble | None:
    """What failed in a kernel, by the program's own words or by NCCL, which is only the next who
    asks; None for any other error."""
    if isinstance(event, CudaError):
        return event.kind if event.kind in _KERNEL_KINDS and not event.caught else None
    if event.kind is not Warn.CUDA:
        return None
    said = f"{event.error or ''} {event.text}"
    return next((kind for kind, words in _KERNEL_WORDS if words.search(said)), None)


def _unused_parameters(picture: Picture) -> Iterator[Finding]:
    told = picture.of(UnusedParameters)
    if not told:
        return
    first = picture.earliest(told) or told[0]
    yield Finding(
        cls="ddp-unused-parameters",
        weight=Weight.CAUSE,
        summary="DDP waited for gradients of parameters that took no part in the step",
        state=State.FAILED,
        at=first.at,
        shown=tuple(Shown(e.at, "DDP's own words") for e in _first_few(first, told)),
        explains=frozenset(_FOLLOWS | {"python-exception"}),
    )


def _first_few(first: Event, events: Sequence[Event]) -> list[Event]:
    return [first, *(event for event in events if event is not first)][:_SHOWN_LINES]


def _short(name: str) -> str:
    """``torch.cuda.OutOfMemoryError`` as people call it."""
    return name.rpartition(".")[2] or "an exception"
