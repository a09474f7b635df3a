"""The Why tab as lines: the four lines, then everything behind them. Pure.

All of a verdict that came from the cluster goes through ``visible``.
"""

from dataclasses import dataclass
from datetime import datetime, tzinfo

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
    State,
    Verdict,
)
from slurmtop.triage.words import first_line, four_lines, place_text
from slurmtop.ui.present.job import moment_text
from slurmtop.ui.present.spans import Line, cut_line, join_in_rows, plain, wrap

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


def why_lines(
    state: WhyState,
    now: datetime,
    width: int,
    zone: tzinfo | None = None,
    *,
    age_s: float | None = None,
) -> tuple[Line, ...]:
    """The whole tab, each line at most ``width`` cells.

    ``age_s`` is how long ago the verdict was made, as its reader felt it.
    """
    out: list[Line] = []
    verdict = state.verdict
    if verdict is not None:
        out.extend(_four(verdict, width))
        if age_s is not None and age_s > OLD_VERDICT_S and not _final(verdict):
            out.append(((f"judged {ago_text(age_s)} ago: r judges again", "warn"),))
    if state.note:
        out.extend(_text(visible(state.note), width, "strong"))
    status = _status(state, now)
    if status:
        out.append(status)
    if verdict is not None:
        out.extend(_judgement(verdict, now, width, zone, age_s))
        out.extend(_culprits(verdict.culprits, width))
        out.extend(_evidence("Evidence", verdict.evidence, width, now, zone))
        out.extend(_evidence("Against", verdict.against, width, now, zone))
        out.extend(_missing(verdict.missing, width))
        out.extend(_next(verdict.next, width))
    return tuple(cut_line(line, width) for line in out)


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


def _evidence(
    title: str, items: tuple[Evidence, ...], width: int, now: datetime, zone: tzinfo | None
) -> list[Line]:
    if not items:
        return []
    out = _heading(title)
    for item in items[:EVIDENCE_LIMIT]:
        when = f"  {moment_text(item.time, now, zone)}" if item.time is not None else ""
        head = f"{visible(item.family)}  {place_text(item)}{when}"
        out.extend(_text(head, width, "dim", indent="  "))
        out.extend(_text(visible(item.text[:EVIDENCE_CHARS]), width, "", indent="  │ "))
        if item.says:
            out.extend(_text(visible(item.says), width, "label", indent="    "))
    return out


def _missing(items: tuple[Missing, ...], width: int) -> list[Line]:
    if not items:
        return []
    out = _heading("Not read")
    for item in items:
        out.extend(_text(f"{visible(item.family)}: {visible(item.why)}", width, "", indent="  "))
        if item.command:
            out.extend(_text(visible(item.command), width, "strong", indent="    $ "))
    return out


def _next(items: tuple[NextStep, ...], width: int) -> list[Line]:
    if not items:
        return []
    out = _heading("Do now")
    for item in items:
        effect = "" if item.effect == "read" else "  (changes something)"
        out.extend(_text(f"{visible(item.label)}{effect}", width, "", indent="  "))
        out.extend(_text(visible(item.command), width, "strong", indent="    $ "))
        if item.why:
            out.extend(_text(visible(item.why), width, "dim", indent="    "))
    return out


def _text(text: str, width: int, role: str, *, indent: str = "") -> list[Line]:
    """Wrapped; the lines after the first keep the depth of ``indent`` but not its sign."""
    rest = indent if "│" in indent else " " * len(indent)
    return [((piece, role),) for piece in wrap(text, width, first=indent, rest=rest)]
