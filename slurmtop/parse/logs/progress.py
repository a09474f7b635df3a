"""The newest step counter of a training log.

Source: whatever a trainer prints, for example::

    iteration     500/  100000 | consumed samples: 128000 | elapsed time per iteration (ms): 812
    Epoch 3:  45%|####5     | 450/1000 [00:10<00:12, 44.9it/s, loss=2.41]

Numbers of dates, versions and rates are no counters, nor are the bars of downloads, of
checkpoint loading, or of an evaluation. An epoch alone is not a step and is left out.
"""

import re
from collections.abc import Iterable

from slurmtop.model.facts import LogLine, Progress

_NUMBER = (
    r"(?P<step>\d{1,3}(?:,\d{3})+|\d{1,15})(?![\d,]*\.?\d)(?![A-Za-z_%(])(?!\s?/\s?\d+\s?/\s?\d)"
)
_TOTAL = (
    r"(?:\s*(?:/|\bof\b|\bout of\b)\s*(?P<total>\d{1,3}(?:,\d{3})+|\d{1,15})"
    r"(?![\d,]*\.?\d)(?!\s*/\s*\d)(?![A-Za-z_]))?"
)

#: ``global_step=12``, ``"step": 12``, ``step 48,213/100,000``, ``iteration   500/ 1000``.
_COUNTER = re.compile(
    r"(?i)(?<![A-Za-z0-9_.-])(?P<key>(?:global|training|train|current|optimizer|opt|cur)?[_ ]?"
    r"(?:steps?|iterations?|iters?|batch|updates?|num_updates))"
    r"(?P<sep>[\"']?\s{0,12}[:=#\[(]{0,2}\s{0,12}[\"']?)" + _NUMBER + _TOTAL
)
#: ``it 1,234`` only where a log's columns begin, because English uses the word too.
_IT = re.compile(r"(?:^|[|\[(,;]\s*|\]:?\s+)it[:=]?\s+" + _NUMBER + _TOTAL)
#: ``45%|####5     | 450/1000 [00:10<00:12, …]``; a description may stand in front.
_TQDM = re.compile(r"\d{1,3}%\|[^|]{0,300}\|\s*" + _NUMBER + r"/(?P<total>\d{1,15})\s*\[")
#: Bars of rich and Keras, ``Epoch: [3][ 450/1000]``, and ``epoch 003:  450 / 1000``.
_BARS = re.compile(
    r"[\u2501\u2578\u257a]\s+(?P<a>\d{1,15})/(?P<at>\d{1,15})(?=\s|$)"
    r"|^\s*(?P<b>\d{1,15})/(?P<bt>\d{1,15}) \[[=>.\-]{3,}\]"
    r"|[Ee]poch:?\s*\[\s*\d+(?:/\d+)?\s*\]\s*\[\s*(?P<c>\d{1,15})/(?P<ct>\d{1,15})\]"
    r"|\bepoch \d{1,6}:\s+(?P<d>\d{1,15})\s*/\s*(?P<dt>\d{1,15})(?=\s)"
)
#: None of these patterns can match without one of these: most lines need one look only.
_HINT = re.compile(
    r"[Ss]tep|STEP|[Ii]ter|ITER|[Bb]atch|BATCH|[Uu]pdate|\bit\b|%\||\d \[|poch|[\u2501\u2578\u257a]"
)

#: A bar with one of these words in front of it counts other things than training steps.
_OTHER_WORK = re.compile(
    r"(?i)\b(?:load|download|fetch|map|filter|tokeni[sz]|process|preprocess|prepar|sav|eval|valid|val"
    r"|test|predict|infer|sanity|generat|cach|build|extract|cop|upload|convert|index|resolv|compil"
    r"|captur|shard|warm|read|writ|pack|merg|group|creat|import|export|cast|flatten|sampl|denois"
    r"|decod|encod|scor|rank|init|setup|install|unpack|hash|verif|check|scan|count|sort|shuffl"
    r"|dataset|checkpoint|adding|running tokenizer)\w*"
)
#: In front of a counter: these make it a setting or the counter of something else.
_NOT_A_COUNTER = re.compile(
    r"(?i)(?:\b(?:total|max|maximum|min|num|number of|warm-?up|accumulation|every|per|eval\w*"
    r"|val\w*|test\w*|sav\w+|log\w*|infer\w*|sampl\w+|denois\w+|decay|predict\w*|sanity|each|last|first"
    r"|next|this|that|extra|setup|build|micro|mini)[ _-]?|--[\w-]*)$"
)
_PLURAL_SETTING = re.compile(
    r"(?i)(?:train|training|optimi[sz]ation|optimi[sz]er|opt|update)[ _]?$"
)


def _int(text: str) -> int:
    return int(text.replace(",", ""))


def _found(step: int, total: int | None, line: LogLine) -> Progress:
    return Progress(step, total if total is not None and total >= step else None, line)


def _counter(line: LogLine) -> Progress | None:
    text = line.text
    best: Progress | None = None
    for match in _COUNTER.finditer(text):
        key = match["key"].lower()
        before = text[max(0, match.start() - 24) : match.start()]
        if _NOT_A_COUNTER.search(before):
            continue
        if not match["sep"]:
            continue
        plural = key.endswith("s") and not key.endswith("num_updates")
        total = match["total"]
        if key.endswith("batch") and total is None:
            continue
        if plural and total is None:
            # "Total optimization steps = 100" is a plan; "steps: 20 loss: 1.2" is a counter.
            spelled = before + key[: key.rfind(" ") + 1] if " " in key else before
            if _PLURAL_SETTING.search(spelled) or not match["sep"].strip() or "iter" in key:
                continue
        found = _found(_int(match["step"]), _int(total) if total else None, line)
        if best is None or (best.total is None and found.total is not None):
            best = found
    if best is None:
        match_it = _IT.search(text)
        if match_it is not None:
            total = match_it["total"]
            best = _found(_int(match_it["step"]), _int(total) if total else None, line)
    return best


def _about(text: str, at: int) -> str:
    """The description in front of a bar."""
    return text[max(0, at - 200) : at].rpartition("|")[2]


def _bar(line: LogLine) -> Progress | None:
    last: Progress | None = None
    if "%|" in line.text:
        for match in _TQDM.finditer(line.text):
            if not _OTHER_WORK.search(_about(line.text, match.start())):
                last = _found(_int(match["step"]), int(match["total"]), line)
    if last is not None:
        return last
    match_bar = _BARS.search(line.text)
    if match_bar is None or _OTHER_WORK.search(_about(line.text, match_bar.start())):
        return None
    for name in "abcd":
        if match_bar[name] is not None:
            return _found(int(match_bar[name]), int(match_bar[name + "t"]), line)
    return None


def find_progress(lines: Iterable[LogLine]) -> Progress | None:
    """The last step counter in ``lines``; ``total`` where the log printed one beside it."""
    for line in reversed(tuple(lines)):
        if _HINT.search(line.text) is None:
            continue
        found = _counter(line) or _bar(line)
        if found is not None:
            return found
    return None
