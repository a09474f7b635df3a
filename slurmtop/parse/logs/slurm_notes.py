"""Lines around the end of a step that name nobody, of Slurm and of those who listen to it.

Sources: srun and salloc of Slurm 17.02 to 26.05, submitit, Lightning, for example::

    srun: Job step aborted: Waiting up to 32 seconds for job step to finish.
    submitit WARNING (2031-05-05 10:00:00,1) - Caught signal SIGUSR2 on n1: this job is preempted.
"""

import re
from collections.abc import Iterable

from slurmtop.model.events.launch import Interrupted
from slurmtop.model.events.slurm import SlurmNote, StepNote
from slurmtop.model.trace import Event
from slurmtop.parse.logs.line import Message
from slurmtop.parse.logs.plain import MOST_REPEATS, PlainReader

#: Signals that somebody sends as a warning or a wish; a crash has others.
_WARNING_SIGNAL = (
    r"(?:auto-requeue signal:? |signal )?SIG(?:USR1|USR2|TERM|CONT|XCPU|ALRM)"
    r"|signal (?:10|12|15|18|24)"
)
_NOTES = (
    (re.compile(r"this job is preempted"), StepNote.PREEMPTED),
    (re.compile(r"this job is timed[- ]?out"), StepNote.TIMED_OUT),
    (re.compile(r"not requeued because it timed[- ]?out"), StepNote.TIMED_OUT),
    (re.compile(r"(?i)\bjob step aborted\b"), StepNote.ABORTED),
    (re.compile(r"srun: (?:error: )?First task exited"), StepNote.FIRST_EXITED),
    (
        re.compile(
            r"srun: (?:[\w/]{1,30}: [\w]{1,30}: )?(?:Force[d]? )?Terminat(?:ed|ing) "
            r"(?:StepId=|job step )"
        ),
        StepNote.TERMINATING,
    ),
    (
        re.compile(r"srun: (?:error: )?Timed out waiting for job step to complete"),
        StepNote.TERMINATING,
    ),
    (
        re.compile(r"(?:srun|salloc): (?:error: )?Job (?:allocation )?\S{1,40} has been revoked"),
        StepNote.REVOKED,
    ),
    (
        re.compile(
            r"^(?:\++ )?scontrol requeue(?:hold)? \d|\b[Rr]equeue?(?:ing|d)\b.{0,20}"
            r"\b(?:job|JobId|exp)\b(?!.{0,40}\b(?:if|when|on)\b)"
        ),
        StepNote.REQUEUED,
    ),
    (
        re.compile(
            r"\b(?:Bypassing|[Cc]aught|[Rr]eceived|[Gg]ot|[Hh]andling|[Tt]rapped) "
            rf"(?:{_WARNING_SIGNAL})\b"
        ),
        StepNote.WARNED,
    ),
)
#: srun and salloc tell that somebody pressed ctrl-C.
_CTRL_C = re.compile(
    r"srun: (?:interrupt \(one more|sending Ctrl-C to|forcing job termination)"
    r"|srun: \(one more within \d{1,3} sec(?:ond)?s? to abort\)"
)


class SlurmNoteReader(PlainReader):
    """:class:`SlurmNote`, and :class:`Interrupted` where srun tells of a ctrl-C."""

    words: tuple[bytes, ...] = (
        b"this job is ",
        b"not requeued",
        b"step aborted",
        b"First task exited",
        b"erminat",
        b"imed out waiting",
        b"revoked",
        b"equeu",
        b"SIG",
        b"ignal ",
        b"srun: ",
    )

    def __init__(self) -> None:
        self._told: dict[object, int] = {}

    def read(self, message: Message) -> Iterable[Event]:
        if _CTRL_C.search(message.text):
            yield Interrupted(at=message.at)
            return
        for pattern, note in _NOTES:
            if pattern.search(message.text):
                key = (note, message.at.attempt)
                self._told[key] = self._told.get(key, 0) + 1
                if self._told[key] <= MOST_REPEATS:
                    yield SlurmNote(at=message.at, note=note)
                return
