"""The rows of the Jobs screen: filtered, sorted, folded; cursor and marks by key.

Work is done once and kept: an answer that changed nothing costs nothing, and a new filter
only walks the jobs in an order that is already there.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any, Protocol

from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job
from slurmtop.store.jobs import Gone
from slurmtop.store.query import EMPTY, Query
from slurmtop.store.query_keys import Expand, Seen, no_expand, search_text
from slurmtop.store.rows import (
    SORT_KEYS,
    Count,
    Entry,
    Group,
    Row,
    count_states,
    out_of_marked_rests,
)


class Book(Protocol):
    """What the view needs of a :class:`~slurmtop.store.jobs.JobBook`."""

    version: int

    @property
    def jobs(self) -> Sequence[Job]: ...

    @property
    def gone(self) -> Mapping[JobKey, Gone]: ...


def _no_problem(_job: Job) -> bool:
    return False


class JobView:
    """``update`` takes in a book; ``rows`` are ready to be painted.

    ``problem`` says whether a job needs somebody (the ``!`` key) by its record, ``suspect`` by
    what else is known, asked each time; ``expand`` reads host lists for ``node:``.
    """

    def __init__(
        self,
        *,
        problem: Callable[[Job], bool] = _no_problem,
        suspect: Callable[[Job], bool] = _no_problem,
        expand: Expand = no_expand,
    ) -> None:
        self._problem = problem
        self._suspect = suspect
        self._expand = expand
        self._version: int | None = None
        self._now: datetime | None = None
        self._entries: dict[int, Entry] = {}
        self._order: list[Entry] | None = None
        self._totals: tuple[Count, ...] | None = None
        self._rows: list[Row] | None = []
        self._group_rows: dict[JobKey, Row] = {}
        self._open: set[JobKey] = set()
        self.query = EMPTY
        self.sort = "natural"
        self.reverse = False
        self.problems_only = False
        self.marks: set[JobKey] = set()
        self._anchor: JobKey | None = None
        self._cursor: Row | None = None
        self._cursor_index = 0
        self._in_view: tuple[int, frozenset[JobKey]] = (-1, frozenset())
        self.rebuilds = 0
        """How often rows were made: what the budget tests count."""

    def update(self, book: Book, now: datetime) -> bool:
        """Take in what the book holds. False where the rows stay as they are."""
        if book.version == self._version and not self.query.timed:
            self._now = now
            return False
        self._now = now
        if book.version != self._version:
            self._version = book.version
            old = self._entries
            fresh: dict[int, Entry] = {}
            for job in book.jobs:
                entry = old.get(id(job))
                if entry is None or entry.gone is not None:
                    entry = Entry(job, None)
                fresh[id(job)] = entry
            for gone in book.gone.values():
                entry = old.get(id(gone.job))
                if entry is None or entry.gone is not gone:
                    entry = Entry(gone.job, gone)
                fresh[id(gone.job)] = entry
            if self.marks:
                self.marks |= out_of_marked_rests(self.marks, old.values(), fresh.values())
            self._entries = fresh
            self._order = None
            self._totals = None
            self._drop_marks()
        self._rows = None
        return True

    @property
    def rows(self) -> Sequence[Row]:
        if self._rows is None:
            self._rows = self._build()
            self._follow_cursor()
        return self._rows

    @property
    def shown(self) -> int:
        """Jobs that pass the filter, counted like :attr:`total`."""
        return _jobs_in(row.job for row in self.rows if row.group is None and not row.depth) + sum(
            _jobs_in(row.group.jobs) for row in self.rows if row.group is not None
        )

    @property
    def total(self) -> int:
        """Jobs in the book, whatever the filter says; an array's rest counts its tasks."""
        return sum(count.count for count in self.totals())

    def totals(self) -> tuple[Count, ...]:
        """Every job in exactly one bucket, whatever the filter says."""
        if self._totals is None:
            self._totals = count_states(self._entries.values(), rest_apart=False)
        return self._totals

    def set_query(self, query: Query) -> None:
        self.query = query
        self._rows = None

    def set_problems_only(self, yes: bool) -> None:
        """Also where ``suspect`` says something else than before."""
        self.problems_only = yes
        self._rows = None

    def set_sort(self, sort: str, *, reverse: bool = False) -> None:
        """``sort`` is one of :data:`~slurmtop.store.rows.SORTS`; ValueError otherwise."""
        if sort not in SORT_KEYS:
            raise ValueError(f"no sort order {sort!r}")
        self.sort, self.reverse = sort, reverse
        self._order = None
        self._rows = None

    def toggle_fold(self) -> bool:
        """Open or close the group under the cursor, also from one of its members."""
        row = self.cursor_row
        if row is None:
            return False
        group = row.key if row.group is not None else None
        if group is None and row.depth:
            group = JobKey(row.key.cluster, row.job.group_id or "")
        if group is None:
            return False
        if group in self._open:
            self._open.discard(group)
            self._cursor = self._group_rows.get(group, row)
        else:
            self._open.add(group)
        self._rows = None
        return True

    @property
    def cursor_index(self) -> int:
        self.rows  # noqa: B018 - the index follows the rows
        return self._cursor_index

    @property
    def cursor_row(self) -> Row | None:
        rows = self.rows
        return rows[self._cursor_index] if rows else None

    def move_to(self, index: int) -> None:
        rows = self.rows
        if rows:
            self._cursor_index = max(0, min(index, len(rows) - 1))
            self._cursor = rows[self._cursor_index]

    def toggle_mark(self) -> None:
        """Mark the row under the cursor, or take its mark away."""
        row = self.cursor_row
        if row is None:
            return
        if self.is_marked(row):
            self._unmark(row)
        else:
            self.marks |= self._keys_behind(row)
        self._anchor = row.key

    def mark_range(self) -> None:
        """Mark all rows from the last one that was marked by hand to the cursor."""
        row = self.cursor_row
        if row is None:
            return
        rows = self.rows
        start = next((at for at, one in enumerate(rows) if one.key == self._anchor), None)
        start = self._cursor_index if start is None else start
        low, high = sorted((start, self._cursor_index))
        for one in rows[low : high + 1]:
            # An open group has its members below it: only those in the range are meant.
            if one.gone is None and not (one.group is not None and one.group.open and low < high):
                self.marks |= self._keys_behind(one)
        self._anchor = row.key

    def mark_all(self) -> None:
        """Mark every job that the filter leaves; where all of them are marked, none of them."""
        left = {entry.job.key for entry in self._entries.values() if entry.gone is not None}
        rows = [row for row in self.rows if row.depth == 0]
        keys = {job.key for row in rows for job in row.jobs} - left
        marked = keys & self.marks
        for row in rows:
            if row.key in self.marks:
                marked |= keys.intersection(job.key for job in row.jobs)
        if keys and marked == keys:
            self.marks -= keys | {row.key for row in rows}
        else:
            self.marks |= keys

    def is_marked(self, row: Row) -> bool:
        """Is the row marked: itself, by the group it belongs to, or by all of its jobs?"""
        marks = self.marks
        if not marks:
            return False
        if row.key in marks:
            return True
        if row.group is not None:
            return all(job.key in marks for job in row.group.jobs)
        return row.depth > 0 and JobKey(row.key.cluster, row.job.group_id or "") in marks

    def _keys_behind(self, row: Row) -> set[JobKey]:
        """What a mark on ``row`` means. A group under a filter stands for the jobs that the
        filter leaves, and must not grow when the filter goes."""
        if row.group is not None and self._filters:
            return {job.key for job in row.group.jobs}
        return {row.key}

    def _unmark(self, row: Row) -> None:
        if row.group is not None:
            self.marks -= {row.key, *(job.key for job in row.group.jobs)}
            return
        group = JobKey(row.key.cluster, row.job.group_id or "")
        if row.depth and group in self.marks:
            # The group was marked: its other jobs keep the mark.
            self.marks.discard(group)
            self.marks |= {
                entry.job.key for entry in self._entries.values() if entry.group == group
            }
        self.marks.discard(row.key)

    def marked_rows(self) -> tuple[Row, ...]:
        """The marked rows, also those that a filter or a fold hides now."""
        if not self.marks:
            return ()
        # A marked group is meant whole, whatever a filter leaves of it now.
        found = [row for row in self.rows if row.key in self.marks and not self._cuts(row)]
        seen = {row.key for row in found}
        if seen != self.marks:
            hidden = self._all_rows()
            found += [hidden[key] for key in sorted(self.marks - seen) if key in hidden]
        return tuple(found)

    def _cuts(self, row: Row) -> bool:
        return row.group is not None and self._filters

    @property
    def _filters(self) -> bool:
        return bool(self.query) or self.problems_only

    def hidden_jobs(self) -> frozenset[JobKey]:
        """The jobs behind the marks that the filter hides; those in a closed group are not."""
        if not self.marks or not self._filters:
            return frozenset()
        rows = self.rows
        if self._in_view[0] != self.rebuilds:
            shown = frozenset(job.key for row in rows if row.depth == 0 for job in row.jobs)
            self._in_view = (self.rebuilds, shown)
        marked = {job.key for row in self.marked_rows() for job in row.jobs}
        return frozenset(marked - self._in_view[1])

    def hidden_marks(self) -> int:
        """How many of the marks stand for a job that the filter hides."""
        hidden = self.hidden_jobs()
        if not hidden:
            return 0
        groups = {entry.group for entry in self._entries.values() if entry.job.key in hidden}
        return sum(1 for mark in self.marks if mark in hidden or mark in groups)

    def _all_rows(self) -> dict[JobKey, Row]:
        out: dict[JobKey, Row] = {}
        groups: dict[JobKey, list[Entry]] = {}
        for entry in self._entries.values():
            out[entry.job.key] = entry.row(0)
            if entry.group is not None:
                groups.setdefault(entry.group, []).append(entry)
        for key, members in groups.items():
            out[key] = self._group_row(key, members)
        return out

    def _drop_marks(self) -> None:
        if self.marks:
            known = {entry.job.key for entry in self._entries.values()}
            known |= {entry.group for entry in self._entries.values() if entry.group is not None}
            self.marks &= known

    def _ordered(self) -> list[Entry]:
        if self._order is None:
            key = SORT_KEYS[self.sort]
            known: list[tuple[Any, Entry]] = []
            unknown: list[Entry] = []
            for entry in self._entries.values():
                value = key(entry)
                if value is None:
                    unknown.append(entry)
                else:
                    known.append((value, entry))
            known.sort(key=itemgetter(0), reverse=self.reverse)
            self._order = [entry for _, entry in known] + unknown
        return self._order

    def _visible(self) -> list[Entry]:
        entries = self._ordered()
        query, problem, suspect = self.query, self._problem, self._suspect
        if self.problems_only:
            entries = [e for e in entries if _is_problem(e, problem) or suspect(e.job)]
        if not query:
            return entries
        for entry in entries:
            if entry.text is None:
                entry.text = search_text(entry.job)
        if query.words:
            words = query.words
            entries = [e for e in entries if e.text and all(word in e.text for word in words)]
        if query.tests and self._now is not None:
            now, expand = self._now, self._expand
            entries = [
                entry
                for entry in entries
                if query.matches(Seen(entry.job, entry.text or "", now, entry.lost, expand))
            ]
        return entries

    def _build(self) -> list[Row]:
        self.rebuilds += 1
        members: dict[JobKey, list[Entry]] = {}
        lines: list[Entry] = []
        for entry in self._visible():
            group = entry.group
            if group is None:
                lines.append(entry)
            elif group in members:
                members[group].append(entry)
            else:
                members[group] = [entry]
                lines.append(entry)
        rows: list[Row] = []
        kept: dict[JobKey, Row] = {}
        for entry in lines:
            group = entry.group
            inside = members[group] if group is not None else ()
            if group is None or len(inside) < 2:
                rows.append(entry.row(0))
                continue
            row = kept[group] = self._group_row(group, inside)
            rows.append(row)
            if group in self._open:
                rows.extend(member.row(1) for member in inside)
        self._group_rows = kept
        return rows

    def _group_row(self, key: JobKey, members: Sequence[Entry]) -> Row:
        jobs = tuple(entry.job for entry in members)
        is_open = key in self._open
        old = self._group_rows.get(key)
        if old is not None and old.group is not None and old.group.open == is_open:
            same = len(old.group.jobs) == len(jobs) and all(
                one is other for one, other in zip(old.group.jobs, jobs, strict=True)
            )
            if same:
                return old
        kind = "het" if jobs[0].id.het_offset is not None else "array"
        counts = count_states(members, rest_apart=True)
        return Row(key, jobs[0], None, Group(kind, jobs, is_open, counts))

    def _follow_cursor(self) -> None:
        rows, cursor = self._rows, self._cursor
        if not rows:
            return
        if cursor is not None:
            try:
                self._cursor_index = rows.index(cursor)
                return
            except ValueError:
                pass
            for index, row in enumerate(rows):
                if row.key.id == cursor.key.id and row.key == cursor.key:
                    self._cursor_index, self._cursor = index, row
                    return
        self._cursor_index = max(0, min(self._cursor_index, len(rows) - 1))
        self._cursor = rows[self._cursor_index]


def _jobs_in(jobs: Iterable[Job]) -> int:
    return sum(job.id.tasks.count if job.id.tasks is not None else 1 for job in jobs)


def _is_problem(entry: Entry, problem: Callable[[Job], bool]) -> bool:
    if entry.problem is None:
        entry.problem = problem(entry.job)
    return entry.problem
