"""Everything about one job, gathered and judged: Slurm, its logs and, while it runs, its nodes.

One function for all who want a verdict on a job: the commands, a bundle that is judged again, and
what is saved before a job is cancelled.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from slurmtop.collect.clock import cancel_and_wait, spawn
from slurmtop.collect.facts import gather_job_facts
from slurmtop.collect.judging import judge_again
from slurmtop.collect.live import (
    Expect,
    LiveLook,
    LookSettings,
    Reached,
    nodes_to_look_at,
    raw_number,
)
from slurmtop.collect.log_facts import errs_anew
from slurmtop.collect.log_verdict import JudgeLogs, judge_beside
from slurmtop.collect.recorded import recorded_job
from slurmtop.collect.replay import ReplayRunner
from slurmtop.collect.sacct import Accounting
from slurmtop.collect.who import Who
from slurmtop.model.facts import JobFacts, LogStatus
from slurmtop.model.job import Job
from slurmtop.model.live import LiveFacts
from slurmtop.model.ports import Clock, Runner
from slurmtop.model.probe import NodeProbe
from slurmtop.model.verdict import Confidence, Fate, Missing, SourceFate, State, Verdict
from slurmtop.triage.live.enough import wanted
from slurmtop.triage.why import explain_job, known_anywhere

if TYPE_CHECKING:
    from slurmtop.model.trace import Traces

#: Hears of every answer on the way that is better than the one before; never of the last one.
OnNews = Callable[[JobFacts, Verdict], None]
#: Before what is said in place of a source that nobody asked in a recording.
ONLY_QUEUE = "Nobody asked about job"


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
    return await _Triage(door, asked, settings, on_news, judge_logs, whole).run()


class _Triage:
    """One go at one job. The nodes are asked while the logs are still being judged."""

    def __init__(
        self,
        door: Door,
        asked: str,
        settings: LookSettings,
        on_news: OnNews | None,
        judge_logs: JudgeLogs,
        whole: bool,
    ) -> None:
        self._door = door
        self._asked = asked
        self._settings = settings
        self._on_news = on_news
        self._judge_logs = judge_logs
        self._whole = whole
        self._suspect = False
        self._look: LiveLook | None = None
        self._looking: asyncio.Task[JobFacts] | None = None

    async def run(self) -> tuple[JobFacts, Verdict]:
        try:
            judge = None if self._whole else self._judge_logs
            facts = await gather_job(self._door, self._asked, judge, on_read=self._read)
            if self._whole:
                facts = await self._whole_logs(facts)
            facts = await self._with_nodes(facts)
            if _went_away(facts):
                facts = await self._perhaps_ended(facts)
        finally:
            if self._looking is not None:
                await cancel_and_wait(self._looking)
        return facts, explain_job(facts)

    async def _perhaps_ended(self, facts: JobFacts) -> JobFacts:
        """Processes that are not there any more are no hang where the job has just ended."""
        newer = await gather_job(self._door, self._asked, self._judge_logs)
        still = nodes_to_look_at(newer) or not newer.controller_answered
        return facts if still else newer

    def _read(self, facts: JobFacts) -> None:
        """The first answer, or a second one once slow logs are read; and the nodes are asked where
        that is worth it already."""
        if not nodes_to_look_at(facts):
            return
        looks = self._worth_a_look(facts)
        if self._look is not None:
            # It began while the logs let wait, and knows more by now.
            facts = replace(facts, live=self._look.facts.live)
        elif looks:
            self._begin(facts)
        self._tell(facts, looks=looks)

    def _tell(self, facts: JobFacts, *, looks: bool = True) -> None:
        if self._on_news is not None:
            verdict = explain_job(facts)
            # Once suspected it stays so until the last answer: a log that is now quiet and now not
            # would tell one thing and its opposite within a second.
            self._suspect = self._suspect or (looks and wanted(facts).second)
            self._on_news(facts, _not_sure(verdict) if self._suspect else verdict)

    def _begin(self, facts: JobFacts) -> LiveLook:
        door = self._door
        self._look = LiveLook(
            door.runner,
            door.clock,
            facts,
            settings=self._settings,
            expect=door.expect,
            reached=door.reached,
            mark=door.mark,
        )
        self._looking = spawn(self._look.run(self._tell), name="look at the nodes")
        return self._look

    async def _with_nodes(self, facts: JobFacts) -> JobFacts:
        if not nodes_to_look_at(facts):
            return facts
        if not self._worth_a_look(facts):
            return self._not_looked(facts)
        look = self._look or self._begin(facts)
        look.judged(facts)
        assert self._looking is not None
        looked = await self._looking
        if self._whole or not errs_anew(facts.logs, looked.logs):
            return looked
        door = self._door
        said = await judge_again(door.runner, door.clock, looked, self._judge_logs)
        return replace(looked, logs_say=said or looked.logs_say)

    def _worth_a_look(self, facts: JobFacts) -> bool:
        settings = self._settings
        if not settings.nodes or self._no_nodes_recorded():
            return False
        if settings.once or settings.always:
            return True
        want = wanted(facts)
        return want.stacks or want.second

    def _no_nodes_recorded(self) -> bool:
        return self._door.replay is not None and not self._door.replay.hosts

    def _not_looked(self, facts: JobFacts) -> JobFacts:
        """Why nobody was sent to the nodes is told where the other sources are told."""
        assert facts.job is not None
        why = "its log grows: nothing to look for there"
        if not self._settings.nodes:
            why = self._settings.why_not or "not wanted"
        elif self._no_nodes_recorded():
            why = "the recording holds no look at nodes"
        fate = SourceFate(source="nodes", fate=Fate.NOT_ASKED, why=why)
        hosts = nodes_to_look_at(facts)
        live = LiveFacts(job=raw_number(facts.job), hosts=hosts, fates=(fate,))
        return replace(facts, live=live)

    async def _whole_logs(self, facts: JobFacts) -> JobFacts:
        # What parses logs is loaded by who judges them; mostly that is another process.
        from slurmtop.triage.join import join
        from slurmtop.triage.logs_say import logs_say

        traces = await read_whole_logs(self._door.runner, facts)
        only_newest = not (facts.job is not None and facts.job.restarts)
        said = logs_say(join(traces), only_newest=only_newest, now=facts.now)
        return replace(facts, logs_say=said)


def _not_sure(verdict: Verdict) -> Verdict:
    """A log that has been quiet for a while is no proof of work while its nodes are asked: a later
    look may show that it hangs."""
    if verdict.state is not State.HEALTHY:
        return verdict
    return replace(verdict, state=State.UNKNOWN, family=None, cls=None, confidence=Confidence.LOW)


def _went_away(facts: JobFacts) -> bool:
    """Are processes of the job gone that were there before, are there none at all, or does no node
    answer any more that did before?"""
    live = facts.live
    if live is None or not live.samples:
        return False
    counts = [
        {probe.host: _count(probe, live.job) for probe in sample.probes if probe.failure is None}
        for sample in live.samples
    ]
    newest = counts[-1]
    if counts[0] and not newest:
        return True
    fewer = any(newest.get(host, count) < count for host, count in counts[0].items())
    return fewer or (bool(newest) and not any(newest.values()))


def _count(probe: NodeProbe, job: str) -> int:
    looked = probe.processes
    return 0 if looked is None else sum(1 for one in looked.processes if one.job == job)


async def read_whole_logs(runner: Runner, facts: JobFacts, *, whole: bool = True) -> "Traces":
    """The logs of a job that could be read, from end to end or both ends of them."""
    from slurmtop.collect.left_behind import read_traces

    paths = (log.path for log in facts.logs if log.status is LogStatus.READ)
    known = tuple(dict.fromkeys(path for path in paths if path is not None))
    return await read_traces(runner, known, whole=whole)


async def gather_job(
    door: Door,
    asked: str,
    judge_logs: JudgeLogs | None = judge_beside,
    *,
    on_read: Callable[[JobFacts], None] | None = None,
) -> JobFacts:
    """The facts of one job from Slurm, accounting and its logs.

    In a replay the job may stand in a recorded queue although nobody asked about it alone.
    """
    facts = await _gather(door, asked, judge_logs, on_read)
    if door.replay is None or facts.controller_answered or known_anywhere(facts):
        return facts
    found = recorded_job(door.replay, asked, cluster=door.cluster)
    if found is None:
        return facts
    door.replay.queue_at = found.at
    facts = await _gather(door, asked, judge_logs, on_read, found.job, found.siblings)
    said = Missing(
        "slurm",
        f"{ONLY_QUEUE} {asked} alone in this recording: what is said here is from the queue as"
        f" recorded at {found.at.astimezone():%Y-%m-%d %H:%M:%S}.",
    )
    return replace(facts, controller_answered=True, missing=(said, *facts.missing))


async def _gather(
    door: Door,
    asked: str,
    judge_logs: JudgeLogs | None,
    on_read: Callable[[JobFacts], None] | None,
    job: Job | None = None,
    siblings: tuple[Job, ...] = (),
) -> JobFacts:
    return await gather_job_facts(
        door.runner,
        door.clock,
        asked,
        cluster=door.cluster,
        mark=door.mark,
        accounting=Accounting(door.runner, cluster=door.cluster, mark=door.mark),
        job=job,
        siblings=siblings,
        want_expected_start=True,
        me=door.who,
        judge_logs=judge_logs,
        on_read=on_read,
    )
