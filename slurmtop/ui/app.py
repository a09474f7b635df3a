"""The app: holds the services and the queue, and hands keys and news to its screens."""

from collections.abc import Callable

from textual import events
from textual.app import App
from textual.message import Message
from textual.screen import Screen

from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job
from slurmtop.model.snapshot import SourceHealth
from slurmtop.store.jobs import JobBook, JobEvent
from slurmtop.ui.bindings import bindings_for, keymap_of
from slurmtop.ui.feed import QueueFeed
from slurmtop.ui.messages import HealthChanged, QueueChanged, RefreshAsked, SecondPassed
from slurmtop.ui.services import Services


class SlurmtopApp(App[None]):
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
        self.services = services
        self.feed = QueueFeed(services, self._events_came, self._health_came)
        self.last_job: JobKey | None = None

    @property
    def book(self) -> JobBook:
        return self.feed.book

    @property
    def health(self) -> SourceHealth:
        return self.feed.health

    def get_default_screen(self) -> Screen[None]:
        from slurmtop.ui.screens.jobs import JobsScreen

        return JobsScreen()

    def on_mount(self) -> None:
        self.set_keymap(keymap_of(self.services.config))
        self._start_feed()
        self.run_worker(self._run_seconds(), group="seconds", exit_on_error=False)

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
            self.tell_screens(SecondPassed)

    def tell_screens(self, make: Callable[[], Message]) -> None:
        """Post a message to every screen on the stack, each its own."""
        for screen in self.screen_stack:
            screen.post_message(make())

    def _events_came(self, events_: tuple[JobEvent, ...]) -> None:
        self.tell_screens(lambda: QueueChanged(events_))

    def _health_came(self, health: SourceHealth) -> None:
        self.tell_screens(lambda: HealthChanged(health))

    def job_now(self, key: JobKey) -> Job | None:
        """The newest record of a job; None where the queue never showed it."""
        return self.book.get(key)

    def open_job(self, key: JobKey) -> None:
        """Show the Job screen of ``key`` on top of the queue."""
        from slurmtop.ui.screens.job import JobScreen

        self.last_job = key
        self.push_screen(JobScreen(key))

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.InputEvent) and not event.is_forwarded:
            self.feed.person_acted()
        await super().on_event(event)

    def action_refresh_now(self) -> None:
        if self.feed.refresh_now():
            self.screen.post_message(RefreshAsked())

    def action_show_jobs(self) -> None:
        while len(self.screen_stack) > 1:
            self.pop_screen()

    async def action_back(self) -> None:
        if len(self.screen_stack) > 1:
            self.pop_screen()
