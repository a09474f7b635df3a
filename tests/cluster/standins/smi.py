"""``nvidia-smi`` of a node: the forms that slurmtop asks for, as the real one prints them."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from tests.cluster.standins.cards import (
    FOLDER,
    MEMORY_MIB,
    NAME,
    POWER_LIMIT_W,
    Card,
    Reading,
    State,
    cards,
    read,
    read_state,
)

STUCK = FOLDER / "nvidia-smi"
_NOT = "[N/A]"


@dataclass(frozen=True)
class Row:
    """One GPU at one moment, for the columns."""

    card: Card
    got: Reading
    state: State

    def unless_mig(self, value: object) -> str:
        return _NOT if self.card.mig else str(value)


@dataclass(frozen=True)
class Field:
    """One field: what the header calls it, its unit, its value, the driver that brought it."""

    label: str
    value: Callable[[Row], object]
    unit: str = ""
    since: int = 0


def _now() -> str:
    """The node's own time, as the real one prints it."""
    return f"{datetime.now().astimezone():%Y/%m/%d %H:%M:%S.%f}"[:-3]


def _reason(bit: int) -> Callable[[Row], str]:
    return lambda row: "Active" if row.got.events & bit else "Not Active"


def _fields() -> dict[str, Field]:
    def mib(value: Callable[[Row], int], name: str, since: int = 0) -> Field:
        return Field(name, value, "MiB", since)

    reasons = {
        "active": lambda row: f"0x{row.got.events:016x}",
        "gpu_idle": _reason(0x1),
        "sw_power_cap": _reason(0x4),
        "hw_slowdown": _reason(0x8),
        "sw_thermal_slowdown": _reason(0x20),
        "hw_thermal_slowdown": _reason(0x40),
        "hw_power_brake_slowdown": _reason(0x80),
    }
    found = {
        "timestamp": Field("timestamp", lambda _: _now()),
        "index": Field("index", lambda row: row.card.index),
        "count": Field("count", lambda _: 8),
        "uuid": Field("uuid", lambda row: row.card.uuid),
        "pci.bus_id": Field("pci.bus_id", lambda row: row.card.bus_id),
        "name": Field("name", lambda _: NAME),
        "driver_version": Field("driver_version", lambda row: row.state.driver[1]),
        "memory.total": mib(lambda _: MEMORY_MIB, "memory.total"),
        "memory.used": mib(lambda row: row.got.memory_mib, "memory.used"),
        "memory.free": mib(lambda row: MEMORY_MIB - 614 - row.got.memory_mib, "memory.free"),
        "memory.reserved": mib(lambda _: 614, "memory.reserved", 510),
        "utilization.gpu": Field("utilization.gpu", lambda row: row.unless_mig(row.got.util), "%"),
        "utilization.memory": Field(
            "utilization.memory", lambda row: row.unless_mig(row.got.mem_util), "%"
        ),
        "temperature.gpu": Field("temperature.gpu", lambda row: row.got.temp_c),
        "temperature.memory": Field("temperature.memory", lambda row: row.got.mem_temp_c),
        "fan.speed": Field("fan.speed", lambda _: _NOT, "%"),
        "power.draw": Field("power.draw", lambda row: f"{row.got.power_w:.2f}", "W"),
        "power.draw.average": Field(
            "power.draw.average", lambda row: f"{row.got.power_w:.2f}", "W", 535
        ),
        "power.draw.instant": Field(
            "power.draw.instant", lambda row: f"{row.got.power_w:.2f}", "W", 535
        ),
        "power.limit": Field("power.limit", lambda _: f"{POWER_LIMIT_W:.2f}", "W"),
        "clocks.current.sm": Field("clocks.current.sm", lambda row: row.got.clock_mhz, "MHz"),
        "clocks.max.sm": Field("clocks.max.sm", lambda _: 1980, "MHz"),
        "pstate": Field("pstate", lambda row: row.got.pstate),
        "persistence_mode": Field("persistence_mode", lambda _: "Enabled"),
        "mig.mode.current": Field(
            "mig.mode.current", lambda row: "Enabled" if row.card.mig else "Disabled"
        ),
        "ecc.errors.uncorrected.volatile.total": Field(
            "ecc.errors.uncorrected.volatile.total", lambda _: 0
        ),
        "ecc.errors.corrected.volatile.total": Field(
            "ecc.errors.corrected.volatile.total", lambda _: 0
        ),
        "remapped_rows.correctable": Field(
            "remapped_rows.correctable", lambda row: row.unless_mig(0)
        ),
        "remapped_rows.uncorrectable": Field(
            "remapped_rows.uncorrectable", lambda row: row.unless_mig(0)
        ),
        "remapped_rows.pending": Field("remapped_rows.pending", lambda row: row.unless_mig("No")),
        "remapped_rows.failure": Field("remapped_rows.failure", lambda row: row.unless_mig("No")),
        "gpu_recovery_action": Field("gpu_recovery_action", lambda _: "None", since=570),
        "fabric.state": Field("fabric.state", lambda _: "Completed", since=530),
        "fabric.status": Field("fabric.status", lambda _: "Success", since=530),
        "fabric.cliqueId": Field("fabric.cliqueId", lambda _: 0, since=550),
        "fabric.clusterUuid": Field(
            "fabric.clusterUuid", lambda _: "00000000-0000-0000-0000-000000000000", since=550
        ),
    }
    for name, value in reasons.items():
        new, old = f"clocks_event_reasons.{name}", f"clocks_throttle_reasons.{name}"
        found[new] = Field(new, value, since=535)
        found[old] = Field(old, value)
    for alias, name in {
        "gpu_name": "name",
        "gpu_uuid": "uuid",
        "gpu_bus_id": "pci.bus_id",
        "clocks.sm": "clocks.current.sm",
    }.items():
        found[alias] = found[name]
    return found


_FIELDS = _fields()
_APP_FIELDS = {
    "timestamp": "timestamp",
    "gpu_name": "gpu_name",
    "gpu_bus_id": "gpu_bus_id",
    "gpu_uuid": "gpu_uuid",
    "pid": "pid",
    "process_name": "process_name",
    "name": "process_name",
    "used_gpu_memory": "used_gpu_memory [MiB]",
    "used_memory": "used_gpu_memory [MiB]",
}


class Refused(Exception):
    """The real one prints this on stdout and ends with ``status``."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


@dataclass
class Wish:
    """The command line."""

    gpu_fields: list[str] | None = None
    app_fields: list[str] | None = None
    forms: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    every_s: float | None = None
    listing: bool = False


def read_wish(words: list[str]) -> Wish:
    wish = Wish()
    rest = iter(words)
    for word in rest:
        name, mark, value = word.partition("=")
        if name in ("-i", "-l", "-lms") and not mark:
            value = next(rest, "")
        if name == "--query-gpu":
            wish.gpu_fields = [part.strip() for part in value.split(",")]
        elif name in ("--query-compute-apps", "--query-apps"):
            wish.app_fields = [part.strip() for part in value.split(",")]
        elif name == "--format":
            wish.forms = tuple(part.strip() for part in value.split(","))
        elif name in ("-i", "--id"):
            wish.only = tuple(value.split(","))
        elif name in ("-l", "--loop", "-lms", "--loop-ms") and value.isdigit():
            wish.every_s = int(value) / (1000 if name.endswith("ms") else 1)
        elif name in ("-L", "--list-gpus"):
            wish.listing = True
        else:
            raise Refused(f"Invalid combination of input arguments. Not known here: {word}", 1)
    if (wish.gpu_fields or wish.app_fields) and "csv" not in wish.forms:
        raise Refused('"--format=" switch is missing. The only supported format is: csv', 1)
    return wish


def main() -> None:
    """Answer as the node's state has it."""
    # Python ignores SIGPIPE, which the real one dies of.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if read_state().mode == "hung":
        _hang()
    try:
        wish = read_wish(sys.argv[1:])
        _answer(wish, header="noheader" not in wish.forms)
        while wish.every_s is not None and not wish.listing:
            time.sleep(wish.every_s)
            if read_state().mode == "hung":
                _hang()
            _answer(wish, header=False)
    except Refused as refusal:
        print(refusal)
        sys.exit(refusal.status)


def _hang() -> None:
    """Become the program that the user cannot end, as one that waits in a stuck driver."""
    sys.stdout.flush()
    os.execv(STUCK, ["nvidia-smi", *sys.argv[1:]])


def _answer(wish: Wish, *, header: bool) -> None:
    state = read_state()
    all_cards = cards(state)
    if wish.listing:
        _list(all_cards)
    elif wish.gpu_fields is not None:
        _query(_chosen(all_cards, wish.only), wish.gpu_fields, wish.forms, header, state)
    elif wish.app_fields is not None:
        _apps(_chosen(all_cards, wish.only), wish.app_fields, wish.forms, header, state)
    else:
        raise Refused("The default table is not among what this stand-in prints.", 1)
    sys.stdout.flush()


def _chosen(all_cards: list[Card], only: tuple[str, ...]) -> list[Card]:
    chosen = [
        card
        for card in all_cards
        if not only or {str(card.index), card.uuid, card.bus_id, card.bus_id.lower()} & set(only)
    ]
    if not chosen:
        raise Refused("No devices were found", 6)
    for card in chosen:
        if card.lost:
            # One dead GPU takes the rows of all others along.
            bus = card.bus_id.removeprefix("0000")
            raise Refused(f"Unable to determine the device handle for GPU{bus}: Unknown Error", 255)
    return chosen


def _query(
    chosen: list[Card], names: list[str], forms: tuple[str, ...], header: bool, state: State
) -> None:
    major = state.driver[0]
    for name in names:
        field = _FIELDS.get(name)
        if field is None or field.since > major:
            raise Refused(f'Field "{name}" is not a valid field to query.\n', 2)
    fields = [_FIELDS[name] for name in names]
    if header:
        labels = [f"{one.label} [{one.unit}]" if one.unit else one.label for one in fields]
        text = ", ".join(labels)
        # Since 535 the header says the new name, whatever was asked for.
        if major >= 535:
            text = text.replace("clocks_throttle_reasons", "clocks_event_reasons")
        print(text)
    for card in chosen:
        row = Row(card, read(card, state), state)
        print(", ".join(_cell(str(one.value(row)), one.unit, forms) for one in fields))


def _cell(text: str, unit: str, forms: tuple[str, ...]) -> str:
    bare = not unit or "nounits" in forms or text.startswith("[")
    return text if bare else f"{text} {unit}"


def _apps(
    chosen: list[Card], names: list[str], forms: tuple[str, ...], header: bool, state: State
) -> None:
    for name in names:
        if name not in _APP_FIELDS:
            raise Refused(f'Field "{name}" is not a valid field to query.\n', 2)
    if header:
        print(", ".join(_APP_FIELDS[name] for name in names))
    for card in chosen:
        memory = _NOT if card.mig else str(read(card, state).memory_mib - 59)
        for one in card.processes:
            cells = {
                "timestamp": _now(),
                "gpu_name": NAME,
                "gpu_bus_id": card.bus_id,
                "gpu_uuid": card.uuid,
                "pid": str(one.pid),
                "process_name": one.name,
                "name": one.name,
                "used_gpu_memory": _cell(memory, "MiB", forms),
                "used_memory": _cell(memory, "MiB", forms),
            }
            print(", ".join(cells[name] for name in names))


def _list(all_cards: list[Card]) -> None:
    for card in all_cards:
        if card.lost:
            bus = card.bus_id.removeprefix("0000")
            print(
                f"Unable to determine the device handle for gpu {bus}: "
                "GPU is lost.  Reboot the system to recover this GPU"
            )
            continue
        print(f"GPU {card.index}: {NAME} (UUID: {card.uuid})")
        if card.mig:
            for number in range(2):
                slice_uuid = card.uuid.replace("GPU-", "MIG-").replace("-5113-", f"-{number:04d}-")
                print(f"  MIG 3g.40gb     Device  {number}: (UUID: {slice_uuid})")
