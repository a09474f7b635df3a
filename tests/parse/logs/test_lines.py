"""Blocks of bytes to lines: every chunking gives the same, bars count once, nothing raises."""

import random

from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.facts import LogLine
from slurmtop.parse.logs.lines import LINE_LIMIT, LineDecoder, split_lines

LOG_BYTES = st.lists(
    st.sampled_from(
        [
            b"\n",
            b"\r",
            b"\r\n",
            b" ",
            b"a",
            b"step 3/4",
            b"\x1b[31m",
            b"\x1b]0;t\x07",
            b"\xc3\xbc",
            b"\xff",
            b"\xe2\x96\x88",
            b"\x1b[",
            b"\xe2",
            b"\x00",
            b"x" * 5_000,
        ]
    ),
    max_size=30,
).map(b"".join)


def texts(data: bytes, **kwargs: object) -> list[str]:
    return [line.text for line in split_lines(data, **kwargs)]  # type: ignore[arg-type]


def test_numbers_and_offsets_count_bytes_of_the_file() -> None:
    lines = split_lines("grün\nzwei\nrest".encode(), offset=100, number=7)
    assert [(line.text, line.number, line.offset) for line in lines] == [
        ("grün", 7, 100),
        ("zwei", 8, 106),
        ("rest", 9, 111),
    ]


def test_unknown_start_has_no_numbers() -> None:
    assert [line.number for line in split_lines(b"a\nb\n", number=None)] == [None, None]


def test_only_the_last_state_of_a_bar_counts() -> None:
    assert texts(b" 1%|  | 1/9\r50%|# | 5/9\r99%|##| 9/9\n") == ["99%|##| 9/9"]
    assert texts(b"99%|##| 9/9\r           \r\ndone\r\n") == ["99%|##| 9/9", "done"]
    assert texts(b"one\r\ntwo\r\n") == ["one", "two"]


def test_a_byte_order_mark_is_part_of_no_line() -> None:
    assert texts("\ufeffone\ntwo\ufeff\n".encode()) == ["one", "two\ufeff"]


def test_colours_and_titles_are_removed() -> None:
    assert texts(b"\x1b[1;31mERROR\x1b[0m \x1b]0;title\x07x\x1b(By\x1b[2K\n") == ["ERROR xy"]


def test_other_line_ends_stay_inside_a_line() -> None:
    assert texts("a\x85b\u2028c\x0cd\n".encode()) == ["a\x85b\u2028c\x0cd"]


def test_a_split_character_is_held_and_never_shown_broken() -> None:
    decoder = LineDecoder()
    data = "█ 45%".encode()
    assert decoder.feed(data[:2]) == ()
    assert decoder.pending is not None
    assert decoder.pending.text == ""
    assert decoder.feed(data[2:]) == ()
    assert decoder.pending.text == "█ 45%"
    assert [line.text for line in decoder.feed(b"\n")] == ["█ 45%"]
    assert decoder.pending is None


def test_bad_bytes_become_marks_and_cost_no_neighbour() -> None:
    assert texts(b"ok\nf\xfcr\nok\n") == ["ok", "f\ufffdr", "ok"]


def test_long_lines_are_cut_and_little_is_held() -> None:
    assert [len(text) for text in texts(b"x" * 1_000_000 + b"\ny\n")] == [LINE_LIMIT, 1]
    decoder = LineDecoder()
    for step in range(200):
        decoder.feed(b"\r%6d/200 " % step + b"#" * 1_000)
    assert decoder.pending is not None
    assert decoder.pending.text.startswith("   199/200 ###")
    assert decoder.end_offset == 200 * 1_012


def test_a_block_from_the_middle_drops_the_torn_line() -> None:
    lines = split_lines(b"rn line\nwhole\n", offset=50, number=None, starts_inside=True)
    assert [(line.text, line.offset) for line in lines] == [("whole", 58)]
    bar = split_lines(b"%|# | 1/9\r22%|##| 2/9", offset=50, starts_inside=True)
    assert [line.text for line in bar] == ["22%|##| 2/9"]
    assert split_lines(b"torn only", offset=50, starts_inside=True) == ()
    assert split_lines(b"", starts_inside=True) == ()


@given(data=LOG_BYTES, seed=st.integers(0, 2**32))
def test_any_chunking_gives_the_same_lines(data: bytes, seed: int) -> None:
    chooser = random.Random(seed)
    decoder = LineDecoder(offset=10, number=3)
    lines: list[LogLine] = []
    at = 0
    while at < len(data):
        size = chooser.choice([1, 2, 3, 7, 4_999, 20_000])
        lines += decoder.feed(data[at : at + size])
        at += size
    assert (*lines, *decoder.finish()) == split_lines(data, offset=10, number=3)


@given(data=LOG_BYTES | st.binary(max_size=300))
def test_offsets_point_at_the_lines(data: bytes) -> None:
    lines = split_lines(data)
    starts = [0] + [index + 1 for index, byte in enumerate(data) if byte == 10]
    if data.endswith(b"\n") or not data:
        starts.pop()
    assert [line.offset for line in lines] == starts
    assert [line.number for line in lines] == list(range(1, len(starts) + 1))
    assert all(len(line.text) <= LINE_LIMIT and "\n" not in line.text for line in lines)
    assert all("\x1b" not in line.text and "\r" not in line.text for line in lines)


@given(data=LOG_BYTES | st.binary(max_size=300), offset=st.integers(0, 2**40))
def test_a_tail_never_raises_and_stays_inside(data: bytes, offset: int) -> None:
    for line in split_lines(data, offset=offset, number=None, starts_inside=True):
        assert offset <= line.offset <= offset + len(data)
        assert line.number is None
