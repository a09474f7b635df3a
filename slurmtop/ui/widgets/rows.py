"""A table of any length that paints only what is seen, one line a row.

Textual's DataTable measures every cell of every row (1.5 s for 10,000 rows); here the cost
of a paint is the number of visible lines, and a painted line is kept until its row, its
place under the cursor, its mark or its ticking times change.
"""

from collections.abc import Iterable, Sequence
from typing import ClassVar, Generic, Protocol, TypeVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from slurmtop.ui.present.spans import ROLES, Line

R = TypeVar("R")
R_contra = TypeVar("R_contra", contravariant=True)

#: Kept lines; more than any screen shows twice over.
CACHE_LINES = 1_024


class Painter(Protocol[R_contra]):
    """Makes the lines of a table. Rows are compared by identity, so equal content of a new
    row object is painted again, and the same object is not.

    ``tick`` changes exactly when the time alone changes what the row shows.
    """

    def header(self, width: int) -> Line: ...

    def line(self, row: R_contra, width: int, *, cursor: bool) -> Line: ...

    def tick(self, row: R_contra) -> str: ...

    def marked(self, row: R_contra) -> bool: ...


class Rows(ScrollView, Generic[R], can_focus=True, inherit_bindings=False):
    """``show`` puts rows on the screen; the cursor is an index that the owner keeps by key.

    ``old`` greys everything: the data is stale. ``notice`` stands in the place of rows when
    there are none.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "rows--header",
        "rows--cursor",
        "rows--old",
        *(f"rows--{role}" for role in ROLES if role),
    }
    DEFAULT_CSS = """
    Rows { height: 1fr; overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; }
    Rows > .rows--header { color: $text-muted; text-style: bold; }
    Rows > .rows--cursor {
        color: $block-cursor-foreground; background: $block-cursor-background; text-style: bold;
    }
    Rows:nocolor > .rows--cursor { text-style: bold reverse; }
    Rows > .rows--old { color: $text-muted; text-style: italic; }
    Rows > .rows--dim { color: $text-muted; }
    Rows > .rows--label { color: $text-muted; text-style: bold; }
    Rows > .rows--strong { text-style: bold; }
    Rows > .rows--good { color: $state-running; }
    Rows > .rows--busy { color: $state-ending; }
    Rows > .rows--wait { color: $state-pending; }
    Rows > .rows--warn { color: $state-warning; }
    Rows > .rows--bad { color: $state-failed; text-style: bold; }
    Rows > .rows--match { text-style: reverse; }
    Rows > .rows--mark { color: $row-mark; text-style: bold; }
    """

    class Picked(Message):
        """A row was clicked at column ``x``; ``twice`` for a double click."""

        def __init__(self, index: int, twice: bool, x: int = 0) -> None:
            super().__init__()
            self.index = index
            self.twice = twice
            self.x = x

    def __init__(self, painter: Painter[R], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._painter = painter
        self.rows: Sequence[R] = ()
        self.cursor = 0
        self.old = False
        self.notice: tuple[Line, ...] = ()
        self._strips: dict[tuple[R, bool, bool, str], Strip] = {}
        self._styles: dict[tuple[str, str, bool], Style] = {}
        self._shown_ticks: dict[int, str] = {}

    @property
    def page(self) -> int:
        """Rows that fit below the header line."""
        return max(1, self.scrollable_content_region.height - 1)

    def near(self, more: int) -> Sequence[R]:
        """The rows in view, then up to ``more`` above them and as many below."""
        first = max(0, round(self.scroll_y))
        end = first + self.page
        beside = (*self.rows[end : end + more], *self.rows[max(0, first - more) : first])
        return (*self.rows[first:end], *beside)

    def show(self, rows: Sequence[R], cursor: int, *, old: bool, notice: tuple[Line, ...]) -> None:
        """Replace what is shown. The line under the cursor keeps its height on the screen."""
        same_length = len(rows) == len(self.rows)
        height = self.cursor - round(self.scroll_y)
        if old != self.old:
            self._strips.clear()
        self.rows, self.old, self.notice = rows, old, notice
        if not same_length:
            self.virtual_size = Size(0, len(rows) + 1)
        if 0 <= height < self.page and cursor != self.cursor:
            self.scroll_to(y=cursor - height, animate=False, immediate=True)
        self.cursor = cursor
        self._bring_into_view()
        self.refresh()

    def move_cursor(self, index: int) -> None:
        """Paint the cursor elsewhere: two lines, or all of them where the view scrolls."""
        before, self.cursor = self.cursor, index
        scrolled = self._bring_into_view()
        if not scrolled and before != index:
            self.refresh_rows((before, index))

    def refresh_rows(self, indices: Iterable[int]) -> None:
        """Paint these rows again where they are in view."""
        top = round(self.scroll_y)
        regions = [
            Region(0, index - top + 1, self.size.width, 1)
            for index in indices
            if 0 <= index - top < self.page
        ]
        if regions:
            self.refresh(*regions)

    def repaint(self) -> None:
        """Forget every painted line: columns, marks or sort sign have changed."""
        self._strips.clear()
        self.refresh()

    def second_passed(self) -> None:
        """Paint again the rows in view whose times now read differently, and no others."""
        rows, painter = self.rows, self._painter
        self.refresh_rows(
            [
                index
                for index, tick in list(self._shown_ticks.items())
                if index < len(rows) and painter.tick(rows[index]) != tick
            ]
        )

    def notify_style_update(self) -> None:
        self._strips.clear()
        self._styles.clear()
        super().notify_style_update()

    def on_resize(self) -> None:
        self._strips.clear()
        self._bring_into_view()

    def _bring_into_view(self) -> bool:
        top = round(self.scroll_y)
        if self.cursor < top:
            wanted = self.cursor
        elif self.cursor >= top + self.page:
            wanted = self.cursor - self.page + 1
        else:
            return False
        self.scroll_to(y=wanted, animate=False, immediate=True)
        return round(self.scroll_y) != top

    def on_click(self, event: events.Click) -> None:
        index = round(self.scroll_y) + event.y - 1
        if event.y >= 1 and 0 <= index < len(self.rows):
            self.post_message(self.Picked(index, event.chain == 2, event.x))

    def render_lines(self, crop: Region) -> list[Strip]:
        top = round(self.scroll_y)
        self._shown_ticks = {
            index: tick
            for index, tick in self._shown_ticks.items()
            if top <= index < top + self.page
        }
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        if y == 0:
            header = self._painter.header(width)
            return self._strip(header, width, cursor=False, base="header")
        index = round(self.scroll_y) + y - 1
        if not self.rows:
            start = max(1, (self.size.height - len(self.notice)) // 3)
            if 0 <= y - start < len(self.notice):
                return self._strip(self.notice[y - start], width, cursor=False)
        if index >= len(self.rows):
            return Strip.blank(width, self._style("", cursor=False, base=""))
        return self._row_strip(index, width)

    def _row_strip(self, index: int, width: int) -> Strip:
        row = self.rows[index]
        cursor = index == self.cursor
        tick = self._painter.tick(row)
        self._shown_ticks[index] = tick
        key = (row, cursor, self._painter.marked(row), tick)
        strip = self._strips.get(key)
        if strip is None or strip.cell_length != width:
            line = self._painter.line(row, width, cursor=cursor)
            strip = self._strip(line, width, cursor=cursor, base="old" if self.old else "")
            if len(self._strips) >= CACHE_LINES:
                self._strips.clear()
            self._strips[key] = strip
        return strip

    def _strip(self, line: Line, width: int, *, cursor: bool, base: str = "") -> Strip:
        segments = [Segment(text, self._style(role, cursor, base)) for text, role in line if text]
        return Strip(segments).adjust_cell_length(width, self._style("", cursor, base))

    def _style(self, role: str, cursor: bool, base: str) -> Style:
        plain = role if not cursor and base != "old" else ""
        key = (plain, base, cursor)
        style = self._styles.get(key)
        if style is None:
            style = self.rich_style
            if base:
                style += self.get_component_rich_style(f"rows--{base}", partial=True)
            if plain:
                style += self.get_component_rich_style(f"rows--{plain}", partial=True)
            if cursor:
                style += self.get_component_rich_style("rows--cursor", partial=True)
            self._styles[key] = style
        return style
