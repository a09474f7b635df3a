"""Running one Slurm command and telling an answer from an excuse.

Exit status alone says neither: squeue ends with 0 for a user that it does not know and for a
field that it does not know, and ``scontrol write batch_script`` ends with 0 for a job that it
does not know.
"""

import math
import re
import secrets
import string
from collections.abc import Sequence
from typing import Any, TypeVar

from slurmtop.collect.poller import SourceFailed, local_failure
from slurmtop.model.ids import JobId
from slurmtop.model.ports import Command, Completed, Runner, RunnerError
from slurmtop.model.snapshot import Failure, Parsed, Trouble
from slurmtop.model.text import visible
from slurmtop.parse.slurm.failures import explain_failure

ParsedT = TypeVar("ParsedT", bound=Parsed[Any])

SEPARATOR = b"\x1f"
#: A busy controller lets squeue wait 41 s and more before it fails. Ending it earlier and asking
#: again would make things worse.
SLURM_TIMEOUT_S = 120.0
_WORDS_CHARS = 80
_RAW_CHARS = 2000
_UNKNOWN_FIELD = re.compile(
    r"Invalid (?:job format specification|node format specification|field requested):"
    r"\s*\"?([A-Za-z][\w.-]*)"
)


def new_record_mark() -> bytes:
    """0x1e and six random letters: made once a session, so that no job name can know it."""
    letters = "".join(secrets.choice(string.ascii_letters) for _ in range(6))
    return b"\x1e" + letters.encode("ascii")


def text_separator(mark: bytes) -> bytes:
    """The letters of a record mark between two 0x1f: what no name can know stands between fields.

    For programs that end a record with a newline, whatever stands in it. The second 0x1f keeps
    the letters from growing together with the value behind them, which would hide a secret in
    it from the mask of a recording.
    """
    return SEPARATOR + mark[1:] + SEPARATOR


def long_format(names: Sequence[str], mark: bytes, separator: bytes = SEPARATOR) -> str:
    """``-O`` for squeue and sinfo: behind each field the separator, behind the last the mark."""
    between, end = separator.decode("ascii"), mark.decode("ascii")
    return "".join(f"{name}:{between}," for name in names[:-1]) + f"{names[-1]}:{end}"


def slurm_id(id: JobId) -> str:
    """How to name the job to any Slurm command.

    Of an array's waiting rest the array: ``squeue -j '4711_[1-3]'`` answers for task 0, and
    sacct and scontrol refuse it.
    """
    return id.base if id.tasks is not None else id.stable


def on_cluster(cluster: str) -> tuple[str, ...]:
    """The option that names the cluster; none for the local one."""
    return ("-M", cluster) if cluster else ()


async def run_slurm(
    runner: Runner,
    argv: tuple[str, ...],
    *,
    timeout_s: float = SLURM_TIMEOUT_S,
    max_bytes: int = 64 * 1024 * 1024,
) -> Completed:
    """Run ``argv`` here; :class:`SourceFailed` only where it could not be started."""
    try:
        return await runner.run(Command(argv, timeout_s=timeout_s, max_bytes=max_bytes))
    except RunnerError as error:
        raise SourceFailed(local_failure(error)) from error


def refusal(argv: tuple[str, ...], done: Completed) -> SourceFailed:
    """What ``done`` means, where it is no answer."""
    words = done.stderr.strip() or done.stdout.strip()[:2000]
    text = words.decode("utf-8", "replace")
    return SourceFailed(explain_failure(argv[0], done.rc, text, elapsed_s=done.took_s))


def check(argv: tuple[str, ...], done: Completed) -> bytes:
    """The output of a good answer. Raises :class:`SourceFailed` for all others.

    An answer with nothing in it but an error beside it is no empty answer, and one that was cut
    off is not whole.
    """
    runaway = done.truncated and done.rc is not None and done.rc < 0
    if not runaway and (
        done.rc != 0 or (not done.stdout.strip() and b"error" in done.stderr.lower())
    ):
        raise refusal(argv, done)
    if done.truncated:
        size = max(len(done.stdout), len(done.stderr)) // (1024 * 1024)
        raise SourceFailed(
            Failure(Trouble.OTHER, f"{argv[0]} printed more than {size} MiB: not all was read.")
        )
    return done.stdout


def unreadable(program: str, text: str) -> SourceFailed:
    """``program`` answered, but with nothing that could be a record: no empty answer."""
    words = visible(" ".join(text.split()))[:_WORDS_CHARS]
    sentence = f"{program} answered something slurmtop cannot read: '{words}'."
    return SourceFailed(Failure(Trouble.OTHER, sentence, raw=text[:_RAW_CHARS]))


def readable(program: str, parsed: ParsedT) -> ParsedT:
    """``parsed`` as it is. Raises :class:`SourceFailed` where not one record could be read."""
    if parsed.bad and not parsed.rows:
        raise unreadable(program, "" if parsed.first_bad is None else parsed.first_bad.excerpt)
    return parsed


def unknown_fields(done: Completed, names: Sequence[str]) -> tuple[str, ...]:
    """Those of ``names`` that this Slurm says it does not know; its exit status may still be 0."""
    said = {
        found.lower() for found in _UNKNOWN_FIELD.findall(done.stderr.decode("utf-8", "replace"))
    }
    return tuple(name for name in names if name.lower() in said)


def never_again(failure: Failure) -> bool:
    """True where asking again in this session is pointless."""
    return failure.retry_after_s is not None and math.isinf(failure.retry_after_s)
