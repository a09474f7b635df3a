"""The app: holds the services and the queue, and hands keys and news to its screens."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from textual import events
from textual.command import CommandPalette
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Input
from textual.worker import Worker, WorkerState

from slurmtop.control.plan import read_only_text
from slurmtop.control.save_first import is_suspect
from slurmtop.model.facts import JobFacts
from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job
from slurmtop.model.snapshot import SourceHealth
from slurmtop.model.verdict import Verdict
from slurmtop.store.jobs import JobBook, JobEvent
from slurmtop.ui.bindings import bindings_for, keymap_of, keys_of
from slurmtop.ui.commands import SlurmtopCommands
from slurmtop.ui.feed import QueueFeed
from slurmtop.ui.gpu_feed import GpuFeed
from slurmtop.ui.keys import KEYS, Level
from slurmtop.ui.messages import (
    GpusChanged,
    HealthChanged,
    NodesChanged,
    QueueChanged,
    RefreshAsked,
    SecondPassed,
    SuspectsChanged,
)
from slurmtop.ui.nodes_feed import NodesFeed
from slurmtop.ui.present.health import HealthWords
from slurmtop.ui.present.leaving import Underway
from slurmtop.ui.screens.base import BaseScreen
from slurmtop.ui.screens.command_log import CommandLogScreen
from slurmtop.ui.screens.help import HelpScreen
from slurmtop.ui.screens.jobs import JobsScreen
from slurmtop.ui.screens.leave import LeaveScreen
from slurmtop.ui.services import Services
from slurmtop.ui.themed import ThemedApp


class SlurmtopApp(ThemedApp):
    """What screens may use: ``services``, ``book``, ``health``, ``open_job``, ``job_now``.

    Every screen on the stack is told of :class:`QueueChanged`, :class:`HealthChanged` and
    :class:`SecondPassed`; only the top one of :class:`RefreshAsked`.
    """

    TITLE = "slurmtop"
    BINDINGS = bindings_for("app")
    ENABLE_COMMAND_PALETTE = False
    ESCAPE_TO_MINIMIZE = False

    def __init__(self, services: Services) -> None:
        super().__init__()
        self.services = replace(services, gather_facts=self._gather_facts)
        self._gather = services.gather_facts
        self.own_keys, key_troubles = keymap_of(services.config)
        self.feed = QueueFeed(services, self._events_came, self._health_came)
        self.gpus = GpuFeed(services, lambda: self.book, self._gpus_came, self._broke)
        self.nodes = NodesFeed(services, lambda: self.tell_screens(NodesChanged))
        self.last_job: JobKey | None = None
        self.suspects: set[JobKey] = set()
        """Jobs whose last verdict here was that something is wrong with them."""
        self.underway: list[Underway] = []
        """Actions between the yes and their outcome."""
        self._unseen: Screen[Any] | None = None
        self._troubles = [*services.config.notes, *key_troubles]

    @property
    def book(self) -> JobBook:
        return self.feed.book

    def last_verdict(self, key: JobKey, verdict: Verdict | None) -> None:
        """Remember whether a job is a suspect: it needs somebody, and what is known of it is saved
        before it is ended."""
        if verdict is None or is_suspect(verdict) == (key in self.suspects):
            return
        (self.suspects.add if is_suspect(verdict) else self.suspects.discard)(key)
        self.tell_screens(SuspectsChanged)

    @property
    def health(self) -> SourceHealth:
        return self.feed.health

    def get_default_screen(self) -> Screen[None]:
        return JobsScreen()

    def on_mount(self) -> None:
        self.set_keymap(self.own_keys)
        self.start_theme(self.services.config.theme)
        for sentence in (*self.theme_troubles, *self._troubles):
            self.notify(sentence, severity="warning", markup=False, timeout=12)
        self._start_feed()
        self.run_worker(self._run_seconds(), group="seconds", exit_on_error=False)

    # The queue

    def _start_feed(self) -> None:
        self.run_worker(self.feed.run(), group="queue", exclusive=True, exit_on_error=False)

    def show_all_users(self, yes: bool) -> None:
        """Ask for everybody's jobs, or for one's own only."""
        if self.feed.ask_for(all_users=yes):
            self._start_feed()

    async def _run_seconds(self) -> None:
        while True:
            await self.services.clock.sleep(1.0)
            self.feed.second_passed()
            self.gpus.second_passed(idle=self.feed.idle)
            self.tell_screens(SecondPassed)

    def tell_screens(self, make: Callable[[], Message]) -> None:
        """Post a message to every screen on the stack, each its own."""
        for screen in self.screen_stack:
            screen.post_message(make())

    def _events_came(self, events_: tuple[JobEvent, ...]) -> None:
        self.tell_screens(lambda: QueueChanged(events_))

    def _health_came(self, health: SourceHealth) -> None:
        self.tell_screens(lambda: HealthChanged(health))

    def _gpus_came(self, hosts: frozenset[str]) -> None:
        self.tell_screens(lambda: GpusChanged(hosts))

    async def on_unmount(self) -> None:
        await self.gpus.aclose()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if event.state is WorkerState.ERROR:
            self._broke(event.worker.error)

    def _broke(self, error: BaseException | None) -> None:
        """A fault of ours in the background must show; the data grows old and says so."""
        sentence = f"slurmtop: a background task broke ({error!r}); r tries again"
        self.notify(sentence, severity="error", markup=False, timeout=30)

    def queue_words(self) -> HealthWords:
        """How fresh the queue is, in words."""
        return self.feed.words()

    def known_at(self) -> datetime:
        """Up to when it is known what jobs do: now, or the last answer where that is old."""
        sampled_at = self.book.sampled_at
        old = sampled_at is not None and self.queue_words().old_rows
        return sampled_at if old and sampled_at is not None else self.services.clock.now()

    # Jobs

    def job_now(self, key: JobKey) -> Job | None:
        """The newest record of a job; None where the queue never showed it."""
        return self.book.get(key)

    def open_job(self, key: JobKey) -> None:
        """Show the Job screen of ``key`` on top of the queue."""
        from slurmtop.ui.screens.job import JobScreen

        self.last_job = key
        self.push_screen(JobScreen(key))

    async def _gather_facts(
        self,
        asked: str,
        *,
        job: Job | None = None,
        siblings: tuple[Job, ...] = (),
        ask_start: bool = False,
    ) -> JobFacts:
        """What a screen learns of a job, the queue learns too."""
        facts = await self._gather(asked, job=job, siblings=siblings, ask_start=ask_start)
        if job is not None:
            self.feed.learn(job, facts)
        return facts

    # Keys

    def push_screen(self, *args: Any, **options: Any) -> Any:
        """As ever; and remember that nobody has seen the new screen yet."""
        pushed = super().push_screen(*args, **options)
        self._unseen = self.screen
        self._unseen.call_after_refresh(self._seen, self._unseen)
        return pushed

    def _seen(self, screen: Screen[Any]) -> None:
        if self._unseen is screen:
            self._unseen = None

    async def on_event(self, event: events.Event) -> None:
        """A key acts at once and in order, unless a line is being typed.

        Textual looks a key up only after it went through the focused widget's queue, so in a
        burst the keys typed after ``/`` would act as commands before the focus has moved. Keys
        for a screen that was not painted yet are dropped: nobody answers a dialog unseen.
        """
        if isinstance(event, events.InputEvent) and not event.is_forwarded:
            self.feed.person_acted()
            if self.screen is self._unseen:
                return
            if isinstance(event, events.Key) and not isinstance(self.focused, Input):
                if self._kept_back(event.key):
                    return
                for priority in (True, False):
                    if await self._check_bindings(event.key, priority=priority):
                        return
        await super().on_event(event)

    def _kept_back(self, key: str) -> bool:
        """Tell why a key that would change something does nothing in read-only mode."""
        screen = self.screen
        if not self.services.read_only or not isinstance(screen, BaseScreen):
            return False
        for entry in KEYS:
            acts = entry.level is not Level.SAFE and not set(entry.scopes).isdisjoint(screen.SCOPES)
            if acts and key in keys_of(entry, self.own_keys):
                how = read_only_text(self.services.config.read_only_from, "change")
                sentence = f"{entry.label} does nothing here: {how}"
                self.notify(sentence, markup=False, severity="warning", timeout=8)
                return True
        return False

    async def action_quit(self) -> None:
        """Leave; where an action is on its way only after a question."""
        if not self.underway:
            self.exit()
            return

        def decided(yes: bool | None) -> None:
            if yes is True:
                self.exit()

        if not isinstance(self.screen, LeaveScreen):
            self.push_screen(LeaveScreen(self.underway), decided)

    def action_refresh_now(self) -> None:
        if not self.feed.refresh_now():
            return
        if not any(worker.group == "queue" and worker.is_running for worker in self.workers):
            self._start_feed()
        self.screen.post_message(RefreshAsked())

    def action_show_jobs(self) -> None:
        while len(self.screen_stack) > 1:
            self.pop_screen()

    def action_show_job(self) -> None:
        screen = self.screen
        key = screen.current_job if isinstance(screen, BaseScreen) else None
        key = key or self.last_job
        if key is None:
            self.notify("there is no job to open", timeout=3)
        elif len(self.screen_stack) == 1 or "nodes" in getattr(screen, "SCOPES", ()):
            self.open_job(key)

    def action_show_nodes(self) -> None:
        """The Nodes screen on top of the queue; where it lies below a job, back to it."""
        from slurmtop.ui.screens.nodes import NodesScreen

        while len(self.screen_stack) > 1 and not isinstance(self.screen, NodesScreen):
            self.pop_screen()
        if not isinstance(self.screen, NodesScreen):
            self.push_screen(NodesScreen())

    async def action_back(self) -> None:
        screen = self.screen
        if isinstance(screen, BaseScreen) and screen.undo_one():
            return
        if len(self.screen_stack) > 1:
            self.pop_screen()

    def action_help(self) -> None:
        screen = self.screen
        scopes = screen.SCOPES if isinstance(screen, BaseScreen) else ()
        self.push_screen(HelpScreen(scopes, self.own_keys, self.services.read_only))

    def action_palette(self) -> None:
        self.push_screen(CommandPalette(providers=[SlurmtopCommands], id="palette"))

    def action_commands(self) -> None:
        self.push_screen(CommandLogScreen())
