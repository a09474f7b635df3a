"""A line of the Jobs screen: which columns fit, and what stands in them. Pure.

Nothing here is stored that ticks: times are worked out from timestamps at ``now``.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job, LimitKind, Phase
from slurmtop.model.text import cell_width, fit, visible
from slurmtop.model.units import count_text
from slurmtop.parse.slurm.exit_codes import explain_job_exit
from slurmtop.parse.slurm.reasons import explain_reason
from slurmtop.store.jobs import Gone
from slurmtop.store.rows import Count, Group, Row
from slurmtop.ui.present.gpu_use import WIDTH as USE_WIDTH
from slurmtop.ui.present.row_states import GROUP_STATES, STATE_ROLES, STATE_WORDS
from slurmtop.ui.present.spans import Line, Span

DASH = "–"
#: After this long without a word from accounting, nobody expects one any more.
RESULT_LATE = timedelta(minutes=5)
GUTTER = 3
#: The reason gets this much before any other column grows.
WHY_WANTS = 34

#: What a person has to act on before anything moves; see ``ReasonInfo.kind``.
_NEEDS_SOMEBODY = frozenset({"held", "never", "failure"})


@dataclass(frozen=True, slots=True)
class Now:
    """What a cell may depend on besides its row.

    Times of jobs are worked out at ``now``, which stands still while the data is old;
    ``wall`` is the clock of the viewer (None: the same). ``use`` makes the cell of a job's GPU
    use.
    """

    now: datetime
    user: str = ""
    wall: datetime | None = None
    use: Callable[[JobKey], Span] | None = None

    def missing_for(self, gone: Gone) -> timedelta:
        return (self.wall or self.now) - gone.since


_reason = lru_cache(maxsize=512)(explain_reason)


def needs_somebody(job: Job) -> bool:
    """True for a job that will not get on without a person: failed, held, or never to start."""
    phase = job.state.phase
    if phase is Phase.FAILED:
        return True
    if phase is not Phase.PENDING or not job.reason:
        return False
    return _reason(job.reason).kind in _NEEDS_SOMEBODY


def short_duration(seconds: float) -> str:
    """At most six cells: ``12:05`` under an hour, then ``3h02m``, ``2d03h``, ``123d``."""
    whole = max(0, int(seconds))
    if whole < 3_600:
        return f"{whole // 60}:{whole % 60:02}"
    if whole < 86_400:
        return f"{whole // 3_600}h{whole % 3_600 // 60:02}m"
    if whole < 100 * 86_400:
        return f"{whole // 86_400}d{whole % 86_400 // 3_600:02}h"
    return f"{whole // 86_400}d"


def _seconds_in_state(row: Row, now: datetime) -> float | None:
    """How long it has waited or run; None where Slurm's record does not say."""
    job, phase = row.job, row.job.state.phase
    if phase is Phase.PENDING:
        return (now - job.submit).total_seconds() if job.submit is not None else None
    if job.start is None or phase in (Phase.SUSPENDED, Phase.ELSEWHERE, Phase.UNKNOWN):
        return None
    if job.state.ended:
        return (job.end - job.start).total_seconds() if job.end is not None else None
    if row.lost and row.gone is not None:
        return (row.gone.since - job.start).total_seconds()
    return None if phase is Phase.ENDING else (now - job.start).total_seconds()


def _time(row: Row, at: Now) -> Span:
    if row.group is not None:
        return ("", "")
    seconds = _seconds_in_state(row, at.now)
    role = "dim" if row.job.state.phase is not Phase.RUNNING or row.lost else ""
    return (DASH, "dim") if seconds is None else (short_duration(seconds), role)


def _left(row: Row, at: Now) -> Span:
    job = row.job
    if row.group is not None:
        return ("", "")
    if job.state.phase is not Phase.RUNNING or row.lost:
        return (DASH, "dim")
    limit = job.limit
    if limit.kind is LimitKind.UNLIMITED:
        return ("none", "dim")
    if limit.kind is LimitKind.OVER_A_YEAR:
        return (">365d", "dim")
    if limit.kind is not LimitKind.SECONDS or limit.seconds is None or job.start is None:
        return (DASH, "dim")
    left = limit.seconds - max(0.0, (at.now - job.start).total_seconds())
    if left < 0:
        return ("over", "warn")
    return (short_duration(left), "warn" if left < 600 else "")


def _state(row: Row, at: Now) -> Span:
    group = row.group
    if row.lost:
        return ("gone", "warn")
    if group is not None:
        count = group.counts[0]
        first = {"waiting": "PD"}.get(count.label, count.label)
        return GROUP_STATES[first]
    state = row.job.state
    word = STATE_WORDS.get(state.word) or visible(state.word).lower() or "?"
    return (word, STATE_ROLES[state.phase])


def _job_id(row: Row, at: Now) -> Span:
    if row.group is not None:
        return (row.key.id, "strong")
    job_id = row.job.id
    text = f"{job_id.base}_[…]" if job_id.tasks is not None else visible(job_id.text)
    return (" " * row.depth + text, "dim" if row.lost else "")


def _name(row: Row, at: Now) -> Span:
    return (visible(row.job.name) or DASH, "dim" if row.lost else "")


def _user(row: Row, at: Now) -> Span:
    mine = row.job.user == at.user
    return (visible(row.job.user) or DASH, "strong" if mine else "")


def _partition(row: Row, at: Now) -> Span:
    return (",".join(visible(name) for name in row.job.partitions) or DASH, "")


def _nodes(row: Row, at: Now) -> Span:
    values = [job.node_count for job in row.jobs]
    return _sum(values, row)


def _gpus(row: Row, at: Now) -> Span:
    return _sum([job.tres.gpus for job in row.jobs], row)


def _use(row: Row, at: Now) -> Span:
    """Of a running job that holds GPUs; nobody is asked for it here."""
    job = row.job
    if at.use is None or row.group is not None or job.state.phase is not Phase.RUNNING:
        return ("", "")
    return ("", "") if job.tres.gpus == 0 or row.lost else at.use(job.key)


def _sum(values: Sequence[int | None], row: Row) -> Span:
    """A group shows the sum of a het job; an array's tasks each have their own."""
    if row.group is not None and row.group.kind == "array":
        return ("", "")
    known = [value for value in values if value is not None]
    if len(known) != len(values):
        return (DASH, "dim")
    total = sum(known)
    return (count_text(total), "" if total else "dim")


def _priority(row: Row, at: Now) -> Span:
    if row.group is not None:
        return ("", "")
    value = row.job.priority
    return (DASH, "dim") if value is None else (str(value), "")


def counts_text(counts: Iterable[Count]) -> str:
    """``12 R  4 PD  3 F  981 waiting``; ``19+`` where Slurm cut the list of tasks."""
    return "  ".join(
        f"{count_text(count.count)}{'' if count.exact else '+'} {count.label}" for count in counts
    )


def _why(row: Row, at: Now) -> Span:
    if row.group is not None:
        return (_group_why(row.group), "")
    if row.lost and row.gone is not None:
        if at.missing_for(row.gone) < RESULT_LATE:
            return ("ended, result not known yet", "warn")
        return (f"ended, result unknown: slurmtop why {visible(row.job.id.text)}", "warn")
    job = row.job
    phase = job.state.phase
    if phase is Phase.PENDING:
        return _pending_why(job)
    if phase in (Phase.RUNNING, Phase.SUSPENDED):
        again = f", attempt {job.restarts + 1}" if job.restarts else ""
        return ((visible(job.nodes) if job.nodes else DASH) + again, "")
    if phase is Phase.ENDING:
        return ("nodes are being cleaned up; may end or wait again", "dim")
    if phase is Phase.ELSEWHERE:
        return ("started on another cluster of the federation", "dim")
    if phase is Phase.UNKNOWN:
        return ("a state that slurmtop does not know", "warn")
    return _ended_why(row)


def _group_why(group: Group) -> str:
    head = "" if group.kind == "array" else f"het, {len(group.jobs)} parts: "
    return head + counts_text(group.counts)


def _pending_why(job: Job) -> Span:
    tasks = job.id.tasks
    head = ""
    if tasks is not None:
        limit = f", {tasks.throttle} at once" if tasks.throttle else ""
        head = f"{tasks.count_text()} waiting{limit}: "
    info = _reason(job.reason) if job.reason else None
    if info is None or info.kind == "ok":
        return (f"{head}not looked at by the scheduler yet", "dim")
    detail = f" ({visible(info.detail)})" if info.detail else ""
    if info.word == "Dependency" and job.dependency:
        detail = f" ({visible(job.dependency)})"
    role = "warn" if info.kind in _NEEDS_SOMEBODY else ""
    return (f"{head}{visible(info.meaning).rstrip('.')}{detail}", role)


def _ended_why(row: Row) -> Span:
    told = row.gone.exit if row.gone is not None else None
    meaning = told or explain_job_exit(row.job)
    return (visible(meaning.short), ("warn" if meaning.warning else "") if meaning.ok else "bad")


@dataclass(frozen=True, slots=True)
class Column:
    """``rank`` 0 always stays; the highest rank goes first when the screen is narrow.

    ``grow`` shares out what is left over; ``most`` ends that.
    """

    name: str
    title: str
    width: int
    rank: int
    cell: Callable[[Row, Now], Span]
    right: bool = False
    grow: int = 0
    most: int = 0


#: Enough for the weights of most sites; more is given where a job needs it.
PRIO_WIDTH = 7
_ID = Column("id", "JOB", 8, 0, _job_id)
COLUMNS: tuple[Column, ...] = (
    _ID,
    Column("state", "STATE", 9, 0, _state),
    Column("time", "TIME", 6, 0, _time, right=True),
    Column("left", "LEFT", 6, 4, _left, right=True),
    Column("user", "USER", 8, 2, _user, grow=1, most=12),
    Column("partition", "PART", 8, 7, _partition, grow=1, most=14),
    Column("gpus", "GPUS", 4, 3, _gpus, right=True),
    Column("use", "GPU USE", USE_WIDTH, 6, _use),
    Column("nodes", "NODES", 5, 5, _nodes, right=True),
    Column("priority", "PRIO", PRIO_WIDTH, 8, _priority, right=True),
    Column("name", "NAME", 12, 0, _name, grow=2, most=32),
    Column("why", "WHY", 27, 1, _why, grow=6, most=10_000),
)
_SQUEEZE = ("name", "state", "time", "id")

Layout = tuple[tuple[Column, int], ...]


def id_width(rows: Sequence[Row]) -> int:
    """Cells for the widest id in view, within reason."""
    widest = max((len(row.key.id) + row.depth for row in rows), default=0)
    return max(6, min(18, widest))


def priority_width(rows: Sequence[Row]) -> int:
    """Cells for the longest priority in view: its last digits tell jobs apart."""
    highest = max((row.job.priority or 0 for row in rows), default=0)
    return max(PRIO_WIDTH, min(10, len(str(highest))))


def lay_out(
    width: int,
    *,
    with_user: bool,
    id_cells: int = 8,
    with_use: bool = False,
    priority_cells: int = PRIO_WIDTH,
) -> Layout:
    """The columns that fit ``width`` cells, each with its own width. The GPU use stands there
    only ``with_use``: where it is known of some job.

    Nothing is scrolled sideways: what has no room is left out, the least needed first. On a
    screen too narrow even for the four that always stay, those shrink.
    """
    left_out = {"user": not with_user, "use": not with_use}
    chosen = [column for column in COLUMNS if not left_out.get(column.name, False)]
    widths = {column.name: column.width for column in chosen}
    widths |= {"id": id_cells, "priority": priority_cells}
    room = width - GUTTER

    def need() -> int:
        return sum(widths[column.name] for column in chosen) + max(0, len(chosen) - 1)

    while need() > room and any(column.rank for column in chosen):
        chosen.remove(max(chosen, key=lambda column: column.rank))
    for name in _SQUEEZE:
        over = need() - room
        if over > 0:
            widths[name] = max(1, widths[name] - over)
    while need() > room and len(chosen) > 1:
        chosen.pop()
    spare = room - need()
    if chosen[-1].name == "why":
        more = max(0, min(spare, WHY_WANTS - widths["why"]))
        widths["why"] += more
        spare -= more
    while spare > 0:
        growing = [c for c in chosen if c.grow and widths[c.name] < c.most]
        if not growing:
            break
        share = max(1, spare // sum(column.grow for column in growing))
        for column in growing:
            add = min(share * column.grow, column.most - widths[column.name], spare)
            widths[column.name] += add
            spare -= add
    return tuple((column, widths[column.name]) for column in chosen)


def _put(text: str, width: int, right: bool) -> str:
    if not right:
        return fit(text, width)
    pad = width - cell_width(text)
    return " " * pad + text if pad >= 0 else fit(text, width)


def header_line(layout: Layout, sort: str, reverse: bool) -> Line:
    """The titles; the sorted column has an arrow where there is room for it."""
    spans: list[Span] = [(" " * GUTTER, "label")]
    for index, (column, width) in enumerate(layout):
        title = column.title
        if column.name == sort and len(title) < width:
            title += "▴" if reverse else "▾"
        gap = " " if index else ""
        spans.append((gap + _put(title, width, column.right), "label"))
    return tuple(spans)


def row_line(row: Row, layout: Layout, at: Now, *, cursor: bool, marked: bool) -> Line:
    """One row. The first cells say in signs what a colour may not show: cursor, mark, fold."""
    fold = " " if row.group is None else "▾" if row.group.open else "▸"
    signs = (">" if cursor else " ") + ("*" if marked else " ") + fold
    spans: list[Span] = [(signs, "mark" if marked else "")]
    for index, (column, width) in enumerate(layout):
        text, role = column.cell(row, at)
        spans.append(((" " if index else "") + _put(text, width, column.right), role))
    return tuple(spans)


def tick_of(row: Row, at: Now) -> str:
    """Changes exactly when time alone changes what the row shows."""
    if row.group is not None:
        return ""
    late = ""
    if row.gone is not None:
        late = str(at.missing_for(row.gone) < RESULT_LATE)
    return f"{_time(row, at)[0]} {_left(row, at)[0]} {_use(row, at)[0]} {late}"
