"""The line in which a wish such as ``4x8 h100`` is typed, and where it would fit."""

from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widget import Widget

from slurmtop.model.job import Job
from slurmtop.model.node import Node
from slurmtop.triage.fits import Fit, find_fit, parse_wish
from slurmtop.ui.present.fits import fit_lines
from slurmtop.ui.present.spans import Line
from slurmtop.ui.widgets.filter_bar import FilterBar
from slurmtop.ui.widgets.lines import LinesBox

_HINT = "nodes x GPUs each, e.g. 4x8 h100 gpu-large"


class WishBox(Vertical):
    """``changed`` is called with every new text; who calls :meth:`judge` gives the nodes."""

    DEFAULT_CSS = """
    WishBox { height: auto; }
    WishBox > LinesBox { height: 0; background: $panel; }
    """

    def __init__(self, changed: Callable[[], None], back_to: Widget) -> None:
        super().__init__()
        self.text = ""
        self.fitting: frozenset[str] = frozenset()
        """The nodes that could take a share now."""
        self._changed = changed
        self._lines: tuple[Line, ...] = ()
        self._height = 0
        self._bar = FilterBar(self._typed, back_to, label="fits?")
        self._box = LinesBox(lambda _width: self._lines)

    def compose(self) -> ComposeResult:
        yield self._bar
        yield self._box

    @property
    def lines(self) -> int:
        """How many lines of the screen it takes."""
        return (1 if self._bar.display else 0) + self._height

    def open(self) -> None:
        self._bar.open()

    def clear(self) -> None:
        self._bar.clear()

    def _typed(self, text: str) -> None:
        if text != self.text:
            self.text = text
            self._changed()

    def judge(
        self,
        nodes: Sequence[Node],
        jobs_on: Callable[[str], Sequence[Job]],
        *,
        all_jobs_known: bool,
        now: datetime,
        zone: tzinfo,
        screen: tuple[int, int],
    ) -> None:
        """Say where what is typed would fit, on at most a third of a ``screen`` (cells, lines)."""
        error: str | None = None
        fit: Fit | None = None
        if self.text.strip():
            wish = parse_wish(self.text, nodes)
            if isinstance(wish, str):
                error = wish
            else:
                fit = find_fit(wish, nodes, jobs_on, all_jobs_known=all_jobs_known)
        self._bar.say(((error or _HINT, "bad" if error else "dim"),))
        best = None if fit is None else fit.best
        self.fitting = frozenset(one.node.name for one in (best.now if best else ()))
        lines = () if fit is None else fit_lines(fit, now, screen[0], zone)
        if lines != self._lines:
            self._lines = lines
            self._height = min(len(lines), max(3, screen[1] // 3))
            self._box.styles.height = self._height
            self._box.refresh()
