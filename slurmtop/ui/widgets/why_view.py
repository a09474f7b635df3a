"""The Why tab: the verdict in four lines, then what stands behind it, with a cursor."""

from collections.abc import Callable
from datetime import datetime, tzinfo

from textual import events
from textual.strip import Strip

from slurmtop.ui.present.spans import Line
from slurmtop.ui.present.why import Item, Page, Spot, WhyState, same_spot, why_page, with_cursor
from slurmtop.ui.widgets.lines import LinesView, line_strip

#: Lines between two spots, or beyond the edge, over which the cursor goes at once.
_NEAR = 3


class WhyView(LinesView, inherit_bindings=False):
    """Shows :attr:`state`; set it through :meth:`show_state`.

    The cursor stands on a proof or a step, the first one until a person moves it. It stays with
    its item when the page is made anew; where that is gone there is no cursor until the next
    key, so that nothing else can be acted on by mistake.
    """

    def __init__(
        self,
        now: Callable[[], datetime],
        zone: tzinfo | None,
        seen_at: Callable[[datetime], datetime],
        *,
        id: str,
    ) -> None:
        super().__init__(self._why_lines, id=id)
        self._now, self._zone, self._seen_at = now, zone, seen_at
        self.state = WhyState()
        self._page = Page(())
        self._moved = False
        self._spot: Spot | None = None
        """Under the cursor, where it stood when the page was made."""

    def show_state(self, state: WhyState) -> None:
        """Show another verdict, or that one is awaited."""
        self.state = state
        self.rebuild()

    def _why_lines(self, width: int) -> tuple[Line, ...]:
        now, verdict = self._now(), self.state.verdict
        age_s = None
        if verdict is not None and verdict.made_at is not None:
            age_s = (now - self._seen_at(verdict.made_at)).total_seconds()
        self._page = why_page(self.state, now, width, self._zone, age_s=age_s, age_of=self._age_of)
        return self._page.lines

    def _age_of(self, at: datetime) -> float:
        """Seconds since then, as the reader felt them."""
        return max(0.0, (self._now() - self._seen_at(at)).total_seconds())

    def rebuild(self) -> None:
        """As ever; what the cursor stands on stays where it is on the screen."""
        was, y = self._spot, self.scroll_offset.y
        in_sight = was is not None and self._in_sight(was)
        super().rebuild()
        spots = self._page.spots
        if self._moved:
            self._spot = same_spot(spots, was) if was is not None else None
        else:
            self._spot = spots[0] if spots else None
        if self._spot != was:
            self.refresh()
        if was is not None and self._spot is not None and self._moved and in_sight:
            self._scroll(y + self._spot.first - was.first)

    # The cursor

    @property
    def item(self) -> Item | None:
        """What is under the cursor and in sight."""
        spot = self._spot
        return spot.item if spot is not None and self._in_sight(spot) else None

    @property
    def has_spots(self) -> bool:
        return bool(self._page.spots)

    def show_cursor(self) -> bool:
        """Bring the cursor in sight; False where there is none, or nothing to do."""
        if self._spot is None or self._in_sight(self._spot):
            return False
        self._scroll_to_spot(self._spot)
        return True

    def move(self, how: str) -> None:
        """Move the cursor up or down where another spot is near, else scroll; page_up, page_down,
        home, end, left and right scroll and take the cursor along."""
        if how in ("up", "down"):
            self._step(1 if how == "down" else -1)
            return
        self.scroll_by(how)
        if how in ("home", "end"):
            self._take_along(last=how == "end")
        elif how in ("page_up", "page_down") and self.item is None:
            self._take_along(last=how == "page_up")

    def _step(self, by: int) -> None:
        spots = self._page.spots
        target = self._next_spot(by)
        if target is not None and self._near(target):
            self._put(target)
            self._scroll_to_spot(target)
        elif spots or self.max_scroll_y:
            self.scroll_by("down" if by > 0 else "up")

    def _next_spot(self, by: int) -> Spot | None:
        spots, here = self._page.spots, self._spot
        if here is None:
            seen = [spot for spot in spots if self._in_sight(spot)]
            return (seen[0] if by > 0 else seen[-1]) if seen else None
        if by > 0:
            return next((spot for spot in spots if spot.first > here.first), None)
        return next((spot for spot in reversed(spots) if spot.first < here.first), None)

    def _take_along(self, *, last: bool) -> None:
        """After a page: the cursor goes to a spot in sight, if there is one."""
        seen = [spot for spot in self._page.spots if self._in_sight(spot)]
        if seen:
            self._put(seen[-1] if last else seen[0])

    def _put(self, spot: Spot) -> None:
        self._moved = True
        self._spot = spot
        self.refresh()

    def _rows(self) -> range:
        y = self.scroll_offset.y
        return range(y, y + max(1, self.size.height))

    def _in_sight(self, spot: Spot) -> bool:
        return spot.first in self._rows()

    def _near(self, spot: Spot) -> bool:
        """May the cursor go there without hiding a line that was not seen yet?"""
        rows, here = self._rows(), self._spot
        if rows.start - _NEAR <= spot.first < rows.stop + _NEAR:
            return True
        if here is None or not self._in_sight(here):
            return False
        if spot.first < here.first:
            return here.first - spot.end <= _NEAR
        return here.end <= rows.stop and spot.first - here.end <= _NEAR

    def _scroll_to_spot(self, spot: Spot) -> None:
        """All of it in sight, and at least its first line."""
        rows = self._rows()
        if spot.end > rows.stop:
            self._scroll(min(spot.first, spot.end - len(rows)))
        elif spot.first < rows.start:
            self._scroll(spot.first)

    def _scroll(self, y: int) -> None:
        self.scroll_to(y=max(0, y), animate=False, immediate=True)

    def on_click(self, event: events.Click) -> None:
        """A click puts the cursor there; it does nothing else."""
        y = event.y + self.scroll_offset.y
        for spot in self._page.spots:
            if spot.first <= y < spot.end:
                self._put(spot)

    def render_line(self, y: int) -> Strip:
        spot = self._spot
        x, top = self.scroll_offset
        if spot is None or top + y != spot.first or spot.first >= len(self.lines):
            return super().render_line(y)
        return line_strip(self, with_cursor(self.lines[spot.first]), self.size.width, x)
