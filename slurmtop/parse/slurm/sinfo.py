"""Nodes, from ``sinfo -h -N -O …``, each of them once.

``sinfo -N`` repeats a node for every partition it is in; nothing may ever be summed over its
lines. Sample (``|`` for 0x1f)::

    gpu01|allocated|gpu:h100:8|gpu:h100:8(IDX:0-7)|8/0/0/8|16000|20080|1.26|root|…|gpu-large*|none
    gpu01|allocated|gpu:h100:8|gpu:h100:8(IDX:0-7)|8/0/0/8|16000|20080|1.26|root|…|preempt|none
"""

from collections.abc import Sequence
from dataclasses import replace

from slurmtop.model.node import Node
from slurmtop.model.snapshot import BadRecord, Parsed
from slurmtop.parse.slurm.hostlist import HostlistError, expand_hosts
from slurmtop.parse.slurm.node_reasons import lost_gpus
from slurmtop.parse.slurm.squeue import split_records
from slurmtop.parse.slurm.states import parse_node_state
from slurmtop.parse.slurm.times import parse_time
from slurmtop.parse.slurm.tres import parse_count, parse_gres, parse_mem
from slurmtop.parse.slurm.words import NONE_WORDS, value_or_none

#: What the nodes are asked for: (name for ``sinfo -O``, field). The reason, which people
#: write, stands last.
SINFO_FIELDS: tuple[tuple[str, str], ...] = (
    ("NodeList", "name"),
    ("StateLong", "state"),
    ("Gres", "gres"),
    ("GresUsed", "gres_used"),
    ("CPUsState", "cpus"),
    ("Memory", "mem_total"),
    ("FreeMem", "mem_free"),
    ("CPUsLoad", "cpu_load"),
    ("User", "reason_user"),
    ("Timestamp", "reason_at"),
    ("Partition", "partition"),
    ("Reason", "reason"),
)
SINFO_NAMES: tuple[str, ...] = tuple(name for _, name in SINFO_FIELDS)
#: Letters of ``sinfo -o`` and the field each one prints.
SINFO_LETTERS: dict[str, str] = {
    "N": "name",
    "n": "hostname",
    "T": "state",
    "t": "state_compact",
    "G": "gres",
    "C": "cpus",
    "m": "mem_total",
    "e": "mem_free",
    "O": "cpu_load",
    "u": "reason_user",
    "H": "reason_at",
    "P": "partition",
    "R": "partition_name",
    "E": "reason",
}
_MIB = 1024 * 1024
_EXCERPT = 200


def sinfo_format(record_mark: bytes = b"\x1e", separator: bytes = b"\x1f") -> str:
    """The argument of ``sinfo -O`` for :data:`SINFO_FIELDS`; marks as in ``queue_format``."""
    between, end = separator.decode("ascii"), record_mark.decode("ascii")
    names = [name for name, _ in SINFO_FIELDS]
    return "".join(f"{name}:{between}," for name in names[:-1]) + f"{names[-1]}:{end}"


def _values(parts: list[str], fields: tuple[str, ...], separator: str) -> dict[str, str] | None:
    """Field by field. Surplus separators can only come from the reason, and may shift nothing."""
    if len(parts) > len(fields) and "reason" in fields:
        place = fields.index("reason")
        behind = len(fields) - 1 - place
        end = len(parts) - behind
        parts = [*parts[:place], separator.join(parts[place:end]), *parts[end:]]
    if len(parts) != len(fields):
        return None
    return dict(zip(fields, parts, strict=True))


def _four(text: str) -> tuple[int | None, int | None, int | None, int | None]:
    """CPUs allocated, idle, other and in all: ``32/96/0/128``."""
    numbers = [_whole(part) for part in text.split("/")]
    if len(numbers) != 4:
        return None, None, None, None
    return numbers[0], numbers[1], numbers[2], numbers[3]


def _whole(text: str) -> int | None:
    value = parse_count(text, 1_024)
    return None if value is None else int(value)


def _mib(text: str) -> int | None:
    size = parse_mem(text, "M")
    return None if size is None else size // _MIB


def _load(text: str) -> float | None:
    return parse_count(text, 1_000) if text not in NONE_WORDS else None


def _node(found: dict[str, str], name: str, cluster: str) -> Node:
    get = found.get
    starred = get("partition", "")
    partition = value_or_none(starred.removesuffix("*") or get("partition_name", ""))
    alloc, idle, other, total = _four(get("cpus", ""))
    reason = value_or_none(get("reason", ""))
    return Node(
        name=name,
        cluster=cluster,
        state=parse_node_state(get("state") or get("state_compact") or "?"),
        partitions=() if partition is None else (partition,),
        default_partition=partition if starred.endswith("*") else None,
        gres=parse_gres(found["gres"], get("gres_used", "")) if "gres" in found else None,
        cpus_alloc=alloc,
        cpus_idle=idle,
        cpus_other=other,
        cpus_total=total,
        mem_total_mib=_mib(get("mem_total", "")),
        mem_free_mib=_mib(get("mem_free", "")),
        cpu_load=_load(get("cpu_load", "")),
        reason=reason,
        reason_user=None if reason is None else value_or_none(get("reason_user", "")),
        reason_at=None if reason is None else parse_time(get("reason_at", "")),
        gpus_lost=lost_gpus(reason),
    )


def _merged(old: Node, new: Node) -> Node:
    """The same node seen in one more partition."""
    more = tuple(name for name in new.partitions if name not in old.partitions)
    return replace(
        old,
        partitions=old.partitions + more,
        default_partition=old.default_partition or new.default_partition,
    )


def parse_sinfo(
    data: bytes,
    *,
    fields: Sequence[str] = SINFO_NAMES,
    separator: bytes = b"\x1f",
    record_mark: bytes = b"\x1e",
    cluster: str = "",
) -> Parsed[Node]:
    """A whole answer of ``sinfo -h -N -O`` (or ``-o``), each node once, in order.

    Never raises. ``fields`` names what was asked for: the fields of :data:`SINFO_FIELDS` and
    :data:`SINFO_LETTERS`; names that are not known are skipped. The star of the default
    partition goes into ``default_partition`` and never into a partition's name.
    """
    names = tuple(fields)
    between = separator.decode("utf-8", "replace")
    nodes: dict[str, Node] = {}
    bad = 0
    first: BadRecord | None = None
    for index, raw in enumerate(split_records(data, record_mark)):
        text = raw.decode("utf-8", "replace")
        found = _values(text.split(between), names, between)
        why = "" if found is not None else f"not the {len(names)} fields that were asked for"
        hosts: tuple[str, ...] = ()
        if found is not None:
            try:
                hosts = expand_hosts(found.get("name") or found.get("hostname") or "")
            except HostlistError as error:
                why = str(error)
            else:
                why = "" if hosts else "no node name"
        if found is None or not hosts:
            bad += 1
            first = first or BadRecord(index, why, text[:_EXCERPT])
            continue
        for name in hosts:
            node = _node(found, name, cluster)
            nodes[name] = _merged(nodes[name], node) if name in nodes else node
    return Parsed(tuple(nodes.values()), bad, first)
