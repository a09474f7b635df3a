"""The long form of a verdict as text: read from top to bottom, by somebody woken at three.

What it is, who, the proof with its place and its raw line, what speaks against it, what was not
read, what to do now. Everything that came from a log is made visible; only a command, which has
to be copied whole, may be longer than the width.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from slurmtop.model.text import cell_width, visible
from slurmtop.model.verdict import (
    Collective,
    Evidence,
    Fate,
    Missing,
    NextStep,
    SourceFate,
    Verdict,
)
from slurmtop.triage.next_steps import ranks_text
from slurmtop.triage.sources import opens_text
from slurmtop.triage.words import culprit_text, iso_text, place_text, who_text

_INDENT = "  "
_STEP_INDENT = "     "
_MISSING_SHOWN = 8
_HOSTS_SHOWN = 4
#: How each fate of a source is called, in the order in which they are listed.
_FATES = {
    Fate.ANSWERED: "read",
    Fate.REFUSED: "refused",
    Fate.TIMED_OUT: "timed out",
    Fate.ABSENT: "absent",
    Fate.FAILED: "failed",
    Fate.NOT_ASKED: "not asked",
}


def report_lines(
    verdict: Verdict, *, width: int = 80, where: Sequence[str] = ()
) -> tuple[str, ...]:
    """The whole report, safe to print, without trailing blanks. ``where`` are lines that tell where
    the ranks stand (``triage.live.class_lines``)."""
    parts = (
        _head(verdict, width),
        _who(verdict, width),
        _evidence("proof", verdict.evidence, width),
        _evidence("against it", verdict.against, width),
        where,
        _not_read(verdict.missing, width),
        _sources(verdict.sources, width),
        _next(verdict.next, width),
    )
    out: list[str] = []
    for part in parts:
        lines = list(part)
        if lines and out:
            out.append("")
        out.extend(line.rstrip() for line in lines)
    return tuple(out)


def _head(verdict: Verdict, width: int) -> Iterator[str]:
    words = [verdict.state.upper()]
    if verdict.cls is not None:
        words.append(verdict.cls)
    subject = f"job {visible(verdict.job)}: " if verdict.job is not None else ""
    yield from wrapped(subject + "  ".join(words), width)
    yield from wrapped(visible(verdict.summary), width, _INDENT)
    facts = [f"confidence {verdict.confidence}"]
    if verdict.family is not None:
        facts.insert(0, verdict.family)
    if verdict.ended_by is not None:
        facts.append(f"ended by {verdict.ended_by}")
    if verdict.since is not None:
        facts.append(f"last progress {iso_text(verdict.since)}")
    yield from wrapped("; ".join(facts), width, _INDENT)


def _who(verdict: Verdict, width: int) -> Iterator[str]:
    yield "who"
    if not verdict.culprits:
        yield from wrapped(who_text(verdict), width, _INDENT)
    for culprit in verdict.culprits:
        yield from wrapped(culprit_text(culprit), width, _INDENT)
    if verdict.collective is not None:
        yield from wrapped(collective_text(verdict.collective), width, _INDENT)


def collective_text(collective: Collective) -> str:
    """The operation, e.g. ``allreduce 6 of group 0: 2 of 8 ranks missing: 3, 5``."""
    words = visible(collective.op or "an operation")
    if collective.seq is not None:
        words += f" {collective.seq}"
    if collective.group is not None:
        words += f" of {visible(collective.group)}"
    if collective.mismatch:
        words += f": {visible(collective.mismatch)}"
    if collective.missing_ranks:
        of = f" of {len(collective.expected_ranks)}" if collective.expected_ranks else ""
        ranks = ranks_text(collective.missing_ranks)
        words += f"; {len(collective.missing_ranks)}{of} ranks missing: {ranks}"
    return words


def _evidence(title: str, items: tuple[Evidence, ...], width: int) -> Iterator[str]:
    if items:
        yield title
    for item in items:
        when = f" at {iso_text(item.time)}" if item.time is not None else ""
        says = f" ({visible(item.says)})" if item.says else ""
        yield from wrapped(f"{place_text(item)}{when}{says}", width, _INDENT)
        for line in item.text.split("\n"):
            yield from wrapped(visible(line), width, _INDENT + "| ")


def _not_read(missing: tuple[Missing, ...], width: int) -> Iterator[str]:
    if missing:
        yield "not read"
    for one in missing[:_MISSING_SHOWN]:
        yield from wrapped(f"{visible(one.family)}: {visible(one.why)}", width, _INDENT)
        if one.command:
            yield f"{_INDENT}{_INDENT}{visible(one.command)}"
    if len(missing) > _MISSING_SHOWN:
        yield f"{_INDENT}and {len(missing) - _MISSING_SHOWN} more: see missing[] of --json"


def _sources(sources: tuple[SourceFate, ...], width: int) -> Iterator[str]:
    """What answered in one line; each of the others with the reason and what opens it."""
    if sources:
        yield "sources"
    everywhere = {host for one in sources for host in one.hosts}
    # What holds for all nodes needs no names.
    sources = tuple(
        replace(one, hosts=()) if everywhere.issubset(one.hosts) else one for one in sources
    )
    for fate, title in _FATES.items():
        these = [one for one in sources if one.fate is fate]
        if fate in (Fate.ANSWERED, Fate.NOT_ASKED):
            for why, names in _by_reason(these).items():
                because = f" ({visible(why)})" if why else ""
                yield from wrapped(f"{title}: {', '.join(names)}{because}", width, _INDENT)
            continue
        for one in these:
            why = f": {visible(one.why)}" if one.why else ""
            name = f"{title}: {visible(one.source)}{_on(one)}"
            yield from wrapped(name + why, width, _INDENT)
            if one.command:
                yield f"{_INDENT}{_INDENT}{opens_text(one)}"


def _by_reason(sources: Iterable[SourceFate]) -> dict[str, list[str]]:
    """Names by why; of what answered all stand in one line, with what there is to say of each."""
    out: dict[str, list[str]] = {}
    for one in sources:
        if one.fate is Fate.ANSWERED:
            words = " ".join(word for word in (_on(one).strip(), visible(one.why)) if word)
            name = f"{visible(one.source)} ({words})" if words else visible(one.source)
            out.setdefault("", []).append(name)
        else:
            out.setdefault(one.why, []).append(visible(one.source))
    return {why: list(dict.fromkeys(names)) for why, names in out.items()}


def _on(one: SourceFate) -> str:
    """``on gpu01, gpu02``; of many nodes the first ones and how many they are."""
    hosts = [visible(host) for host in one.hosts]
    if not hosts:
        return ""
    if len(hosts) > _HOSTS_SHOWN:
        return f" on {', '.join(hosts[:2])} … ({len(hosts)} nodes)"
    return f" on {', '.join(hosts)}"


def _next(steps: tuple[NextStep, ...], width: int) -> Iterator[str]:
    if steps:
        yield "what now"
    for number, step in enumerate(steps, 1):
        changes = ", changes something" if step.effect == "write" else ""
        why = f": {visible(step.why)}" if step.why else ""
        first, *rest = wrapped(f"{visible(step.label)}{changes}{why}", width, _STEP_INDENT)
        yield f"{number:>{len(_STEP_INDENT) - 2}}. {first.removeprefix(_STEP_INDENT)}"
        yield from rest
        if step.command:
            yield f"{_STEP_INDENT}{visible(step.command)}"


def wrapped(text: str, width: int, indent: str = "") -> Iterator[str]:
    """``text`` in lines of at most ``width`` cells, broken at blanks where there are any.

    Nothing of it is lost but blanks at the breaks.
    """
    room = max(8, width - cell_width(indent))
    while cell_width(text) > room:
        cut = _fits(text, room)
        blank = text.rfind(" ", room // 2, cut + 1)
        end = blank if blank > 0 else cut
        yield indent + text[:end]
        text = text[end:].lstrip(" ")
    yield indent + text


def _fits(text: str, room: int) -> int:
    """How many characters of ``text`` fill at most ``room`` cells; at least one."""
    if text.isascii():
        return room
    used = 0
    for count, char in enumerate(text):
        used += cell_width(char)
        if used > room:
            return max(1, count)
    return len(text)
