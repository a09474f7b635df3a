"""When the nodes of a job are looked at from the Why tab, and how far a look is, in words. Pure.

A look is two rounds over all nodes, some seconds apart. What it found stays on the page with its
age, also while the logs alone are judged again; where the job went on afterwards it is marked.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from slurmtop.model.facts import JobFacts, LogStatus
from slurmtop.model.job import Job, Phase
from slurmtop.model.live import SAMPLES_APART_S, LiveFacts, Sample
from slurmtop.model.text import visible
from slurmtop.model.units import ago_text, plural
from slurmtop.model.verdict import State
from slurmtop.parse.slurm.hostlist import compress_hosts
from slurmtop.triage.log_steps import step_behind, written_at
from slurmtop.ui.present.spans import Line

#: A log that has been quiet for so long earns a look at the nodes.
QUIET_S = 60.0
#: Looks that nobody asked for begin at least so far apart.
EVERY_S = 60.0
#: A look that has not ended by then is given up.
LIMIT_S = 45.0
#: What was seen on the nodes says nothing of now after so long.
STALE_S = 150.0
#: The clocks of nodes, file servers and this machine differ by some seconds.
_SLACK = timedelta(seconds=2)

#: Seconds since a moment, as the reader felt them.
AgeOf = Callable[[datetime], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class LookState:
    """A look at the nodes that goes on, or how the last one ended.

    ``asked``: a person wanted it, with stacks. ``ended`` is a sentence where it was stopped or
    broke, "" after a whole look. ``newest`` is what it has told so far.
    """

    began_at: datetime
    hosts: tuple[str, ...] = ()
    asked: bool = False
    going: bool = True
    ended: str = ""
    newest: LiveFacts | None = None

    @property
    def samples(self) -> tuple[Sample, ...]:
        """The rounds of this look, without those of an earlier one."""
        known = self.newest.samples if self.newest is not None else ()
        return tuple(one for one in known if one.began_at >= self.began_at)


def runs_on_nodes(job: Job | None) -> bool:
    """Has it processes on nodes that could be looked at?"""
    return job is not None and job.state.phase is Phase.RUNNING and bool(job.nodes)


def earns_look(facts: JobFacts, seen_at: datetime) -> bool:
    """Do the logs of a running job make it suspect: quiet for a while, written without
    a new step, or telling of a hang?

    ``seen_at`` is when its logs were last found to be what ``facts`` say of them.
    """
    say = facts.logs_say
    if say is not None and not say.moved_on:
        told = say.verdict.state is State.HUNG or (say.verdict.state is State.FAILED and say.hard)
        if told:
            return True
    if step_behind(facts.logs) is not None:
        return True
    written = written_at(facts.logs)
    return written is not None and (seen_at - written).total_seconds() >= QUIET_S


def _last_written(facts: JobFacts) -> datetime | None:
    times = [
        log.mtime for log in facts.logs if log.status is LogStatus.READ and log.mtime is not None
    ]
    return max(times, default=None)


def carried_over(old: JobFacts | None, new: JobFacts) -> JobFacts:
    """``new`` with what the nodes told before, where it is the same run of the same job."""
    if old is None or old.live is None or new.live is not None:
        return new
    if not runs_on_nodes(new.job) or _run_of(old) != _run_of(new):
        return new
    return replace(new, live=old.live)


def _run_of(facts: JobFacts) -> tuple[object, ...]:
    job = facts.job
    return () if job is None else (job.key, job.start, job.restarts, job.nodes)


def overtaken(facts: JobFacts, age_of: AgeOf) -> str:
    """Why what the nodes told says nothing of now; "" while it holds."""
    began = newest_look(facts.live)
    if began is None:
        return ""
    written = _last_written(facts)
    if written is not None and written > began + _SLACK and not _saw_growth(facts.live):
        return "its log has grown since"
    return "that is long ago" if age_of(began) > STALE_S else ""


def _saw_growth(live: LiveFacts | None) -> bool:
    return live is not None and bool(live.log.grew)


def newest_look(live: LiveFacts | None) -> datetime | None:
    """When the newest round over the nodes began."""
    return live.samples[-1].began_at if live is not None and live.samples else None


def judged_by(facts: JobFacts, age_of: AgeOf) -> JobFacts:
    """The facts as they are judged: without what the nodes told where that is overtaken."""
    return replace(facts, live=None) if overtaken(facts, age_of) else facts


def better(old: LiveFacts | None, new: LiveFacts, *, going: bool) -> LiveFacts:
    """The half of a new look does not push out a whole one: it would only know less."""
    if old is None or not going or not old.two_samples or old.job != new.job:
        return new
    return new if new.two_samples else old


def look_line(look: LookState | None, age_of: AgeOf) -> Line:
    """What is asked of the nodes just now, and when the second round is due."""
    if look is None or not look.going:
        return ()
    where = _where(look.hosts)
    rounds = look.samples
    waited = age_of(look.began_at)
    stop = ("; esc stops", "dim")
    if not rounds:
        since = f" for {ago_text(waited)}" if waited >= 2 else ""
        return ((f"looking at its processes on {where} …{since}", "busy"), stop)
    newest = rounds[-1]
    if newest.whole and len(rounds) == 1:
        left = SAMPLES_APART_S - age_of(newest.began_at)
        due = f"in {left:.0f} s" if left >= 1 else "now"
        return ((f"looked at {where} once; the second look is due {due}", "busy"), stop)
    which = "second look" if len(rounds) > 1 else "first look"
    answered = f"{len(newest.probes)} of {plural(len(look.hosts), 'node')} answered"
    stacks = ", reading stacks" if newest.stacks_asked and not newest.whole else ""
    return ((f"{which} at {where}: {answered}{stacks} …", "busy"), stop)


def looked_line(
    live: LiveFacts | None, look: LookState | None, stale: str, age_of: AgeOf, *, possible: bool
) -> Line:
    """How old is what the nodes told, and what a key does about it; "" while a look goes on."""
    if look is not None and look.going:
        return ()
    again = "; p looks again" if possible else ""
    ended = f"{visible(look.ended)}" if look is not None and look.ended else ""
    began = newest_look(live)
    if live is None or began is None:
        if ended:
            return ((f"{ended}{again}", "warn"),)
        return (("p looks at its processes on the nodes", "dim"),) if possible else ()
    rounds = "twice" if live.two_samples else "once"
    text = f"nodes looked at {rounds}, {ago_text(age_of(began))} ago"
    if stale:
        return ((f"{text}: {stale}{again}", "warn"),)
    if ended:
        return ((f"{text}; {ended}{again}", "warn"),)
    return ((f"{text}{again}", "dim"),)


def _where(hosts: tuple[str, ...]) -> str:
    text = visible(compress_hosts(hosts)) if hosts else "its nodes"
    return text if len(text) <= 24 else plural(len(hosts), "node")
