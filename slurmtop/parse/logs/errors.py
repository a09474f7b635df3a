"""The first line of a training log that tells a real error, and Slurm's own last word.

Source: a job's log, for example::

    Traceback (most recent call last):
      File "train.py", line 12, in <module>
    RuntimeError: CUDA error: device-side assert triggered
    slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2031-05-05T10:00:00 DUE TO TIME LIMIT ***

The process that prints an error last or loudest is usually a victim. Lines that only report the
end of somebody else (a closed NCCL connection, SIGTERM, srun's own lines) count only where no
line tells an error of its own.
"""

import re
from collections.abc import Iterable

from slurmtop.model.facts import LogLine

#: Lines that a process may print between a traceback's header and its last line.
_TRACEBACK_REACH = 400

#: Launchers put these in front of a line: ``[rank3]:``, ``0: ``, ``(Worker pid=7) ``, ``node1: ``.
_TAG = re.compile(
    r"(?:\[[^\]\n]{1,60}\]:?|<std(?:out|err)>:|\([A-Za-z][^)\n]{0,90}\)|\d{1,6}:(?=\s)"
    r"|(?!\w*(?:Error|Exception):)[A-Za-z][\w.-]{0,62}:(?=\s+(?:\[|Traceback|\S+Error)))\s?"
)
_TIME = re.compile(
    r"\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?:?\s?"
    r"|\d\d:\d\d:\d\d(?:[.,]\d+)?\s"
)

_HEADER = "Traceback (most recent call last):"
#: A header after one of these belongs to an error that Python itself swallowed.
_SWALLOWED = re.compile(r"^(?:Exception ignored in|--- Logging error ---)")

_EXCEPTION = re.compile(
    r"^(?:[A-Za-z_][\w]*\.)*(?:[A-Z]\w*(?:Error|Exception|Failure|Failed|Exit|Interrupt|Timeout|OOM)"
    r"|KeyboardInterrupt|StopIteration|Empty|Full)(?::(?:\s|$)|$)"
)
#: Inside a traceback any dotted name will do: users name their exceptions as they like.
_ANY_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?::\s|:?$)")

_QUIET_LEVEL = re.compile(
    r"(?:^|[\s\[|(:])(?:INFO|DEBUG|TRACE|NOTICE|WARN|WARNING|info|debug|warning|warn)(?:[\s\]|):]|$)"
    r"|(?:^|[\s:\]])\[?[IWDV]\d{3,4} \d\d:\d\d:\d\d|(?:^|[\s:\]])\[[IW] "
    r"|\w*Warning: |\bNCCL (?:INFO|TRACE)\b"
)
#: NCCL before 2.3 left its own name out.
_NCCL_WARN = re.compile(r"NCCL WARN |\] \S+:\d+ WARN ")
_NCCL_TROUBLE = re.compile(
    r"(?i)fail|error|closed|timed? ?out|timeout|mismatch|refused|unreachable|duplicate gpu|already"
    r"|exceeded|truncated|abort|no socket interface|got completion|async (?:fatal )?event|fatal"
)
#: What NCCL warns of on healthy clusters: no InfiniBand here, a link that came back.
_NCCL_BENIGN = re.compile(r"libibverbs|client reregistration|port active|LID change|SM change")

#: Words that tell an error of one's own, wherever they stand in the line.
_PLAIN = re.compile(
    r"CUDA out of memory|HIP out of memory|OutOfMemoryError|CUDA error:|HIP error:|cuDNN error"
    r"|CUBLAS_STATUS_(?!SUCCESS)[A-Z_]+|Segmentation fault|Bus error|Illegal instruction"
    r"|Floating point exception|core dumped|terminate called|stack smashing detected"
    r"|double free or corruption|Fatal Python error|No space left on device|Disk quota exceeded"
    r"|Stale file handle|Input/output error|Cannot allocate memory|oom[-_]kill|Out Of Memory"
    r"|out-of-memory handler|cannot open shared object file|command not found|bad interpreter"
    r"|No such file or directory|Permission denied|Exec format error|NCCL error|ncclSystemError"
    r"|ncclInternalError|ncclUnhandledCudaError|ncclRemoteError"
)
_KILLED = re.compile(r"(?:^|line \d+:\s+\d+\s+|:\s)Killed(?:\s{2,}\S.*)?$")
_ASSERTION = re.compile(r"Assertion [`'\"].*failed|Assertion failed")
#: ``error:`` as compilers, shells and argparse write it; never a measured value.
_ERROR_COLON = re.compile(
    r"(?:^|[\s\]])(?:fatal )?[Ee]rror: (?!\s*[-+(\[]?[\d.]+(?:[\s,;%)\]e]|$))\S"
)
_LEVEL = re.compile(
    r"(?:^|[\s\[|(:-])(?:ERROR|CRITICAL|FATAL|SEVERE)(?:[\]|):]|\s|$)(?!\s*[:=]?\s*[-+]?[\d.]+\s*(?:[,;]|$))"
)
_GLOG_ERROR = re.compile(
    r"(?:^|[\s:\]])\[?[EF]\d{3,4} \d\d:\d\d:\d\d|(?:^|[\s:\]])\[[EF] \w+\.(?:cpp|h):\d+\]"
)

#: None of the patterns above can match without one of these: most lines need one look only.
_HINT = re.compile(
    r"rror|RROR|xception|atal|FATAL|CRITICAL|SEVERE|Killed|Keyboard|fault|dumped|terminate called"
    r"|smashing|corruption|space left|quota exceeded|Stale file|Cannot allocate|oom|OOM|Out Of Mem"
    r"|out-of-mem|out of mem|OutOfMem|command not found|bad interpreter|No such file|ermission den"
    r"|Exec format|nccl[A-Z]|WARN |llegal instr|Floating point|shared object|Assertion|Traceback"
    r"|Interrupt|Timeout|Failure|Failed|Exit|StopIter|Empty|Full|CUBLAS|[EF]\d{3,4} \d\d:|\[[EF] "
    r"|slurmstepd|srun|salloc|sbatch"
)

#: These lines report somebody else's end, or what a script shrugged off while it set up.
_CASCADE = re.compile(
    r"\bNCCL\b|ProcessGroupNCCL|DistBackendError|DistNetworkError|DistStoreError|nccl[A-Z]\w*Error"
    r"|ChildFailedError|SignalException|SIGTERM|[Cc]onnection (?:closed|reset)|Broken ?[Pp]ipe"
    r"|ConnectionResetError|EOFError|TCPStore|[Ww]atchdog|torch[./]distributed[./]elastic"
    r"|closing signal|MESSAGE_TASK_EXIT|KeyboardInterrupt|SystemExit|core dumped"
    r"|terminate called|Aborted"
    r"|(?:^|\s)(?:ls|rm|mkdir|rmdir|cat|cp|mv|ln|chmod|tee|find|stat|du|grep|rsync|mkfifo): "
)
_SRUN_END = re.compile(
    r"srun: error: \S+: tasks? [\d,\-\[\]]+: "
    r"(?:Exited|Terminated|Killed|Aborted|Segm|Hangup|Bus|User)"
)

_STEPD = re.compile(r"slurmstepd[\w.-]*: |\b(?:srun|salloc|sbatch|slurmd\S{0,64}): (?=[A-Z]|error)")
_STEPD_ERROR = re.compile(r"(?:slurmstepd[\w.-]*|srun|salloc|sbatch): (?:error|fatal): ")
_STEPD_END = re.compile(r"slurmstepd[\w.-]*: (?:error: )?\*\*\* .* \*\*\*")


def _split_prefix(text: str) -> tuple[str, str]:
    """The launcher's tags in front of a line, without times, and the rest of it."""
    at = 0
    tags: list[str] = []
    for _ in range(6):
        match = _TIME.match(text, at)
        if match is None:
            match = _TAG.match(text, at)
            if match is None:
                break
            tags.append(match.group().strip())
        at = match.end()
    return " ".join(tags), text[at:]


def _tells_error(text: str, rest: str) -> bool:
    quiet = _QUIET_LEVEL.search(text)
    loud: list[int] = []
    for pattern in (_PLAIN, _KILLED, _ASSERTION, _ERROR_COLON, _LEVEL, _GLOG_ERROR, _STEPD_ERROR):
        match = pattern.search(text)
        if match is not None:
            loud.append(match.start())
    if _EXCEPTION.match(rest):
        loud.append(len(text) - len(rest))
    if _NCCL_WARN.search(text):
        return _NCCL_TROUBLE.search(text) is not None and not _NCCL_BENIGN.search(text)
    if not loud:
        return False
    return quiet is None or quiet.start() > min(loud)


def _is_cascade(text: str) -> bool:
    return (
        _CASCADE.search(text) is not None
        or _SRUN_END.search(text) is not None
        or _STEPD_END.search(text) is not None
    )


class _Tracebacks:
    """Headers whose exception line has not come yet, one a launcher's tag."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[LogLine, int]] = {}
        self._swallowed = False

    def see(self, line: LogLine, tags: str, rest: str) -> tuple[bool, LogLine | None]:
        """(the line is part of a traceback, the line that names the exception)."""
        if _SWALLOWED.match(rest):
            self._swallowed = True
            return True, None
        if rest.startswith(_HEADER) or rest.endswith(_HEADER):
            # A bar may stand in front of the header on the same line: no tag then.
            key = tags if rest.startswith(_HEADER) else ""
            self._open[key] = (line, -1 if self._swallowed else _TRACEBACK_REACH)
            self._swallowed = False
            return True, None
        known = self._open.get(tags)
        if known is None:
            return False, None
        header, reach = known
        if rest[:1].isspace() or not rest:
            return True, None
        if _ANY_EXCEPTION.match(rest):
            del self._open[tags]
            return True, line if reach >= 0 else None
        if abs(reach) <= 1:
            del self._open[tags]
        else:
            self._open[tags] = (header, reach - 1 if reach > 0 else reach)
        return False, None

    @property
    def waiting(self) -> bool:
        return bool(self._open)

    def cut_short(self) -> LogLine | None:
        """The first header whose exception the log does not show."""
        headers = [line for line, reach in self._open.values() if reach >= 0]
        return min(headers, key=lambda line: line.offset) if headers else None


def find_first_error(lines: Iterable[LogLine]) -> LogLine | None:
    """The first line that tells an error of its own; else the first that reports an end.

    Of a Python traceback it is the line that names the exception (of a chain: the first one,
    which is the cause). Counters (``errors: 0``), metrics (``val error: 0.1``), options
    (``--error-file``), and lines that call themselves INFO or WARNING are no errors.
    """
    tracebacks = _Tracebacks()
    cascade: LogLine | None = None
    for line in lines:
        text = line.text
        if not tracebacks.waiting and _HINT.search(text) is None:
            continue
        if not text.strip():
            continue
        tags, rest = _split_prefix(text)
        inside, exception = tracebacks.see(line, tags, rest)
        if exception is None and (inside or not _tells_error(text, rest)):
            continue
        if not _is_cascade(text):
            return line
        cascade = cascade or line
    return cascade or tracebacks.cut_short()


def find_slurm_line(lines: Iterable[LogLine]) -> LogLine | None:
    """The last line that Slurm itself wrote; an ending (``*** JOB … ***``) before any other."""
    last: LogLine | None = None
    ending: LogLine | None = None
    for line in lines:
        if _STEPD_END.search(line.text):
            ending = line
        elif _STEPD.search(line.text):
            last = line
    return ending or last


def only_reports_an_end(line: LogLine) -> bool:
    """True for an error line that tells somebody else's end (a closed connection, SIGTERM,
    Slurm's own words) and so nothing about why it came to that."""
    return _is_cascade(line.text)
