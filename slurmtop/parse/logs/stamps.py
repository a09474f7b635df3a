"""The time in front of a log line, in all common forms.

Source: what libraries, launchers and collectors write, for example::

    [rank1]:[E1003 18:37:01.832146912 ProcessGroupNCCL.cpp:607] …
    2019-06-02T16:13:44.884Z: [1,12]<stdout>:…

A clock that shows no date gives no stamp. One without a year has that of its file; where that is
not known either, :data:`NO_YEAR`, so that such stamps compare among each other only.
"""

import re
from datetime import date

from slurmtop.model.trace import Clock, Stamp

#: A leap year, so that the 29th of February exists.
NO_YEAR = 2000

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = "(?:[Jj]an|[Ff]eb|[Mm]ar|[Aa]pr|[Mm]ay|[Jj]un|[Jj]ul|[Aa]ug|[Ss]ep|[Oo]ct|[Nn]ov|[Dd]ec)"
_CLOCK = r"(?P<h>\d\d):(?P<min>\d\d):(?P<s>\d\d)(?:[.,](?P<f>\d{1,9}))?(?!\d|:\d)"
_EPOCH = date(1970, 1, 1).toordinal()

#: ``2025-07-04T00:54:23.932+02:00``, ``[2026-05-05 06:16:47] ``, ``2022/03/23 23:57:28,855``.
_ISO = re.compile(
    r"[\[(]?(?P<y>\d{4})[-/.](?P<m>\d\d)[-/.](?P<d>\d\d)[T _-]{1,2}"
    + _CLOCK
    + r"(?P<z> ?(?:Z\b|UTC\b|GMT\b|[+-]\d\d:?\d\d(?!\d)))?[\])]?"
)
#: ``10/26 11:25:41``, ``07-21 19:05:29``.
_MONTH_DAY = re.compile(r"[\[(]?(?P<m>\d\d)[/-](?P<d>\d\d) " + _CLOCK + r"[\])]?")
#: ``01/15/2024 12:31:45`` of Python's own examples: the month stands first.
_US = re.compile(r"[\[(]?(?P<m>\d\d)/(?P<d>\d\d)/(?P<y>\d{4})[ ,]{1,2}" + _CLOCK + r"[\])]?")
#: ``Fri Aug 11 12:31:45 2023`` of mpirun, ``[Fri Aug 11 12:31:45 2023]`` of ``dmesg -T``.
_LONG = re.compile(
    r"\[?(?:[A-Z][a-z]{2},? )(?P<mon>"
    + _MONTH
    + r") {1,2}(?P<d>\d{1,2}) "
    + _CLOCK
    + r"(?: [A-Z]{3,5})? (?P<y>\d{4})\]?"
)
#: ``Aug 11 12:31:45`` of syslog.
_SYSLOG = re.compile(r"(?P<mon>" + _MONTH + r") {1,2}(?P<d>\d{1,2}) " + _CLOCK)
#: ``[74785.660366]``, ``<4>[  123.456789]``; ten digits are seconds since 1970 (UCX).
_BOOT = re.compile(r"(?:<\d{1,3}>)?\[ {0,6}(?P<s>\d{1,10}\.\d{6})\](?: ?\[ {0,5}[TC]\d{1,7}\])?")
#: A clock alone.
_TIME_ONLY = re.compile(r"\[" + _CLOCK + r"\]|" + _CLOCK.replace("?P<", "?P<o") + r"(?=[ |])")

_FORMS = (_ISO, _MONTH_DAY, _US, _LONG, _SYSLOG)

#: ``1003 18:37:01.832146912`` behind the level of glog and c10; ``420`` is the 20th of April.
_GLOG = re.compile(r"(?P<m>\d{1,2})(?P<d>\d\d) " + _CLOCK)

#: What a program's logger writes in front of its time: a level, its own name, brackets.
_LATE = re.compile(
    r"(?:submitit )?(?:\[[^\[\]\n]{1,60}\][ :-]{0,3}|\[?[A-Z][A-Za-z]{0,8}\]?[ :|(]{1,3}"
    r"|[\w.]{1,40}[:|] ?){0,3}(?=[\[(]?\d\d)"
)
_LATE_REACH = 160


def stamp_at(text: str, at: int = 0, year: int | None = None) -> tuple[Stamp | None, int] | None:
    """The stamp that begins at ``text[at]`` and where it ends; None where none begins there.

    The stamp is None for a clock without a date and for a date that does not exist.
    """
    first = text[at : at + 1]
    if first.isdigit() or first in ("[", "("):
        for form in (_ISO, _MONTH_DAY, _US, _LONG) if first == "[" else (_ISO, _MONTH_DAY, _US):
            found = form.match(text, at)
            if found is not None:
                return _wall(found, year), found.end()
        if first != "(" and (found := _BOOT.match(text, at)) is not None:
            return _boot(found["s"]), found.end()
        if first != "(" and (found := _TIME_ONLY.match(text, at)) is not None:
            return None, found.end()
    elif first == "<":
        if (found := _BOOT.match(text, at)) is not None:
            return _boot(found["s"]), found.end()
    elif first.isupper() or first.islower():
        for form in (_LONG, _SYSLOG):
            found = form.match(text, at)
            if found is not None:
                return _wall(found, year), found.end()
    return None


def glog_stamp(text: str, year: int | None = None) -> Stamp | None:
    """``1003 18:37:01.832146912`` as a stamp, without the letter of the level."""
    found = _GLOG.match(text)
    return None if found is None else _wall(found, year)


def late_stamp(text: str, at: int = 0, year: int | None = None) -> Stamp | None:
    """The time that stands behind a level or a logger's name: ``submitit WARNING (2022-…) - ``."""
    found = _LATE.match(text, at, at + _LATE_REACH)
    if found is None or found.end() == at:
        return None
    stamped = stamp_at(text, found.end(), year)
    return None if stamped is None else stamped[0]


def year_in(text: str) -> int | None:
    """The year of the first full date in ``text``."""
    found = re.search(r"(?<!\d)(20[0-9]\d)[-/](?:0\d|1[0-2])[-/][0-3]\d[T _]\d\d:\d\d", text)
    return None if found is None else int(found[1])


def _boot(seconds: str) -> Stamp:
    value = float(seconds)
    if value >= 1e9:
        return Stamp(value, zoned=True)
    return Stamp(value, Clock.BOOT)


def _wall(found: re.Match[str], year: int | None) -> Stamp | None:
    parts = found.groupdict()
    month = _MONTHS.index(parts["mon"].lower()) + 1 if "mon" in parts else int(parts["m"])
    hour, minute, second = int(parts["h"]), int(parts["min"]), int(parts["s"])
    if hour > 24 or minute > 59 or second > 60:
        return None
    try:
        days = date(int(parts.get("y") or year or NO_YEAR), month, int(parts["d"])).toordinal()
    except ValueError:
        return None
    seconds = (days - _EPOCH) * 86_400.0 + hour * 3_600 + minute * 60 + second
    if fraction := parts["f"]:
        seconds += int(fraction) / 10 ** len(fraction)
    zone = (parts.get("z") or "").strip()
    if zone[:1] in ("+", "-"):
        digits = zone[1:].replace(":", "")
        ahead = int(digits[:2]) * 3_600 + int(digits[2:]) * 60
        seconds -= ahead if zone[0] == "+" else -ahead
    return Stamp(seconds, zoned=bool(zone))
