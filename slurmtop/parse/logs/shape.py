"""What most lines of a file look like: whether ``3: `` is srun's label, how wide its pane was.

Source: lines of one file, for example of ``srun -l``::

    11: node-a:1:2 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>
     3: Epoch 1: loss 2.41

A number or a name with a colon also stands in stack traces, tables and YAML, so that it is
believed only where most lines begin with one and one of them comes again.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from slurmtop.parse.logs.forms import form_of
from slurmtop.parse.logs.lines import decoded, raw_text
from slurmtop.parse.logs.stamps import year_in

_MOST = 0.6
#: Lines in which a year is looked for.
_FIRST = 40
#: Narrower than this nobody wraps a log.
_NARROWEST = 60

_TIME = re.compile(
    r"\s*(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,\d]*(?:Z|[+-]\d\d:?\d\d)?\]?:? )?"
)
_TASK = re.compile(r"\s{0,8}(\d{1,6}):(?: |$)")
_NAMED = re.compile(r"([A-Za-z\d][\w.-]{0,80}):(?: |$)|([A-Za-z][\w.-]{0,60}) {1,30}\| ?")
_HOSTLIKE = re.compile(r"(?=.*[\d.-])[A-Za-z\d][\w.-]*$")
_NOT_A_HOST = re.compile(
    r"(?i)(?:slurm\w*|srun|mlx\d|python|step|epoch|iter|rank|gpu|loss)|.*(?:error|exception|warning)$"
)
#: Line numbers that were pasted along: ``[1743] text``, ``  12\ttext``, ``12:text``.
_NUMBERINGS = (
    re.compile(r"\[(\d{1,9})\](?: |$)"),
    re.compile(r" {0,8}(\d{1,9})\t"),
    re.compile(r"(\d{1,9}):(?! )"),
    re.compile(r"[\w./-]{1,200}\.(?:log|out|err|txt):(\d{1,9})[:-]"),
)
#: What no wrapped line goes on with.
_BEGINS = re.compile(
    r"[\[(]\w|\S+:\d+:\d+ \[|Traceback|\s+File|[A-Z]\d{3,4} \d\d:|\d{4}-\d\d-\d\d|srun|slurm"
)
_BORDER = re.compile(r"[ \t]*[│┃║▏▕][ \t]*$")
_PIPE = re.compile(r" {2,}\|[ \t]*$")


@dataclass(frozen=True, slots=True)
class Shape:
    """``labels`` are names that stand in front of lines; ``width`` is the column at which a
    terminal broke its lines, None where nothing shows one. ``numbered`` matches the line number
    that somebody pasted along. ``piped`` is true where lines end in a border of ``|``.
    """

    labelled: bool = False
    labels: frozenset[str] = frozenset()
    numbered: re.Pattern[str] | None = None
    width: int | None = None
    piped: bool = False
    year: int | None = None


NO_SHAPE = Shape()


def shape_of(lines: Sequence[str], before: Shape = NO_SHAPE) -> Shape:
    """The shape that these lines show; what an earlier part showed of labels and year stays.

    The width stays open: :func:`width_of`.
    """
    sample = [line for line in lines if line.strip()]
    year = before.year
    if year is None:
        year = next((told for line in sample[:_FIRST] if (told := year_in(line)) is not None), None)
    return Shape(
        labelled=_labelled(sample),
        labels=before.labels | _labels(sample),
        numbered=_numbered(sample),
        piped=sum(map(_is_piped, sample)) >= _MOST * max(len(sample), 2),
        year=year,
    )


def shape_of_raw(lines: Sequence[bytes], before: Shape = NO_SHAPE) -> Shape:
    """:func:`shape_of` of raw lines, each with words. Most of them are never decoded."""
    if before.year is None or len(lines) < 2:
        return shape_of([raw_text(line) for line in lines], before)
    texts = [(raw_text(form), count) for form, count in Counter(map(form_of, lines)).items()]

    def most(holds: Callable[[str], object]) -> bool:
        return sum(count for text, count in texts if holds(text)) >= _MOST * len(lines)

    shapes: list[Callable[[str], object]] = [_task, _named, _is_piped]
    shapes += [form.match for form in _NUMBERINGS]
    if any(map(most, shapes)):
        return shape_of([raw_text(line) for line in lines], before)
    # Whatever a shape is told by holds for most lines, and for all lines of a form or none.
    return Shape(labels=before.labels, year=before.year)


def width_of(lines: Sequence[bytes]) -> int | None:
    """The column at which a terminal broke these lines; None where nothing shows one."""
    sizes = [size for line in lines if (size := len(line)) and not line.isspace()]
    if len(sizes) < 2 or max(sizes) < _NARROWEST or any(b"\r" in line[:-1] for line in lines):
        return None
    if sizes.count(max(sizes)) < 2 and all(map(bytes.isascii, lines)):
        bare = [len(line.rstrip()) for line in lines]
        if bare.count(max(bare)) < 2:
            return None
    texts = [decoded(line).rstrip("\r") for line in lines]
    full = [len(text) for text in texts if text.strip()]
    widest = max(full)
    filled = sum(1 for text in texts if len(text) == widest and text.endswith("  "))
    if filled and full.count(widest) >= max(2, _MOST * len(full)):
        return widest
    return _broken_at([text.rstrip() for text in texts])


def without_border(text: str, shape: Shape) -> str:
    """``text`` without blanks and the border of a pane at its end."""
    text = text.rstrip(" \t\r")
    if text[-1:] in ("│", "┃", "║", "▏", "▕"):
        text = _BORDER.sub("", text)
    elif shape.piped and text.endswith("|"):
        text = _PIPE.sub("", text)
    return text


def _is_piped(line: str) -> bool:
    return line.rstrip(" \t").endswith("|") and _PIPE.search(line) is not None


def _labelled(sample: Sequence[str]) -> bool:
    found = [match for line in sample if (match := _task(line)) is not None]
    if len(found) < 2 or len(found) < _MOST * len(sample):
        return False
    tasks = [int(match[1]) for match in found]
    # A list counts up by one; writers come again, or in any order.
    return not all(later == task + 1 for task, later in pairwise(tasks))


def _task(line: str) -> re.Match[str] | None:
    time = _TIME.match(line)
    return _TASK.match(line, time.end() if time else 0) or _TASK.match(line)


def _named(line: str) -> re.Match[str] | None:
    time = _TIME.match(line)
    return _NAMED.match(line, time.end() if time else 0)


def _labels(sample: Sequence[str]) -> frozenset[str]:
    names: Counter[str] = Counter()
    for line in sample:
        found = _named(line)
        if found is not None:
            names[found[1] or found[2]] += 1
    told = {
        name: count
        for name, count in names.items()
        if _HOSTLIKE.match(name) and not name.isdigit() and not _NOT_A_HOST.match(name)
    }
    if sum(told.values()) < _MOST * len(sample):
        return frozenset()
    return frozenset(name for name, count in told.items() if count >= 2)


def _numbered(sample: Sequence[str]) -> re.Pattern[str] | None:
    for form in _NUMBERINGS:
        numbers = [int(found[1]) for line in sample if (found := form.match(line)) is not None]
        if (
            len(numbers) >= 3
            and len(numbers) >= _MOST * len(sample)
            and all(a < b for a, b in pairwise(numbers))
        ):
            return form
    return None


def _broken_at(lines: Sequence[str]) -> int | None:
    """The column where a terminal broke lines: each full one goes on, mostly inside a word."""
    widest = max(map(len, lines))
    full = [at for at, line in enumerate(lines) if len(line) == widest]
    if widest < _NARROWEST or len(full) < 2 or full[-1] + 1 == len(lines):
        return None
    seams = [(lines[at][-1], lines[at + 1][:1]) for at in full]
    if any(
        not after or _BEGINS.match(lines[at + 1])
        for at, (_, after) in zip(full, seams, strict=True)
    ):
        return None
    inside = sum(1 for before, after in seams if before.isalnum() and after.isalnum())
    return widest if 2 * inside >= len(seams) else None
