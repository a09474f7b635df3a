"""The Why tab as lines: the four lines, then everything behind them. Pure.

All of a verdict that came from the cluster goes through ``visible``.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import TypeVar

from slurmtop.model.collective_table import Table
from slurmtop.model.live import LiveFacts
from slurmtop.model.text import visible
from slurmtop.model.units import ago_text
from slurmtop.model.verdict import (
    EVIDENCE_CHARS,
    EVIDENCE_LIMIT,
    Culprit,
    EndedBy,
    Evidence,
    Missing,
    NextStep,
    SourceFate,
    State,
    Verdict,
)
from slurmtop.triage.sources import folded
from slurmtop.triage.words import first_line, four_lines, place_text
from slurmtop.ui.present.collectives import collective_lines
from slurmtop.ui.present.job import moment_text
from slurmtop.ui.present.looking import AgeOf, LookState, look_line, looked_line
from slurmtop.ui.present.sources import answered_lines, fate_lines, not_asked_lines, unanswered
from slurmtop.ui.present.spans import Line, cut_line, join_in_rows, plain, wrap
from slurmtop.ui.present.where_ranks import RankRow, rank_lines

STATE_ROLES = {
    State.PENDING: "wait",
    State.HUNG: "bad",
    State.FAILED: "bad",
    State.SLOW: "warn",
    State.RECOVERING: "busy",
    State.HEALTHY: "good",
    State.IDLE: "warn",
    State.UNKNOWN: "warn",
}

_ENDED = {
    EndedBy.SELF: "ended by itself",
    EndedBy.USER: "ended by a person",
    EndedBy.SLURM: "ended by Slurm",
    EndedBy.FAULT: "ended by a fault",
}


#: A verdict older than this may be overtaken, unless the job is over: it is kept a minute.
OLD_VERDICT_S = 75.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyState:
    """What the tab has. ``asking`` names what is awaited, in words, since ``asking_since``.

    While ``asking`` is set an older ``verdict`` stays on the screen with its age. ``failed``
    is a sentence when the facts could not be gathered at all.
    """

    verdict: Verdict | None = None
    asking: str | None = None
    asking_since: datetime | None = None
    failed: str | None = None
    note: str | None = None
    """One more answer that a key asked for, e.g. the expected start."""
    tables: tuple[Table, ...] = ()
    """The collectives of the newest run, as far as its logs tell."""
    live: LiveFacts | None = None
    """What its nodes told, however long ago."""
    rows: tuple[RankRow, ...] = ()
    """Where its ranks stood at the newest of these looks."""
    stale: str = ""
    """Why ``live`` says nothing of now; the verdict is then made without it."""
    look: LookState | None = None
    """The look at its nodes that goes on, or how the last one ended."""
    may_look: bool = False
    """Can its nodes be looked at from here?"""


Item = Evidence | Missing | NextStep | SourceFate
"""What a key can act on."""


@dataclass(frozen=True, slots=True)
class Spot:
    """An item and where it stands: the lines from ``first`` up to, without, ``end``.

    ``nth`` tells items apart that are equal: how many like it stand above.
    """

    item: Item
    first: int
    end: int
    nth: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    """The whole tab, and what on it a cursor can stand on, from top to bottom."""

    lines: tuple[Line, ...]
    spots: tuple[Spot, ...] = ()


def why_page(
    state: WhyState,
    now: datetime,
    width: int,
    zone: tzinfo | None = None,
    *,
    age_s: float | None = None,
    age_of: AgeOf | None = None,
) -> Page:
    """The whole tab, each line at most ``width`` cells.

    ``age_s`` is how long ago the verdict was made, as its reader felt it; ``age_of`` tells that of
    any moment, where it is not simply up to ``now``.
    """
    ages = age_of or (lambda at: (now - at).total_seconds())
    out: list[Line] = []
    spots: list[Spot] = []
    verdict = state.verdict
    if verdict is not None:
        out.extend(_four(verdict, width))
        if age_s is not None and age_s > OLD_VERDICT_S and not _final(verdict):
            out.append(((f"judged {ago_text(age_s)} ago: r judges again", "warn"),))
    if state.note:
        out.extend(_text(visible(state.note), width, "strong"))
    out.extend(line for line in (_status(state, now), _looking(state, ages)) if line)
    if verdict is not None:
        out.extend(_judgement(verdict, now, width, zone, age_s))
        named = {one.rank for one in verdict.culprits if one.rank is not None}
        pids = {(one.host, one.pid) for one in verdict.culprits if one.host and one.pid is not None}
        out.extend(rank_lines(state.rows, named, pids, width, stale=state.stale))
        out.extend(_culprits(verdict.culprits, width))
        out.extend(collective_lines(state.tables, named, width))

        def proof(item: Evidence) -> list[Line]:
            return _evidence(item, width, now, zone)

        _list(out, spots, "Evidence", verdict.evidence[:EVIDENCE_LIMIT], proof)
        _list(out, spots, "Against", verdict.against[:EVIDENCE_LIMIT], proof)
        _list(out, spots, "Not read", verdict.missing, lambda item: _missing(item, width))
        _list(out, spots, "Do now", verdict.next, lambda item: _next(item, width))
        _sources(out, spots, folded(verdict.sources), width)
    return Page(tuple(cut_line(line, width) for line in out), tuple(spots))


T = TypeVar("T", Evidence, Missing, NextStep, SourceFate)


def _list(
    out: list[Line],
    spots: list[Spot],
    title: str,
    items: Iterable[T],
    lines_of: Callable[[T], list[Line]],
) -> None:
    """A heading and its items, each a spot where a key can do something with it."""
    for number, item in enumerate(items):
        if title and not number:
            out.extend(_heading(title))
        first = len(out)
        out.extend(lines_of(item))
        if not isinstance(item, Missing | SourceFate) or item.command:
            nth = sum(spot.item == item for spot in spots)
            spots.append(Spot(item, first, len(out), nth))


def _sources(
    out: list[Line], spots: list[Spot], sources: tuple[SourceFate, ...], width: int
) -> None:
    """Who answered, in a line; then who did not, why, and what opens it."""
    if not sources:
        return
    out.extend(_heading("Sources"))
    out.extend(answered_lines(sources, width))
    _list(out, spots, "", unanswered(sources), lambda item: fate_lines(item, width))
    out.extend(not_asked_lines(sources, width))


def with_cursor(line: Line) -> Line:
    """The first line of the spot under the cursor: marked by a sign and by its role."""
    text = plain(line)
    return ((">", "mark"), (text[1:], "strong"))


def same_spot(spots: tuple[Spot, ...], old: Spot) -> Spot | None:
    """Where ``old`` stands now, on a page that was made anew; None where it is gone.

    A proof that has only grown, as a step counter does, is still the same place, where there is
    only one like it.
    """
    for spot in spots:
        if (spot.item, spot.nth) == (old.item, old.nth):
            return spot
    if not isinstance(old.item, Evidence):
        return None
    grown = [
        spot
        for spot in spots
        if isinstance(spot.item, Evidence) and _kind(spot.item) == _kind(old.item)
    ]
    return grown[0] if len(grown) == 1 else None


def _kind(item: Evidence) -> tuple[object, ...]:
    return item.family, item.source, item.host, item.says


def _four(verdict: Verdict, width: int) -> list[Line]:
    lines: list[Line] = []
    for index, text in enumerate(four_lines(verdict, width)):
        label, _, rest = text.partition(" ")
        role = STATE_ROLES[verdict.state] if not index else ""
        lines.append(((label, "label"), (" " + rest, role)))
    summary = first_line(verdict)
    if summary not in plain(lines[0]):
        lines.extend([(), *_text(summary, width, STATE_ROLES[verdict.state])])
    return [*lines, ()]


def _status(state: WhyState, now: datetime) -> Line:
    if state.asking:
        since = (now - state.asking_since).total_seconds() if state.asking_since else 0.0
        waited = f" for {ago_text(since)}" if since >= 2 else ""
        return ((f"asking {visible(state.asking)} …{waited}", "busy"),)
    if state.failed:
        return ((visible(state.failed), "bad"),)
    return ()


def _looking(state: WhyState, age_of: AgeOf) -> Line:
    """How far a look at the nodes is, or how old the last one."""
    return look_line(state.look, age_of) or looked_line(
        state.live, state.look, state.stale, age_of, possible=state.may_look
    )


def _final(verdict: Verdict) -> bool:
    """Is it about a job that is over, so that no time can overtake it?"""
    return verdict.ended_by is not None or verdict.state is State.FAILED


def _judgement(
    verdict: Verdict, now: datetime, width: int, zone: tzinfo | None, age_s: float | None
) -> list[Line]:
    parts: list[Line] = [((str(verdict.state), STATE_ROLES[verdict.state]),)]
    if verdict.cls:
        parts.append((("class ", "label"), (visible(verdict.cls), "")))
    if verdict.ended_by is not None:
        parts.append(((_ENDED[verdict.ended_by], ""),))
    parts.append((("confidence ", "label"), (str(verdict.confidence), "")))
    if verdict.since is not None:
        parts.append((("last progress ", "label"), (moment_text(verdict.since, now, zone), "")))
    if age_s is not None and (age_s <= OLD_VERDICT_S or _final(verdict)):
        parts.append(((f"judged {ago_text(age_s)} ago", "dim"),))
    return join_in_rows(parts, width)


def _heading(text: str) -> list[Line]:
    return [(), ((text, "label"),)]


def _culprits(culprits: tuple[Culprit, ...], width: int) -> list[Line]:
    if not culprits:
        return []
    out = _heading("Who")
    for culprit in culprits:
        words = [
            f"rank {culprit.rank}" if culprit.rank is not None else "",
            f"host {visible(culprit.host)}" if culprit.host else "",
            f"GPU {visible(culprit.gpu)}" if culprit.gpu else "",
            f"pid {culprit.pid}" if culprit.pid is not None else "",
            f"link {visible(culprit.link)}" if culprit.link else "",
            f"mount {visible(culprit.mount)}" if culprit.mount else "",
            f"world {visible(culprit.world)}" if culprit.world else "",
            f"step {visible(culprit.step)}" if culprit.step else "",
            f"attempt {culprit.attempt}" if culprit.attempt is not None else "",
        ]
        who = ", ".join(word for word in words if word)
        reason = visible(culprit.reason)
        text = f"{who}: {reason}" if who and reason else who or reason
        out.extend(_text(text, width, "bad", indent="  "))
    return out


def _evidence(item: Evidence, width: int, now: datetime, zone: tzinfo | None) -> list[Line]:
    when = f"  {moment_text(item.time, now, zone)}" if item.time is not None else ""
    head = f"{visible(item.family)}  {place_text(item)}{when}"
    out = _text(head, width, "dim", indent="  ")
    raw = item.text[:EVIDENCE_CHARS]
    # A stack is read from top to bottom; what else holds line breaks is one line of a log.
    for line in raw.split("\n") if item.family == "stack" else (raw,):
        out.extend(_text(visible(line).strip(" "), width, "", indent="  │ "))
    if item.says:
        out.extend(_text(visible(item.says), width, "label", indent="    "))
    return out


def _missing(item: Missing, width: int) -> list[Line]:
    out = _text(f"{visible(item.family)}: {visible(item.why)}", width, "", indent="  ")
    if item.command:
        out.extend(_text(visible(item.command), width, "strong", indent="    $ "))
    return out


def _next(item: NextStep, width: int) -> list[Line]:
    effect = "" if item.effect == "read" else "  (changes something)"
    out = _text(f"{visible(item.label)}{effect}", width, "", indent="  ")
    out.extend(_text(visible(item.command), width, "strong", indent="    $ "))
    if item.why:
        out.extend(_text(visible(item.why), width, "dim", indent="    "))
    return out


def _text(text: str, width: int, role: str, *, indent: str = "") -> list[Line]:
    """Wrapped; the lines after the first keep the depth of ``indent`` but not its sign."""
    rest = indent if "│" in indent else " " * len(indent)
    return [((piece, role),) for piece in wrap(text, width, first=indent, rest=rest)]
