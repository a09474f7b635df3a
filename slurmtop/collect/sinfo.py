"""The nodes and what is free on them."""

import asyncio
from dataclasses import replace

from slurmtop.collect.asking import (
    check,
    long_format,
    new_record_mark,
    on_cluster,
    readable,
    refusal,
    run_slurm,
    unknown_fields,
)
from slurmtop.model.node import Node
from slurmtop.model.ports import Completed, Runner
from slurmtop.model.snapshot import Parsed
from slurmtop.parse.slurm.sinfo import SINFO_FIELDS, parse_sinfo

INTERVAL_S = 60.0
_LEAST_S = 2.0
_MOST_TRIES = 4
_LARGE_BYTES = 256 * 1024


def every_s(speed: float) -> float:
    """How often nodes are asked for by the reader's clock where the cluster's is so much faster.

    In a demo, that is: what a node shows of its jobs has to go with what its GPUs show.
    """
    return max(_LEAST_S, INTERVAL_S / speed)


class NodeSource:
    """``sinfo -N`` for a poller: every node once, hidden partitions too, its partitions by name
    with the default one first. With ``hosts`` (a host list as Slurm prints it) these nodes alone.

    Fields that this Slurm does not know are left out from then on.
    """

    name = "nodes"

    def __init__(
        self,
        runner: Runner,
        *,
        cluster: str = "",
        mark: bytes | None = None,
        interval_s: float = INTERVAL_S,
        hosts: str = "",
    ) -> None:
        self.interval_s = interval_s
        self._hosts = ("-n", hosts) if hosts else ()
        self._runner = runner
        self._cluster = cluster
        self._mark = mark or new_record_mark()
        self._fields = SINFO_FIELDS

    async def fetch(self) -> Parsed[Node]:
        for _ in range(_MOST_TRIES):
            names = [name for name, _ in self._fields]
            options = ("-h", "-a", "-N", *on_cluster(self._cluster), *self._hosts)
            argv = ("sinfo", *options, "-O", long_format(names, self._mark))
            done = await run_slurm(self._runner, argv)
            if not self._learnt_from(done, names):
                fields = tuple(field for _, field in self._fields)
                nodes = await self._parse(check(argv, done), fields)
                rows = tuple(_in_order(node) for node in nodes.rows)
                return readable("sinfo", replace(nodes, rows=rows))
        raise refusal(argv, done)

    async def _parse(self, data: bytes, fields: tuple[str, ...]) -> Parsed[Node]:
        """Thousands of nodes take a quarter of a second: keys are answered meanwhile."""

        def parse() -> Parsed[Node]:
            return parse_sinfo(data, fields=fields, record_mark=self._mark, cluster=self._cluster)

        return parse() if len(data) < _LARGE_BYTES else await asyncio.to_thread(parse)

    def _learnt_from(self, done: Completed, names: list[str]) -> bool:
        unknown = unknown_fields(done, names)
        left = tuple(pair for pair in self._fields if pair[0] not in unknown)
        if not unknown or not any(field == "name" for _, field in left):
            return False
        self._fields = left
        return True


def _in_order(node: Node) -> Node:
    """Its partitions by name, the default one first: sinfo's order differs from call to call, and
    nothing has changed for that."""
    if len(node.partitions) < 2:
        return node
    names = sorted(node.partitions, key=lambda name: (name != node.default_partition, name))
    return node if tuple(names) == node.partitions else replace(node, partitions=tuple(names))
