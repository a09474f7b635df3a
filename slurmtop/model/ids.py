"""What identifies a job: its key, and an id as Slurm prints it, taken apart."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class JobKey:
    """The one identity of a row, mark, cursor or action.

    ``cluster`` is the cluster asked for by name (``-M``), or ``""`` for the local one.
    ``id`` is the stable spelling: ``4711``, ``4711_3``, ``4711+1``; the pending rest of an
    array, whose printed id shrinks as its tasks start, is always ``4711_[*]``.
    """

    cluster: str
    id: str

    def __str__(self) -> str:
        return f"{self.id}@{self.cluster}" if self.cluster else self.id


@dataclass(frozen=True, slots=True)
class TaskSet:
    """The tasks in the brackets of an array id, counted and never expanded.

    ``4711_[0-998:2%10]`` has ``count`` 500 and ``throttle`` 10. Where Slurm cut the text
    (``exact`` false), ``count`` is a lower bound and the throttle may be unknown.
    """

    text: str
    count: int
    exact: bool = True
    throttle: int | None = None
    throttle_known: bool = True

    def count_text(self) -> str:
        """``500``, or ``19+`` where the list was cut."""
        return str(self.count) if self.exact else f"{self.count}+"


@dataclass(frozen=True, slots=True)
class JobId:
    """An id as printed by any Slurm command, taken apart.

    ``base`` is the plain number: the array's, the het leader's or the job's own. At most
    one of ``task``, ``tasks`` and ``het_offset`` is set. ``cut`` means that Slurm printed
    only part of the id, so it must never be used as a key.
    """

    text: str
    base: str
    task: int | None = None
    tasks: TaskSet | None = None
    het_offset: int | None = None
    step: str | None = None
    cut: bool = False

    @property
    def stable(self) -> str:
        """The spelling used in ``JobKey.id`` (without the step)."""
        if self.tasks is not None:
            return f"{self.base}_[*]"
        if self.task is not None:
            return f"{self.base}_{self.task}"
        if self.het_offset is not None:
            return f"{self.base}+{self.het_offset}"
        return self.base
