"""One job as the controller describes it: paths, exit codes, excluded nodes, the submit line."""

from collections.abc import Mapping

from slurmtop.collect.asking import check, on_cluster, run_slurm, unreadable
from slurmtop.model.job import JobDetail
from slurmtop.model.ports import Runner
from slurmtop.parse.slurm.scontrol import parse_scontrol_jobs

_NO_JOBS = b"No jobs in the system"
_LOOKED_AT = 2000


async def show_job(
    runner: Runner, job_id: str, *, cluster: str = "", federation: bool = False
) -> bytes:
    """What ``scontrol show job`` prints: one block a record, of an array or het job several.

    Raises :class:`~slurmtop.collect.poller.SourceFailed`; the trouble is ``unknown-job`` where
    the controller has forgotten it.
    """
    local = () if federation else ("--local",)
    argv = ("scontrol", *on_cluster(cluster), *local, "-d", "show", "job", job_id)
    data = check(argv, await run_slurm(runner, argv))
    if b"JobId=" not in data and data.strip() and not data.startswith(_NO_JOBS):
        raise unreadable("scontrol", data[:_LOOKED_AT].decode("utf-8", "replace"))
    return data


async def fetch_job_detail(
    runner: Runner, job_id: str, cluster: str = "", names: Mapping[str, str] | None = None
) -> tuple[JobDetail, ...]:
    """The records of one job. ``names`` maps raw ids to job names as squeue printed them.

    Without them a job name that holds a line break can forge the fields behind it.
    """
    data = await show_job(runner, job_id, cluster=cluster)
    return parse_scontrol_jobs(data, names=names, cluster=cluster).rows
