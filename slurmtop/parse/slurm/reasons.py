"""Why a job waits or ended: Slurm's reason in plain words.

Source: ``squeue -o %r`` or ``%R``, ``scontrol show job``; one word, or free text instead::

    JobHeldUser
    ReqNodeNotAvail, UnavailableNodes:gpu[03-05]
    (Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions)
    Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions

scontrol prints every blank as ``_`` and ``%R`` wraps the text in parentheses; both mean the
same. Where squeue joins records of an array, their reasons stand in one list.
"""

import re

from slurmtop.model.job import ReasonInfo
from slurmtop.parse.slurm.exit_codes import died_of, launch_trouble, raised_signal
from slurmtop.parse.slurm.reason_table import FREE_TEXTS, ReasonRow, find_reason
from slurmtop.parse.slurm.words import NONE_WORDS

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_NODE_LIST = re.compile(r"(UnavailableNodes:_?)(.*)", re.DOTALL)
_SIGNAL_LIMIT = 32
_DETAIL_CHARS = 1_000

#: Of several reasons in one list, the one that hinders most is told first.
_WORST_FIRST = (
    *("never", "held", "failure", "limit", "user", "site", "transient", "queue", "unknown", "ok"),
)


def _unwrapped(text: str) -> str:
    """Without the parentheses that ``%R`` puts around it."""
    text = text.strip()
    if not (text.startswith("(") and text.endswith(")")) or text in NONE_WORDS:
        return text
    depth = 0
    for place, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0 and place < len(text) - 1:
            return text
    return text[1:-1].strip()


def spelled_out(text: str) -> str:
    """A reason with the blanks that scontrol printed as ``_``.

    Text that has blanks is left alone. Names of nodes and of a QOS may hold a real ``_``:
    node lists are kept as they are; a name inside a sentence cannot be told apart.
    """
    text = _unwrapped(text)
    if "_" not in text or any(char.isspace() for char in text):
        return text
    nodes = _NODE_LIST.search(text)
    if nodes is None:
        return text.replace("_", " ")
    return text[: nodes.start()].replace("_", " ") + nodes[1].replace("_", " ") + nodes[2]


def _raised(text: str) -> ReasonInfo:
    number = raised_signal(text)
    if number is None:
        row = find_reason("RaisedSignal")
        assert row is not None
        return ReasonInfo("RaisedSignal", row.kind, row.meaning, row.advice)
    if number >= _SIGNAL_LIMIT:
        # Slurm's own text calls this a real-time signal, which it never was.
        meaning = f"{launch_trouble(number)}."
        advice = "see what its exit code says; look at the paths of its output files"
    else:
        meaning = f"It died of {died_of(number)}."
        advice = "read the log; see what its exit code says"
    return ReasonInfo("RaisedSignal", "failure", meaning, advice)


def _info(word: str, row: ReasonRow, detail: str | None = None) -> ReasonInfo:
    return ReasonInfo(word, row.kind, row.meaning, row.advice, detail or None)


def _list_of_words(text: str) -> ReasonInfo | None:
    """``Priority,BeginTime``: several records of one array in one line."""
    words = [piece.strip() for piece in text.split(",")]
    rows = [find_reason(word) for word in words]
    known = [(word, row) for word, row in zip(words, rows, strict=True) if row is not None]
    if len(words) < 2 or len(known) != len(words):
        return None
    known = sorted(dict(known).items(), key=lambda item: _WORST_FIRST.index(item[1].kind))
    kind, advice = known[0][1].kind, known[0][1].advice
    meaning = " ".join(f"{word}: {row.meaning}" for word, row in known)
    return ReasonInfo(",".join(words), kind, meaning, advice)


def explain_reason(text: str) -> ReasonInfo:
    """A reason word or text, in plain words. Never raises.

    ``detail`` keeps what followed the word. Words that are not known come back as they are,
    with kind ``unknown``.
    """
    text = spelled_out(text)
    if text in NONE_WORDS:
        text = "None"
    if text.startswith("RaisedSignal"):
        return _raised(text)
    row = find_reason(text)
    if row is not None:
        return _info(text, row)
    lowered = text.lower()
    for start, word, row in FREE_TEXTS:
        if lowered.startswith(start):
            return _info(word, row, text[:_DETAIL_CHARS])
    if lowered.endswith(("requeued held", "requeued in held state")):
        return ReasonInfo(
            "JobHoldMaxRequeue",
            "held",
            "It was put back in the queue and held after a failure.",
            "find the failure, then scontrol release JOB",
            text[:_DETAIL_CHARS],
        )
    joined = _list_of_words(text)
    if joined is not None:
        return joined
    first = _WORD.match(text)
    row = find_reason(first[0]) if first is not None else None
    if first is not None and row is not None and text[first.end() :][:1] in (",", ":", " ", "("):
        return _info(first[0], row, text[first.end() :].lstrip(",: ")[:_DETAIL_CHARS])
    return ReasonInfo(
        text[:_DETAIL_CHARS],
        "unknown",
        "slurmtop does not know this reason; it may be of a newer Slurm or of this site.",
        "see scontrol show job, or ask the admins",
    )
