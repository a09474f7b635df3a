"""The fields of ``nvidia-smi --query-gpu``: what is asked, and where each value goes.

One field that a driver does not know makes it refuse the whole query, so a small core that
450 … 610 all know is asked with a second set, and what is refused is renamed or dropped.
"""

from collections.abc import Callable, Sequence
from typing import Any

from slurmtop.model.gpu import GpuSample
from slurmtop.parse.gpu.failures import bad_field
from slurmtop.parse.gpu.values import (
    bare_word,
    bus_id,
    is_nothing,
    number,
    possible_or_none,
    whole,
    words_or_none,
    yes_no,
)

CORE_FIELDS = (
    "index",
    "uuid",
    "pci.bus_id",
    "name",
    "driver_version",
    "memory.total",
    "memory.used",
    "utilization.gpu",
    "utilization.memory",
    "temperature.gpu",
    "power.draw",
    "power.limit",
    "clocks.sm",
    "pstate",
    "ecc.errors.uncorrected.volatile.total",
    "mig.mode.current",
)
#: Not known to every driver. The throttle mask is asked for by its old name: 535 … 610 take both.
OPTIONAL_FIELDS = (
    "persistence_mode",
    "clocks_throttle_reasons.active",
    "temperature.memory",
    "memory.reserved",
    "remapped_rows.uncorrectable",
    "remapped_rows.pending",
    "remapped_rows.failure",
    "gpu_recovery_action",
    "fabric.state",
    "fabric.status",
    "fabric.cliqueId",
    "fabric.clusterUuid",
)
#: Asked for where the old name is refused. One way only, or two refusals would go on for ever.
_NEW_NAME = {"clocks_throttle_reasons.active": "clocks_event_reasons.active"}

_ATTRIBUTES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "index": ("index", whole),
    "uuid": ("uuid", words_or_none),
    "gpu_uuid": ("uuid", words_or_none),
    "pci.bus_id": ("bus_id", bus_id),
    "gpu_bus_id": ("bus_id", bus_id),
    "name": ("name", words_or_none),
    "gpu_name": ("name", words_or_none),
    "driver_version": ("driver", words_or_none),
    "memory.total": ("mem_total_mib", number),
    "memory.used": ("mem_used_mib", number),
    "memory.reserved": ("mem_reserved_mib", number),
    "utilization.gpu": ("util_percent", number),
    "utilization.memory": ("mem_util_percent", number),
    "temperature.gpu": ("temp_c", number),
    "temperature.memory": ("mem_temp_c", number),
    "fan.speed": ("fan_percent", number),
    "power.draw": ("power_w", number),
    "power.draw.average": ("power_w", number),
    "power.draw.instant": ("power_w", number),
    "power.limit": ("power_limit_w", number),
    "clocks.sm": ("sm_clock_mhz", number),
    "clocks.current.sm": ("sm_clock_mhz", number),
    "pstate": ("pstate", words_or_none),
    "persistence_mode": ("persistence", yes_no),
    "mig.mode.current": ("mig", yes_no),
    "clocks_throttle_reasons.active": ("events", whole),
    "clocks_event_reasons.active": ("events", whole),
    "clocks_throttle_reasons.hw_thermal_slowdown": ("hw_thermal", yes_no),
    "clocks_event_reasons.hw_thermal_slowdown": ("hw_thermal", yes_no),
    "ecc.errors.uncorrected.volatile.total": ("ecc_uncorrected", number),
    "remapped_rows.uncorrectable": ("remapped_uncorrectable", number),
    "remapped_rows.pending": ("remapped_pending", yes_no),
    "remapped_rows.failure": ("remapped_failure", yes_no),
    "gpu_recovery_action": ("recovery_action", words_or_none),
    "fabric.state": ("fabric_state", words_or_none),
    "fabric.status": ("fabric_status", words_or_none),
    "fabric.cliqueId": ("fabric_clique", whole),
    "fabric.clusterUuid": ("fabric_cluster", words_or_none),
}
_NAMING = ("index", "uuid", "bus_id")


def fields_after_refusal(fields: Sequence[str], stdout: bytes) -> tuple[str, ...] | None:
    """The fields to ask for next on a host that refused ``fields``; never the same again.

    The refused field is asked for by its newer name, or left out. Where the refusal names none
    of ``fields``, their core is left. None where nothing is left to ask for. The caller
    remembers the answer for this host.
    """
    refused = bad_field(stdout[:4_096].decode("utf-8", "replace"))
    if refused in fields:
        renamed = [_NEW_NAME.get(name, "") if name == refused else name for name in fields]
        return tuple(dict.fromkeys(name for name in renamed if name)) or None
    core = tuple(name for name in fields if name in CORE_FIELDS)
    return core if core and core != tuple(fields) else None


def read_row(fields: Sequence[str], cells: Sequence[str]) -> GpuSample | str:
    """One row with as many cells as fields; a sentence where it is no row of a GPU."""
    got: dict[str, Any] = {}
    words: list[tuple[str, str]] = []
    for field, cell in zip(fields, cells, strict=True):
        if field not in _ATTRIBUTES:
            continue
        attribute, convert = _ATTRIBUTES[field]
        value = convert(cell)
        if value is None and cell:
            words.append((attribute, cell))
        got[attribute] = possible_or_none(attribute, value)
    for attribute in _NAMING:
        says = dict(words).get(attribute)
        if says is not None and not is_nothing(says) and bare_word(says) == says:
            return f"{attribute} is {says[:40]!r}"
    uuid = got.get("uuid")
    if uuid is not None and not uuid.startswith(("GPU-", "MIG-")):
        return f"uuid is {uuid[:40]!r}"
    return GpuSample(**got, words=tuple(words))
