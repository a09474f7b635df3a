"""The table of metrics: nothing unknown is a number, and units are those of the odd-one rule."""

import pytest

from slurmtop.model.gpu import GpuSample
from slurmtop.store.gpu_metrics import METRICS, metric_of

FULL = GpuSample(
    index=0,
    util_percent=97.0,
    sm_active=0.91,
    sm_occupancy=0.24,
    tensor_active=0.28,
    dram_active=0.21,
    power_w=350.0,
    power_limit_w=700.0,
    mem_used_mib=40_960.0,
    mem_total_mib=81_920.0,
    sm_clock_mhz=1980.0,
    temp_c=61.0,
    nvlink_tx_bytes_s=3.0 * (1 << 30),
    nvlink_rx_bytes_s=2.0 * (1 << 30),
    pcie_tx_bytes_s=0.0,
    pcie_rx_bytes_s=512.0,
)
TEXTS = {
    "util": "97 %",
    "sm": "91 %",
    "power": "50 %",
    "watts": "350 W",
    "memory": "50 %",
    "clock": "1980 MHz",
    "temperature": "61 C",
    "nvlink": "5.0 GiB/s",
    "pcie": "512 B/s",
    "tensor": "28 %",
    "dram": "21 %",
    "occupancy": "24 %",
}


def test_every_metric_says_its_value_with_its_unit() -> None:
    assert {metric.id: metric.text(FULL) for metric in METRICS} == TEXTS


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.id)
def test_what_is_not_known_is_no_number(metric: object) -> None:
    found = metric_of(getattr(metric, "id", ""))
    assert found is not None
    assert found.pick(GpuSample(index=0)) is None
    assert found.text(GpuSample(index=0)) == "n/a"


def test_a_parent_of_slices_has_no_utilisation_but_has_power() -> None:
    parent = GpuSample(index=0, mig=True, power_w=438.0, power_limit_w=700.0)
    texts = {metric.id: metric.text(parent) for metric in METRICS}
    assert texts["util"] == "n/a (MIG)"
    assert texts["power"] == "63 %"
    assert texts["clock"] == "n/a"


def test_one_direction_alone_is_not_the_traffic_of_a_link() -> None:
    nvlink = metric_of("nvlink")
    assert nvlink is not None
    assert nvlink.pick(GpuSample(nvlink_tx_bytes_s=5.0)) is None


def test_a_counter_above_its_range_is_marked() -> None:
    sm = metric_of("sm")
    assert sm is not None
    assert sm.text(GpuSample(sm_active=1.07)) == "100 %+"


def test_ids_are_unique_and_an_unknown_one_is_none() -> None:
    assert len({metric.id for metric in METRICS}) == len(METRICS)
    assert metric_of("fps") is None
