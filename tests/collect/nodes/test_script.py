"""Answers between marks: found again however chunks are cut, and whatever they hold."""

import asyncio
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.collect.nodes.script import Unframer, framed, new_mark

MARK = "<<<slurmtop-0123456789ab"


def answer(stdout: bytes, stderr: bytes, rc: int) -> bytes:
    mark = MARK.encode()
    end = b"\n%b err>>>\n%b\n%b end %d>>>\n" % (mark, stderr, mark, rc)
    return b"welcome\n\n" + mark + b">>>\n" + stdout + end + b"bye\n"


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    at = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[a:b] for a, b in itertools.pairwise(at)]


texts = st.binary(max_size=60) | st.sampled_from(
    [b"", b"\n", b"row\n", b"row\n\n", b"\n" + MARK.encode(), MARK.encode() + b" err>>\n"]
)


@given(texts, texts, st.integers(0, 255), st.lists(st.integers(0, 400), max_size=8), st.booleans())
def test_what_was_printed_comes_back(
    stdout: bytes, stderr: bytes, rc: int, cuts: list[int], eager: bool
) -> None:
    reader = Unframer(MARK, eager=eager)
    got = b"".join(reader.feed(piece) for piece in pieces(answer(stdout, stderr, rc), cuts))
    assert got == stdout or (eager and got == stdout + b"\n")
    assert (reader.complete, reader.rc, reader.stderr) == (True, rc, stderr)


@given(st.lists(st.binary(max_size=50), max_size=10), st.booleans())
def test_any_bytes_raise_nothing(chunks: list[bytes], eager: bool) -> None:
    reader = Unframer(MARK, eager=eager)
    for chunk in (*chunks, MARK.encode() + b">>>\n", *chunks):
        reader.feed(chunk)


def test_a_line_of_a_stream_is_whole_when_it_comes() -> None:
    reader = Unframer(MARK, eager=True)
    reader.feed(MARK.encode() + b">>>\n")
    assert [reader.feed(line) for line in (b"one\n", b"two\n", b"\n", b"end")] == [
        b"one\n",
        b"two\n",
        b"\n",
        b"end",
    ]


@pytest.mark.parametrize("limit", [None, 5.0])
async def test_a_real_shell_prints_what_is_read(limit: float | None) -> None:
    argv = (
        "/bin/sh",
        "-c",
        "printf 'a\\000'; echo \"$1\"; echo no >&2; cat; exit 7",
        "x",
        "$(id)'\"\n",
    )
    mark = new_mark()
    child = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", framed(argv, mark, timeout_s=limit), stdout=asyncio.subprocess.PIPE
    )
    said, _ = await child.communicate()
    reader = Unframer(mark)
    assert reader.feed(said) == b"a\x00$(id)'\"\n\n"
    assert (reader.complete, reader.rc, reader.stderr) == (True, 7, b"no")
