"""``dcgmi dmon -e IDS``: DCGM's counters as a table, and its list of GPUs.

Source: dcgmi/DeviceMonitor.cpp of DCGM. The header comes again after every 14 rows; a value that
an entity does not have is blank, so columns are cut by the header's places::

    #Entity         GPUTL             SMACT        POWER
    ID                                             W
    GPU 0           98                0.912        572.000
    GPU-I 3                           0.911

The first sample of a rate is ``N/A``: take the newest row of each entity.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from slurmtop.model.gpu import GpuSample
from slurmtop.model.snapshot import BadRecord, Parsed
from slurmtop.parse.gpu.failures import is_failure_line
from slurmtop.parse.gpu.values import dcgm_number, is_words, possible, whole

#: Counters of the profiling module: 1001–1012. Everything else works without it.
PROFILING_IDS = tuple(range(1001, 1013))
_EXCERPT = 200
_COLUMNS = {
    "SMCLK": "sm_clock_mhz",
    "DVCCTR": "events",
    "MMTMP": "mem_temp_c",
    "TMPTR": "temp_c",
    "POWER": "power_w",
    "TOTEC": "energy_mj",
    "GPUTL": "util_percent",
    "MCUTL": "mem_util_percent",
    "XIDER": "xid",
    "FBUSD": "mem_used_mib",
    "GRACT": "graphics_active",
    "SMACT": "sm_active",
    "SMOCC": "sm_occupancy",
    "TENSO": "tensor_active",
    "DRAMA": "dram_active",
    "PCITX": "pcie_tx_bytes_s",
    "PCIRX": "pcie_rx_bytes_s",
    "NVLTX": "nvlink_tx_bytes_s",
    "NVLRX": "nvlink_rx_bytes_s",
}
_WHOLE = frozenset({"events", "xid"})
_ENTITY = re.compile(r"(?P<kind>GPU-CI|GPU-I|GPU) (?P<id>\d{1,6})")
_OTHER_ENTITY = re.compile(r"(?:Switch|CPU|CORE|LINK|GPU \d{1,6} LINK) ?\S* ?\d*")


def without_profiling(ids: Sequence[int]) -> tuple[int, ...]:
    """``ids`` for a node that has no profiling counters."""
    return tuple(one for one in ids if one not in PROFILING_IDS)


def parse_dmon(data: bytes) -> Parsed[GpuSample]:
    """Every row, in order. Switches, CPUs and links are left out; errors and signs that it was
    stopped are no rows. Never raises."""
    return Parsed.of(_rows(data))


def newest(rows: Sequence[GpuSample]) -> tuple[GpuSample, ...]:
    """The last row of each entity, in the order of their first rows."""
    return tuple({(row.dcgm_id, row.slice_id): row for row in rows}.values())


def _rows(data: bytes) -> Iterator[GpuSample | BadRecord]:
    columns: list[tuple[str, int, int]] = []
    for index, raw in enumerate(data.decode("utf-8", "replace").split("\n")):
        line = raw.rstrip("\r")
        if line.startswith("#"):
            columns = _columns(line)
            continue
        if not line.strip() or line.startswith(("ID ", "ID\t")) or _is_talk(line):
            continue
        entity_end = columns[0][1] if columns else len(line)
        entity = " ".join(line[:entity_end].split())
        if _OTHER_ENTITY.fullmatch(entity):
            continue
        found = _ENTITY.fullmatch(entity)
        if found is None or not columns:
            yield BadRecord(index, f"no GPU: {entity[:40]!r}", line[:_EXCERPT])
            continue
        yield _row(line, columns, found["kind"], int(found["id"]))


def _is_talk(line: str) -> bool:
    return line.startswith("Error") or "dmon was stopped" in line or is_failure_line(line)


def _columns(header: str) -> list[tuple[str, int, int]]:
    """(name, first place, place after the last) of each column behind the entity."""
    starts = [(match.group(), match.start()) for match in re.finditer(r"\S+", header)][1:]
    ends = [start for _, start in starts[1:]] + [1_000_000]
    return [(name, start, end) for (name, start), end in zip(starts, ends, strict=False)]


def _row(line: str, columns: list[tuple[str, int, int]], kind: str, number: int) -> GpuSample:
    got: dict[str, Any] = {}
    words: list[tuple[str, str]] = []
    for name, start, end in columns:
        attribute = _COLUMNS.get(name)
        cell = line[start:end].strip()
        if attribute is None or not cell:
            continue
        value = dcgm_number(cell)
        if value is not None and not possible(attribute, value):
            value = None
        if is_words(cell):
            words.append((attribute, cell))
        keep_whole = attribute in _WHOLE and value is not None
        got[attribute] = int(value) if keep_whole and value is not None else value
    if kind == "GPU":
        return GpuSample(dcgm_id=number, **got, words=tuple(words))
    return GpuSample(slice_id=str(number), **got, words=tuple(words))


def parse_discovery(data: bytes) -> dict[int, str]:
    """``dcgmi discovery -l``: UUIDs by DCGM's GPU id, which can differ from nvidia-smi's index.

    Form (derived from its documentation)::

        | 0      | Name: NVIDIA H100 80GB HBM3                      |
        |        | Device UUID: GPU-00000000-1111-2222-3333-4444…   |
    """
    uuids: dict[int, str] = {}
    current: int | None = None
    for line in data.decode("utf-8", "replace").split("\n"):
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) != 4 or cells[0] or cells[3]:
            continue
        if cells[1]:
            current = whole(cells[1])
        label, _, value = cells[2].partition("UUID:")
        if current is not None and value.strip().startswith("GPU-") and "Device" in label:
            uuids[current] = value.strip()
    return uuids


def with_uuids(rows: Sequence[GpuSample], uuids: dict[int, str]) -> tuple[GpuSample, ...]:
    """The rows with the UUIDs of :func:`parse_discovery`; a row without one stays nameless."""
    return tuple(
        row if row.dcgm_id not in uuids else replace(row, uuid=uuids[row.dcgm_id]) for row in rows
    )
