"""The Job screen: a header, and the tabs Why, GPUs, Logs and Script."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult

from slurmtop.collect.batch_script import read_batch_script, script_number
from slurmtop.model.facts import JobFacts
from slurmtop.model.ids import JobKey
from slurmtop.model.job import Phase
from slurmtop.model.script import ScriptStatus
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
    header_lines,
    marks_line,
)
from slurmtop.ui.present.spans import Line
from slurmtop.ui.screens.job_judging import JobJudging
from slurmtop.ui.screens.job_keys import TAB_ACTIONS, selection_of
from slurmtop.ui.widgets.footer import KeyFooter
from slurmtop.ui.widgets.gpus_tab import GpusTab
from slurmtop.ui.widgets.lines import LinesBox
from slurmtop.ui.widgets.log_tab import LogTab
from slurmtop.ui.widgets.script_view import ScriptView
from slurmtop.ui.widgets.tab_bar import TabBar
from slurmtop.ui.widgets.why_view import WhyView

TABS = ("Why", "GPUs", "Logs", "Script")


class JobScreen(JobJudging):
    """One job, by key, and what each of its tabs shows of it."""

    SCOPES = ("job", "why", "gpus", "logs")
    BINDINGS: ClassVar = [binding for scope in SCOPES for binding in bindings_for(scope)]
    DEFAULT_CSS = f"""
    JobScreen > #job-header {{ height: {HEADER_LINES}; }}
    """

    def __init__(self, key: JobKey) -> None:
        super().__init__()
        self.key = key
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
        self.gather()

    # What is known

    @property
    def current_job(self) -> JobKey | None:
        return self.key

    def _card(self) -> JobCard:
        facts, health, book = self.facts, self.tool.health, self.tool.book
        job = self.job
        in_queue = self.tool.job_now(self.key) is not None
        gone = book.gone.get(self.key)
        seen = self.queue_at()
        sampled_at = seen and self.services.seen_at(seen)
        return JobCard(
            asked=self.key.id,
            job=job,
            sampled_at=sampled_at if in_queue else self.gathered_at if facts and job else None,
            detail=facts.detail if facts is not None else None,
            detail_at=self.gathered_at,
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
        self.gather_if_changed()
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
            self.keep_fresh()
        self.gpus.second_passed()

    def on_refresh_asked(self, event: RefreshAsked) -> None:
        self.gather()
        if TABS[self.tab] == "GPUs":
            self.gpus.try_again()
        elif TABS[self.tab] == "Logs":
            self.run_worker(self.logs.look(), group="log-look", exit_on_error=False)
        elif TABS[self.tab] == "Script":
            self._ask_script()

    def facts_came(self, facts: JobFacts) -> None:
        self.logs.set_logs(facts.logs, self.job)
        self.gpus.follow_job()
        self._header.refresh()
        self.refresh_bindings()

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
        if TABS[tab] != "Why":
            self.look.stop("the look at its nodes ended with the tab")
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
        if action == "look_at_nodes" and not self.may_look():
            return False
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
        self.gather(ask_start=True)

    def selection(self) -> Selection:
        verdict = self.why.state.verdict
        return selection_of(self.key, self.job, self.facts, verdict, left=self.left_queue)

    def undo_one(self) -> bool:
        """Escape stops a look, a search, closes its line or a chart before it leaves the
        screen."""
        if TABS[self.tab] == "Why":
            return self.look.stop("the look at its nodes was stopped")
        if TABS[self.tab] == "GPUs":
            return self.gpus.step_back()
        return TABS[self.tab] == "Logs" and self.logs.step_back()

    def on_screen_suspend(self) -> None:
        """Another screen is on top: nobody looks at the nodes or the GPUs now."""
        super().on_screen_suspend()
        self.look.stop("the look at its nodes ended when another screen was opened")
        self.gpus.hide()

    def on_screen_resume(self) -> None:
        super().on_screen_resume()
        if TABS[self.tab] == "GPUs":
            self.gpus.show()
