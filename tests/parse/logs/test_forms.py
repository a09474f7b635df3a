"""What is told of a form holds for all of its lines."""

from hypothesis import given
from hypothesis import strategies as st

from slurmtop.parse.logs.call_forms import Told, Wiring, told_of, wiring_of
from slurmtop.parse.logs.calls import CallLines
from slurmtop.parse.logs.forms import Forms, form_of
from slurmtop.parse.logs.raws import Block, RawLines

LINE = st.binary(max_size=12).map(lambda data: data.replace(b"\n", b" "))
PARTS = st.sampled_from(
    [
        b"node-3:815:864 [1] NCCL INFO ",
        b"node-4:16:8 [1] NCCL INFO ",
        b":816:864 [0] INFO ",
        b"[rank3]: ",
        b"Channel 03/0 : 3[3] -> 14[4] via P2P/CUMEM",
        b"Channel 13/0 : 3[3] -> 4[4] via P2P/CUMEM",
        b"Trees [0] 1/-1/-1->0->-1",
        b"Ring 01 : 7 -> 0 -> 1",
        b"AllReduce: opCou",
        b" sendbuff 1x7f",
        b" recvbuff 0x7f",
        b" comm 0x5 [nranks=3] stream",
        b"0123 steps",
        b"NCCL CALL ncclGroupStart()",
    ]
)
LINES = st.lists(st.lists(PARTS, max_size=3).map(b"".join), max_size=30)


def one_by_one(lines: list[bytes]) -> tuple[list[int], int]:
    """The lines that go on to the readers, each told without the others' forms."""
    taken = CallLines()
    blocks = [Block([line], number=1, offset=0, place=0) for line in lines]
    rest = [list(taken.take(block, Forms(block.lines))) == [0] for block in blocks]
    return [at for at, goes_on in enumerate(rest) if goes_on], taken.broken


@given(LINES)
def test_lines_are_told_by_their_forms_as_one_by_one(lines: list[bytes]) -> None:
    taken = CallLines()
    block = Block(list(lines), number=1, offset=0, place=0)
    rest = list(taken.take(block, Forms(block.lines)))
    assert (rest, taken.broken) == one_by_one(lines)


@given(st.lists(PARTS, max_size=4).map(b"".join))
def test_what_a_line_shows_its_form_shows(line: bytes) -> None:
    told = told_of(form_of(line))
    wiring = wiring_of(line)
    if wiring is not None:
        assert told == wiring
    else:
        assert not isinstance(told, Wiring)
    assert told is told_of(form_of(line))
    assert told is not Told.NONE_OF_THESE or b"opCount" not in line


@given(st.lists(LINE, max_size=20), st.data())
def test_forms_stand_behind_one_another(lines: list[bytes], data: st.DataObject) -> None:
    first = data.draw(st.lists(LINE, max_size=3))
    wanted = data.draw(
        st.lists(st.integers(0, len(lines) - 1), unique=True) if lines else st.just([])
    )
    wanted.sort()
    whole = Forms(lines).behind(first, wanted)
    assert whole.of == [form_of(line) for line in [*first, *(lines[at] for at in wanted)]]
    assert set(whole.kinds) == set(whole.of)
    places = whole.places(set(whole.of))
    assert sorted(at for part in places.values() for at in part) == list(range(len(whole.of)))


@given(
    st.lists(st.binary(max_size=30) | st.sampled_from([b"\n", b"a\r", b"x" * 70_000])),
    st.booleans(),
)
def test_the_text_of_a_block_is_that_of_its_lines(parts: list[bytes], wide: bool) -> None:
    raws = RawLines()
    blocks = raws.feed(b"\xff\xfe" if wide else b"-")
    for part in parts:
        blocks += raws.feed(part)
    blocks += raws.finish()
    for block in blocks:
        for _ in range(2):
            assert block.take_text() == b"\n".join(block.lines)
