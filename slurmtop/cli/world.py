"""What a plan may ask before it is shown: one object over one runner, for screen and scripts."""

from collections.abc import Sequence

from slurmtop.cli.wiring import Wiring
from slurmtop.collect.batch_script import read_batch_script, script_number
from slurmtop.collect.rights import read_rights
from slurmtop.collect.runs import read_looping
from slurmtop.collect.sacct import Accounting
from slurmtop.control.outcome import Seen
from slurmtop.control.prepare import ScriptSeen, StepsSeen
from slurmtop.control.read_back import QueueReadBack
from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job, Step
from slurmtop.model.rights import Rights
from slurmtop.model.script import Reaction, Recipient, ScriptReading, ScriptStatus
from slurmtop.model.text import visible

_CUT = "the script is longer than what was read of it, so something may be missing here"


class SlurmWorld:
    """Asks Slurm. What does not change for a job or a person is asked once and kept."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._read_back = QueueReadBack(wiring.runner)
        self._accounting = Accounting(wiring.runner, cluster=wiring.cluster, mark=wiring.mark)
        self._rights: Rights | None = None
        self._scripts: dict[tuple[JobKey, str], ScriptSeen] = {}

    async def jobs(self, numbers: Sequence[str], cluster: str) -> Seen:
        """All records of these jobs as they are now."""
        return await self._read_back.read(numbers, cluster, excluded=True)

    async def steps(self, numbers: Sequence[str], cluster: str) -> StepsSeen:
        """Their running steps."""
        return await self._read_back.read_steps(numbers, cluster)

    async def script(self, job: Job) -> ScriptSeen:
        """What the batch script says; a script never changes once a job is submitted."""
        number = script_number(job)
        known = self._scripts.get((job.key, number))
        if known is not None:
            return known
        found = await read_batch_script(self._wiring.runner, number, cluster=job.key.cluster)
        if found.status is not ScriptStatus.READ:
            return ScriptSeen(None, visible(found.why))
        # Imported late: the parser of shells is needed for signals and requeues only.
        from slurmtop.jobscript.reading import read_script

        seen = ScriptSeen(read_script(found.text), _CUT if found.cut else "")
        self._scripts[job.key, number] = seen
        return seen

    async def looping(self, job: Job) -> str | None:
        """A sentence where the job keeps failing in the same way."""
        wiring = self._wiring
        return await read_looping(wiring.runner, wiring.clock, self._accounting, job)

    async def rights(self) -> Rights:
        """What this person may do to other people's jobs."""
        if self._rights is None:
            wiring = self._wiring
            self._rights = await read_rights(wiring.runner, wiring.who, wiring.cluster)
        return self._rights

    def reactions(
        self, reading: ScriptReading, signal: str, recipient: Recipient, step: Step | None
    ) -> tuple[Reaction, ...]:
        """Who gets the signal, and what it does to them."""
        from slurmtop.jobscript.reactions import reactions

        return reactions(reading, signal, recipient, step)


def make_world(wiring: Wiring) -> SlurmWorld:
    """The world of one session."""
    return SlurmWorld(wiring)
