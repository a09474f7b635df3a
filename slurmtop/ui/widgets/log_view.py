"""The text of a log: paints the rows in sight, asks for more when an edge comes near."""

from typing import ClassVar

from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from slurmtop.model.facts import LogLine
from slurmtop.model.text import cell_width
from slurmtop.ui.log_window import LogWindow
from slurmtop.ui.present.log import row_line
from slurmtop.ui.widgets.lines import ROLE_CLASSES, ROLE_CSS, KeyScroll, line_strip


class LogView(KeyScroll, can_focus=True, inherit_bindings=False):
    """Shows a :class:`LogWindow`. ``words`` are marked in it, ``hit`` is marked whole.

    ``follow`` keeps the last row in sight; it ends when a person scrolls up.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = ROLE_CLASSES
    DEFAULT_CSS = (
        "LogView { width: 1fr; height: 1fr; scrollbar-size-horizontal: 0;"
        " scrollbar-size-vertical: 1; }" + ROLE_CSS.format(name="LogView")
    )

    class EdgeReached(Message):
        """Rows above (or below) the window are about to be wanted."""

        def __init__(self, *, above: bool) -> None:
            super().__init__()
            self.above = above

    class Scrolled(Message):
        """The rows in sight are others now."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.window = LogWindow()
        self.follow = True
        self.words = ""
        self.hit: LogLine | None = None
        self._moved_by_us = False

    def show_window(self, window: LogWindow) -> None:
        """Show another log from its end."""
        self.window = window
        self.hit = None
        self.rows_changed(lost=0, to_end=True)

    def on_resize(self) -> None:
        if self.follow:
            self._scroll_ourselves(self.max_scroll_y)
        elif self._hit_is_due and self.hit is not None:
            self.show_hit(self.hit)

    def _scroll_ourselves(self, y: float) -> None:
        """Scroll without that counting as a person's scrolling."""
        self._moved_by_us = True
        self.scroll_to(y=y, animate=False, immediate=True)
        self._moved_by_us = False
        self._hit_is_due = False
        """A line is to be shown and there is no room yet in which it could stand."""

    def rows_changed(self, *, lost: int = 0, came: int = 0, to_end: bool = False) -> None:
        """The window changed: ``lost`` rows left its top, ``came`` were put there.

        What was in sight stays in sight, except when following or told ``to_end``.
        """
        rows = self.window.rows
        y = self.scroll_offset.y
        self._moved_by_us = True
        self.virtual_size = Size(max((cell_width(row.text) for row in rows), default=0), len(rows))
        self._moved_by_us = False
        if to_end or self.follow:
            self._scroll_ourselves(self.max_scroll_y)
        elif lost or came:
            self._scroll_ourselves(max(0, y - lost + came))
        self.refresh()

    def show_hit(self, hit: LogLine) -> bool:
        """Bring a line of the window in sight; False where the window does not hold it."""
        index = self.window.index_of(hit.offset)
        if index is None:
            return False
        self.hit = hit
        self.follow = False
        self._hit_is_due = not self.size.height
        top = max(0, index - self.size.height // 3)
        self.scroll_to(y=top, animate=False, immediate=True)
        self.refresh()
        return True

    @property
    def top_offset(self) -> int | None:
        """The byte where the first row in sight starts."""
        rows = self.window.rows
        index = min(self.scroll_offset.y, len(rows) - 1)
        return max(0, rows[index].offset) if rows else None

    @property
    def at_end(self) -> bool:
        """Is the last line of the file in sight?"""
        return self.window.at_end and self.scroll_offset.y >= self.max_scroll_y

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if old_value == new_value:
            return
        up = new_value < old_value and new_value < self.max_scroll_y
        if up and not self._moved_by_us:
            self.follow = False
        self.post_message(self.Scrolled())
        margin = self.size.height
        if new_value <= margin and not self.window.at_start:
            self.post_message(self.EdgeReached(above=True))
        if new_value >= self.max_scroll_y - margin and not self.window.at_end:
            self.post_message(self.EdgeReached(above=False))

    def render_line(self, y: int) -> Strip:
        scroll_x, scroll_y = self.scroll_offset
        width = self.size.width
        rows = self.window.rows
        index = scroll_y + y
        if index >= len(rows):
            return Strip.blank(width, self.rich_style)
        row = rows[index]
        current = self.hit is not None and row.offset == self.hit.offset
        return line_strip(self, row_line(row, self.words, current), width, scroll_x)
