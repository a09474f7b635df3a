"""What the nodes tell, joined with what Slurm and the logs tell of a job that runs.

Live comes before the logs where it is sure: it shows how it is now. Where the two name different
ranks nobody is named, and the disagreement is told.
"""

import dataclasses
from collections.abc import Iterable

from slurmtop.model.text import visible
from slurmtop.model.units import ago_text
from slurmtop.model.verdict import (
    EVIDENCE_LIMIT,
    Confidence,
    Culprit,
    Evidence,
    Missing,
    NextStep,
    State,
    Verdict,
)
from slurmtop.triage.after import steps_while_hung
from slurmtop.triage.live.judge import judge_live, started_behind
from slurmtop.triage.subject import Subject, first_error, got_over, read_logs

_HOW_SURE = (Confidence.LOW, Confidence.MEDIUM, Confidence.HIGH)
#: The nodes show no more than that ranks are not there: a supervisor may be starting them.
_BETWEEN_ATTEMPTS = frozenset({None, "rendezvous-timeout", "missing-rank"})
#: What is said where nobody looked at the nodes.
_NOT_LOOKED = "whether its processes still work was not looked at"
_KEPT_OF_LOGS = 3


def with_live(subject: Subject, verdict: Verdict) -> Verdict:
    """``verdict`` is that of Slurm and the logs; the job is at work."""
    live = subject.facts.live
    if live is None or not any(sample.probes for sample in live.samples):
        return verdict
    found = judge_live(subject.facts)
    if found is None:
        return verdict
    verdict = dataclasses.replace(verdict, missing=_looked(verdict.missing))
    behind = started_behind(subject.facts) if verdict.state is State.HUNG else None
    if behind is not None:
        verdict = _of_before(verdict, *behind)
    if found.state is State.HUNG:
        return _hung(subject, verdict, found)
    if found.state is State.SLOW:
        return _slow(verdict, found)
    if found.state is State.HEALTHY:
        return _healthy(subject, verdict, found)
    if found.state is State.IDLE:
        return _idle(verdict, found)
    return _unknown(subject, verdict, found)


def _of_before(verdict: Verdict, age: float, certain: bool) -> Verdict:
    """What its log tells of ranks that are gone. ``age``: seconds since those of now started."""
    told = f"the hang in its log was before its processes were started, {ago_text(age)} ago"
    if not certain:
        told = f"whether {told}, cannot be told"
    return dataclasses.replace(
        verdict,
        state=State.UNKNOWN,
        family=None,
        cls=None,
        confidence=Confidence.LOW,
        summary=told,
        since=None,
        culprits=(),
        collective=None,
    )


def _looked(missing: Iterable[Missing]) -> tuple[Missing, ...]:
    return tuple(one for one in missing if not one.why.startswith(_NOT_LOOKED))


def _hung(subject: Subject, verdict: Verdict, found: Verdict) -> Verdict:
    if verdict.state is State.RECOVERING and found.cls in _BETWEEN_ATTEMPTS:
        return verdict
    if verdict.state is not State.HUNG:
        return _taken(subject, verdict, found)
    if not verdict.culprits:
        agreed = dataclasses.replace(found, confidence=_more(found.confidence, verdict))
        return _taken(subject, verdict, agreed)
    if not found.culprits:
        return _added(verdict, found)
    if _same(verdict.culprits, found.culprits):
        agreed = dataclasses.replace(found, confidence=Confidence.HIGH)
        return _taken(subject, verdict, agreed)
    summary = f"hung; its log and its nodes name different ranks: {found.summary}"
    against = tuple(
        dataclasses.replace(one, says=f"in its log: {verdict.summary}")
        for one in verdict.evidence[:1]
    )
    odd = dataclasses.replace(
        found,
        culprits=(),
        confidence=Confidence.LOW,
        summary=summary,
        against=(*against, *found.against),
    )
    return _taken(subject, verdict, odd)


def _more(sure: Confidence, verdict: Verdict) -> Confidence:
    """The log says too that it hangs, in lines of its own."""
    if not any(one.family == "log" for one in verdict.evidence):
        return sure
    return _HOW_SURE[min(_HOW_SURE.index(sure) + 1, len(_HOW_SURE) - 1)]


def _same(logs: tuple[Culprit, ...], live: tuple[Culprit, ...]) -> bool:
    """Does the log name nobody but whom the nodes show as well?"""
    ranks = {one.rank for one in live if one.rank is not None}
    hosts = {one.host for one in live if one.host is not None}
    return all(
        (one.rank in ranks) if one.rank is not None and ranks else (one.host in hosts)
        for one in logs
    )


def _taken(subject: Subject, verdict: Verdict, found: Verdict) -> Verdict:
    """The view of the nodes, with what Slurm and the log say beside it."""
    told = [one for one in verdict.evidence if one.family != "slurm"][:_KEPT_OF_LOGS]
    slurm = [one for one in verdict.evidence if one.family == "slurm"][:1]
    room = EVIDENCE_LIMIT - len(slurm)
    evidence = (*(*found.evidence, *told)[:room], *slurm)
    steps = [*found.next]
    if found.state is State.HUNG:
        steps += [*_reads(verdict.next), *steps_while_hung(subject)]
    else:
        steps += verdict.next
    return dataclasses.replace(
        found,
        since=found.since or verdict.since,
        evidence=evidence,
        against=found.against,
        missing=tuple(dict.fromkeys((*found.missing, *verdict.missing))),
        next=_ordered(steps),
        made_at=verdict.made_at,
        sources=verdict.sources,
    )


def _reads(steps: Iterable[NextStep]) -> list[NextStep]:
    return [one for one in steps if one.effect == "read"]


def _ordered(steps: Iterable[NextStep]) -> tuple[NextStep, ...]:
    once: dict[str, NextStep] = {}
    for one in steps:
        once.setdefault(one.command, one)
    return tuple(sorted(once.values(), key=lambda one: one.effect != "read"))


def _added(verdict: Verdict, found: Verdict) -> Verdict:
    """``verdict`` stands, and the nodes say nothing against it."""
    evidence: tuple[Evidence, ...] = (*verdict.evidence, *found.evidence)
    return dataclasses.replace(
        verdict,
        evidence=evidence[:EVIDENCE_LIMIT],
        missing=tuple(dict.fromkeys((*verdict.missing, *found.missing))),
        next=_ordered((*found.next, *verdict.next)),
    )


def _slow(verdict: Verdict, found: Verdict) -> Verdict:
    if verdict.state is State.SLOW:
        summary = f"{verdict.summary}; {found.summary}"
        return dataclasses.replace(_added(verdict, found), summary=summary)
    if verdict.state in (State.HEALTHY, State.UNKNOWN):
        return _beside(verdict, found)
    return verdict


def _beside(verdict: Verdict, found: Verdict) -> Verdict:
    """The state as the nodes show it, and the words of both."""
    return dataclasses.replace(
        found,
        summary=f"{found.summary}; {verdict.summary}",
        since=verdict.since,
        evidence=(*found.evidence, *verdict.evidence)[:EVIDENCE_LIMIT],
        against=(*found.against, *verdict.against),
        missing=tuple(dict.fromkeys((*found.missing, *verdict.missing))),
        next=_ordered((*found.next, *verdict.next)),
        made_at=verdict.made_at,
        sources=verdict.sources,
    )


def _healthy(subject: Subject, verdict: Verdict, found: Verdict) -> Verdict:
    if verdict.state is State.HUNG:
        return _not_so(verdict, found)
    if verdict.state not in (State.HEALTHY, State.UNKNOWN):
        return verdict
    if verdict.state is State.UNKNOWN and _broken(subject):
        return _added(verdict, found)
    return _beside(verdict, found)


def _not_so(verdict: Verdict, found: Verdict) -> Verdict:
    """Its log tells of a hang, and its nodes do not."""
    shown = tuple(
        dataclasses.replace(one, says=f"in its log: {verdict.summary}")
        for one in verdict.evidence[:1]
    )
    return dataclasses.replace(
        _beside(verdict, found),
        state=State.UNKNOWN,
        family=None,
        cls=None,
        confidence=Confidence.LOW,
        summary=f"its log tells of a hang, and its nodes do not: {visible(found.summary)}",
        against=shown,
    )


def _broken(subject: Subject) -> bool:
    """Is there an error in its log that nothing shows it got over?"""
    return first_error(read_logs(subject)) is not None and not got_over(subject)


def _idle(verdict: Verdict, found: Verdict) -> Verdict:
    if verdict.state in (State.HEALTHY, State.UNKNOWN):
        return _beside(verdict, found)
    return _added(verdict, found)


def _unknown(subject: Subject, verdict: Verdict, found: Verdict) -> Verdict:
    live = subject.facts.live
    if (
        verdict.state is State.HEALTHY
        and live is not None
        and (live.log.new_steps or live.log.grew)
    ):
        return verdict
    say = subject.facts.logs_say
    if verdict.state is State.HUNG and say is not None and say.warned:
        return _not_so(verdict, found)
    if verdict.state in (State.HEALTHY, State.UNKNOWN):
        return _beside(verdict, found)
    return _added(verdict, found)
