"""What the nodes of a running job tell, weighed into one verdict."""

import dataclasses
from collections.abc import Iterable

from slurmtop.model.facts import JobFacts, LogsSay
from slurmtop.model.live import LiveFacts, Sample
from slurmtop.model.verdict import (
    EVIDENCE_LIMIT,
    Confidence,
    Evidence,
    Missing,
    NextStep,
    State,
    Verdict,
)
from slurmtop.triage.catalogue import CATALOGUE, family_of
from slurmtop.triage.live.beside import settled
from slurmtop.triage.live.enough import wanted
from slurmtop.triage.live.finding import LiveFinding, Weight, numbers_text, ranks_of
from slurmtop.triage.live.frames import Act, Phase
from slurmtop.triage.live.pace import Pace, pace_of
from slurmtop.triage.live.partly import is_partly
from slurmtop.triage.live.patience import LATE_S, late_s
from slurmtop.triage.live.rules import (
    alike,
    away,
    idle,
    missing,
    node,
    sites,
    workers,
    working,
)
from slurmtop.triage.live.rules.kernel import with_kernel
from slurmtop.triage.live.rules.missing import age_s, unseen_of
from slurmtop.triage.live.rules.node import silent_words
from slurmtop.triage.live.together import apart
from slurmtop.triage.live.view import RankView, World, has_gpus, worlds_of
from slurmtop.triage.log_steps import last_progress
from slurmtop.triage.subject import Subject, read_logs

_RULES = (node, away, workers, missing, sites, alike, working, idle)
#: What one look shows that no healthy job does, or what may be the one that the others wait for.
_ODD = frozenset({Act.STOPPED, Act.DISK, Act.SLEEP, Act.READ, Act.GIL})


def judge_live(facts: JobFacts) -> Verdict | None:
    """What the nodes of the job of ``facts`` tell; None where they add nothing.

    It is ``hung`` only by two looks that are far enough apart. Nobody is named in any other state.
    Never raises for facts that are missing.
    """
    live = facts.live
    if live is None or not live.samples:
        return None
    if len(live.samples) > 1 and live.samples[-1].whole and not _answered(live.samples[-1]):
        return _without_second(facts, live)
    worlds = worlds_of(live if live.two_samples else _so_far(live))
    if not worlds:
        return None
    if not live.two_samples:
        return _first_look(facts, worlds[0])
    gpus = has_gpus(live) or _asked_for_gpus(facts)
    began = Subject(facts).start
    pace = pace_of(facts, began)
    worlds = tuple(
        dataclasses.replace(
            one,
            gpus=gpus,
            started_at=began,
            pace=pace,
            finished=_finished(facts),
            timed_out=_timed_out(facts, one, pace),
            stepped=_stepped(facts, one),
            partly=is_partly(facts.job, one),
        )
        for one in worlds
    )
    found = settled([(world, _best(world)) for world in worlds])
    if not found:
        return None
    # Of several launches at once the one that is in trouble counts.
    world, finding = max(found, key=lambda pair: (_trouble(*pair), pair[1].weight))
    beside = next((one for other, one in found if other is not world), None)
    if beside is not None and _adds(finding, beside):
        words = f"{finding.summary}; of another launch: {beside.summary}"
        finding = dataclasses.replace(finding, summary=words)
    return _verdict(facts, world, with_kernel(world, finding))


def _adds(finding: LiveFinding, beside: LiveFinding) -> bool:
    """Is the other launch worth a word? Of what hangs, that another one is well."""
    if finding.state is State.HUNG:
        return beside.state is State.HEALTHY
    told = finding.state in (State.HEALTHY, State.UNKNOWN)
    return told and beside.state is not finding.state


def _finished(facts: JobFacts) -> bool:
    """Does a log of it tell its last step?"""
    told = [one.progress for one in facts.logs if one.progress is not None]
    return any(one.total is not None and one.step >= one.total for one in told)


def _timed_out(facts: JobFacts, world: World, pace: Pace | None) -> bool:
    """Do its logs tell of a hang by themselves, of the ranks of now, and of no step behind it?"""
    say = facts.logs_say
    if say is None or say.moved_on or not _of_these(facts, world):
        return False
    gave_up = say.hard and say.verdict.collective is not None
    if say.verdict.state is not State.HUNG and not (say.verdict.state is State.FAILED and gave_up):
        return False
    if say.waited_s is None and _attempt(world):
        return False
    if _may_be_anew(say, world):
        return False
    # Who only warns waits on: it tells how long that has lasted, and no more.
    if say.warned and (say.waited_s or 0.0) <= late_s(pace):
        return False
    # Who is younger than the wait that is told has not waited so long: it was started anew.
    age = _age_s(world)
    return age is not None and age >= (say.waited_s or LATE_S)


def _may_be_anew(say: LogsSay, world: World) -> bool:
    """May one be there that has ended behind a wait in vain, by the logs? It was started anew."""
    return not say.ended <= set(unseen_of(world))


def started_behind(facts: JobFacts) -> tuple[float, bool] | None:
    """For how many seconds all ranks have run at most, where what the logs tell of a wait in vain
    was before them, and whether that is certain: they are younger than it lasted, or one is there
    that has ended behind it. Else None."""
    say, live = facts.logs_say, facts.live
    worlds = worlds_of(live) if say is not None and say.waited_s and live is not None else ()
    if say is None or say.waited_s is None or not worlds or not worlds[0].ranks:
        return None
    world = worlds[0]
    ages = [age_s(world, [one.view.process]) for one in world.ranks]
    known = [one for one in ages if one is not None]
    oldest = max(known, default=0.0)
    young = len(known) == len(ages) and oldest < say.waited_s
    if not young and not _may_be_anew(say, world):
        return None
    return oldest, young or any(one.rank in say.ended for one in world.ranks)


def _stepped(facts: JobFacts, world: World) -> bool:
    """Have the ranks of now made a step, by what their logs tell?"""
    if not _of_these(facts, world):
        return False
    age, quiet = _age_s(world), world.live.log.quiet_s
    if age is None or quiet is None or quiet > age:
        # What it tells was there before them.
        return False
    told = any(one.progress is not None for one in facts.logs)
    return told or (facts.logs_say is not None and facts.logs_say.steps)


def _of_these(facts: JobFacts, world: World) -> bool:
    """Are the logs those of the ranks of now? A launcher that is told to say little starts them
    anew without a line."""
    say = facts.logs_say
    if say is None:
        return not _attempt(world)
    return say.only_newest and say.attempt >= _attempt(world)


def _attempt(world: World) -> int:
    return max((one.told.attempt or 0 for one in world.ranks), default=0)


def _age_s(world: World) -> float | None:
    return age_s(world, [one.view.process for one in world.ranks])


def _asked_for_gpus(facts: JobFacts) -> bool:
    job = facts.job
    return job is not None and bool(job.tres is not None and job.tres.gpus)


def _best(world: World) -> LiveFinding | None:
    findings: list[LiveFinding] = [one for rule in _RULES for one in rule.find(world)]
    best = max(findings, key=lambda one: one.weight) if findings else None
    gone = unseen_of(world) if best is not None and apart(world) else ()
    if best is None or not gone:
        return best
    told = f"{numbers_text(gone)} {'has' if len(gone) == 1 else 'have'} no process"
    return dataclasses.replace(best, summary=f"{best.summary}; {told}")


def _trouble(world: World, finding: LiveFinding) -> int:
    order = (State.HUNG, State.SLOW, State.UNKNOWN, State.HEALTHY, None, State.IDLE)
    group = any(one.view.in_group for one in world.ranks)
    # A helper beside the training may well rest: it is no part of it.
    helper = finding.state is State.UNKNOWN and not group
    return -order.index(None if helper else finding.state)


def _answered(sample: Sample) -> bool:
    return any(probe.failure is None for probe in sample.probes)


def _without_second(facts: JobFacts, live: LiveFacts) -> Verdict | None:
    """A second look that no node answered takes nothing of what the first one showed."""
    first = dataclasses.replace(live, samples=live.samples[:-1])
    verdict = judge_live(dataclasses.replace(facts, live=first))
    if verdict is None:
        return None
    why = "no node answered the second look: whether anything moved is not known"
    said = Missing("process", why, f"slurmtop triage {live.job} --look")
    return dataclasses.replace(verdict, missing=(said, *verdict.missing))


def _so_far(live: LiveFacts) -> LiveFacts:
    """Only the newest look that has come to its end, where there is one: half of the next one says
    less."""
    whole = tuple(one for one in live.samples if one.whole)
    return dataclasses.replace(live, samples=(whole or live.samples)[-1:])


def _first_look(facts: JobFacts, world: World) -> Verdict | None:
    """One look is never a hang: what it shows is told, and that another one follows."""
    if not wanted(facts).second or not world.ranks:
        return None
    waits = [one for one in world.ranks if one.on_others or one.doing.act is Act.LOCK]
    apart = [one for one in world.ranks if one not in waits]
    known = [one for one in apart if one.doing.act is not Act.UNKNOWN]
    words = []
    if known and 2 * len(apart) < len(world.ranks):
        words.append(_apart(known))
    if waits:
        words.append(f"{ranks_of(waits)} {'waits' if len(waits) == 1 else 'wait'}")
    elif not any(one.doing.act in _ODD for one in apart):
        return None
    if not words:
        words.append(f"{ranks_of(world.ranks)} seen")
    finding = LiveFinding(
        state=State.UNKNOWN,
        weight=Weight.UNSURE,
        summary=f"may be stuck: {', '.join(words)}; whether anything moves, a second look tells",
        confidence=Confidence.LOW,
    )
    return _verdict(facts, world, finding)


def _apart(ranks: list[RankView]) -> str:
    if len(ranks) > 1:
        return f"{ranks_of(ranks)} stand apart"
    one = ranks[0]
    if one.doing.phase is Phase.LOADER and one.doing.act not in (Act.STOPPED, Act.DISK):
        return f"{one.name} is at data loading"
    return f"{one.name} {one.doing.act.value}"


def _verdict(facts: JobFacts, world: World, finding: LiveFinding) -> Verdict:
    subject = Subject(facts)
    hung = finding.state is State.HUNG
    logs = read_logs(subject)
    return Verdict(
        job=subject.title,
        cluster=facts.cluster,
        state=finding.state,
        family=family_of(finding.cls),
        cls=finding.cls,
        confidence=finding.confidence or _confidence(world, finding),
        summary=finding.summary,
        since=last_progress(logs) if hung else None,
        culprits=finding.culprits if hung else (),
        collective=finding.collective,
        evidence=_once((*finding.shown, *finding.perhaps))[:EVIDENCE_LIMIT],
        against=(*finding.against, *_telemetry(world, finding)),
        missing=_missing(world, finding),
        next=_next(subject, finding),
        made_at=facts.now,
    )


def _confidence(world: World, finding: LiveFinding) -> Confidence:
    """By the families that speak for it: two are high. A node of which nothing is known, or a
    look that contradicts it, takes one step back."""
    families = {one.family for one in finding.shown}
    sure = Confidence.HIGH if len(families) > 1 else Confidence.MEDIUM
    if finding.against or world.silent or not finding.culprits:
        sure = Confidence.MEDIUM if sure is Confidence.HIGH else Confidence.LOW
    return Confidence.MEDIUM if finding.doubt and sure is Confidence.HIGH else sure


def _telemetry(world: World, finding: LiveFinding) -> tuple[Evidence, ...]:
    """A rank that is said to be away and whose GPU is the only one that works: told beside it."""
    names = {(one.host, one.pid) for one in finding.culprits if one.pid is not None}
    away_busy = [
        one
        for one in world.ranks
        if (one.host, one.view.pid) in names and (one.gpu_busy or 0) >= 90
    ]
    at_rest = [
        one
        for one in world.ranks
        if (one.host, one.view.pid) not in names and one.gpu_busy is not None and one.gpu_busy < 10
    ]
    if not away_busy or not at_rest:
        return ()
    one = away_busy[0]
    return (
        Evidence(
            family="telemetry",
            host=one.host,
            source=f"nvidia-smi on {one.host}",
            text=f"utilization.gpu of {one.name}: {one.gpu_busy:.0f} %",
            says="its GPU works while others are at rest",
        ),
    )


def _missing(world: World, finding: LiveFinding) -> tuple[Missing, ...]:
    out = [*finding.missing]
    if finding.state in (State.HUNG, State.UNKNOWN, State.SLOW):
        known = {one.why for one in out}
        out += [one for one in silent_words(world) if one.why not in known]
        out += _without_stacks(world.live, world.ranks)
    return tuple(dict.fromkeys(out))


def _without_stacks(live: LiveFacts, ranks: Iterable[RankView]) -> list[Missing]:
    """Whose stacks were not read; why not is told where the sources are told."""
    without = [one for one in ranks if not any(look.doing.by_stack for look in one.view.looks)]
    if not without:
        return []
    one = without[0]
    asked = any(sample.stacks_asked for sample in live.samples)
    failed = next(
        (
            stacks.failure.sentence
            for sample in reversed(live.samples)
            for stacks in sample.stacks
            if stacks.failure is not None and stacks.key == one.view.process.key
        ),
        "",
    )
    why = f"no stack of {ranks_of(without)}" + (f": {failed}" if failed else "")
    if not asked:
        why += ": nobody asked for stacks"
    return [
        Missing("stack", why, f"ssh {one.host} sudo py-spy dump --nonblocking -p {one.view.pid}")
    ]


def _next(subject: Subject, finding: LiveFinding) -> tuple[NextStep, ...]:
    """Safest first: what is known is saved before anything is changed."""
    steps: list[NextStep] = []
    if finding.state in (State.HUNG, State.SLOW):
        why = "stacks and states are gone once a process is"
        steps.append(NextStep("save what is known first", subject.save(), "read", why))
    if finding.cls in CATALOGUE and finding.cls != "healthy":
        first = CATALOGUE[finding.cls].first_action
        command = f"slurmtop explain {finding.cls}"
        steps.append(NextStep("what this means and what to do", command, "read", first))
    steps += finding.next
    if finding.state is State.UNKNOWN:
        why = "what has not moved by then stands still"
        steps.append(NextStep("look again", subject.why(), "read", why))
    return tuple(sorted(steps, key=lambda one: one.effect != "read"))


def _once(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    out: dict[tuple[str, str], Evidence] = {}
    for one in evidence:
        out.setdefault((one.source, one.text), one)
    return tuple(out.values())
