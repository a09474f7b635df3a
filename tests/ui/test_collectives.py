"""The collectives as lines: letters, folding, width, who stands on top."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.collective_table import Cell, Mark, Row, Table
from slurmtop.ui.present.collectives import MOST_ROWS, MOST_TABLES, collective_lines
from slurmtop.ui.present.spans import Line, line_width, plain
from tests.ui.golden import Golden
from tests.ui.test_present_hostile import HOSTILE, harmless

SUM = Cell("allreduce 134217728 bf16")
GATHER = Cell("allgather 33554432 bf16")


def row(*cells: Cell, ranks: tuple[int, ...] = (0,), note: str = "") -> Row:
    return Row(ranks, ranks, cells, note)


#: Six calls of 4,096 ranks: one rank called something else, one has not come.
MANY = Table(
    group="default_pg",
    kind="torch",
    attempt=0,
    size=4_096,
    unseen=0,
    columns=(48_205, 48_206, 48_207, 48_208, 48_209, 48_210),
    rows=(
        row(
            SUM,
            GATHER,
            SUM,
            GATHER,
            SUM,
            Cell("broadcast 1 i64 root 0", Mark.DIFFERS),
            ranks=(77,),
            note="48210 calls",
        ),
        row(
            SUM,
            GATHER,
            SUM,
            GATHER,
            SUM,
            Cell("", Mark.MISSING),
            ranks=(1_205,),
            note="48209 calls",
        ),
        row(
            SUM,
            GATHER,
            SUM,
            GATHER,
            SUM,
            Cell("allreduce 134217728 bf16", Mark.WAITS),
            ranks=tuple(rank for rank in range(4_096) if rank not in (77, 1_205)),
            note="48210 calls",
        ),
    ),
)
#: Two equal sides of which no line tells the number.
HALVES = Table(
    group="mesh_tp",
    kind="nccl",
    attempt=1,
    size=None,
    unseen=None,
    columns=(None,),
    rows=(
        Row((0, 1), (), (Cell("allreduce", Mark.DIFFERS),)),
        Row((2, 3), (), (Cell("broadcast", Mark.DIFFERS),)),
    ),
)
#: The start of the logs is not there.
CUT = Table(
    group="0x7f0000",
    kind="nccl",
    attempt=0,
    size=8,
    unseen=5,
    columns=(-1, 0),
    rows=(row(SUM, GATHER, ranks=(0, 1, 2)),),
    comparable=False,
)


def text(lines: tuple[Line, ...]) -> str:
    return "".join(plain(line).rstrip() + "\n" for line in lines)


@pytest.mark.parametrize("width", [40, 80, 140])
def test_tables_at_several_widths(golden: Golden, width: int) -> None:
    lines = collective_lines((MANY, HALVES, CUT), {1_205}, width)
    assert all(line_width(line) <= width for line in lines)
    golden(f"collectives_{width}", text(lines))


def test_no_table_is_no_heading() -> None:
    assert collective_lines((), {3}, 80) == ()


def test_who_is_named_stands_on_top_with_a_sign() -> None:
    lines = [plain(line) for line in collective_lines((CUT, MANY), {1_205}, 100)]
    first = next(line for line in lines if "rank" in line and "#" not in line and "," not in line)
    assert first.startswith("  ! rank 1205")
    assert any("! named by the verdict" in line for line in lines)


def test_every_mark_has_a_letter_that_is_explained() -> None:
    lines = [plain(line) for line in collective_lines((MANY,), (), 140)]
    for letter, words in (("M", "never came"), ("D", "something else"), ("W", "waited")):
        assert any(f" {letter} " in line and "rank" in line for line in lines), letter
        assert any(line.startswith(f"  {letter} ") and words in line for line in lines), letter
    plainly = collective_lines((CUT,), (), 140)
    assert not any("M others" in plain(line) for line in plainly)


def test_a_narrow_screen_keeps_the_newest_column() -> None:
    shown = text(collective_lines((MANY,), (), 50))
    assert "#48210" in shown
    assert "#48205" not in shown


def test_many_rows_and_groups_are_counted() -> None:
    rows = tuple(row(Cell(f"allreduce {n}"), ranks=(n,)) for n in range(40))
    wild = replace(CUT, rows=rows, columns=(7,), comparable=True)
    shown = text(collective_lines((wild,) * 9, (), 80))
    assert shown.count(f"{40 - MOST_ROWS} more rows of ranks") == MOST_TABLES
    assert f"{9 - MOST_TABLES} more groups" in shown


marks = st.sampled_from(list(Mark))


@given(HOSTILE, HOSTILE, st.lists(marks, min_size=1, max_size=5), st.integers(1, 140))
def test_hostile_text_and_any_width(group: str, call: str, some: list[Mark], width: int) -> None:
    cells = tuple(Cell(call, mark) for mark in some)
    columns = tuple(range(len(some)))
    table = replace(
        MANY, group=group, columns=columns, rows=(row(*cells, ranks=(3, 9), note=call),)
    )
    lines = collective_lines((table, replace(table, comparable=False)), {3}, width)
    harmless(lines)
    if width >= 20:
        assert all(line_width(line) <= width for line in lines)
