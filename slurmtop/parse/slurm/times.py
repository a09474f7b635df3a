"""Times, durations and limits in every shape that Slurm prints.

Slurm's dates carry no zone. Its commands are run with ``TZ=UTC``, so they are read as UTC.
"""

from datetime import datetime
from functools import lru_cache

from slurmtop.model.job import UNKNOWN_LIMIT, LimitKind, TimeLimit

_MAX_DIGITS = 12
_LIMIT_WORDS = {
    "INVALID": TimeLimit(LimitKind.OVER_A_YEAR),
    "UNLIMITED": TimeLimit(LimitKind.UNLIMITED),
    "INFINITE": TimeLimit(LimitKind.UNLIMITED),
    "NOT_SET": TimeLimit(LimitKind.PARTITION_DEFAULT),
    "PARTITION_LIMIT": TimeLimit(LimitKind.PARTITION_DEFAULT),
}


@lru_cache(maxsize=8_192)
def parse_time(text: str) -> datetime | None:
    """``2031-05-02T08:00:00`` as aware UTC; anything else is None.

    ``N/A``, ``Unknown`` and ``None`` mean no time. Relative dates (``Tomorr 09:00``) and
    bare numbers, which SLURM_TIME_FORMAT may cause, are unknown rather than guessed at.
    """
    if len(text) != 19 or text[10] != "T" or text[7] != "-" or text[13] != ":":
        return None
    try:
        return datetime.fromisoformat(text + "+00:00")
    except ValueError:
        return None


def _parts(text: str) -> list[int] | None:
    numbers = []
    for piece in text.split(":"):
        if len(piece) > _MAX_DIGITS or not piece.isascii() or not piece.isdigit():
            return None
        numbers.append(int(piece))
    return numbers


@lru_cache(maxsize=16_384)
def parse_duration(text: str) -> float | None:
    """Seconds; None for words and for anything that is no duration.

    ``M:SS``, ``H:MM:SS``, ``D-HH``, ``D-HH:MM``, ``D-HH:MM:SS``, each with decimals on the
    seconds (``00:03.042`` of sacct), and a bare number, which Slurm reads as minutes.
    """
    clock, dot, decimals = text.partition(".")
    fraction = 0.0
    if dot:
        if len(decimals) > _MAX_DIGITS or not decimals.isascii() or not decimals.isdigit():
            return None
        fraction = int(decimals) / 10 ** len(decimals)
    days_text, dash, rest = clock.partition("-")
    if dash:
        days = _parts(days_text)
        numbers = _parts(rest)
        if days is None or len(days) != 1 or numbers is None or len(numbers) > 3:
            return None
        if dot and len(numbers) < 3:
            return None
        hours, minutes, seconds = (*numbers, 0, 0)[:3]
        return days[0] * 86_400 + hours * 3_600 + minutes * 60 + seconds + fraction
    numbers = _parts(clock)
    if numbers is None or len(numbers) > 3:
        return None
    if len(numbers) == 1:
        return None if dot else numbers[0] * 60.0
    total = 0
    for number in numbers:
        total = total * 60 + number
    return total + fraction


def parse_seconds(text: str) -> int | None:
    """As :func:`parse_duration`, in whole seconds."""
    seconds = parse_duration(text)
    return None if seconds is None else int(seconds)


@lru_cache(maxsize=16_384)
def parse_limit(text: str) -> TimeLimit:
    """A time limit or time left. Never raises; what cannot be read is kind UNKNOWN.

    ``INVALID`` is what Slurm prints for more than 365 days, and so no alarm. (It prints the
    same for the time left of a job past its limit; only the limit beside it tells.)
    """
    word = _LIMIT_WORDS.get(text.upper())
    if word is not None:
        return word
    seconds = parse_duration(text)
    return UNKNOWN_LIMIT if seconds is None else TimeLimit(LimitKind.SECONDS, int(seconds))
