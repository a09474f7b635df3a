"""How Slurm writes times, sizes, host lists and task lists (forms of 24.11)."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from slurmtop.model.units import clock_text

_HOST = re.compile(r"(.*?)([0-9]+)")
_YEAR_S = 365 * 86_400
_TASK_TEXT_BYTES = 60
"""sacct and scontrol cut a longer task list and write dots."""


def squeue_secs(seconds: int | None) -> str:
    """``0:13``, ``1:00:00``, ``7-00:00:00``; INVALID below 0 and above a year."""
    if seconds is None:
        return "UNLIMITED"
    if seconds < 0 or seconds > _YEAR_S:
        return "INVALID"
    return clock_text(seconds)


def padded_secs(seconds: int) -> str:
    """``00:00:13``, ``7-00:00:00``: the shape of sacct and scontrol."""
    days, rest = divmod(max(0, seconds), 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, secs = divmod(rest, 60)
    head = f"{days}-" if days else ""
    return f"{head}{hours:02}:{minutes:02}:{secs:02}"


def cpu_secs(seconds: int) -> str:
    """``00:12.000`` under an hour, else ``01:02:03``: TotalCPU and its kin."""
    if seconds < 3_600:
        minutes, secs = divmod(max(0, seconds), 60)
        return f"{minutes:02}:{secs:02}.000"
    return padded_secs(seconds)


def mem_text(mib: int) -> str:
    """``4G``, ``62500M``: the larger unit only where it is exact."""
    return f"{mib // 1024}G" if mib and mib % 1024 == 0 else f"{mib}M" if mib else "0"


def fold_numbers(numbers: Iterable[int], width: int = 0) -> str:
    """``0-3,7``."""
    out: list[str] = []
    start = last = None
    for number in sorted(set(numbers)):
        if last is not None and number == last + 1:
            last = number
            continue
        if start is not None and last is not None:
            out.append(_span(start, last, width))
        start = last = number
    if start is not None and last is not None:
        out.append(_span(start, last, width))
    return ",".join(out)


def _span(low: int, high: int, width: int) -> str:
    return f"{low:0{width}}" if low == high else f"{low:0{width}}-{high:0{width}}"


def fold_hosts(names: Iterable[str]) -> str:
    """``gpu[01-03,07],login1``; one host stands without brackets."""
    groups: dict[tuple[str, int], list[int]] = {}
    plain: list[str] = []
    for name in names:
        match = _HOST.fullmatch(name)
        if match:
            groups.setdefault((match[1], len(match[2])), []).append(int(match[2]))
        else:
            plain.append(name)
    folded = [
        f"{prefix}[{fold_numbers(numbers, width)}]"
        if len(set(numbers)) > 1
        else f"{prefix}{numbers[0]:0{width}}"
        for (prefix, width), numbers in groups.items()
    ]
    return ",".join(folded + plain)


def expand_hosts(text: str) -> list[str]:
    """``gpu[01-03,07],login1`` as names; what is no list stays as it is."""
    out: list[str] = []
    for name in re.findall(r"[^,\[\]]*\[[^\]]*\]|[^,]+", text):
        prefix, bracket, inner = name.partition("[")
        numbers = parse_tasks(inner.rstrip("]"), 4_096) if bracket else None
        if numbers is None:
            out.append(name)
            continue
        width = len(re.split("[-,]", inner, maxsplit=1)[0])
        out.extend(f"{prefix}{number:0{width}}" for number in numbers)
    return out


def task_list(tasks: Sequence[int]) -> str:
    """``4-19``, ``1,3-5``, or ``0-998:2`` where many tasks stand a regular step apart."""
    if len(tasks) > 5 and tasks[-1] - tasks[0] > 10:
        step = tasks[1] - tasks[0]
        if step > 1 and all(b - a == step for a, b in pairwise(tasks)):
            return f"{tasks[0]}-{tasks[-1]}:{step}"
    return fold_numbers(tasks)


def short_task_list(tasks: Sequence[int], throttle: int | None) -> str:
    """The list as sacct and scontrol print it: cut, perhaps inside a number, with dots."""
    text = task_list(tasks)
    if len(text) > _TASK_TEXT_BYTES:
        text = text[:_TASK_TEXT_BYTES] + "..."
    return f"{text}%{throttle}" if throttle else text


def parse_tasks(text: str, limit: int = 100_000) -> list[int] | None:
    """``1-5,7`` or ``0-998:2`` as numbers; None where it is no task list."""
    out: list[int] = []
    for piece in text.partition("%")[0].split(","):
        match = re.fullmatch(r"([0-9]{1,7})(?:-([0-9]{1,7})(?::([0-9]{1,7}))?)?", piece, re.ASCII)
        if not match:
            return None
        low = int(match[1])
        high = int(match[2] or low)
        step = int(match[3] or 1)
        if high < low or step < 1 or len(out) + (high - low) // step >= limit:
            return None
        out.extend(range(low, high + 1, step))
    return sorted(set(out))


def cut_bytes(text: str, size: int) -> str:
    """The first ``size`` bytes; Slurm cuts inside a character where it falls so."""
    raw = text.encode("utf-8", "surrogateescape")
    return raw[:size].decode("utf-8", "surrogateescape") if len(raw) > size else text


def pad(text: str, size: int, *, right: bool) -> str:
    """Cut and fill to ``size`` bytes, as squeue does; 0 leaves the text alone."""
    if size <= 0:
        return text
    text = cut_bytes(text, size)
    fill = " " * (size - len(text.encode("utf-8", "surrogateescape")))
    return fill + text if right else text + fill


def task_rows(tasks: Iterable[int], words: dict[int, str]) -> list[tuple[str, str]]:
    """Runs of neighbouring tasks with the same word: ``[("0-1", "No error")]``."""
    out: list[tuple[str, str]] = []
    run: list[int] = []
    for task in sorted(tasks):
        if run and words[task] != words[run[-1]]:
            out.append((fold_numbers(run), words[run[-1]]))
            run = []
        run.append(task)
    if run:
        out.append((fold_numbers(run), words[run[-1]]))
    return out
