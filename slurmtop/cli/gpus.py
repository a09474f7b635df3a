"""``slurmtop gpus [JOB]``: one look at all GPUs of a job, as a table or as JSON."""

import dataclasses
import json
import os
import sys
from collections.abc import Sequence

from slurmtop import __version__
from slurmtop.cli.errors import CANNOT_STATUS, FINE, CannotWork
from slurmtop.cli.gpu_gather import (
    MOST_HOSTS,
    MOST_JOBS,
    hosts_of,
    look_at,
    named_jobs,
    nodes_of,
    on_nodes,
)
from slurmtop.cli.gpu_rows import GPUS_SCHEMA, JobGpus, job_dict, job_lines
from slurmtop.cli.headless import run_to_end
from slurmtop.cli.job_rows import in_order
from slurmtop.cli.options import Options
from slurmtop.cli.queue_once import fetch_queue, whose_text
from slurmtop.cli.wiring import Wiring, load_settings, open_wiring
from slurmtop.config import Config
from slurmtop.model.job import Job
from slurmtop.model.units import plural
from slurmtop.parse.slurm.ids import split_cluster


def run(options: Options) -> int:
    """Print what the nodes tell. 0 where one answered or there is nothing to ask, else 1."""
    _, cluster = split_cluster(options.job)
    if cluster and options.cluster is None:
        options = dataclasses.replace(options, cluster=cluster)
    hosts = hosts_of(options.hosts) if options.hosts else None
    config = load_settings(options, os.environ)
    wiring = open_wiring(options, os.environ, config=config)
    return run_to_end(_run(wiring, config, options, hosts))


async def _run(
    wiring: Wiring, config: Config, options: Options, hosts: tuple[str, ...] | None
) -> int:
    try:
        jobs, mine, left = await _jobs(wiring, options.job, hosts)
        seen = await look_at(wiring, config, jobs, mine=mine, hosts=hosts)
    finally:
        await wiring.aclose()
    if options.json:
        print(json.dumps(_document(wiring, seen, left), indent=1))
    else:
        for line in _lines(wiring, seen, left):
            print(line)
    if hosts is None and any(one.not_asked for one in seen):
        print(
            f"slurmtop: at most {MOST_HOSTS:,} nodes are asked in one run;"
            " slurmtop gpus JOB --hosts NODES asks others",
            file=sys.stderr,
        )
    asked = [host for one in seen for host in one.hosts]
    nothing = not asked and not any(one.nodes_unknown for one in seen)
    return FINE if nothing or any(host.node.answered for host in asked) else CANNOT_STATUS


async def _jobs(
    wiring: Wiring, text: str, hosts: tuple[str, ...] | None
) -> tuple[tuple[Job, ...], tuple[Job, ...], int]:
    """The jobs to look at, all that are known to hold GPUs, and how many were left out.

    A login on a node may have been put into another one of this user's jobs, also where one job
    is named: :class:`CannotWork` where these cannot be read.
    """
    named = await _with_gpus(wiring, text) if text else ()
    answer = await fetch_queue(wiring, all_users=False)
    mine = tuple(job for job in in_order(answer.value.rows) if on_nodes(job))
    if named:
        return named[:MOST_JOBS], (*mine, *named), max(0, len(named) - MOST_JOBS)
    if hosts is not None:
        wanted = tuple(job for job in mine if set(nodes_of(job)) & set(hosts))
        return wanted, mine, 0
    return mine[:MOST_JOBS], mine, max(0, len(mine) - MOST_JOBS)


async def _with_gpus(wiring: Wiring, text: str) -> tuple[Job, ...]:
    """The records of the named job that may hold GPUs: on the other nodes there is nothing to see,
    and a way onto them may be a step of the job."""
    found = await named_jobs(wiring, text)
    holding = tuple(job for job in found if on_nodes(job))
    if not holding:
        id, _ = split_cluster(text)
        raise CannotWork(
            f"job {id} holds no GPU, so its nodes were not asked:"
            " slurmtop gpus --hosts NODE shows what a node has"
        )
    return holding


def _lines(wiring: Wiring, seen: Sequence[JobGpus], left: int) -> list[str]:
    now = wiring.clock.now()
    out: list[str] = []
    for one in seen:
        if out:
            out.append("")
        out.extend(job_lines(one, now))
    if not seen:
        whose = whose_text(wiring, all_users=False)
        out.append(f"no running job of {whose} holds a GPU; slurmtop gpus --hosts NODE looks there")
    if left:
        print(
            f"slurmtop: {plural(left, 'job')} left out: name one, as in slurmtop gpus JOB",
            file=sys.stderr,
        )
    return out


def _document(wiring: Wiring, seen: Sequence[JobGpus], left: int) -> dict[str, object]:
    return {
        "schema": GPUS_SCHEMA,
        "slurmtop": __version__,
        "cluster": wiring.cluster or None,
        "user": wiring.who.name,
        "at": wiring.clock.now().isoformat(),
        "recorded_at": wiring.recorded_at and wiring.recorded_at.isoformat(),
        "jobs_left_out": left,
        "jobs": [job_dict(one) for one in seen],
    }
