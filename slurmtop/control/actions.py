"""A job action as data: what it runs, whom it reaches, how it is confirmed.

An :class:`Action` is planned by a pure function, shown whole in a dialog, and only then
handed to :class:`slurmtop.control.execute.Executor`. Nothing here runs anything.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from slurmtop.model.ids import JobKey

#: Ids in one call of scancel. More go into further calls with a pause between them.
IDS_PER_CALL = 50
#: Longest bracket that is put on a command line as one argument.
ID_CHARS = 2_000

_ID = re.compile(
    r"[1-9][0-9]{0,9}"
    r"(?:_(?:[0-9]{1,9}|\[[0-9]{1,9}(?:-[0-9]{1,9})?(?:,[0-9]{1,9}(?:-[0-9]{1,9})?)*\]))?"
)
_CLUSTER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class Kind(StrEnum):
    CANCEL = "cancel"


class ConfirmLevel(StrEnum):
    """How hard it is made to say yes."""

    YES = "yes"
    """One key."""
    TYPE_COUNT = "type the count"
    """Several jobs: the person types how many."""
    TYPE_ID = "type the id"
    """Another person's job, a het job, or a running job on several nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One job that the action reaches.

    ``ids`` are the arguments that name it; ``tasks`` the inclusive task ranges behind an
    array id (empty for a job without tasks). ``covers`` counts the jobs it stands for: the
    tasks of an array's waiting rest. ``parts`` are the rows that it takes with it (het job).
    """

    key: JobKey
    ids: tuple[str, ...]
    name: str
    user: str
    state_word: str
    submit: datetime | None = None
    tasks: tuple[tuple[int, int], ...] = ()
    covers: int = 1
    parts: tuple[JobKey, ...] = ()
    nodes: str | None = None
    node_count: int | None = None
    gpus: int | None = None
    started_at: datetime | None = None
    gpu_hours_spent: float | None = None

    @property
    def base(self) -> str:
        """The plain number that a query can name."""
        return self.key.id.split("_", 1)[0].split("+", 1)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What will be done once the person has confirmed it.

    ``argvs`` are the exact commands, in order. ``expected_text`` is what has to be typed for
    ``confirm`` other than YES, else empty. ``warnings`` are sentences. ``verdict`` is the
    one-line judgement that the person acted on, for the log.
    """

    kind: Kind
    cluster: str
    targets: tuple[Target, ...]
    argvs: tuple[tuple[str, ...], ...]
    confirm: ConfirmLevel
    expected_text: str = ""
    warnings: tuple[str, ...] = ()
    planned_at: datetime | None = None
    verdict: str | None = None

    @property
    def job_count(self) -> int:
        """How many jobs it reaches, each array task counted."""
        return sum(target.covers for target in self.targets)

    @property
    def command_lines(self) -> tuple[str, ...]:
        """The commands as a person would type them."""
        return tuple(" ".join(_shown(word) for word in argv) for argv in self.argvs)

    def confirmed_by(self, typed: str) -> bool:
        """Does ``typed`` confirm it? Any answer does where one key is enough."""
        return self.confirm is ConfirmLevel.YES or typed.strip() == self.expected_text


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is nothing to confirm, as one sentence for a person."""

    sentence: str


def _shown(word: str) -> str:
    return f"'{word}'" if "[" in word else word


def id_allowed(text: str) -> bool:
    """True for the forms of a job id that go on a command line: 4711, 4711_3, 4711_[1-5,7]."""
    return _ID.fullmatch(text) is not None


def cluster_allowed(text: str) -> bool:
    """True for a plain cluster name; several names in one are never one."""
    return _CLUSTER.fullmatch(text) is not None


def argvs_for(kind: Kind, targets: Sequence[Target], cluster: str) -> tuple[tuple[str, ...], ...]:
    """The commands that do ``kind`` to ``targets``. ``ValueError`` for an id that is not one.

    Only ids, never a filter, a signal or ``-v``: any of those makes scancel load the job
    table of the whole cluster first.
    """
    head = (*_COMMANDS[kind], *(("-M", cluster) if cluster else ()))
    ids = _joined(targets)
    argvs = tuple(
        (*head, *ids[start : start + IDS_PER_CALL]) for start in range(0, len(ids), IDS_PER_CALL)
    )
    for argv in argvs:
        check_argv(argv)
    return argvs


_COMMANDS: dict[Kind, tuple[str, ...]] = {Kind.CANCEL: ("scancel",)}


def check_argv(argv: Sequence[str]) -> None:
    """Refuse (``ValueError``) anything but: program, ``-M cluster`` perhaps, and ids."""
    words = list(argv)
    if (words[0] if words else "",) not in _COMMANDS.values():
        raise ValueError("not a program that an action may run")
    ids = words[1:]
    if ids[:1] == ["-M"]:
        if len(ids) < 2 or not cluster_allowed(ids[1]):
            raise ValueError("not a cluster name")
        ids = ids[2:]
    if not ids:
        raise ValueError("no job named")
    for text in ids:
        if not id_allowed(text):
            raise ValueError(f"not a job id: {text!r}")


def _joined(targets: Sequence[Target]) -> list[str]:
    """One argument an array where it fits, so that 900 marked tasks are one call."""
    out: dict[str, None] = {}
    tasks: dict[str, list[tuple[int, int]]] = {}
    for target in targets:
        if target.tasks:
            tasks.setdefault(target.base, []).extend(target.tasks)
        else:
            out.update(dict.fromkeys(target.ids))
    for base, ranges in tasks.items():
        out.update(dict.fromkeys(task_ids(base, ranges)))
    return list(out)


def task_ids(base: str, ranges: Iterable[tuple[int, int]]) -> list[str]:
    """``4711_3`` for one task, else ``4711_[1-5,7]``, cut into several where it grows long."""
    pieces: list[str] = []
    merged = merge_ranges(ranges)
    if len(merged) == 1 and merged[0][0] == merged[0][1]:
        return [f"{base}_{merged[0][0]}"]
    size = 0
    groups: list[list[str]] = [[]]
    for low, high in merged:
        text = str(low) if low == high else f"{low}-{high}"
        if groups[-1] and size + len(text) + 1 > ID_CHARS:
            groups.append([])
            size = 0
        groups[-1].append(text)
        size += len(text) + 1
    pieces.extend(f"{base}_[{','.join(group)}]" for group in groups if group)
    return pieces


def merge_ranges(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sorted, without overlaps, neighbours joined."""
    out: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if out and low <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], high))
        else:
            out.append((low, high))
    return out
