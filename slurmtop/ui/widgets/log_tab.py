"""The Logs tab: which log, how often it is looked at, searching in it."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import tzinfo

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical

from slurmtop.model.facts import LogFacts, LogLine, LogStatus
from slurmtop.model.job import Job
from slurmtop.model.ports import Clock, Runner
from slurmtop.ui.log_errors import first_error_of
from slurmtop.ui.log_pager import CannotRead, LogPager
from slurmtop.ui.present import log as present
from slurmtop.ui.present.job import moment_text
from slurmtop.ui.present.spans import Line
from slurmtop.ui.widgets.lines import LinesBox, LinesView
from slurmtop.ui.widgets.log_view import LogView
from slurmtop.ui.widgets.typed_line import TypedLine, focus_now

#: The label of a file that is no log of the job, opened because a proof stands in it.
PROOF = "proof"
FOLLOW_S = 2.0
REST_S = 15.0
#: Keys that end the typing of a search, and whether it is searched for.
_LEAVING = {"enter": True, "escape": False}


class LogTab(Vertical):
    """Looks at a log only between :meth:`show` and :meth:`hide`.

    One thing reads at a time; a search runs beside it, in blocks, and can be stopped.
    """

    DEFAULT_CSS = """
    LogTab > #log-bar { height: 1; }
    LogTab > #log-search { height: 1; border: none; padding: 0; display: none; }
    LogTab > #log-empty { display: none; }
    """

    def __init__(
        self, runner: Runner, clock: Clock, *, user: str, zone: tzinfo | None, id: str
    ) -> None:
        super().__init__(id=id)
        self._runner, self._clock, self._user, self._zone = runner, clock, user, zone
        self._logs: tuple[LogFacts, ...] = ()
        self._job: Job | None = None
        self._label = "stdout"
        self._pager: LogPager | None = None
        self._asked = False
        self._shown = False
        self._looked_at = -REST_S
        self._busy = self._said = ""
        self._reading = asyncio.Lock()
        self.view = LogView(id="log-view")
        self._bar = LinesBox(self._bar_lines, id="log-bar")
        self._empty = LinesView(self._empty_lines, id="log-empty")
        self._search_line = TypedLine(
            self._leave_line, _LEAVING, placeholder="search, esc closes", id="log-search"
        )

    def compose(self) -> ComposeResult:
        yield self._bar
        yield self.view
        yield self._empty
        yield self._search_line

    # What is known of the logs

    def set_logs(self, logs: tuple[LogFacts, ...], job: Job | None) -> None:
        """Take what the facts say about where the logs are. A log in view stays in view.

        A path is remembered: later Slurm may no longer know it, and the file is still there.
        """
        known = {log.label: log for log in self._logs if log.path is not None}
        merged = tuple(log if log.path else known.get(log.label, log) for log in logs)
        proof = tuple(log for log in self._logs if log.label == PROOF)
        self._logs, self._job, self._asked = (*merged, *proof) if merged else self._logs, job, True
        logs = self._logs
        if logs and all(log.label != self._label for log in logs):
            self._label = logs[0].label
        self._open()

    def open_at(self, path: str, *, line: int | None = None, offset: int | None = None) -> None:
        """Show the log at ``path`` at a line, or at the line that starts at ``offset``, or its end.

        A file that is none of the job's logs is shown beside them as long as the screen is open.
        """
        log = next((log for log in self._logs if log.path == path), None)
        if log is None:
            log = LogFacts(label=PROOF, path=path, status=LogStatus.READ)
            self._logs = (*(one for one in self._logs if one.label != PROOF), log)
        self._asked = True
        self._label = log.label
        self._open()
        if line is None and offset is None:
            self.to_end()
            return
        self.view.follow = False
        self._start(self._go_to(line, offset))

    async def _go_to(self, line: int | None, offset: int | None) -> None:
        await self.look()
        pager = self._pager
        if pager is None or pager.status is not LogStatus.READ:
            return
        try:
            at = await pager.place_of(line, offset, self._progress)
        except CannotRead as error:
            self._say(f"cannot read: {error}")
            return
        hit = None if at is None else LogLine("", line, at)
        await self._arrived(hit, "the log is shorter now: it was written anew")

    def _facts(self) -> LogFacts | None:
        return next((log for log in self._logs if log.label == self._label), None)

    @property
    def _path(self) -> str | None:
        facts = self._facts()
        return facts.path if facts is not None else None

    def _open(self) -> None:
        path = self._path
        if path is None:
            self._pager = None
        elif self._pager is None or self._pager.path != path:
            self._stop_search()
            self._pager = LogPager(self._runner, path, self._clock)
            self._looked_at = -REST_S
            self.view.follow = True
            self.view.show_window(self._pager.window)
        self._paint()
        if self._shown:
            self._start_polling()

    # Looking at it now and then

    def show(self) -> None:
        """The tab came in sight: look now, then every 2 s while a log
        of a job that has not ended is followed, else every 15 s."""
        self._shown = True
        focus_now(self.view)
        self._start_polling()

    def hide(self) -> None:
        """The tab is out of sight: nothing is looked at any more."""
        self._shown = False
        self._stop_search()
        self.workers.cancel_group(self, "log-poll")

    def _start_polling(self) -> None:
        self.run_worker(self._poll_loop(), group="log-poll", exclusive=True, exit_on_error=False)

    async def _poll_loop(self) -> None:
        while self._pager is not None:
            wait = self._looked_at + FOLLOW_S - self._clock.monotonic()
            if wait > 0:
                await self._clock.sleep(wait)
            await self.look()
            await self._clock.sleep(FOLLOW_S if self._may_grow() else REST_S)

    def _may_grow(self) -> bool:
        """Is somebody waiting for more of a log to which more may be added?"""
        reads = self._pager is not None and self._pager.status is LogStatus.READ
        ended = self._job is not None and self._job.state.ended
        return self.view.follow and reads and not ended

    async def look(self) -> None:
        """One stat, and what is new; an unchanged file is not read."""
        pager = self._pager
        if pager is None:
            return
        self._looked_at = self._clock.monotonic()
        async with self._reading:
            polled = await pager.poll(self._marker)
        if pager is not self._pager:
            return
        if polled.changed:
            self.view.rows_changed(lost=polled.lost)
        self._paint()

    def _marker(self, what: str) -> str:
        now = self._clock.now()
        return present.marker_text(what, moment_text(now, now, self._zone))

    # Painting

    def _paint(self) -> None:
        empty = bool(self._empty_lines(80))
        self._empty.display = empty
        self.view.display = not empty
        self._empty.rebuild()
        self._bar.refresh()

    def _status(self) -> LogStatus | None:
        if self._pager is not None:
            return self._pager.status
        return LogStatus.UNKNOWN_PATH if self._asked else None

    def _empty_lines(self, width: int) -> tuple[Line, ...]:
        facts, pager = self._facts(), self._pager
        why = pager.why if pager is not None else facts.why if facts is not None else ""
        return present.no_log_lines(self._status(), self._path, why, self._job, self._user, width)

    def _bar_lines(self, width: int) -> tuple[Line, ...]:
        pager, view = self._pager, self.view
        reads = pager is not None and pager.status is LogStatus.READ
        bar = present.LogBar(
            label=self._label,
            path=self._path,
            size=view.window.size if reads else None,
            at=view.top_offset,
            follow=view.follow and reads,
            at_end=view.at_end,
            busy=self._busy,
            said=self._said,
        )
        return (present.bar_line(bar, width),)

    @on(LogView.Scrolled)
    def _scrolled(self) -> None:
        self._bar.refresh()

    @on(LogView.EdgeReached)
    def _edge(self, event: LogView.EdgeReached) -> None:
        work = self._read_older() if event.above else self._read_newer()
        group = "log-older" if event.above else "log-newer"
        if all(worker.group != group or worker.is_finished for worker in self.workers):
            self.run_worker(work, group=group, exit_on_error=False)
        else:
            work.close()

    async def _read_older(self) -> None:
        pager = self._pager
        if pager is None:
            return
        async with self._reading:
            came = await self._guarded(pager.older)
        if came and pager is self._pager:
            self.view.rows_changed(came=came)
            self._bar.refresh()

    async def _read_newer(self) -> None:
        pager = self._pager
        if pager is None:
            return
        async with self._reading:
            lost = await self._guarded(pager.newer)
        if pager is self._pager:
            self.view.rows_changed(lost=lost or 0)
            self._bar.refresh()

    async def _guarded(self, read: Callable[[], Awaitable[int]]) -> int | None:
        """A read that fails is said in the bar; what is shown stays."""
        try:
            return await read()
        except CannotRead as error:
            self._say(f"cannot read: {error}")
            return None

    def _say(self, sentence: str) -> None:
        self._busy, self._said = "", sentence
        self._bar.refresh()

    # Keys

    def toggle_follow(self) -> None:
        """Follow the end of the log, or stop where it is."""
        self.view.follow = not self.view.follow
        self._said = ""
        if self.view.follow:
            self.to_end()
        self._start_polling()
        self._bar.refresh()

    def scroll_view(self, how: str) -> None:
        """Scroll up, down, page_up, page_down, home, end, left or right."""
        if how == "home":
            self.to_start()
        elif how == "end":
            self.to_end()
        else:
            self.view.scroll_by(how)

    def to_end(self) -> None:
        """Show the last line and follow it."""
        self.view.follow = True
        self.view.hit = None
        self.run_worker(self._to_end(), group="log-jump", exclusive=True, exit_on_error=False)

    async def _to_end(self) -> None:
        pager = self._pager
        if pager is None:
            return
        if not pager.window.at_end:
            async with self._reading:
                await self._guarded_none(pager.to_end())
        self.view.rows_changed(to_end=True)
        self._bar.refresh()

    def to_start(self) -> None:
        """Show the first line of the file."""
        self.view.follow = False
        self.run_worker(
            self._go(LogLine("", 1, 0)), group="log-jump", exclusive=True, exit_on_error=False
        )

    def other_stream(self) -> None:
        """Change between stdout and stderr."""
        labels = [log.label for log in self._logs]
        if len(labels) < 2:
            self._say("stdout and stderr are one file" if labels else "no log is known yet")
            return
        self._label = labels[(labels.index(self._label) + 1) % len(labels)]
        self._said = ""
        self._open()

    def open_search(self) -> None:
        """Open the line for the words to look for."""
        self._search_line.value = ""
        self._search_line.display = True
        self._search_line.enter()

    def step_back(self) -> bool:
        """Stop a search or close its line; False where there is nothing of that to do."""
        if self._busy:
            self._stop_search()
            self._say("search stopped")
            return True
        if self._search_line.display:
            self._leave_line(False)
            return True
        return False

    def _stop_search(self) -> None:
        self.workers.cancel_group(self, "log-search")
        self._busy = ""

    def _leave_line(self, search: bool) -> None:
        """Close the line; ``search`` for what stands in it."""
        focus_now(self.view if self.view.display else self._empty)
        self._search_line.display = False
        if not search:
            return
        self.view.words = self._search_line.value
        self.view.hit = None
        self.view.refresh()
        if self.view.words:
            self.next_match()

    def next_match(self, *, backwards: bool = False) -> None:
        """Look for the next line with the words, round the end of the file if need be."""
        if not self.view.words:
            self._say("nothing to search for: press / first")
            return
        self._start(self._search(backwards))

    def first_error(self) -> None:
        """Jump to the first line that names an error."""
        self._start(self._first_error())

    def _start(self, work: Awaitable[None]) -> None:
        self._said = ""
        self.run_worker(work, group="log-search", exclusive=True, exit_on_error=False)

    async def _search(self, backwards: bool) -> None:
        pager, view = self._pager, self.view
        if pager is None or pager.status is not LogStatus.READ:
            return
        try:
            at = view.top_offset or 0
            if view.hit is not None:
                at = view.hit.offset if backwards else await pager.line_after(view.hit.offset)
            hit = await pager.find(view.words, at, backwards=backwards, progress=self._progress)
        except CannotRead as error:
            self._say(f"cannot search: {error}")
            return
        await self._arrived(hit, f"not in this log: {view.words}")

    async def _first_error(self) -> None:
        pager, facts = self._pager, self._facts()
        if pager is None or pager.status is not LogStatus.READ:
            return
        try:
            hit = await first_error_of(pager, facts, self._progress)
        except CannotRead as error:
            self._say(f"cannot search: {error}")
            return
        await self._arrived(hit, "no line that names an error")

    async def _arrived(self, hit: LogLine | None, otherwise: str) -> None:
        self._busy = ""
        if hit is None:
            self._say(otherwise)
            return
        self._said = f"line {hit.number:,}" if hit.number is not None else ""
        await self._go(hit)
        self._bar.refresh()

    async def _go(self, hit: LogLine) -> None:
        pager = self._pager
        if pager is None:
            return
        self.view.follow = False
        if not self.view.show_hit(hit):
            async with self._reading:
                await self._guarded_none(pager.show_around(hit.offset))
            self.view.rows_changed()
            self.view.show_hit(hit)

    async def _guarded_none(self, read: Awaitable[None]) -> None:
        try:
            await read
        except CannotRead as error:
            self._say(f"cannot read: {error}")

    def _progress(self, done: int, total: int) -> None:
        self._busy = present.search_progress(done, total)
        self._bar.refresh()
