"""Names of operations, ranks in words, and when a few ranks are a minority."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.triage.ops import group_size, numel_of, plain_op
from slurmtop.triage.waiting import minority, ranks_words


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("_ALLGATHER_BASE", "allgather_base"),
        ("AllReduce", "allreduce"),
        ("ReduceScatter", "reduce_scatter"),
        ("_REDUCE_SCATTER_BASE", "reduce_scatter_base"),
        ("nccl:all_reduce", "allreduce"),
        ("nccl:_all_gather_base", "allgather_base"),
        ("AlltoAll", "alltoall"),
        ("", None),
        (None, None),
    ],
)
def test_an_operation_has_one_spelling(written: str | None, plain: str | None) -> None:
    assert plain_op(written) == plain


def test_a_size_follows_from_equal_parts_only() -> None:
    assert group_size("allgather_base", 10, 80) == 8
    assert group_size("reduce_scatter_base", 80, 10) == 8
    assert group_size("allgather_base", 10, 81) is None
    assert group_size("allreduce", 10, 10) is None


def test_elements_of_a_shape() -> None:
    assert [numel_of(shape) for shape in ("8, 4", "", None, "8, x")] == [32, 1, None, None]


@pytest.mark.parametrize(
    ("ranks", "words"),
    [
        ((3,), "rank 3"),
        ((0, 1), "ranks 0, 1"),
        ((0, 2, 5), "ranks 0, 2 and 5"),
        ((0, 1, 2, 3, 9), "ranks 0-3 and 9"),
        ((), "other ranks"),
        (tuple(range(0, 40, 2)), "ranks 0, 2, 4, 6, 8, 10, 12, 14 and 12 more"),
    ],
    ids=["one", "two", "three", "run", "none", "many"],
)
def test_ranks_in_words(ranks: tuple[int, ...], words: str) -> None:
    assert ranks_words(ranks) == words


def test_a_minority_is_one_only_whatever_the_unseen_would_say() -> None:
    one_of_eight = {rank: "a" if rank else "b" for rank in range(8)}
    assert minority(one_of_eight, 8) == {0}
    assert minority(one_of_eight, 9) == frozenset()
    assert minority(one_of_eight, None) == frozenset()
    assert minority({0: "b", 1: "a", 2: "a"}, 3) == {0}
    assert minority({0: "b", 1: "a"}, 2) == frozenset()
    assert minority({0: "a", 1: "b", 2: "c"}, 3) == frozenset()
    assert minority(dict.fromkeys(range(4), "a"), 4) == frozenset()


@given(
    st.lists(st.sampled_from("aab"), min_size=1, max_size=12),
    st.integers(0, 3),
    st.sets(st.integers(0, 11)),
)
def test_fewer_values_never_make_a_new_minority(
    told: list[str], unseen: int, lost: set[int]
) -> None:
    values = dict(enumerate(told))
    size = len(values) + unseen
    kept = {rank: value for rank, value in values.items() if rank not in lost}
    assert minority(kept, size) <= minority(values, size)
