"""Where a batch job's output file is: the pattern of ``sbatch --output`` filled in.

Slurm shows the pattern (``slurm-%A_%a.out``), or, on 22.05 where none was given, a path that
it filled in itself, and wrongly for array tasks. Letters were checked against the files that
a real 22.05.8 made: ``%J`` is the plain job id and ``%s`` is ``batch`` in a batch script.
"""

import re
from posixpath import basename, dirname, join

from slurmtop.model.job import Job
from slurmtop.parse.slurm.hostlist import hosts_in
from slurmtop.parse.slurm.words import NONE_WORDS

_SYMBOL = re.compile(r"%(?:%|([0-9]{0,9})([A-Za-z]))")
_KNOWN = frozenset("AaJjxuNntsb")
_MAX_WIDTH = 10
#: What Slurm puts in for the task number of a job that is no array task.
_NO_TASK = 4_294_967_294


class _Unknown(Exception):
    """A symbol whose value nobody told us."""


def expand_log_path(pattern: str, job: Job, *, node: str | None = None) -> str | None:
    """The file behind an output pattern, joined to the work directory; None if it is unknown.

    ``%A %a %j %J %x %u %N %n %t %s %b %%`` with zero padding (``%4j``, at most 10 wide, on
    numbers only). ``node`` is the host meant by ``%N`` and ``%n``; without it the first host
    of the job. With a backslash in it Slurm fills nothing in and only takes it out.
    ``%b`` is filled in by newer releases only (22.05 leaves it as it stands). The pending
    rest of an array has no file of its own: None, unless the path is the same for all tasks.
    """
    if not pattern or pattern in NONE_WORDS:
        return None
    if "\\" in pattern:
        filled: str | None = re.sub(r"\\(.?)", r"\1", pattern)
    elif job.id.tasks is not None:
        filled = _for_rest(pattern, job)
    else:
        filled = _filled(_unguessed(pattern, job), job, node)
    if filled is None or filled.startswith("/"):
        return filled
    return None if job.workdir is None else join(job.workdir, filled)


def _unguessed(pattern: str, job: Job) -> str:
    """Take back what squeue of 22.05 filled in for jobs without ``--output``.

    It prints ``slurm-RAWID.out`` for an array task, whose file is ``slurm-ARRAY_TASK.out``,
    and for a het component, which writes into the leader's file.
    """
    if job.raw_id is None or basename(pattern) != f"slurm-{job.raw_id}.out":
        return pattern
    folder = dirname(pattern).replace("%", "%%")
    if job.id.task is not None:
        return join(folder, "slurm-%A_%a.out")
    return join(folder, "slurm-%j.out")


def _for_rest(pattern: str, job: Job) -> str | None:
    """The path that all waiting tasks share, if there is one."""
    if basename(pattern) == f"slurm-{job.raw_id}.out" or str(_NO_TASK) in pattern:
        return None
    letters = {match.group(2) for match in _SYMBOL.finditer(pattern)}
    if letters & set("ajJbNn"):
        return None
    return _filled(pattern, job, None)


def _filled(pattern: str, job: Job, node: str | None) -> str | None:
    def value(match: re.Match[str]) -> str:
        width_text, letter = match.group(1), match.group(2)
        if letter is None:
            return "%"
        if letter not in _KNOWN:
            # With a width in between, Slurm drops the sign and keeps the rest.
            return match.group().removeprefix("%") if width_text else match.group()
        text = _value(letter, job, node)
        width = min(int(width_text), _MAX_WIDTH) if width_text else 0
        return text.zfill(width) if text.isdecimal() and letter not in "xuN" else text

    try:
        return _SYMBOL.sub(value, pattern)
    except _Unknown:
        return None


def _value(letter: str, job: Job, node: str | None) -> str:
    if letter == "A":
        return job.id.base if job.id.task is not None else _raw_id(job)
    if letter == "a":
        return str(_NO_TASK if job.id.task is None else job.id.task)
    if letter == "b":
        return str((_NO_TASK if job.id.task is None else job.id.task) % 10)
    if letter in "jJ":
        return _raw_id(job)
    if letter == "x":
        if job.name_unsure:
            raise _Unknown
        return job.name
    if letter == "u":
        return job.user
    if letter in "Nn":
        return _place(letter, job, node)
    return "batch" if letter == "s" else "0"


def _raw_id(job: Job) -> str:
    if job.id.task is not None:
        if job.raw_id is None:
            raise _Unknown
        return job.raw_id
    # The batch script of a het job runs in its first component only.
    return job.id.base


def _place(letter: str, job: Job, node: str | None) -> str:
    """Short host name, or the node's number within the job."""
    hosts = hosts_in(job.nodes)
    name = node if node is not None else (hosts[0] if hosts else None)
    if letter == "N":
        if name is None:
            raise _Unknown
        return name.partition(".")[0]
    if node is None:
        return "0"
    short = [host.partition(".")[0].lower() for host in hosts]
    wanted = node.partition(".")[0].lower()
    if wanted not in short:
        raise _Unknown
    return str(short.index(wanted))
