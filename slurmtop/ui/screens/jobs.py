"""The Jobs screen: the queue, one row a job, an array or a het job in one row."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from slurmtop.control.actions import Target
from slurmtop.control.outcome import Outcome, Result
from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job
from slurmtop.parse.slurm.hostlist import hosts_or_text
from slurmtop.store.query import parse_query
from slurmtop.store.rows import SORTS, Row
from slurmtop.store.view import JobView
from slurmtop.ui.actions_flow import Selection
from slurmtop.ui.bindings import bindings_for
from slurmtop.ui.messages import (
    GpusChanged,
    HealthChanged,
    QueueChanged,
    SecondPassed,
    SuspectsChanged,
)
from slurmtop.ui.present import header as head
from slurmtop.ui.present import jobs as present
from slurmtop.ui.present.gpu_use import use_span
from slurmtop.ui.present.health import HealthWords
from slurmtop.ui.present.selection import jobs_text
from slurmtop.ui.present.spans import Line, Span
from slurmtop.ui.screens.acting import ActingScreen
from slurmtop.ui.screens.listing import ListingScreen
from slurmtop.ui.widgets.filter_bar import FilterBar
from slurmtop.ui.widgets.footer import KeyFooter
from slurmtop.ui.widgets.lines import LinesBox
from slurmtop.ui.widgets.rows import Rows

_ROW_ACTIONS = frozenset({"open", "mark", "mark_range", "mark_all", "copy"})
_OVER = frozenset({Result.DONE, Result.OVER, Result.NO_SUCH_JOB})


def _group_key(target: Target) -> JobKey:
    return JobKey(target.key.cluster, target.base)


class JobsScreen(ListingScreen, ActingScreen):
    """Keys change the view (``store.view``), which keeps cursor and marks by key."""

    ORDERS = SORTS
    SCOPES = ("jobs",)
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("jobs")
    DEFAULT_CSS = """
    JobsScreen > #queue-head { height: 2; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.view = JobView(
            problem=present.needs_somebody, suspect=self._is_suspect, expand=hosts_or_text
        )
        self._layout: tuple[tuple[int, bool, int, bool, int], present.Layout] | None = None
        self._id_cells = 6
        self._priority_cells = present.PRIO_WIDTH
        self._with_user = False
        self._head_lines: tuple[Line, ...] = ()
        self._head = LinesBox(lambda _width: self._head_lines, id="queue-head")
        self._rows: Rows[Row] = Rows(self, id="queue")
        self._filter = FilterBar(self._filter_by, self._rows)

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._filter
        yield self._rows
        yield KeyFooter()

    def on_mount(self) -> None:
        self._settle_on(self._rows)
        self.show()

    def on_resize(self) -> None:
        self.show()

    # News

    def on_queue_changed(self, event: QueueChanged) -> None:
        if self.view.update(self.tool.book, self.services.clock.now()):
            self.show()
        else:
            self._refresh_head()

    def on_suspects_changed(self, event: SuspectsChanged) -> None:
        if self.view.problems_only:
            self.view.set_problems_only(True)
            self.show()

    def _is_suspect(self, job: Job) -> bool:
        """Did the last verdict say so? Of a job that is over its record says it."""
        return not job.state.ended and job.key in self.tool.suspects

    def on_health_changed(self, event: HealthChanged) -> None:
        words = self._health()
        if words.old_rows != self._rows.old or not self.view.rows:
            self.show()
        else:
            self._refresh_head()

    def on_second_passed(self, event: SecondPassed) -> None:
        self._refresh_head()
        if self._health().old_rows != self._rows.old or not self.view.rows:
            self.show()
        self._rows.second_passed()

    def _health(self) -> HealthWords:
        return self.tool.queue_words()

    def on_gpus_changed(self, event: GpusChanged) -> None:
        """What was seen of a job's GPUs stands in its row; the first time a column is added."""
        if self._layout is not None and self._layout[0][3] != self.tool.gpus.knows_use:
            self._rows.repaint()
        else:
            self._rows.second_passed()

    # What is shown

    @property
    def listed(self) -> JobView:
        return self.view

    def show(self) -> None:
        """Put the rows of the view on the screen."""
        if not self.is_mounted:
            return
        view, words = self.view, self._health()
        rows = view.rows
        cells = max(self._id_cells, present.id_width(rows))
        with_user = self.tool.feed.shows_all_users
        digits = max(self._priority_cells, present.priority_width(rows))
        before = (self._id_cells, self._priority_cells, self._with_user)
        if (cells, digits, with_user) != before:
            self._id_cells, self._priority_cells, self._with_user = cells, digits, with_user
            self._rows.repaint()
        self._rows.show(rows, view.cursor_index, old=words.old_rows, notice=self._notice(words))
        if self._filter.display:
            self._filter.say(head.filter_message(view.query.error, view.shown, view.total))
        self._refresh_head()
        self.refresh_bindings()

    def _notice(self, words: HealthWords) -> tuple[Line, ...]:
        view, services = self.view, self.services
        if view.rows:
            return ()
        why = head.Emptiness(
            health=words,
            good_at=self.tool.health.good_at,
            all_users=self.tool.feed.shows_all_users,
            hidden=view.total,
            filter_text=view.query.text.strip(),
            filter_error=view.query.error,
            problems_only=view.problems_only,
            private_data=services.private_data,
        )
        return head.notice_lines(why, services.data_now(), self.size.width, services.zone)

    def _refresh_head(self) -> None:
        """Paint the header where it reads differently now; a long sentence takes a line more."""
        lines = self._make_head(self.size.width)
        if lines != self._head_lines:
            if len(lines) != len(self._head_lines):
                self._head.styles.height = len(lines)
            self._head_lines = lines
            self._head.refresh()

    def _make_head(self, width: int) -> tuple[Line, ...]:
        view, services, feed = self.view, self.services, self.tool.feed
        return head.header_lines(
            head.QueueHead(
                cluster=services.cluster_label or services.cluster,
                user=services.user,
                all_users=feed.shows_all_users,
                counts=view.totals() if self.tool.book.sampled_at is not None else None,
                health=self._health(),
                calls=services.calls_last_minute(),
                sort=view.sort,
                reverse=view.reverse,
                marked=len(view.marks),
                hidden=view.hidden_marks(),
                problems_only=view.problems_only,
                read_only=services.read_only,
                dry_run=services.dry_run,
                demo=services.demo,
                replay=self.recorded_text(),
                idle=feed.idle,
                private_data=services.private_data and feed.shows_all_users,
            ),
            width,
        )

    # The painter of the rows

    def header(self, width: int) -> Line:
        return present.header_line(self._columns(width), self.view.sort, self.view.reverse)

    def line(self, row: Row, width: int, *, cursor: bool) -> Line:
        return present.row_line(
            row, self._columns(width), self._at(), cursor=cursor, marked=self.marked(row)
        )

    def tick(self, row: Row) -> str:
        return present.tick_of(row, self._at())

    def marked(self, row: Row) -> bool:
        return self.view.is_marked(row)

    def _at(self) -> present.Now:
        """Old rows stand still at their last answer: nobody knows what has happened since."""
        wall = self.services.clock.now()
        sampled_at = self.tool.book.sampled_at
        still = sampled_at if self._rows.old and sampled_at is not None else wall
        return present.Now(still, self.services.user, wall, self._use)

    def _use(self, key: JobKey) -> Span:
        return use_span(self.tool.gpus.use_of(key), self.services.data_now())

    def _columns(self, width: int) -> present.Layout:
        use, digits = self.tool.gpus.knows_use, self._priority_cells
        key = (width, self._with_user, self._id_cells, use, digits)
        if self._layout is None or self._layout[0] != key:
            layout = present.lay_out(
                width,
                with_user=self._with_user,
                id_cells=self._id_cells,
                with_use=use,
                priority_cells=digits,
            )
            self._layout = (key, layout)
        return self._layout[1]

    # Keys

    def possible(self, action: str) -> bool:
        if action in _ROW_ACTIONS:
            return self.view.cursor_row is not None
        if action == "toggle_fold":
            row = self.view.cursor_row
            return row is not None and (row.group is not None or row.depth > 0)
        return True

    @property
    def current_job(self) -> JobKey | None:
        """The job under the cursor; of a group its first."""
        row = self.view.cursor_row
        return None if row is None else row.job.key

    def undo_one(self) -> bool:
        """Escape takes back a filter first, then the marks."""
        if self.view.query.text:
            self._filter.clear()
            return True
        if self.view.problems_only:
            self.action_problems()
            return True
        if self.view.marks:
            self.view.marks.clear()
            self.show()
            return True
        return False

    def action_open(self) -> None:
        row = self.view.cursor_row
        if row is None:
            return
        if row.group is not None:
            self.action_toggle_fold()
        else:
            self.tool.open_job(row.job.key)

    def action_toggle_fold(self) -> None:
        if self.view.toggle_fold():
            self.show()

    def action_cursor_up(self) -> None:
        self._move(self.view.cursor_index - 1)

    def action_cursor_down(self) -> None:
        self._move(self.view.cursor_index + 1)

    def action_page_up(self) -> None:
        self._move(self.view.cursor_index - self._rows.page)

    def action_page_down(self) -> None:
        self._move(self.view.cursor_index + self._rows.page)

    def action_cursor_top(self) -> None:
        self._move(0)

    def action_cursor_bottom(self) -> None:
        self._move(len(self.view.rows) - 1)

    def _move(self, index: int) -> None:
        was_group = self.possible("toggle_fold")
        self.view.move_to(index)
        self._rows.move_cursor(self.view.cursor_index)
        if was_group != self.possible("toggle_fold"):
            self.refresh_bindings()

    @on(Rows.Picked)
    def _picked(self, event: Rows.Picked) -> None:
        self._move(event.index)
        if event.twice:
            self.action_open()

    def action_mark(self) -> None:
        self.view.toggle_mark()
        self._marks_changed()
        self.action_cursor_down()

    def action_mark_range(self) -> None:
        self.view.mark_range()
        self._marks_changed()

    def action_mark_all(self) -> None:
        self.view.mark_all()
        self._marks_changed()

    def _marks_changed(self) -> None:
        self._rows.refresh()
        self._refresh_head()

    def _filter_by(self, text: str) -> None:
        if text != self.view.query.text:
            self.view.set_query(parse_query(text))
            self.show()

    def action_copy(self) -> None:
        row = self.view.cursor_row
        if row is not None:
            text = row.key.id if row.group is not None else row.job.id.text
            self.tool.copy_to_clipboard(text)
            self.notify(f"copied {text}", markup=False, timeout=3)

    def selection(self) -> Selection:
        rows = self.view.marked_rows()
        current = self.view.cursor_row
        if not rows and current is not None:
            rows = (current,)
        gone = self.tool.book.gone
        shown = {job.key: job for row in rows for job in row.jobs}
        jobs = {key: job for key, job in shown.items() if key not in gone}
        left = ""
        if shown and not jobs:
            those = tuple(shown.values())
            left = f"{jobs_text(those)} {'has' if len(those) == 1 else 'have'} left the queue"
        grouped = any(row.group is not None and row.group.kind == "array" for row in rows)
        return Selection(
            jobs=tuple(jobs.values()),
            grouped=grouped,
            on_outcome=self._acted,
            hidden=self.view.hidden_jobs(),
            left=left,
        )

    def _acted(self, outcome: Outcome) -> None:
        """What is over loses its mark; what failed keeps it, to be tried again."""
        over = [job.target for job in outcome.jobs if job.result in _OVER]
        left = [job.target for job in outcome.jobs if job.result not in _OVER]
        marks = self.view.marks
        marks -= {key for target in over for key in (target.key, *target.parts)}
        marks -= {_group_key(target) for target in over} - {_group_key(target) for target in left}
        self._rows.repaint()
        self._refresh_head()
