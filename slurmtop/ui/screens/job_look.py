"""The look at the nodes of the job that a Job screen shows: one at a time, ended with the tab."""

import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from textual.worker import Worker, WorkerError

from slurmtop.model.facts import JobFacts
from slurmtop.model.live import LiveFacts
from slurmtop.parse.slurm.hostlist import hosts_in
from slurmtop.ui.present.looking import EVERY_S, LIMIT_S, LookState

if TYPE_CHECKING:
    from slurmtop.ui.screens.base import BaseScreen

#: News are judged together, at most so often, and never for more than a third of the time.
GATHER_S = 0.5
_SHARE = 3.0

#: Reads the logs of the facts anew; None where there is nothing to look for any more.
Fresh = Callable[[JobFacts, bool], Awaitable[JobFacts | None]]
#: Hears what the nodes have told so far, and whether the look goes on.
OnNews = Callable[[LiveFacts, bool], None]


class NodeLook:
    """Looks when told to, hands on what comes, and stops when told to.

    ``fresh`` reads the logs again right before: whether they grow is told by the look, and what was
    written before it is no growth. ``on_news`` hears of it all, ``on_change`` that :attr:`state` is
    another one. A look that was stopped is waited for before the next one begins.
    """

    def __init__(
        self, screen: "BaseScreen", fresh: Fresh, on_news: OnNews, on_change: Callable[[], None]
    ) -> None:
        self._screen, self._fresh = screen, fresh
        self._on_news, self._on_change = on_news, on_change
        self.state: LookState | None = None
        self._worker: Worker[None] | None = None
        self._begun_at: float | None = None
        self._told_at = 0.0
        self._took_s = 0.0
        self._waiting: LiveFacts | None = None

    @property
    def going(self) -> bool:
        return self.state is not None and self.state.going

    def rested(self) -> bool:
        """May a look begin that nobody asked for?"""
        return not self.going and (
            self._begun_at is None or self._monotonic() - self._begun_at >= EVERY_S
        )

    def begin(self, facts: JobFacts, *, asked: bool) -> bool:
        """Start a look; False where one goes on already."""
        if self.going or self._screen.services.look_at_nodes is None:
            return False
        before = self._worker
        job = facts.job
        self._begun_at = self._monotonic()
        self._waiting = None
        now = self._screen.services.clock.now()
        hosts = hosts_in(job.nodes) if job is not None else ()
        self.state = LookState(began_at=now, hosts=hosts, asked=asked)
        self._worker = self._screen.run_worker(
            self._look(facts, asked, before), group="look", exit_on_error=False
        )
        self._on_change()
        return True

    def stop(self, sentence: str) -> bool:
        """End the look that goes on, with what is to be said of it; False where there is none."""
        if self.state is None or not self.state.going:
            return False
        if self._worker is not None:
            self._worker.cancel()
        self._ended(sentence)
        return True

    def second_passed(self) -> None:
        """Hand on what waits; give up a look that does not end."""
        if not self.going:
            return
        if self._begun_at is not None and self._monotonic() - self._begun_at >= LIMIT_S:
            self._hand_on()
            self.stop(f"the look did not end within {LIMIT_S:.0f} s and was given up")
        elif self._monotonic() - self._told_at >= self._gap_s:
            self._hand_on()

    def broke(self, error: BaseException | None) -> None:
        """A fault of ours ended it."""
        self._ended(f"the look at its nodes broke: {error}")

    async def _look(self, facts: JobFacts, asked: bool, before: Worker[None] | None) -> None:
        look_at_nodes = self._screen.services.look_at_nodes
        if look_at_nodes is None:
            return
        if before is not None and not before.is_finished:
            with contextlib.suppress(WorkerError):
                await before.wait()
        newest = await self._fresh(facts, asked)
        if newest is not None:
            async with contextlib.aclosing(look_at_nodes(newest, asked=asked)) as news:
                async for live in news:
                    self._came(live)
            self._hand_on(last=True)
        self._ended("")

    def _came(self, live: LiveFacts) -> None:
        self._waiting = live
        if self.state is not None:
            self.state = replace(self.state, newest=live)
        if self._monotonic() - self._told_at >= self._gap_s:
            self._hand_on()

    @property
    def _gap_s(self) -> float:
        return max(GATHER_S, _SHARE * self._took_s)

    def _hand_on(self, *, last: bool = False) -> None:
        live, self._waiting = self._waiting, None
        if live is None and last and self.state is not None:
            live = self.state.newest
        if live is None:
            return
        began = self._monotonic()
        self._on_news(live, not last)
        self._told_at = self._monotonic()
        self._took_s = self._told_at - began

    def _ended(self, sentence: str) -> None:
        if self.state is not None and self.state.going:
            self.state = replace(self.state, going=False, ended=sentence)
            self._waiting = None
            self._on_change()

    def _monotonic(self) -> float:
        return self._screen.services.clock.monotonic()
