"""Findings weighed into one verdict."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from slurmtop.model.events.launch import Interrupted
from slurmtop.model.events.program import PyException, Step
from slurmtop.model.facts import LogStatus
from slurmtop.model.trace import Event, Source
from slurmtop.model.verdict import Confidence, Culprit, EndedBy, NextStep, State, Verdict
from slurmtop.triage import judge as judging
from slurmtop.triage import rules
from slurmtop.triage.finding import Finding, Shown, Weight
from slurmtop.triage.join import join
from slurmtop.triage.judge import explain_traces, judge
from slurmtop.triage.picture import Picture
from slurmtop.triage.words import four_lines
from tests.triage.traces import timed_out, traces, where


def verdict_of(
    monkeypatch: pytest.MonkeyPatch, findings: Iterable[Finding], *events: Event
) -> Verdict:
    """The verdict where one rule found just these."""
    found = tuple(findings)
    monkeypatch.setattr(rules, "ALL", (lambda _: found,))
    return judge(join(traces(*events)))


def finding(cls: str | None, weight: Weight, **more: Any) -> Finding:
    at = more.get("at")
    shown = more.pop("shown", (Shown(at, f"shows {cls}"),) if at is not None else ())
    return Finding(cls=cls, weight=weight, summary=f"it was {cls}", shown=shown, **more)


def test_the_heavier_finding_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    light = finding("peer-died", Weight.SYMPTOM, at=where(seconds=1))
    heavy = finding("gpu-oom", Weight.CAUSE, at=where(seconds=9))
    verdict = verdict_of(monkeypatch, (light, heavy), timed_out(1))
    assert (verdict.cls, verdict.state) == ("gpu-oom", State.FAILED)
    assert [line.says for line in verdict.against] == ["could also be peer-died: it was peer-died"]


def test_between_equals_the_earlier_wins_even_if_it_was_read_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late = finding("net-timeout", Weight.CAUSE, at=where(source="a", seconds=50))
    early = finding("gpu-hw-fault", Weight.CAUSE, at=where(source="b", seconds=10))
    assert verdict_of(monkeypatch, (late, early), timed_out(1)).cls == "gpu-hw-fault"


def test_what_the_winner_explains_is_no_rival(monkeypatch: pytest.MonkeyPatch) -> None:
    effect = finding("peer-died", Weight.SYMPTOM, at=where())
    cause = finding(
        "gpu-oom", Weight.CAUSE, at=where(), explains=frozenset({"peer-died", "gpu-oom"})
    )
    verdict = verdict_of(monkeypatch, (effect, cause), timed_out(1))
    assert verdict.against == ()
    assert verdict.confidence is Confidence.MEDIUM


def test_a_note_is_never_the_verdict_of_a_run_that_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    note = finding("slow-init", Weight.NOTE, state=State.SLOW, at=where())
    assert verdict_of(monkeypatch, (note,), timed_out(1)).cls is None
    assert verdict_of(monkeypatch, (note,)).cls == "slow-init"


def test_a_hard_end_outranks_the_state_that_a_rule_suggests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hung = finding("missing-rank", Weight.CAUSE, state=State.HUNG, at=where())
    assert verdict_of(monkeypatch, (hung,), timed_out(1)).state is State.FAILED
    assert verdict_of(monkeypatch, (hung,)).state is State.HUNG


def test_an_error_that_was_got_over_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    at = where(order=5, rank=1)
    error = finding("net-timeout", Weight.CAUSE, at=at)
    later = [Step(at=where(order=order, rank=1), done=order) for order in (8, 9)]
    verdict = verdict_of(monkeypatch, (error,), *later)
    assert (verdict.state, verdict.cls) == (State.HEALTHY, "healthy")


def test_confidence_is_high_for_an_outright_line_and_for_two_families(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outright = finding("slurm-time-limit", Weight.OUTRIGHT, at=where())
    assert verdict_of(monkeypatch, (outright,), timed_out(1)).confidence is Confidence.HIGH
    two = finding(
        "gpu-hw-fault",
        Weight.CAUSE,
        at=where(),
        shown=(Shown(where(), "Xid", "kernel"), Shown(where(), "ECC")),
    )
    assert verdict_of(monkeypatch, (two,), timed_out(1)).confidence is Confidence.HIGH
    one = finding("gpu-hw-fault", Weight.CAUSE, at=where())
    assert verdict_of(monkeypatch, (one,), timed_out(1)).confidence is Confidence.MEDIUM
    weak = finding("peer-died", Weight.SYMPTOM, at=where())
    assert verdict_of(monkeypatch, (weak,), timed_out(1)).confidence is Confidence.LOW


def test_a_rival_of_the_same_weight_lowers_confidence(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = (
        finding("gpu-oom", Weight.OUTRIGHT, at=where(seconds=1)),
        finding("host-oom", Weight.OUTRIGHT, at=where(seconds=2)),
    )
    verdict = verdict_of(monkeypatch, pair, timed_out(1))
    assert (verdict.cls, verdict.confidence) == ("gpu-oom", Confidence.MEDIUM)


def test_evidence_starts_with_the_winners_line_and_holds_the_first_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error = PyException(at=where("KeyError: 3", rank=2), name="KeyError", message="3")
    lines = tuple(Shown(where(f"line {n}"), "shows it") for n in range(12))
    many = finding("net-timeout", Weight.CAUSE, at=lines[0].at, shown=lines)
    verdict = verdict_of(monkeypatch, (many,), error)
    assert len(verdict.evidence) == 8
    assert verdict.evidence[0].text == "line 0"
    assert "KeyError: 3" in [line.text for line in verdict.evidence]


def test_a_broken_rule_costs_only_its_own_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(picture: Picture) -> Iterable[Finding]:
        raise IndexError(picture.attempt)

    good = finding("gpu-oom", Weight.CAUSE, at=where())
    monkeypatch.setattr(rules, "ALL", (broken, lambda _: (good,)))
    verdict = judge(join(traces(timed_out(1))))
    assert verdict.cls == "gpu-oom"
    told = [one for one in verdict.missing if one.family == judging.OURSELVES]
    assert len(told) == 1
    assert "IndexError" in told[0].why


def test_what_was_not_read_is_told_with_the_command_that_reads_it() -> None:
    sources = [
        Source(name="rank 0.log", unread=((4096, 1 << 20),)),
        Source(name="rank1.log", status=LogStatus.DENIED, why="permission denied"),
    ]
    verdict = explain_traces(traces(timed_out(0), sources=sources))
    denied, unread = verdict.missing[:2]
    assert "permission denied" in denied.why
    assert "1.0 MiB in the middle of rank 0.log" in unread.why
    assert unread.command == "slurmtop triage --whole 'rank 0.log'"


def test_what_was_left_out_of_thousands_of_a_kind_is_told() -> None:
    source = Source(name="rank0.log", dropped_events=3_000)
    verdict = explain_traces(traces(sources=[source]))
    told = next(one for one in verdict.missing if "left out" in one.why)
    assert told.why == (
        "of rank0.log 3,000 statements between thousands of the same kind were left out"
    )


def test_ranks_without_a_line_are_missing_evidence_and_never_culprits() -> None:
    verdict = explain_traces(traces(timed_out(0), timed_out(1)))
    assert verdict.culprits == ()


def test_nothing_to_read_is_unknown_with_the_next_evidence_to_collect() -> None:
    verdict = explain_traces(traces(), now=datetime(2031, 5, 5, tzinfo=UTC))
    assert (verdict.state, verdict.cls) == (State.UNKNOWN, None)
    assert any("TORCH_FR_BUFFER_SIZE" in step.command for step in verdict.next)
    assert verdict.made_at == datetime(2031, 5, 5, tzinfo=UTC)


def test_the_four_lines_of_a_verdict_on_files_fit_a_terminal() -> None:
    verdict = explain_traces(traces(Interrupted(at=where("^C"))))
    lines = four_lines(verdict)
    assert len(lines) == 4
    assert all(len(line) <= 80 for line in lines)
    assert verdict.ended_by is EndedBy.USER


def test_what_only_reads_comes_first_and_each_command_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = (
        NextStep("a", "scontrol update nodename=n1", "write", ""),
        NextStep("b", "slurmtop explain peer-died", "read", ""),
    )
    one = finding("peer-died", Weight.SYMPTOM, at=where(), next=steps)
    told = verdict_of(monkeypatch, (one,), timed_out(1)).next
    assert [step.effect for step in told] == sorted(step.effect for step in told)
    commands = [step.command for step in told]
    assert len(commands) == len(set(commands))


def test_the_last_step_is_the_last_progress() -> None:
    step = Step(at=where(seconds=1_700_000_000, zoned=True), done=3)
    assert explain_traces(traces(step)).since == datetime.fromtimestamp(1_700_000_000, UTC)


def test_culprits_of_the_winner_only_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = (
        finding("gpu-oom", Weight.CAUSE, at=where(), culprits=(Culprit(rank=1),)),
        finding("peer-died", Weight.SYMPTOM, at=where(), culprits=(Culprit(rank=2),)),
    )
    assert [c.rank for c in verdict_of(monkeypatch, pair, timed_out(3)).culprits] == [1]
