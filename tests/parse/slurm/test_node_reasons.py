"""How many GPUs Slurm misses, by the reason that slurmctld writes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.parse.slurm.node_reasons import lost_gpus
from slurmtop.parse.slurm.sinfo import parse_sinfo


@pytest.mark.parametrize(
    ("reason", "lost"),
    [
        ("gres/gpu count reported lower than configured (7 < 8)", 1),
        ("gres/gpu count too low (0 < 4)", 4),
        ("gres/gpu:h100 count reported lower than configured (6 < 8)", 2),
        (
            "gres/gpu count reported lower than configured (7 < 8), "
            "gres/gpu:h100 count reported lower than configured (7 < 8)",
            1,
        ),
        ("gres/gpu:a100 count too low (3 < 4); gres/gpu:h100 count too low (2 < 4)", 3),
        ("gres/gpu count too low (7 < 8); gres/gpu count too low (7 < 8)", 1),
        ("bad NVLink; gres/gpu count reported lower than configured (7 < 8)", 1),
        ("gres/shard count reported lower than configured (7 < 8)", None),
        ("gres/gpu count reported lower than configured (9 < 8)", None),
        ("3 GPUs lost", None),
        ("", None),
        (None, None),
    ],
)
def test_lost(reason: str | None, lost: int | None) -> None:
    assert lost_gpus(reason) == lost


@given(st.text())
def test_any_reason(text: str) -> None:
    lost = lost_gpus(text)
    assert lost is None or lost > 0


def test_a_node_of_sinfo_knows() -> None:
    line = b"gpu01\x1finval\x1fgres/gpu count reported lower than configured (7 < 8)\x1e"
    (node,) = parse_sinfo(line, fields=("name", "state", "reason")).rows
    assert node.gpus_lost == 1
