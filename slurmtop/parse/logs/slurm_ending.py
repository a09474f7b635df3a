"""The form of the line by which Slurm tells that it ended a job or step, whole, cut or wrapped.

Source: SchedMD's slurm, ``src/slurmd/slurmstepd/req.c``, here as a terminal of 80 columns and a
mailer break it::

    slurmstepd: error: *** JOB 4711 ON gpu-node-0123 CANCELLED AT 2031-05-05T11:00:00 DUE TO T
    IME LIMIT ***
    slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2031-05-05T10:00:00
    DUE TO TIME LIMIT ***
"""

import re

ID = r"\d{1,12}(?:_\d{1,10}|\+\d{1,6})?(?:\.(?:\d{1,10}(?:\+\d{1,6})?|[a-z]{3,12}))?"
#: ``closed`` is None where the line was cut: then its reason is not all there, or not at all.
ENDED = re.compile(
    rf"\*\*\* (?:JOB|STEP|job|step|StepId=)\s?(?P<step>{ID})"
    r"(?: (?P<stepd>STEPD TERMINATED))?(?: ON (?P<host>[^*\n]{1,255}?))?"
    r"(?: CANCELLED AT| AT| (?P<failed>FAILED))"
    r"(?: (?P<at>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d))?"
    r"(?: \((?P<mode>[^)]{1,100})\))?"
    r"(?: (?:DUE|Due|due) (?:TO|To|to) (?P<why>[^*\n]{1,200}?))?\s*(?:(?P<closed>\*\*\*)|\*{0,2}$)"
)
#: Of a line that was cut before it told what became of the step: a daemon of Slurm writes no
#: other one with these stars.
CUT = re.compile(
    r"slurm(?:stepd|d)\S{0,255} (?:error: )?\*\*\* ?(?:JOB|STEP|job|step|StepId=)\s?"
    rf"(?P<step>{ID}) [^*\n]{{0,400}}\*{{0,2}}$"
)
_OPENED = re.compile(r"\*\*\* ?(?:JOB|STEP|job|step|StepId=)[^*\n]{0,400}\*{0,2}$")
_WHY = re.compile(r"[\w -]{1,60}")
_REST = re.compile(r"[^*\n]{0,200}\*{1,3}\s*$")


def is_open(text: str) -> bool:
    """Does such a line begin in ``text`` (one raw line), and not come to its end?"""
    return "*** " in text and _OPENED.search(text) is not None


def made_whole(text: str, part: str) -> str | None:
    """``text``, which :func:`is_open`, with the raw line behind it; None where that is no part
    of it. A terminal breaks inside words, a mailer at blanks, which neither of them keeps."""
    if _REST.match(part) is None:
        return None
    for whole in (text + part, f"{text.rstrip()} {part.lstrip()}"):
        found = ENDED.search(whole)
        if found is None or not found["closed"]:
            continue
        if found["why"] is None or _WHY.fullmatch(found["why"]):
            return whole
    return None
