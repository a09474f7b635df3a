"""It moves, but slower than the machine allows: by lines that show a slow path was chosen."""

from collections.abc import Iterable

from slurmtop.model.events.nccl import Channel, NcclNetwork
from slurmtop.model.events.reports import BenchRow
from slurmtop.model.verdict import State
from slurmtop.triage.ending import proof_of_health
from slurmtop.triage.failures import failures
from slurmtop.triage.finding import Finding, Shown, Weight
from slurmtop.triage.picture import Picture


def find(picture: Picture) -> Iterable[Finding]:
    """TCP sockets between nodes on hosts whose NCCL had found InfiniBand adapters.

    Both kinds of network in one job: some process talks over TCP though others use the fabric.
    """
    moving = picture.of(BenchRow) or proof_of_health(picture)
    if failures(picture) or not moving:
        return
    networks = picture.of(NcclNetwork)
    slow = [e for e in networks if (e.name or "").lower() == "socket"]
    fast = [e for e in networks if e.name and e.name.lower() not in ("socket", "none")]
    over = [e for e in picture.of(Channel) if e.via.startswith("NET/Socket")]
    if not slow or not fast or not over:
        return
    yield Finding(
        cls="slow-run",
        weight=Weight.PATTERN,
        summary="some processes talk over TCP sockets while others use the fast network",
        state=State.SLOW,
        at=slow[0].at,
        shown=(
            Shown(slow[0].at, "TCP sockets here"),
            Shown(over[0].at, "and data goes over them"),
            Shown(fast[0].at, "the fast network there"),
        ),
    )
