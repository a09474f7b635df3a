"""Streams cut into rounds, however the chunks are cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.parse.gpu.rounds import Lines, Rounds, dmon_key, smi_key


def rounds_of(rounds: Rounds, *lines: bytes) -> list[bytes]:
    return [one for line in lines for one in rounds.add(line)]


def test_a_round_ends_where_a_gpu_comes_again_and_later_with_its_last_gpu() -> None:
    rounds = Rounds(smi_key)
    assert rounds_of(rounds, b"0, a, 1", b"1, b, 2") == []
    assert rounds_of(rounds, b"0, a, 3") == [b"0, a, 1\n1, b, 2"]
    assert rounds_of(rounds, b"1, b, 4") == [b"0, a, 3\n1, b, 4"]


def test_a_quiet_tool_has_told_its_first_round() -> None:
    rounds = Rounds(smi_key)
    rounds_of(rounds, b"0, a, 1", b"1, b, 2")
    assert rounds.settle() == [b"0, a, 1\n1, b, 2"]
    assert rounds.settle() == []
    assert rounds_of(rounds, b"0, a, 3", b"1, b, 4") == [b"0, a, 3\n1, b, 4"]


def test_a_slow_first_round_grows_and_is_never_taken_for_two() -> None:
    rounds = Rounds(smi_key)
    rounds_of(rounds, b"0, a, 1")
    assert rounds.settle() == [b"0, a, 1"]
    rounds_of(rounds, b"1, b, 2")
    assert rounds.settle() == [b"0, a, 1\n1, b, 2"]


LOST = b"Unable to determine the device handle for GPU0000:65:00.0: Unknown Error"


def test_a_card_that_is_lost_makes_the_next_round_shorter() -> None:
    rounds = Rounds(smi_key)
    rounds_of(rounds, b"0, a, 1", b"1, b, 2", b"0, a, 3")
    # The second card is gone; its error stands between the rows.
    assert rounds_of(rounds, LOST, b"0, a, 5") == [b"0, a, 3\n" + LOST]
    assert rounds_of(rounds, LOST) == [b"0, a, 5\n" + LOST]
    assert rounds.rest() == b"0, a, 5\n" + LOST


@pytest.mark.parametrize("quiet", [True, False], ids=["quiet", "without a pause"])
@pytest.mark.parametrize("place", range(4))
def test_a_lost_card_is_in_every_round_wherever_its_line_stands(place: int, quiet: bool) -> None:
    rows = [b"0, a, %d", b"1, b, %d", b"2, c, %d"]
    rows.insert(place, LOST)
    rounds, told = Rounds(smi_key), []
    for turn in range(5):
        lines = [row % turn if b"%d" in row else row for row in rows]
        told += rounds_of(rounds, *lines)
        if quiet and rounds.pending:
            told += rounds.settle()
    assert len(told) >= 4
    assert all(whole.count(LOST) >= 1 for whole in told)
    assert all(whole.count(b", c, ") == 1 for whole in told)
    assert told[-1].count(LOST) == 1


@pytest.mark.parametrize("place", range(4))
def test_a_card_that_goes_while_one_looks_stays_away(place: int) -> None:
    """From the second round after it on every round says so, and no row is told twice."""
    rounds, told = Rounds(smi_key), []
    for turn in range(6):
        rows = [b"0, a, %d" % turn, b"1, b, %d" % turn, b"2, c, %d" % turn]
        if turn >= 2:
            rows.insert(place, LOST)
            rows.remove(b"2, c, %d" % turn)
        told.append(rounds_of(rounds, *rows))
        if rounds.pending:
            told[-1] += rounds.settle()
    assert all(LOST in whole for after in told[3:] for whole in after)
    assert all(told[3:])


def test_an_error_at_the_end_is_told_with_the_last_rows() -> None:
    rounds = Rounds(smi_key)
    rounds_of(rounds, b"0, a, 1", b"0, a, 2")
    rounds_of(rounds, b"GPU is lost")
    assert rounds.rest() == b"0, a, 2\nGPU is lost"


def test_dmon_rows_are_told_by_their_entity() -> None:
    header = b"#Entity         GPUTL"
    rounds = Rounds(dmon_key)
    first = (header, b"ID", b"GPU 0           97", b"GPU-I 3         ", b"GPU 1           0 ")
    assert rounds_of(rounds, *first) == []
    assert rounds_of(rounds, b"GPU 0           98") == [b"\n".join(first)]


def test_a_line_may_be_cut_anywhere() -> None:
    lines = Lines()
    assert lines.feed(b"0, a") == []
    assert lines.feed(b", 1\n1, b, 2\n2") == [b"0, a, 1", b"1, b, 2"]


@given(st.lists(st.binary(max_size=40), max_size=30))
def test_any_bytes_are_taken_and_no_row_is_told_out_of_order(chunks: list[bytes]) -> None:
    for key in (smi_key, dmon_key):
        lines, rounds = Lines(), Rounds(key)
        came = [line for chunk in chunks for line in lines.feed(chunk)]
        for line in came:
            for whole in rounds.add(line):
                keys = [one for one in map(key, whole.split(b"\n")) if one is not None]
                assert keys
                assert len(keys) == len(set(keys))
        rounds.settle()


@given(st.integers(1, 6), st.integers(2, 5), st.integers(1, 40))
def test_every_value_is_told_whatever_the_cut(gpus: int, times: int, size: int) -> None:
    data = b"".join(
        b"%d, uuid-%d, %d\n" % (gpu, gpu, 100 * turn + gpu)
        for turn in range(times)
        for gpu in range(gpus)
    )
    lines, rounds = Lines(), Rounds(smi_key)
    told: list[bytes] = []
    for at in range(0, len(data), size):
        for line in lines.feed(data[at : at + size]):
            told += rounds.add(line)
    told += rounds.settle()
    assert b"\n".join(told) + b"\n" == data
