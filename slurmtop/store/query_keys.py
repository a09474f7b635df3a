"""The keys of a filter, ``user:`` ``state:`` ``gpu:`` …, and how each looks at a job."""

import difflib
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from slurmtop.model.job import Job, LimitKind, Phase

Expand = Callable[[str], tuple[str, ...]]


def no_expand(text: str) -> tuple[str, ...]:
    """Stands in where nobody handed in a host list reader."""
    return (text,)


@dataclass(slots=True)
class Seen:
    """A job as a query looks at it. ``text`` is lower case; ``gone`` left the queue.

    Not frozen, because one is made for each of 20,000 jobs while a person types.
    """

    job: Job
    text: str
    now: datetime
    gone: bool = False
    expand: Expand = no_expand


Test = Callable[[Seen], bool]


_ACTIVE = frozenset({Phase.PENDING, Phase.RUNNING, Phase.SUSPENDED, Phase.ENDING})
_ENDED = frozenset({Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED})
_PHASES: dict[str, frozenset[Phase]] = {
    **{phase.value: frozenset({phase}) for phase in Phase},
    "active": _ACTIVE,
    "ended": _ENDED,
    "done": _ENDED,
}
_SHORT = {
    "pd": "pending",
    "r": "running",
    "s": "suspended",
    "cg": "completing",
    "cd": "completed",
    "ca": "cancelled",
    "f": "failed",
    "to": "timeout",
    "nf": "node_fail",
    "pr": "preempted",
    "bf": "boot_fail",
    "dl": "deadline",
    "oom": "out_of_memory",
    "cf": "configuring",
    "rv": "revoked",
}


def search_text(job: Job) -> str:
    """Everything a word is looked for in, lower case."""
    parts = (
        job.id.text,
        job.key.id,
        job.raw_id,
        job.name,
        job.user,
        job.account,
        job.qos,
        job.state.word,
        job.reason,
        job.nodes,
        *job.partitions,
    )
    return "\n".join(part for part in parts if part).lower()


def choices_of(value: str) -> tuple[str, ...]:
    """The values between commas, lower case."""
    return tuple(part for part in value.lower().split(",") if part)


def _part_of(get: Callable[[Job], str | None]) -> Callable[[str, str], Test]:
    def make(_compare: str, value: str) -> Test:
        wanted = choices_of(value)

        def test(seen: Seen) -> bool:
            have = (get(seen.job) or "").lower()
            return any(one in have for one in wanted)

        return test

    return make


def _same_as(get: Callable[[Job], str | None]) -> Callable[[str, str], Test]:
    """Names of people and accounts: the whole name, or its start before a ``*``."""

    def make(_compare: str, value: str) -> Test:
        wanted = choices_of(value)

        def test(seen: Seen) -> bool:
            return is_named(get(seen.job), wanted)

        return test

    return make


def is_named(have: str | None, wanted: tuple[str, ...]) -> bool:
    """Is ``have`` one of the names, or begins it as one that ends in ``*``?"""
    text = (have or "").lower()
    return any(text.startswith(one[:-1]) if one.endswith("*") else text == one for one in wanted)


def _partition(_compare: str, value: str) -> Test:
    wanted = choices_of(value)
    return lambda seen: any(is_named(name, wanted) for name in seen.job.partitions)


def _job_id(_compare: str, value: str) -> Test:
    wanted = choices_of(value)

    def test(seen: Seen) -> bool:
        job = seen.job
        ids = (job.id.text, job.key.id, job.id.base, job.raw_id, job.array_id)
        return any(one in ids for one in wanted)

    return test


def _node(_compare: str, value: str) -> Test:
    wanted = choices_of(value)

    def test(seen: Seen) -> bool:
        nodes = seen.job.nodes
        if not nodes:
            return False
        if any(one in nodes.lower() for one in wanted):
            return True
        return any(is_named(host, wanted) for host in seen.expand(nodes))

    return test


def _state(_compare: str, value: str) -> Test | str:
    phases: set[Phase] = set()
    words: set[str] = set()
    for one in choices_of(value):
        word = _SHORT.get(one, one).replace("-", "_")
        if word in _PHASES:
            phases |= _PHASES[word]
        elif word in _STATE_WORDS:
            words.add(word)
        elif found := [known for known in (*_PHASES, *_STATE_WORDS) if known.startswith(word)]:
            for known in found:
                phases |= _PHASES.get(known, frozenset())
                words |= {known} & _STATE_WORDS
        else:
            near = difflib.get_close_matches(word, [*_PHASES, *_STATE_WORDS], n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            return f"no state {one!r}{hint}"

    answers: dict[tuple[str, str | None, tuple[str, ...]], bool] = {}

    def test(seen: Seen) -> bool:
        if seen.gone:
            return "gone" in words
        state = seen.job.state
        key = (state.word, state.base, state.flags)
        answer = answers.get(key)
        if answer is None:
            have = {state.word.lower(), *(flag.lower() for flag in state.flags)}
            answer = answers[key] = state.phase in phases or bool(words & have)
        return answer

    return test


_STATE_WORDS = frozenset(
    {
        "timeout",
        "node_fail",
        "preempted",
        "boot_fail",
        "deadline",
        "out_of_memory",
        "completing",
        "stage_out",
        "configuring",
        "expediting",
        "resizing",
        "requeued",
        "requeue_fed",
        "requeue_hold",
        "special_exit",
        "stopped",
        "revoked",
        "resv_del_hold",
        "signaling",
        "gone",
    }
)

#: How a number is compared, by the sign in front of it.
COMPARE: dict[str, Callable[[float, float], bool]] = {
    "": operator.eq,
    "=": operator.eq,
    "==": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


_NUMBER = re.compile(r"(\d+(?:\.\d+)?)([kmg]?)", re.IGNORECASE)
_SPAN = re.compile(r"(\d+(?:\.\d+)?)([smhdw])", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_TIMES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}


def read_count(text: str) -> float | None:
    """``8``, ``1.5k``; None for anything else."""
    match = _NUMBER.fullmatch(text)
    return float(match[1]) * _TIMES[match[2].lower()] if match else None


def _read_span(text: str) -> float | None:
    """``2h``, ``1d12h``, ``90`` minutes as in ``sbatch --time``, ``1:30:00``, ``2-12:00:00``."""
    if _NUMBER.fullmatch(text) and text[-1].isdigit():
        return float(text) * 60
    spans = list(_SPAN.finditer(text))
    if spans and "".join(match[0] for match in spans) == text:
        return sum(float(match[1]) * _SECONDS[match[2].lower()] for match in spans)
    match = re.fullmatch(r"(?:(\d+)-)?(\d+):(\d\d)(?::(\d\d))?", text)
    if match is None:
        return None
    days, first, second, third = (int(part or 0) for part in match.groups())
    if match[4] is None and match[1] is None:
        return first * 60.0 + second
    return days * 86_400.0 + first * 3_600.0 + second * 60.0 + third


def _compared(
    get: Callable[[Seen], float | None], read: Callable[[str], float | None], shape: str
) -> Callable[[str, str], Test | str]:
    """A number that is not known is neither above nor below anything."""

    def make(compare: str, value: str) -> Test | str:
        limit = read(value)
        if limit is None:
            return f"{value!r} is no {shape}"
        holds = COMPARE[compare]

        def test(seen: Seen) -> bool:
            have = get(seen)
            return have is not None and holds(have, limit)

        return test

    return make


def _elapsed(seen: Seen) -> float | None:
    job = seen.job
    if job.start is None or job.state.phase is Phase.PENDING:
        return None
    until = job.end if job.state.ended else seen.now
    return max(0.0, (until - job.start).total_seconds()) if until is not None else None


def _limit(seen: Seen) -> float | None:
    limit = seen.job.limit
    if limit.kind in (LimitKind.UNLIMITED, LimitKind.OVER_A_YEAR):
        return float("inf")
    return limit.seconds


def _gpus(seen: Seen) -> float | None:
    return seen.job.tres.gpus


def _gpu(compare: str, value: str) -> Test | str:
    """A count, or the name of a type: ``gpu:>=8``, ``gpu:h100``."""
    if compare or read_count(value) is not None:
        return _compared(_gpus, read_count, "number")(compare, value)
    wanted = choices_of(value)

    def test(seen: Seen) -> bool:
        tres = seen.job.tres
        kinds = [kind.lower() for kind, _ in (*tres.gpus_by_type, *tres.slices_by_type)]
        return any(one in kind for one in wanted for kind in kinds)

    return test


_Make = Callable[[str, str], Test | str]
QUERY_KEYS: dict[str, _Make] = {
    "user": _same_as(lambda job: job.user),
    "state": _state,
    "part": _partition,
    "acct": _same_as(lambda job: job.account),
    "qos": _same_as(lambda job: job.qos),
    "node": _node,
    "name": _part_of(lambda job: job.name),
    "reason": _part_of(lambda job: job.reason),
    "id": _job_id,
    "gpu": _gpu,
    "nodes": _compared(lambda seen: seen.job.node_count, read_count, "number"),
    "time": _compared(_elapsed, _read_span, "time such as 2h, 1d12h or 90 (minutes)"),
    "limit": _compared(_limit, _read_span, "time such as 2h, 1d12h or 90 (minutes)"),
    "prio": _compared(lambda seen: seen.job.priority, read_count, "number"),
}
#: What stands before the colon, in all its spellings.
ALIASES: dict[str, str] = {
    **{name: name for name in QUERY_KEYS},
    "u": "user",
    "owner": "user",
    "st": "state",
    "partition": "part",
    "p": "part",
    "account": "acct",
    "a": "acct",
    "host": "node",
    "nodelist": "node",
    "jobname": "name",
    "why": "reason",
    "job": "id",
    "jobid": "id",
    "gpus": "gpu",
    "nnodes": "nodes",
    "elapsed": "time",
    "timelimit": "limit",
    "priority": "prio",
}
