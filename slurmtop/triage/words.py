"""A verdict in words: the first line of every row, the four lines, the block for a chat."""

from datetime import datetime

from slurmtop.model.text import cell_width, fit, visible
from slurmtop.model.verdict import Culprit, EndedBy, Evidence, NextStep, State, Verdict

_LABELS = ("what", "who", "proof", "do")
_INDENT = 7
#: How much of a line the place of a proof may take before its path is shortened.
_PLACE_SHARE = 0.5

_NOBODY = {
    State.PENDING: "nobody: it is not running",
    State.HEALTHY: "nobody: nothing is wrong",
    State.IDLE: "nobody: it was stopped on purpose",
    State.UNKNOWN: "nobody can be named from what could be read",
    State.HUNG: "nobody can be named from what could be read",
    State.SLOW: "nobody can be named from what could be read",
    State.RECOVERING: "nobody can be named from what could be read",
}
_ENDED = {
    EndedBy.SELF: "its own program; no rank is named",
    EndedBy.USER: "a person ended it, no rank did",
    EndedBy.SLURM: "Slurm ended it, no rank did",
    EndedBy.FAULT: "not its program; no node is named",
    None: "nobody can be named: who ended it is not known",
}


def first_line(verdict: Verdict) -> str:
    """The summary on one line, safe to show. Every row of the screen shows the same."""
    return visible(verdict.summary)


def four_lines(verdict: Verdict, width: int = 80) -> tuple[str, ...]:
    """What, who, proof, do this now: exactly four lines of at most ``width`` cells.

    A command stands whole or not at all: where it does not fit, or cannot be typed as it is
    shown, the line names the command that prints it.
    """
    room = max(0, width - _INDENT)
    texts = (
        _cut(first_line(verdict), room),
        _cut(who_text(verdict), room),
        _proof(verdict, room),
        _do(verdict, room),
    )
    return tuple(
        _cut(f"{label:<{_INDENT}}{text}", width).rstrip()
        for label, text in zip(_LABELS, texts, strict=True)
    )


def who_text(verdict: Verdict) -> str:
    """The culprits, or why there is none; safe to show."""
    if verdict.culprits:
        first = culprit_text(verdict.culprits[0])
        more = len(verdict.culprits) - 1
        return f"{first} (and {more} more)" if more else first
    if verdict.state is State.FAILED:
        return _ENDED[verdict.ended_by]
    if verdict.state is State.HEALTHY and verdict.against:
        return f"nobody; but {visible(verdict.against[0].says)}"
    if verdict.state is State.IDLE and any(one.family == "process" for one in verdict.evidence):
        return "nobody: no program of it trains"
    return _NOBODY[verdict.state]


def culprit_text(culprit: Culprit) -> str:
    """One culprit: ``rank 3 GPU 2 on gpu01: why``; safe to show."""
    words = [
        f"rank {culprit.rank}" if culprit.rank is not None else "",
        f"GPU {visible(culprit.gpu)}" if culprit.gpu else "",
        f"pid {culprit.pid}" if culprit.pid is not None else "",
        f"link {visible(culprit.link)}" if culprit.link else "",
        f"mount {visible(culprit.mount)}" if culprit.mount else "",
    ]
    text = " ".join(word for word in words if word)
    if culprit.host:
        text = f"{text} on {visible(culprit.host)}" if text else visible(culprit.host)
    reason = visible(culprit.reason)
    return f"{text}: {reason}" if reason else text


#: Families of proofs that a command printed on a node.
_SEEN_ON_NODES = frozenset({"stack", "process", "telemetry"})


def place_text(evidence: Evidence) -> str:
    """Where a proof stands: ``gpu01 /home/al/run.err:1042``, or the command that printed it."""
    told = evidence.host is not None and evidence.source.endswith(f" on {evidence.host}")
    host = f"{visible(evidence.host)} " if evidence.host and not told else ""
    line = f":{evidence.line}" if evidence.line is not None else ""
    return f"{host}{visible(evidence.source)}{line}"


def _proof(verdict: Verdict, room: int) -> str:
    if not verdict.evidence:
        if verdict.missing:
            missing = verdict.missing[0]
            return _cut(f"none: {visible(missing.family)}: {visible(missing.why)}", room)
        return _cut("none: nothing could be read", room)
    evidence = verdict.evidence[0]
    text = visible(" ".join(evidence.text.split()))
    whole = f"{place_text(evidence)}: {text}"
    if cell_width(whole) <= room:
        return whole
    place = _short_place(evidence, int(room * _PLACE_SHARE))
    return _cut(f"{place}: {text}" if place else text, room)


def _short_place(evidence: Evidence, room: int) -> str:
    place = place_text(evidence)
    if evidence.family == "slurm":
        # A command with its end missing is another command.
        if cell_width(place) <= room:
            return place
        return "Slurm" if room >= 5 else ""
    if evidence.family == "process" and evidence.host:
        # The text names the process itself, and half a path of /proc is of no use.
        return visible(evidence.host)
    if evidence.family in _SEEN_ON_NODES and evidence.host and cell_width(place) > room:
        # Nor does the end of a command tell what it was.
        place = f"{evidence.family} on {visible(evidence.host)}"
    folder, slash, name = place.rpartition("/")
    tail = f"…/{name}" if slash and len(folder) > 2 else place
    if cell_width(tail) <= room:
        return tail
    while tail and cell_width(tail) > room - 1:
        tail = tail[1:]
    return f"…{tail}" if tail else ""


def _do(verdict: Verdict, room: int) -> str:
    step = next(iter(verdict.next), None)
    if step is not None:
        text = _step_text(step, room)
        if text is not None:
            return text
    if verdict.job is None:
        return _cut("see next[] of --json", room)
    whole = f"slurmtop why {visible(verdict.job)} --json"
    if not _typeable(whole) or cell_width(whole) > room:
        return _cut("ask again with --json", room)
    return whole


def _step_text(step: NextStep, room: int) -> str | None:
    """The command with its label where both fit; None where the command would be cut.

    A command for somebody else is never shown without the words that say so.
    """
    if not _typeable(step.command) or cell_width(step.command) > room:
        return None
    text = f"{step.command}   # {visible(step.label)}"
    if cell_width(text) <= room:
        return text
    return None if step.label.startswith("ask ") else step.command


def _typeable(command: str) -> bool:
    """Is what is shown also what has to be typed?"""
    return visible(command) == command


def _cut(text: str, width: int) -> str:
    return text if cell_width(text) <= width else fit(text, width).rstrip()


def copy_block(verdict: Verdict, *, version: str, slurm_version: str | None = None) -> str:
    """Plain lines to paste into a chat: nothing cut, with times and versions.

    Times are ISO 8601 with offset. The caller masks secrets before it hands the block on.
    """
    head = [f"job {visible(verdict.job)}" if verdict.job else "files"]
    if verdict.cluster:
        head.append(f"cluster {visible(verdict.cluster)}")
    head.append(f"state {verdict.state}")
    if verdict.cls is not None:
        head.append(f"class {visible(verdict.cls)}")
    head.append(f"confidence {verdict.confidence}")
    lines = [", ".join(head)]
    lines.append(f"what:   {first_line(verdict)}")
    lines.append(f"who:    {who_text(verdict)}")
    if verdict.since is not None:
        lines.append(f"since:  {iso_text(verdict.since)}")
    lines.extend(_evidence_line("proof: ", item) for item in verdict.evidence)
    lines.extend(_evidence_line("but:   ", item) for item in verdict.against)
    for missing in verdict.missing:
        command = f" ({visible(missing.command)})" if missing.command else ""
        lines.append(f"unread: {visible(missing.family)}: {visible(missing.why)}{command}")
    for step in verdict.next:
        lines.append(f"do:     {visible(step.command)}   # {visible(step.label)}, {step.effect}")
    made = f" at {iso_text(verdict.made_at)}" if verdict.made_at is not None else ""
    slurm = f", Slurm {visible(slurm_version)}" if slurm_version else ""
    lines.append(f"by:     slurmtop {visible(version)}{slurm}{made}")
    return "\n".join(lines) + "\n"


def _evidence_line(label: str, item: Evidence) -> str:
    when = f" at {iso_text(item.time)}" if item.time is not None else ""
    return f"{label} {place_text(item)}{when}: {visible(item.text)}"


def iso_text(moment: datetime) -> str:
    """``2031-05-05T12:00:00+00:00``."""
    return moment.isoformat(timespec="seconds")
