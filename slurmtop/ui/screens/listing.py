"""What the screens with a sorted and filtered list share: the keys that change the view."""

from typing import ClassVar, Protocol

from textual.widget import Widget

from slurmtop.ui.screens.base import BaseScreen
from slurmtop.ui.widgets.filter_bar import FilterBar


class ListView(Protocol):
    """The view behind the rows (:mod:`slurmtop.store`)."""

    sort: str
    reverse: bool
    problems_only: bool

    def set_sort(self, sort: str, *, reverse: bool = False) -> None: ...

    def set_problems_only(self, yes: bool) -> None: ...


class ListingScreen(BaseScreen):
    """``ORDERS`` are the sort orders in the order of the key; ``show`` paints what changed."""

    ORDERS: ClassVar[tuple[str, ...]] = ()
    _filter: FilterBar

    @property
    def listed(self) -> ListView:
        raise NotImplementedError

    def show(self) -> None:
        raise NotImplementedError

    def _settle_on(self, rows: Widget) -> None:
        """Where keys go at first; a filter that a key has opened before this keeps them."""
        if not self._filter.display:
            self.set_focus(rows)

    def action_filter(self) -> None:
        self._filter.open()
        self.show()

    def action_next_sort(self) -> None:
        later = self.ORDERS.index(self.listed.sort) + 1
        self._sort(self.ORDERS[later % len(self.ORDERS)], reverse=False)

    def action_reverse_sort(self) -> None:
        self._sort(self.listed.sort, reverse=not self.listed.reverse)

    def _sort(self, sort: str, *, reverse: bool) -> None:
        self.listed.set_sort(sort, reverse=reverse)
        self.show()

    def action_problems(self) -> None:
        self.listed.set_problems_only(not self.listed.problems_only)
        self.show()

    def action_all_users(self) -> None:
        self.tool.show_all_users(not self.tool.feed.all_users)
        self.show()
