"""What most lines look like is believed; a list, a stack or a table is not taken for labels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.parse.logs.names import host_in_name, rank_in_name
from slurmtop.parse.logs.shape import shape_of, width_of, without_border


def test_labels_of_srun_come_again_in_any_order() -> None:
    assert shape_of(["0: a", "3: b", "1: c", "0: d", " 2: e", "srun: error: x"]).labelled
    assert shape_of(["11: a", "11: b", "11: c"]).labelled


@pytest.mark.parametrize(
    "lines",
    [
        ["   0: std::panic", "   1: core::ops", "   2: main", "   3: start"],
        ["a:", "  1: x", "b:", "c: 3", "d: 4"],
        ["0: one"],
        ["loss: 3", "3: x", "lr: 4", "step: 5"],
    ],
)
def test_numbers_of_a_list_are_no_labels(lines: list[str]) -> None:
    assert not shape_of(lines).labelled


def test_names_before_most_lines_are_labels() -> None:
    lines = ["node-a: x", "node-b: y", "node-a:", "node-b: z", "node-c: once"]
    assert shape_of(lines).labels == {"node-a", "node-b"}
    assert shape_of(["loss: 3", "lr: 4", "loss: 5", "lr: 6"]).labels == frozenset()
    assert shape_of(["step-1: 3", "step-1: 4"]).labels == frozenset()


def test_line_numbers_that_were_pasted_along_count_up() -> None:
    for form in ("[%d] x", "  %d\tx", "%d:x", "out/train.log:%d:x"):
        found = shape_of([form % number for number in (7, 8, 12, 900)]).numbered
        assert found is not None
        assert found.match(form % 12)
    assert shape_of(["[0] x", "[1] x", "[0] x", "[1] x"]).numbered is None


def test_a_border_goes_only_where_it_is_one() -> None:
    piped = shape_of(["a    |", "b    |", "c    |"])
    assert without_border("a    |", piped) == "a"
    plain = shape_of(["a    |", "b", "c"])
    assert without_border(" 3%|#    |", plain) == " 3%|#    |"
    assert without_border("x      │  ", plain) == "x"


def test_the_width_of_a_pane_is_told_by_its_filling() -> None:
    assert width_of([b"x" * 80, b"y" + b" " * 79, b"z" * 80]) == 80
    assert width_of([b"x" * 80, b"y"]) is None
    assert width_of([b"ab " * 30, b"ab " * 30, b"Traceback"]) is None
    assert width_of([]) is None


@pytest.mark.parametrize(
    ("name", "rank", "host"),
    [
        ("rank118.log", 118, None),
        ("logs/node-3_rank5.err", 5, "node-3"),
        ("rank_7/stderr.log", 7, None),
        ("local_rank_3.log", None, None),
        ("nccl.node-a.4242.log", None, "node-a"),
        ("node-b.log", None, "node-b"),
        ("worker-9.log", None, "worker-9"),
        ("node.log", None, None),
        ("hostfile-run.log", None, None),
        ("slurm-4711.out", None, None),
        ("nccl-tests.log", None, None),
        ("", None, None),
        ("ranking.log", None, None),
    ],
)
def test_names_tell_ranks_and_hosts(name: str, rank: int | None, host: str | None) -> None:
    assert (rank_in_name(name), host_in_name(name)) == (rank, host)


@given(st.lists(st.text(max_size=90), max_size=12))
def test_any_lines_have_a_shape(lines: list[str]) -> None:
    shape = shape_of(lines)
    width_of([line.encode("utf-8", "replace") for line in lines])
    for line in lines:
        without_border(line, shape)


@given(st.text(max_size=60))
def test_any_name_is_looked_at_without_an_exception(name: str) -> None:
    rank_in_name(name)
    host_in_name(name)
