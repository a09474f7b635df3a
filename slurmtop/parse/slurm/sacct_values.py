"""From the texts of one sacct row to the model: numbers, clocks, sizes, memory asked for.

Sample (``sacct -P -o JobID,TotalCPU,Elapsed,MaxRSS,AveDiskRead,ReqMem,ConsumedEnergy``)::

    7101.batch|00:03.042|00:05:00|8.50M|0.01M|4Gc|1.20M

``00:03.042`` is three seconds, ``4Gc`` is for each CPU, and ``1.20M`` joules count by
thousands. Nothing here raises.
"""

import re
from collections.abc import Callable
from typing import Any

from slurmtop.model.job import AccountingRecord, Tres
from slurmtop.parse.slurm.ids import parse_job_id
from slurmtop.parse.slurm.scontrol import parse_exit_code
from slurmtop.parse.slurm.states import parse_state
from slurmtop.parse.slurm.times import parse_duration, parse_limit, parse_time
from slurmtop.parse.slurm.tres import parse_count, parse_mem, parse_tres
from slurmtop.parse.slurm.words import user_text_or_none, value_or_none

_REQ_MEM = re.compile(r"(?P<size>\?|[\d.]{1,20}[KMGTPE]?)(?P<per>[cn]?)\Z")
_MIB_SIZE = re.compile(r"([\d.]{1,20})([KMGTPE]?)\Z")
_MIB_FACTORS = {"": 1 / 1024**2, "K": 1 / 1024, "M": 1.0, "G": 1024.0}


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else None


def _raw_or_clock(text: str) -> int | None:
    """``ElapsedRaw`` and ``CPUTimeRAW`` are seconds; ``Elapsed`` and ``CPUTime`` a clock."""
    seconds = _whole(text)
    if seconds is not None:
        return seconds
    clock = parse_duration(text)
    return None if clock is None else int(clock)


def _seconds(text: str) -> float | None:
    return parse_duration(text) if ":" in text else None


def _mib(text: str) -> float | None:
    match = _MIB_SIZE.match(text)
    if match is None or match[1].count(".") > 1 or not match[1].strip("."):
        return None
    factor = _MIB_FACTORS.get(match[2])
    return float(match[1]) * (1024.0**2 if factor is None else factor)


def _joules(text: str) -> int | None:
    """Slurm shortens energy by thousands, and prints a marker near 2**64 for "not measured"."""
    value = parse_count(text, 1_000)
    return None if value is None else round(value)


_CONVERT: dict[str, Callable[[str], Any]] = {
    "raw_id": value_or_none,
    "cluster": value_or_none,
    "user": value_or_none,
    "account": value_or_none,
    "partition": value_or_none,
    "state": parse_state,
    "exit_code": parse_exit_code,
    "derived_exit_code": parse_exit_code,
    "submit": parse_time,
    "eligible": parse_time,
    "start": parse_time,
    "end": parse_time,
    "elapsed_s": _raw_or_clock,
    "limit": parse_limit,
    "node_count": _whole,
    "nodes": value_or_none,
    "allocated": parse_tres,
    "requested": parse_tres,
    "usage_total": parse_tres,
    "usage_average": parse_tres,
    "usage_max": parse_tres,
    "total_cpu_s": _seconds,
    "user_cpu_s": _seconds,
    "cpu_time_s": _raw_or_clock,
    "ave_cpu_s": _seconds,
    "max_rss_bytes": parse_mem,
    "disk_read_mib": _mib,
    "energy_j": _joules,
    "reason": value_or_none,
    "restarts": _whole,
    "name": str,
    "workdir": user_text_or_none,
    "comment": user_text_or_none,
    "submit_line": user_text_or_none,
    "stdout": user_text_or_none,
    "stderr": user_text_or_none,
}


def _req_mem(found: dict[str, str], allocated: Tres, requested: Tres) -> dict[str, Any]:
    """ReqMem in all: ``4Gc`` is for each CPU and ``120Gn`` for each node (up to 20.11).

    0 asks for all memory of a node, which AllocTRES tells; ``?`` is not known.
    """
    match = _REQ_MEM.match(found["req_mem"])
    if match is None:
        return {}
    per = {"c": "cpu", "n": "node"}.get(match["per"])
    size = parse_mem(match["size"], "M" if per else "")
    if match["size"] == "?" or size is None:
        return {"req_mem_per": per}
    if size == 0:
        return {"req_mem_per": per, "req_mem_bytes": allocated.mem_bytes or requested.mem_bytes}
    if per is None:
        return {"req_mem_bytes": size}
    if per == "cpu":
        times = _whole(found.get("req_cpus", "")) or requested.cpus or allocated.cpus
    else:
        nodes = found.get("req_nodes") or found.get("node_count") or ""
        times = _whole(nodes) or requested.nodes or allocated.nodes
    total = size * times if times else requested.mem_bytes
    return {"req_mem_per": per, "req_mem_each_bytes": size, "req_mem_bytes": total}


def build_record(found: dict[str, str], unsure: bool) -> AccountingRecord | str:
    """The model of one row, or why there is none."""
    id = parse_job_id(found.get("id") or found.get("raw_id") or "")
    if not id.base:
        return f"no job id: {id.text[:40]!r}"
    values = {field: convert(found[field]) for field, convert in _CONVERT.items() if field in found}
    allocated, requested = values.get("allocated", Tres()), values.get("requested", Tres())
    if "alloc_cpus" in found and "allocated" not in found:
        values["allocated"] = Tres(cpus=_whole(found["alloc_cpus"]))
    if "req_mem" in found:
        values.update(_req_mem(found, allocated, requested))
    return AccountingRecord(
        id=id, never_started=found.get("start") == "None", name_unsure=unsure, **values
    )
