"""Job ids as Slurm prints them: plain, array task, array rest, het part, step, cut."""

import re

from slurmtop.model.ids import JobId, JobKey, TaskSet

#: Special steps have words in most tools and numbers in the others. The last two are those
#: of Slurm 20.02 and older.
_STEP_WORDS = {
    "4294967290": "interactive",
    "4294967291": "batch",
    "4294967292": "extern",
    "4294967293": "TBD",
    "4294967294": "batch",
    "4294967295": "extern",
}
_FEDERATION_SHIFT = 26
_FEDERATION_CLUSTERS = 63
_MAX_DIGITS = 10
_TYPED_ID = re.compile(
    r"[0-9]{1,10}(?:_[0-9]{1,10}|_\*|_\[[0-9][0-9,:%-]{0,4095}\]|\+[0-9]{1,10})?", re.ASCII
)


def _number(text: str) -> int | None:
    """A short run of ASCII digits; anything else is None (int() takes far more)."""
    if len(text) <= _MAX_DIGITS and text.isascii() and text.isdigit():
        return int(text)
    return None


def _count_piece(piece: str) -> int | None:
    """Tasks in ``7``, ``3-5`` or ``0-998:2``; None when it is none of them."""
    span, colon, step_text = piece.partition(":")
    low_text, dash, high_text = span.partition("-")
    low = _number(low_text)
    if low is None:
        return None
    if not dash:
        return None if colon else 1
    high = _number(high_text)
    step = _number(step_text) if colon else 1
    if high is None or not step or high < low:
        return None
    return (high - low) // step + 1


def _count_pieces(pieces: list[str]) -> tuple[int, bool]:
    """Tasks in all pieces, and whether every piece could be read."""
    count, exact = 0, True
    for piece in pieces:
        size = _count_piece(piece)
        if size is None:
            exact = False
        else:
            count += size
    return count, exact


def parse_tasks(text: str) -> TaskSet:
    """The inside of the brackets of an array id, closed or cut.

    ``0-998:2%10]`` is 500 tasks, at most 10 at a time. Without the closing bracket the text
    was cut and so is the throttle. Before dots stands a piece that may be half a number.
    """
    inner, bracket, _ = text.partition("]")
    closed = bool(bracket)
    listed, percent, throttle_text = inner.partition("%")
    throttle = _number(throttle_text) if closed and percent else None
    throttle_known = closed and (throttle is not None or not percent)
    if listed == "*":
        return TaskSet(inner, 0, False, None, False)
    if "..." in listed:
        # Half a number before the dots still stands for one task at least.
        *pieces, fragment = listed.split("...", 1)[0].split(",")
        count, exact = _count_pieces(pieces)[0] + bool(fragment), False
    elif closed or percent:
        count, exact = _count_pieces(listed.split(","))
    else:
        count, exact = _count_pieces(listed.split(",")[:-1])[0], False
    return TaskSet(inner, max(count, 1), exact, throttle, throttle_known)


def parse_job_id(text: str) -> JobId:
    """Take an id apart; see :class:`~slurmtop.model.ids.JobId`. Never raises.

    Text that is no job id gives ``base`` "" with ``cut`` set. In padded output a ``+``
    without digits behind it, or an open bracket, means that Slurm cut the id.
    Sample (``squeue -o %i``): ``4711``, ``4711_3``, ``4711_[0-19%4]``, ``4711+1``.
    """
    if text.isdecimal() and text.isascii() and len(text) <= _MAX_DIGITS:
        return JobId(text, text)
    base_size = 0
    size = len(text)
    while base_size < size and "0" <= text[base_size] <= "9":
        base_size += 1
    if not base_size or base_size > _MAX_DIGITS:
        return JobId(text, "", cut=True)
    base, rest = text[:base_size], text[base_size:]
    mark = rest[0]
    if mark == ".":
        return _with_step(text, base, rest[1:], None, None)
    head, dot, step = rest[1:].partition(".")
    if mark == "+":
        offset = _number(head)
        if offset is not None:
            return _with_step(text, base, step if dot else None, None, offset)
        return JobId(text, base if not head else "", cut=True)
    if mark == "_":
        task = _number(head)
        if task is not None:
            return _with_step(text, base, step if dot else None, task, None)
        if rest.startswith("_["):
            inner = rest[2:].removesuffix("+")
            return JobId(text, base, tasks=parse_tasks(inner), cut="]" not in inner)
        if head == "*":
            return JobId(text, base, tasks=parse_tasks("*]"))
        digits = head.removesuffix("+")
        if not digits or _number(digits) is not None:
            return JobId(text, base, cut=True)
    return JobId(text, "", cut=True)


def _with_step(
    text: str, base: str, step: str | None, task: int | None, het_offset: int | None
) -> JobId:
    if step is None:
        return JobId(text, base, task=task, het_offset=het_offset)
    cut = not step or step.endswith("+")
    word = _STEP_WORDS.get(step, step.removesuffix("+"))
    return JobId(text, base, task=task, het_offset=het_offset, step=word, cut=cut)


def looks_like_job_id(text: str) -> bool:
    """Did a person mean a job and not a file? ``4711``, ``4711_3``, ``4711+1``, ``4711_[1-3]``."""
    return _TYPED_ID.fullmatch(text) is not None


def key_of(id: JobId, cluster: str) -> JobKey:
    """The identity of a job: cluster and stable spelling (the step is left out)."""
    return JobKey(cluster, id.stable)


def split_cluster(text: str) -> tuple[str, str]:
    """Id and cluster of ``sbatch --parsable``: ``4711;beta`` is ("4711", "beta")."""
    id_text, _, cluster = text.strip().partition(";")
    return id_text, cluster


def federation_parts(id: JobId) -> tuple[int, int] | None:
    """Origin cluster number and local id behind a federated id; None for a plain one.

    Only an explanation: commands always take the full id.
    """
    number = _number(id.base)
    if number is None:
        return None
    cluster = number >> _FEDERATION_SHIFT
    if not 1 <= cluster <= _FEDERATION_CLUSTERS:
        return None
    return cluster, number & ((1 << _FEDERATION_SHIFT) - 1)
