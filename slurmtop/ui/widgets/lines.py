"""A scrolling view of prepared lines: paints only what is seen, measures nothing.

Roles become component styles here, in one place, for every view of the Job screen.
"""

from collections.abc import Callable, Iterable
from typing import ClassVar

from rich.segment import Segment
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from slurmtop.model.text import cell_width
from slurmtop.ui.present.spans import ROLES, Line

#: Columns that a long line moves by.
SIDE_STEP = 16

ROLE_CLASSES = {f"lines--{role}" for role in ROLES if role}

ROLE_CSS = """
{name} > .lines--dim {{ color: $text-muted; }}
{name} > .lines--label {{ color: $text-muted; }}
{name} > .lines--strong {{ text-style: bold; }}
{name} > .lines--good {{ color: $text-success; }}
{name} > .lines--busy {{ color: $text-accent; text-style: italic; }}
{name} > .lines--wait {{ color: $text-warning; }}
{name} > .lines--warn {{ color: $text-warning; text-style: bold; }}
{name} > .lines--bad {{ color: $text-error; text-style: bold; }}
{name} > .lines--match {{ text-style: reverse; }}
{name} > .lines--mark {{ color: $text-accent; text-style: bold; }}
"""


def line_strip(widget: Widget, line: Iterable[tuple[str, str]], width: int, x: int = 0) -> Strip:
    """A line as a strip of exactly ``width`` cells from column ``x`` on."""
    base = widget.rich_style
    segments: list[Segment] = []
    for text, role in line:
        style = base
        if role:
            style = base + widget.get_component_rich_style(f"lines--{role}", partial=True)
        segments.append(Segment(text, style))
    strip = Strip(segments)
    if x or strip.cell_length > width:
        strip = strip.crop(x, x + width)
    return strip.adjust_cell_length(width, base)


class LinesBox(Widget):
    """A fixed block of lines made by ``make(width)`` at every paint; it cannot scroll."""

    COMPONENT_CLASSES: ClassVar[set[str]] = ROLE_CLASSES
    DEFAULT_CSS = ROLE_CSS.format(name="LinesBox")

    def __init__(self, make: Callable[[int], tuple[Line, ...]], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._make = make
        self._lines: tuple[Line, ...] = ()

    def render_lines(self, crop: Region) -> list[Strip]:
        self._lines = self._make(self.size.width)
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y >= len(self._lines):
            return Strip.blank(width, self.rich_style)
        return line_strip(self, self._lines[y], width)


class KeyScroll(ScrollView):
    """Scrolls by the words of the key table.

    At once, never to a target that is reached later: by then it may be another place.
    """

    def scroll_by(self, how: str) -> None:
        """Scroll up, down, page_up, page_down, home, end, left or right."""
        x, y = self.scroll_offset
        page = max(1, self.size.height - 1)
        target = {
            "up": (x, y - 1),
            "down": (x, y + 1),
            "page_up": (x, y - page),
            "page_down": (x, y + page),
            "home": (0, 0),
            "end": (x, self.max_scroll_y),
            "left": (x - SIDE_STEP, y),
            "right": (x + SIDE_STEP, y),
        }[how]
        self.scroll_to(*target, animate=False, immediate=True)


class LinesView(KeyScroll, can_focus=True):
    """Lines made by ``make(width)`` whenever the width or the content changes."""

    COMPONENT_CLASSES: ClassVar[set[str]] = ROLE_CLASSES
    DEFAULT_CSS = (
        "LinesView { width: 1fr; height: 1fr; scrollbar-size-horizontal: 0;"
        " scrollbar-size-vertical: 1; scrollbar-gutter: stable; }"
        + ROLE_CSS.format(name="LinesView")
    )

    def __init__(self, make: Callable[[int], tuple[Line, ...]], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._make = make
        self.lines: tuple[Line, ...] = ()

    def on_resize(self) -> None:
        self.rebuild()

    def rebuild(self) -> None:
        """Make the lines anew; nothing is painted where they came out the same."""
        width = self.scrollable_content_region.width
        lines = self._make(width) if width > 0 else ()
        if lines == self.lines:
            return
        self.lines = lines
        widest = max((sum(cell_width(text) for text, _ in line) for line in lines), default=0)
        self.virtual_size = Size(widest, len(lines))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        scroll_x, scroll_y = self.scroll_offset
        width = self.size.width
        index = scroll_y + y
        if index >= len(self.lines):
            return Strip.blank(width, self.rich_style)
        return line_strip(self, self.lines[index], width, scroll_x)
