"""Prometheus text and the GPUs of dcgm-exporter."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.parse.gpu.exporter import gpus_of, parse_prometheus, read_exporter
from tests.parse.gpu.support import case, mutated

TWO_JOBS = b"""DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-00",Hostname="gpu01",hpc_job="4711"} 97
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-00",Hostname="gpu01",hpc_job="4712"} 97
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-00",hostname="gpu02"} 5
"""


def test_a_series_for_each_job_is_one_gpu() -> None:
    first, second = read_exporter("gpu01", TWO_JOBS).samples
    assert (first.host, first.jobs, first.util_percent) == ("gpu01", ("4711", "4712"), 97)
    assert (second.host, second.jobs, second.util_percent) == ("gpu02", (), 5)


def test_slices_of_one_card_are_told_apart() -> None:
    text = (
        b'DCGM_FI_PROF_SM_ACTIVE{UUID="GPU-0",GPU_I_ID="1",GPU_I_PROFILE="1g.10gb"} 0.5\n'
        b'DCGM_FI_PROF_SM_ACTIVE{UUID="GPU-0",GPU_I_ID="2",GPU_I_PROFILE="1g.10gb"} 0.7\n'
    )
    found = read_exporter("gpu01", text).samples
    assert [(one.slice_id, one.sm_active) for one in found] == [("1", 0.5), ("2", 0.7)]


def test_new_names_mean_the_same() -> None:
    text = b'DCGM_FI_DEV_BOARD_POWER_WATTS{uuid="GPU-0"} 5e2\n'
    text += b'DCGM_FI_DEV_ROW_REMAP_PENDING{uuid="GPU-0"} 1\n'
    (one,) = read_exporter("gpu01", text).samples
    assert (one.host, one.power_w, one.remapped_pending) == ("gpu01", 500, True)


@pytest.mark.parametrize(
    ("printed", "percent"),
    [
        (("97", "0"), (97, 0)),  # DCGM 4.6: whole per cent
        (("97", "1"), (97, 1)),
        (("0.97", "1"), (97, 100)),  # DCGM 4.7: a share of 1
        (("0.97", "0"), (97, 0)),
        (("1", "1"), (None, None)),  # may be either
        (("1", "0"), (None, 0)),
        (("0", "0"), (0, 0)),
        (("3000000000", "0.5"), (None, 50)),
    ],
)
def test_a_ratio_is_per_cent_or_a_share_as_the_values_of_its_host_tell(
    printed: tuple[str, str], percent: tuple[float | None, float | None]
) -> None:
    name = "DCGM_FI_DEV_GPU_UTIL_RATIO"
    page = "".join(f'{name}{{gpu="{i}",UUID="GPU-{i}"}} {text}\n' for i, text in enumerate(printed))
    # Another host's exporter may be of another version.
    page += f'{name}{{gpu="0",UUID="GPU-9",Hostname="gpu09"}} 55\n'
    found = gpus_of(parse_prometheus(page.encode()).rows, "gpu01")
    assert tuple(one.util_percent for one in found[:2]) == percent
    assert found[2].util_percent == 55


def test_the_old_name_beside_an_unclear_ratio_tells() -> None:
    old = b'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-0"} 100\n'
    new = b'DCGM_FI_DEV_GPU_UTIL_RATIO{gpu="0",UUID="GPU-0"} 1\n'
    for page in (old + new, new + old):
        assert read_exporter("gpu01", page).samples[0].util_percent == 100


def test_shares_by_their_newer_names() -> None:
    page = b"".join(
        b'DCGM_FI_PROF_%s{gpu="0",UUID="GPU-0"} 0.5\n' % name
        for name in (
            b"SM_UTIL_RATIO",
            b"SM_OCCUPANCY_RATIO",
            b"TENSOR_UTIL_RATIO",
            b"DRAM_UTIL_RATIO",
        )
    )
    (one,) = read_exporter("gpu01", page).samples
    shares = (one.sm_active, one.sm_occupancy, one.tensor_active, one.dram_active)
    assert shares == (0.5, 0.5, 0.5, 0.5)


def test_other_metrics_are_no_gpus() -> None:
    parsed = parse_prometheus(b'node_load1 0.5\nup{a="b",} 1 1935756262000\nx{} +Inf\n# EOF\n')
    assert [(one.name, one.value) for one in parsed.rows] == [
        ("node_load1", 0.5),
        ("up", 1),
        ("x", None),
    ]
    assert (parsed.bad, gpus_of(parsed.rows)) == (0, ())


@pytest.mark.parametrize(
    ("page", "says", "accused"),
    [
        (b"", "has no data of any GPU; the driver may hang", True),
        (b" \r\n\n", "has no data of any GPU; the driver may hang", True),
        (b"hello world", "is no page of an exporter", False),
        (b"<html>\n<a href='/metrics'>Metrics</a>\n</html>\n", "is no page of an exporter", False),
        (gzip.compress(TWO_JOBS, mtime=0)[:60], "is no page of an exporter", False),
        (b"node_load1 0.5\ngo_threads 8\n", "tells no known value of a GPU", False),
        (b"# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization.\n", "tells no known value", False),
        (TWO_JOBS[:-1], "is cut", False),
        (TWO_JOBS[:90], "is cut", False),
    ],
)
def test_the_driver_is_accused_by_an_empty_page_only(page: bytes, says: str, accused: bool) -> None:
    answer = read_exporter("gpu01", page)
    assert answer.failure is not None
    assert says in answer.failure.sentence
    assert ("driver" in answer.failure.sentence) is accused
    assert not answer.answered


@pytest.mark.parametrize(
    ("metric", "attribute", "good", "wrong"),
    [
        ("DEV_GPU_UTIL", "util_percent", (0, 100), (-5, 250, 100.5)),
        ("DEV_MEM_COPY_UTIL", "mem_util_percent", (0, 100), (-1, 101)),
        ("DEV_FB_USED", "mem_used_mib", (0, 288_000), (-3, 1e9)),
        ("DEV_FB_TOTAL", "mem_total_mib", (81_559,), (-81_559,)),
        ("DEV_GPU_TEMP", "temp_c", (-5, 35, 110), (-300, 5000)),
        ("DEV_POWER_USAGE", "power_w", (0, 1_400), (-700, 9e6)),
        ("DEV_SM_CLOCK", "sm_clock_mhz", (0, 2_100), (-1, 1e9)),
        ("DEV_XID_ERRORS", "xid", (0, 79), (-79, 1e12)),
        ("DEV_TOTAL_ENERGY_CONSUMPTION", "energy_mj", (0, 9e12), (-1,)),
        ("DEV_ECC_DBE_VOL_TOTAL", "ecc_uncorrected", (0, 3), (-3,)),
        ("DEV_ROW_REMAP_PENDING", "remapped_pending", (0, 1), (-1,)),
        ("DEV_CLOCKS_EVENT_REASONS", "events", (0, 8), (-8,)),
        ("PROF_SM_ACTIVE", "sm_active", (0, 0.5, 1.23), (-0.1, 97)),
        ("PROF_PCIE_TX_BYTES", "pcie_tx_bytes_s", (0, 6e10), (-1,)),
    ],
)
def test_what_no_gpu_can_have_is_missing(
    metric: str, attribute: str, good: tuple[float, ...], wrong: tuple[float, ...]
) -> None:
    for value in (*good, *wrong):
        page = f'DCGM_FI_{metric}{{UUID="GPU-0"}} {value}\n'.encode()
        answer = read_exporter("gpu01", page)
        (one,) = answer.samples
        assert getattr(one, attribute) == (value if value in good else None)
        assert (answer.bad, one.words) == (int(value in wrong), ())


def test_a_page_of_more_than_one_node_is_not_taken() -> None:
    def page(count: int, metrics: int = 1) -> bytes:
        line = 'DCGM_FI_DEV_GPU_UTIL{{UUID="GPU-{}"}} 97\n'
        return "".join(line.format(gpu) * metrics for gpu in range(count)).encode()

    # Sixteen cards of seven slices.
    assert len(read_exporter("gpu01", page(112, 60)).samples) == 112
    for many in (page(257), page(180_000)):
        answer = read_exporter("gpu01", many)
        assert not answer.answered
        assert answer.failure is not None
        assert "check exporter_url" in answer.failure.sentence
    assert len(gpus_of(parse_prometheus(page(1_000)).rows)) == 257


def test_escapes_in_labels() -> None:
    (one,) = parse_prometheus(rb'x{a="\\n\n\"}",b="2"} 1').rows
    assert dict(one.labels) == {"a": '\\n\n"}', "b": "2"}


def test_labels_that_do_not_end_cost_their_line() -> None:
    parsed = parse_prometheus(b'x{a="1 2\nx{a="1"} 2\n')
    assert ([one.value for one in parsed.rows], parsed.bad) == ([2], 1)


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    parsed = parse_prometheus(data)
    assert len(parsed.rows) + parsed.bad <= data.count(b"\n") + 1
    answer = read_exporter("gpu01", data)
    assert answer.samples or answer.failure


@given(st.integers(0, 2_000), st.binary(max_size=12), st.integers(0, 12))
def test_captures_with_damage(place: int, piece: bytes, cut: int) -> None:
    for which in (case("021"), case("023")):
        whole = parse_prometheus(which)
        hurt = parse_prometheus(mutated(which, place, piece, cut))
        assert len(hurt.rows) >= len(whole.rows) - 1 - cut
        read_exporter("gpu01", mutated(which, place, piece, cut))


@given(
    st.dictionaries(
        st.from_regex(r"[a-z_]{1,8}", fullmatch=True), st.text(max_size=12), max_size=4
    ),
    st.floats(-1e9, 1e9, allow_nan=False),
)
def test_what_was_printed_is_read(labels: dict[str, str], value: float) -> None:
    labels = {name: text.encode("utf-8", "replace").decode() for name, text in labels.items()}

    def escaped(text: str) -> str:
        return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

    inner = ",".join(f'{name}="{escaped(text)}"' for name, text in labels.items())
    (one,) = parse_prometheus(f"metric{{{inner}}} {value!r}\n".encode()).rows
    assert dict(one.labels) == labels
    assert one.value == value
