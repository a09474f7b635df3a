"""Streams cut into rounds, however the chunks are cut."""

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


def test_a_card_that_is_lost_makes_the_next_round_shorter() -> None:
    rounds = Rounds(smi_key)
    rounds_of(rounds, b"0, a, 1", b"1, b, 2", b"0, a, 3")
    # The second card is gone; its error stands between the rows.
    lost = b"Unable to determine the device handle for GPU0000:65:00.0: Unknown Error"
    assert rounds_of(rounds, lost, b"0, a, 5") == [b"0, a, 3\n" + lost, b"0, a, 5"]
    assert rounds_of(rounds, lost) == []
    assert rounds.rest() == b"0, a, 5\n" + lost


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
