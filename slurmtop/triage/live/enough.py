"""What the next look at the nodes of a job should ask: no more than a suspicion is worth."""

from dataclasses import dataclass

from slurmtop.model.facts import JobFacts
from slurmtop.model.live import LiveFacts
from slurmtop.model.probe import NodeProbe
from slurmtop.model.verdict import State
from slurmtop.triage.live.frames import Act
from slurmtop.triage.live.kernel_signs import STOPPED
from slurmtop.triage.live.view import worlds_of
from slurmtop.triage.log_steps import step_behind, written_at

#: A log without a new byte for so long is worth a look at stacks; nothing more follows from it.
QUIET_S = 10.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """``stacks``: read the stacks of its ranks too; ``second``: look once more."""

    stacks: bool
    second: bool


def wanted(facts: JobFacts) -> Wanted:
    """What to ask the nodes of a running job for, by what is known so far.

    Before the first look (``facts.live`` None, or without a sample) both tell whether anything
    speaks for looking there at all.
    """
    suspected, live = _suspected(facts), facts.live
    if live is not None and live.two_samples:
        return Wanted(stacks=suspected, second=False)
    return Wanted(stacks=suspected, second=suspected or (live is not None and _one_is_late(live)))


def _suspected(facts: JobFacts) -> bool:
    live = facts.live
    if live is not None and _odd(live):
        return True
    say = facts.logs_say
    if say is not None and not say.moved_on:
        if say.verdict.state in (State.HUNG, State.SLOW):
            return True
        if say.verdict.state is State.FAILED and say.hard:
            return True
    if live is not None and live.log.new_steps:
        return False
    if step_behind(facts.logs) is not None:
        # It writes, and makes no step.
        return True
    quiet = quiet_s(facts)
    return quiet is None or quiet >= QUIET_S


def quiet_s(facts: JobFacts) -> float | None:
    """Seconds since the job wrote a sign of life (:func:`.written_at`); None where nobody knows."""
    at = written_at(facts.logs)
    if at is not None:
        return max(0.0, (facts.now - at).total_seconds())
    if not facts.logs and facts.live is not None:
        return facts.live.log.quiet_s
    return None


def _odd(live: LiveFacts) -> bool:
    """Does a look show what no training at work shows: a process of it that is stopped?"""
    return any(_has_stopped(probe, live.job) for one in live.samples[-1:] for probe in one.probes)


def _one_is_late(live: LiveFacts) -> bool:
    """Do all ranks but one wait, as far as the kernel tells? So it is for moments in every job; a
    second look tells whether it is so always, and always for the same."""
    if not live.samples or not live.samples[-1].whole:
        return False
    worlds = worlds_of(live)
    if not worlds or worlds[0].count < 3 or len(worlds[0].ranks) != worlds[0].count:
        return False
    waits = [one for one in worlds[0].ranks if one.on_others or one.doing.act is Act.LOCK]
    return len(waits) == worlds[0].count - 1


def _has_stopped(probe: NodeProbe, job: str) -> bool:
    look = probe.processes
    if look is None or look.failure is not None:
        return False
    return any(one.job == job and one.state in STOPPED for one in look.processes)
