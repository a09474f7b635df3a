"""The queue as it comes in: one poller at a time, restarted when what is asked changes."""

from collections.abc import Callable
from dataclasses import replace

from slurmtop.model.facts import JobFacts
from slurmtop.model.job import Job
from slurmtop.model.snapshot import Parsed, Snapshot, SourceHealth
from slurmtop.store.jobs import JobBook, JobEvent
from slurmtop.ui.present.health import HealthWords, describe_health
from slurmtop.ui.services import QueuePoller, Services

REFRESH_FLOOR_S = 2.0
IDLE_AFTER_S = 600.0
IDLE_FACTOR = 6.0


class QueueFeed:
    """Fills a :class:`JobBook` and says so.

    ``run`` is the one task; ``ask_for`` changes whose jobs are asked for. With no key for
    ten minutes the wait becomes six times as long; the next key restores it and asks.
    """

    def __init__(
        self,
        services: Services,
        on_events: Callable[[tuple[JobEvent, ...]], None],
        on_health: Callable[[SourceHealth], None],
    ) -> None:
        self._services = services
        self._on_events = on_events
        self._on_health = on_health
        self.all_users = services.config.all_users
        self.book = JobBook()
        self.health = SourceHealth("queue")
        self._poller: QueuePoller | None = None
        self._refreshed_at = self._started_at = services.clock.monotonic() - REFRESH_FLOOR_S
        self._active_at = services.clock.monotonic()
        self._slow = False

    @property
    def idle(self) -> bool:
        return self._slow

    @property
    def widening(self) -> bool:
        """True while what is shown is older than the wish for other people's jobs."""
        return self.book.sampled_at is not None and self.book.user != self._user

    @property
    def shows_all_users(self) -> bool:
        """Is what is shown everybody's? It stays so until the answer to another wish."""
        return self.all_users if self.book.sampled_at is None else self.book.user is None

    @property
    def _user(self) -> str | None:
        return None if self.all_users else self._services.user

    async def run(self) -> None:
        """Ask until cancelled. To be started anew after ``ask_for`` said True."""
        user = self._user
        clock = self._services.clock
        await clock.sleep(self._started_at + REFRESH_FLOOR_S - clock.monotonic())
        self._started_at = clock.monotonic()

        def answered(answer: Snapshot[Parsed[Job]]) -> None:
            # One poller at a time: an answer that looks older came after the clock stepped back.
            self.book.rewind(answer.sampled_at)
            self._on_events(self.book.apply(answer.value.rows, answer.sampled_at, user=user))

        self._poller = self._services.open_queue(
            user=user, on_value=answered, on_health=self._health_came
        )
        if self._slow:
            self._poller.slow_down(IDLE_FACTOR)
        await self._poller.run()

    def ask_for(self, *, all_users: bool) -> bool:
        """Everybody's jobs, or one's own. True where that is a change."""
        changed = all_users != self.all_users
        self.all_users = all_users
        return changed

    def refresh_now(self) -> bool:
        """Ask now; False where the last press was less than two seconds ago."""
        now = self._services.clock.monotonic()
        if now - self._refreshed_at < REFRESH_FLOOR_S:
            return False
        self._refreshed_at = now
        if self._poller is not None:
            self._poller.poke()
        return True

    def person_acted(self) -> None:
        self._active_at = self._services.clock.monotonic()
        if self._slow:
            self._slow = False
            if self._poller is not None:
                self._poller.slow_down(1.0)
                self._poller.poke()

    def second_passed(self) -> None:
        if self._slow or self._services.clock.monotonic() - self._active_at < IDLE_AFTER_S:
            return
        self._slow = True
        if self._poller is not None:
            self._poller.slow_down(IDLE_FACTOR)

    def words(self) -> HealthWords:
        """How fresh the queue is, in words."""
        services = self._services
        return describe_health(
            self.health,
            services.data_now(),
            services.zone,
            what="everybody's jobs" if self.all_users else "your jobs",
            widening=self.widening,
            recorded=services.recorded_at() is not None,
        )

    def learn(self, job: Job, facts: JobFacts) -> None:
        """Take over what accounting says of a job that left the queue.

        A number is used again some day: a record with another submit time is another job.
        """
        record = facts.history[0] if facts.history else None
        if record is None or record.submit != job.submit:
            return
        events = self.book.settle(job.key, record.state, facts.now, exit=facts.exit)
        if events:
            self._on_events(events)

    def _health_came(self, health: SourceHealth) -> None:
        if health.good_at is None:
            health = _carried_on(self.health, health)
        self.health = health
        self._on_health(health)


def _carried_on(former: SourceHealth, health: SourceHealth) -> SourceHealth:
    """``health`` of a poller without an answer yet, with what the one before it knew.

    Its answers are on the screen, and an outage is not over because somebody else asks.
    """
    failure = health.failure
    if failure is None and former.failure is not None:
        failure = replace(former.failure, retry_after_s=None)
    return replace(
        health,
        good_at=former.good_at,
        failure=failure,
        failing_since=former.failing_since or health.failing_since,
    )
