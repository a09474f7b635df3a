"""The nodes and what is free on them."""

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
_MOST_TRIES = 4


class NodeSource:
    """``sinfo -N`` for a poller: every node once, hidden partitions too.

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
    ) -> None:
        self.interval_s = interval_s
        self._runner = runner
        self._cluster = cluster
        self._mark = mark or new_record_mark()
        self._fields = SINFO_FIELDS

    async def fetch(self) -> Parsed[Node]:
        for _ in range(_MOST_TRIES):
            names = [name for name, _ in self._fields]
            options = ("-h", "-a", "-N", *on_cluster(self._cluster))
            argv = ("sinfo", *options, "-O", long_format(names, self._mark))
            done = await run_slurm(self._runner, argv)
            if not self._learnt_from(done, names):
                fields = tuple(field for _, field in self._fields)
                nodes = parse_sinfo(
                    check(argv, done),
                    fields=fields,
                    record_mark=self._mark,
                    cluster=self._cluster,
                )
                return readable("sinfo", nodes)
        raise refusal(argv, done)

    def _learnt_from(self, done: Completed, names: list[str]) -> bool:
        unknown = unknown_fields(done, names)
        left = tuple(pair for pair in self._fields if pair[0] not in unknown)
        if not unknown or not any(field == "name" for _, field in left):
            return False
        self._fields = left
        return True
