"""The eight make-believe H100 of a node: who is on which, and what they measure.

Runs on a node, as whoever asks, by the system's interpreter alone. What a fault has set stands in
:data:`STATE`; which process is on which GPU is read from ``/proc``.
"""

from __future__ import annotations

import json
import math
import re
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.standins.ranks import GpuProcess, processes_on_gpus

#: Below the node's own /run: a node that starts anew has healthy GPUs.
FOLDER = Path("/run/gpus")
STATE = FOLDER / "state.json"
MODES = (
    "normal",
    "straggler",
    "waiting",
    "idle",
    "hung",
    "old-driver",
    "lost",
    "mig",
    "no-hostengine",
    "no-profiling",
)
#: These are about one GPU of the node.
OF_ONE_GPU = ("straggler", "lost", "mig")
NAME = "NVIDIA H100 80GB HBM3"
MEMORY_MIB = 81559
POWER_LIMIT_W = 700.0
_BUSES = ("17", "2A", "3B", "5D", "9A", "AB", "CA", "DA")


@dataclass(frozen=True)
class State:
    """What a fault has set: a mode, and the GPU that it is about."""

    mode: str = "normal"
    gpu: int | None = None

    def about(self, index: int, mode: str) -> bool:
        return self.mode == mode and self.gpu == index

    @property
    def driver(self) -> tuple[int, str]:
        """Major number and full version of the driver."""
        return (525, "525.85.12") if self.mode == "old-driver" else (590, "590.48.01")


@dataclass(frozen=True)
class Reading:
    """What one GPU measures at one moment; shares are 0–1."""

    util: int = 0
    mem_util: int = 0
    memory_mib: int = 59
    power_w: float = 71.15
    temp_c: int = 33
    mem_temp_c: int = 42
    clock_mhz: int = 345
    pstate: str = "P0"
    events: int = 0x1
    sm: float = 0.0
    occupancy: float = 0.0
    tensor: float = 0.0
    dram: float = 0.0
    pcie_rx: int = 900
    pcie_tx: int = 700
    nvlink: int = 0
    xid: int = 0


@dataclass(frozen=True)
class Card:
    """One GPU of a node."""

    index: int
    dcgm_id: int
    uuid: str
    bus_id: str
    processes: tuple[GpuProcess, ...]
    lost: bool = False
    mig: bool = False
    slow: bool = False


def read_state() -> State:
    """What a fault has set; all is well where nothing was."""
    try:
        data = json.loads(STATE.read_text())
    except FileNotFoundError:
        return State()
    return State(data["mode"], data["gpu"])


def uuid_of(node: str, index: int) -> str:
    """The UUID of a GPU: no two nodes share one, and it tells where it is from.

    >>> uuid_of("gpu03", 5)
    'GPU-00030005-5113-4b0c-8a6e-000003000005'
    """
    number = int(re.sub(r"\D", "", node) or 0)
    return f"GPU-{number:04d}{index:04d}-5113-4b0c-8a6e-{number:06d}{index:06d}"


def bus_id_of(index: int) -> str:
    return f"00000000:{_BUSES[index]}:00.0"


def dcgm_id_of(node: str, index: int) -> int:
    """DCGM counts in another order than nvidia-smi on nodes with an even number."""
    even = int(re.sub(r"\D", "", node) or 0) % 2 == 0
    return (index + 4) % len(_BUSES) if even else index


def cards(state: State) -> list[Card]:
    """The GPUs of this node, with the processes that are on them now."""
    node = socket.gethostname()
    found = processes_on_gpus()
    return [
        Card(
            index=index,
            dcgm_id=dcgm_id_of(node, index),
            uuid=uuid_of(node, index),
            bus_id=bus_id_of(index),
            processes=tuple(one for one in found if one.gpu == index),
            lost=state.about(index, "lost"),
            mig=state.about(index, "mig"),
            slow=state.about(index, "straggler"),
        )
        for index in range(len(_BUSES))
    ]


def read(card: Card, state: State) -> Reading:
    """What ``card`` measures now. The anchors are measured ones (README.md)."""
    if not card.processes:
        return Reading(xid=79 if card.lost else 0)
    # No two GPUs and no two moments are quite the same.
    wave = math.sin(time.time() / 7 + card.index * 2.3)
    memory = 71002 + 8 * card.index
    if state.mode == "waiting":
        return Reading(
            util=100,
            memory_mib=memory,
            power_w=162 + 2 * wave,
            temp_c=41,
            mem_temp_c=48,
            clock_mhz=1980,
            events=0,
            sm=0.130,
            occupancy=0.020,
            dram=0.002,
            pcie_rx=40111,
            pcie_tx=21007,
        )
    if state.mode == "idle":
        # Its rank is there and launches nothing: clocks stay up while a context is open.
        return Reading(memory_mib=memory, power_w=118 + wave, clock_mhz=1980, temp_c=38, events=0)
    if card.slow:
        return Reading(
            util=100,
            mem_util=24,
            memory_mib=memory,
            power_w=402 + 4 * wave,
            temp_c=92,
            mem_temp_c=95,
            clock_mhz=990,
            events=0x48,
            sm=0.930 + 0.004 * wave,
            occupancy=0.244,
            tensor=0.141 + 0.004 * wave,
            dram=0.108,
            pcie_rx=436_754_836,
            pcie_tx=210_114_902,
            nvlink=2_495_779_436,
        )
    return Reading(
        util=round(98.5 + 1.4 * wave),
        mem_util=41,
        memory_mib=memory,
        power_w=585 + 14 * wave,
        temp_c=round(61 + 2 * wave),
        mem_temp_c=round(68 + 2 * wave),
        clock_mhz=1980,
        events=0,
        sm=0.911 + 0.004 * wave,
        occupancy=0.244,
        tensor=0.280 + 0.004 * wave,
        dram=0.213,
        pcie_rx=873_509_672,
        pcie_tx=420_229_804,
        nvlink=4_991_558_873,
    )
