"""What a plan may ask before it is shown: one object over one runner, for screen and scripts."""

from collections.abc import Callable, Collection, Mapping, Sequence

from slurmtop.cli.told import read_told
from slurmtop.cli.wiring import Wiring, action_log_path
from slurmtop.collect.batch_script import read_batch_script, script_number
from slurmtop.collect.nodes.many import read_many
from slurmtop.collect.rights import read_rights
from slurmtop.collect.runs import read_looping
from slurmtop.collect.sacct import Accounting
from slurmtop.control.outcome import Seen
from slurmtop.control.prepare import ScriptSeen, StepsSeen
from slurmtop.control.read_back import QueueReadBack
from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job, Step
from slurmtop.model.process import NodeProcesses
from slurmtop.model.rights import Rights
from slurmtop.model.script import Reaction, Recipient, ScriptReading, ScriptStatus
from slurmtop.model.text import visible
from slurmtop.model.units import plural
from slurmtop.triage.loops import LOOP_RESTARTS

_CUT = "the script is longer than what was read of it, so something may be missing here"


class SlurmWorld:
    """Asks Slurm. What does not change for a job or a person is asked once and kept."""

    def __init__(self, wiring: Wiring, log_path: str | None = None) -> None:
        self._wiring = wiring
        self._log_path = log_path
        self._read_back = QueueReadBack(wiring.runner)
        self._accounting = Accounting(wiring.runner, cluster=wiring.cluster, mark=wiring.mark)
        self._rights: Rights | None = None
        self._looked: tuple[int, int] | None = None
        self._scripts: dict[tuple[JobKey, str], ScriptSeen] = {}

    async def jobs(
        self,
        numbers: Sequence[str],
        cluster: str,
        *,
        owners: Collection[str] = (),
        excluded: bool = False,
        apart: bool = False,
    ) -> Seen:
        """All records of these jobs as they are now."""
        return await self._read_back.read(
            numbers, cluster, owners=owners, excluded=excluded, apart=apart
        )

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
        runner = self._wiring.runner
        told: tuple[str, ...] = ()
        if self._log_path is not None and (job.restarts or 0) >= LOOP_RESTARTS:
            told = await read_told(runner, self._log_path, str(job.key))
        return await read_looping(runner, self._wiring.clock, self._accounting, job, told=told)

    async def rights(self) -> Rights:
        """What this person may do to other people's jobs."""
        if self._rights is None:
            wiring = self._wiring
            self._rights = await read_rights(wiring.runner, wiring.who, wiring.cluster)
        return self._rights

    async def processes(self, job: str, hosts: Sequence[str]) -> tuple[NodeProcesses, ...]:
        """What runs of the job on each of its nodes, a few nodes at a time."""
        self._looked = (0, len(hosts))
        self._wiring.expect(job, hosts)
        try:
            return await look_at_nodes(self._wiring, job, hosts, self._heard)
        finally:
            self._looked = None

    def _heard(self, done: int, of: int) -> None:
        self._looked = (done, of)

    def doing(self) -> str:
        """How many nodes were looked at, while they are."""
        if self._looked is None:
            return ""
        done, of = self._looked
        return f"looked at {done} of {plural(of, 'node')}"

    def reactions(
        self, reading: ScriptReading, signal: str, recipient: Recipient, step: Step | None
    ) -> tuple[Reaction, ...]:
        """Who gets the signal, and what it does to them."""
        from slurmtop.jobscript.reactions import reactions

        return reactions(reading, signal, recipient, step)


def make_world(wiring: Wiring, environ: Mapping[str, str] | None = None) -> SlurmWorld:
    """The world of one session. With ``environ`` the log of actions is known, too."""
    path = None if environ is None or not wiring.live else action_log_path(environ)
    return SlurmWorld(wiring, path)


async def look_at_nodes(
    wiring: Wiring,
    job: str,
    hosts: Sequence[str],
    looked: Callable[[int, int], None] | None = None,
) -> tuple[NodeProcesses, ...]:
    """Fresh looks at ``hosts``; () where they are not to be asked (a replay)."""
    if not wiring.live and wiring.replay is not None:
        return ()
    return await read_many(wiring.runner, wiring.clock, hosts, job=job, looked=looked)
