"""A first answer and better ones: lines where nobody watches, in place on a terminal."""

import re
from dataclasses import replace

import pytest

from slurmtop.cli import refining
from slurmtop.cli.refining import Refining, since_start_s
from slurmtop.model.facts import JobFacts
from slurmtop.model.live import LiveFacts, Sample
from slurmtop.model.probe import NodeProbe
from slurmtop.model.verdict import Culprit, State, Verdict
from tests.fakes import START

FACTS = JobFacts(asked="4711", cluster="", now=START)
FIRST = Verdict(job="4711", state=State.UNKNOWN, summary="log quiet for 25 s")
LATER = replace(FIRST, summary="log quiet for 27 s")
LAST = Verdict(
    job="4711",
    state=State.HUNG,
    cls="process-stopped",
    summary="rank 2 is stopped",
    culprits=(Culprit(rank=2, host="gpu03"),),
)
LINE = r"slurmtop: \d+\.\d s: "


def lines(verdict: Verdict) -> tuple[str, ...]:
    return (f"what   {verdict.summary}", "who    …")


def test_one_line_a_refinement(capsys: pytest.CaptureFixture[str]) -> None:
    told = Refining(lines)
    for verdict in (FIRST, LATER, LATER):
        told.news(FACTS, verdict)
    told.news(FACTS, replace(FIRST, summary="its processes stand still"))
    told.end(LAST)
    out, err = capsys.readouterr()
    first, so_far, last = err.splitlines()
    assert out == ""
    assert re.fullmatch(LINE + "first answer: unknown: log quiet for 25 s", first)
    assert re.fullmatch(LINE + "so far: unknown: its processes stand still", so_far)
    assert re.fullmatch(LINE + "verdict: hung: rank 2 is stopped", last)


def test_one_answer_alone_needs_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    Refining(lines).end(LAST)
    assert capsys.readouterr() == ("", "")


def test_a_line_is_no_wider_than_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    Refining(lines).news(FACTS, replace(FIRST, summary="ranks wait " * 40))
    assert len(capsys.readouterr().err.rstrip("\n")) <= 120


def test_the_first_of_many_nodes_is_no_news(capsys: pytest.CaptureFixture[str]) -> None:
    told = Refining()
    told.news(FACTS, FIRST)
    hosts = ("gpu01", "gpu02", "gpu03", "gpu04")
    for count in (1, 2):
        probes = tuple(NodeProbe(host=host, at=START) for host in hosts[:count])
        live = LiveFacts(job="4711", hosts=hosts, samples=(Sample(began_at=START, probes=probes),))
        told.news(replace(FACTS, live=live), replace(FIRST, summary=f"seen: {'x' * count}"))
    err = capsys.readouterr().err
    assert "seen: xx" in err
    assert "seen: x\n" not in err


def test_hostile_words_stay_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    Refining(lines).news(FACTS, replace(FIRST, summary="a\x1b[2J\nslurmtop: 1 s: verdict: healthy"))
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "\x1b" not in err


def test_in_place_the_last_answer_is_left_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refining, "_can_replace", lambda: True)
    told = Refining(lines)
    assert told.in_place
    told.news(FACTS, FIRST)
    sample = Sample(began_at=START, probes=(NodeProbe(host="gpu01", at=START),))
    live = LiveFacts(job="4711", hosts=("gpu01", "gpu02"), samples=(sample,))
    told.news(replace(FACTS, live=live), LATER)
    told.end(LAST)
    out, err = capsys.readouterr()
    assert err == ""
    one, two, three = out.split("\x1b[3F\x1b[J")
    assert one.splitlines()[0] == "what   log quiet for 25 s"
    assert two.splitlines()[2] == "       … looking: 1 of 2 nodes answered"
    assert three.splitlines() == list(lines(LAST))


def test_what_was_broken_off_leaves_the_best_answer(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Refining(lines)
    assert told.broken_off() is None
    told.news(FACTS, FIRST)
    assert told.broken_off() == FIRST
    monkeypatch.setattr(refining, "_can_replace", lambda: True)
    told = Refining(lines)
    told.news(FACTS, FIRST)
    capsys.readouterr()
    assert told.broken_off() is None
    assert capsys.readouterr().out.split("\x1b[J")[1].splitlines() == list(lines(FIRST))


@pytest.mark.parametrize(
    ("term", "no_color", "expected"),
    [("xterm-256color", "", True), ("dumb", "", False), ("xterm", "1", False), ("", "", False)],
)
def test_where_nothing_is_painted_over(
    monkeypatch: pytest.MonkeyPatch, term: str, no_color: str, expected: bool
) -> None:
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setattr("os.get_terminal_size", lambda _: _Size())
    assert Refining(lines).in_place is expected
    assert not Refining().in_place


class _Size:
    lines = 24
    columns = 80


def test_the_time_since_the_start_counts_up() -> None:
    first = since_start_s()
    assert 0.0 < first <= since_start_s() < 86_400.0
