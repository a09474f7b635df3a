"""What the next look at the nodes of a job should ask: no more than a suspicion is worth."""

from dataclasses import dataclass

from slurmtop.model.facts import JobFacts, LogStatus
from slurmtop.model.live import LiveFacts
from slurmtop.model.probe import NodeProbe
from slurmtop.model.verdict import State
from slurmtop.triage.live.frames import Act
from slurmtop.triage.live.kernel_signs import STOPPED
from slurmtop.triage.live.view import worlds_of

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
    quiet = quiet_s(facts)
    return quiet is None or quiet >= QUIET_S


def quiet_s(facts: JobFacts) -> float | None:
    """Seconds since a log of the job was written; None where no log could be read."""
    if facts.live is not None and facts.live.log.quiet_s is not None:
        return facts.live.log.quiet_s
    times = [one.mtime for one in facts.logs if one.status is LogStatus.READ and one.mtime]
    return max(0.0, (facts.now - max(times)).total_seconds()) if times else None


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
