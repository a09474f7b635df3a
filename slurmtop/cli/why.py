"""``slurmtop why JOB``: what, who, proof, do this now; or all of it as JSON or for a chat."""

import dataclasses
import json
import os

from slurmtop import __version__
from slurmtop.cli.errors import CANNOT_STATUS, FINE, PROBLEM_STATUS, UsageError
from slurmtop.cli.headless import run_to_end
from slurmtop.cli.options import Options
from slurmtop.cli.wiring import Wiring, open_wiring
from slurmtop.collect.cluster_info import read_cluster_info
from slurmtop.collect.facts import gather_job_facts
from slurmtop.collect.poller import SourceFailed
from slurmtop.collect.sacct import Accounting
from slurmtop.model.facts import JobFacts
from slurmtop.model.ports import RunnerError
from slurmtop.model.verdict import State, Verdict, verdict_dict
from slurmtop.parse.mask import mask
from slurmtop.parse.slurm.ids import looks_like_job_id, split_cluster
from slurmtop.triage.why import explain_job, known_anywhere
from slurmtop.triage.words import copy_block, four_lines

_PROBLEMS = frozenset({State.HUNG, State.FAILED, State.SLOW, State.RECOVERING})
_WIDTH = 80


def run(options: Options) -> int:
    """Print the answer. 0 fine, 1 nobody knows the job, 2 a problem was found."""
    job_id, cluster = split_cluster(options.job)
    if not looks_like_job_id(job_id):
        raise UsageError(f"{options.job!r} is no job id; a job looks like 4711, 4711_3 or 4711+1")
    if cluster and options.cluster is None:
        options = dataclasses.replace(options, cluster=cluster)
    wiring = open_wiring(options, os.environ)
    return run_to_end(_run(wiring, job_id, options))


async def _run(wiring: Wiring, job_id: str, options: Options) -> int:
    try:
        facts = await gather(wiring, job_id)
        verdict = explain_job(facts)
        version = await _slurm_version(wiring) if options.copy else None
    finally:
        await wiring.aclose()
    if options.json:
        print(json.dumps(verdict_dict(verdict), indent=1))
    elif options.copy:
        print(chat_block(verdict, version), end="")
    else:
        for line in four_lines(verdict, _width()):
            print(line)
    return exit_status(facts, verdict)


async def gather(wiring: Wiring, job_id: str) -> JobFacts:
    """The facts of one job, accounting and all."""
    return await gather_job_facts(
        wiring.runner,
        wiring.clock,
        job_id,
        cluster=wiring.cluster,
        mark=wiring.mark,
        accounting=Accounting(wiring.runner, cluster=wiring.cluster, mark=wiring.mark),
        want_expected_start=True,
        me=wiring.who,
    )


def exit_status(facts: JobFacts, verdict: Verdict) -> int:
    """0 fine, 1 unknown everywhere, 2 hung, failed, slow or recovering."""
    if not known_anywhere(facts):
        return CANNOT_STATUS
    return PROBLEM_STATUS if verdict.state in _PROBLEMS else FINE


def chat_block(verdict: Verdict, slurm_version: str | None) -> str:
    """The block with secrets masked: it is made to be pasted where others read it."""
    block = copy_block(verdict, version=__version__, slurm_version=slurm_version)
    return mask(block.encode("utf-8", "replace")).decode("utf-8", "replace")


async def _slurm_version(wiring: Wiring) -> str | None:
    try:
        return (await read_cluster_info(wiring.runner, cluster=wiring.cluster)).version
    except (SourceFailed, RunnerError):
        return None


def _width() -> int:
    """The terminal's width where there is one; 80 in a pipe, never less than 40."""
    try:
        return max(40, os.get_terminal_size(1).columns)
    except OSError:
        return _WIDTH
