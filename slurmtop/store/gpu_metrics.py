"""The numbers of a GPU that a screen or ``slurmtop gpus`` can show, one at a time."""

from collections.abc import Callable
from dataclasses import dataclass

from slurmtop.model.gpu import GpuSample, ratio_text
from slurmtop.model.units import bytes_text

NOT_KNOWN = "n/a"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuMetric:
    """One metric. ``pick`` gives its number in ``unit``, None where it is not known.

    ``least`` is the smallest difference that may make a GPU the odd one
    (:func:`slurmtop.triage.gpu_work.odd_ones`), in the same unit. ``full`` is where a bar is full;
    None where that depends on the model. ``low_is_bad`` tells which end a straggler stands at.
    """

    id: str
    label: str
    unit: str
    pick: Callable[[GpuSample], float | None]
    format: Callable[[float], str]
    least: float
    full: float | None = None
    low_is_bad: bool = True

    def text(self, gpu: GpuSample) -> str:
        """The value with its unit; ``n/a`` where it is not known, and ``n/a (MIG)`` where a GPU
        that is cut into slices cannot have it."""
        value = self.pick(gpu)
        if value is not None:
            return self.format(value)
        return f"{NOT_KNOWN} (MIG)" if gpu.mig and self.id in _NOT_OF_A_PARENT else NOT_KNOWN


def _sum(one: float | None, other: float | None) -> float | None:
    """Both directions together; one alone is not the sum."""
    return None if one is None or other is None else one + other


def _rate(value: float) -> str:
    return f"{bytes_text(value)}/s"


_GIB_S = float(1 << 30)
#: A GPU that is cut into MIG slices has none of these of its own.
_NOT_OF_A_PARENT = frozenset({"util", "sm", "occupancy", "tensor", "dram", "nvlink"})

METRICS: tuple[GpuMetric, ...] = (
    GpuMetric(
        id="util",
        label="utilisation",
        unit="%",
        pick=lambda gpu: gpu.util_percent,
        format=lambda value: f"{value:.0f} %",
        least=15.0,
        full=100.0,
    ),
    GpuMetric(
        id="sm",
        label="SM activity",
        unit="share",
        pick=lambda gpu: gpu.sm_active,
        format=ratio_text,
        least=0.1,
        full=1.0,
    ),
    GpuMetric(
        id="power",
        label="power against limit",
        unit="share",
        pick=lambda gpu: gpu.power_share,
        format=ratio_text,
        least=0.1,
        full=1.0,
    ),
    GpuMetric(
        id="watts",
        label="power",
        unit="W",
        pick=lambda gpu: gpu.power_w,
        format=lambda value: f"{value:.0f} W",
        least=60.0,
    ),
    GpuMetric(
        id="memory",
        label="memory in use",
        unit="%",
        pick=lambda gpu: gpu.mem_percent,
        format=lambda value: f"{value:.0f} %",
        least=10.0,
        full=100.0,
    ),
    GpuMetric(
        id="clock",
        label="SM clock",
        unit="MHz",
        pick=lambda gpu: gpu.sm_clock_mhz,
        format=lambda value: f"{value:.0f} MHz",
        least=150.0,
    ),
    GpuMetric(
        id="temperature",
        label="temperature",
        unit="C",
        pick=lambda gpu: gpu.temp_c,
        format=lambda value: f"{value:.0f} C",
        least=10.0,
        full=100.0,
        low_is_bad=False,
    ),
    GpuMetric(
        id="nvlink",
        label="NVLink",
        unit="bytes/s",
        pick=lambda gpu: _sum(gpu.nvlink_tx_bytes_s, gpu.nvlink_rx_bytes_s),
        format=_rate,
        least=_GIB_S,
    ),
    GpuMetric(
        id="pcie",
        label="PCIe",
        unit="bytes/s",
        pick=lambda gpu: _sum(gpu.pcie_tx_bytes_s, gpu.pcie_rx_bytes_s),
        format=_rate,
        least=_GIB_S,
    ),
    GpuMetric(
        id="tensor",
        label="tensor cores",
        unit="share",
        pick=lambda gpu: gpu.tensor_active,
        format=ratio_text,
        least=0.1,
        full=1.0,
    ),
    GpuMetric(
        id="dram",
        label="memory traffic",
        unit="share",
        pick=lambda gpu: gpu.dram_active,
        format=ratio_text,
        least=0.1,
        full=1.0,
    ),
    GpuMetric(
        id="occupancy",
        label="SM occupancy",
        unit="share",
        pick=lambda gpu: gpu.sm_occupancy,
        format=ratio_text,
        least=0.1,
        full=1.0,
    ),
)

_BY_ID = {metric.id: metric for metric in METRICS}


def metric_of(id: str) -> GpuMetric | None:
    """The metric of that id; None where there is none."""
    return _BY_ID.get(id)
