"""Everything about one job, gathered and judged: Slurm, its logs and, while it runs, its nodes.

One function for all who want a verdict on a job: the commands, a bundle that is judged again, and
what is saved before a job is cancelled.
"""

from collections.abc import Callable
from dataclasses import dataclass

from slurmtop.collect.live import Expect, LookSettings, Reached
from slurmtop.collect.log_verdict import JudgeLogs, judge_beside
from slurmtop.collect.pace import Pace
from slurmtop.collect.replay import ReplayRunner
from slurmtop.collect.who import Who
from slurmtop.model.facts import JobFacts
from slurmtop.model.ports import Clock, Runner
from slurmtop.model.verdict import Verdict

#: Hears of every answer on the way that is better than the one before; never of the last one.
OnNews = Callable[[JobFacts, Verdict], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """What a triage needs of the world; ``cli`` makes one of its wiring.

    ``mark`` is the record mark of the queue, ``expect`` tells which job runs on which nodes,
    ``reached`` how a node was reached. ``replay`` is set where a recording answers.
    """

    runner: Runner
    clock: Clock
    who: Who
    cluster: str = ""
    mark: bytes | None = None
    pace: Pace | None = None
    expect: Expect = lambda job, hosts: None
    reached: Reached = lambda host: None
    replay: ReplayRunner | None = None


async def triage_job(
    door: Door,
    asked: str,
    settings: LookSettings,
    on_news: OnNews | None = None,
    *,
    judge_logs: JudgeLogs = judge_beside,
    whole: bool = False,
) -> tuple[JobFacts, Verdict]:
    """The verdict on the job ``asked`` for (its id as typed), with what it rests on.

    ``whole`` reads all of its logs, not both ends. Never raises for a source that is silent.
    """
    raise NotImplementedError
