"""``slurmtop why JOB``: what, who, proof, do this now; or all of it as JSON or for a chat."""

import asyncio
import dataclasses
import json
import os
import sys
from datetime import datetime

from slurmtop import __version__
from slurmtop.cli.errors import CANNOT_STATUS, FINE, PROBLEM_STATUS, UsageError
from slurmtop.cli.headless import run_to_end
from slurmtop.cli.job_answer import answer, door_of, look_settings
from slurmtop.cli.job_rows import recorded_text
from slurmtop.cli.options import Options
from slurmtop.cli.refining import Refining
from slurmtop.cli.wiring import Wiring, open_wiring
from slurmtop.collect.cluster_info import read_cluster_info
from slurmtop.collect.job_triage import ONLY_QUEUE, gather_job
from slurmtop.collect.log_verdict import JudgeLogs, judge_beside
from slurmtop.collect.poller import SourceFailed
from slurmtop.model.facts import JobFacts
from slurmtop.model.ports import RunnerError
from slurmtop.model.text import visible
from slurmtop.model.verdict import PROBLEM_STATES, Verdict, verdict_dict
from slurmtop.parse.mask import mask_json, mask_text
from slurmtop.parse.slurm.ids import looks_like_job_id, split_cluster
from slurmtop.triage.sources import no_reader_text
from slurmtop.triage.why import known_anywhere
from slurmtop.triage.words import copy_block, four_lines

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
    refining = Refining(None if options.json or options.copy else _lines)
    try:
        settings = look_settings(options, once=False)
        facts, verdict = await answer(wiring, job_id, settings, refining)
        version = await _slurm_version(wiring) if options.copy else None
    except asyncio.CancelledError:
        best = refining.broken_off()
        if best is not None:
            _print(best, options, None)
        raise
    finally:
        await wiring.aclose()
    if wiring.recorded_at is not None:
        note = f"from a recording of {recorded_text(wiring.recorded_at)}"
        if any(said.why.startswith(ONLY_QUEUE) for said in facts.missing):
            verdict = _labelled(verdict, wiring.recorded_at)
            note += "; nobody asked about this job alone there, so this is what the queue said"
        print(f"slurmtop: {note}", file=sys.stderr)
    refining.end(verdict)
    if not refining.in_place:
        _print(verdict, options, version)
    if not (options.json or options.copy) and (note := no_reader_text(verdict)):
        print(f"slurmtop: {visible(note)}", file=sys.stderr)
    return exit_status(facts, verdict)


def _lines(verdict: Verdict) -> tuple[str, ...]:
    return four_lines(verdict, _width())


def _print(verdict: Verdict, options: Options, slurm_version: str | None) -> None:
    """In the form that was asked for."""
    if options.json:
        print(json.dumps(mask_json(verdict_dict(verdict)), indent=1))
    elif options.copy:
        print(chat_block(verdict, slurm_version), end="")
    else:
        print("\n".join(_lines(verdict)))


async def gather(
    wiring: Wiring, job_id: str, *, judge_logs: JudgeLogs | None = judge_beside
) -> JobFacts:
    """The facts of one job from Slurm, accounting and its logs, without its nodes."""
    return await gather_job(door_of(wiring), job_id, judge_logs)


def _labelled(verdict: Verdict, at: datetime) -> Verdict:
    """What squeue is said to show was not asked by that command, but stood in its whole answer."""
    source = f"the queue as recorded at {recorded_text(at)}"
    evidence = tuple(
        dataclasses.replace(one, source=source) if one.source.startswith("squeue") else one
        for one in verdict.evidence
    )
    return dataclasses.replace(verdict, evidence=evidence)


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
