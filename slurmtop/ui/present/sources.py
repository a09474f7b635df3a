"""What was asked for a verdict and what came of it: those that answered in one line, then the rest.

Pure. A source that did not answer stands with the reason and the command that opens it.
"""

from collections.abc import Sequence

from slurmtop.model.text import visible
from slurmtop.model.units import plural
from slurmtop.model.verdict import Fate, SourceFate
from slurmtop.parse.slurm.hostlist import compress_hosts
from slurmtop.triage.sources import opens_text
from slurmtop.ui.present.spans import Line, wrap

_ROLES = {
    Fate.ANSWERED: "good",
    Fate.REFUSED: "warn",
    Fate.TIMED_OUT: "warn",
    Fate.ABSENT: "",
    Fate.FAILED: "warn",
    Fate.NOT_ASKED: "dim",
}
_HOSTS_CELLS = 40


def answered_text(sources: Sequence[SourceFate]) -> str:
    """``answered: slurm, logs, processes (1 of 2 nodes)``; "" where none did."""
    words: list[str] = []
    for name in dict.fromkeys(one.source for one in sources if one.fate is Fate.ANSWERED):
        of = [one for one in sources if one.source == name]
        good = {host for one in of if one.fate is Fate.ANSWERED for host in one.hosts}
        every = {host for one in of for host in one.hosts}
        part = f" ({len(good)} of {plural(len(every), 'node')})" if good != every else ""
        words.append(visible(name) + part)
    return f"answered: {', '.join(words)}" if words else ""


def unanswered(sources: Sequence[SourceFate]) -> tuple[SourceFate, ...]:
    """The others, without those that :func:`not_asked_lines` tells."""
    return tuple(one for one in sources if one.fate is not Fate.ANSWERED and not _plain(one))


def _plain(one: SourceFate) -> bool:
    return one.fate is Fate.NOT_ASKED and not one.command


def not_asked_lines(sources: Sequence[SourceFate], width: int) -> list[Line]:
    """``not asked: ras: a later version reads it``: one entry for each reason."""
    by_why: dict[str, list[str]] = {}
    for one in sources:
        if _plain(one):
            by_why.setdefault(one.why, []).append(one.source)
    out: list[Line] = []
    for why, names in by_why.items():
        told = f": {visible(why)}" if why else ""
        text = f"not asked: {', '.join(visible(name) for name in dict.fromkeys(names))}{told}"
        out += [((piece, "dim"),) for piece in wrap(text, width, first="  ", rest="    ")]
    return out


def fate_lines(one: SourceFate, width: int) -> list[Line]:
    """``kernel log: refused on gpu[03-04]: why`` and the command that opens it."""
    where = ""
    if one.hosts:
        text = visible(compress_hosts(one.hosts))
        where = f" on {text if len(text) <= _HOSTS_CELLS else plural(len(one.hosts), 'node')}"
    why = f": {visible(one.why)}" if one.why else ""
    text = f"{visible(one.source)}: {one.fate}{where}{why}"
    role = _ROLES[one.fate]
    out: list[Line] = [((piece, role),) for piece in wrap(text, width, first="  ", rest="  ")]
    if one.command:
        command = opens_text(one)
        pieces = wrap(command, width, first="    $ ", rest="      ")
        out += [((piece, "strong"),) for piece in pieces]
    return out


def answered_lines(sources: Sequence[SourceFate], width: int) -> list[Line]:
    text = answered_text(sources)
    if not text:
        return []
    return [((piece, "dim"),) for piece in wrap(text, width, first="  ", rest="    ")]
