import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.rights import AccountUser
from slurmtop.parse.slurm.users import parse_users


def test_a_plain_user() -> None:
    parsed = parse_users(b"alice|ml|None|\n")
    assert parsed.rows == (AccountUser(name="alice", operator=False),)
    assert parsed.bad == 0


@pytest.mark.parametrize(
    ("line", "operator", "accounts"),
    [
        (b"root|root|Administrator|\n", True, set()),
        (b"carol|bio|Operator|bio,chem\n", True, {"bio", "chem"}),
        (b"dave|bio|None|bio\n", False, {"bio"}),
        (b"dave|bio|key|None|bio\n", False, {"bio"}),
    ],
)
def test_levels_and_accounts(line: bytes, operator: bool, accounts: set[str]) -> None:
    (user,) = parse_users(line).rows
    assert user.operator is operator
    assert set(user.coordinates) == accounts


def test_a_line_of_another_form_costs_no_neighbour() -> None:
    parsed = parse_users(b"slurmdbd: hello\n\nalice|ml|None|\nbob|ml|Emperor|\n|x|None|\n")
    assert [user.name for user in parsed.rows] == ["alice"]
    assert parsed.bad == 3
    assert parsed.first_bad is not None
    assert "slurmdbd" in parsed.first_bad.excerpt


@given(st.binary(max_size=200) | st.text("ab|,\nNoneOperator ", max_size=60).map(str.encode))
def test_any_bytes_are_users_or_bad(data: bytes) -> None:
    parsed = parse_users(data)
    lines = [line for line in data.decode("utf-8", "replace").split("\n") if line.strip()]
    assert len(parsed.rows) + parsed.bad == len(lines)
    assert all(user.name for user in parsed.rows)
