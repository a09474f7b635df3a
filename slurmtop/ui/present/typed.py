"""What a typed time limit, list of nodes or list of tasks means, or what is wrong with it. Pure.

Each ``judge`` gives a sentence and whether the text cannot be taken.
"""

from collections.abc import Sequence

from slurmtop.control.commands import MAX_LIMIT_MINUTES, host_allowed
from slurmtop.control.tasks import Ranges, chosen_tasks, parse_tasks
from slurmtop.model.job import Job, LimitKind, Phase
from slurmtop.model.spans import span_text
from slurmtop.model.text import visible
from slurmtop.model.units import plural
from slurmtop.parse.slurm.hostlist import HostlistError, expand_hosts
from slurmtop.parse.slurm.times import parse_duration
from slurmtop.ui.present.action_words import hosts_text, minutes_text

LIMIT_QUESTION = (
    "New time limit, counted from the start of the job: 90 (minutes), 1:30:00 or 1-12:00:00.",
    "Of a job that has started you may only lower it; an operator may raise it.",
)
EXCLUDE_QUESTION = (
    "Nodes to keep it off, as a host list: gpu03 or gpu[03-05],gpu09.",
    "What it excludes already stays excluded. Only waiting jobs can be changed.",
)
#: Hosts of one list: more are no exclusion, they are a mistake.
MAX_HOSTS = 512
MAX_SECONDS = MAX_LIMIT_MINUTES * 60


def minutes_of(text: str) -> int | None:
    """Whole minutes, seconds rounded up as Slurm does; None where it is no limit."""
    seconds = parse_duration(text.strip())
    if seconds is None or not 0 < seconds <= MAX_SECONDS:
        return None
    return int(-(-seconds // 60))


def judge_limit(text: str, jobs: Sequence[Job]) -> tuple[str, bool]:
    """What setting it would mean for ``jobs``."""
    if not text.strip():
        return _limits_now(jobs), True
    minutes = minutes_of(text)
    if minutes is None:
        return "That is no time limit between a minute and a year.", True
    started = [job.limit for job in jobs if job.state.phase is not Phase.PENDING]
    raised = sum(1 for limit in started if minutes * 60 > (limit.seconds or MAX_SECONDS))
    sentence = f"Sets it to {minutes_text(minutes)}. {_limits_now(jobs)}"
    if raised:
        sentence += f" That is more for {plural(raised, 'started job')}: Slurm may refuse."
    return sentence, False


def _limits_now(jobs: Sequence[Job]) -> str:
    limits = {job.limit.seconds for job in jobs if job.limit.kind is LimitKind.SECONDS}
    known = sorted(seconds for seconds in limits if seconds is not None)
    if not known:
        return "The limit now is not known, or there is none."
    if len(known) == 1:
        return f"The limit now is {minutes_text(known[0] // 60)}."
    return f"Limits now are {minutes_text(known[0] // 60)} to {minutes_text(known[-1] // 60)}."


def hosts_of(text: str) -> tuple[str, ...] | None:
    """The hosts of a typed list, each once; None where it is no list of hosts."""
    try:
        hosts = expand_hosts(text.strip(), limit=MAX_HOSTS)
    except HostlistError:
        return None
    hosts = tuple(dict.fromkeys(hosts))
    return hosts if hosts and all(map(host_allowed, hosts)) else None


def judge_hosts(text: str) -> tuple[str, bool]:
    """How many nodes they are, or that it is no list of nodes."""
    if not text.strip():
        return "Type at least one node.", True
    hosts = hosts_of(text)
    if hosts is None:
        return f"That is no list of at most {MAX_HOSTS} nodes.", True
    return f"{plural(len(hosts), 'node')}: {hosts_text(hosts)}", False


def judge_tasks(text: str, jobs: Sequence[Job]) -> tuple[str, bool]:
    """How many tasks of the array they are, and in which state."""
    if not text.strip():
        return "Type at least one task.", True
    ranges = parse_tasks(text)
    if ranges is None:
        return "That is no list of tasks: write it like 3,7-9.", True
    found, missing = chosen_tasks([job for job in jobs if not job.state.ended], ranges)
    if not found:
        return f"None of them is in the queue: {ranges_text(missing)}", True
    waiting = sum(_count(job) for job in found if job.state.phase is Phase.PENDING)
    others = sum(_count(job) for job in found) - waiting
    parts = [f"{waiting} waiting"] if waiting else []
    parts += [f"{others} running"] if others else []
    sentence = f"{plural(waiting + others, 'task')}: {', '.join(parts)}"
    if missing:
        sentence += f"; not in the queue: {ranges_text(missing)}"
    return sentence, False


def ranges_text(ranges: Ranges) -> str:
    """``3, 7-9``, the first of them where there are many."""
    texts = [span_text(span) for span in ranges[:8]]
    return visible(", ".join(texts) + (" …" if len(ranges) > 8 else ""))


def _count(job: Job) -> int:
    return job.id.tasks.count if job.id.tasks is not None else 1
