"""The batch script of a job, as the controller keeps it."""

from slurmtop.collect.asking import on_cluster, refusal, run_slurm
from slurmtop.collect.poller import SourceFailed
from slurmtop.model.ports import Runner
from slurmtop.model.snapshot import Failure, Trouble

_MOST_BYTES = 4 * 1024 * 1024


async def fetch_batch_script(runner: Runner, job_id: str, *, cluster: str = "") -> str:
    """The script that was submitted, decoded with replacement. Its text is raw.

    Owner and operators may read it. Raises
    :class:`~slurmtop.collect.poller.SourceFailed`, also for a job without a script (salloc, srun).
    """
    argv = ("scontrol", *on_cluster(cluster), "write", "batch_script", job_id, "-")
    done = await run_slurm(runner, argv, max_bytes=_MOST_BYTES)
    # Exit status 0 with the reason on stderr for a job that it does not know (22.05).
    if done.rc != 0 or b"retrieval failed" in done.stderr:
        raise refusal(argv, done)
    if done.truncated:
        size = _MOST_BYTES // (1024 * 1024)
        raise SourceFailed(
            Failure(Trouble.OTHER, f"The script of job {job_id} is longer than {size} MiB.")
        )
    return done.stdout.decode("utf-8", "replace")
