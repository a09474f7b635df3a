"""A first answer at once and better ones as they come: in place on a terminal, else as lines.

Standard output gets the last answer alone wherever it is not a terminal that can be painted; what
is known on the way stands on standard error::

    slurmtop: 1.2 s: first answer: unknown: log quiet for 25 s: that alone is not a hang
    slurmtop: 7.9 s: verdict: hung: rank 2 on gpu03 is stopped (SIGSTOP)
"""

import contextlib
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from slurmtop.cli.terminal import can_paint
from slurmtop.model.facts import JobFacts
from slurmtop.model.text import cell_width, fit
from slurmtop.model.units import plural
from slurmtop.model.verdict import Verdict
from slurmtop.triage.words import first_line

_TICKS_FIELD = 19
_USUAL_WIDTH = 120
_NUMBERS = re.compile(r"\d+(\.\d+)?")

#: The lines of an answer that is painted over by the next one.
Paint = Callable[[Verdict], Sequence[str]]


class Refining:
    """Hears of the news of one triage. ``paint`` None: never in place."""

    def __init__(self, paint: Paint | None = None) -> None:
        self._paint = paint if paint is not None and _can_replace() else None
        self._shown = 0
        self._last: tuple[object, ...] | None = None
        self.best: Verdict | None = None

    @property
    def in_place(self) -> bool:
        return self._paint is not None

    def news(self, facts: JobFacts, verdict: Verdict) -> None:
        """An answer that a later one will replace."""
        first = self.best is None
        if not first and _is_early(facts):
            # After the first of many nodes half of the ranks seem to be missing.
            verdict = self.best or verdict
        self.best = verdict
        if self._paint is not None:
            self._replace((*self._paint(verdict), _looking(facts)))
        elif self._is_new(verdict):
            _tell("first answer" if first else "so far", verdict)

    def end(self, verdict: Verdict) -> None:
        """The last answer. Nothing is told where it was the first one as well."""
        if self._paint is not None:
            self._replace(self._paint(verdict))
        elif self.best is not None:
            _tell("verdict", verdict)
        self.best = None

    def broken_off(self) -> Verdict | None:
        """Somebody ended it: the best answer so far, where that is not on the screen yet."""
        best, self.best = self.best, None
        if best is None or self._paint is None:
            return best
        self._replace(self._paint(best))
        return None

    def _is_new(self, verdict: Verdict) -> bool:
        """Does it say anything that the one before did not? A later second is no news."""
        words = _NUMBERS.sub("", verdict.summary)
        who = tuple((one.rank, one.host) for one in verdict.culprits)
        now = (verdict.state, verdict.cls, verdict.confidence, who, words)
        self._last, before = now, self._last
        return now != before

    def _replace(self, lines: Sequence[str]) -> None:
        back = f"\x1b[{self._shown}F\x1b[J" if self._shown else ""
        sys.stdout.write(back + "".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
        self._shown = len(lines)


def _is_early(facts: JobFacts) -> bool:
    """Has less than half of its nodes answered a look that goes on?"""
    newest = facts.live.samples[-1] if facts.live is not None and facts.live.samples else None
    if facts.live is None or newest is None or newest.whole:
        return False
    return 2 * len(newest.probes) < len(facts.live.hosts)


def _looking(facts: JobFacts) -> str:
    live = facts.live
    if live is None or not live.samples:
        return "       … reading its log"
    newest = live.samples[-1]
    which = "second look" if len(live.samples) > 1 else "looking"
    count = f"{len(newest.probes)} of {plural(len(live.hosts), 'node')} answered"
    return f"       … {which}: {count}"


def _tell(label: str, verdict: Verdict) -> None:
    """One line, no wider than the terminal: the whole of it stands in the answer. A closed standard
    error costs the line, never the answer."""
    if sys.stderr is None:
        return
    line = f"slurmtop: {since_start_s():.1f} s: {label}: {verdict.state}: {first_line(verdict)}"
    width = _width()
    if cell_width(line) > width:
        line = fit(line, width).rstrip()
    with contextlib.suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)


def _width() -> int:
    """Of the terminal behind standard error; where there is none, what most terminals show."""
    try:
        return max(40, os.get_terminal_size(2).columns)
    except (OSError, ValueError):
        return _USUAL_WIDTH


def _can_replace() -> bool:
    """Is standard output a terminal on which a cursor may move up some lines?"""
    environ = os.environ
    if environ.get("NO_COLOR") or not can_paint(environ.get("TERM", "")):
        return False
    try:
        return sys.stdout.isatty() and os.get_terminal_size(1).lines > 6
    except (OSError, ValueError):
        return False


def since_start_s() -> float:
    """Seconds since this process was started: what a person has waited."""
    try:
        fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
        began = int(fields[_TICKS_FIELD]) / os.sysconf("SC_CLK_TCK")
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - began)
    except (OSError, ValueError, IndexError):
        return time.process_time()
