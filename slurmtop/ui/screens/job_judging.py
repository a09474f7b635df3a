"""How the Why tab of a Job screen comes to its verdict, and keeps it fresh.

Slurm is asked on open, on a change of state, and on a key. While the Why tab of a running job is
looked at, the job is asked for once a minute and judged again sooner where its log has grown; where
the log makes it suspect, its nodes are looked at. What they told stays with the facts until the
job has gone on or it is too old.
"""

import asyncio
from dataclasses import replace
from datetime import datetime
from typing import Any

from textual import on
from textual.worker import Worker, WorkerState

from slurmtop.collect.clock import within
from slurmtop.collect.log_facts import errs_anew, newer_log_facts
from slurmtop.model.facts import JobFacts
from slurmtop.model.job import Job, Phase
from slurmtop.model.live import LiveFacts
from slurmtop.triage.why import explain_job
from slurmtop.ui.present.job import expected_start_text
from slurmtop.ui.present.looking import (
    better,
    carried_over,
    earns_look,
    judged_by,
    overtaken,
    runs_on_nodes,
)
from slurmtop.ui.present.rank_rows import rank_rows
from slurmtop.ui.present.why import WhyState
from slurmtop.ui.screens.job_keys import JobKeys
from slurmtop.ui.screens.job_look import NodeLook

#: While a running job's verdict is looked at, it is made anew this often, and its logs are
#: looked at this often in between.
JUDGE_S = 60.0
LOG_LOOK_S = 15.0
#: A look does not wait longer for the logs.
_LOG_S = 3.0
#: What so many processes tell is judged beside the screen: it would hold up keys.
_MANY = 512


class JobJudging(JobKeys):
    """What the Why tab knows of the job, and where it has it from."""

    def __init__(self) -> None:
        super().__init__()
        self.facts: JobFacts | None = None
        self.gathered_at: datetime | None = None
        """When Slurm was asked for the facts; ``facts.now`` is when they were judged."""
        self.look = NodeLook(self, self._fresh, self._nodes_told, self._look_changed)
        self._seen: object = None
        self._asked_at = self._judged_at = self._looked_at = 0.0
        self._logs_seen_at: datetime | None = None
        self._look_wanted = False
        self._to_judge: tuple[JobFacts, dict[str, Any]] | None = None
        self._judging = False

    @property
    def left_queue(self) -> bool:
        """Has the queue, in a good answer, no longer this job?"""
        return self.key in self.tool.book.gone

    def queue_at(self) -> datetime | None:
        """When the queue last said something of this job."""
        gone = self.tool.book.gone.get(self.key)
        return self.tool.book.sampled_at if gone is None else gone.since

    def facts_came(self, facts: JobFacts) -> None:
        """Slurm has answered: the other parts of the screen follow."""
        raise NotImplementedError

    def _signature(self) -> tuple[object, ...]:
        """What must differ before Slurm is asked about the job again."""
        job = self.tool.job_now(self.key)
        if job is None:
            return (None,)
        return (job.state, job.submit, job.restarts, self.left_queue)

    def gather_if_changed(self) -> None:
        """Ask Slurm again where the queue shows that the job is no longer what it was."""
        if self._seen is not None and self._signature() != self._seen:
            self.look.stop("the job has changed meanwhile")
            self.gather()

    # Slurm and the logs

    def gather(self, *, ask_start: bool = False, unasked: bool = False) -> None:
        self._seen = self._signature()
        self._asked_at = self._judged_at = self._looked_at = self.services.clock.monotonic()
        self.workers.cancel_group(self, "judge-logs")
        self.run_worker(
            self._gather_facts(ask_start, unasked),
            group="facts",
            exclusive=True,
            exit_on_error=False,
        )

    def keep_fresh(self) -> None:
        """Judge a running job again while somebody looks at what was judged."""
        self.look.second_passed()
        self._mark_stale()
        job, tool = self.tool.job_now(self.key), self.tool
        runs = job is not None and job.state.phase is Phase.RUNNING and not self.left_queue
        if not runs or self.facts is None or tool.screen is not self or tool.feed.idle:
            return
        self._look_unasked(self.facts)
        if any(
            worker.group in ("facts", "judge-logs") and not worker.is_finished
            for worker in self.workers
            if worker.node is self
        ):
            return
        now = self.services.clock.monotonic()
        # A controller in trouble is left to the queue's poller; the logs go on being read.
        silent = tool.health.failure is not None
        if now - self._asked_at >= JUDGE_S and not silent:
            self.gather(unasked=True)
        elif now - self._looked_at >= LOG_LOOK_S:
            self._looked_at = now
            anyway = now - self._judged_at >= JUDGE_S
            self.run_worker(
                self._judge_logs(self.facts, anyway), group="judge-logs", exit_on_error=False
            )

    async def _judge_logs(self, facts: JobFacts, anyway: bool) -> None:
        """Judge by what Slurm said last and by what stands in the logs now."""
        services = self.services
        seen_at = services.clock.now()
        logs = await newer_log_facts(services.runner, facts.logs)
        said = facts.logs_say
        if logs is not None and services.judge_logs is not None and errs_anew(facts.logs, logs):
            said = await services.judge_logs(replace(facts, logs=logs))
        if self.facts is None or self.facts.logs is not facts.logs:
            return
        self._logs_seen_at = seen_at
        if logs is None and not anyway:
            return
        self._judged_at = services.clock.monotonic()
        self.facts = replace(
            # What the nodes told meanwhile stays.
            self.facts,
            now=services.clock.now(),
            job=self.tool.job_now(self.key) or facts.job,
            queue_at=self.queue_at(),
            logs=facts.logs if logs is None else logs,
            logs_say=said,
            controller_answered=self.tool.health.failure is None,
        )
        self._judge(self.facts)

    async def _gather_facts(self, ask_start: bool, unasked: bool) -> None:
        services, now = self.services, self.services.clock.now()
        what = "Slurm when it may start" if ask_start else "Slurm, and reading its logs"
        if not unasked:
            self.why.show_state(
                replace(self.why.state, asking=what, asking_since=now, failed=None, note=None)
            )
        job = self.tool.job_now(self.key)
        siblings = self.tool.book.siblings(job) if job is not None else ()
        queue_at = self.queue_at() if job is not None else None
        facts = await services.gather_facts(
            self.key.id, job=job, siblings=siblings, ask_start=ask_start
        )
        self.facts = facts = carried_over(self.facts, replace(facts, queue_at=queue_at))
        self.gathered_at = self._logs_seen_at = facts.now
        note = (
            expected_start_text(facts.expected_start, services.clock.now(), services.zone)
            if ask_start
            else None
        )
        self._judge(facts, asking=None, failed=None, note=note)
        self.facts_came(facts)
        if self._look_wanted:
            self._look_wanted = False
            self.action_look_at_nodes()

    def _judge(self, facts: JobFacts, **besides: Any) -> None:
        """Show what ``facts`` mean; ``besides`` are other fields of the state, changed with it."""
        old = self.why.state
        if _processes(facts.live) < _MANY:
            self._show(_judged(facts, old, overtaken(facts, self._age_s)), besides)
            return
        if self._to_judge is not None:
            besides = {**self._to_judge[1], **besides}
        self._to_judge = (facts, besides)
        if not self._judging:
            self._judging = True
            self.run_worker(self._judge_beside(), group="judge-beside", exit_on_error=False)

    async def _judge_beside(self) -> None:
        try:
            while self._to_judge is not None:
                (facts, besides), self._to_judge = self._to_judge, None
                stale = overtaken(facts, self._age_s)
                found = await asyncio.to_thread(_judged, facts, self.why.state, stale)
                self._show(found, besides)
        finally:
            self._judging = False

    def _show(self, found: dict[str, Any], besides: dict[str, Any]) -> None:
        state = replace(self.why.state, look=self.look.state, may_look=self.may_look())
        state = replace(state, **found, **besides)
        self.tool.last_verdict(self.key, state.verdict)
        self.why.show_state(state)
        self.refresh_bindings()

    def _age_s(self, at: datetime) -> float:
        """Seconds since then, as the reader felt them."""
        services = self.services
        return (services.clock.now() - services.seen_at(at)).total_seconds()

    # Its nodes

    def may_look(self) -> bool:
        """Can its nodes be looked at?"""
        on_nodes = runs_on_nodes(self.job) and not self.left_queue
        return self.services.look_at_nodes is not None and on_nodes

    def action_look_at_nodes(self) -> None:
        if not self.may_look():
            return
        if self.facts is None:
            self._look_wanted = True
            self.say("its nodes are looked at as soon as Slurm has answered")
            return
        # Where one goes on already its line says so, and how to stop it: nothing covers the proof.
        self.look.begin(self._for_look(self.facts), asked=True)

    def _look_unasked(self, facts: JobFacts) -> None:
        """A log that makes the job suspect earns it a look at the nodes, now and then."""
        if not self.look.rested() or not self.may_look() or not self._may_log_in():
            return
        if earns_look(facts, self._logs_seen_at or facts.now):
            self.look.begin(self._for_look(facts), asked=False)

    def _may_log_in(self) -> bool:
        """Nobody knocks unasked at the nodes of somebody else's job."""
        job, services = self.job, self.services
        return services.uid == 0 or (job is not None and job.user == services.user)

    def _for_look(self, facts: JobFacts) -> JobFacts:
        return replace(facts, now=self.services.clock.now(), job=self.job or facts.job)

    async def _fresh(self, facts: JobFacts, asked: bool) -> JobFacts | None:
        """``facts`` with the logs as they are now; None where they take away the suspicion."""
        services = self.services
        reading = newer_log_facts(services.runner, facts.logs)
        try:
            logs = await within(services.clock, reading, _LOG_S, name="the logs before a look")
        except TimeoutError:
            return facts
        now = services.clock.now()
        newest = replace(facts, now=now, logs=facts.logs if logs is None else logs)
        return newest if asked or earns_look(newest, now) else None

    def _nodes_told(self, live: LiveFacts, going: bool) -> None:
        if self.facts is None:
            return
        kept = better(judged_by(self.facts, self._age_s).live, live, going=going)
        self.facts = replace(self.facts, now=self.services.clock.now(), live=kept)
        self._judge(self.facts)

    def _look_changed(self) -> None:
        state = replace(self.why.state, look=self.look.state, may_look=self.may_look())
        self.why.show_state(state)

    def _mark_stale(self) -> None:
        """What the nodes told is judged by until it is overtaken."""
        facts = self.facts
        if facts is None or self._judging:
            return
        if overtaken(facts, self._age_s) != self.why.state.stale:
            self.facts = replace(facts, now=self.services.clock.now())
            self._judge(self.facts)

    @on(Worker.StateChanged)
    def _worker_failed(self, event: Worker.StateChanged) -> None:
        worker = event.worker
        if event.state is not WorkerState.ERROR:
            return
        if worker.group == "facts":
            sentence = f"slurmtop could not gather what is known: {worker.error}"
            self.why.show_state(replace(self.why.state, asking=None, failed=sentence))
        elif worker.group == "look":
            self.look.broke(worker.error)

    @property
    def job(self) -> Job | None:
        """The newest record: the queue's, else what the facts found."""
        job = self.tool.job_now(self.key)
        facts = self.facts
        if facts is None:
            return job
        if job is None:
            job = facts.job or (facts.detail.job if facts.detail is not None else None)
        if job is not None and self.left_queue and facts.history:
            last = facts.history[0]
            if last.state.ended:
                return replace(job, state=last.state, end=last.end or job.end)
        return job


def _processes(live: LiveFacts | None) -> int:
    """How many processes the looks told of."""
    samples = live.samples if live is not None else ()
    return sum(len(probe.activity) for one in samples for probe in one.probes)


def _judged(facts: JobFacts, old: WhyState, stale: str) -> dict[str, Any]:
    """What ``facts`` mean, as fields of the state. What is ``stale`` is shown and not judged by."""
    say = facts.logs_say
    return {
        "verdict": explain_job(replace(facts, live=None) if stale else facts),
        "tables": say.tables if say is not None and say.only_newest else (),
        "live": facts.live,
        "rows": old.rows if facts.live is old.live else rank_rows(facts.live),
        "stale": stale,
    }
