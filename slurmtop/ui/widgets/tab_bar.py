"""The names of the tabs of a screen, in one line."""

from collections.abc import Callable, Sequence

from textual import events
from textual.message import Message

from slurmtop.model.text import cell_width
from slurmtop.ui.present.job import tab_line
from slurmtop.ui.present.spans import Line, cut_line, ends, line_width, plain
from slurmtop.ui.widgets.lines import LinesBox


class TabBar(LinesBox):
    """``current`` is the tab that is shown; ``marks`` gives what stands at the right end."""

    DEFAULT_CSS = "TabBar { height: 1; }"

    class Picked(Message):
        """A click on the name of a tab."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self, names: Sequence[str], marks: Callable[[], Line], *, id: str) -> None:
        super().__init__(self._line, id=id)
        self._names, self._marks = tuple(names), marks
        self.current = 0

    def _line(self, width: int) -> tuple[Line, ...]:
        marks = self._marks()
        # The tab that is shown comes before every mark: else nobody knows what they look at.
        least = cell_width(self._names[self.current]) + 2
        room = max(least, width - line_width(marks) - 1)
        marks = cut_line(marks, max(0, width - least - 1))
        return (ends(tab_line(self._names, self.current, room), marks, width),)

    def on_click(self, event: events.Click) -> None:
        shown = plain(self._line(self.size.width)[0])
        if not shown.startswith(plain(tab_line(self._names, self.current, self.size.width))):
            return
        end = 0
        for index in range(len(self._names)):
            end += len(plain(tab_line(self._names[index : index + 1], 0, 80)))
            if event.x < end:
                self.post_message(self.Picked(index))
                return
