"""``dcgmi`` of a node: ``dmon`` and ``discovery -l``, in the real one's columns."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType

from tests.cluster.standins.cards import NAME, Card, Reading, State, cards, read, read_state

_HEADER_EVERY = 14
_NOT = "N/A"


@dataclass(frozen=True)
class Column:
    """One field of DCGM: heading, width, unit, value; a rate needs two samples."""

    name: str
    width: int
    value: Callable[[Reading], str]
    unit: str = ""
    rate: bool = False


def _share(pick: Callable[[Reading], float]) -> Callable[[Reading], str]:
    return lambda got: f"{pick(got):.3f}"


COLUMNS = {
    100: Column("SMCLK", 13, lambda got: str(got.clock_mhz)),
    112: Column("DVCCTR", 28, lambda got: str(got.events)),
    140: Column("MMTMP", 13, lambda got: str(got.mem_temp_c), "C"),
    150: Column("TMPTR", 13, lambda got: str(got.temp_c), "C"),
    155: Column("POWER", 18, lambda got: f"{got.power_w:.3f}", "W"),
    203: Column("GPUTL", 18, lambda got: str(got.util)),
    204: Column("MCUTL", 18, lambda got: str(got.mem_util)),
    230: Column("XIDER", 13, lambda got: str(got.xid)),
    252: Column("FBUSD", 13, lambda got: str(got.memory_mib)),
    1001: Column("GRACT", 13, _share(lambda got: got.sm), rate=True),
    1002: Column("SMACT", 13, _share(lambda got: got.sm), rate=True),
    1003: Column("SMOCC", 13, _share(lambda got: got.occupancy), rate=True),
    1004: Column("TENSO", 13, _share(lambda got: got.tensor), rate=True),
    1005: Column("DRAMA", 13, _share(lambda got: got.dram), rate=True),
    1009: Column("PCITX", 28, lambda got: str(got.pcie_tx), rate=True),
    1010: Column("PCIRX", 28, lambda got: str(got.pcie_rx), rate=True),
    1011: Column("NVLTX", 28, lambda got: str(got.nvlink), rate=True),
    1012: Column("NVLRX", 28, lambda got: str(got.nvlink), rate=True),
}


class Refused(Exception):
    """Printed on stdout; the exit status is 255 less the number of DCGM."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


@dataclass
class Wish:
    """``dmon -e IDS [-d MS] [-c N] [-i GPUS]``."""

    columns: list[Column]
    every_s: float = 1.0
    count: int = 0
    only: tuple[str, ...] = ()


def main() -> None:
    """Answer as the node's state has it."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, _stopped)
    signal.signal(signal.SIGINT, _stopped)
    try:
        words = sys.argv[1:]
        state = read_state()
        if state.mode == "hung":
            # It waits for an engine that waits for the driver.
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            while True:
                signal.pause()
        if state.mode == "no-hostengine":
            raise Refused(
                "Error: unable to establish a connection to the specified host: localhost\n"
                "Error: Unable to connect to host engine. "
                "Host engine connection invalid/disconnected.",
                255,
            )
        if words[:1] == ["dmon"]:
            _dmon(_read_wish(words[1:], state))
        elif words[0:1] == ["discovery"] and set(words[1:]) & {"-l", "--list"}:
            _discover(cards(state))
        else:
            raise Refused(f"Error: not among what this stand-in answers: {' '.join(words)}", 1)
    except Refused as refusal:
        print(refusal)
        sys.exit(refusal.status)


def _stopped(_number: int, _frame: FrameType | None) -> None:
    print("dmon was stopped due to receiving a signal.", flush=True)
    sys.exit(0)


def _read_wish(words: list[str], state: State) -> Wish:
    wish = Wish([])
    rest = iter(words)
    for word in rest:
        name, mark, value = word.partition("=")
        value = value if mark else next(rest, "")
        if name in ("-e", "--field-id"):
            ids = [int(one) for one in value.split(",")]
            if any(one not in COLUMNS for one in ids):
                raise Refused("Error: a field that this stand-in does not have", 1)
            if state.mode == "no-profiling" and any(one > 1000 for one in ids):
                raise Refused(
                    "Error setting watches. Result: -33: This request is serviced by a module of "
                    "DCGM that is not currently loaded",
                    223,
                )
            wish.columns = [COLUMNS[one] for one in ids]
        elif name in ("-d", "--delay"):
            wish.every_s = int(value) / 1000
        elif name in ("-c", "--count"):
            wish.count = int(value)
        elif name in ("-i", "--gpu-id"):
            wish.only = tuple(value.split(","))
        else:
            raise Refused(f"Error: not among what this stand-in answers: {word}", 1)
    return wish


def _dmon(wish: Wish) -> None:
    printed, rounds = 0, 0
    while True:
        state = read_state()
        found = sorted(cards(state), key=lambda card: card.dcgm_id)
        for card in found:
            if wish.only and str(card.dcgm_id) not in wish.only:
                continue
            if printed % _HEADER_EVERY == 0:
                print("#Entity".ljust(16) + "".join(c.name.ljust(c.width) for c in wish.columns))
                print("ID".ljust(16) + "".join(c.unit.ljust(c.width) for c in wish.columns))
            got = read(card, state)
            cells = [
                _cell(card, column, got, rounds).ljust(column.width) for column in wish.columns
            ]
            print(f"GPU {card.dcgm_id}".ljust(16) + "".join(cells))
            printed += 1
        sys.stdout.flush()
        rounds += 1
        if rounds == wish.count:
            return
        time.sleep(wish.every_s)


def _cell(card: Card, column: Column, got: Reading, rounds: int) -> str:
    if column.name == "XIDER":
        return column.value(got)
    if card.lost or (column.rate and rounds == 0):
        return _NOT
    if card.mig and column.name in ("GPUTL", "MCUTL"):
        return _NOT
    return column.value(got)


def _discover(all_cards: list[Card]) -> None:
    line = f"+--------+{'-' * 70}+"
    print(f"{len(all_cards)} GPUs found.\n{line}")
    print(f"| {'GPU ID':6} | {'Device Information':68} |\n{line}")
    for card in sorted(all_cards, key=lambda card: card.dcgm_id):
        first = (str(card.dcgm_id), f"Name: {NAME}")
        rows = (first, ("", f"PCI Bus ID: {card.bus_id}"), ("", f"Device UUID: {card.uuid}"))
        for left, right in rows:
            print(f"| {left:6} | {right:68} |")
        print(line)
    print("0 NvSwitches found.\n0 CPUs found.")
