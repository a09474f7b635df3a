"""The Nodes screen: one row a node, all about the one under the cursor below, and what fits."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import ModalScreen

from slurmtop.model.ids import JobKey
from slurmtop.store.node_query import parse_node_query
from slurmtop.store.nodes import NODE_SORTS, NodeRow, NodeView
from slurmtop.ui.bindings import bindings_for
from slurmtop.ui.feed import IDLE_FACTOR
from slurmtop.ui.messages import (
    GpusChanged,
    HealthChanged,
    NodesChanged,
    QueueChanged,
    RefreshAsked,
    SecondPassed,
)
from slurmtop.ui.nodes_feed import NodesFeed
from slurmtop.ui.present import nodes as present
from slurmtop.ui.present import nodes_head as head
from slurmtop.ui.present.header import filter_message
from slurmtop.ui.present.health import HealthWords, describe_health
from slurmtop.ui.present.spans import Line
from slurmtop.ui.screens.listing import ListingScreen
from slurmtop.ui.widgets.filter_bar import FilterBar
from slurmtop.ui.widgets.footer import KeyFooter
from slurmtop.ui.widgets.lines import LinesBox
from slurmtop.ui.widgets.node_pane import VIEW, NodePane
from slurmtop.ui.widgets.rows import Rows
from slurmtop.ui.widgets.wish_box import WishBox

_ROW_ACTIONS = frozenset({"open", "copy"})


class NodesScreen(ListingScreen):
    """Filter, order and cursor live in the app's :class:`NodesFeed` and outlast the screen.

    ``enter`` hands the keys to the pane of one node, escape takes them back.
    """

    ORDERS = NODE_SORTS
    SCOPES = ("nodes",)
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("nodes")
    DEFAULT_CSS = """
    NodesScreen > #nodes-head { height: 2; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._name_cells = 6
        self._layout: tuple[tuple[int, int], present.NodeLayout] | None = None
        self._head_lines: tuple[Line, ...] = ()
        self._head = LinesBox(lambda _width: self._head_lines, id="nodes-head")
        self._rows: Rows[NodeRow] = Rows(self, id="nodes")
        self._pane = NodePane()
        self._filter = FilterBar(self._filter_by, self._rows)
        self._wish = WishBox(self.show, self._rows)

    @property
    def feed(self) -> NodesFeed:
        return self.tool.nodes

    @property
    def view(self) -> NodeView:
        return self.feed.view

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._filter
        yield self._wish
        yield self._rows
        yield self._pane
        yield KeyFooter()

    def on_mount(self) -> None:
        self._settle_on(self._rows)
        if self.view.query.text:
            self._filter.restore(self.view.query.text)
        self._begin()

    def on_resize(self) -> None:
        self.show()

    def on_screen_resume(self) -> None:
        super().on_screen_resume()
        if self.is_mounted:
            self._begin()

    def on_screen_suspend(self) -> None:
        super().on_screen_suspend()
        if not isinstance(self.app.screen, ModalScreen):
            self._end()

    def on_unmount(self) -> None:
        self._end()

    def _begin(self) -> None:
        """Ask for the nodes while they can be seen."""
        if not self._pane.shown:
            self._pane.shown = True
            self._ask()
        self._take_jobs()
        self.show()

    def _end(self) -> None:
        if self._pane.shown:
            self.workers.cancel_group(self, "nodes")
            self._pane.leave()

    def _ask(self) -> None:
        self.run_worker(self.feed.run(), group="nodes", exclusive=True, exit_on_error=False)

    # News

    def on_queue_changed(self, event: QueueChanged) -> None:
        if self._take_jobs():
            self.show()

    def on_nodes_changed(self, event: NodesChanged) -> None:
        self.show()

    def on_gpus_changed(self, event: GpusChanged) -> None:
        row = self.view.cursor_row
        if row is not None and row.name in event.hosts:
            self.show()
            self._pane.read_kernel()

    def on_health_changed(self, event: HealthChanged) -> None:
        self._refresh_head()

    def on_second_passed(self, event: SecondPassed) -> None:
        self.feed.slow_down(IDLE_FACTOR if self.tool.feed.idle else 1.0)
        if not self._pane.shown:
            return
        if self._health().old_rows != self._rows.old or not self.view.rows:
            self.show()
        else:
            self._refresh_head()
        self._rows.second_passed()
        self._pane.second_passed()

    def on_refresh_asked(self, event: RefreshAsked) -> None:
        if self.feed.ask_now():
            self._ask()
        self.tool.gpus.poke(VIEW)

    def _take_jobs(self) -> bool:
        book = self.tool.book
        return self.view.set_jobs(book.jobs, book.version)

    # What is shown

    @property
    def listed(self) -> NodeView:
        return self.view

    def show(self) -> None:
        """Put the rows of the view on the screen, and the node under the cursor below."""
        if not self.is_mounted:
            return
        view, words = self.view, self._health()
        cells = present.name_width(view.rows)
        if cells != self._name_cells:
            self._name_cells = cells
            self._rows.repaint()
        self._judge_wish()
        self._rows.show(view.rows, view.cursor_index, old=words.old_rows, notice=self._notice())
        if self._filter.display:
            known = view.totals.nodes
            self._filter.say(filter_message(view.query.error, len(view.rows), known, "node"))
        self._refresh_head()
        bars = 2 if self._filter.display else 1
        taken = len(self._head_lines) + bars + self._wish.lines
        self._pane.fit_height(self.size.height, taken)
        self._pane.aim(view.cursor_row)
        self.refresh_bindings()

    def _judge_wish(self) -> None:
        before = self._wish.fitting
        self._wish.judge(
            self.view.nodes,
            self.view.jobs_on,
            all_jobs_known=self.tool.feed.shows_all_users,
            now=self.services.clock.now(),
            zone=self.services.zone,
            screen=self.size,
        )
        if self._wish.fitting != before:
            self._rows.repaint()

    def _notice(self) -> tuple[Line, ...]:
        view, feed = self.view, self.feed
        if view.rows:
            return ()
        if not feed.possible:
            return ((("  The nodes cannot be asked for here.", "dim"),),)
        why = head.NoNodes(
            health=self._health(),
            good_at=feed.health.good_at,
            hidden=view.totals.nodes,
            filter_text=view.query.text.strip(),
            filter_error=view.query.error,
            problems_only=view.problems_only,
        )
        services = self.services
        return head.no_nodes_lines(why, services.data_now(), self.size.width, services.zone)

    def _health(self) -> HealthWords:
        services = self.services
        return describe_health(
            self.feed.health,
            services.data_now(),
            services.zone,
            what="the nodes",
            recorded=services.recorded_at() is not None,
        )

    def _refresh_head(self) -> None:
        lines = self._make_head(self.size.width)
        if lines != self._head_lines:
            if len(lines) != len(self._head_lines):
                self._head.styles.height = len(lines)
            self._head_lines = lines
            self._head.refresh()

    def _make_head(self, width: int) -> tuple[Line, ...]:
        view, services, tool = self.view, self.services, self.tool
        return head.nodes_header_lines(
            head.NodesHead(
                cluster=services.cluster_label or services.cluster,
                totals=view.totals if self.feed.sampled_at is not None else None,
                health=self._health(),
                calls=services.calls_last_minute(),
                all_users=tool.feed.shows_all_users,
                jobs_old=tool.queue_words().old_rows or tool.book.sampled_at is None,
                sort=view.sort,
                reverse=view.reverse,
                problems_only=view.problems_only,
                read_only=services.read_only,
                dry_run=services.dry_run,
                demo=services.demo,
                replay=self.recorded_text(),
                idle=tool.feed.idle,
                way=services.way_to_nodes(),
            ),
            width,
        )

    # The painter of the rows

    def header(self, width: int) -> Line:
        return present.nodes_header_line(self._columns(width), self.view.sort, self.view.reverse)

    def line(self, row: NodeRow, width: int, *, cursor: bool) -> Line:
        columns, at = self._columns(width), self._at(row)
        return present.node_line(row, columns, at, cursor=cursor, fits=self.marked(row))

    def tick(self, row: NodeRow) -> str:
        return present.node_tick(row, self._at(row))

    def marked(self, row: NodeRow) -> bool:
        return row.name in self._wish.fitting

    def _at(self, row: NodeRow) -> present.NodesNow:
        """Old rows stand still at their last answer; what a look found missing counts, too."""
        still = self.feed.sampled_at if self._rows.old else None
        look = self.tool.gpus.book.look(row.name)
        lost = len(look.gpus.lost) if look is not None and look.gpus is not None else 0
        now = still or self.services.clock.now()
        return present.NodesNow(now, self.tool.feed.shows_all_users, lost)

    def _columns(self, width: int) -> present.NodeLayout:
        key = (width, self._name_cells)
        if self._layout is None or self._layout[0] != key:
            self._layout = (key, present.lay_out_nodes(width, name_cells=self._name_cells))
        return self._layout[1]

    # Keys

    def possible(self, action: str) -> bool:
        if action in _ROW_ACTIONS:
            return self.view.cursor_row is not None
        if action == "open_there":
            return bool(self._pane.jobs)
        return True

    @property
    def current_job(self) -> JobKey | None:
        """The chosen job of the node under the cursor."""
        return self._pane.current_job

    def undo_one(self) -> bool:
        """Escape leaves the pane first, then takes back the wish, the filter, the problems."""
        if self._pane.inside:
            self._pane.inside = False
            self.show()
        elif self._wish.text:
            self._wish.clear()
        elif self.view.query.text:
            self._filter.clear()
        elif self.view.problems_only:
            self.action_problems()
        else:
            return False
        return True

    def action_open(self) -> None:
        if self._pane.inside:
            self.action_open_there()
            return
        self._pane.inside = True
        self._pane.look()
        self.show()

    def action_open_there(self) -> None:
        key = self.current_job
        if key is not None:
            self.tool.open_job(key)

    def action_cursor_up(self) -> None:
        self._step(-1)

    def action_cursor_down(self) -> None:
        self._step(1)

    def _step(self, by: int) -> None:
        if self._pane.inside:
            self._pane.step(by)
        else:
            self._move(self.view.cursor_index + by)

    def action_page_up(self) -> None:
        self._page("page_up", self.view.cursor_index - self._rows.page)

    def action_page_down(self) -> None:
        self._page("page_down", self.view.cursor_index + self._rows.page)

    def action_cursor_top(self) -> None:
        self._page("home", 0)

    def action_cursor_bottom(self) -> None:
        self._page("end", len(self.view.rows) - 1)

    def _page(self, how: str, index: int) -> None:
        if self._pane.inside:
            self._pane.scroll_by(how)
        else:
            self._move(index)

    def _move(self, index: int) -> None:
        self.view.move_to(index)
        self._rows.move_cursor(self.view.cursor_index)
        self._pane.aim(self.view.cursor_row)
        self.refresh_bindings()

    @on(Rows.Picked)
    def _picked(self, event: Rows.Picked) -> None:
        self._pane.inside = False
        self._move(event.index)
        if event.twice:
            self.action_open()
        else:
            self.show()

    def _filter_by(self, text: str) -> None:
        if text != self.view.query.text:
            self.view.set_query(parse_node_query(text))
            self.show()

    def action_fit(self) -> None:
        self._wish.open()
        self.show()

    def action_copy(self) -> None:
        row = self.view.cursor_row
        if row is not None:
            self.tool.copy_to_clipboard(row.name)
            self.notify(f"copied {row.name}", markup=False, timeout=3)
