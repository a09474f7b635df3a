"""Whether a line shows that the program moved: a bar, a step counter, a measured loss.

Source: whatever a trainer prints, for example::

    Preparing test set...:  46%|####6     | 31/67 [29:02<35:12, 58.67s/it]
    10/26 11:25:41 - mmengine - INFO - Epoch(val)  [2][3400/3402]    eta: 0:00:00  time: 0.1484
    {'loss': 3.5534, 'grad_norm': 1.41, 'learning_rate': 2.04e-06, 'epoch': 0.01}

Counters are those of :mod:`slurmtop.parse.logs.progress`, which leaves out settings and plans.
"""

import re
from typing import NamedTuple

from slurmtop.model.facts import LogLine
from slurmtop.parse.logs.progress import find_progress


class Moved(NamedTuple):
    """``done`` of ``total``; ``about`` are the words in front of a bar."""

    done: int | None
    total: int | None
    about: str | None


_COUNT = r"\d{1,12}(?:\.\d{1,3})?[kMGT]?i?B?"
_BAR = re.compile(
    rf"\d{{1,3}}%\|[^|]{{0,300}}\|\s{{0,4}}(?P<done>{_COUNT})/(?P<total>{_COUNT}|\?)(?![\d.])"
)
#: A bar without a known end: ``Generating train split: 1200 examples [00:03, 390.11 examples/s]``.
_ENDLESS = re.compile(r"(?P<done>\d{1,12})\s?(?:it|examples|batches|steps|B) \[\d{1,3}:\d\d")
_MMENGINE = re.compile(
    r"(?P<about>(?:Epoch|Iter)\((?P<loop>train|val|test)\))\s{1,4}(?:\[\d{1,9}\])?"
    r"\[\s{0,8}(?P<done>\d{1,12})/(?P<total>\d{1,12})\]"
)
#: torchvision and its heirs: ``Test:  [ 10/100]  eta:``, ``Epoch: [3]  [ 450/1000]``.
_BRACKETS = re.compile(
    r"(?P<about>[A-Z]\w{2,20}(?: ?\[\d{1,6}\])?):?(?: \[\d{1,6}\])?\s{1,4}"
    r"\[\s{0,8}(?P<done>\d{1,12})/(?P<total>\d{1,12})\]"
)
#: A loss that was measured: a number with a point, or in a dictionary of metrics.
_LOSS = re.compile(
    r"(?i)(?<![\w.-])(?:lm |train(?:ing)?[ _/]|total[ _]|mean[ _])?loss(?:_\w{1,12})?['\"]?\s{0,4}"
    r"[:=]?\s{0,4}['\"]?(?:\d{1,9}\.\d|\d\.?\d{0,9}e[+-]?\d|nan\b|inf\b)"
)
_LOSS_SETTING = re.compile(r"(?i)loss[_ ]?(?:scale|weight|coef|type|fn|func|ratio|lambda|alpha)")
_NO_NUMBER = re.compile(
    r"(?i)(?<![\w.-])(?:lm |train(?:ing)?[ _/]|total[ _]|mean[ _])?loss['\"]?\s{0,4}[:=]?"
    r"\s{0,4}['\"]?(?:tensor\()?[-+]?(?:nan|inf(?:inity)?)\b"
)
_SCALES = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_ABOUT_CHARS = 120
#: What ends the bar before: its rate, or the bracket behind it.
_BAR_BEFORE = re.compile(r".*(?:it|s|B|examples|batches)(?:/s|/it)?[^\]|]{0,200}\]", re.DOTALL)


def moved(text: str) -> Moved | None:
    """The movement that a line shows, of its last state."""
    if "%|" in text and (bar := _bar(text)) is not None:
        return bar
    if "(" in text and (found := _MMENGINE.search(text)) is not None:
        about = None if found["loop"] == "train" else found["about"]
        return Moved(int(found["done"]), int(found["total"]), about)
    progress = find_progress((LogLine(text, None, 0),))
    if progress is not None:
        return Moved(progress.step, progress.total, None)
    if (found := _BRACKETS.search(text)) is not None:
        return Moved(int(found["done"]), int(found["total"]), found["about"])
    if " [" in text and (found := _ENDLESS.search(text)) is not None:
        return Moved(int(found["done"]), None, _words(text[: found.start()]))
    if "oss" in text or "LOSS" in text:
        found = _LOSS.search(text)
        if found is not None and not _LOSS_SETTING.search(text[found.start() : found.end() + 16]):
            return Moved(None, None, None)
    return None


def loss_is_no_number(text: str) -> bool:
    """Does the line tell a loss that is nan or infinite?"""
    return _NO_NUMBER.search(text) is not None


def _bar(text: str) -> Moved | None:
    last: re.Match[str] | None = None
    start = 0
    for found in _BAR.finditer(text):
        start = last.end() if last is not None else 0
        last = found
    if last is None:
        return None
    about = text[max(start, last.start() - _ABOUT_CHARS) : last.start()]
    total = None if last["total"] == "?" else _number(last["total"])
    return Moved(_number(last["done"]), total, _words(about))


def _number(text: str) -> int:
    digits = text.rstrip("iB")
    scale = _SCALES.get(digits[-1], 1)
    return int(float(digits.rstrip("kMGT")) * scale)


def _words(about: str) -> str | None:
    """The words in front of a bar, without what is left of a bar before."""
    before = _BAR_BEFORE.match(about)
    if before is not None:
        about = about[before.end() :]
    about = about.strip().rstrip(":").strip()
    return about if re.search(r"[^\W\d_]", about) else None
