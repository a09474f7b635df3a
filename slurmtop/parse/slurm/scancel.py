"""What scancel said, job by job; it often says nothing, and that proves nothing.

Source: stderr and exit status of ``scancel``::

    scancel: error: Kill job error on job id 8601: Access/permission denied
    scancel: Terminating job 99999999

Plain ``scancel ID`` prints nothing and exits 0 for a job that is running, has ended, or never
was. The exit status is an errno modulo 256 and stands for one of several ids only.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from slurmtop.model.snapshot import Trouble
from slurmtop.parse.slurm.failures import explain_failure


class ScancelKind(StrEnum):
    SILENT = "silent"
    """Nothing was said: read the job again to know."""
    SENT = "sent"
    """``-v`` said that the request left; still no proof that the job ended."""
    UNKNOWN_JOB = "unknown-job"
    ALREADY_OVER = "already-over"
    DENIED = "denied"
    HET_COMPONENT = "het-component"
    BUSY = "busy"
    BAD_SIGNAL = "bad-signal"
    NEEDS_CRON = "needs-cron"
    NO_SCRIPT = "no-script"
    CONTROLLER_DOWN = "controller-down"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class ScancelSays:
    """One thing said about one ``job`` (as scancel printed its id), or about the whole call."""

    job: str | None
    kind: ScancelKind
    sentence: str


_ERROR = re.compile(r"Kill job error on job (?:step )?id (?P<job>\S+): (?P<why>.*)")
_SENT = re.compile(
    r"scancel: (?:Terminating|Signal \S+ to|Signalling|Sending \S+ to) "
    r"(?:batch )?(?:job|step|job step)s? (?P<job>[\w.+\[\]*,%:-]+)"
)
_NOISE = re.compile(r"transitional state, retrying|^scancel: auth|debug|^\s*$")
_INVALID = re.compile(r"Invalid job id (?P<job>\S+)")

_BY_WORDS: tuple[tuple[re.Pattern[str], ScancelKind, str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), kind, sentence)
    for pattern, kind, sentence in (
        (
            r"already completing or completed|already finished",
            ScancelKind.ALREADY_OVER,
            "It is over already; there is nothing left to cancel.",
        ),
        (
            r"access/permission denied|invalid user id",
            ScancelKind.DENIED,
            "It belongs to somebody else; its owner or an administrator can cancel it.",
        ),
        (
            r"individual component of heterogeneous job",
            ScancelKind.HET_COMPONENT,
            "It is one part of a heterogeneous job that has not started; cancel its leader.",
        ),
        (
            r"scrontab jobs without --cron",
            ScancelKind.NEEDS_CRON,
            "It is a scrontab job; cancel it with scancel --cron, or edit it with scrontab.",
        ),
        (
            r"can ?not be altered now, try again later|transitional state",
            ScancelKind.BUSY,
            "It cannot be changed now; a job that waits cannot get a signal at all.",
        ),
        (
            r"unknown job signal",
            ScancelKind.BAD_SIGNAL,
            "scancel does not know this signal.",
        ),
        (
            r"job script not specified",
            ScancelKind.NO_SCRIPT,
            "It is interactive and has no batch script that could get the signal.",
        ),
        (
            r"socket timed out|connection timed out",
            ScancelKind.CONTROLLER_DOWN,
            "The controller did not answer in time; the request may or may not have arrived. "
            "Look at the job again.",
        ),
        (
            r"unable to contact slurm controller|connection refused|unexpected message",
            ScancelKind.CONTROLLER_DOWN,
            "The controller cannot be reached; nothing was sent.",
        ),
        (
            r"invalid job id|no active jobs match",
            ScancelKind.UNKNOWN_JOB,
            "The controller does not know it: it ended a while ago or never was.",
        ),
    )
)

#: What a status means where no line says it: errno modulo 256.
_BY_STATUS: dict[int, str] = {
    8: "unable to contact slurm controller",
    60: "individual component of heterogeneous job",
    140: "socket timed out",
    210: "access/permission denied",
    217: "job script not specified",
    225: "invalid job id",
    228: "can not be altered now, try again later",
    229: "already completing or completed",
}

_SENT_SENTENCE = "The request was sent; whether it ended, only the queue can tell."
_SILENT_SENTENCE = "scancel said nothing, which proves nothing; the job is read again."


def _kind_of(words: str) -> tuple[ScancelKind, str]:
    for pattern, kind, sentence in _BY_WORDS:
        if pattern.search(words):
            return kind, sentence
    failure = explain_failure("scancel", 1, words)
    if failure.trouble in (Trouble.DOWN, Trouble.BUSY):
        return ScancelKind.CONTROLLER_DOWN, failure.sentence
    return ScancelKind.OTHER, failure.sentence


def _from_lines(text: str) -> dict[str | None, ScancelSays]:
    """By job, in the order in which they were named; an error replaces an earlier "sent"."""
    said: dict[str | None, ScancelSays] = {}
    rest: list[str] = []
    for line in text.splitlines():
        error = _ERROR.search(line)
        sent = _SENT.search(line) if error is None else None
        if error is not None:
            said[error["job"]] = ScancelSays(error["job"], *_kind_of(error["why"]))
        elif sent is not None:
            if sent["job"] not in said:
                said[sent["job"]] = ScancelSays(sent["job"], ScancelKind.SENT, _SENT_SENTENCE)
        elif not _NOISE.search(line):
            invalid = _INVALID.search(line)
            job = invalid["job"] if invalid is not None and invalid["job"] != "specified" else None
            if job is not None:
                said[job] = ScancelSays(job, *_kind_of("invalid job id"))
            else:
                rest.append(line)
    if rest and None not in said:
        kind, sentence = _kind_of("\n".join(rest))
        if not said or kind is not ScancelKind.OTHER:
            said[None] = ScancelSays(None, kind, sentence)
    return said


def parse_scancel(rc: int | None, stderr: bytes | str) -> tuple[ScancelSays, ...]:
    """What became of each job that scancel spoke of; at least one entry. Never raises.

    ``rc`` None means that scancel was stopped at our time limit (it may retry for 95 s).
    ``silent`` and ``sent`` are no success: only reading the job again tells.
    """
    text = stderr.decode("utf-8", "replace") if isinstance(stderr, bytes) else stderr
    said = _from_lines(text)
    if said:
        return tuple(said.values())
    if rc is None:
        return (
            ScancelSays(
                None,
                ScancelKind.OTHER,
                "scancel did not end in time and was stopped; look at the job again.",
            ),
        )
    if rc == 0:
        return (ScancelSays(None, ScancelKind.SILENT, _SILENT_SENTENCE),)
    if rc in _BY_STATUS:
        return (ScancelSays(None, *_kind_of(_BY_STATUS[rc])),)
    failure = explain_failure("scancel", rc, text)
    return (ScancelSays(None, ScancelKind.OTHER, failure.sentence),)
