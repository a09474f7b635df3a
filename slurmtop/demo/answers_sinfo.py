"""sinfo: the nodes, one by one or in groups."""

import re
from collections.abc import Callable, Iterable

from slurmtop.demo.answers_squeue import VERSION
from slurmtop.demo.node_words import complete_state, state_compact, state_long
from slurmtop.demo.nodes import (
    CLUSTER,
    CPUS,
    DEFAULT_PARTITION,
    GPUS,
    MAX_TIME_S,
    MEMORY_MIB,
    PARTITIONS,
    DemoNode,
)
from slurmtop.demo.options import Answer, Misused, Options, Table, said
from slurmtop.demo.squeue_columns import Column
from slurmtop.demo.text import fold_hosts, fold_numbers, squeue_secs
from slurmtop.demo.values import View

_OPTIONS = Table(
    "sinfo",
    flags={
        "Node": "N", "all": "a", "dead": "d", "exact": "e", "federation": "", "future": "F",
        "help": "", "hide": "", "list-reasons": "R", "local": "", "long": "l", "noheader": "h",
        "reservation": "T", "responding": "r", "summarize": "s", "usage": "", "verbose": "v",
        "version": "V",
    },
    values={
        "Format": "O", "clusters": "M", "format": "o", "iterate": "i", "nodes": "n",
        "partition": "p", "sort": "S", "states": "t",
    },
)  # fmt: skip
_DEFAULT = "%9P %.5a %.10l %.6D %.6t %N"
_NODE = "%10N %.5D %.9P %6t"
_LONG = "%9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N"
_NODE_LONG = "%10N %.5D %.9P %.11T %.4c %.8z %.6m %.8d %.6w %.8f %20E"
_REASONS = "%20E %9u %19H %N"
_SUMMARY = "%9P %.5a %.10l %.16F %N"
_LETTER = re.compile(r"%(\.?)([0-9]*)(.)([^%]*)", re.DOTALL)
_NAME = re.compile(r"([^:]*)(?::(\.?)([0-9]*)(.*))?", re.DOTALL)
_MAX_WIDTH = 4_096

Group = list[DemoNode]
Value = Callable[[View, str, Group], str]


def _gres_used(view: View, partition: str, nodes: Group) -> str:
    used = nodes[0].gpus_used
    if nodes[0].trouble == "down":
        return "gpu:h100:0"
    index = fold_numbers(used) or "N/A"
    return f"gpu:h100:{len(used)}(IDX:{index})"


def _cpus_state(view: View, partition: str, nodes: Group) -> str:
    used = sum(node.cpus_used for node in nodes)
    idle = sum(CPUS - node.cpus_used for node in nodes if node.usable)
    total = CPUS * len(nodes)
    return f"{used}/{idle}/{total - used - idle}/{total}"


def _node_counts(view: View, partition: str, nodes: Group) -> str:
    busy = sum(1 for node in nodes if node.cpus_used)
    other = sum(1 for node in nodes if not node.cpus_used and not node.usable)
    return f"{busy}/{len(nodes) - busy - other}/{other}/{len(nodes)}"


def _load(view: View, partition: str, nodes: Group) -> str:
    node = nodes[0]
    return "0.00" if node.trouble == "down" else f"{node.cpus_used * 0.62 + 0.05:.2f}"


def _free(view: View, partition: str, nodes: Group) -> str:
    node = nodes[0]
    free = MEMORY_MIB - node.memory_used * 3 // 5 - 21_000
    return "N/A" if node.trouble == "down" else str(free)


def _since(view: View, partition: str, nodes: Group) -> str:
    return view.iso(nodes[0].reason_t if nodes[0].reason else None, "Unknown")


def _partition(view: View, partition: str, nodes: Group) -> str:
    return partition + ("*" if partition == DEFAULT_PARTITION else "")


def _const(text: str) -> Value:
    return lambda view, partition, nodes: text


#: Name for -O, heading, letter for -o, value, and whether it joins nodes instead of parting.
_TABLE: tuple[tuple[str, str, str, Value, bool], ...] = (
    ("nodelist", "NODELIST", "N", lambda v, p, n: fold_hosts(one.name for one in n), True),
    ("nodehost", "HOSTNAMES", "n", lambda v, p, n: n[0].name, False),
    ("nodeaddr", "NODE_ADDR", "o", lambda v, p, n: n[0].name, False),
    ("statelong", "STATE", "T", lambda v, p, n: state_long(v, n[0]), False),
    ("statecompact", "STATE", "t", lambda v, p, n: state_compact(v, n[0]), False),
    ("statecomplete", "STATE", "", lambda v, p, n: complete_state(v, n[0]).lower(), False),
    ("available", "AVAIL", "a", _const("up"), False),
    ("gres", "GRES", "G", _const(f"gpu:h100:{GPUS}"), False),
    ("gresused", "GRES_USED", "", _gres_used, False),
    ("cpusstate", "CPUS(A/I/O/T)", "C", _cpus_state, True),
    ("cpus", "CPUS", "c", _const(str(CPUS)), False),
    ("cpusload", "CPU_LOAD", "O", _load, False),
    ("memory", "MEMORY", "m", _const(str(MEMORY_MIB)), False),
    ("freemem", "FREE_MEM", "e", _free, False),
    ("allocmem", "ALLOCMEM", "", lambda v, p, n: str(n[0].memory_used), False),
    ("reason", "REASON", "E", lambda v, p, n: n[0].reason or "none", False),
    ("user", "USER", "u", lambda v, p, n: "root" if n[0].reason else "Unknown", False),
    ("userlong", "USER", "U", lambda v, p, n: "root(0)" if n[0].reason else "Unknown", False),
    ("timestamp", "TIMESTAMP", "H", _since, False),
    ("partition", "PARTITION", "P", _partition, False),
    ("partitionname", "PARTITION", "R", lambda v, p, n: p, False),
    ("time", "TIMELIMIT", "l", lambda v, p, n: squeue_secs(MAX_TIME_S[p]), False),
    ("defaulttime", "DEFAULTTIME", "L", _const("n/a"), False),
    ("nodes", "NODES", "D", lambda v, p, n: str(len(n)), True),
    ("nodeaiot", "NODES(A/I/O/T)", "F", _node_counts, True),
    ("nodeai", "NODES(A/I)", "A", lambda v, p, n: "/".join(_node_counts(v, p, n).split("/")[:2]),
     True),
    ("size", "JOB_SIZE", "s", _const("1-infinite"), False),
    ("root", "ROOT", "r", _const("no"), False),
    ("oversubscribe", "OVERSUBS", "h", _const("NO"), False),
    ("groups", "GROUPS", "g", _const("all"), False),
    ("features", "AVAIL_FEATURES", "f", _const("(null)"), False),
    ("features_act", "ACTIVE_FEATURES", "b", _const("(null)"), False),
    ("sct", "S:C:T", "z", _const("2:64:1"), False),
    ("sockets", "SOCKETS", "X", _const("2"), False),
    ("cores", "CORES", "Y", _const("64"), False),
    ("threads", "THREADS", "Z", _const("1"), False),
    ("disk", "TMP_DISK", "d", _const("0"), False),
    ("weight", "WEIGHT", "w", _const("1"), False),
    ("version", "VERSION", "v", _const("24.11.5"), False),
    ("cluster", "CLUSTER", "V", _const(CLUSTER), False),
    ("preemptmode", "PREEMPT_MODE", "M", _const("OFF"), False),
    ("prioritytier", "PRIO_TIER", "p", _const("1"), False),
    ("comment", "COMMENT", "", _const("(null)"), False),
    ("extra", "EXTRA", "", _const("(null)"), False),
)  # fmt: skip
_BY_NAME = {name: (heading, value, joins) for name, heading, _, value, joins in _TABLE}
_BY_NAME["freememory"] = _BY_NAME["freemem"]
_BY_NAME["nodename"] = _BY_NAME["nodehost"]
_BY_LETTER = {
    letter: (heading, value, joins) for _, heading, letter, value, joins in _TABLE if letter
}
Known = tuple[str, Value, bool]


def answer(view: View, argv: tuple[str, ...]) -> Answer:
    """What sinfo prints for this command line."""
    options = _OPTIONS.parse(argv)
    if options.has("version"):
        return said(VERSION)
    if options.has("help") or options.has("usage"):
        return said("Usage: sinfo [OPTIONS]\n")
    clusters = options.get("clusters")
    if clusters not in (None, CLUSTER, "all"):
        complaint = f"sinfo: error: No cluster '{clusters}' known by database.\n"
        return said(err=complaint, rc=1)
    errors: list[str] = []
    lead, columns = _columns(options, errors)
    lines: list[str] = []
    headed = not options.has("noheader")
    if clusters is not None and headed:
        lines.append(f"CLUSTER: {CLUSTER}")
    if options.has("long") and headed:
        lines.append(view.when(view.t).strftime("%a %b %d %H:%M:%S %Y"))
    if headed:
        lines.append(lead + "".join(column.cell(column.heading) for column, _ in columns))
    by_node = options.has("Node")
    groups = _groups(view, options, [known for _, known in columns], by_node=by_node)
    for partition, nodes in groups:
        lines.append(lead + "".join(_cells(view, partition, nodes, columns)))
    return said("".join(f"{line}\n" for line in lines), "".join(errors))


def _cells(
    view: View, partition: str, nodes: Group, columns: list[tuple[Column[Group], Known | None]]
) -> Iterable[str]:
    for column, known in columns:
        yield column.cell(known[1](view, partition, nodes) if known else "")


def _columns(
    options: Options, errors: list[str]
) -> tuple[str, list[tuple[Column[Group], Known | None]]]:
    columns: list[tuple[Column[Group], Known | None]] = []
    names = options.get("Format")
    if names is not None:
        for text in names.split(","):
            match = _NAME.fullmatch(text)
            name, dot, width, suffix = match.groups() if match else (text, None, None, None)
            known = _BY_NAME.get(name.lower())
            if known is None:
                errors.append(f"sinfo: error: Invalid job format specification: {name}\n")
            size = 20 if dot is None else min(int(width or 0), _MAX_WIDTH)
            heading = known[0] if known else ""
            columns.append((Column(heading, None, size, bool(dot), suffix or ""), known))
        return "", columns
    given = options.get("format")
    text = _default_format(options) if given is None else given
    lead = text.partition("%")[0]
    for dot, width, letter, suffix in _LETTER.findall(text[len(lead) :]):
        known = _BY_LETTER.get(letter)
        if known is None:
            errors.append(f"Invalid node format specification: {letter}\n")
            suffix = f"%{dot}{width}{letter}{suffix}"
        size = min(int(width or 0), _MAX_WIDTH)
        columns.append((Column(known[0] if known else "", None, size, bool(dot), suffix), known))
    return lead, columns


def _default_format(options: Options) -> str:
    if options.has("list-reasons"):
        return _REASONS
    if options.has("summarize"):
        return _SUMMARY
    if options.has("Node"):
        return _NODE_LONG if options.has("long") else _NODE
    return _LONG if options.has("long") else _DEFAULT


def _groups(
    view: View, options: Options, known: list[Known | None], *, by_node: bool
) -> list[tuple[str, Group]]:
    """Nodes that would print the same line, together; every partition for itself."""
    wanted = options.get("partition")
    names = options.get("nodes")
    states = options.get("states")
    groups: dict[tuple[str, ...], tuple[str, Group]] = {}
    for partition, members in PARTITIONS.items():
        if wanted is not None and partition not in wanted.split(","):
            continue
        for name in members:
            node = view.world.nodes[name]
            if options.has("list-reasons") and not node.reason:
                continue
            if names is not None and name not in names.split(","):
                continue
            if states is not None and not _has_state(view, node, states):
                continue
            parts = [one[1](view, partition, [node]) for one in known if one and not one[2]]
            key = (partition, name) if by_node else tuple(parts)
            if options.has("summarize"):
                key = (partition,)
            group = groups.setdefault(key, (partition, []))[1]
            if node not in group:
                group.append(node)
    rows = list(groups.values())
    if by_node:
        rows.sort(key=lambda row: (row[1][0].name, row[0]))
    return rows


def _has_state(view: View, node: DemoNode, states: str) -> bool:
    words = {state_long(view, node).rstrip("*+"), state_compact(view, node).rstrip("*+")}
    words.update(complete_state(view, node).lower().split("+"))
    wanted = {word.lower() for word in states.split(",") if word}
    if not wanted:
        raise Misused(said(err=f"sinfo: error: Bad state string: {states}\n", rc=1))
    return not words.isdisjoint(wanted)
