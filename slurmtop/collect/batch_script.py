"""Asks the controller for a job's batch script: one call, only when a person wants to see it."""

from slurmtop.model.job import Job
from slurmtop.model.ports import Command, Completed, Runner, RunnerError
from slurmtop.model.script import BatchScript, ScriptStatus

SCRIPT_BYTES = 1024 * 1024
SCRIPT_TIMEOUT_S = 35.0

_NO_SCRIPT = ("job script not specified", "only batch jobs are accepted")
_DENIED = ("access/permission denied", "invalid user id", "permission denied")
_FORGOTTEN = ("invalid job id",)


def script_number(job: Job) -> str:
    """The plain number that names the script: older releases of scontrol take nothing else.

    A task is known by its own number; of a het job only the first part has a script.
    """
    if job.id.het_offset is not None or job.raw_id is None:
        return job.id.base
    return job.raw_id


async def read_batch_script(runner: Runner, number: str, *, cluster: str = "") -> BatchScript:
    """``scontrol write batch_script NUMBER -``. Never raises for what Slurm or the machine says."""
    if not (number.isascii() and number.isdigit()):
        return BatchScript(status=ScriptStatus.FAILED, why="the number of the job is not known")
    named = ("-M", cluster) if cluster else ()
    argv = ("scontrol", *named, "write", "batch_script", number, "-")
    try:
        done = await runner.run(Command(argv, timeout_s=SCRIPT_TIMEOUT_S, max_bytes=SCRIPT_BYTES))
    except RunnerError as error:
        return BatchScript(status=ScriptStatus.FAILED, why=str(error))
    return parse_batch_script(done)


def parse_batch_script(done: Completed) -> BatchScript:
    """What the call said. The script itself is on stdout, a refusal on stderr with exit 1::

    job script retrieval failed: Job script not specified
    job script retrieval failed: Invalid job id specified
    """
    if done.timed_out:
        return BatchScript(
            status=ScriptStatus.FAILED, why=f"the controller did not answer in {done.took_s:.0f} s"
        )
    said = done.stderr.decode("utf-8", errors="replace").strip()
    if done.rc == 0 and done.stdout:
        text = done.stdout.decode("utf-8", errors="replace")
        return BatchScript(status=ScriptStatus.READ, text=text, cut=done.truncated)
    words = said.lower()
    if any(word in words for word in _NO_SCRIPT) or (done.rc == 0 and not said):
        return BatchScript(
            status=ScriptStatus.NONE,
            why="it has none: an interactive job (salloc or srun) is not started by a script",
        )
    if any(word in words for word in _FORGOTTEN):
        return BatchScript(
            status=ScriptStatus.FORGOTTEN,
            why="the controller no longer knows this job; where the site stores scripts,"
            " sacct --batch-script -j ID prints it",
        )
    if any(word in words for word in _DENIED):
        return BatchScript(
            status=ScriptStatus.DENIED, why="only the owner of the job and operators may read it"
        )
    last = said.splitlines()[-1] if said else f"scontrol ended with exit code {done.rc}"
    return BatchScript(status=ScriptStatus.FAILED, why=last)
