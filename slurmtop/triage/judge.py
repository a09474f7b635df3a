"""All rules asked, their findings weighed, one verdict: the only place where a verdict of logs
is made.

State before cause. A finding wins by its weight, between equals by being earlier; what follows
from the winner is no rival, what does not is told in ``against``. A rule that breaks costs its
own findings only, and the verdict says so.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from datetime import datetime

from slurmtop.model.events.program import LossLost, Phase, ProgramSays, Step
from slurmtop.model.trace import Event, Traces, Where
from slurmtop.model.units import plural
from slurmtop.model.verdict import (
    EVIDENCE_LIMIT,
    PROBLEM_STATES,
    Confidence,
    EndedBy,
    Evidence,
    Missing,
    NextStep,
    State,
    Verdict,
)
from slurmtop.triage import rules
from slurmtop.triage.catalogue import family_of
from slurmtop.triage.ending import Ending, how_it_ended
from slurmtop.triage.failures import failures, first_failure, survivals
from slurmtop.triage.fault_classes import HOSTS, NETWORK, PROGRAM, SETTINGS, TIMEOUTS
from slurmtop.triage.finding import Finding, Shown, Weight, evidence_of
from slurmtop.triage.jobs import split_jobs
from slurmtop.triage.join import join
from slurmtop.triage.next_steps import missing_of, next_of
from slurmtop.triage.notable import notable
from slurmtop.triage.other_times import without_strangers
from slurmtop.triage.picture import Picture
from slurmtop.triage.restarts import earlier_ends

#: Where a rule says one of these, an error that was got over is part of what it says.
_NOT_AN_END = (State.SLOW, State.HEALTHY, State.UNKNOWN)
#: The family under which it is told that a rule of slurmtop itself broke.
OURSELVES = "slurmtop"
#: Other jobs of the same folder that are told one by one.
_OTHER_JOBS = 4
#: Runners-up that are told in ``against``.
_AGAINST_LIMIT = 4
#: Lines of other times that are told there.
_OTHER_TIMES_SHOWN = 2


def explain_traces(
    traces: Traces, *, job: str | None = None, cluster: str = "", now: datetime | None = None
) -> Verdict:
    """The verdict on what was read. Never raises for what stands in it.

    Logs of several jobs are judged job by job: the answer is that of the newest one with a
    problem, or else of the newest, and tells the others under ``missing``.
    """
    jobs = split_jobs(traces) if job is None else {}
    if not jobs:
        return judge(join(traces), job=job, cluster=cluster, now=now)
    verdicts = [
        judge(join(own), job=number, cluster=cluster, now=now) for number, own in jobs.items()
    ]
    chosen = next((one for one in verdicts if one.state in PROBLEM_STATES), verdicts[0])
    others = tuple(_of_another_job(one) for one in verdicts if one is not chosen)
    more = len(others) - _OTHER_JOBS
    rest = (Missing("log", f"{plural(more, 'more job')} left logs here"),) if more > 0 else ()
    return dataclasses.replace(chosen, missing=(*others[:_OTHER_JOBS], *rest, *chosen.missing))


def _of_another_job(verdict: Verdict) -> Missing:
    words = f"{verdict.state}, {verdict.summary}"
    return Missing("log", f"logs of job {verdict.job} lie here too, judged alone: {words}")


def judge(
    picture: Picture, *, job: str | None = None, cluster: str = "", now: datetime | None = None
) -> Verdict:
    """The verdict on a joined picture; ``now`` only becomes ``made_at``."""
    ending = how_it_ended(picture)
    found, broken = _ask(picture, rules.ALL)
    found = without_strangers(picture, found)
    order = _ranked(picture, _standing(picture, ending, found))
    verdict = _with_winner(picture, ending, order) if order else _without(picture, ending)
    missing = (*broken, *verdict.missing, *missing_of(picture, verdict))
    verdict = dataclasses.replace(
        verdict,
        job=job,
        cluster=cluster,
        since=_last_progress(picture),
        against=(*verdict.against, *_beside(picture)),
        missing=tuple(dict.fromkeys(missing)),
        made_at=now,
    )
    steps: dict[str, NextStep] = {}
    for step in (*verdict.next, *next_of(verdict)):
        steps.setdefault(step.command, step)
    safest_first = sorted(steps.values(), key=lambda step: step.effect != "read")
    return dataclasses.replace(verdict, next=tuple(safest_first))


def _ask(
    picture: Picture, all_rules: Iterable[rules.Rule]
) -> tuple[list[Finding], tuple[Missing, ...]]:
    found: list[Finding] = []
    broken: list[str] = []
    for rule in all_rules:
        try:
            found.extend(rule(picture))
        except Exception as error:  # one broken rule must not cost the others
            broken.append(f"{rule.__module__.rpartition('.')[2]} ({type(error).__name__})")
    if not broken:
        return found, ()
    why = f"{len(broken)} of slurmtop's rules broke on these lines: {', '.join(broken)}"
    return found, (Missing(OURSELVES, why),)


def _standing(picture: Picture, ending: Ending, found: list[Finding]) -> list[Finding]:
    """The findings that may become the verdict of a run that ended so."""
    survived = survivals(picture)
    out = []
    for finding in found:
        if finding.weight <= Weight.NOTE and ending.state in (State.FAILED, State.HUNG):
            continue
        over = finding.at is not None and not ending.hard and survived(finding.at)
        if over and finding.weight > Weight.NOTE and finding.state not in _NOT_AN_END:
            continue
        out.append(finding)
    return out


def _ranked(picture: Picture, found: list[Finding]) -> list[Finding]:
    """Heaviest first, between equals the earliest in time; what the better ones explain is out.

    Findings of the winner's own class stand directly behind it.
    """
    rest = list(found)
    out: list[Finding] = []
    while rest:
        best = _best(picture, rest)
        out.append(best)
        rest = [f for f in rest if f is not best and (f.cls or "") not in best.explains]
    if out:
        out[1:] = sorted(out[1:], key=lambda finding: finding.cls != out[0].cls)
    return out


def _best(picture: Picture, found: list[Finding]) -> Finding:
    top = max(finding.weight for finding in found)
    equals = [finding for finding in found if finding.weight == top]
    for one in equals:
        if not any(_before(picture, other, one) for other in equals if other is not one):
            return one
    return equals[0]


def _before(picture: Picture, first: Finding, second: Finding) -> bool:
    if first.at is None or second.at is None:
        return False
    return picture.before(first.at, second.at) is True


def _with_winner(picture: Picture, ending: Ending, order: list[Finding]) -> Verdict:
    winner = order[0]
    same = [f for f in order[1:] if f.cls == winner.cls]
    rivals = [f for f in order[1:] if f.cls != winner.cls and f.weight > Weight.NOTE]
    told = ending.hard or ending.state is State.RECOVERING
    state = ending.state if told or winner.state is None else winner.state
    if winner.state is None and state is State.HEALTHY and winner.weight > Weight.NOTE:
        state = State.UNKNOWN
    shown = _shown(picture, ending, [winner, *same])
    return Verdict(
        job=None,
        state=state,
        family=family_of(winner.cls),
        cls=winner.cls,
        ended_by=_ended_by(state, winner, ending),
        confidence=_confidence(winner, rivals),
        summary=winner.summary,
        culprits=winner.culprits,
        collective=winner.collective,
        evidence=evidence_of(picture, shown),
        against=_against(picture, winner, rivals),
        missing=winner.missing,
        next=winner.next,
    )


def _shown(picture: Picture, ending: Ending, findings: Sequence[Finding]) -> list[Shown]:
    """The best lines of the winner, with the first real error and the end among the eight.

    Where room is left: what it last did before, and the errors that followed.
    """
    lines = _distinct(shown for finding in findings for shown in finding.shown)
    first = first_failure(picture)
    must = [Shown(first.at, "the first error")] if first is not None else []
    if ending.shown is not None:
        must.append(ending.shown)
    kept = lines[: EVIDENCE_LIMIT - len(must)]
    cause = findings[0].at or (lines[0].at if lines else None)
    rest = [*lines[len(kept) :], *_around(picture, cause)]
    if findings[0].cls is None or findings[0].weight <= Weight.SYMPTOM:
        rest += notable(picture)
    return _distinct([*kept, *must, *rest])[:EVIDENCE_LIMIT]


def _around(picture: Picture, cause: Where | None) -> Iterable[Shown]:
    if cause is not None:
        doing: list[Event] = [*picture.of(Step), *picture.of(Phase), *picture.of(ProgramSays)]
        before = [e for e in doing if e.at.source == cause.source and e.at.order < cause.order]
        if before:
            yield Shown(max(before, key=lambda e: e.at.order).at, "what it last did before")
    seen: set[type[Event]] = set()
    later: list[Event] = []
    for _, event in failures(picture):
        if type(event) in seen:
            later.append(event)
        else:
            seen.add(type(event))
            yield Shown(event.at, "an error beside it")
    for event in later[:EVIDENCE_LIMIT]:
        yield Shown(event.at, "an error beside it")


def _distinct(shown: Iterable[Shown]) -> list[Shown]:
    """Each line once, with the words it was given first."""
    out: dict[tuple[str, int, str], Shown] = {}
    for one in shown:
        out.setdefault((one.at.source, one.at.offset, one.at.text), one)
    return list(out.values())


def _confidence(winner: Finding, rivals: Sequence[Finding]) -> Confidence:
    families = {one.family for one in winner.shown}
    sure = winner.weight >= Weight.OUTRIGHT or (winner.weight >= Weight.CAUSE and len(families) > 1)
    rivalled = any(rival.weight >= winner.weight for rival in rivals)
    if sure:
        return Confidence.MEDIUM if rivalled else Confidence.HIGH
    if winner.weight >= Weight.PATTERN and not rivalled:
        return Confidence.MEDIUM
    return Confidence.LOW


def _against(picture: Picture, winner: Finding, rivals: Sequence[Finding]) -> tuple[Evidence, ...]:
    lines = list(winner.against)
    for rival in rivals:
        if rival.shown:
            line = rival.shown[0]
            says = f"could also be {rival.cls}: {rival.summary}" if rival.cls else rival.summary
            lines.append(dataclasses.replace(line, says=says))
    return evidence_of(picture, lines[: len(winner.against) + _AGAINST_LIMIT])


def _beside(picture: Picture) -> tuple[Evidence, ...]:
    """What was left out because it is of an earlier run, or of another time; and a loss that is
    no number, which ends nothing."""
    says = "an earlier run in this log ended so; another one was begun behind it"
    shown = [Shown(at, says) for at in earlier_ends(picture)[:_AGAINST_LIMIT]]
    says = "a kernel's line of another time than this run: it says nothing about it"
    others = (
        e.at for e in picture.traces.events if (e.at.source, e.at.order) in picture.other_times
    )
    shown += [Shown(at, says, "kernel") for at in itertools.islice(others, _OTHER_TIMES_SHOWN)]
    says = "the loss is no number, here and in the newest step"
    shown += [Shown(e.at, says) for e in picture.of(LossLost)[:_OTHER_TIMES_SHOWN]]
    return evidence_of(picture, shown)


_BY_FAMILY = {
    PROGRAM: EndedBy.SELF,
    TIMEOUTS: EndedBy.SELF,
    SETTINGS: EndedBy.SELF,
    HOSTS: EndedBy.FAULT,
    NETWORK: EndedBy.FAULT,
}


def _ended_by(state: State, winner: Finding, ending: Ending) -> EndedBy | None:
    if state is not State.FAILED:
        return None
    if winner.ended_by is not None:
        return winner.ended_by
    return _BY_FAMILY.get(family_of(winner.cls) or "", ending.ended_by)


_UNEXPLAINED = {
    State.HEALTHY: "nothing is wrong in what could be read",
    State.FAILED: "it ended unfinished, and no rule knows why",
    State.HUNG: "it waits, and nothing tells for whom",
    State.RECOVERING: "the workers are being started again after a failure",
}


def _without(picture: Picture, ending: Ending) -> Verdict:
    """No rule found anything: the state alone is told."""
    cls = "healthy" if ending.state is State.HEALTHY else None
    summary = _UNEXPLAINED.get(ending.state, "what could be read does not show how it goes")
    lost = cls is not None and bool(picture.of(LossLost))
    if lost:
        summary = "nothing failed in what could be read, but the loss is no number"
    shown = [ending.shown] if ending.shown is not None else []
    if ending.state is not State.HEALTHY:
        shown = _distinct([*shown, *_around(picture, None), *notable(picture)])[:EVIDENCE_LIMIT]
    return Verdict(
        job=None,
        state=ending.state,
        family=family_of(cls),
        cls=cls,
        ended_by=ending.ended_by,
        confidence=Confidence.MEDIUM if cls is not None and not lost else Confidence.LOW,
        summary=summary,
        evidence=evidence_of(picture, shown),
    )


def _last_progress(picture: Picture) -> datetime | None:
    times = (picture.time_of(step.at) for step in picture.of(Step))
    return max((one for one in times if one is not None), default=None)
