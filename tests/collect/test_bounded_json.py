"""What stands between the texts of a JSON document is counted before it is read."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.collect.bounded_json import TooMuch, between, loads


@pytest.mark.parametrize(
    ("data", "counted"),
    [
        (b"", 0),
        (b"[]", 2),
        (b'"abc"', 2),
        (rb'"a\"b,[\\"', 2),
        (b'{"a": [1, "b"]}', 13),
        (b'["no end', 3),
        (b'["no end\\', 4),
    ],
)
def test_texts_count_by_their_quotes(data: bytes, counted: int) -> None:
    assert between(data) == counted


@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner), max_leaves=20))
def test_what_is_small_is_read_as_it_is(value: object) -> None:
    assert loads(json.dumps(value).encode()) == value


@given(st.text(alphabet='"\\[]{},a:'))
def test_any_text_is_counted(text: str) -> None:
    assert 0 <= between(text.encode()) <= 2 * len(text)


def test_more_than_enough_is_refused_however_it_is_written() -> None:
    for data in (b"[]," * 100, b'"",' * 100, b'""' * 200, b'"ab",' * 100, b"1," * 150, b" " * 300):
        with pytest.raises(TooMuch):
            loads(b"[" + data + b"0]", 200)
    assert loads(b'["' + b"[]," * 10_000 + b'"]', 200) == ["[]," * 10_000]
