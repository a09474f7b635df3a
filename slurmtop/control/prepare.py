"""From a wish to a plan: asks Slurm what the jobs are now, then plans. For screen and scripts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from slurmtop.control.actions import NO_DETAILS, Details, Kind
from slurmtop.control.outcome import Seen
from slurmtop.model.job import Job, Step
from slurmtop.model.rights import Rights
from slurmtop.model.script import Reaction, Recipient, ScriptReading
from slurmtop.model.snapshot import Failure


@dataclass(frozen=True, slots=True)
class StepsSeen:
    """The running steps of some jobs. With ``failure`` set, what is not there is not known."""

    steps: tuple[Step, ...] = ()
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class ScriptSeen:
    """What the batch script of a job says, or in ``why`` why nobody can tell."""

    reading: ScriptReading | None = None
    why: str = ""


class World(Protocol):
    """What a plan may ask before it is shown. Nothing here raises; silence is told as such."""

    async def jobs(self, numbers: Sequence[str], cluster: str) -> Seen:
        """All records of these jobs, ended ones too, with ``requeueable``, ``batch`` and
        ``excluded_nodes``."""
        ...

    async def steps(self, numbers: Sequence[str], cluster: str) -> StepsSeen: ...

    async def script(self, job: Job) -> ScriptSeen: ...

    async def looping(self, job: Job) -> str | None:
        """A sentence where this job keeps failing the same way, else None."""
        ...

    async def rights(self) -> Rights: ...

    def reactions(
        self, reading: ScriptReading, signal: str, recipient: Recipient, step: Step | None
    ) -> tuple[Reaction, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a person wants done to ``jobs``. ``step`` narrows a cancel or a signal to one step;
    ``known`` is what else the queue shows."""

    kind: Kind
    jobs: tuple[Job, ...]
    details: Details = NO_DETAILS
    step: Step | None = None
    known: tuple[Job, ...] = ()
