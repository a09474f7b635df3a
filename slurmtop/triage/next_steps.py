"""What a verdict on logs could not read, and what to do now, safest first."""

import posixpath
import shlex
from collections.abc import Iterable, Iterator

from slurmtop.model.events.reports import FlightReport
from slurmtop.model.events.system import KernelLink, KernelOom, PcieFatal, Xid
from slurmtop.model.facts import LogStatus
from slurmtop.model.spans import span_text, spans_of
from slurmtop.model.trace import Source
from slurmtop.model.units import bytes_text, plural
from slurmtop.model.verdict import Missing, NextStep, State, Verdict
from slurmtop.triage.catalogue import CATALOGUE
from slurmtop.triage.picture import Picture

#: Classes that the kernel log of the node confirms or refutes.
_KERNEL_DECIDES = frozenset(
    {
        "watchdog-timeout-unattributed",
        "heartbeat-unattributed",
        "first-collective-stuck",
        "missing-rank",
        "peer-died",
        "task-exit",
        "socket-reset",
        "net-timeout",
        "net-link-fault",
        "net-hca-fault",
        "cuda-driver-error",
        "gpu-hw-fault",
        "nvlink-fault",
        "host-oom",
        "slurm-node-fail",
    }
)
#: Classes that a flight recorder dump of all ranks would decide.
_FLIGHT_DECIDES = frozenset(
    {
        "watchdog-timeout-unattributed",
        "heartbeat-unattributed",
        "first-collective-stuck",
        "missing-rank",
        "collective-op-mismatch",
        "collective-shape-mismatch",
        "collective-order-skew",
        "unmatched-p2p",
        "ras-count-skew",
        "opcount-not-usable",
    }
)
#: Classes for which the set-up lines of NCCL would tell more.
_NCCL_LOG_DECIDES = frozenset(
    {
        "first-collective-stuck",
        "bootstrap-unreachable",
        "net-interface-config",
        "net-path-unreachable",
        "net-gdr-config",
        "p2p-hang",
        "rendezvous-timeout",
        "slow-init",
        "cuda-driver-error",
        "env-mismatch",
        "version-mismatch",
        "peer-died",
        "socket-reset",
    }
)
_LISTED_RANKS = 6
STDIN = "-"
_LISTED_HOLES = 4


def missing_of(picture: Picture, verdict: Verdict) -> tuple[Missing, ...]:
    """What was not read, or not there, and would tell more about this verdict."""
    if verdict.state is State.HEALTHY:
        return tuple(_unread(picture))
    return (*_unread(picture), *_unseen(picture), *_undecided(picture, verdict))


def _unread(picture: Picture) -> Iterator[Missing]:
    holes: list[Source] = []
    for source in picture.traces.sources:
        if source.status is not LogStatus.READ:
            why = f"{source.name}: {source.why or source.status.value}"
            yield Missing("log", why, f"ls -l {pasted(source.name)}")
        elif source.why:
            yield Missing("log", f"{source.name}: {source.why}")
        if source.dropped_events:
            told = plural(source.dropped_events, "statement")
            why = f"of {source.name} {told} between thousands of the same kind were left out"
            yield Missing("log", why)
        if source.unread:
            holes.append(source)
    for source in holes[:_LISTED_HOLES]:
        count = bytes_text(sum(length for _, length in source.unread))
        why = f"{count} in the middle of {source.name} were not read"
        yield Missing("log", why, f"slurmtop triage --whole {pasted(source.name)}")
    rest = holes[_LISTED_HOLES:]
    if rest:
        count = bytes_text(sum(length for source in rest for _, length in source.unread))
        of = f"the middle of {plural(len(rest), 'more file')}"
        folder = posixpath.commonpath([posixpath.dirname(source.name) for source in holes])
        command = f"slurmtop triage --whole {pasted(folder or '.')}"
        yield Missing("log", f"{of} was not read, {count} in all", command)


def _unseen(picture: Picture) -> Iterator[Missing]:
    """Ranks of which nothing was read. That a rank is silent says nothing about it."""
    size = picture.world_size
    if size is None or not picture.seen_ranks or size > 1 << 20:
        return
    unseen = [rank for rank in range(size) if rank not in picture.seen_ranks]
    if unseen:
        noun = "rank" if len(unseen) == 1 else "ranks"
        yield Missing("log", f"no line of {noun} {ranks_text(unseen)} of {size} was read")


def _undecided(picture: Picture, verdict: Verdict) -> Iterator[Missing]:
    cls = verdict.cls or ""
    traces = picture.traces
    if cls in _FLIGHT_DECIDES and not traces.has(FlightReport):
        yield Missing(
            "flight-recorder",
            "no flight recorder dump was read: it shows which call every rank stands in",
            "torchfrtrace --prefix nccl_trace_rank_ /tmp",
        )
    if cls in _KERNEL_DECIDES and not traces.has(Xid, KernelOom, KernelLink, PcieFatal):
        yield Missing(
            "kernel",
            "no kernel log of the nodes was read",
            "sudo dmesg -T | grep -Ei 'xid|mlx5|oom|aer'",
        )


def next_of(verdict: Verdict) -> tuple[NextStep, ...]:
    """What to do now beside what the winning rule itself says; nothing here changes anything."""
    if verdict.state is State.HEALTHY:
        return ()
    return tuple(_next(verdict))


def _next(verdict: Verdict) -> Iterator[NextStep]:
    cls = verdict.cls
    if cls in CATALOGUE:
        first = CATALOGUE[cls].first_action
        yield NextStep("what this means and what to do", f"slurmtop explain {cls}", "read", first)
    if cls is None or cls in _FLIGHT_DECIDES:
        yield NextStep(
            "record the calls of every rank next time",
            "export TORCH_FR_BUFFER_SIZE=20000 TORCH_NCCL_TRACE_BUFFER_SIZE=20000 "
            "TORCH_NCCL_DUMP_ON_TIMEOUT=1",
            "write",
            "in the job script: then a timeout leaves a file a rank that tells who did not come",
        )
    if cls is None or cls in _NCCL_LOG_DECIDES:
        yield NextStep(
            "log what NCCL sets up next time",
            "export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET NCCL_DEBUG_FILE=nccl.%h.%p.log",
            "write",
            "in the job script: one file a process, with interfaces, settings and versions",
        )


def pasted(path: str) -> str:
    """A path as a shell and slurmtop take it for that path: ``./4711`` is no job, ``./-x`` no
    option; a name with a newline or an escape in it is written so that it stays in one line."""
    if path == STDIN:
        return path
    if "/" not in path and (path[:1] == "-" or path[:1].isdigit()):
        path = f"./{path}"
    if path.isprintable():
        return shlex.quote(path)
    letters = (_letter(one) for one in path)
    return f"$'{''.join(letters)}'"


def _letter(one: str) -> str:
    if one.isprintable():
        return f"\\{one}" if one in "\\'" else one
    return "".join(f"\\{byte:03o}" for byte in one.encode("utf-8", "surrogateescape"))


def ranks_text(ranks: Iterable[int]) -> str:
    """Ranks in a few words: ``0-3, 7``; after six spans only how many more there are."""
    spans = spans_of(ranks)
    words = [span_text(span) for span in spans[:_LISTED_RANKS]]
    left = sum(high - low + 1 for low, high in spans[_LISTED_RANKS:])
    if left:
        words.append(f"and {plural(left, 'more rank')}")
    return ", ".join(words)
