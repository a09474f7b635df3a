"""The prefixes in front of a message: who wrote it and when, as far as they tell.

Source: libraries, launchers and collectors, each in front of the next, for example::

    2019-06-02T16:13:44.884Z: [1,12]<stdout>:node-d:815:864 [0] transport/net_ib.cu:80 NCCL WARN …
    [2025-05-10 00:18:21] (WorkerDict pid=1230, ip=worker-0) [rank15]:[E510 00:18:19.328 Proc…

They come in any order and nesting. Some are told from other words only by what most lines of the
file look like (``3: ``, ``node-a: ``): that is a :class:`~slurmtop.parse.logs.shape.Shape`. The
rank of a group inside a message (``[Rank 1] Watchdog``) is not peeled and is nobody's rank.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from slurmtop.model.trace import Clock, RankFrom, Stamp
from slurmtop.parse.logs.shape import NO_SHAPE, Shape
from slurmtop.parse.logs.stamps import glog_stamp, late_stamp, stamp_at

#: Characters of a raw line that a person is shown.
SHOWN_CHARS = 400
_MOST_PREFIXES = 14

#: ``[E1003 18:37:01.83 ProcessGroupNCCL.cpp:607] ``, ``W1026 03:51:31.22 2521679 api.py:908] ``.
C10_HEAD = (
    r"\[?[EWIFDV](?:(?P<when>\d{3,4} \d\d:\d\d:\d\d(?:\.\d{1,9})?)(?: +(?P<thread>\d{1,10}))?)? "
    r"(?P<file>[\w./<>+-]{1,200}\.(?:cpp|cc|cxx|cu|h|hpp|py)):\d{1,6}\] ?"
)
#: ``node-a:815:864 [0] ``; the host may be empty, digits, or a redaction with blanks.
NCCL_HEAD = (
    r"(?P<host><[^<>\n]{1,60}>|\[[^\[\]\n]{1,60}\]|\{[^{}\n]{1,60}\}|\([^()\n]{1,60}\)"
    r"|[^\s:\[\]<>|]{0,253}):(?P<pid>\d{1,10}|[xX*]{1,10})(?::(?P<tid>\d{1,10}|[xX*]{1,10}))?"
    r"(?: \[-?\d{1,3}\] (?=[^\n]{0,200}?(?:NCCL|INFO|WARN|TRACE) )| (?=NCCL CALL ))"
)

_C10 = re.compile(C10_HEAD)
_NCCL = re.compile(NCCL_HEAD)
_RANK_TAG = re.compile(r"\[rank[=:]? ?(?P<rank>\d{1,7})\[?\]:? ?")
_RANK_WORD = re.compile(r"\[RANK[ :=_-]{0,2}(?P<rank>\d{1,7})\]:? ?")
_ROLE = re.compile(
    r"\[(?:default|trainer|train|worker|main|actor|learner)_?(?P<local>\d{1,4})(?:\|\d{1,7})?\]: ?"
)
_HOST_LOCAL = re.compile(
    r"\[(?P<host>[A-Za-z\d][\w.-]{0,63}(?<!\.py)(?<!\.cc)(?<!\.cpp)(?<!\.h)):"
    r"(?P<local>\d{1,3})\]: ?"
)
_HOST_PID = re.compile(
    r"\[(?P<host>[A-Za-z][\w.-]{0,63}(?<!\.py)(?<!\.cc)(?<!\.cpp)(?<!\.h)):(?P<pid>\d{2,10})"
    r"(?: {0,2}:\d{1,10}){0,2}\] (?=\*\*\*|Signal|Failing|\[ ?\d|[Cc]aught|\S)"
)
_MPI = re.compile(
    r"\[(?:[\w.@-]{1,80}@|\d{1,6},)?(?:\d{1,6},)?(?P<rank>\d{1,6})\](?:\[[^\]\n]{1,80}\])?"
    r"<std(?:out|err|diag)>: ?"
)
_RAY = re.compile(
    r"\((?:[A-Za-z_][\w.:+-]{0,80})?[, ]{0,2}(?:rank=\d{1,7} )?pid=(?P<pid>\d{1,10})"
    r"(?:, ip=(?P<ip>[^()\s]{1,80}))?\) ?|\((?:raylet|autoscaler|gcs_server|dashboard)"
    r"(?:, ip=(?P<of>[^()\s]{1,80}))?\) ?"
)
_DETERMINED = re.compile(r"[0-9a-f]{6,12} (?:\[rank=(?P<rank>\d{1,7})\] )?\|\| ?")
_COLLECTED = re.compile(r"(?P<label>[\w.-]{1,80}) >> ?")
_COMPOSED = re.compile(r"(?P<label>[A-Za-z][\w.-]{0,60}) {1,30}\| ?")
_NAMED = re.compile(r"(?P<label>[A-Za-z\d][\w.-]{0,80}): ?")
_POD = re.compile(r"\[(?P<label>pod/[\w./-]{1,120})\] ?")
_STREAM = re.compile(r"(?:stdout|stderr) [FP] ")
_TASK = re.compile(r"(?P<task>\d{1,6}): ?")
_KERNEL = re.compile(r"kernel: ?")
_LOGGED = re.compile(
    r"(?P<host>[\w.-]{1,64}) (?P<prog>[\w./()@-]{1,48})(?:\[(?P<pid>\d{1,10})\])?: ?"
)
_ALLEN = re.compile(r"(?P<rank>\d{1,6}) \| (?=\d{4}-\d\d-\d\d)")
_BORDER = re.compile(r"[│┃║▏|] ?(?=\S| )")
_MARKED = re.compile(r"\*\*(?=[^\s*])|> (?!>)|`{1,3}(?=\[)")
_AFTER_TIME = re.compile(r"(?:[:,](?= )|:(?=\[))? ?(?:[|-] )?")
_LEVELS = frozenset(
    {"INFO", "WARNING", "WARN", "ERROR", "DEBUG", "CRITICAL", "FATAL", "TRACE", "NOTICE", "E", "W"}
)

#: What begins a message beyond doubt: in front of it ``3: `` and ``node-a: `` are labels.
STRONG = re.compile(
    C10_HEAD.replace("?P<", "?P<c_")
    + "|"
    + NCCL_HEAD.replace("?P<", "?P<n_")
    + r"|\[rank ?[:=]? ?\d{1,7}\]|\[(?:\d{1,6},)?\d{1,6}\]<std|Traceback \(most recent call last\)"
    r"|  File \"|\(\w[\w.]{0,60} pid=\d|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"
    r"|\[(?:default|trainer)\d{1,4}\]:"
)
#: Words before ``: `` that are no host.
_SPEAKERS = re.compile(
    r"(?i)(?:srun|slurm\w*|sbatch|salloc|kernel|nvrm|mlx\d\S*|pcieport|torch\S*|python\S*|bash|sh|mpi\S*"
    r"|prte\S*|orted|info|warn\w*|error|debug|fatal|note|hint|usage|traceback|libfabric|ucx|nccl\S*"
    r"|terminate|what|last|caused?|root|failures|submitit|ray|deepspeed|wandb|systemd\S*|sshd"
    r"|\w*(?:error|exception|warning|exit|interrupt))(?:[-\[].*)?$"
)


@dataclass(slots=True)
class Prefix:
    """What the prefixes of one message told. ``starts`` are where each of them begins.

    ``end`` is where the message begins. ``tags`` are the prefixes as written, without times.
    """

    year: int | None = None
    end: int = 0
    rank: int | None = None
    rank_from: RankFrom | None = None
    local_rank: int | None = None
    task: int | None = None
    host: str | None = None
    label: str | None = None
    pid: int | None = None
    stamp: Stamp | None = None
    head: str = ""
    tags: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)

    def ranked(self, rank: str, told: RankFrom) -> None:
        """Keep the rank of the strongest rung."""
        order = (RankFrom.TAG, RankFrom.MPI, RankFrom.WORDS)
        if self.rank_from is None or order.index(told) < order.index(self.rank_from):
            self.rank, self.rank_from = int(rank), told

    def stamped(self, stamp: Stamp | None) -> None:
        """The outermost time counts, but any clock on the wall before seconds since boot."""
        if stamp is not None and (
            self.stamp is None or (self.stamp.clock is Clock.BOOT and stamp.clock is Clock.WALL)
        ):
            self.stamp = stamp


def peel(text: str, shape: Shape = NO_SHAPE, at: int = 0) -> Prefix:
    """The prefixes that begin at ``text[at]``; a line without any has ``end`` at ``at``."""
    prefix = Prefix(year=shape.year, end=at)
    if shape.numbered is not None and (found := shape.numbered.match(text, at)) is not None:
        prefix.end = found.end()
    for _ in range(_MOST_PREFIXES):
        if not _step(text, prefix, shape):
            break
    if prefix.stamp is None:
        prefix.stamp = late_stamp(text, prefix.end, shape.year)
    return prefix


def inherit(prefix: Prefix, outer: Prefix, text: str) -> None:
    """A launcher's tags hold for all that is glued into one of its lines; a rank's own do not."""
    if text.startswith(("srun", "slurmstepd")):
        return
    prefix.task = outer.task if prefix.task is None else prefix.task
    prefix.label = prefix.label or outer.label
    prefix.stamped(outer.stamp)
    if text.startswith("Traceback") and not prefix.tags:
        prefix.rank, prefix.rank_from = outer.rank, outer.rank_from
        prefix.local_rank, prefix.pid = outer.local_rank, outer.pid
        prefix.host = outer.host
        prefix.tags.extend(outer.tags)


def shown_text(text: str, more: Sequence[str], prefix: Prefix) -> str:
    """What a person is shown: from the first prefix that leaves room for the message."""
    whole = "\n".join([text, *more])
    begin = 0
    for start in prefix.starts:
        if len(whole) - begin <= SHOWN_CHARS:
            break
        begin = min(start, len(text))
    return whole[begin:].strip()[:SHOWN_CHARS].rstrip()


def _step(text: str, prefix: Prefix, shape: Shape) -> bool:
    """Peel one prefix; false where none begins."""
    at = prefix.end
    size = len(text)
    while at < size and text[at] in " \t":
        at += 1
    if at >= size:
        return False
    first = text[at]
    for read in _READERS.get(first) or (_DIGITS if first.isdigit() else _WORDS):
        end = read(text, at, prefix, shape)
        if end is not None and end > at:
            prefix.starts.append(at)
            prefix.end = end
            return True
    return False


def _tag(text: str, at: int, end: int, prefix: Prefix) -> int:
    prefix.tags.append(text[at:end].strip())
    return end


def _time(text: str, at: int, prefix: Prefix, shape: Shape) -> int | None:
    found = stamp_at(text, at, shape.year)
    if found is None:
        return None
    stamp, end = found
    prefix.stamped(stamp)
    logged = _LOGGED.match(text, end + 1) if text[end : end + 1] == " " else None
    if logged is not None and _is_syslog(logged, syslog=text[at].isalpha()):
        prefix.host = prefix.host or logged["host"]
        if logged["pid"] and logged["prog"] != "kernel":
            prefix.pid = int(logged["pid"])
        return logged.start("prog") if logged["prog"].startswith("s") else logged.end()
    rest = _AFTER_TIME.match(text, end)
    end = end if rest is None else rest.end()
    stream = _STREAM.match(text, end)
    return end if stream is None else stream.end()


def _is_syslog(found: re.Match[str], *, syslog: bool) -> bool:
    if found["host"].upper() in _LEVELS or found["host"].endswith(":"):
        return False
    return syslog or found["prog"] == "kernel" or found["pid"] is not None


def _c10(text: str, at: int, prefix: Prefix, shape: Shape) -> int | None:
    found = _C10.match(text, at)
    if found is None:
        return None
    if found["when"]:
        prefix.stamped(glog_stamp(found["when"], shape.year))
    if found["thread"] and found["file"].endswith(".py") and prefix.pid is None:
        prefix.pid = int(found["thread"])
    prefix.head = found.group().strip().strip("[]")
    return found.end()


def _nccl(text: str, at: int, prefix: Prefix, shape: Shape) -> int | None:
    found = _NCCL.match(text, at)
    if found is None or (found["tid"] is None and found["pid"].isdigit()):
        return None
    prefix.host = found["host"] or prefix.host
    if found["pid"].isdigit():
        prefix.pid = int(found["pid"])
    prefix.head = found.group().strip()
    return found.end()


def _rank_tag(text: str, at: int, prefix: Prefix, shape: Shape) -> int | None:
    for form, told in ((_RANK_TAG, RankFrom.TAG), (_RANK_WORD, RankFrom.WORDS)):
        found = form.match(text, at)
        if found is not None:
            prefix.ranked(found["rank"], told)
            return _tag(text, at, found.end(), prefix)
    return None


def _mpi(text: str, at: int, prefix: Prefix, shape: Shape) -> int | None:
    found = _MPI.match(text, at)
    if found is None:
        return None
    prefix.ranked(found["rank"], RankFrom.MPI)
    return _tag(text, at, found.end(), prefix)


def _bracket(text: str, at: int, prefix: Prefix, shape: Shape) -> int | None:
    """The other tags of launchers in brackets."""
    if (found := _ROLE.match(text, at)) is not None:
        prefix.local_rank = int(found["local"])
    elif (found := _HOST_LOCAL.match(text, at)) is not None:
        prefix.host = prefix.host or found["host"]
        prefix.local_rank = int(found["local"])
    elif (found := _HOST_PID.match(text, at)) is not None:
        prefix.host, prefix.pid = found["host"], int(found["pid"])
    elif (found := _POD.match(text, at)) is not None:
        prefix.label = prefix.label or found["label"]
    else:
        return None
    return _tag(text, at, found.end(), prefix)


def _ray(text: str, at: int, prefix: Prefix, shape: Shape) -> int | None:
    found = _RAY.match(text, at)
    if found is None:
        return None
    if found["pid"]:
        prefix.pid = int(found["pid"])
    prefix.label = prefix.label or found["ip"] or found["of"]
    return _tag(text, at, found.end(), prefix)


def _number(text: str, at: int, prefix: Prefix, shape: Shape) -> int | None:
    """srun's label, and the rank that AllenNLP puts in front of its times."""
    if (found := _ALLEN.match(text, at)) is not None:
        prefix.ranked(found["rank"], RankFrom.WORDS)
        return _tag(text, at, found.end(), prefix)
    found = _TASK.match(text, at)
    if found is None or prefix.task is not None:
        return None
    if not shape.labelled and STRONG.match(text, found.end()) is None:
        return None
    prefix.task = int(found["task"])
    return _tag(text, at, found.end(), prefix)


def _collector(text: str, at: int, prefix: Prefix, shape: Shape) -> int | None:
    """``worker-9 >> ``, ``name  | ``, ``node-a: ``, Determined's container."""
    if (found := _DETERMINED.match(text, at)) is not None:
        if found["rank"]:
            prefix.ranked(found["rank"], RankFrom.TAG)
        return _tag(text, at, found.end(), prefix)
    if (found := _COLLECTED.match(text, at)) is not None:
        prefix.label = prefix.label or found["label"]
        return _tag(text, at, found.end(), prefix)
    for form in (_NAMED, _COMPOSED):
        found = form.match(text, at)
        if found is None:
            continue
        name = found["label"]
        if name not in shape.labels and (
            _SPEAKERS.match(name) is not None or STRONG.match(text, found.end()) is None
        ):
            continue
        prefix.label = prefix.label or name
        return _tag(text, at, found.end(), prefix)
    return None


def _kernel(text: str, at: int, prefix: Prefix, shape: Shape) -> int | None:
    found = _KERNEL.match(text, at)
    return None if found is None else found.end()


def _leftover(text: str, at: int, prefix: Prefix, shape: Shape) -> int | None:
    """Borders of panes and marks of markdown."""
    found = _BORDER.match(text, at) or _MARKED.match(text, at)
    return None if found is None else found.end()


_Read = Callable[[str, int, Prefix, Shape], int | None]
_READERS: dict[str, tuple[_Read, ...]] = {
    "[": (_rank_tag, _c10, _mpi, _bracket, _time, _nccl),
    "(": (_ray, _time, _nccl),
    "<": (_nccl, _time),
    "{": (_nccl,),
    ":": (_nccl,),
    "|": (_leftover,),
    "│": (_leftover,),
    "┃": (_leftover,),
    "║": (_leftover,),
    "▏": (_leftover,),
    ">": (_leftover,),
    "*": (_leftover, _nccl),
    "`": (_leftover,),
}
_DIGITS: tuple[_Read, ...] = (_time, _nccl, _number, _collector)
_WORDS: tuple[_Read, ...] = (_c10, _time, _nccl, _kernel, _collector)
