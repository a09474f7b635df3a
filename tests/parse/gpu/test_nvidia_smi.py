"""``nvidia-smi --query-gpu`` and ``-L``."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.gpu import Answer
from slurmtop.parse.gpu.failures import explain_gpu_failure
from slurmtop.parse.gpu.fields import CORE_FIELDS, OPTIONAL_FIELDS, fields_after_refusal
from slurmtop.parse.gpu.nvidia_smi import parse_query, query_argv, read_query
from slurmtop.parse.gpu.nvidia_smi_list import parse_list
from tests.parse.gpu.support import case, mutated

FIELDS = ("index", "uuid", "utilization.gpu", "power.draw")
ROW = b"0, GPU-00000000-1111-2222-3333-444455550000, 97, 611.20\n"
MIG = b"""GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-1111-2222-3333-444455550000)
  MIG 3g.40gb     Device  0: (UUID: MIG-11111111-2222-3333-4444-555566667777)
  MIG 1g.10gb     Device  1: (UUID: MIG-GPU-00000000-1111-2222-3333-444455550000/9/0)
GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-00000001-1111-2222-3333-444455550001)
"""


def test_units_and_a_header_change_nothing() -> None:
    data = b"index, uuid, utilization.gpu [%], power.draw [W]\n0, GPU-00, 97 %, 611.20 W\n"
    (gpu,) = parse_query(data, FIELDS, header=True).rows
    assert (gpu.index, gpu.uuid, gpu.util_percent, gpu.power_w) == (0, "GPU-00", 97, 611.2)


def test_an_empty_field_is_no_value_and_says_nothing() -> None:
    (gpu,) = parse_query(b"0, GPU-00, , \r\n", FIELDS).rows
    assert (gpu.util_percent, gpu.words) == (None, ())


@pytest.mark.parametrize("cell", ["nan", "inf", "1_000", "٣", "0x", "1e999", "-"])
def test_what_is_no_number_is_none(cell: str) -> None:
    (gpu,) = parse_query(f"0, GPU-00, {cell}, 1\n".encode(), FIELDS).rows
    assert gpu.util_percent is None


@pytest.mark.parametrize("cell", ["-1", "101", "4294967295", "18446744073709551615"])
def test_a_number_that_no_gpu_can_have_is_missing_and_no_word(cell: str) -> None:
    fields = (
        "index",
        "uuid",
        "utilization.gpu",
        "memory.used",
        "ecc.errors.uncorrected.volatile.total",
    )
    (gpu,) = parse_query(f"0, GPU-00, {cell}, 18446744073709551615, -1\n".encode(), fields).rows
    assert (gpu.util_percent, gpu.mem_used_mib, gpu.ecc_uncorrected) == (None, None, None)
    assert gpu.words == ()


@pytest.mark.parametrize("row", [b"x, GPU-00, 1, 2\n", b"0, wrong, 1, 2\n", b"0, GPU-00, 1\n"])
def test_a_row_that_names_no_gpu_costs_only_itself(row: bytes) -> None:
    parsed = parse_query(row + ROW, FIELDS)
    assert (len(parsed.rows), parsed.bad) == (1, 1)


def test_a_warning_beside_good_data_is_kept() -> None:
    warning = b"WARNING: infoROM is corrupted at gpu 0000:3B:00.0\n"
    answer = read_query("gpu01", FIELDS, 14, ROW + warning)
    assert (answer.answer, len(answer.samples), answer.bad) == (Answer.OK, 1, 0)
    assert answer.remarks == ("WARNING: infoROM is corrupted at gpu 0000:3B:00.0",)


@pytest.mark.parametrize("rc", [0, 6])
def test_no_devices_is_no_empty_success(rc: int) -> None:
    answer = read_query("gpu01", FIELDS, rc, b"No devices were found\n")
    assert answer.answer is Answer.NO_DEVICES
    assert answer.failure is not None
    assert read_query("gpu01", FIELDS, 0, b"").answer is Answer.NO_DEVICES


@pytest.mark.parametrize(
    ("rc", "out", "err", "wanted"),
    [
        (18, b"Failed to initialize NVML: Driver/library version mismatch\n", b"", Answer.MISMATCH),
        (18, b"", b"", Answer.MISMATCH),
        (255, b"Failed to initialize NVML: Unknown Error\n", b"", Answer.OTHER),
        (12, b"", b"", Answer.NO_TOOL),
        (4, b"", b"", Answer.DENIED),
        (15, b"", b"", Answer.GPU_LOST),
        (6, b"", b"", Answer.GPU_LOST),
        (127, b"", b"bash: nvidia-smi: command not found\n", Answer.NO_TOOL),
        (126, b"", b"", Answer.NO_TOOL),
        (None, b"", b"", Answer.NO_ANSWER),
        (137, b"", b"", Answer.NO_ANSWER),
        (255, b"", b"Host key verification failed.\r\n", Answer.UNREACHABLE),
        (255, b"", b"anna@gpu01: Permission denied (publickey).\r\n", Answer.UNREACHABLE),
        (1, b"", b"something new\n", Answer.OTHER),
        (1, b"", b"", Answer.OTHER),
    ],
)
def test_whole_command_failures(rc: int | None, out: bytes, err: bytes, wanted: Answer) -> None:
    answer = read_query("gpu01", FIELDS, rc, out, err)
    assert answer.answer is wanted
    assert answer.samples == ()
    assert answer.failure is not None
    assert "gpu01" in answer.failure.sentence


def test_a_version_mismatch_says_that_jobs_go_on() -> None:
    text = (
        b"Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 5.1\n"
    )
    failure = read_query("gpu01", FIELDS, 18, text).failure
    assert failure is not None
    assert "running jobs go on" in failure.sentence


def test_hostile_names_are_made_harmless() -> None:
    _, failure = explain_gpu_failure("nvidia-smi", "gpu\x1b[2J", 1, b"\x1b[31mred\n")
    assert "\x1b" not in failure.sentence


def test_a_node_without_the_tool_is_not_asked_again() -> None:
    _, failure = explain_gpu_failure("nvidia-smi", "cpu01", 127, b"")
    assert failure.retry_after_s == math.inf


def test_the_command() -> None:
    assert query_argv(("index", "uuid")) == (
        "nvidia-smi",
        "--query-gpu=index,uuid",
        "--format=csv,noheader,nounits",
    )
    assert set(CORE_FIELDS).isdisjoint(OPTIONAL_FIELDS)


def test_slices_belong_to_the_card_above_them() -> None:
    found = parse_list("gpu01", 0, MIG)
    assert [gpu.index for gpu in found.samples] == [0, 1]
    assert [(one.profile, one.device) for one in found.slices] == [("3g.40gb", 0), ("1g.10gb", 1)]
    assert {one.parent_uuid for one in found.slices} == {found.samples[0].uuid}
    assert (found.answer, found.bad) == (Answer.OK, 0)


@given(st.binary(max_size=300), st.sampled_from([None, 0, 2, 6, 9, 14, 18, 124, 127, 255, -9]))
def test_any_bytes(data: bytes, rc: int | None) -> None:
    answer = read_query("gpu01", FIELDS, rc, data, data)
    assert answer.samples or answer.failure
    listed = parse_list("gpu01", rc, data, data)
    assert listed.samples or listed.failure


@given(
    st.sampled_from([("001", 1), ("004", 1), ("016", 1), ("031", 1), ("008", 3)]),
    st.integers(0, 2_000),
    st.binary(max_size=12),
    st.integers(0, 12),
)
def test_captures_with_damage(at: tuple[str, int], place: int, piece: bytes, cut: int) -> None:
    data = case(*at)
    hurt = mutated(data, place, piece, cut)
    fields = ("index", "uuid", *("name",) * (data.split(b"\n")[0].count(b",") - 1))
    rows = parse_query(data, fields)
    damaged = parse_query(hurt, fields)
    # At most the row that was hurt and those whose line ends were cut away.
    assert len(damaged.rows) >= len(rows.rows) - 1 - cut
    parse_list("gpu01", 0, hurt)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 99),
            st.floats(0, 100, allow_nan=False) | st.none(),
            st.floats(0, 2_000, allow_nan=False),
        ),
        max_size=8,
    )
)
def test_what_was_printed_is_read(rows: list[tuple[int, float | None, float]]) -> None:
    lines = [
        f"{index}, GPU-{index:08}, {'[N/A]' if util is None else f'{util:.2f}'}, {power:.2f}\n"
        for index, util, power in rows
    ]
    found = parse_query("".join(lines).encode(), FIELDS)
    assert found.bad == 0
    for gpu, (index, util, power) in zip(found.rows, rows, strict=True):
        assert (gpu.index, gpu.power_w) == (index, float(f"{power:.2f}"))
        assert gpu.util_percent == (None if util is None else float(f"{util:.2f}"))


@given(st.lists(st.sampled_from(CORE_FIELDS + OPTIONAL_FIELDS), min_size=1, unique=True))
def test_refusals_come_to_an_end(fields: list[str]) -> None:
    now = tuple(fields)
    for _ in range(2 * len(fields)):
        text = f'Field "{now[0]}" is not a valid field to query.\n'.encode()
        left = fields_after_refusal(now, text)
        if left is None:
            return
        assert left != now
        now = left
    raise AssertionError(f"still asking for {now}")
