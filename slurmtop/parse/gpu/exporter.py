"""Prometheus text, and the GPUs in what dcgm-exporter writes.

Sources: dcgm-exporter (render_metrics.go, transformation/hpc.go) and Prometheus' exposition
format. Sample::

    # TYPE DCGM_FI_DEV_GPU_UTIL gauge
    DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-…",Hostname="gpu01",hpc_job="4711"} 97

A series is repeated for each job of ``hpc_job``: the value is the same, not a part. The host
stands in ``Hostname`` or, since 2026, ``hostname``. A series that is not there is not 0.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from slurmtop.model.gpu import Answer, GpuSample, NodeGpus
from slurmtop.model.snapshot import BadRecord, Failure, Parsed, Trouble
from slurmtop.model.text import visible
from slurmtop.parse.gpu.values import bus_id, dcgm_number, is_nothing, is_words, possible, whole

_SERIES = re.compile(r"\s*(?P<name>[A-Za-z_:][A-Za-z0-9_:]{0,200})\s*(?P<rest>[{\s].*)", re.DOTALL)
_LABEL = re.compile(r'\s*(?P<name>[A-Za-z_]\w{0,100})\s*=\s*"(?P<value>(?:[^"\\]|\\.)*)"\s*,?')
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}
_STAMP = re.compile(r"(?P<value>\S+)\s+-?\d{1,20}")
_EXCERPT = 200
_AGAIN_S = 60.0
#: GPUs and slices of one node, and lines of its page. Sixteen cards of seven slices are 112; a page
#: with more than these is that of something else, and reading it would hold up the screen.
MOST_GPUS = 256
_MOST_LINES = 50_000

#: Names of dcgm-exporter, those of DCGM 4.6 and later beside the older ones.
_METRICS = {
    "DCGM_FI_DEV_GPU_UTIL": "util_percent",
    "DCGM_FI_DEV_GPU_UTIL_RATIO": "util_percent",
    "DCGM_FI_DEV_MEM_COPY_UTIL": "mem_util_percent",
    "DCGM_FI_DEV_MEM_COPY_UTIL_RATIO": "mem_util_percent",
    "DCGM_FI_DEV_FB_USED": "mem_used_mib",
    "DCGM_FI_DEV_FB_TOTAL": "mem_total_mib",
    "DCGM_FI_DEV_FB_RESERVED": "mem_reserved_mib",
    "DCGM_FI_DEV_GPU_TEMP": "temp_c",
    "DCGM_FI_DEV_GPU_TEMP_CELSIUS": "temp_c",
    "DCGM_FI_DEV_MEMORY_TEMP": "mem_temp_c",
    "DCGM_FI_DEV_MEMORY_TEMP_CELSIUS": "mem_temp_c",
    "DCGM_FI_DEV_POWER_USAGE": "power_w",
    "DCGM_FI_DEV_BOARD_POWER_WATTS": "power_w",
    "DCGM_FI_DEV_POWER_MGMT_LIMIT": "power_limit_w",
    "DCGM_FI_DEV_ENFORCED_POWER_LIMIT": "power_limit_w",
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": "energy_mj",
    "DCGM_FI_DEV_SM_CLOCK": "sm_clock_mhz",
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": "events",
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": "events",
    "DCGM_FI_DEV_XID_ERRORS": "xid",
    "DCGM_FI_DEV_XID_ERROR": "xid",
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": "ecc_uncorrected",
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": "remapped_uncorrectable",
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": "remapped_failure",
    "DCGM_FI_DEV_ROW_REMAP_PENDING": "remapped_pending",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": "graphics_active",
    "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO": "graphics_active",
    "DCGM_FI_PROF_SM_ACTIVE": "sm_active",
    "DCGM_FI_PROF_SM_UTIL_RATIO": "sm_active",
    "DCGM_FI_PROF_SM_OCCUPANCY": "sm_occupancy",
    "DCGM_FI_PROF_SM_OCCUPANCY_RATIO": "sm_occupancy",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": "tensor_active",
    "DCGM_FI_PROF_TENSOR_UTIL_RATIO": "tensor_active",
    "DCGM_FI_PROF_DRAM_ACTIVE": "dram_active",
    "DCGM_FI_PROF_DRAM_UTIL_RATIO": "dram_active",
    "DCGM_FI_PROF_PCIE_TX_BYTES": "pcie_tx_bytes_s",
    "DCGM_FI_PROF_PCIE_RX_BYTES": "pcie_rx_bytes_s",
    "DCGM_FI_PROF_NVLINK_TX_BYTES": "nvlink_tx_bytes_s",
    "DCGM_FI_PROF_NVLINK_RX_BYTES": "nvlink_rx_bytes_s",
}
#: By these names whole per cent (4.6) and shares of 1 (4.7) have been printed: only the values of
#: a host tell which.
_EITHER = frozenset({"DCGM_FI_DEV_GPU_UTIL_RATIO", "DCGM_FI_DEV_MEM_COPY_UTIL_RATIO"})
_WHOLE = frozenset({"events", "xid"})
_FLAGS = frozenset({"remapped_failure", "remapped_pending"})


@dataclass(frozen=True, slots=True)
class Series:
    """One line of Prometheus text. ``value`` is None for NaN, infinity, DCGM's marks for "no
    value", and words; ``text`` is what stood there. A time stamp is left away."""

    name: str
    labels: Mapping[str, str]
    value: float | None
    text: str


def parse_prometheus(data: bytes) -> Parsed[Series]:
    """Every series; comments are skipped, a broken line costs only itself. Never raises."""
    return Parsed.of(_series(data))


def _series(data: bytes) -> Iterator[Series | BadRecord]:
    for index, raw in enumerate(data.decode("utf-8", "replace").split("\n")):
        line = raw.rstrip("\r")
        if line.strip() and not line.lstrip().startswith("#"):
            yield _one(line, index)


def _one(line: str, index: int) -> Series | BadRecord:
    found = _SERIES.fullmatch(line)
    if found is None:
        return BadRecord(index, "no series", line[:_EXCERPT])
    rest = found["rest"]
    labels: dict[str, str] = {}
    in_braces = rest.startswith("{")
    if in_braces:
        place = 1
        while label := _LABEL.match(rest, place):
            labels[label["name"]] = re.sub(
                r'\\[\\"n]', lambda escape: _ESCAPES[escape.group()], label["value"]
            )
            place = label.end()
        end = re.compile(r"\s*}").match(rest, place)
        if end is None:
            return BadRecord(index, "labels without an end", line[:_EXCERPT])
        rest = rest[end.end() :]
    text = rest.strip()
    stamped = _STAMP.fullmatch(text)
    if stamped is not None and _is_value(stamped["value"]):
        text = stamped["value"]
    if not text or (not in_braces and not _is_value(text)):
        return BadRecord(index, "no value", line[:_EXCERPT])
    return Series(found["name"], labels, dcgm_number(text), text)


def _is_value(text: str) -> bool:
    word = text.casefold().lstrip("+-")
    return word in ("nan", "inf", "infinity") or bool(re.fullmatch(r"[\d.]+(e[+-]?\d+)?", word))


def gpus_of(series: Iterable[Series], host: str | None = None) -> tuple[GpuSample, ...]:
    """GPUs and MIG slices in the order of their first series; other metrics are left out.

    ``host`` is used where a series names none. A series without UUID belongs to the GPU of that
    number on its host, where there is one. A value that no GPU can have is missing.

    At most ``MOST_GPUS`` and one more: then there are too many for one node.
    """
    kept = [one for one in series if one.name in _METRICS]
    percent = _in_percent(kept, host)
    by_number: dict[tuple[str, str], str] = {}
    for one in kept:
        if uuid := _label(one, "UUID", "uuid"):
            by_number.setdefault((_host(one, host), one.labels.get("gpu", "")), uuid)
    gpus: dict[tuple[str, str, str], dict[str, Any]] = {}
    for one in kept:
        where, gpu = _host(one, host), one.labels.get("gpu", "")
        uuid = _label(one, "UUID", "uuid") or by_number.get((where, gpu), "")
        piece = _label(one, "GPU_I_ID") or ""
        key = (where, uuid or f"gpu {gpu}", piece)
        if key not in gpus and len(gpus) > MOST_GPUS:
            break
        got = gpus.setdefault(key, {"words": {}, "jobs": {}})
        got.update(_names(one, where, gpu, uuid, piece))
        attribute = _METRICS[one.name]
        value = None if _impossible(one) else _value(attribute, one.value)
        if value and one.name in _EITHER:
            value = percent[where, one.name](value)
        if value is not None or attribute not in got:
            got[attribute] = value
        if is_words(one.text):
            got["words"][attribute] = one.text
        if job := _label(one, "hpc_job"):
            got["jobs"][job] = True
    return tuple(
        GpuSample(**{**got, "words": tuple(got["words"].items()), "jobs": tuple(got["jobs"])})
        for got in gpus.values()
    )


def _in_percent(
    series: Iterable[Series], host: str | None
) -> dict[tuple[str, str], Callable[[float], float | None]]:
    """By host and name of ``_EITHER``: what makes per cent of a value above 0.

    A value above 1 is one of per cent, one between 0 and 1 is a share; a 1 alone may be either.
    """
    seen: dict[tuple[str, str], set[float]] = {}
    for one in series:
        if one.name in _EITHER and one.value is not None and not _impossible(one):
            seen.setdefault((_host(one, host), one.name), set()).add(one.value)
    return {where: _percent_of(values) for where, values in seen.items()}


def _percent_of(values: set[float]) -> Callable[[float], float | None]:
    if any(value > 1 for value in values):
        return lambda value: value
    if any(0 < value < 1 for value in values):
        return lambda value: 100 * value
    return lambda _value: None


def _impossible(one: Series) -> bool:
    attribute = _METRICS.get(one.name)
    return attribute is not None and one.value is not None and not possible(attribute, one.value)


def _label(one: Series, *names: str) -> str | None:
    for name in names:
        value = one.labels.get(name, "")
        if not is_nothing(value):
            return value
    return None


def _host(one: Series, host: str | None) -> str:
    return _label(one, "Hostname", "hostname") or host or ""


def _names(one: Series, where: str, gpu: str, uuid: str, piece: str) -> dict[str, Any]:
    known = {
        "host": where or None,
        "uuid": uuid or None,
        "dcgm_id": whole(gpu),
        "bus_id": bus_id(one.labels.get("pci_bus_id", "")),
        "name": _label(one, "modelName"),
        "driver": _label(one, "DCGM_FI_DRIVER_VERSION"),
        "slice_id": piece or None,
        "slice_profile": _label(one, "GPU_I_PROFILE"),
    }
    return {name: value for name, value in known.items() if value is not None}


def _value(attribute: str, value: float | None) -> float | int | bool | None:
    if value is None:
        return None
    if attribute in _FLAGS:
        return value > 0
    return int(value) if attribute in _WHOLE else value


def read_exporter(host: str, body: bytes | None, *, took_s: float | None = None) -> NodeGpus:
    """What the exporter of ``host`` gave; ``body`` None: nothing listens there.

    An empty answer is the sign of a driver that hangs behind the exporter; a page of something else
    and one that was cut are signs of nothing but themselves.
    """
    where = visible(host)[:_EXCERPT]
    if body is None:
        says = f"There is no GPU exporter on {where}."
        return _nothing(host, says, Answer.NOT_THERE, took_s)
    if not body.strip():
        says = f"The exporter on {where} answers but has no data of any GPU; the driver may hang."
        return _nothing(host, says, Answer.NO_DATA, took_s)
    if body.count(b"\n") > _MOST_LINES:
        says = f"What answers for {where} is longer than the page of one node: check exporter_url."
        return _nothing(host, says, Answer.OTHER, took_s)
    parsed = parse_prometheus(body)
    if parsed.bad and not parsed.rows:
        says = f"What answers for {where} is no page of an exporter: check exporter_url."
        return _nothing(host, says, Answer.OTHER, took_s)
    # The format's last line ends like all others: half a page would read as GPUs that are gone.
    if not body.endswith(b"\n"):
        says = f"The page of the exporter on {where} is cut: its last line has no end."
        return _nothing(host, says, Answer.OTHER, took_s)
    gpus = gpus_of(parsed.rows, host)
    if not gpus:
        says = f"What answers for {where} tells no known value of a GPU: check exporter_url."
        return _nothing(host, says, Answer.NO_DATA, took_s)
    if len(gpus) > MOST_GPUS:
        says = f"What answers for {where} names more GPUs than a node can have: check exporter_url."
        return _nothing(host, says, Answer.OTHER, took_s)
    bad = parsed.bad + sum(map(_impossible, parsed.rows))
    return NodeGpus(host=host, samples=gpus, took_s=took_s, bad=bad)


def _nothing(host: str, says: str, answer: Answer, took_s: float | None) -> NodeGpus:
    failure = Failure(Trouble.OTHER, says, retry_after_s=_AGAIN_S)
    return NodeGpus(host=host, answer=answer, failure=failure, took_s=took_s)
