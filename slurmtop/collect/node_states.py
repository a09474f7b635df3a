"""What Slurm says of the nodes of one job: asked once, where its nodes are looked at."""

from slurmtop.collect.poller import SourceFailed
from slurmtop.collect.sinfo import NodeSource
from slurmtop.model.node import Node
from slurmtop.model.ports import Runner

#: Nodes in which a job does its work; ``allocated*`` is none of them.
_WELL = frozenset({"ALLOCATED", "MIXED", "IDLE"})
_SAYS_NOTHING = frozenset({"COMPLETING", "RESERVED", "PLANNED", "CLOUD", "DYNAMIC_NORM"})


async def read_node_states(
    runner: Runner, hosts: str, *, cluster: str = "", mark: bytes | None = None
) -> tuple[tuple[str, str], ...]:
    """Those of ``hosts`` (a host list as Slurm prints it) that are not well, by Slurm's words:
    ``(("gpu03", "DOWN*"),)``. Never raises; () where Slurm does not answer, too."""
    if not hosts or hosts.startswith("-"):
        return ()
    try:
        nodes = await NodeSource(runner, cluster=cluster, mark=mark, hosts=hosts).fetch()
    except SourceFailed:
        return ()
    return tuple((node.name, node.state.text.upper()) for node in nodes.rows if not _well(node))


def _well(node: Node) -> bool:
    return node.state.base in _WELL and _SAYS_NOTHING.issuperset(node.state.flags)
