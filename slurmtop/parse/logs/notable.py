"""Lines that a person would want to see, though no reader knows what they mean.

Source: any log; a line that calls itself a warning or an error, or tells that something failed::

    WARNING: destroy_process_group() was not called before program exit
    tcpxCommProgress: rx ctrl timeout cnt 7331502, nanos 10000000585

They are shown where nothing else explains a run, and are evidence of nothing by themselves.
"""

import re
from collections.abc import Iterable
from typing import TypeVar

_ERROR = re.compile(
    r"\b(?:ERROR|FATAL|CRITICAL|SEVERE)\b"
    r"|(?i:\berror\b(?!\s?(?:rate|=|:\s?[-+\d]))|\bfail(?:ed|ure|s)\b"
    r"|\btimed? ?out\b|\bexception\b|\babort|\bkill(?:ed|ing)\b|\bstuck\b|\bhang\b|\bsignal\b)"
)
_WARNING = re.compile(
    r"\bWARN(?:ING)?\b|\w*Warning\b|(?i:\bcould not\b|\bcannot\b|\bunable to\b|\bretry|\bskipp)"
)
#: Numbers apart, a line is told once.
_NUMBERS = re.compile(r"\d+")
_LOOKED_AT = 2_000
#: Kept of errors, and of warnings: the first ones, and the newest.
_FIRST = 3
_LAST = 3

L = TypeVar("L")


def notable_of(lines: Iterable[tuple[str, L]]) -> tuple[L, ...]:
    """Of lines in order the notable ones, errors first, each kind in order; a few of each."""
    errors: list[L] = []
    warnings: list[L] = []
    forms: set[str] = set()
    for text, line in lines:
        text = text[:_LOOKED_AT]
        bad = _ERROR.search(text) is not None
        if not bad and _WARNING.search(text) is None:
            continue
        form = _NUMBERS.sub("", text)
        if form not in forms:
            forms.add(form)
            (errors if bad else warnings).append(line)
    return tuple(_ends(errors) + _ends(warnings))


def _ends(lines: list[L]) -> list[L]:
    return lines if len(lines) <= _FIRST + _LAST else lines[:_FIRST] + lines[-_LAST:]
