"""The two lines above the queue, and what stands there when there are no rows. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from slurmtop.model.text import visible
from slurmtop.model.units import count_text, plural
from slurmtop.store.rows import Count
from slurmtop.ui.present.health import Condition, HealthWords
from slurmtop.ui.present.job import moment_text
from slurmtop.ui.present.spans import Line, Span, cut_line, ends, join, line_width, wrap

_PHASE_WORDS = {
    "R": ("running", "good"),
    "S": ("suspended", "warn"),
    "CG": ("ending", "busy"),
    "PD": ("pending", "wait"),
    "F": ("failed", "bad"),
    "CD": ("done", ""),
    "CA": ("cancelled", "warn"),
    "RV": ("elsewhere", "dim"),
    "?": ("unknown", "warn"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueHead:
    """What the header says. ``counts`` is None until the queue has answered once."""

    cluster: str
    user: str
    all_users: bool
    counts: tuple[Count, ...] | None
    health: HealthWords
    calls: int
    sort: str = "natural"
    reverse: bool = False
    marked: int = 0
    hidden: int = 0
    """How many of the marks the filter hides."""
    problems_only: bool = False
    read_only: bool = False
    dry_run: bool = False
    demo: str = ""
    replay: str = ""
    """When what is shown was recorded, for a replay."""
    idle: bool = False
    private_data: bool = False
    """Slurm may hide other people's jobs from this user."""


def header_lines(head: QueueHead, width: int) -> tuple[Line, ...]:
    """Two lines of at most ``width`` cells; more where the health needs more words."""
    whose = "everybody" if head.all_users else f"jobs of {visible(head.user)}"
    who: list[Line] = [((visible(head.cluster) or "slurmtop", "strong"),), ((whose, ""),)]
    marks = mark_line(
        demo=head.demo, replay=head.replay, read_only=head.read_only, dry_run=head.dry_run
    )
    room = width - line_width(marks) - 1
    left = join([*who, *_count_lines(head.counts, short=False)])
    if line_width(left) > room:
        left = join([*who, *_count_lines(head.counts, short=True)])
    return head_block(left, marks, head.health, join(_modes(head)), width)


def head_block(
    left: Line, marks: Line, health: HealthWords, modes: Line, width: int
) -> tuple[Line, ...]:
    """What there is and how the screen runs; below how fresh it is, and the ``modes``."""
    first = ends(left, marks, width)
    words, role = health.sentence, health.role
    if line_width(modes) + len(words) + 1 <= width:
        return (first, ends(((words, role),), modes, width))
    wrapped: list[Line] = [((line, role),) for line in wrap(words, max(8, width))]
    if modes:
        wrapped[-1] = ends(wrapped[-1], modes, width)
    return (first, *(cut_line(line, width) for line in wrapped))


def _count_lines(counts: tuple[Count, ...] | None, *, short: bool) -> list[Line]:
    """``12 running · 981 pending``, or ``12 R 981 PD`` where there is little room."""
    if counts is None:
        return [(("no count yet", "dim"),)]
    if not counts:
        return [(("no jobs", "dim"),)]
    out: list[Line] = []
    for count in counts:
        word, role = _PHASE_WORDS[count.label]
        number = f"{count_text(count.count)}{'' if count.exact else '+'} "
        out.append(((number, "strong"), (count.label if short else word, role)))
    return [join(out, " ")] if short else out


def mark_line(*, demo: str, replay: str, read_only: bool, dry_run: bool) -> Line:
    """What must never be overlooked: that it is a demo, a recording, read-only, a dry run."""
    out: list[Line] = []
    if demo:
        out.append(((f"DEMO {visible(demo)}, simulated", "warn"),))
    if replay:
        out.append(((f"REPLAY of {replay}", "warn"),))
    if read_only:
        out.append((("read-only", "warn"),))
    if dry_run:
        out.append((("DRY RUN", "warn"),))
    return join(out)


def _modes(head: QueueHead) -> list[Line]:
    out: list[Line] = []
    if head.private_data:
        out.append((("some jobs may be hidden", "warn"),))
    if head.marked:
        hidden = f", {head.hidden} of them hidden by the filter" if head.hidden else ""
        out.append(((f"{head.marked} marked{hidden}", "mark"),))
    if head.problems_only:
        out.append((("only problems", "warn"),))
    if head.idle:
        out.append((("idle, asking less often", "dim"),))
    if head.sort != "natural" or head.reverse:
        out.append(((f"by {head.sort}{', reversed' if head.reverse else ''}", "label"),))
    out.append(((f"{head.calls} calls/min", "dim"),))
    return out


@dataclass(frozen=True, slots=True, kw_only=True)
class Emptiness:
    """Why the table may be empty. ``hidden`` counts jobs that the filter takes out."""

    health: HealthWords
    good_at: datetime | None
    all_users: bool
    hidden: int = 0
    filter_text: str = ""
    filter_error: str | None = None
    problems_only: bool = False
    private_data: bool = False


_NO_ANSWER = {
    Condition.SILENT: "Slurm has not answered",
    Condition.REFUSED: "Slurm refused",
    Condition.UNRECORDED: "The recording does not hold it",
}


def notice_lines(
    why: Emptiness, now: datetime, width: int, zone: tzinfo | None = None
) -> tuple[Line, ...]:
    """What stands in the place of rows. An outage never looks like an empty queue."""
    not_empty = "This is not an empty queue: nothing is known about your jobs."
    texts = unknown_texts(why.health, not_empty)
    if not texts and why.hidden:
        texts = [_hidden(why)]
        if why.filter_error:
            texts.append((why.filter_error, "warn"))
    return text_block(texts or _empty(why, now, zone), width)


def unknown_texts(health: HealthWords, not_empty: str) -> list[Span]:
    """What is said while there is no answer; ``not_empty`` says what that does not mean. Nothing
    where Slurm has answered."""
    if health.condition is Condition.LOADING:
        return [("Loading", "busy"), (health.body, "dim")]
    title = _NO_ANSWER.get(health.condition)
    if title is not None:
        return [(title, "bad"), (health.body, ""), (not_empty, "strong")]
    return []


def text_block(texts: Sequence[Span], width: int) -> tuple[Line, ...]:
    """Sentences with their roles, broken at ``width`` and set in."""
    return tuple(
        (("  " + line, role),) for text, role in texts for line in wrap(text, max(8, width - 4))
    )


def _hidden(why: Emptiness) -> tuple[str, str]:
    jobs = plural(why.hidden, "job")
    if why.problems_only and not why.filter_text:
        return (f"Nothing needs you: {jobs} shown again with !", "good")
    also = " that needs somebody" if why.problems_only else ""
    return (f"No job{also} matches {visible(why.filter_text)!r}: esc shows {jobs} again", "")


def _empty(why: Emptiness, now: datetime, zone: tzinfo | None) -> list[tuple[str, str]]:
    at = moment_text(why.good_at, now, zone) if why.good_at is not None else "?"
    texts: list[tuple[str, str]] = []
    if why.all_users:
        whose = "that you may see" if why.private_data else "of anybody"
        texts.append((f"No jobs {whose}; last answer {at}", ""))
    else:
        texts.append((f"No jobs of yours; last answer {at}; a shows everybody's", ""))
    if why.health.condition is Condition.STALE:
        texts.append((f"That may have changed: {why.health.body}", "bad"))
    if why.private_data and why.all_users:
        texts.append(("Some jobs may be hidden: this site shows private data to few", "warn"))
    return texts


def filter_message(error: str | None, shown: int, total: int, thing: str = "job") -> Line:
    """Beside the filter: what is wrong with it, or how much it leaves."""
    if error is not None:
        return ((error, "bad"),)
    return ((f"{count_text(shown)} of {plural(total, thing)}", "dim"),)


def footer_line(entries: Sequence[tuple[str, str, bool, bool]], width: int) -> Line:
    """``(key, label, enabled, keep)``: what does not fit is left out, ``keep`` last of all.

    A key that does nothing now stands in brackets.
    """
    chosen = list(entries)

    def need() -> int:
        return sum(len(key) + len(label) + (1 if on else 3) for key, label, on, _ in chosen) + (
            2 * len(chosen)
        )

    while need() > width and any(not keep for *_, keep in chosen):
        last = max(index for index, entry in enumerate(chosen) if not entry[3])
        del chosen[last]
    parts: list[Line] = []
    for key, label, enabled, _ in chosen:
        if enabled:
            parts.append(((" ", ""), (key, "strong"), (f" {label} ", "label")))
        else:
            parts.append(((f" ({key} {label}) ", "dim"),))
    return cut_line(tuple(span for part in parts for span in part), width)
