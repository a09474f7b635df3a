"""The long form of a verdict as text."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.text import cell_width
from slurmtop.model.verdict import (
    Collective,
    Confidence,
    Culprit,
    EndedBy,
    Evidence,
    Missing,
    NextStep,
    State,
    Verdict,
)
from slurmtop.triage.report import report_lines, wrapped

FULL = Verdict(
    job="4711",
    cluster="alps",
    state=State.HUNG,
    family="Who called what (the program)",
    cls="missing-rank",
    ended_by=EndedBy.SELF,
    confidence=Confidence.MEDIUM,
    summary="rank 3 never came to allreduce 41; the other 7 wait for it",
    since=datetime(2031, 5, 5, 10, 0, tzinfo=UTC),
    culprits=(Culprit(rank=3, host="gn01", reason="it never came"),),
    collective=Collective(
        op="allreduce", seq=41, group="default_pg", expected_ranks=tuple(range(8)),
        missing_ranks=(3,),
    ),
    evidence=(
        Evidence(
            family="log", source="logs/rank2.log", line=138, host="gn01", text="two\nlines",
            says="it waits", time=datetime(2031, 5, 5, 10, 9, tzinfo=UTC),
        ),
    ),
    against=(Evidence(family="log", source="x.log", text="other", says="could be a link"),),
    missing=(Missing("log", "no line of rank 5 was read", "ls -l logs"),),
    next=(
        NextStep("look at its stack", "slurmtop triage 4711", "read", "before it is stopped"),
        NextStep("cancel it", "scancel 4711", "write", ""),
    ),
)  # fmt: skip


def test_it_is_read_from_top_to_bottom() -> None:
    assert report_lines(FULL) == (
        "job 4711: HUNG  missing-rank",
        "  rank 3 never came to allreduce 41; the other 7 wait for it",
        "  Who called what (the program); confidence medium; ended by self; last progress",
        "  2031-05-05T10:00:00+00:00",
        "",
        "who",
        "  rank 3 on gn01: it never came",
        "  allreduce 41 of default_pg; 1 of 8 ranks missing: 3",
        "",
        "proof",
        "  gn01 logs/rank2.log:138 at 2031-05-05T10:09:00+00:00 (it waits)",
        "  | two",
        "  | lines",
        "",
        "against it",
        "  x.log (could be a link)",
        "  | other",
        "",
        "not read",
        "  log: no line of rank 5 was read",
        "    ls -l logs",
        "",
        "what now",
        "  1. look at its stack: before it is stopped",
        "     slurmtop triage 4711",
        "  2. cancel it, changes something",
        "     scancel 4711",
    )


def test_what_is_not_there_has_no_heading() -> None:
    bare = Verdict(job=None, state=State.UNKNOWN, summary="nothing shows how it goes")
    assert report_lines(bare) == (
        "UNKNOWN",
        "  nothing shows how it goes",
        "  confidence low",
        "",
        "who",
        "  nobody can be named from what could be read",
    )


def test_many_unread_files_are_counted() -> None:
    missing = tuple(Missing("log", f"file {number}") for number in range(30))
    lines = report_lines(Verdict(job=None, state=State.FAILED, summary="x", missing=missing))
    assert "  log: file 7" in lines
    assert "  and 22 more: see missing[] of --json" in lines


def test_a_command_is_never_broken() -> None:
    command = "slurmtop triage --whole " + "/a/very/long/path" * 9
    step = NextStep("read it " * 20, command, "read", "")
    lines = report_lines(Verdict(job=None, state=State.FAILED, summary="x", next=(step,)))
    assert f"     {command}" in lines
    assert max(cell_width(line) for line in lines if command not in line) <= 80


@given(st.text(max_size=900), st.integers(40, 120))
def test_any_text_is_shown_safely_within_the_width(text: str, width: int) -> None:
    item = Evidence(family="log", source=text[:60], text=text, says=text[:90], line=1)
    verdict = Verdict(
        job=text[:9] or None, state=State.FAILED, summary=text, evidence=(item,), against=(item,),
        culprits=(Culprit(rank=1, host=text[:30], reason=text),),
        missing=(Missing(text[:20], text),),
        collective=Collective(op=text[:9], group=text[:30], mismatch=text),
    )  # fmt: skip
    for line in report_lines(verdict, width=width):
        assert cell_width(line) <= width
        assert not any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for char in line)


@pytest.mark.parametrize("width", [8, 20, 80])
def test_wrapping_loses_nothing_but_blanks(width: int) -> None:
    text = "one two " * 30 + "x" * 200 + " 训练失败" * 20
    lines = list(wrapped(text, width))
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert max(cell_width(line) for line in lines) <= width
