"""How the queue's source is doing, in one sentence. Pure: health and time in, words out."""

import math
from dataclasses import dataclass
from datetime import datetime, tzinfo
from enum import StrEnum

from slurmtop.model.snapshot import SourceHealth, Trouble
from slurmtop.model.text import visible
from slurmtop.model.units import ago_text, plural
from slurmtop.ui.present.job import CLOCK_SLACK_S, moment_text

#: A call in flight for less than this is nothing to speak of.
PATIENCE_S = 5.0
#: How many intervals may pass before data counts as old although nothing failed.
OLD_AFTER = 2.5

_REFUSALS = frozenset({Trouble.DENIED, Trouble.NO_SLURM, Trouble.NO_CONFIG, Trouble.TOO_OLD})


class Condition(StrEnum):
    """What a person must be able to tell apart at a glance."""

    LOADING = "loading"
    FRESH = "fresh"
    SLOW = "slow"
    STALE = "stale"
    """There is an older answer; it is shown greyed, with its age."""
    SILENT = "silent"
    """No answer ever, and the last try failed."""
    REFUSED = "refused"
    """No answer ever, and asking again will not help."""
    UNRECORDED = "unrecorded"
    """A recording without it: there is nobody to ask."""


@dataclass(frozen=True, slots=True)
class HealthWords:
    """``role`` is a style name of ``present.spans``."""

    condition: Condition
    sentence: str
    role: str
    older: bool = False
    """True where what is shown answers an older question."""

    @property
    def body(self) -> str:
        """The sentence without the word that names the condition."""
        return self.sentence.partition(": ")[2] or self.sentence

    @property
    def old_rows(self) -> bool:
        """True where what is shown must look old."""
        return self.older or self.condition is Condition.STALE


def describe_health(
    health: SourceHealth,
    now: datetime,
    zone: tzinfo | None = None,
    *,
    what: str = "the queue",
    widening: bool = False,
    recorded: bool = False,
) -> HealthWords:
    """Say how fresh the data is, what went wrong, since when, and when the next try is.

    ``recorded`` means that nobody is asked: the answers are those of a recording.
    ``what`` is asked for. ``widening`` means that older, narrower data is shown until then.
    """
    failure = health.failure
    asking_s = _age(health.asking_since, now)
    if failure is None and (health.good_at is None or widening):
        words = f"loading: {_asking(what, asking_s)}"
        return HealthWords(Condition.LOADING, words, "busy", older=widening)
    if failure is not None and health.good_at is None:
        if recorded:
            sentence = _sentence(failure.sentence)
            return HealthWords(Condition.UNRECORDED, f"not recorded: {sentence}", "bad")
        words = (
            f"{_sentence(failure.sentence)}{_since(health, now, zone)}; {_next_try(health, now)}"
        )
        if failure.trouble in _REFUSALS:
            return HealthWords(Condition.REFUSED, f"refused: {words}", "bad")
        return HealthWords(Condition.SILENT, f"no answer yet: {words}", "bad")
    age_s = _age(health.good_at, now)
    if failure is not None:
        return HealthWords(
            Condition.STALE,
            f"stale: {_last_answer(health, now)}; {_sentence(failure.sentence)}"
            f"{_since(health, now, zone)}; {_next_try(health, now)}",
            "bad",
        )
    wait_s = max(health.interval_s, 1.0)
    if stepped_back(health.good_at, now):
        return HealthWords(Condition.STALE, f"stale: {_last_answer(health, now)}", "bad")
    if age_s > OLD_AFTER * wait_s + (health.took_s or 0.0):
        why = f"; no answer for {ago_text(asking_s)}" if health.asking_since else ""
        return HealthWords(Condition.STALE, f"stale: last answer {ago_text(age_s)} ago{why}", "bad")
    if asking_s > max(PATIENCE_S, 3 * (health.took_s or 0.0)):
        usual = f", it took {_took(health.took_s)} before" if health.took_s is not None else ""
        return HealthWords(
            Condition.SLOW, f"slow: no answer for {ago_text(asking_s)}{usual}", "warn"
        )
    bad = f"; {plural(health.bad_records, 'record')} unreadable" if health.bad_records else ""
    fresh = "as recorded, nobody is asked" if recorded else f"answered {ago_text(age_s)} ago"
    return HealthWords(Condition.FRESH, f"{fresh}{bad}", "warn" if bad else "dim")


def _asking(what: str, asking_s: float) -> str:
    late = f", no answer for {ago_text(asking_s)}" if asking_s > PATIENCE_S else ""
    return f"asking Slurm for {what}{late}"


def _age(moment: datetime | None, now: datetime) -> float:
    return 0.0 if moment is None else max(0.0, (now - moment).total_seconds())


def stepped_back(moment: datetime | None, now: datetime) -> bool:
    """Is ``moment``, which has been, ahead of the clock of this machine?"""
    return moment is not None and (moment - now).total_seconds() > CLOCK_SLACK_S


def _last_answer(health: SourceHealth, now: datetime) -> str:
    if stepped_back(health.good_at, now):
        return "nobody knows how old the last answer is: the clock of this machine stepped back"
    return f"last answer {ago_text(_age(health.good_at, now))} ago"


def _sentence(text: str) -> str:
    return visible(text).rstrip(". ")


def _since(health: SourceHealth, now: datetime, zone: tzinfo | None) -> str:
    if health.failing_since is None:
        return ""
    return f" since {_minute(moment_text(health.failing_since, now, zone))}"


def _minute(moment: str) -> str:
    """``09:12:03`` without its seconds; dates have none."""
    return moment[:-3] if moment.count(":") == 2 else moment


def _next_try(health: SourceHealth, now: datetime) -> str:
    if health.failure is not None and health.failure.retry_after_s == math.inf:
        return "not asked again in this session"
    if health.asking_since is not None:
        return f"asking again, {ago_text(_age(health.asking_since, now))} so far"
    if health.next_at is None:
        return "r asks again"
    return f"next try in {ago_text(max(0.0, (health.next_at - now).total_seconds()))}"


def _took(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.1f} s"
