"""No line that a reader asked for is kept from it, unless thousands are like it."""

import re

from hypothesis import given
from hypothesis import strategies as st

from slurmtop.parse.logs.gate import Gate

WORDS = [(b"rror", b": error: ", b"int8"), (b"%|", b"it/s"), (b"Watchdog caught",)]


def test_each_reader_is_told_its_own_lines() -> None:
    gate = Gate(WORDS)
    lines = [b"an Error", b"45%| 1 it/s", b"loss", b"x: error: y%|", b"[Rank 3] Watchdog caught it"]
    assert gate.pick(lines) == {0: (0,), 1: (1,), 3: (0, 1), 4: (2,)}
    assert [gate.of(line) for line in lines] == [(0,), (1,), (), (0, 1), (2,)]


def test_a_word_with_digits_needs_its_digits() -> None:
    gate = Gate(WORDS)
    assert (gate.of(b"type int4"), gate.of(b"type int8"), gate.of(b"type int4")) == ((), (0,), ())


def test_ranks_are_never_dropped_for_each_other() -> None:
    lines = [b"[E P.cpp:8] [Rank %d] Watchdog caught it" % rank for rank in range(3_000)]
    assert len(Gate(WORDS).pick(lines)) == 3_000
    tagged = [b"[rank%d]: an Error" % rank for rank in range(3_000)]
    assert len(Gate(WORDS).pick(tagged)) == 3_000


def test_of_very_many_like_lines_the_first_and_the_last_are_picked() -> None:
    lines = [b"Error %d" % n for n in range(3_000)]
    picked = list(Gate(WORDS).pick(lines))
    assert picked == [*range(64), *range(2_936, 3_000)]
    passing = list(Gate(WORDS, frozenset({1})).pick([b"%d%%|" % n for n in range(3_000)]))
    assert passing == [0, 1, 2, 3, 2_996, 2_997, 2_998, 2_999]


def test_of_many_kinds_of_progress_the_first_and_the_last_are_picked() -> None:
    lines = [
        b"%%|%s" % bytes([97 + n % 26, 97 + n // 26 % 26, 97 + n // 676]) for n in range(5_000)
    ]
    picked = list(Gate(WORDS, frozenset({1})).pick(lines))
    assert len(picked) == 600
    assert (picked[0], picked[-1]) == (0, 4_999)


@given(st.lists(st.lists(st.sampled_from([*WORDS[0], *WORDS[1], b"x", b" ", b"7"])).map(b"".join)))
def test_the_words_of_a_line_are_found_wherever_they_stand(lines: list[bytes]) -> None:
    gate = Gate(WORDS)
    for line in lines:
        holds = tuple(at for at, words in enumerate(WORDS) if any(word in line for word in words))
        assert gate.of(line) == holds


LINES = st.lists(
    st.sampled_from(
        [
            b"[rank%d]: an Error",
            b"2031-05-05 10:00:0%d [rank3]: 7 %%| it/s",
            b"[Rank %d] Watchdog caught it",
            b"%d: an Error of rank 3",
            b"host-%d:4:5 [0] NCCL INFO an Error",
            b"an Error of comm 0x%d",
            b"an Error comm 0x%d",
            b"an Error %d",
            b"[rank1]: loss %d",
        ]
    ).flatmap(
        lambda form: st.integers(0, 30).map(lambda number: form.replace(b"%d", b"%d" % number))
    ),
    max_size=8,
)


@given(LINES, st.integers(1, 40))
def test_what_is_picked_of_a_writer_hangs_on_its_own_lines_alone(
    lines: list[bytes], times: int
) -> None:
    """Each line is looked at on its own here, as slowly as that is."""
    lines = lines * times
    writers: dict[tuple[bytes, tuple[bytes, ...]], list[int]] = {}
    counts: dict[bytes, int] = {}
    for at, line in enumerate(lines):
        bare = line.translate(None, b"0123456789")
        counts[bare] = counts.get(bare, 0) + 1
        writers.setdefault((bare, writer_of(line)), []).append(at)
    gate = Gate(WORDS)
    wanted = {
        at
        for (bare, _), places in writers.items()
        for at in (
            places if counts[bare] <= 128 or len(places) <= 128 else [*places[:64], *places[-64:]]
        )
        if gate.of(lines[at])
    }
    assert set(gate.pick(lines)) == wanted


def writer_of(line: bytes) -> tuple[bytes, ...]:
    if b" comm 0x" in line:
        return (line,)
    time = re.match(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d{2,3} ", line)
    rest = line[time.end() :] if time else line
    tag = re.match(rb"\[[\w ]+\]:? ?|\d+: ", rest)
    return (
        tag.group() if tag else b"",
        *re.findall(rb"rank (\d+)", rest),
        *re.findall(rb"^\S+:\d+:\d+ \[", rest),
    )
