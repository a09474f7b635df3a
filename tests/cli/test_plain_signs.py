"""An output that cannot print signs: none of them becomes the sign for unknown."""

import ast
import unicodedata
from pathlib import Path

import pytest

import slurmtop
from slurmtop.cli.plain_signs import ERRORS, plain, register

register()
SOURCES = sorted(
    path
    for room in ("cli", "triage", "ui")
    for path in (Path(slurmtop.__file__).parent / room).rglob("*.py")
)


def signs_in(source: Path) -> set[str]:
    """Every sign in a text of the source that no plain terminal has."""
    texts = [
        node.value
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return {
        sign
        for sign in "".join(texts)
        if not sign.isascii() and unicodedata.category(sign)[0] in "SP"
    }


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437"])
def test_no_sign_of_ours_is_printed_as_unknown(encoding: str) -> None:
    found = set().union(*map(signs_in, SOURCES))
    assert {"○", "✗", "…"} <= found
    for sign in found:
        assert sign.encode(encoding, ERRORS).decode(encoding) not in ("?", "")


def test_every_state_of_a_node_keeps_a_sign_of_its_own() -> None:
    signs = "○◐●◔~◇▽▼✗?"
    assert {plain(sign) for sign in signs if not sign.isascii()}.isdisjoint("~?")
    assert len({sign.encode("ascii", ERRORS) for sign in signs}) == len(signs)


def test_letters_are_unknown_and_everything_stays_as_wide() -> None:
    assert "日 ü é".encode("ascii", ERRORS) == b"? ? ?"
    assert "░☃␛".encode("ascii", ERRORS) == b"###"
