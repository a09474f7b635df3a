"""What the names of log files tell."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.parse.logs.names import host_in_name, rank_in_name


@pytest.mark.parametrize(
    ("name", "rank", "host"),
    [
        ("node-3_rank5.err", 5, "node-3"),
        ("logs/gpu01.rank3.log", 3, "gpu01"),
        ("logs_dgx-07_rank.2", 2, "dgx-07"),
        ("rank118.log", 118, None),
        ("node_rank3", 3, None),
        ("attempt_0/rank3/stdout.log", 3, None),
        ("local_rank3.log", None, None),
        ("slurm-4711.out", None, None),
        ("lora/rank16/train.log", None, None),
        ("run7_rank3/train.log", None, None),
        ("run7_rank3.log", 3, None),
        ("seed42_rank0.out", 0, None),
        ("llama2.rank1.log", 1, None),
        ("lora_rank16.log", None, None),
        ("low-rank8.log", None, None),
        ("gpu3_rank3.log", 3, None),
        ("a100-node-07_rank4.log", 4, "a100-node-07"),
        ("rank3/attempt_0/stdout.log", None, None),
        ("nccl.gn07.4242.log", None, "gn07"),
    ],
)
def test_names(name: str, rank: int | None, host: str | None) -> None:
    assert (rank_in_name(name), host_in_name(name)) == (rank, host)


def test_long_names_take_no_time() -> None:
    # With a pattern that backtracks these would not come back.
    for name in ("a-rather-long-name-" * 12, "a1-" * 80 + "rank", "x" * 250, "nccl." + "a-" * 120):
        assert host_in_name(name) is None
        assert rank_in_name(name) is None


@given(st.text(max_size=255))
def test_any_name(name: str) -> None:
    rank_in_name(name)
    host_in_name(name)
