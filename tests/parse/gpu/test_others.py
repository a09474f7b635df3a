"""AMD's tools, the topology and the NVLinks."""

import json

from hypothesis import given
from hypothesis import strategies as st

from slurmtop.parse.gpu.amd import parse_amd
from slurmtop.parse.gpu.nvlink import parse_nvlink
from slurmtop.parse.gpu.topo import parse_topo
from tests.parse.gpu.support import case, mutated

ROCM = b"""WARNING: AMD GPU device(s) is/are in a low-power state. Check power control
{"card0": {"GPU use (%)": "97", "Current Socket Graphics Package Power (W)": "410.0"},
 "card1": {"GPU use (%)": "N/A", "Average Graphics Package Power (W)": "odd"},
 "system": {"Driver version": "6.1"}}
"""
AMD = b"""[{"gpu": 0, "usage": {"gfx_activity": {"value": 97, "unit": "%"}, "umc_activity": "N/A"},
  "power": {"socket_power": {"value": 410, "unit": "W"}},
  "mem_usage": {"total_vram": {"value": 196592, "unit": "MB"}}}]
"""
NVLINK = b"""GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-1111-2222-3333-444455550000)
\t Link 0: 26.562 GB/s
\t Link 1: <inactive>
GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-00000001-1111-2222-3333-444455550001)
"""


def test_rocm_smi_behind_its_warning() -> None:
    first, second = parse_amd(ROCM).rows
    assert (first.index, first.util_percent, first.power_w) == (0, 97, 410)
    assert (second.index, second.util_percent, second.power_w) == (1, None, None)
    assert second.words == (("power_w", "odd"),)


def test_an_amd_number_that_no_gpu_can_have_is_missing() -> None:
    """amd-smi prints 65535 where a 16-bit sensor is not there."""
    data = (
        b'[{"gpu":0,"usage":{"gfx_activity":{"value":65535,"unit":"%"}},'
        b'"power":{"socket_power":{"value":65535}},"temperature":{"hotspot":{"value":65535}}}]'
    )
    (one,) = parse_amd(data).rows
    assert (one.util_percent, one.power_w, one.temp_c, one.words) == (None, None, None, ())
    (one,) = parse_amd(b'{"card0": {"GPU use (%)": "-1"}}').rows
    assert (one.util_percent, one.words) == (None, ())


def test_amd_smi_wraps_its_values() -> None:
    for data in (AMD, b'{"gpu_data": ' + AMD + b"}"):
        (one,) = parse_amd(data).rows
        assert (one.index, one.util_percent, one.power_w, one.mem_total_mib) == (0, 97, 410, 196592)
        assert (one.mem_util_percent, one.words) == (None, ())


def test_no_json_is_one_bad_record() -> None:
    assert parse_amd(b"rocm-smi: no cards\n").bad == 1
    assert parse_amd(b"[" * 100_000).bad == 1
    assert parse_amd(b"").bad == 0


def test_links_up_and_down() -> None:
    up, down = parse_nvlink(NVLINK).rows
    assert (up.gpu_uuid, up.link, up.gb_s, up.active) == (
        "GPU-00000000-1111-2222-3333-444455550000",
        *(0, 26.562, True),
    )
    assert (down.link, down.gb_s, down.active) == (1, None, False)
    assert parse_nvlink(b"Nvlink queries are not supported for Devices in MIG mode\n").rows == ()


def test_a_speed_that_cannot_be_read_is_not_down() -> None:
    parsed = parse_nvlink(NVLINK.replace(b"<inactive>", b"soon"))
    assert (len(parsed.rows), parsed.bad) == (1, 1)


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    parse_amd(data)
    parse_topo(data)
    parse_nvlink(data)


@given(
    st.recursive(
        st.none() | st.floats() | st.text(),
        lambda of: (
            st.lists(of)
            | st.dictionaries(
                st.sampled_from(
                    ["card0", "gpu", "gpu_data", "usage", "gfx_activity", "value", "x"]
                ),
                of,
            )
        ),
    )
)
def test_any_json(tree: object) -> None:
    parse_amd(json.dumps(tree).encode())


@given(st.integers(0, 500), st.binary(max_size=9), st.integers(0, 9))
def test_captures_with_damage(place: int, piece: bytes, cut: int) -> None:
    parse_amd(mutated(ROCM, place, piece, cut))
    parse_amd(mutated(AMD, place, piece, cut))
    parse_nvlink(mutated(NVLINK, place, piece, cut))
    devices = parse_topo(mutated(case("034"), place, piece, cut)).devices
    assert all("\t" not in name for name in devices)
