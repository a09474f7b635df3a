"""``slurmtop why JOB``: what, who, proof, do this now; or all of it as JSON or for a chat."""

import dataclasses
import json
import os
import sys
from datetime import datetime

from slurmtop import __version__
from slurmtop.cli.errors import CANNOT_STATUS, FINE, PROBLEM_STATUS, UsageError
from slurmtop.cli.headless import run_to_end
from slurmtop.cli.job_rows import recorded_text
from slurmtop.cli.options import Options
from slurmtop.cli.wiring import Wiring, open_wiring
from slurmtop.collect.cluster_info import read_cluster_info
from slurmtop.collect.facts import gather_job_facts
from slurmtop.collect.log_verdict import JudgeLogs, judge_beside
from slurmtop.collect.poller import SourceFailed
from slurmtop.collect.recorded import recorded_job
from slurmtop.collect.sacct import Accounting
from slurmtop.model.facts import JobFacts
from slurmtop.model.job import Job
from slurmtop.model.ports import RunnerError
from slurmtop.model.verdict import PROBLEM_STATES, Missing, Verdict, verdict_dict
from slurmtop.parse.mask import mask_text
from slurmtop.parse.slurm.ids import looks_like_job_id, split_cluster
from slurmtop.triage.why import explain_job, known_anywhere
from slurmtop.triage.words import copy_block, four_lines

_WIDTH = 80
_ONLY_QUEUE = "Nobody asked about job"


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
    if wiring.recorded_at is not None:
        note = f"from a recording of {recorded_text(wiring.recorded_at)}"
        if any(said.why.startswith(_ONLY_QUEUE) for said in facts.missing):
            verdict = _labelled(verdict, wiring.recorded_at)
            note += "; nobody asked about this job alone there, so this is what the queue said"
        print(f"slurmtop: {note}", file=sys.stderr)
    if options.json:
        print(json.dumps(verdict_dict(verdict), indent=1))
    elif options.copy:
        print(chat_block(verdict, version), end="")
    else:
        for line in four_lines(verdict, _width()):
            print(line)
    return exit_status(facts, verdict)


async def gather(
    wiring: Wiring, job_id: str, *, judge_logs: JudgeLogs | None = judge_beside
) -> JobFacts:
    """The facts of one job, accounting and all.

    In a replay the job may stand in a recorded queue although nobody asked about it alone.
    """
    facts = await _gather(wiring, job_id, judge_logs)
    if wiring.replay is None or facts.controller_answered or known_anywhere(facts):
        return facts
    found = recorded_job(wiring.replay, job_id, cluster=wiring.cluster)
    if found is None:
        return facts
    wiring.replay.queue_at = found.at
    facts = await _gather(wiring, job_id, judge_logs, found.job, found.siblings)
    said = Missing(
        "slurm",
        f"{_ONLY_QUEUE} {job_id} alone in this recording: what is said here is from"
        f" the queue as recorded at {recorded_text(found.at)}.",
    )
    missing = (said, *facts.missing)
    return dataclasses.replace(facts, controller_answered=True, missing=missing)


def _labelled(verdict: Verdict, at: datetime) -> Verdict:
    """What squeue is said to show was not asked by that command, but stood in its whole answer."""
    source = f"the queue as recorded at {recorded_text(at)}"
    evidence = tuple(
        dataclasses.replace(one, source=source) if one.source.startswith("squeue") else one
        for one in verdict.evidence
    )
    return dataclasses.replace(verdict, evidence=evidence)


async def _gather(
    wiring: Wiring,
    job_id: str,
    judge_logs: JudgeLogs | None,
    job: Job | None = None,
    siblings: tuple[Job, ...] = (),
) -> JobFacts:
    return await gather_job_facts(
        wiring.runner,
        wiring.clock,
        job_id,
        cluster=wiring.cluster,
        mark=wiring.mark,
        accounting=Accounting(wiring.runner, cluster=wiring.cluster, mark=wiring.mark),
        job=job,
        siblings=siblings,
        want_expected_start=True,
        me=wiring.who,
        judge_logs=judge_logs,
    )


def exit_status(facts: JobFacts, verdict: Verdict) -> int:
    """0 fine, 1 unknown everywhere, 2 hung, failed, slow or recovering."""
    if not known_anywhere(facts):
        return CANNOT_STATUS
    return PROBLEM_STATUS if verdict.state in PROBLEM_STATES else FINE


def chat_block(verdict: Verdict, slurm_version: str | None) -> str:
    """The block with secrets masked: it is made to be pasted where others read it."""
    block = copy_block(verdict, version=__version__, slurm_version=slurm_version)
    return mask_text(block)


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
