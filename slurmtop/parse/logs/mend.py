"""Messages that are torn, glued or wrapped over raw lines, made whole.

Source: pastes from terminals, and ranks that write into one file at once, for example::

    [rank2]:[E816 00:34:01.13 ProcessGroupNCCL.cpp:629] [Rank 2] … OpType=_ALLGATHER_BA[451/1919]
    n=71552, NumelOut=572416, Timeout(ms)=600000) ran for 600004 milliseconds before timing out.
     1%|#         | 24/1752 [01:08<1:22:56,  2.88s/it][rank5]:[E602 11:17:52.18 ProcessGroupN…

Only what shows that it is one record is joined; what hides behind a tmux counter is filled in
where one operation alone fits, and never a digit.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from slurmtop.parse.logs.peel import C10_HEAD, STRONG, Prefix, peel
from slurmtop.parse.logs.shape import Shape
from slurmtop.parse.logs.slurm_ending import is_open, made_whole

#: Raw lines that one record may span, and its longest text.
MOST_PARTS = 8
MOST_CHARS = 4_000

_COUNTER = re.compile(r"\[\d{1,6}/\d{1,6}\]$")
_OPS = (
    "ALLREDUCE", "ALLREDUCE_COALESCED", "ALLGATHER", "_ALLGATHER_BASE", "ALLGATHER_COALESCED",
    "REDUCE_SCATTER", "_REDUCE_SCATTER_BASE", "REDUCE", "BROADCAST", "_BROADCAST_OOP", "GATHER",
    "SCATTER", "ALLTOALL", "ALLTOALL_BASE", "SEND", "RECV", "BARRIER", "COALESCED", "_REDUCE_OOP",
)  # fmt: skip
_OP_CUT = re.compile(r"OpType=(\w{0,40})$")
_FIELD = ", NumelIn="
_FIELD_REST = re.compile(r"[, NumelIn]{0,10}=\d")

#: Records whose end is known: where it is missing, the next lines may hold it.
_OPENED = re.compile(r"(?:WorkNCCL|CollectiveFingerPrint|TensorOptions)\(")
_UNENDED = re.compile(
    r"Watchdog caught collective operation timeout:?\s*$"
    r"|Watchdog caught collective operation timeout: WorkNCCL\((?!.*timing out)"
    r"|PG status: last enqueued(?!.*complete\w{0,3} (?:NCCL )?work: ?-?\d)"
    r"|last enqueued NCCL work: ?\d*,?\s*(?:last\s*)?(?:completed\s*)?(?:NCCL\s*)?(?:work:?)?\s*$"
    r"|Detected mismatch between collectives on ranks\.(?!.*but Rank)"
    r"|Timeout\(ms\)=\d*$|(?:ran for|milliseconds|before) *$"
)
#: None of the two above matches without one of these, and most lines hold none.
_OPEN_WORDS = (
    "WorkNCCL(", "CollectiveFingerPrint(", "TensorOptions(", "Watchdog caught", "last enqueued",
    "Detected mismatch", "Timeout(ms)=",
)  # fmt: skip
_OPEN_ENDS = ("ran for", "milliseconds", "before")
#: What a record goes on with where somebody's editor or mailer broke it at blanks.
_GOES_ON = re.compile(
    r"\s{0,12}(?:WorkNCCL\(|ran for \d|NumelIn=|NumelOut=|OpType=|SeqNum=|Timeout\(ms\)|but Rank \d"
    r"|last (?:enqueued|completed)|completed|enqueued|NCCL work|work:|milliseconds"
    r"|before timing|timing out"
    r"|Tensor(?:Shape|Dtypes|DeviceTypes|Options))"
)
#: A line that begins on its own, whatever stood before it.
_FRESH = re.compile(
    r"\s*$|Traceback|\s+File \"|(?:frame )?#\d|[=#*-]{4,}|(?:slurmstepd|srun)\S{0,80}: |\S+Error: "
    r"|terminate called|\s*what\(\)|Exception raised|\s{0,12}\d{1,3}%\||\S{0,40} *\d{1,3}%\|"
)

_CHAIN = (
    r"(?:\[[\w.-]{1,64}:\d{1,3}\]: ?|\[(?:default|trainer)\d{1,4}\]: ?|\[rank ?\d{1,7}\[?\]: ?"
    r"|\[\d{1,6},\d{1,6}\]<std(?:out|err|diag)>: ?"
    r"|\([A-Za-z_][\w.]{0,60} pid=\d{1,10}(?:, ip=[^()\s]{1,80})?\) ?)"
)
#: Where another message begins inside a line.
_INSIDE = re.compile(
    _CHAIN
    + "{1,5}|"
    + C10_HEAD.replace("?P<", "?P<c_").replace(r"\[?[EWIFDV]", r"\[[EWIFDV]", 1)
    + r"|[EWIF]\d{4} \d\d:\d\d:\d\d\.\d{6} \d{1,10} \S{1,160}\.py:\d{1,6}\] "
    + r"|[^\s:\[\]<>|()=,]{0,253}:\d{1,10}:\d{1,10} \[-?\d{1,3}\] "
    + r"(?=[^\n]{0,160}?NCCL (?:INFO|WARN) )"
    + r"|(?:slurmstepd|srun)(?:[-\[][\w.-]{1,64}\]?)?: (?=error|fatal|Job|Terminating|Force|First)"
    + r"|Traceback \(most recent call last\):"
)
#: Every match of it holds one of these, and most lines hold none.
_INSIDE_WORDS = (
    "]:", ">:", " pid=", ".cpp:", ".cc:", ".cxx:", ".cu:", ".h:", ".hpp:", ".py:", "NCCL ",
    "slurmstepd", "srun", "Traceback (most",
)  # fmt: skip


def starts_inside(text: str, after: int) -> list[int]:
    """Where further messages begin in a line whose own prefixes end at ``after``."""
    if text.find(":", after) < 0:
        # Only Ray's tag has none.
        if text.find(" pid=", after) < 0:
            return []
    elif all(text.find(word, after) < 0 for word in _INSIDE_WORDS):
        return []
    found: list[int] = []
    end = after
    for match in _INSIDE.finditer(text, after):
        # A head right behind a tag belongs to the same message.
        if match.start() > end:
            found.append(match.start())
        end = match.end()
    return found


def may_go_on(record: str, shape: Shape) -> bool:
    """Does ``record``, the text of raw lines so far, look as if a part were missing?

    Without colours and borders, its raw lines joined by ``\n``.
    """
    last = record[record.rfind("\n") + 1 :]
    if (shape.width is not None and len(last) >= shape.width - 1) or is_open(last):
        return True
    if last.endswith((",", ")", ":", "]", "=", " for", " before")):
        return True
    if not any(word in record for word in _OPEN_WORDS):
        return record.rstrip(" \n").endswith(_OPEN_ENDS) and _UNENDED.search(record) is not None
    return _OPENED.search(record) is not None or _UNENDED.search(record) is not None


def goes_on(record: str, line: str, shape: Shape) -> bool:
    """Does ``record``, which :func:`may_go_on`, go on in the raw line ``line``?"""
    if not line.strip():
        return False
    last = record[record.rfind("\n") + 1 :]
    if is_open(last) and made_whole(last, line) is not None:
        return True
    full = shape.width is not None and len(last) >= shape.width - 1
    if full or _COUNTER.search(last):
        # A blank in the last column is not copied along.
        return not _FRESH.match(line) and not _begins(line, shape) and _has_head(record, shape)
    whole = record.replace("\n", " ")
    opened = _open_bracket(whole)
    if _GOES_ON.match(line) is not None:
        goes = opened or _UNENDED.search(whole) or whole.rstrip().endswith((",", ")", "timeout:"))
        return bool(goes) and not _begins(line, shape)
    return opened and len(last) >= 40 and not _FRESH.match(line) and not _begins(line, shape)


def _begins(line: str, shape: Shape) -> bool:
    """A line with prefixes of its own."""
    return STRONG.match(line) is not None or peel(line, shape).end > 0


def _has_head(record: str, shape: Shape) -> bool:
    return peel(record, shape).end > 0


def _open_bracket(text: str) -> bool:
    opened = _OPENED.search(text)
    if opened is None:
        return False
    rest = text[opened.start() :]
    return rest.count("(") > rest.count(")")


def joined(parts: Sequence[str], shape: Shape) -> str:
    """Raw lines of one record as the one line that was written."""
    text = parts[0]
    for before, part in pairwise(parts):
        counter = _COUNTER.search(before)
        if is_open(before) and (whole := made_whole(text, part)) is not None:
            text = whole
        elif counter is not None:
            text = _filled(text[: -len(counter.group())], part, len(counter.group()))
        elif shape.width is not None and len(before) >= shape.width:
            text += part
        else:
            text = f"{text.rstrip()} {part.lstrip()}"
    return text[:MOST_CHARS]


def _filled(left: str, right: str, hidden: int) -> str:
    """``left`` and ``right`` with what the counter hides between them, where that is certain."""
    cut = _OP_CUT.search(left)
    if cut is not None and _FIELD_REST.match(right):
        for skip in range(len(_FIELD)):
            if not right.startswith(_FIELD[skip:]):
                continue
            size = hidden - skip + len(cut[1])
            fits = [op for op in _OPS if len(op) == size and op.startswith(cut[1])]
            if len(fits) == 1:
                return left[: cut.start(1)] + fits[0] + _FIELD[:skip] + right
    if right[:1].isdigit():
        left = left.rstrip("0123456789")
    return f"{left}…{right}"


def pieces(text: str, shape: Shape) -> list[tuple[int, int, Prefix | None]]:
    """(start, end) of each message in one line, nearly always one; of the first its prefix."""
    first = peel(text, shape)
    inside = starts_inside(text, first.end)
    interrupted = text.startswith("^C", first.end) and len(text) > first.end + 2
    if not inside and not interrupted:
        return [(0, len(text), first)]
    cuts = {0, *inside, len(text)} | ({first.end + 2} if interrupted else set())
    return [(start, end, None) for start, end in pairwise(sorted(cuts)) if text[start:end].strip()]
