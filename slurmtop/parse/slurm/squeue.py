"""The queue, from ``squeue``.

It is asked with ``-O Field:SEP,…,LastField:MARK``, where SEP is 0x1f and MARK is 0x1e plus a
few random letters. A job name may hold any character, but it cannot know the mark, so it
cannot forge a record; and text that people write stands last, so a separator inside it
cannot shift a plain value. Sample (``|`` for 0x1f, ``#`` for the mark)::

    3_[4-19%4]|3|PENDING|JobArrayTaskLimit|0|0|gpu|alice|…|sweep|(null)|/w|(null)|/w/o.out#
    3_0|16|FAILED|NonZeroExitCode|768|0|gpu|alice|…|sweep|(null)|/w|(null)|/w/o.out#
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from sys import intern

from slurmtop.model.ids import JobId, JobKey
from slurmtop.model.job import (
    NO_TRES,
    UNKNOWN_LIMIT,
    ExitCode,
    Job,
    LimitKind,
    TimeLimit,
    Tres,
)
from slurmtop.model.snapshot import BadRecord, Parsed
from slurmtop.parse.slurm.hostlist import count_hosts
from slurmtop.parse.slurm.ids import parse_job_id
from slurmtop.parse.slurm.states import parse_state
from slurmtop.parse.slurm.times import parse_limit, parse_seconds, parse_time
from slurmtop.parse.slurm.tres import parse_tres, times_nodes
from slurmtop.parse.slurm.words import user_text_or_none, value_or_none

#: What the queue is asked for: (name for ``squeue -O``, field). Nothing here ticks, so an
#: unchanged job gives an unchanged record. All names exist from 22.05 on.
QUEUE_FIELDS: tuple[tuple[str, str], ...] = (
    ("JobArrayID", "id"),
    ("JobID", "raw_id"),
    ("State", "state"),
    ("Reason", "reason"),
    ("exit_code", "exit_status"),
    ("DerivedEC", "derived_status"),
    ("Partition", "partition"),
    ("UserName", "user"),
    ("Account", "account"),
    ("QOS", "qos"),
    ("SubmitTime", "submit"),
    ("EligibleTime", "eligible"),
    ("StartTime", "start"),
    ("EndTime", "end"),
    ("TimeLimit", "limit"),
    ("NumNodes", "node_count"),
    ("NodeList", "nodes"),
    ("tres-alloc", "tres"),
    ("PriorityLong", "priority"),
    ("RestartCnt", "restarts"),
    ("HetJobID", "het_leader"),
    ("ArrayJobID", "array_id"),
    ("Dependency", "dependency"),
    ("Name", "name"),
    ("Comment", "comment"),
    ("WorkDir", "workdir"),
    ("Command", "command"),
    ("STDOUT", "stdout"),
    ("STDERR", "stderr"),
)
QUEUE_NAMES: tuple[str, ...] = tuple(name for _, name in QUEUE_FIELDS)
SEPARATOR = b"\x1f"
RECORD_MARK = b"\x1e"

#: Letters of ``squeue -o`` and the field each one prints.
LETTERS: dict[str, str] = {
    "i": "id",
    "A": "raw_id",
    "F": "array_id",
    "K": "array_task",
    "j": "name",
    "u": "user",
    "a": "account",
    "P": "partition",
    "q": "qos",
    "T": "state",
    "t": "state_compact",
    "r": "reason",
    "R": "reason_or_nodes",
    "M": "used",
    "l": "limit",
    "L": "left",
    "S": "start",
    "e": "end",
    "V": "submit",
    "D": "node_count",
    "C": "cpus",
    "m": "mem",
    "b": "tres_per_node",
    "N": "nodes",
    "B": "batch_host",
    "Q": "priority",
    "Z": "workdir",
    "o": "command",
    "E": "dependency",
    "k": "comment",
    "x": "excluded_nodes",
}
#: Fields that people write and that may hold any character.
TEXT_FIELDS = frozenset({"name", "comment", "workdir", "command", "stdout", "stderr"})
_FLAGS = {"0": False, "1": True}
_EXCERPT = 200


def queue_format(record_mark: bytes = RECORD_MARK, separator: bytes = SEPARATOR) -> str:
    """The argument of ``squeue -O`` for :data:`QUEUE_FIELDS`.

    Neither mark nor separator may hold a comma or start with a digit or a dot: squeue would
    read those as the next field or as a width.
    """
    between, end = separator.decode("ascii"), record_mark.decode("ascii")
    names = [name for name, _ in QUEUE_FIELDS]
    return "".join(f"{name}:{between}," for name in names[:-1]) + f"{names[-1]}:{end}"


def split_records(data: bytes, record_mark: bytes = RECORD_MARK) -> list[bytes]:
    """Cut an answer into records; the newline that squeue adds to each is taken off.

    The mark may stand behind every record (``-O … Last:MARK``) or in front (``-o MARK%i…``).
    Equal bytes mean an unchanged job, so callers compare these before they parse.
    """
    parts = data.split(record_mark)
    if record_mark == b"\n":
        return [part for part in parts if part]
    if data.startswith(record_mark):
        parts = [part.removesuffix(b"\n") for part in parts]
    elif data.removesuffix(b"\n").endswith(record_mark):
        parts = [part.removeprefix(b"\n") for part in parts]
    else:
        parts = [part.removeprefix(b"\n").removesuffix(b"\n") for part in parts]
    return [part for part in parts if part]


class _Plan:
    """Where the fields of one format stand."""

    __slots__ = ("fields", "first_text", "size", "tail", "texts")

    def __init__(self, fields: tuple[str, ...]) -> None:
        self.fields = fields
        self.size = len(fields)
        places = [place for place, name in enumerate(fields) if name in TEXT_FIELDS]
        self.first_text = places[0] if places else self.size
        self.tail = self.size - 1 - places[-1] if places else 0
        self.texts = len(places)

    def values(self, parts: list[str], separator: str) -> dict[str, str] | None:
        """Field by field; None when there are too few, or too many and no text among them.

        Surplus separators can only come from text. What stands before the first text field
        and behind the last is certain all the same; between them only one text field alone is.
        """
        if len(parts) == self.size:
            return dict(zip(self.fields, parts, strict=True))
        if len(parts) < self.size or not self.texts:
            return None
        end = len(parts) - self.tail
        found = dict(zip(self.fields[: self.first_text], parts[: self.first_text], strict=True))
        last = self.size - self.tail
        found.update(zip(self.fields[last:], parts[end:], strict=True))
        middle = separator.join(parts[self.first_text : end])
        if self.first_text + 1 == last:
            found[self.fields[self.first_text]] = middle
        else:
            found["name"] = middle
            found["?"] = ""
        return found


@lru_cache(maxsize=64)
def _plan(fields: tuple[str, ...]) -> _Plan:
    return _Plan(fields)


def parse_record(
    raw: bytes,
    *,
    fields: Sequence[str] = QUEUE_NAMES,
    separator: bytes = SEPARATOR,
    cluster: str = "",
    index: int = 0,
) -> Job | BadRecord:
    """One record as :func:`split_records` gives it. Never raises.

    ``fields`` names what was asked for, in order: model fields and those of
    :data:`LETTERS`; names that are not known are skipped. ``index`` is only for the
    :class:`BadRecord`.
    """
    text = raw.decode("utf-8", "replace")
    between = separator.decode("utf-8", "replace")
    plan = _plan(fields if isinstance(fields, tuple) else tuple(fields))
    parts = text.split(between)
    found = plan.values(parts, between)
    if found is None:
        why = f"{len(parts)} fields where {plan.size} were asked for"
        return BadRecord(index, why, text[:_EXCERPT])
    id = parse_job_id(found.get("id") or found.get("raw_id") or "")
    if not id.base or (id.cut and id.tasks is None):
        return BadRecord(index, f"no job id: {id.text[:40]!r}", text[:_EXCERPT])
    return _job(found, id, cluster)


def _job(found: dict[str, str], id: JobId, cluster: str) -> Job:
    get = found.get
    state = parse_state(get("state") or get("state_compact") or "?")
    reason = get("reason")
    nodes = get("nodes")
    either = get("reason_or_nodes")
    if either is not None:
        if either.startswith("("):
            reason = either[1:].removesuffix(")") if reason is None else reason
        elif nodes is None:
            nodes = either
    node_count = _whole(get("node_count", ""))
    limit = parse_limit(found["limit"]) if "limit" in found else UNKNOWN_LIMIT
    return Job(
        key=JobKey(cluster, id.stable),
        id=id,
        raw_id=value_or_none(get("raw_id", "")),
        name=intern(get("name", "")),
        user=intern(get("user", "")),
        account=_plain(get("account", "")),
        partitions=_partitions(get("partition", "")),
        qos=_plain(get("qos", "")),
        state=state,
        reason=_plain(reason or ""),
        # Before the end, 0 is printed: no success, and nothing else either.
        exit_code=wait_status(get("exit_status", "")) if state.ended else None,
        derived_exit_code=wait_status(get("derived_status", "")) if state.ended else None,
        submit=parse_time(get("submit", "")),
        eligible=parse_time(get("eligible", "")),
        start=parse_time(get("start", "")),
        end=parse_time(get("end", "")),
        limit=limit,
        left=_left(get("left"), limit),
        used_s=parse_seconds(get("used", "")),
        node_count=node_count,
        nodes=value_or_none(nodes or ""),
        tres=_tres(found, node_count, nodes),
        priority=_whole(get("priority", "")),
        restarts=_whole(get("restarts", "")),
        dependency=value_or_none(get("dependency", "")),
        workdir=_text(get("workdir", "")),
        command=_text(get("command", "")),
        stdout=user_text_or_none(get("stdout", "")),
        stderr=user_text_or_none(get("stderr", "")),
        comment=user_text_or_none(get("comment", "")),
        het_leader=value_or_none(get("het_leader", "")),
        array_id=id.base if id.task is not None or id.tasks is not None else None,
        requeueable=_FLAGS.get(get("requeueable", "")),
        batch=_FLAGS.get(get("batch", "")),
        # Asked for and empty is none; None is not asked for.
        excluded_nodes=(
            value_or_none(found["excluded_nodes"]) or "" if "excluded_nodes" in found else None
        ),
        name_unsure="?" in found,
    )


@lru_cache(maxsize=8_192)
def _whole(text: str) -> int | None:
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 20 else None


@lru_cache(maxsize=1_024)
def wait_status(text: str) -> ExitCode | None:
    """What squeue prints raw: ``768`` is exit 3, ``11`` SIGSEGV; None for what is none.

    ``4021``, an error of Slurm's own, is 0:53: where there is a signal, Slurm shows no code.
    """
    status = _whole(text)
    if status is None or status > 0xFFFF:
        return None
    signal = status & 127
    return ExitCode(0 if signal else status >> 8, signal)


# Few different values stand in very many jobs: the caches keep each of them once.
_plain = lru_cache(maxsize=8_192)(value_or_none)
_text = lru_cache(maxsize=8_192)(user_text_or_none)


@lru_cache(maxsize=1_024)
def _partitions(text: str) -> tuple[str, ...]:
    value = value_or_none(text)
    return () if value is None else tuple(name for name in value.split(",") if name)


def _left(text: str | None, limit: TimeLimit) -> TimeLimit:
    if text is None:
        return UNKNOWN_LIMIT
    left = parse_limit(text)
    # With a limit of less than a year, INVALID means that the job is past it.
    if left.kind is LimitKind.OVER_A_YEAR and limit.kind is LimitKind.SECONDS:
        return UNKNOWN_LIMIT
    return left


def _tres(found: dict[str, str], node_count: int | None, nodes: str | None) -> Tres:
    tres = parse_tres(found.get("tres", ""))
    if tres is not NO_TRES:
        return tres
    per_node = parse_tres(found.get("tres_per_node", ""))
    if per_node is not NO_TRES:
        count = node_count if node_count is not None else count_hosts(nodes or "") or None
        tres = times_nodes(per_node, count)
    cpus = _whole(found.get("cpus", ""))
    return tres if cpus is None else replace(tres, cpus=cpus)


def merge_partitions(jobs: Iterable[Job]) -> tuple[Job, ...]:
    """One job, one row, one key.

    ``squeue -P`` prints a pending job once for each partition: those rows become one, with
    all partitions in order. Where tasks of an array became a record of their own (after a
    requeue), the array has two pending rests; the one that carries the array's own number
    keeps the key ``4711_[*]`` and each other one gets its raw id in: ``4711_[*4720]``.
    """
    rows = tuple(jobs)
    if len({job.key for job in rows}) == len(rows):
        return rows
    merged: dict[tuple[JobKey, str], Job] = {}
    for job in rows:
        place = (job.key, _rest_mark(job) if job.id.tasks is not None else "")
        old = merged.get(place)
        if old is None:
            merged[place] = job
        else:
            more = tuple(name for name in job.partitions if name not in old.partitions)
            merged[place] = replace(old, partitions=old.partitions + more) if more else old
    rests: dict[JobKey, list[str]] = {}
    for key, mark in merged:
        rests.setdefault(key, []).append(mark)
    return tuple(
        job if mark == min(rests[key], key=lambda one: _rest_order(one, key)) else _renamed(job)
        for (key, mark), job in merged.items()
    )


def _rest_mark(job: Job) -> str:
    return job.raw_id or (job.id.tasks.text if job.id.tasks is not None else "")


def _rest_order(mark: str, key: JobKey) -> tuple[bool, int, str]:
    """The array's own number first, then by number: the same whatever order squeue chose."""
    return mark != key.id.partition("_")[0], len(mark), mark


def _renamed(job: Job) -> Job:
    return replace(job, key=JobKey(job.key.cluster, f"{job.id.base}_[*{_rest_mark(job)}]"))


def collect_rows(found: Iterable[Job | BadRecord]) -> Parsed[Job]:
    """Good rows, merged; bad ones counted, the first kept."""
    parsed = Parsed.of(found)
    return replace(parsed, rows=merge_partitions(parsed.rows))


def parse_squeue(
    data: bytes,
    *,
    fields: Sequence[str] = QUEUE_NAMES,
    separator: bytes = SEPARATOR,
    record_mark: bytes = RECORD_MARK,
    cluster: str = "",
) -> Parsed[Job]:
    """A whole answer of ``squeue -h -O`` (or ``-o``); ``cluster`` is the one asked for by name.

    Never raises; a record that cannot be read is counted and costs no other one. A record
    mark of one newline is for formats without user text only.
    """
    names = tuple(fields)
    return collect_rows(
        parse_record(raw, fields=names, separator=separator, cluster=cluster, index=index)
        for index, raw in enumerate(split_records(data, record_mark))
    )
