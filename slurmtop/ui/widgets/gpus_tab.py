"""The GPUs tab: when the nodes of the job are looked at, and what the keys do."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from operator import is_not

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical

from slurmtop.model.facts import LogFacts
from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job
from slurmtop.model.process import RankProcess
from slurmtop.store.gpu_metrics import GpuMetric
from slurmtop.triage.gpu_share import held_text
from slurmtop.triage.ranks import rank_processes, ranks_by_gpu
from slurmtop.ui.gpu_feed import GpuFeed, hosts_of, share_on_nodes
from slurmtop.ui.present import gpu_chart, gpu_grid, gpu_lines
from slurmtop.ui.present.chart import NOTHING, Chart
from slurmtop.ui.present.gpu_detail import DETAIL_LINES, detail_lines
from slurmtop.ui.present.gpu_grid import Cell, GridRow
from slurmtop.ui.present.gpu_head import (
    HEAD_LINES,
    OVER_TEXT,
    GpuHead,
    Why,
    head_lines,
    no_source_text,
    notice_lines,
    way_text,
    why_not,
)
from slurmtop.ui.present.spans import Line
from slurmtop.ui.present.spark import spark
from slurmtop.ui.services import Services
from slurmtop.ui.widgets.gpu_rows import GpuRows
from slurmtop.ui.widgets.lines import LinesBox
from slurmtop.ui.widgets.plot import PlotView
from slurmtop.ui.widgets.rows import Rows

#: Lines that the grid keeps before the detail below it takes some.
_GRID_LEAST = 5
#: Lines of the tab from which on a chart leaves room for the detail.
_CHART_AND_DETAIL = 26
#: Ranks are told from the processes of all nodes where there are no more than this.
_RANKS_NODES = 32
_SPARK_POINTS = 30
#: Rows above and below those in view that are kept fresh as well.
_BESIDE_VIEW = 4


class GpusTab(Vertical):
    """Looks at the job's nodes between :meth:`show` and :meth:`hide`, and a minute longer.

    ``job`` gives the newest record, ``logs`` what is known of its logs.
    """

    DEFAULT_CSS = f"""
    GpusTab > #gpu-head {{ height: {HEAD_LINES}; }}
    GpusTab > #gpu-chart {{ display: none; }}
    """

    def __init__(
        self,
        services: Services,
        feed: GpuFeed,
        key: JobKey,
        job: Callable[[], Job | None],
        logs: Callable[[], Sequence[LogFacts]],
        *,
        id: str,
    ) -> None:
        super().__init__(id=id)
        self._services, self._feed, self._key, self._job = services, feed, key, job
        self._view = f"job {key.cluster}/{key.id}"
        self._shown = False
        self._may_look: bool | None = None
        self._why, self._sentence = Why.LOADING, ""
        self._column = 0
        self._cursor = ""
        self._layout: tuple[tuple[int, int, int], gpu_lines.Layout] | None = None
        self._version = 0
        self._ranks: tuple[tuple[object, ...], Mapping[str, tuple[RankProcess, ...]]] = ((), {})
        """What it was told from, each by itself, and the ranks on the GPUs of one node."""
        self.charted = ""
        """What the chart shows: ``gpu``, ``nodes``, or "" without a chart."""
        self.model = GpuRows(feed, self._view, logs)
        self.grid: Rows[GridRow] = Rows(self, id="gpu-grid")
        self.plot = PlotView(self._chart, id="gpu-chart")
        self._head = LinesBox(self._head_lines, id="gpu-head")
        self._detail = LinesBox(self._detail_lines, id="gpu-detail")

    def compose(self) -> ComposeResult:
        yield self._head
        yield self.grid
        yield self.plot
        yield self._detail

    # When it looks

    def show(self) -> None:
        """The tab came in sight."""
        self._shown = True
        self.follow_job()
        self.model.build_all(self._now())
        self._show_rows()

    def hide(self) -> None:
        """The tab is out of sight; the watch goes on for a minute at the most."""
        if self._shown:
            self._shown = False
            self._feed.leave(self._view)

    def on_unmount(self) -> None:
        self.hide()

    def follow_job(self) -> None:
        """The job, or what is known of it, may have changed: watch its nodes, or none."""
        if not self._shown:
            return
        job, services = self._job(), self._services
        mine = job is not None and (job.user == services.user or services.uid == 0)
        self._why, self._sentence = why_not(
            job,
            mine=mine or self._may_look,
            possible=self._feed.possible,
            recorded=services.recorded_at() is not None,
        )
        if self._why is Why.NONE and job is not None:
            hosts = hosts_of(job.nodes or "")
            self._feed.show(self._view, hosts, job=job)
            self.model.set_job(job, hosts, share_on_nodes(job))
        else:
            self._feed.stop(self._view)
        asked = any(one.group == "rights" and not one.is_finished for one in self.workers)
        if self._why is Why.RIGHTS and not asked:
            self.run_worker(self._ask_rights(), group="rights", exit_on_error=False)
        self._show_rows()

    async def _ask_rights(self) -> None:
        rights = await self._services.world.rights()
        self._may_look = rights.operator is True
        self.follow_job()

    def try_again(self) -> None:
        """A person pressed refresh: what has failed is tried at once."""
        self._feed.poke(self._view)

    # News

    def gpus_changed(self, hosts: frozenset[str]) -> None:
        """These nodes had news."""
        if self._shown and self.model.update(hosts, self._now()):
            self._version += 1
            self._show_rows()

    def second_passed(self) -> None:
        """What ticks is painted again: ages, next tries."""
        if self._shown:
            self._tell_view()
            self._head.refresh()
            self._detail.refresh()
            self.grid.second_passed()

    def _tell_view(self) -> None:
        """Of very many nodes those in view are kept fresh, with the one under the cursor and those
        of the chart."""
        row = self.row
        first = () if row is None else (row, *self._charted_nodes())
        near = () if self.charted else self.grid.near(_BESIDE_VIEW)
        self._feed.in_view(self._view, [one.host for one in (*first, *near)])

    def _now(self) -> datetime:
        return self._services.data_now()

    # What is shown

    @property
    def metric(self) -> GpuMetric:
        return self.model.metric

    @property
    def row(self) -> GridRow | None:
        """The row under the cursor."""
        rows = self.grid.rows
        return rows[self.grid.cursor] if self.grid.cursor < len(rows) else None

    @property
    def cell(self) -> Cell | None:
        """The cell under the cursor; None where its row has none."""
        row = self.row
        if row is None or not row.cells:
            return None
        return row.cells[min(self._column, len(row.cells) - 1)]

    def _show_rows(self) -> None:
        if not self.is_mounted:
            return
        rows = self.model.rows if self._why in (Why.NONE, Why.OVER) else ()
        if self._why is Why.OVER and not any(row.cells for row in rows):
            rows = ()
        hosts = [row.host for row in rows]
        if self._cursor not in hosts:
            self._cursor = hosts[0] if hosts else ""
        cursor = hosts.index(self._cursor) if hosts else 0
        notice = notice_lines(self._why, self._sentence, self.size.width)
        self._lay_out_again(rows)
        # Without a row the grid's place says why; an empty chart would say less.
        self.plot.display = bool(self.charted and rows)
        self.grid.display = not self.plot.display
        self.grid.show(rows, cursor, old=self._why is Why.OVER, notice=notice)
        self._head.refresh()
        self._detail.refresh()
        if self.charted:
            self.plot.refresh()

    def _lay_out_again(self, rows: tuple[GridRow, ...]) -> None:
        """Painted lines are forgotten only where the columns came out otherwise."""
        width = self.grid.scrollable_content_region.width
        layout = gpu_lines.lay_out(rows, width, self._column)
        before, self._layout = self._layout, ((width, self._version, self._column), layout)
        if before is None or before[1] != layout:
            self.grid.repaint()

    def on_resize(self) -> None:
        room = self.size.height - HEAD_LINES - _GRID_LEAST
        self._detail.display = not self.charted or self.size.height >= _CHART_AND_DETAIL
        self._detail.styles.height = max(0, min(DETAIL_LINES + 1, room))
        self._show_rows()

    def _head_lines(self, width: int) -> tuple[Line, ...]:
        rows = self.grid.rows
        if not rows:
            return ()
        job, model = self._job(), self.model
        charted = ""
        if self.charted and (row := self.row) is not None:
            nodes = self._charted_nodes()
            charted = gpu_chart.chart_title(self.metric, row, self.cell, nodes, len(rows))
        head = GpuHead(
            metric=self.metric,
            held=held_text(job.tres) if job is not None else "GPUs",
            worst_first=model.worst_first,
            way=way_text([row.look for row in rows]) or self._services.way_to_nodes(),
            verdict=model.verdict,
            odd=tuple(model.odd.values()),
            paused=self._feed.paused,
            over=self._why is Why.OVER,
            in_turn=self._feed.in_turn(self._view),
            chart=charted,
        )
        return head_lines(head, rows, self._now(), width)

    def _detail_lines(self, width: int) -> tuple[Line, ...]:
        row, cell = self.row, self.cell
        if row is None:
            return ()
        trend = ""
        ranks = None
        if cell is not None and cell.gpu is not None:
            points = max(8, min(60, width - len(self.metric.label) - 2))
            values = self._feed.book.trend(
                row.host, cell.gpu, self.metric.pick, now=self._now(), points=points
            )
            trend = spark(values, full=self.metric.full)
            ranks = self._ranks_of(row, cell)
        slices = row.look.gpus.slices if row.look is not None and row.look.gpus is not None else ()
        lines = detail_lines(
            row, cell, self.metric, self._now(), width, ranks=ranks, trend=trend, slices=slices
        )
        legend = gpu_lines.legend_line(self.grid.rows, width)
        return (legend, *lines)

    def _ranks_of(self, row: GridRow, cell: Cell) -> tuple[RankProcess, ...] | None:
        """The ranks on the GPU under the cursor; None where nobody read the processes."""
        job, look = self._job(), row.look
        if job is None or look is None or look.processes is None or look.processes.failure:
            return None
        if look.gpus is None or look.gpus.processes is None:
            return None
        hosts = self.model.hosts if len(self.model.hosts) <= _RANKS_NODES else (row.host,)
        looks = [one for host in hosts if (one := self._feed.book.look(host)) is not None]
        seen = tuple(one.processes for one in looks if one.processes is not None)
        # Held, so that no later look can be taken for one of them.
        told_from = (look.gpus, *seen)
        before = self._ranks[0]
        if len(before) != len(told_from) or any(map(is_not, before, told_from)):
            ranks = rank_processes(seen, job.raw_id or job.id.text)
            self._ranks = (told_from, ranks_by_gpu(look, ranks))
        uuid = cell.gpu.uuid if cell.gpu is not None else None
        return self._ranks[1].get(uuid or "", ())

    # The painter of the grid

    def header(self, width: int) -> Line:
        return gpu_lines.grid_header(self._columns(width), width) if self.grid.rows else ()

    def line(self, row: GridRow, width: int, *, cursor: bool) -> Line:
        layout, now = self._columns(width), self._now()
        trend = ""
        if layout.spark >= gpu_lines.SPARK_LEAST and row.cells:
            points = min(layout.spark - 1, _SPARK_POINTS)
            values = gpu_chart.node_trend(
                self._feed.book, row.host, row.samples, self.metric, now, points
            )
            trend = spark(values, full=self.metric.full)
        column = min(self._column, max(0, len(row.cells) - 1)) if cursor else None
        return gpu_lines.row_line(row, layout, self.metric, width, now, column=column, trend=trend)

    def tick(self, row: GridRow) -> str:
        column = str(self._column) if row.host == self._cursor else ""
        return f"{column} {gpu_lines.row_tick(row, self._now())}"

    def marked(self, row: GridRow) -> bool:
        return False

    def _columns(self, width: int) -> gpu_lines.Layout:
        key = (width, self._version, self._column)
        if self._layout is None or self._layout[0] != key:
            self._layout = (key, gpu_lines.lay_out(self.grid.rows, width, self._column))
        return self._layout[1]

    # The chart

    def _charted_nodes(self) -> tuple[GridRow, ...]:
        """The nodes drawn: some around the cursor, in the order of the grid."""
        if self.charted != "nodes":
            return ()
        rows, most = self.grid.rows, gpu_chart.MOST_NODES
        first = max(0, min(self.grid.cursor - most // 2, len(rows) - most))
        return tuple(rows[first : first + most])

    def _chart(self) -> Chart:
        nothing = no_source_text(self.metric, self.grid.rows)
        if nothing is None:
            nothing = OVER_TEXT if self._why is Why.OVER else NOTHING
        nodes = self._charted_nodes()
        return gpu_chart.make_chart(
            self._feed.book, self.metric, self._now(), self.row, self.cell, nodes, nothing=nothing
        )

    def next_chart(self) -> None:
        """No chart, the GPU under the cursor, the means of some nodes, and so on."""
        self.charted = {"": "gpu", "gpu": "nodes", "nodes": ""}[self.charted]
        self._show_chart()

    def step_back(self) -> bool:
        """Close the chart; False where there is none."""
        if not self.charted:
            return False
        self.charted = ""
        self._show_chart()
        return True

    def _show_chart(self) -> None:
        self._detail.display = not self.charted or self.size.height >= _CHART_AND_DETAIL
        self._show_rows()

    # Keys

    def next_metric(self) -> None:
        """Show the next metric of the table."""
        later = gpu_grid.SHOWN.index(self.metric) + 1
        self.model.metric = gpu_grid.SHOWN[later % len(gpu_grid.SHOWN)]
        self.model.build_all(self._now())
        self._version += 1
        self._show_rows()

    def next_sort(self) -> None:
        """The order of the nodes, or the worst first."""
        self.model.set_worst_first(not self.model.worst_first)
        self._cursor = ""
        self._show_rows()

    def move(self, how: str) -> None:
        """Move the cursor: up, down, page_up, page_down, home, end, left or right."""
        row, rows = self.row, self.grid.rows
        if row is None:
            return
        if how in ("left", "right"):
            last = max(0, len(row.cells) - 1)
            self._column = max(0, min(last, self._column) + (1 if how == "right" else -1))
            self._column = min(self._column, last)
        else:
            page, at = self.grid.page, self.grid.cursor
            wanted = {
                "up": at - 1,
                "down": at + 1,
                "page_up": at - page,
                "page_down": at + page,
                "home": 0,
                "end": len(rows) - 1,
            }[how]
            self._go_to(max(0, min(len(rows) - 1, wanted)))
        self._moved()

    def _go_to(self, index: int) -> None:
        self._cursor = self.grid.rows[index].host
        self.grid.move_cursor(index)

    def _moved(self) -> None:
        self._lay_out_again(tuple(self.grid.rows))
        self.grid.refresh_rows((self.grid.cursor,))
        self._detail.refresh()
        if self.charted:
            self._head.refresh()
            self.plot.refresh()

    @on(Rows.Picked)
    def _picked(self, event: Rows.Picked) -> None:
        event.stop()
        layout = self._columns(self.grid.scrollable_content_region.width)
        before = 1 + layout.host + 1 + (layout.kind + 1 if layout.kind else 0)
        cell = (event.x - before) // layout.cell
        if 0 <= cell < layout.cells:
            self._column = layout.first + cell
        self._go_to(event.index)
        self._moved()
