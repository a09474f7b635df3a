"""``dcgmi dmon`` and ``dcgmi discovery``."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.gpu import Answer
from slurmtop.parse.gpu.dcgm import (
    PROFILING_IDS,
    newest,
    parse_discovery,
    parse_dmon,
    with_uuids,
    without_profiling,
)
from slurmtop.parse.gpu.failures import explain_gpu_failure
from tests.parse.gpu.support import case, mutated

HEADER = (
    b"#Entity         GPUTL     SMACT     POWER     \n"
    b"ID                                  W         \n"
)
DISCOVERY = b"""2 GPUs found.
+--------+----------------------------------------------------+
| GPU ID | Device Information                                 |
+--------+----------------------------------------------------+
| 0      | Name: NVIDIA H100 80GB HBM3                        |
|        | PCI Bus ID: 00000000:17:00.0                       |
|        | Device UUID: GPU-00000000-1111-2222-3333-444455550000 |
+--------+----------------------------------------------------+
| 1      | Name: NVIDIA H100 80GB HBM3                        |
|        | Device UUID: GPU-00000001-1111-2222-3333-444455550001 |
+--------+----------------------------------------------------+
0 NvSwitches found.
"""


def test_a_blank_column_shifts_nothing() -> None:
    data = (
        HEADER
        + b"GPU-I 3                   0.911     \nGPU 0           97        0.5       600.1     \n"
    )
    piece, whole = parse_dmon(data).rows
    assert (piece.slice_id, piece.util_percent, piece.sm_active, piece.power_w) == (
        *("3", None),
        *(0.911, None),
    )
    assert (whole.dcgm_id, whole.util_percent, whole.power_w) == (0, 97, 600.1)


def test_the_header_comes_again_and_the_newest_row_counts() -> None:
    data = HEADER + b"GPU 0           N/A       N/A       600\n" + HEADER
    data += b"GPU 0           97        0.912     601\n"
    parsed = parse_dmon(data)
    assert (len(parsed.rows), parsed.bad) == (2, 0)
    assert parsed.rows[0].words == ()
    (last,) = newest(parsed.rows)
    assert (last.util_percent, last.power_w) == (97, 601)


def test_other_entities_and_talk_are_no_gpus() -> None:
    data = HEADER + b"Switch 1        5\nCPU 0           5\nGPU 0 LINK 3    5\n"
    data += b"dmon was stopped due to receiving a signal\n"
    parsed = parse_dmon(data)
    assert (parsed.rows, parsed.bad) == ((), 0)


def test_marks_for_no_value_are_no_numbers() -> None:
    data = b"#Entity         GPUTL               XIDER     \n"
    data += b"GPU 0           2147483632          31        \n"
    (gpu,) = parse_dmon(data).rows
    assert (gpu.util_percent, gpu.words, gpu.xid) == (None, (), 31)
    assert isinstance(gpu.xid, int)


def test_rows_before_a_header_are_not_guessed() -> None:
    parsed = parse_dmon(b"GPU 0           97\n")
    assert (parsed.rows, parsed.bad) == ((), 1)


def test_uuids_by_dcgms_own_numbers() -> None:
    uuids = parse_discovery(DISCOVERY)
    assert list(uuids) == [0, 1]
    rows = with_uuids(parse_dmon(case("028")).rows, uuids)
    assert [row.uuid for row in rows[:3]] == [*uuids.values(), None]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (b"Error setting watches. Result: -37: in use by another\n", Answer.NO_PROFILING),
        (b"Error setting watches. Result: -38: not in a single pass\n", Answer.NO_PROFILING),
        (b"The third-party Profiling module returned an error\n", Answer.NO_PROFILING),
        (b"Error: Unable to connect to host engine.\n", Answer.NO_ENGINE),
    ],
)
def test_errors(text: bytes, wanted: Answer) -> None:
    assert parse_dmon(text).rows == ()
    answer, failure = explain_gpu_failure("dcgmi", "gpu01", 1, text)
    assert answer is wanted
    assert "gpu01" in failure.sentence


def test_no_profiling_id_is_left() -> None:
    assert without_profiling((*PROFILING_IDS, 155)) == (155,)


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    parsed = parse_dmon(HEADER + data)
    assert len(parsed.rows) + parsed.bad <= data.count(b"\n") + 1
    newest(parsed.rows)
    parse_discovery(data)


@given(st.integers(0, 3_000), st.binary(max_size=9), st.integers(0, 9))
def test_captures_with_damage(place: int, piece: bytes, cut: int) -> None:
    parse_dmon(mutated(case("028"), place, piece, cut))
    parse_discovery(mutated(DISCOVERY, place, piece, cut))


@given(st.integers(0, 99), st.integers(0, 100), st.integers(0, 1_000), st.integers(0, 2_000_000))
def test_what_was_printed_is_read(gpu: int, util: int, active: int, power: int) -> None:
    row = f"{f'GPU {gpu}':<16}{util:<10}{active / 1000:<10.3f}{power / 1000:<10.3f}\n"
    (found,) = parse_dmon(HEADER + row.encode()).rows
    assert (found.dcgm_id, found.util_percent) == (gpu, util)
    assert (found.sm_active, found.power_w) == (active / 1000, power / 1000)


def test_what_no_gpu_can_have_is_missing() -> None:
    head = b"#Entity   GPUTL     SMACT     POWER\nID\n"
    rows = b"GPU 0     98        1.230     572.000\nGPU 1     250       -0.5      -3\n"
    first, second = parse_dmon(head + rows).rows
    assert (first.util_percent, first.sm_active, first.power_w) == (98, 1.23, 572)
    assert (second.util_percent, second.sm_active, second.power_w) == (None, None, None)
