"""``nvidia-smi topo -m``: how GPUs and network cards of a node are connected.

Cells are parted by tabs, and the header is underlined with escapes even into a pipe::

    ESC[4mGPU0  GPU1  NIC0  CPU Affinity  NUMA Affinity  GPU NUMA ID ESC[0m
    GPU0   X    NV18  PIX   0-47          0              N/A
"""

import re
from dataclasses import dataclass, field

_ESCAPE = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")
_DEVICE = re.compile(r"(?:GPU|NIC|mlx|hfi|bnxt)\w{0,30}")
_NIC_NAME = re.compile(r"\s*(NIC\d{1,4}): (\S{1,80})")


@dataclass(frozen=True, slots=True)
class Connections:
    """One device: ``links`` to others (NV18, PIX, SYS …), its CPUs and NUMA node as printed."""

    links: dict[str, str] = field(default_factory=dict)
    cpus: str | None = None
    numa: str | None = None


@dataclass(frozen=True, slots=True)
class Topology:
    """Devices by their name in the table (GPU0, NIC0), and what the network cards are called."""

    devices: dict[str, Connections] = field(default_factory=dict)
    nics: dict[str, str] = field(default_factory=dict)


def parse_topo(data: bytes) -> Topology:
    """The whole matrix; rows of network cards may lack the last columns. Never raises."""
    devices: dict[str, Connections] = {}
    nics: dict[str, str] = {}
    header: list[str] = []
    for line in _ESCAPE.sub("", data.decode("utf-8", "replace")).split("\n"):
        cells = [cell.strip() for cell in line.split("\t")]
        if named := _NIC_NAME.fullmatch(line.rstrip()):
            nics[named[1]] = named[2]
        elif not header and len(cells) > 1 and not cells[0] and _DEVICE.fullmatch(cells[1]):
            header = cells[1:]
        elif header and len(cells) > 1 and _DEVICE.fullmatch(cells[0]):
            row = dict(zip(header, cells[1:], strict=False))
            links = {
                name: value
                for name, value in row.items()
                if _DEVICE.fullmatch(name) and value and name != cells[0] and value != "X"
            }
            devices[cells[0]] = Connections(
                links, row.get("CPU Affinity") or None, row.get("NUMA Affinity") or None
            )
    return Topology(devices, nics)
