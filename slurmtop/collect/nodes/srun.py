"""The way onto nodes through a step of the job, where ssh is closed.

One step a job, held open and shared by all its nodes: steps are counted, accounted and limited, so
never one a poll. It takes nothing from the job (``--overlap --mem=0``), is named ``slurmtop``, and
ends by itself (:mod:`slurmtop.collect.nodes.agent`); its time limit is the backstop.
"""

import asyncio
import re
from collections.abc import Callable, Mapping

from slurmtop.collect.clock import spawn
from slurmtop.collect.env import srun_environment
from slurmtop.collect.nodes import agent
from slurmtop.collect.nodes.expected import Expected, ExpectedJob
from slurmtop.collect.nodes.remote import RemoteProcess
from slurmtop.collect.nodes.step import HeldStep
from slurmtop.collect.nodes.step_failures import (
    wants_het_group,
    wants_no_gres,
    wants_other_nodes,
)
from slurmtop.model.ports import Clock, Command, NodeUnreachable, Runner, RunnerError
from slurmtop.model.reach import Way
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.parse.slurm.hostlist import compress_hosts

IDLE_S = 60.0
#: A step is replaced in good time: one that Slurm ends shows as TIMEOUT in the accounting.
LIFETIME_S = 110 * 60.0
_LIMIT_MINUTES = 120
STEP_NAME = "slurmtop"
_OPTIONS = (
    "--overlap",
    "--immediate=5",
    "--mpi=none",
    "--mem=0",
    "--cpu-bind=none",
    "--ntasks-per-node=1",
    f"--job-name={STEP_NAME}",
    "--label",
    "--quiet",
    "--export=NONE",
    "--chdir=/",
    # The end of one agent, or of one node, is not the end of the others.
    "--kill-on-bad-exit=0",
    "--no-kill",
    "--wait=0",
    f"--time={_LIMIT_MINUTES}",
)
_HET = re.compile(rb"HetJobId=(\d+) HetJobOffset=(\d+)")
_JOB = re.compile(r"[0-9]+")
#: A request is one line of words.
_HOST = re.compile(r"[A-Za-z0-9_.-]+")

#: Told of every program started, so that it is counted; what it gives back is told of its end.
Note = Callable[[tuple[str, ...]], Callable[[int | None, str], None]]


def _unnoted(_argv: tuple[str, ...]) -> Callable[[int | None, str], None]:
    return lambda _rc, _trouble: None


def srun_argv(
    job: ExpectedJob, mark: str, *, cluster: str = "", group: int | None = None, gres: bool = True
) -> tuple[str, ...]:
    """The command that opens a step on all nodes of ``job``; ``group`` is its part of a het job."""
    count = len(job.hosts)
    return (
        "srun",
        *(("-M", cluster) if cluster else ()),
        *_OPTIONS,
        *(() if gres else ("--gres=none",)),
        f"--jobid={job.job}",
        *(() if group is None else (f"--het-group={group}",)),
        f"--nodelist={compress_hosts(job.hosts)}",
        f"--nodes={count}",
        f"--ntasks={count}",
        "/bin/sh",
        "-c",
        agent.agent_script(),
        agent.AGENT_NAME,
        mark,
    )


class SrunWay:
    """A ``NodeWay`` through the jobs in ``expected``, by their raw numbers.

    ``local`` runs scontrol, for a het job alone; ``note`` is told of each srun.
    """

    def __init__(
        self,
        local: Runner,
        clock: Clock,
        environ: Mapping[str, str],
        expected: Expected,
        *,
        cluster: str = "",
    ) -> None:
        self.note: Note = _unnoted
        self._local = local
        self._clock = clock
        self._environ = srun_environment(environ)
        self._expected = expected
        self._cluster = cluster
        self._steps: dict[str, HeldStep] = {}
        self._refused: dict[str, tuple[ExpectedJob, Failure, float]] = {}
        self._ends: dict[str, int] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def way(self) -> Way:
        return Way.SRUN

    @property
    def steps(self) -> int:
        """Steps that are open now."""
        return sum(1 for step in self._steps.values() if step.refusal is None)

    async def start(self, host: str, script: bytes) -> RemoteProcess:
        job = self._expected.job_on(host)
        if job is None or not _JOB.fullmatch(job.job) or not _HOST.fullmatch(host):
            sentence = f"srun gets onto {host} only through a running job of yours: none is known."
            raise NodeUnreachable(host, Failure(Trouble.UNKNOWN_JOB, sentence))
        if len(script) > agent.MOST_SCRIPT_BYTES:
            raise RunnerError(f"{host}: this script is too long for the way over srun.")
        async with self._opening.setdefault(job.job, asyncio.Lock()):
            step = await self._step(job, host)
        await step.ready(host)
        return step.start(host, script)

    def forget(self, host: str) -> None:
        """Try again at once what was refused for the job on ``host``."""
        job = self._expected.job_on(host)
        if job is not None:
            self._refused.pop(job.job, None)

    async def close_idle(self) -> None:
        """Close the steps that nobody used for a minute, that are worn, or whose job is gone."""
        now = self._clock.monotonic()
        for job, step in tuple(self._steps.items()):
            idle = not step.busy and now - step.used_at >= IDLE_S
            if step.refusal is not None or idle or now - step.opened_at >= LIFETIME_S:
                self._let_go(job, step)

    async def aclose(self) -> None:
        for job, step in tuple(self._steps.items()):
            self._let_go(job, step)
        if self._closing:
            await asyncio.wait(tuple(self._closing))

    async def _step(self, job: ExpectedJob, host: str) -> HeldStep:
        step = self._steps.get(job.job)
        if step is not None:
            worn = self._clock.monotonic() - step.opened_at >= LIFETIME_S
            if step.refusal is None and not worn and host in step.job.hosts:
                return step
            if step.refusal is not None:
                self._ended_by_itself(job, step.refusal, step.opened_at)
            self._let_go(job.job, step)
        last = self._refused.get(job.job)
        if last is not None and last[0].hosts == job.hosts and self._clock.monotonic() < last[2]:
            raise NodeUnreachable(host, last[1])
        try:
            step = await self._open(job, host)
        except NodeUnreachable as error:
            wait_s = error.failure.retry_after_s
            until = self._clock.monotonic() + (IDLE_S if wait_s is None else wait_s)
            self._refused[job.job] = (job, error.failure, until)
            raise
        self._refused.pop(job.job, None)
        self._steps[job.job] = step
        return step

    def _ended_by_itself(self, job: ExpectedJob, why: Failure, opened_at: float) -> None:
        """One that ends soon after each start must not become a step a poll."""
        ends = self._ends.get(job.job, 0) + 1
        self._ends[job.job] = ends
        until = opened_at + IDLE_S * 2 ** min(ends - 1, 6)
        self._refused[job.job] = (job, why, until)

    async def _open(self, job: ExpectedJob, host: str) -> HeldStep:
        """A step whose agent on ``host`` serves; made in another form where Slurm wants that."""
        group: int | None = None
        gres = True
        while True:
            mark = agent.new_agent_mark()
            argv = srun_argv(job, mark, cluster=self._cluster, group=group, gres=gres)
            step = await self._run(HeldStep(job, argv, mark, self._clock), host)
            try:
                await step.ready(host)
            except NodeUnreachable as error:
                said = step.stderr
                await self._close(step)
                if group is None and wants_het_group(said):
                    part = await self._het_part(job)
                    if part is not None:
                        job, group = part
                        continue
                if gres and wants_no_gres(said):
                    gres = False
                    continue
                fewer = self._expected.narrow(job.job) if wants_other_nodes(said) else None
                if fewer is not None and host in fewer.hosts:
                    job = fewer
                    continue
                raise error
            except BaseException:
                await self._close(step)
                raise
            return step

    async def _run(self, step: HeldStep, host: str) -> HeldStep:
        shown = tuple(word if len(word) < 1_000 else "AGENT" for word in step.argv)
        ended = self.note(shown)
        try:
            await step.open(self._environ)
        except (OSError, ValueError) as error:
            ended(None, str(error))
            missing = isinstance(error, FileNotFoundError)
            why = "it is not installed, or not in PATH" if missing else str(error)
            trouble = Trouble.NO_SLURM if missing else Trouble.LOCAL
            failure = Failure(trouble, f"srun could not be started here: {why}.")
            raise NodeUnreachable(host, failure) from error
        step.on_end = ended
        return step

    async def _het_part(self, job: ExpectedJob) -> tuple[ExpectedJob, int] | None:
        """The leader of a het job and which part of it ``job`` is."""
        cluster = ("-M", self._cluster) if self._cluster else ("--local",)
        argv = ("scontrol", *cluster, "-o", "show", "job", job.job)
        ended = self.note(argv)
        try:
            done = await self._local.run(Command(argv, timeout_s=10.0))
        except RunnerError as error:
            ended(None, str(error))
            return None
        ended(done.rc, "")
        for line in done.stdout.splitlines():
            found = _HET.search(line)
            # The name of a job comes behind its numbers and cannot forge them.
            if found is not None and line.startswith(b"JobId=%s " % job.job.encode()):
                return ExpectedJob(found[1].decode(), job.hosts), int(found[2])
        return None

    def _let_go(self, job: str, step: HeldStep) -> None:
        if self._steps.get(job) is step:
            del self._steps[job]
        task = spawn(self._close(step), name=f"close the step of job {job}")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _close(self, step: HeldStep) -> None:
        sentence = f"The step in job {step.job.job} was closed here."
        await step.close(Failure(Trouble.OTHER, sentence, "", 0.0))
