"""``nvidia-smi nvlink -s``: the speed of each NVLink, or that it is down.

Sample; a card without NVLink has no block::

    GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-1111-2222-3333-444455550000)
    \t Link 0: 26.562 GB/s
    \t Link 1: <inactive>
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from slurmtop.model.snapshot import BadRecord, Parsed
from slurmtop.parse.gpu.values import number

_GPU = re.compile(r"GPU (?P<index>\d{1,4}): .{0,200}?\(UUID: (?P<uuid>GPU-[\w-]{1,80})\)")
_LINK = re.compile(r"\s*Link (?P<link>\d{1,3}): (?P<says>.{1,60}?)\s*$")
_EXCERPT = 200


@dataclass(frozen=True, slots=True)
class NvLink:
    """One link of one GPU. ``gb_s`` is None where the link is down (``active`` false)."""

    gpu_uuid: str
    link: int
    gb_s: float | None
    active: bool


def parse_nvlink(data: bytes) -> Parsed[NvLink]:
    """Every link. MIG has none to show ("not supported for Devices in MIG mode"). Never raises."""
    return Parsed.of(_links(data))


def _links(data: bytes) -> Iterator[NvLink | BadRecord]:
    uuid: str | None = None
    for index, line in enumerate(data.decode("utf-8", "replace").split("\n")):
        if card := _GPU.match(line.strip()):
            uuid = card["uuid"]
        elif found := _LINK.match(line):
            says = found["says"].strip()
            speed = number(says)
            if uuid is None or (speed is None and says != "<inactive>"):
                yield BadRecord(index, f"link says {says!r}", line[:_EXCERPT])
                continue
            yield NvLink(uuid, int(found["link"]), speed, speed is not None)
