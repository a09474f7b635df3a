"""The Job screen: a header, and the tabs Why, GPUs, Logs and Script."""

from dataclasses import replace
from datetime import datetime
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.worker import Worker, WorkerState

from slurmtop.collect.batch_script import read_batch_script, script_number
from slurmtop.collect.log_facts import errs_anew, newer_log_facts
from slurmtop.model.facts import JobFacts
from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job, Phase
from slurmtop.model.script import ScriptStatus
from slurmtop.triage.why import explain_job
from slurmtop.ui.actions_flow import Selection
from slurmtop.ui.bindings import bindings_for
from slurmtop.ui.messages import (
    GpusChanged,
    HealthChanged,
    QueueChanged,
    RefreshAsked,
    SecondPassed,
)
from slurmtop.ui.present.job import (
    HEADER_LINES,
    JobCard,
    expected_start_text,
    header_lines,
    marks_line,
)
from slurmtop.ui.present.spans import Line
from slurmtop.ui.present.why import WhyState
from slurmtop.ui.screens.job_keys import TAB_ACTIONS, JobKeys, selection_of
from slurmtop.ui.widgets.footer import KeyFooter
from slurmtop.ui.widgets.gpus_tab import GpusTab
from slurmtop.ui.widgets.lines import LinesBox
from slurmtop.ui.widgets.log_tab import LogTab
from slurmtop.ui.widgets.script_view import ScriptView
from slurmtop.ui.widgets.tab_bar import TabBar
from slurmtop.ui.widgets.why_view import WhyView

TABS = ("Why", "GPUs", "Logs", "Script")
#: While a running job's verdict is looked at, it is made anew this often, and its logs are
#: looked at this often in between.
JUDGE_S = 60.0
LOG_LOOK_S = 15.0


class JobScreen(JobKeys):
    """One job, by key. Slurm is asked on open, on a change of state, and on a key.

    While the Why tab of a running job is looked at, the verdict is kept fresh: the job is
    asked for once a minute, and judged again sooner where its log has grown.
    """

    SCOPES = ("job", "why", "gpus", "logs")
    BINDINGS: ClassVar = [binding for scope in SCOPES for binding in bindings_for(scope)]
    DEFAULT_CSS = f"""
    JobScreen > #job-header {{ height: {HEADER_LINES}; }}
    """

    def __init__(self, key: JobKey) -> None:
        super().__init__()
        self.key = key
        self.facts: JobFacts | None = None
        self._seen: object = None
        self._asked_at = self._judged_at = self._looked_at = 0.0
        self._header = LinesBox(self._header_lines, id="job-header")
        self._tabs = TabBar(TABS, self._marks, id="job-tabs")

    def compose(self) -> ComposeResult:
        services = self.services
        self.why = WhyView(services.clock.now, services.zone, services.seen_at, id="why")
        self.gpus = GpusTab(
            services,
            self.tool.gpus,
            self.key,
            lambda: self.job,
            lambda: self.facts.logs if self.facts is not None else (),
            id="gpus",
        )
        self.logs = LogTab(
            services.runner, services.clock, user=services.user, zone=services.zone, id="logs"
        )
        self.script = ScriptView(id="script")
        yield self._header
        yield self._tabs
        yield self.why
        yield self.gpus
        yield self.logs
        yield self.script
        yield KeyFooter()

    def on_mount(self) -> None:
        # The page may have been painted, and a key have picked a tab, before this comes.
        self._show_tab(self.tab)
        self._gather()

    # What is known

    @property
    def current_job(self) -> JobKey | None:
        return self.key

    @property
    def job(self) -> Job | None:
        """The newest record: the queue's, else what the facts found."""
        job = self.tool.job_now(self.key)
        facts = self.facts
        if facts is None:
            return job
        if job is None:
            job = facts.job or (facts.detail.job if facts.detail is not None else None)
        if job is not None and self._left and facts.history:
            last = facts.history[0]
            if last.state.ended:
                return replace(job, state=last.state, end=last.end or job.end)
        return job

    @property
    def _left(self) -> bool:
        """Has the queue, in a good answer, no longer this job?"""
        return self.key in self.tool.book.gone

    def _seen_at(self) -> datetime | None:
        """When the queue last said something of this job."""
        gone = self.tool.book.gone.get(self.key)
        return self.tool.book.sampled_at if gone is None else gone.since

    def _card(self) -> JobCard:
        facts, health, book = self.facts, self.tool.health, self.tool.book
        job = self.job
        in_queue = self.tool.job_now(self.key) is not None
        gone = book.gone.get(self.key)
        seen = self._seen_at()
        sampled_at = seen and self.services.seen_at(seen)
        return JobCard(
            asked=self.key.id,
            job=job,
            sampled_at=sampled_at if in_queue else facts.now if facts and job else None,
            detail=facts.detail if facts is not None else None,
            detail_at=facts.now if facts is not None else None,
            trouble=health.failure.sentence if health.failure is not None else None,
            unknown=facts is not None and job is None,
            gone=gone is not None and not (job is not None and job.state.ended),
            stale_after_s=2.5 * max(health.interval_s, 20.0),
            still_at=gone.since if gone is not None else self.tool.known_at(),
        )

    def _header_lines(self, width: int) -> tuple[Line, ...]:
        return header_lines(self._card(), self.services.clock.now(), width, self.services.zone)

    # News

    def on_queue_changed(self, event: QueueChanged) -> None:
        self._header.refresh()
        self.refresh_bindings()
        if self._seen is not None and self._signature() != self._seen:
            self._gather()
        self.gpus.follow_job()

    def on_gpus_changed(self, event: GpusChanged) -> None:
        self.gpus.gpus_changed(event.hosts)

    def on_health_changed(self, event: HealthChanged) -> None:
        self._header.refresh()

    def on_second_passed(self, event: SecondPassed) -> None:
        self._header.refresh()
        self._tabs.refresh()
        if self.tab == 0:
            self.why.rebuild()
            self._keep_fresh()
        self.gpus.second_passed()

    def on_refresh_asked(self, event: RefreshAsked) -> None:
        self._gather()
        if TABS[self.tab] == "GPUs":
            self.gpus.try_again()
        elif TABS[self.tab] == "Logs":
            self.run_worker(self.logs.look(), group="log-look", exit_on_error=False)
        elif TABS[self.tab] == "Script":
            self._ask_script()

    def _signature(self) -> tuple[object, ...]:
        """What must differ before Slurm is asked about the job again."""
        job = self.tool.job_now(self.key)
        if job is None:
            return (None,)
        return (job.state, job.submit, job.restarts, self._left)

    # Why

    def _gather(self, *, ask_start: bool = False, unasked: bool = False) -> None:
        self._seen = self._signature()
        self._asked_at = self._judged_at = self._looked_at = self.services.clock.monotonic()
        self.workers.cancel_group(self, "judge-logs")
        self.run_worker(
            self._gather_facts(ask_start, unasked),
            group="facts",
            exclusive=True,
            exit_on_error=False,
        )

    def _keep_fresh(self) -> None:
        """Judge a running job again while somebody looks at what was judged."""
        job, tool = self.tool.job_now(self.key), self.tool
        runs = job is not None and job.state.phase is Phase.RUNNING and not self._left
        if not runs or self.facts is None or tool.screen is not self or tool.feed.idle:
            return
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
            self._gather(unasked=True)
        elif now - self._looked_at >= LOG_LOOK_S:
            self._looked_at = now
            anyway = now - self._judged_at >= JUDGE_S
            self.run_worker(
                self._judge_logs(self.facts, anyway), group="judge-logs", exit_on_error=False
            )

    async def _judge_logs(self, facts: JobFacts, anyway: bool) -> None:
        """Judge by what Slurm said last and by what stands in the logs now."""
        services = self.services
        logs = await newer_log_facts(services.runner, facts.logs)
        said = facts.logs_say
        if logs is not None and services.judge_logs is not None and errs_anew(facts.logs, logs):
            said = await services.judge_logs(replace(facts, logs=logs))
        if (logs is None and not anyway) or facts is not self.facts:
            return
        self._judged_at = services.clock.monotonic()
        self.facts = replace(
            facts,
            now=services.clock.now(),
            job=self.tool.job_now(self.key) or facts.job,
            queue_at=self._seen_at(),
            logs=facts.logs if logs is None else logs,
            logs_say=said,
            controller_answered=self.tool.health.failure is None,
        )
        self.why.show_state(self._judged(self.facts))

    def _judged(self, facts: JobFacts) -> WhyState:
        say = facts.logs_say
        tables = say.tables if say is not None and say.only_newest else ()
        return replace(self.why.state, verdict=explain_job(facts), tables=tables)

    async def _gather_facts(self, ask_start: bool, unasked: bool) -> None:
        services, now = self.services, self.services.clock.now()
        what = "Slurm when it may start" if ask_start else "Slurm, and reading its logs"
        if not unasked:
            self.why.show_state(
                replace(self.why.state, asking=what, asking_since=now, failed=None, note=None)
            )
        job = self.tool.job_now(self.key)
        siblings = self.tool.book.siblings(job) if job is not None else ()
        queue_at = self._seen_at() if job is not None else None
        facts = await services.gather_facts(
            self.key.id, job=job, siblings=siblings, ask_start=ask_start
        )
        self.facts = facts = replace(facts, queue_at=queue_at)
        note = (
            expected_start_text(facts.expected_start, services.clock.now(), services.zone)
            if ask_start
            else None
        )
        self.why.show_state(replace(self._judged(facts), asking=None, failed=None, note=note))
        self.logs.set_logs(facts.logs, self.job)
        self.gpus.follow_job()
        self._header.refresh()
        self.refresh_bindings()

    @on(Worker.StateChanged)
    def _facts_failed(self, event: Worker.StateChanged) -> None:
        worker = event.worker
        if worker.group == "facts" and event.state is WorkerState.ERROR:
            sentence = f"slurmtop could not gather what is known: {worker.error}"
            self.why.show_state(replace(self.why.state, asking=None, failed=sentence))

    # Tabs

    @property
    def tab(self) -> int:
        """The tab that is shown, by its place in :data:`TABS`."""
        return self._tabs.current

    def _marks(self) -> Line:
        services = self.services
        return marks_line(
            cluster=services.cluster_label,
            demo=services.demo,
            read_only=services.read_only,
            dry_run=services.dry_run,
            calls=services.calls_last_minute(),
            way=services.way_to_nodes(),
        )

    def _show_tab(self, tab: int) -> None:
        self._tabs.current = tab
        views = (self.why, self.gpus, self.logs, self.script)
        for index, view in enumerate(views):
            view.display = index == tab
        for own in (self.gpus, self.logs):
            if views[tab] is own:
                own.show()
            else:
                own.hide()
        if TABS[tab] in ("Why", "Script"):
            views[tab].focus()
        if TABS[tab] == "Script" and self.script.script is None:
            self._ask_script()
        self._tabs.refresh()
        self.refresh_bindings()

    @on(TabBar.Picked)
    def _tab_picked(self, event: TabBar.Picked) -> None:
        self._show_tab(event.index)

    def pick_tab(self, name: str) -> None:
        """Show the tab that is called so."""
        self._show_tab(TABS.index(name))

    def action_next_tab(self) -> None:
        self._show_tab((self.tab + 1) % len(TABS))

    def action_previous_tab(self) -> None:
        self._show_tab((self.tab - 1) % len(TABS))

    def action_scroll_tab(self, how: str) -> None:
        """Scroll what the tab shows, or move in it: up, down, page_up, page_down, home, end,
        left, right."""
        if TABS[self.tab] == "GPUs":
            self.gpus.move(how)
        elif TABS[self.tab] == "Logs":
            self.logs.scroll_view(how)
        elif TABS[self.tab] == "Script":
            self.script.scroll_by(how)
        else:
            self.why.move(how)

    # Script

    def _ask_script(self) -> None:
        self.run_worker(self._read_script(), group="script", exclusive=True, exit_on_error=False)

    async def _read_script(self) -> None:
        if self.script.script is None or self.script.script.status is not ScriptStatus.READ:
            self.script.show_script(None)
        job = self.job
        number = script_number(job) if job is not None else self.key.id
        script = await read_batch_script(self.services.runner, number, cluster=self.key.cluster)
        self.script.show_script(script)

    # Keys

    def possible(self, action: str) -> bool:
        for tab, actions in TAB_ACTIONS.items():
            if action in actions:
                return TABS[self.tab] == tab
        job = self.job
        if action == "expected_start":
            return job is not None and job.state.phase is Phase.PENDING
        verdict = self.why.state.verdict
        if action == "copy":
            return verdict is not None
        if action == "act_on_verdict":
            return verdict is not None and bool(verdict.next)
        return True

    def action_expected_start(self) -> None:
        self._show_tab(0)
        self._gather(ask_start=True)

    def selection(self) -> Selection:
        verdict = self.why.state.verdict
        return selection_of(self.key, self.job, self.facts, verdict, left=self._left)

    def undo_one(self) -> bool:
        """Escape stops a search, closes its line or a chart before it leaves the screen."""
        if TABS[self.tab] == "GPUs":
            return self.gpus.step_back()
        return TABS[self.tab] == "Logs" and self.logs.step_back()

    def on_screen_suspend(self) -> None:
        """Another screen is on top: nobody looks at the GPUs now."""
        super().on_screen_suspend()
        self.gpus.hide()

    def on_screen_resume(self) -> None:
        super().on_screen_resume()
        if TABS[self.tab] == "GPUs":
            self.gpus.show()
