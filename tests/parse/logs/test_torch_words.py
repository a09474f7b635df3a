"""What the readers of PyTorch's lines share."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.trace import RankFrom
from slurmtop.parse.logs.line import Message
from slurmtop.parse.logs.torch_words import Begun, group_of, level, number, operation, shown
from tests.parse.logs.messages import message


@pytest.mark.parametrize(
    ("text", "value"),
    [("12", 12), ("-1", -1), (" 7 ", 7), ("", None), (None, None), ("1e3", None), ("9" * 30, None)],
)
def test_only_what_spells_a_number_is_one(text: str | None, value: int | None) -> None:
    assert number(text) == value


@given(st.text(max_size=30))
def test_no_text_is_too_odd_for_a_number(text: str) -> None:
    assert number(text) is None or isinstance(number(text), int)
    group_of(text)
    operation(text)


@pytest.mark.parametrize(
    ("head", "letter"),
    [
        ("E1003 18:37:01.83 ProcessGroupNCCL.cpp:607", "E"),
        ("[W socket.cpp:401] ", "W"),
        ("W1026 03:51:31.222000 2521679 api.py:908] ", "W"),
        ("node-a:815:864 [0]", ""),
        ("Egon:815:864 [0]", ""),
        ("", ""),
    ],
)
def test_the_level_stands_in_the_head(head: str, letter: str) -> None:
    assert level(dataclasses.replace(message("x"), head=head)) == letter


def test_telling_words_far_into_a_line_are_shown() -> None:
    text = "x" * 900 + " RuntimeError: CUDA out of memory"
    whole = message(text)
    assert "CUDA out of memory" not in whole.at.text
    assert shown(whole, 901).text == "RuntimeError: CUDA out of memory"
    assert shown(message("short"), 0).text == "short"


def test_a_line_without_a_writer_right_behind_goes_on_with_the_writer_before() -> None:
    first = message("head", 4, rank=3, rank_from=RankFrom.TAG, host="n1")
    begun = Begun(Message(first.text, "[rank3]:", first.at))
    assert begun.goes_on(message("more", 5))
    assert not begun.goes_on(message("later", 6))
    assert not begun.goes_on(message("of another", 5, rank=1))
    at = begun.at(message("more", 5))
    assert (at.rank, at.rank_from, at.host, at.line) == (3, RankFrom.TAG, "n1", 6)
    assert begun.at(message("own", 5, rank=7)).rank == 7
